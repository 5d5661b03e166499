"""Rings of moments over the tables' columns. The twin of `playhall.engine.rings`, to the bit.

A moment is a copy of the recorded columns, closed up and in the order of ids, and does not change. Who is in
it is a `Population`, which moments share for as long as nobody comes or goes: then recording is a check that
this is so, and a copy of each column. An entity is known by its id and the version it was born in.

Loops over two moments work in pieces that fit the first-level cache: places first, as the types of the fields
have it, then the geometry, which knows doubles only and has no branches, then the few that are candidates.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.math cimport fabs, floor, isfinite, sqrt
from libc.stdint cimport int8_t, int16_t, int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from playhall.engine.native.tables cimport (
    CODE_BOOL,
    CODE_F32,
    CODE_F64,
    CODE_I8,
    CODE_I16,
    CODE_I32,
    CODE_Q8,
    CODE_Q16,
    CODE_U8,
    CODE_U16,
    CODE_U32,
    KindTable,
    Table,
    Tracker,
    bitmap_words,
    ctz64,
    has_bit,
    set_bit,
)

from playhall.engine.rings import check_near, check_ray, check_skip

__all__ = ["Rewound", "Ring"]

cdef extern from "rays.h":
    void copy_f32 "ph_copy_f32"(const float* column, uint32_t size, double* out) noexcept nogil
    void blend_f32 "ph_blend_f32"(
        const float* earlier, const float* later, uint32_t size, double fraction, double* out
    ) noexcept nogil
    void blend_f64 "ph_blend_f64"(
        const double* earlier, const double* later, uint32_t size, double fraction, double* out
    ) noexcept nogil
    void measure_2d "ph_measure_2d"(
        const double* x,
        const double* y,
        uint32_t size,
        const double* start,
        const double* unit,
        double* along,
        double* beside,
    ) noexcept nogil
    void measure_3d "ph_measure_3d"(
        const double* x,
        const double* y,
        const double* z,
        uint32_t size,
        const double* start,
        const double* unit,
        double* along,
        double* beside,
    ) noexcept nogil

cdef enum:
    PIECE = 256  # entities that a loop takes at a time

cdef dict _CODES = {
    "bool": (CODE_BOOL, 1),
    "u8": (CODE_U8, 1),
    "u16": (CODE_U16, 2),
    "u32": (CODE_U32, 4),
    "i8": (CODE_I8, 1),
    "i16": (CODE_I16, 2),
    "i32": (CODE_I32, 4),
    "f32": (CODE_F32, 4),
    "f64": (CODE_F64, 8),
    "q8": (CODE_Q8, 8),
    "q16": (CODE_Q16, 8),
}


cdef struct Kept:  # a recorded field
    uint32_t index
    uint8_t code
    uint8_t width
    bint blends


cdef class Recorded:
    """What is recorded of each entity."""

    cdef uint32_t count
    cdef Kept* kept
    cdef int axis[3]  # where x, y and z are in `kept`, or -1
    cdef object fields

    def __cinit__(self, fields):
        cdef uint32_t n
        self.fields = tuple(fields)
        self.count = len(self.fields)
        self.kept = <Kept*>malloc(self.count * sizeof(Kept))
        if not self.kept:
            raise MemoryError()
        self.axis[:] = [-1, -1, -1]
        for n, field in enumerate(self.fields):
            self.kept[n].index = field.index
            self.kept[n].code, self.kept[n].width = _CODES[field.type.name]
            self.kept[n].blends = self.kept[n].code in (CODE_F32, CODE_F64, CODE_Q8, CODE_Q16)
            if field.name in ("x", "y", "z"):
                self.axis["xyz".index(field.name)] = n

    def __dealloc__(self):
        free(self.kept)


@cython.no_gc
cdef class Population:
    """Who is there, in the order of ids."""

    cdef uint32_t count
    cdef uint32_t* ids
    cdef uint32_t* born
    cdef uint32_t* rows
    cdef bint dense  # the rows are 0, 1, 2 ...
    cdef list _ids
    cdef dict _indices

    def __cinit__(self, uint32_t count):
        self.count = count
        self.ids = <uint32_t*>malloc(3 * <size_t>count * sizeof(uint32_t) + 1)
        if not self.ids:
            raise MemoryError()
        self.born = self.ids + count
        self.rows = self.born + count

    def __dealloc__(self):
        free(self.ids)

    cdef list id_list(self):
        if self._ids is None:
            self._ids = [self.ids[n] for n in range(self.count)]
        return self._ids

    cdef dict indices(self):
        if self._indices is None:
            self._indices = {self.ids[n]: n for n in range(self.count)}
        return self._indices

    cdef void put(self, uint32_t n, const Table* t, uint32_t row) noexcept nogil:
        self.ids[n], self.born[n], self.rows[n] = t.id[row], t.born[row], row

    cdef void close(self) noexcept nogil:
        """All have been put."""
        cdef uint32_t n
        self.dense = True
        for n in range(self.count):
            self.dense &= self.rows[n] == n

    cdef bint holds(self, const Table* t, uint32_t n) noexcept nogil:
        """Whether the n-th is still there."""
        cdef uint32_t row = self.rows[n]
        return has_bit(t.alive, row) and t.id[row] == self.ids[n] and t.born[row] == self.born[n]

    cdef bint is_all_of(self, const Table* t) noexcept nogil:
        """Whether these and nobody else are there."""
        cdef uint32_t n
        if t.count != self.count:
            return False
        if self.dense:
            for n in range(self.count >> 6):
                if ~t.alive[n]:
                    return False
            if self.count & 63 and ~t.alive[self.count >> 6] & ((<uint64_t>1 << (self.count & 63)) - 1):
                return False
            return (
                memcmp(t.id, self.ids, self.count * sizeof(uint32_t)) == 0
                and memcmp(t.born, self.born, self.count * sizeof(uint32_t)) == 0
            )
        for n in range(self.count):
            if not self.holds(t, n):
                return False
        return True


cdef Population NOBODY = Population(0)


@cython.no_gc
cdef class Moment:
    """One tick of a kind."""

    cdef long long tick
    cdef Population who
    cdef uint32_t lost  # how many the moment before had that this one has not
    cdef char** columns  # and behind these pointers the columns, each from a multiple of 8 on

    def __dealloc__(self):
        free(self.columns)


cdef Moment make_moment(Recorded recorded, long long tick, Population who, const Table* t):
    cdef Moment made = Moment.__new__(Moment)
    cdef size_t size = recorded.count * sizeof(char*)
    cdef char* at
    cdef uint32_t n
    for n in range(recorded.count):
        size += column_size(recorded.kept + n, who.count)
    made.tick, made.who = tick, who
    made.columns = <char**>malloc(size)
    if not made.columns:
        raise MemoryError()
    at = <char*>(made.columns + recorded.count)
    for n in range(recorded.count):
        made.columns[n] = at
        if who.count:
            copy_column(at, t.data[recorded.kept[n].index], recorded.kept[n].width, who)
        at += column_size(recorded.kept + n, who.count)
    return made


cdef inline size_t column_size(const Kept* kept, uint32_t count) noexcept nogil:
    return (<size_t>count * kept.width + 7) & ~<size_t>7


cdef void copy_column(char* out, const char* column, uint8_t width, Population who) noexcept nogil:
    cdef uint32_t n
    cdef uint32_t* rows = who.rows
    if who.dense:
        memcpy(out, column, <size_t>who.count * width)
    elif width == 4:
        for n in range(who.count):
            (<uint32_t*>out)[n] = (<uint32_t*>column)[rows[n]]
    elif width == 8:
        for n in range(who.count):
            (<uint64_t*>out)[n] = (<uint64_t*>column)[rows[n]]
    elif width == 2:
        for n in range(who.count):
            (<uint16_t*>out)[n] = (<uint16_t*>column)[rows[n]]
    else:
        for n in range(who.count):
            out[n] = column[rows[n]]


cdef class Ring:
    """The last moments of a kind; see the twin."""

    cdef Tracker tracker
    cdef uint32_t number
    cdef Recorded recorded
    cdef Py_ssize_t depth
    cdef list moments
    cdef long long unrecorded
    cdef readonly long long held

    def __init__(self, store, kind, fields, Py_ssize_t depth):
        self.tracker, self.number = store.tracked_in(kind)
        self.recorded = Recorded(fields)
        self.depth = depth
        self.moments = []

    def record(self, long long tick, long long most):
        cdef Table* t = self._table()
        cdef Population before = NOBODY, who
        cdef Moment made
        if len(self.moments) == self.depth:
            del self.moments[0]
            self.held -= (<Moment>self.moments[0]).lost
        if self.moments:
            before = self._newest().who
        if not self.unrecorded and (before.count == 0 if t is NULL else before.is_all_of(t)):
            made = make_moment(self.recorded, tick, before, t)
        else:
            who, kept, came = choose(t, before, most - self.held)
            self.held += came
            self.unrecorded = (0 if t is NULL else t.count) - who.count
            made = make_moment(self.recorded, tick, who, t)
            made.lost = before.count - <uint32_t>kept
        self.moments.append(made)
        return self.unrecorded

    def rewind(self, double tick, long long now):
        cdef Py_ssize_t count = len(self.moments)
        cdef Moment oldest, newest, later
        cdef double whole
        cdef Py_ssize_t n
        if not count:
            return make_rewound(self.recorded, <double>now, self._present(now), None, 0.0)
        oldest, newest = <Moment>self.moments[0], self._newest()
        if tick >= <double>(newest.tick + 1):
            now = max(now, newest.tick + 1)
            return make_rewound(self.recorded, <double>now, self._present(now), None, 0.0)
        if tick <= <double>oldest.tick:
            return make_rewound(self.recorded, <double>oldest.tick, oldest, None, 0.0)
        whole = floor(tick)
        n = <Py_ssize_t>(<long long>whole - oldest.tick)
        if tick == whole:
            return make_rewound(self.recorded, tick, <Moment>self.moments[n], None, 0.0)
        later = <Moment>self.moments[n + 1] if n + 1 < count else self._present(newest.tick + 1)
        return make_rewound(self.recorded, tick, <Moment>self.moments[n], later, tick - whole)

    cdef Moment _newest(self):
        return <Moment>self.moments[len(self.moments) - 1]

    cdef Table* _table(self) noexcept:
        """Return the kind's table, or NULL where there never was one of the kind."""
        cdef list tables = self.tracker.tables
        if self.number >= <uint32_t>len(tables) or tables[self.number] is None:
            return NULL
        return &(<KindTable>tables[self.number]).t

    cdef Moment _present(self, long long tick):
        cdef Table* t = self._table()
        cdef Population who = self._newest().who if self.moments else NOBODY
        if t is NULL:
            who = NOBODY
        elif not who.is_all_of(t):
            who = choose(t, who, t.count)[0]
        return make_moment(self.recorded, tick, who, t)


