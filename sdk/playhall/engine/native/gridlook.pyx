# cython: language_level=3
"""Looks of rooms whose interest is range grids in which room code has no part (`grids.DeclaredGrid`): what
`visibility` finds for these, found here in loops over the tables.

At the end of a tick every grid is built anew. Positions are copied in the order of cells, so that what is
near a point is a few runs of memory, and a run is gone through without a branch. Cells are on a torus: their
numbers wrap, so that no place is too far and empty land costs nothing. What comes of aliases is a few things
more to measure, since only distances say what is near.

What is seen goes into a bitmap by slots, which are the rows of all public kinds, one kind after the other,
and from there into the bitmaps by kind of the Sight.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.math cimport fabs, isfinite
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from playhall.engine.native.links cimport Link
from playhall.engine.native.tables cimport (
    CODE_F32,
    HIDDEN,
    PADDING,
    PRESENCE,
    PRIVATE,
    SHARED,
    KindTable,
    Table,
    Tracked,
    Tracker,
    bitmap_words,
    clear_bit,
    ctz64,
    has_bit,
    number_at,
    set_bit,
)
from playhall.engine.native.views cimport RowSet, Sight, View, ensure, has_row

from playhall.engine.tracking import Scope

cdef extern from "looks.h" nogil:
    ctypedef struct Places "ph_places":
        const double* x
        const double* y
        const double* z
        const uint32_t* slot
    size_t within "ph_within"(
        const Places* places, uint32_t k, uint32_t end, const double* at, double far, uint32_t* hits, size_t n
    )

__all__ = ["GridLook"]

cdef object _SHARED = Scope.SHARED

cdef enum:
    MOST_AXES = 3
    NO_FIELD = 0xFFFF

cdef enum Role:  # of a kind in a grid
    ABSENT, EVERYWHERE, PLACED


cdef struct Place:
    uint32_t number
    uint32_t row


cdef struct Eye:
    Place place
    uint32_t id
    bint there


cdef struct Point:
    double[MOST_AXES] at
    bint there


cdef struct Touched:
    # What has changed since the last flush.
    Place place
    bint common  # all see it, and interest is not asked
    PyObject* owned  # the Owned of who owns it, or NULL


cdef class Owned:
    """What one player owns, and where it looks from in each grid."""

    cdef Place* places
    cdef size_t count, cap
    cdef Eye* eyes
    cdef size_t eye_cap

    def __dealloc__(self):
        PyMem_Free(self.places)
        PyMem_Free(self.eyes)

    cdef int add(self, uint32_t number, uint32_t row) except -1:
        ensure(<void**>&self.places, &self.cap, self.count + 1, sizeof(Place))
        self.places[self.count].number, self.places[self.count].row = number, row
        self.count += 1
        return 0


# One grid

cdef class Grid:
    cdef int dims
    cdef double near, far, reach, size, sure, inverse
    cdef bint margin
    cdef Role* role  # by number of kind
    cdef uint8_t* eye  # by number of kind: it may be looked from
    cdef uint32_t* field  # by number of kind and axis
    cdef uint32_t kinds
    # What there is, as it is found and then in the order of cells; `start` by cell, and one more.
    cdef double* found[MOST_AXES]
    cdef double* at[MOST_AXES]
    cdef uint32_t* found_slot
    cdef uint32_t* slot
    cdef uint32_t* cell
    cdef uint32_t* start
    cdef size_t count, cap, start_cap
    cdef uint32_t[MOST_AXES] mask  # how many cells an axis has, less one
    cdef int[MOST_AXES] shift

    def __cinit__(self, rules, uint32_t kinds):
        cdef uint32_t number
        self.dims, self.margin, self.size = rules.dims, rules.margin, rules.cell_size
        self.near, self.far, self.reach = rules.near, rules.far, rules.reach
        # What is near enough by squares, which round, is not beyond this.
        self.sure = self.reach * (1 + 1e-12) + 1e-150
        self.inverse = 2 / self.sure if self.reach > 0 else 1 / self.size
        self.kinds = kinds
        self.role = <Role*>PyMem_Realloc(NULL, kinds * sizeof(Role))
        self.eye = <uint8_t*>PyMem_Realloc(NULL, kinds)
        self.field = <uint32_t*>PyMem_Realloc(NULL, kinds * MOST_AXES * sizeof(uint32_t))
        if self.role is NULL or self.eye is NULL or self.field is NULL:
            raise MemoryError
        for number in range(kinds):
            fields = rules.fields.get(number, ())
            self.role[number] = (
                ABSENT if number not in rules.taken else PLACED if fields else EVERYWHERE
            )
            self.eye[number] = number in rules.eyes
            # No field: it has no position.
            self.field[number * MOST_AXES] = NO_FIELD
            for axis, index in enumerate(fields):
                self.field[number * MOST_AXES + <size_t>axis] = index

    def __dealloc__(self):
        cdef int axis
        PyMem_Free(self.role)
        PyMem_Free(self.eye)
        PyMem_Free(self.field)
        for axis in range(MOST_AXES):
            PyMem_Free(self.found[axis])
            PyMem_Free(self.at[axis])
        PyMem_Free(self.found_slot)
        PyMem_Free(self.slot)
        PyMem_Free(self.cell)
        PyMem_Free(self.start)

    cdef int reserve(self, size_t count) except -1:
        """Have memory for so many things."""
        cdef int axis
        cdef size_t cap
        if count + PADDING <= self.cap:
            return 0
        for axis in range(self.dims):
            cap = self.cap
            ensure(<void**>&self.found[axis], &cap, count + PADDING, sizeof(double))
            cap = self.cap
            ensure(<void**>&self.at[axis], &cap, count + PADDING, sizeof(double))
        cap = self.cap
        ensure(<void**>&self.found_slot, &cap, count + PADDING, sizeof(uint32_t))
        cap = self.cap
        ensure(<void**>&self.slot, &cap, count + PADDING, sizeof(uint32_t))
        ensure(<void**>&self.cell, &self.cap, count + PADDING, sizeof(uint32_t))
        return 0

    cdef int build(self, Tracker tracker, const uint32_t* base) except -1:
        """Take in where all there is stands. `base`: the first word of each kind's slots."""
        cdef KindTable table
        cdef size_t count = 0
        for table in tracker.tables:
            if table is not None and table.t.number < self.kinds and self.role[table.t.number] == PLACED:
                count += table.t.count
        self.reserve(count)
        self.count = 0
        for table in tracker.tables:
            if (
                table is not None
                and table.t.number < self.kinds
                and self.role[table.t.number] == PLACED
                and table.t.sharing == SHARED
            ):
                self.gather(&table.t, base[table.t.number])
        self.lay_out()
        memset(self.start, 0, ((<size_t>1 << self.shift[self.dims - 1]) * (self.mask[self.dims - 1] + 1) + 2) * 4)
        self.sort()
        return 0

    cdef void gather(self, const Table* t, uint32_t base) noexcept nogil:
        cdef uint32_t word, row, slot
        cdef uint64_t left
        cdef size_t n = self.count
        cdef int axis
        cdef const uint32_t* field = self.field + t.number * MOST_AXES
        cdef bint nan, plain = self.dims == 2
        cdef const float* x
        cdef const float* y
        for axis in range(self.dims):
            plain = plain and t.field[field[axis]].code == CODE_F32
        if plain:
            x, y = <const float*>t.data[field[0]], <const float*>t.data[field[1]]
        for word in range(bitmap_words(t)):
            left = t.alive[word]
            slot = 64 * (base + word)
            while left:
                row = <uint32_t>ctz64(left)
                left &= left - 1
                self.found_slot[n] = slot + row
                row += 64 * word
                if plain:
                    self.found[0][n], self.found[1][n] = x[row], y[row]
                    n += x[row] == x[row] and y[row] == y[row]
                    continue
                nan = False
                for axis in range(self.dims):
                    self.found[axis][n] = number_at(t, field[axis], row)
                    nan = nan or self.found[axis][n] != self.found[axis][n]
                n += not nan
        self.count = n

    cdef int lay_out(self) except -1:
        """Say how many cells there are: on each axis a power of two, and as many as things or a few more."""
        cdef int axis, bits = 4, shift = 0
        while (<size_t>1 << bits) < self.count:
            bits += 1
        for axis in range(self.dims):
            self.shift[axis] = shift
            self.mask[axis] = (<uint32_t>1 << ((bits + self.dims - 1 - axis) // self.dims)) - 1
            shift += (bits + self.dims - 1 - axis) // self.dims
        ensure(<void**>&self.start, &self.start_cap, (<size_t>1 << shift) + 2, sizeof(uint32_t))
        return 0

    cdef void sort(self) noexcept nogil:
        """Copy all into the order of cells, those of one cell in the order of slots."""
        cdef size_t n, k
        cdef uint32_t cell
        cdef size_t cells = (<size_t>1 << self.shift[self.dims - 1]) * (self.mask[self.dims - 1] + 1)
        cdef uint32_t* start = self.start
        cdef int axis
        for n in range(self.count):
            cell = cell_of(self.found[0][n], self.inverse) & self.mask[0]
            cell |= (cell_of(self.found[1][n], self.inverse) & self.mask[1]) << self.shift[1]
            if self.dims == 3:
                cell |= (cell_of(self.found[2][n], self.inverse) & self.mask[2]) << self.shift[2]
            self.cell[n] = cell
            start[cell + 2] += 1
        for n in range(2, cells + 2):
            start[n] += start[n - 1]
        for n in range(self.count):
            cell = self.cell[n]
            k = start[cell + 1]
            start[cell + 1] += 1
            self.slot[k] = self.found_slot[n]
            self.at[0][k], self.at[1][k] = self.found[0][n], self.found[1][n]
            if self.dims == 3:
                self.at[2][k] = self.found[2][n]

    cdef size_t scan(self, const double* at, uint32_t* hits) noexcept nogil:
        """Write the slots of what is within reach of a point. Returns how many."""
        cdef uint32_t[MOST_AXES] low
        cdef uint32_t[MOST_AXES] span
        cdef uint32_t y, z, row, first, last
        cdef const uint32_t* start
        cdef Places places
        cdef size_t n = 0
        cdef int axis
        places.x, places.y, places.z, places.slot = self.at[0], self.at[1], self.at[2], self.slot
        low[2] = span[2] = 0
        for axis in range(self.dims):
            low[axis] = cell_of(at[axis] - self.sure, self.inverse)
            # More cells than there are is all of them.
            span[axis] = min(cell_of(at[axis] + self.sure, self.inverse) - low[axis], self.mask[axis])
        first = low[0] & self.mask[0]
        last = first + span[0]
        for z in range(span[2] + 1):
            for y in range(span[1] + 1):
                row = ((low[1] + y) & self.mask[1]) << self.shift[1]
                if self.dims == 3:
                    row |= ((low[2] + z) & self.mask[2]) << self.shift[2]
                start = self.start + row
                if last <= self.mask[0]:
                    n = within(&places, start[first], start[last + 1], at, self.far, hits, n)
                else:
                    n = within(&places, start[first], start[self.mask[0] + 1], at, self.far, hits, n)
                    n = within(&places, start[0], start[last - self.mask[0]], at, self.far, hits, n)
        return n

    cdef inline double distance(self, const Point* point, const double* at) noexcept nogil:
        """The square of it."""
        cdef double dx = point.at[0] - at[0], dy = point.at[1] - at[1], dz
        if self.dims == 2:
            return dx * dx + dy * dy
        dz = point.at[2] - at[2]
        return dx * dx + dy * dy + dz * dz

    cdef inline bint place_of(self, const Table* t, uint32_t row, double* at) noexcept nogil:
        """Whether it has a place, which may be nowhere."""
        cdef const uint32_t* field = self.field + t.number * MOST_AXES
        cdef int axis
        if field[0] == NO_FIELD:
            return False
        for axis in range(self.dims):
            at[axis] = number_at(t, field[axis], row)
        return True

    cdef Point point_of(self, const Table* t, uint32_t row) noexcept nogil:
        """Where one looks from who looks from this row."""
        cdef Point point
        cdef int axis
        point.there = self.place_of(t, row, point.at)
        if point.there:
            for axis in range(self.dims):
                point.there = (
                    point.there
                    and isfinite(point.at[axis])
                    and isfinite(2 * (fabs(point.at[axis]) + self.reach) / self.size)
                )
        return point


cdef inline uint32_t cell_of(double value, double inverse) noexcept nogil:
    """The number of a cell, which never falls as the value rises. NaN has one, too."""
    cdef double scaled = value * inverse + 2147483648.0
    if not scaled > 0:
        return 0
    return <uint32_t>scaled if scaled < 4294967295.0 else 0xFFFFFFFF


# All grids of a room

cdef class GridLook:
    """Finds what the connections of a room see whose interest is declared grids."""

    cdef Tracker tracker
    cdef list grids  # of Grid
    cdef int state_number  # of shared state; -1
    cdef Py_ssize_t most
    cdef object too_many  # called with a link that sees more than `most`
    cdef dict owners  # by player: Owned
    cdef uint64_t epoch  # of these
    cdef bint current  # all that is seen was looked at since anything has changed
    # Of the look under way.
    cdef bint built, compares
    cdef RowSet before
    cdef uint32_t* base  # by number of kind
    cdef uint32_t kinds
    cdef size_t base_cap, words, word_cap, common_cap, hit_cap, touched_cap, at_cap
    cdef uint64_t* seen
    cdef uint64_t* common
    cdef uint32_t* hits
    cdef Touched* touched
    cdef size_t touched_count
    cdef Py_ssize_t common_count  # how many in `common` count, those without a position among them
    cdef Py_ssize_t presence_count  # how many of these interest is not asked of

    def __init__(self, Tracker tracker, grids, state_number, Py_ssize_t most, too_many):
        """`grids`: of `DeclaredGrid`; `most`: so much one connection can see."""
        kinds = 1 + max([number for rules in grids for number in rules.fields], default=0)
        self.tracker = tracker
        self.grids = [Grid(rules, kinds) for rules in grids]
        self.state_number = -1 if state_number is None else state_number
        self.most, self.too_many = most, too_many
        self.owners = None
        self.before = RowSet()

    def __dealloc__(self):
        PyMem_Free(self.base)
        PyMem_Free(self.seen)
        PyMem_Free(self.common)
        PyMem_Free(self.hits)
        PyMem_Free(self.touched)

    def look(self, list links, flush, *, bint tick):
        """As `Visibility.look`."""
        cdef Link link
        cdef View view
        cdef Sight sight
        cdef bint moved, found = False
        cdef bint all = tick and (flush is not None or not self.current)
        self.built = False
        self.compares = flush is None  # with a flush there is something to tell anyway
        if flush is not None:
            self.current = False
        self.know_owners(flush)
        if flush is not None and not tick:
            self.note_touched()
        for link in links:
            if not link.joined:
                continue
            view = link.view
            view.budget = None
            sight = view.sight
            if sight is None:
                sight = view.sight = Sight()
                if self.state_number >= 0:
                    sight.state_kind = self.state_number
                moved = self.look_around(link, sight)
            elif all:
                moved = self.look_around(link, sight)
            elif not tick and flush is not None and self.look_at(link, sight, flush):
                moved = self.look_around(link, sight)
            else:
                moved = False
            found = found or (moved and not view.fresh) or view.kept_back
        self.current = self.current or all
        return found

    # Who owns what

    cdef int know_owners(self, flush) except -1:
        """Find out anew what players own, if a flush has changed anything of that."""
        cdef KindTable table
        cdef Table* t
        cdef Tracked tracked
        cdef Owned owned
        cdef uint32_t word, row
        cdef uint64_t left
        if self.owners is not None and not (flush is not None and self.moves_owners(flush)):
            return 0
        self.owners = {}
        self.epoch += 1
        for table in self.tracker.tables:
            if table is None or table.t.sharing != SHARED or <int>table.t.number == self.state_number:
                continue
            t = &table.t
            for word in range(bitmap_words(t)):
                left = t.alive[word] & t.owned[word]
                while left:
                    row = 64 * word + <uint32_t>ctz64(left)
                    left &= left - 1
                    tracked = table.by_row[row]
                    owned = self.owners.get(tracked.owner)
                    if owned is None:
                        owned = self.owners[tracked.owner] = Owned()
                        ensure(<void**>&owned.eyes, &owned.eye_cap, len(self.grids), sizeof(Eye))
                        memset(owned.eyes, 0, len(self.grids) * sizeof(Eye))
                    owned.add(t.number, row)
                    self.note_eye(owned, t, row)
        return 0

    cdef bint moves_owners(self, flush) except -1:
        cdef KindTable table
        cdef Tracked tracked
        cdef Table* t
        cdef uint32_t word, row, version = flush.version
        cdef uint64_t left
        for tracked in flush.removed:
            if tracked.scope is _SHARED and tracked.owner is not None:
                return True
        for table in self.tracker.tables:
            if table is None or table.t.sharing != SHARED or not table.t.flushed:
                continue
            t = &table.t
            for word in range(bitmap_words(t)):
                if t.added[word] & t.owned[word]:
                    return True
                left = t.special[word]
                while left:
                    row = 64 * word + <uint32_t>ctz64(left)
                    left &= left - 1
                    if t.owner_changed[row] == version:
                        return True
        return False

    cdef int note_eye(self, Owned owned, const Table* t, uint32_t row) except -1:
        cdef Grid grid
        cdef Eye* eye
        cdef size_t n
        for n in range(len(self.grids)):
            grid, eye = self.grids[n], owned.eyes + n
            if t.number < grid.kinds and grid.eye[t.number] and not (eye.there and eye.id < t.id[row]):
                eye.there, eye.id, eye.place.number, eye.place.row = True, t.id[row], t.number, row
        return 0

    cdef Owned owned_by(self, Link link, Sight sight):
        cdef PyObject* found
        if sight.owned_epoch != self.epoch:
            found = PyDict_GetItem(self.owners, link.player)
            sight.owned = None if found is NULL else <object>found
            sight.owned_epoch = self.epoch
        return sight.owned

    cdef Point point_of(self, size_t n, Owned owned) except *:
        """Where a link looks from in a grid."""
        cdef Grid grid = self.grids[n]
        cdef Point point
        point.there = False
        if owned is not None and owned.eyes[n].there:
            table = <KindTable>self.tracker.tables[owned.eyes[n].place.number]
            point = grid.point_of(&(<KindTable>table).t, owned.eyes[n].place.row)
        return point

    # At all there is

    cdef int build(self) except -1:
        """Prepare to look at all there is."""
        cdef KindTable table
        cdef Grid grid
        cdef Table* t
        cdef uint32_t word, words = 0
        cdef size_t most = 0
        cdef bint everywhere
        self.kinds = <uint32_t>len(self.tracker.tables)
        ensure(<void**>&self.base, &self.base_cap, self.kinds, sizeof(uint32_t))
        for number in range(self.kinds):
            table = self.tracker.tables[number]
            self.base[<size_t>number] = words
            if table is not None and is_public(&table.t):
                words += bitmap_words(&table.t)
        self.words = words
        ensure(<void**>&self.seen, &self.word_cap, words, sizeof(uint64_t))
        ensure(<void**>&self.common, &self.common_cap, words, sizeof(uint64_t))
        memset(self.common, 0, words * sizeof(uint64_t))
        self.common_count = self.presence_count = 0
        for table in self.tracker.tables:
            if table is None or not is_public(&table.t):
                continue
            t = &table.t
            if t.sharing == PRESENCE or <int>t.number == self.state_number:
                memcpy(self.common + self.base[t.number], t.alive, bitmap_words(t) * sizeof(uint64_t))
                if t.sharing == PRESENCE:
                    self.presence_count += t.count
                    self.common_count += t.count
                continue
            everywhere = False
            for grid in self.grids:
                everywhere = everywhere or (t.number < grid.kinds and grid.role[t.number] == EVERYWHERE)
            if everywhere:
                memcpy(self.common + self.base[t.number], t.alive, bitmap_words(t) * sizeof(uint64_t))
                self.common_count += t.count
        for grid in self.grids:
            grid.build(self.tracker, self.base)
            most = max(most, grid.count)
        ensure(<void**>&self.hits, &self.hit_cap, most + PADDING, sizeof(uint32_t))
        self.built = True
        return 0

    cdef bint look_around(self, Link link, Sight sight) except -1:
        """Look at all there is. Returns whether the link sees anything else than before."""
        cdef Owned owned = self.owned_by(link, sight)
        cdef Grid grid
        cdef Point point
        cdef size_t n, k, count
        cdef uint64_t* seen
        cdef uint32_t slot
        cdef Py_ssize_t bound
        if not self.built:
            self.build()
        seen = self.seen
        bound = self.common_count
        memcpy(seen, self.common, self.words * sizeof(uint64_t))
        for n in range(len(self.grids)):
            grid = self.grids[n]
            point = self.point_of(n, owned)
            count = grid.scan(point.at, self.hits) if point.there else 0
            if grid.margin:
                count = self.stay(sight, n, grid, &point, count)
            for k in range(count):
                slot = self.hits[k]
                seen[slot >> 6] |= <uint64_t>1 << (slot & 63)
            bound += count
        if owned is not None:
            bound += owned.count
        if bound > self.most:
            self.see_fewer(link, sight, owned)
        else:
            sight.too_many_visible = False
            if owned is not None:
                for n in range(owned.count):
                    set_bit(seen + self.base[owned.places[n].number], owned.places[n].row)
        return self.put(sight)

    cdef size_t stay(self, Sight sight, size_t n, Grid grid, const Point* point, size_t count) except? 0:
        """Of what is within reach, leave what is within the range or was shown before; remember that."""
        cdef RowSet shown = shown_in(sight, n)
        cdef KindTable table
        cdef size_t k, left = 0
        cdef uint32_t slot, number = 0, row
        cdef double[MOST_AXES] at
        cdef RowSet before = self.before
        before.copy(shown)
        shown.clear()
        for k in range(count):
            slot = self.hits[k]
            number = self.kind_of(slot, number)
            row = slot - 64 * self.base[number]
            table = self.tracker.tables[number]
            grid.place_of(&table.t, row, at)
            if grid.distance(point, at) <= grid.near or has_row(before, number, row):
                self.hits[left] = slot
                left += 1
                shown.add(number, row)
        return left

    cdef inline uint32_t kind_of(self, uint32_t slot, uint32_t likely) noexcept:
        """The kind of a slot. Of kinds without rows the last one has it, so look from the end."""
        cdef uint32_t number = self.kinds - 1
        cdef uint32_t word = slot >> 6
        if self.base[likely] <= word and (likely + 1 == self.kinds or word < self.base[likely + 1]):
            return likely
        while self.base[number] > word:
            number -= 1
        return number

    cdef bint put(self, Sight sight) except -1:
        """Have the sight show what is in `seen`. Returns whether that is not what it was, if that matters."""
        cdef KindTable table
        cdef uint32_t number, words
        cdef uint64_t* bits
        cdef uint64_t* seen
        cdef bint moved = False
        for number in range(self.kinds):
            table = self.tracker.tables[number]
            if table is None or not is_public(&table.t):
                continue
            words = bitmap_words(&table.t)
            if not words:
                continue
            bits, seen = sight.visible.reserve(number, words), self.seen + self.base[number]
            moved = moved or (self.compares and memcmp(bits, seen, words * sizeof(uint64_t)))
            memcpy(bits, seen, words * sizeof(uint64_t))
        return moved

    cdef int see_fewer(self, Link link, Sight sight, Owned owned) except -1:
        """A link may see too much: leave what has the lowest ids, of what it owns and then of the rest."""
        cdef KindTable table
        cdef uint32_t number, word
        cdef uint64_t left
        cdef size_t n
        cdef list mine = [], others = []
        cdef Py_ssize_t space = self.most - self.presence_count
        cdef bint over
        if owned is not None:
            for n in range(owned.count):
                number = owned.places[n].number
                table = self.tracker.tables[number]
                clear_bit(self.seen + self.base[number], owned.places[n].row)
                mine.append((table.t.id[owned.places[n].row], number, owned.places[n].row))
        for number in range(self.kinds):
            table = self.tracker.tables[number]
            if table is None or table.t.sharing != SHARED or <int>number == self.state_number:
                continue
            for word in range(bitmap_words(&table.t)):
                left = self.seen[self.base[number] + word]
                while left:
                    row = 64 * word + <uint32_t>ctz64(left)
                    left &= left - 1
                    others.append((table.t.id[<uint32_t>row], number, row))
        over = len(mine) + len(others) > space
        if over:
            mine = sorted(mine)[:max(space, 0)]
            others.sort()
            for _, number, row in others[max(space - len(mine), 0):]:
                clear_bit(self.seen + self.base[number], row)
        for _, number, row in mine:
            set_bit(self.seen + self.base[number], row)
        if over and not sight.too_many_visible:
            self.too_many(link)
        sight.too_many_visible = over
        return 0

    # At what has changed

    cdef int note_touched(self) except -1:
        """List what the flush has added, then what it has changed, of what is public."""
        cdef KindTable table
        cdef Table* t
        cdef Touched* touched
        cdef Tracked tracked
        cdef PyObject* owned
        cdef uint32_t word, row
        cdef uint64_t left
        cdef bint added
        self.touched_count = 0
        for added in (True, False):
            for table in self.tracker.tables:
                if table is None or not is_public(&table.t) or not table.t.flushed:
                    continue
                t = &table.t
                for word in range(bitmap_words(t)):
                    left = t.added[word] if added else t.changed[word]
                    while left:
                        row = 64 * word + <uint32_t>ctz64(left)
                        left &= left - 1
                        ensure(<void**>&self.touched, &self.touched_cap, self.touched_count + 1, sizeof(Touched))
                        touched = self.touched + self.touched_count
                        self.touched_count += 1
                        touched.place.number, touched.place.row = t.number, row
                        touched.common = t.sharing == PRESENCE or <int>t.number == self.state_number
                        touched.owned = NULL
                        if not touched.common and has_bit(t.owned, row):
                            tracked = table.by_row[row]
                            touched.owned = PyDict_GetItem(self.owners, tracked.owner)
        return 0

    cdef bint look_at(self, Link link, Sight sight, flush) except -1:
        """Look at what has changed. Returns whether that will not do: all there is has to be looked at."""
        cdef Owned owned = self.owned_by(link, sight)
        cdef Tracked tracked
        cdef RowSet shown
        cdef Touched* touched
        cdef size_t n
        cdef bint seen
        cdef Py_ssize_t size = 0
        for tracked in flush.removed:
            sight.visible.discard(tracked.number, tracked.row)
            if sight.shown is not None:
                for shown in sight.shown:
                    shown.discard(tracked.number, tracked.row)
        cdef bint counts = len(self.tracker._public) > self.most
        if counts:
            size = sight.size
        for n in range(self.touched_count):
            touched = self.touched + n
            seen = touched.common
            if not seen:
                seen = self.interest_shows(sight, owned, &touched.place)
                seen = seen or (touched.owned is not NULL and touched.owned is <PyObject*>owned)
            if seen == has_row(sight.visible, touched.place.number, touched.place.row):
                continue
            if not seen:
                sight.visible.discard(touched.place.number, touched.place.row)
                size -= 1
            elif counts and size >= self.most:
                return True
            else:
                sight.visible.add(touched.place.number, touched.place.row)
                size += 1
        return False

    cdef bint interest_shows(self, Sight sight, Owned owned, const Place* place) except -1:
        """Whether a grid shows something. Every grid is asked, since each remembers what it showed."""
        cdef KindTable table = self.tracker.tables[place.number]
        cdef Grid grid
        cdef RowSet shown
        cdef Point point
        cdef size_t n
        cdef double[MOST_AXES] at
        cdef double distance
        cdef bint seen, found = False
        for n in range(len(self.grids)):
            grid = self.grids[n]
            if place.number >= grid.kinds or grid.role[place.number] == ABSENT:
                continue
            if grid.role[place.number] == EVERYWHERE:
                found = True
                continue
            point = self.point_of(n, owned)
            if not point.there:
                continue
            grid.place_of(&table.t, place.row, at)
            distance = grid.distance(&point, at)
            if not grid.margin:
                found = found or distance <= grid.near
                continue
            shown = shown_in(sight, n)
            seen = distance <= grid.near or (distance <= grid.far and has_row(shown, place.number, place.row))
            if seen:
                shown.add(place.number, place.row)
            else:
                shown.discard(place.number, place.row)
            found = found or seen
        return found


cdef RowSet shown_in(Sight sight, size_t n):
    """What the grid of this number showed at the look before."""
    if sight.shown is None:
        sight.shown = []
    while <size_t>len(sight.shown) <= n:
        sight.shown.append(RowSet())
    return sight.shown[n]


cdef inline bint is_public(const Table* t) noexcept:
    return t.sharing != HIDDEN and t.sharing != PRIVATE
