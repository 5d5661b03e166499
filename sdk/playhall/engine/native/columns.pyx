"""The columns of one kind: its table pinned, and what was written through arrays found. The twin of `rows`.

From the first `columns()` on, the table's numbers are in pages that have room for all rows there can ever be,
and never move; an array keeps its pages alive, whatever becomes of the room. A column is compared only once its
array was handed out.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from playhall.engine.native.tables cimport (
    CODE_BOOL,
    Field,
    KindTable,
    Table,
    Tracked,
    at_step,
    bitmap_words,
    clear_bit,
    ctz64,
    is_quantised,
    mark,
    mark_whole,
    spread,
)

from playhall.engine.columns import Columns
from playhall.engine.errors import FieldError

cdef extern from "scans.h":
    bint ph_scan(const char* now, const char* told, size_t width, size_t rows, uint64_t* out) noexcept nogil


cdef enum:
    PIECE = 16  # words of a bitmap that are looked at together, and taken over from the nearest cache


cdef class Rows:
    """The rows of one kind, as arrays."""

    cdef readonly uint32_t number
    cdef KindTable table
    cdef object spec, ids, living, shown
    cdef dict arrays  # by name, over all rows there can be
    cdef uint64_t* found  # by field, then a bit for each row
    cdef uint32_t found_words

    def __init__(self, KindTable table not None):
        """Pin a table. Raises TypeError for a kind that can have no columns, ModuleNotFoundError without NumPy."""
        from playhall.engine.rows import Memory, capacity_of, check_columns, dtype_of

        self.table, self.number, self.spec = table, table.t.number, table.layout.spec
        check_columns(self.spec)
        fields = [(field, dtype_of(field.type)) for field in self.spec.fields]
        rows = capacity_of(self.spec, table.t.used)
        memory = Memory(rows, [*[dtype for _, dtype in fields if dtype], "?", "i8"])
        self.arrays = {field.name: memory.array(dtype) for field, dtype in fields if dtype}
        self.living, self.ids = memory.array("?"), memory.array("i8")
        self.pin(rows)

    def __dealloc__(self):
        free(self.found)

    cdef int pin(self, uint32_t rows) except -1:
        cdef Table* t = &self.table.t
        cdef uint32_t index, row
        cdef char* there
        for name, array in self.arrays.items():
            index = self.spec.by_name[name].index
            there = address_of(array)
            memcpy(there, t.data[index], t.field[index].width * <size_t>t.used)
            free(t.data[index])
            t.data[index] = there
        t.shown_alive, t.shown_id = address_of(self.living), <uint64_t*>address_of(self.ids)
        for row in range(t.used):
            if t.alive[row >> 6] >> (row & 63) & 1:
                t.shown_alive[row], t.shown_id[row] = 1, t.id[row]
        self.table.pages = [*self.arrays.values(), self.living, self.ids]
        self.table.most = rows
        return 0

    def columns(self):
        """Return the arrays over the rows there are."""
        cdef uint32_t size = self.table.t.used
        if self.shown is None or len(self.shown) != size:
            ids, living = self.ids[:size], self.living[:size]
            ids.flags.writeable = living.flags.writeable = False
            self.shown = Columns(self, Shown(self, size), ids, living)
        return self.shown

    cpdef show(self, str name, uint32_t size):
        """Return the array of a column over so many rows. Raises KeyError."""
        array = self.arrays[name]
        cdef Table* t = &self.table.t
        cdef uint32_t index = self.spec.by_name[name].index
        cdef size_t width = t.field[index].width
        if t.told[index] == NULL:
            t.told[index] = <char*>realloc(NULL, width * t.cap)
            if t.told[index] == NULL:
                raise MemoryError
            memcpy(t.told[index], t.data[index], width * t.cap)
        return array[:size]

    # What the tracker asks

    def changed(self):
        """Whether `tell` would tell anything."""
        cdef uint32_t index
        self.make_room()
        for index in range(self.table.t.fields):
            if self.table.t.told[index] != NULL and self.find(index, True):
                return True
        return False

    def tell(self):
        """Tell of what was written through the arrays. Raises FieldError, and tells nothing then."""
        cdef Table* t = &self.table.t
        cdef uint32_t index, word, words = bitmap_words(t)
        self.make_room()
        for index in range(t.fields):
            if t.told[index] != NULL and is_quantised(t.field + index) and self.find(index, False):
                self.refuse_out_of_bounds(index)
        for index in range(t.fields):
            if t.told[index] == NULL:
                continue
            for word in range(0, words, PIECE):
                # Found, and taken over while it is at hand.
                if self.look(index, word):
                    if t.field[index].writable:
                        self.note_beliefs(index, word)
                    self.take_over(index, word)

    cdef int make_room(self) except -1:
        cdef uint32_t words = bitmap_words(&self.table.t)
        cdef void* made
        if words > self.found_words:
            made = realloc(self.found, 8 * <size_t>words * self.table.t.fields)
            if made == NULL:
                raise MemoryError
            self.found, self.found_words = <uint64_t*>made, words
        return 0

    cdef inline uint64_t* found_in(self, uint32_t index) noexcept:
        return self.found + <size_t>index * self.found_words

    cdef bint find(self, uint32_t index, bint one) noexcept:
        """Note the rows of entities in which a column is not what was told. Whether there are any.

        Quantised values that fit are at their step after this. `one`: stop where some are found.
        """
        cdef uint32_t word
        cdef bint any = False
        for word in range(0, bitmap_words(&self.table.t), PIECE):
            if self.look(index, word):
                any = True
                if one:
                    break
        return any

    cdef bint look(self, uint32_t index, uint32_t first) noexcept:
        """The same of the words of a piece."""
        cdef Table* t = &self.table.t
        cdef Field* field = t.field + index
        cdef uint64_t* found = self.found_in(index)
        cdef size_t at = 64 * <size_t>first, rows = min(<size_t>(64 * PIECE), t.used - at), there = field.width * at
        cdef uint32_t word
        cdef uint64_t any = 0
        if not ph_scan(t.data[index] + there, t.told[index] + there, field.width, rows, found + first):
            return False
        for word in range(first, self.end_of(first)):
            if found[word] & ~t.alive[word]:
                put_back(t, index, 64 * word, found[word] & ~t.alive[word])
                found[word] &= t.alive[word]
            if found[word] and (is_quantised(field) or field.code == CODE_BOOL):
                found[word] = put_right(t, index, 64 * word, found[word])
            any |= found[word]
        return any != 0

    cdef int refuse_out_of_bounds(self, uint32_t index) except -1:
        """Raise what a single write would."""
        cdef Table* t = &self.table.t
        cdef Field* field = t.field + index
        cdef double value
        cdef uint32_t word, row
        cdef uint64_t rows
        for word in range(bitmap_words(t)):
            rows = self.found_in(index)[word]
            while rows:
                row = 64 * word + <uint32_t>ctz64(rows)
                rows &= rows - 1
                value = (<double*>t.data[index])[row]
                if field.lo <= value <= field.hi:
                    continue
                try:
                    self.spec.fields[index].accept(self.spec.name, t.id[row], value)
                except FieldError as error:
                    error.add_note("Written through entities.columns(), and found when the tick was flushed.")
                    raise
        return 0

    cdef uint32_t end_of(self, uint32_t first) noexcept:
        """Return the end of a piece, in words."""
        return min(first + PIECE, bitmap_words(&self.table.t))

    cdef int note_beliefs(self, uint32_t index, uint32_t first) except -1:
        """The owners believe what was told, until the flush tells them."""
        cdef Table* t = &self.table.t
        cdef uint32_t word, row
        cdef uint64_t rows
        cdef Tracked tracked
        for word in range(first, self.end_of(first)):
            rows = self.found_in(index)[word] & t.owned[word]
            while rows:
                row = 64 * word + <uint32_t>ctz64(rows)
                rows &= rows - 1
                tracked = self.table.by_row[row]
                tracked.note_belief(index, self.table.value_in(t.told[index], row, index))
        return 0

    cdef void take_over(self, uint32_t index, uint32_t first) noexcept:
        """Mark what differs as written, and note that it was told."""
        cdef Table* t = &self.table.t
        cdef uint64_t* found = self.found_in(index)
        cdef size_t width = t.field[index].width, at
        cdef uint32_t word
        cdef uint64_t rows
        for word in range(first, self.end_of(first)):
            rows = found[word]
            if not rows:
                continue
            at = 64 * <size_t>word
            memcpy(t.told[index] + width * at, t.data[index] + width * at, width * min(<size_t>64, t.used - at))
            if rows == ~<uint64_t>0 and t.words == 1:
                mark_whole(t, word, index)
                continue
            spread(t, word)
            while rows:
                mark(t, 64 * word + <uint32_t>ctz64(rows), index)
                rows &= rows - 1

    # What Columns asks

    def assign(self, name, into, value):
        from playhall.engine.rows import assign

        assign(self.spec, self.spec.by_name[name], into, value, self.ids, self.living)

    def no_column(self, name):
        from playhall.engine.rows import no_column

        return no_column(self.spec, name, self.arrays)


class Shown(dict):
    """Arrays by name, each from when it is first asked for."""

    def __init__(self, rows, size):
        super().__init__()
        self._rows, self._size = rows, size

    def __missing__(self, name):
        array = self[name] = self._rows.show(name, self._size)
        return array


cdef char* address_of(array) except NULL:
    return <char*><size_t>array.__array_interface__["data"][0]


cdef void put_back(Table* t, uint32_t index, uint32_t first, uint64_t rows) noexcept nogil:
    """Undo what was written to rows of nobody."""
    cdef size_t width = t.field[index].width, at
    while rows:
        at = width * (first + <uint32_t>ctz64(rows))
        rows &= rows - 1
        memcpy(t.data[index] + at, t.told[index] + at, width)


cdef uint64_t put_right(Table* t, uint32_t index, uint32_t first, uint64_t rows) noexcept nogil:
    """Make bools 0 or 1, and put quantised values that fit to their step; return the rows that differ still."""
    cdef Field* field = t.field + index
    cdef size_t width = field.width, at
    cdef uint64_t left = rows
    cdef uint32_t n
    cdef double* value
    while left:
        n = <uint32_t>ctz64(left)
        left &= left - 1
        at = width * (first + n)
        if field.code == CODE_BOOL:
            t.data[index][first + n] = t.data[index][first + n] != 0
        else:
            value = <double*>t.data[index] + first + n
            if field.lo <= value[0] <= field.hi:
                value[0] = at_step(field, value[0])
        if is_same(t.data[index] + at, t.told[index] + at, width):
            clear_bit(&rows, n)
    return rows


cdef inline bint is_same(const char* a, const char* b, size_t width) noexcept nogil:
    cdef uint64_t one = 0, other = 0
    memcpy(&one, a, width)
    memcpy(&other, b, width)
    return one == other