cdef tuple choose(const Table* t, Population before, long long room):
    """Return a population of those of `before` that are still there and of at most `room` others, the lowest
    ids first; how many are of `before`, and how many are not.
    """
    cdef uint32_t words, n, word, row, kept = 0, came = 0
    cdef uint64_t bits
    cdef uint64_t* known
    cdef uint64_t* others
    if t is NULL:
        return NOBODY, 0, 0
    words = bitmap_words(t)
    known = <uint64_t*>malloc((words + <size_t>t.count + 1) * sizeof(uint64_t))
    if not known:
        raise MemoryError()
    try:
        others = known + words
        memset(known, 0, words * sizeof(uint64_t))
        for n in range(before.count):
            if before.holds(t, n):
                set_bit(known, before.rows[n])
                kept += 1
        for word in range(words):
            bits = t.alive[word] & ~known[word]
            while bits:
                row = 64 * word + <uint32_t>ctz64(bits)
                bits &= bits - 1
                others[came] = <uint64_t>t.id[row] << 32 | row
                came += 1
        sort_keys(others, came)
        came = <uint32_t>max(0, min(<long long>came, room))
        return merged(t, before, known, kept, others, came), kept, came
    finally:
        free(known)


cdef Population merged(
    const Table* t, Population before, const uint64_t* known, uint32_t kept, const uint64_t* others, uint32_t came
):
    """Return those of `before` in rows that are `known`, and the others, by id."""
    cdef Population made = Population(kept + came)
    cdef uint32_t n, at = 0, other = 0
    for n in range(before.count):
        if not (has_bit(known, before.rows[n]) and before.holds(t, n)):
            continue
        while other < came and others[other] >> 32 < before.ids[n]:
            made.put(at, t, <uint32_t>others[other])
            at, other = at + 1, other + 1
        made.put(at, t, before.rows[n])
        at += 1
    while other < came:
        made.put(at, t, <uint32_t>others[other])
        at, other = at + 1, other + 1
    made.close()
    return made


cdef void sort_keys(uint64_t* keys, uint32_t count) noexcept nogil:
    """Most often rows are in the order of ids already."""
    cdef uint32_t n
    for n in range(1, count):
        if keys[n - 1] > keys[n]:
            qsort(keys, count, sizeof(uint64_t), compare_keys)
            return


cdef int compare_keys(const void* a, const void* b) noexcept nogil:
    cdef uint64_t left = (<const uint64_t*>a)[0], right = (<const uint64_t*>b)[0]
    return (left > right) - (left < right)


@cython.no_gc
@cython.freelist(16)
cdef class Rewound:
    """What a rewind sees; see the twin."""

    cdef readonly double tick
    cdef Recorded recorded
    cdef Moment earlier, later
    cdef double fraction
    cdef int32_t* match  # of the earlier's, where each is in the later: -1 is gone. NULL: all are where they were

    def __dealloc__(self):
        free(self.match)

    @property
    def ids(self):
        return self.earlier.who.id_list()

    @property
    def count(self):
        return self.earlier.who.count

    def id_at(self, uint32_t index):
        return self.earlier.who.ids[index]

    def index_of(self, id):
        return self.earlier.who.indices().get(id)

    def values(self, uint32_t index):
        return tuple([self._value(n, index) for n in range(self.recorded.count)])

    def column(self, uint32_t number):
        cdef Kept* kept = self.recorded.kept + number
        cdef uint32_t count = self.earlier.who.count, n
        cdef double piece[PIECE]
        cdef uint32_t start, size
        made = PyByteArray_FromStringAndSize(NULL, <Py_ssize_t>count * kept.width)
        cdef char* out = PyByteArray_AS_STRING(made)
        if self.later is None or not kept.blends:
            memcpy(out, self.earlier.columns[number], <size_t>count * kept.width)
            return made
        for start in range(0, count, PIECE):
            size = min(count - start, <uint32_t>PIECE)
            self._places(number, start, size, piece)
            for n in range(size):
                if kept.code == CODE_F32:
                    (<float*>out)[start + n] = <float>piece[n]
                else:
                    (<double*>out)[start + n] = piece[n]
        return made

    def ray(self, origin, direction, reach, radius, skip):
        cdef double start[3]
        cdef double unit[3]
        cdef double limits[2]
        cdef int dimensions = self._plain_ray(origin, direction, reach, radius, start, unit, limits)
        if not dimensions:
            where, way = check_ray(self.recorded.fields, origin, direction, reach, radius)
            dimensions = len(where)
            for n in range(dimensions):
                start[n], unit[n] = where[n], way[n]
            limits[:] = [reach, radius]
        check_container(skip)
        return self._cast(dimensions, start, unit, limits[0], limits[1], skip)

    def near(self, point, radius, skip):
        where = check_near(self.recorded.fields, point, radius)
        check_container(skip)
        cdef double centre[3]
        cdef double piece[3][PIECE]
        cdef double limit = radius, square
        cdef int dimensions = len(where), d
        cdef uint32_t count = self.earlier.who.count, at, n
        cdef list found = []
        limit *= limit
        for d in range(dimensions):
            centre[d] = where[d]
        for at in range(0, count, PIECE):
            for d in range(dimensions):
                self._places(self.recorded.axis[d], at, min(count - at, <uint32_t>PIECE), piece[d])
            for n in range(min(count - at, <uint32_t>PIECE)):
                square = 0.0
                for d in range(dimensions):
                    square += (piece[d][n] - centre[d]) * (piece[d][n] - centre[d])
                if square <= limit and self.earlier.who.ids[at + n] not in skip:
                    found.append((at + n, sqrt(square)))
        found.sort(key=distance_of)
        return found

    cdef int _plain_ray(
        self, origin, direction, reach, radius, double* start, double* unit, double* limits
    ) except -1:
        """Take a ray of the plainest types in, as `check_ray` does. Returns its dimensions, or 0 where that has
        to be asked.
        """
        cdef int dimensions = plain_vector(origin, start), n
        cdef double longest = 0.0, length = 0.0
        if not dimensions or plain_vector(direction, unit) != dimensions:
            return 0
        if not (plain_number(reach, limits) and plain_number(radius, limits + 1)):
            return 0
        if not (limits[0] >= 0.0 and limits[1] >= 0.0):
            return 0
        for n in range(dimensions):
            if self.recorded.axis[n] < 0 or not isfinite(start[n]) or not isfinite(unit[n]):
                return 0
            longest = max(longest, fabs(unit[n]))
        if longest == 0.0:
            return dimensions
        for n in range(dimensions):
            unit[n] /= longest
            length += unit[n] * unit[n]
        length = sqrt(length)
        for n in range(dimensions):
            unit[n] /= length
        return dimensions

    cdef object _cast(
        self, int dimensions, const double* start, const double* unit, double reach, double radius, skip
    ):
        cdef double piece[3][PIECE]
        cdef double along[PIECE]
        cdef double beside[PIECE]
        cdef double square = radius * radius, half, distance, nearest = 0.0
        cdef uint32_t count = self.earlier.who.count, at, size, n
        cdef long long met = -1
        cdef int d
        if unit[0] == 0.0 and unit[1] == 0.0 and (dimensions == 2 or unit[2] == 0.0):
            return None
        for at in range(0, count, PIECE):
            size = min(count - at, <uint32_t>PIECE)
            for d in range(dimensions):
                self._places(self.recorded.axis[d], at, size, piece[d])
            if dimensions == 2:
                measure_2d(piece[0], piece[1], size, start, unit, along, beside)
            else:
                measure_3d(piece[0], piece[1], piece[2], size, start, unit, along, beside)
            for n in range(size):
                if not beside[n] <= square:
                    continue
                half = sqrt(square - beside[n])
                distance = along[n] - half
                if distance < 0.0:
                    distance = 0.0
                if along[n] + half < 0.0 or not distance <= reach or (met >= 0 and distance >= nearest):
                    continue
                if self.earlier.who.ids[at + n] not in skip:
                    met, nearest = at + n, distance
        return None if met < 0 else (met, nearest)

    cdef void _places(self, uint32_t number, uint32_t start, uint32_t size, double* out) noexcept nogil:
        """Write the values of one field of `size` entities, those from `start` on."""
        cdef Kept* kept = self.recorded.kept + number
        cdef char* column = self.earlier.columns[number] + <size_t>start * kept.width
        if self.later is None or not kept.blends:
            copy_places(kept.code, column, size, out)
        elif self.match is not NULL:
            blend_matched(
                kept.code, column, self.later.columns[number], self.match + start, size, self.fraction, out
            )
        elif kept.code == CODE_F32:
            blend_f32(
                <float*>column, <float*>self.later.columns[number] + start, size, self.fraction, out
            )
        else:
            blend_f64(
                <double*>column, <double*>self.later.columns[number] + start, size, self.fraction, out
            )

    cdef object _value(self, uint32_t number, uint32_t index):
        cdef Kept* kept = self.recorded.kept + number
        cdef double value
        self._places(number, index, 1, &value)
        if kept.blends:
            return value
        return value != 0.0 if kept.code == CODE_BOOL else <long long>value


cdef Rewound make_rewound(
    Recorded recorded, double tick, Moment earlier, Moment later, double fraction
):
    cdef Rewound made = Rewound.__new__(Rewound)
    made.recorded, made.tick, made.earlier, made.later, made.fraction = recorded, tick, earlier, later, fraction
    if later is not None and later.who is not earlier.who:
        made.match = match_ids(earlier.who, later.who)
        if not made.match:
            raise MemoryError()
    return made


cdef int32_t* match_ids(Population earlier, Population later) noexcept:
    cdef int32_t* out = <int32_t*>malloc((<size_t>earlier.count + 1) * sizeof(int32_t))
    cdef uint32_t n, at = 0
    if not out:
        return NULL
    for n in range(earlier.count):
        while at < later.count and later.ids[at] < earlier.ids[n]:
            at += 1
        if at < later.count and later.ids[at] == earlier.ids[n] and later.born[at] == earlier.born[n]:
            out[n] = <int32_t>at
        else:
            out[n] = -1
    return out


# Places

cdef void copy_places(uint8_t code, const char* column, uint32_t size, double* out) noexcept nogil:
    cdef uint32_t n
    if code == CODE_F32:
        copy_f32(<const float*>column, size, out)
    elif code == CODE_F64 or code == CODE_Q8 or code == CODE_Q16:
        memcpy(out, column, size * sizeof(double))
    else:
        for n in range(size):
            out[n] = whole_number(code, column, n)


cdef inline double whole_number(uint8_t code, const char* column, uint32_t n) noexcept nogil:
    if code == CODE_I32:
        return (<const int32_t*>column)[n]
    if code == CODE_U32:
        return (<const uint32_t*>column)[n]
    if code == CODE_I16:
        return (<const int16_t*>column)[n]
    if code == CODE_U16:
        return (<const uint16_t*>column)[n]
    if code == CODE_I8:
        return (<const int8_t*>column)[n]
    return (<const uint8_t*>column)[n]


cdef inline double between(double a, double b, double fraction) noexcept nogil:
    cdef double value = a + (b - a) * fraction
    return value if value == value else a


cdef void blend_matched(
    uint8_t code,
    const char* earlier,
    const char* later,
    const int32_t* match,
    uint32_t size,
    double fraction,
    double* out,
) noexcept nogil:
    """Of who is gone by the later moment, the earlier value."""
    cdef uint32_t n
    copy_places(code, earlier, size, out)
    for n in range(size):
        if match[n] < 0:
            continue
        if code == CODE_F32:
            out[n] = <float>between(out[n], (<const float*>later)[match[n]], fraction)
        else:
            out[n] = between(out[n], (<const double*>later)[match[n]], fraction)


# Arguments

cdef inline bint plain_number(object given, double* out) except -1:
    if PyFloat_CheckExact(given):
        out[0] = given
        return True
    cdef int overflow = 0
    if PyLong_CheckExact(given):
        out[0] = <double>PyLong_AsLongLongAndOverflow(given, &overflow)
        return not overflow
    return False


cdef int plain_vector(object given, double* out) except -1:
    """Take a tuple of two or three plain numbers in. Returns how many, or 0 where it is anything else."""
    cdef Py_ssize_t count, n
    if type(given) is not tuple:
        return 0
    count = len(<tuple>given)
    if not 2 <= count <= 3:
        return 0
    for n in range(count):
        if not plain_number((<tuple>given)[n], out + n):
            return 0
    return <int>count


cdef inline int check_container(object skip) except -1:
    if type(skip) not in (tuple, set, frozenset):
        check_skip(skip)
    return 0


def distance_of(met):
    return met[1]
