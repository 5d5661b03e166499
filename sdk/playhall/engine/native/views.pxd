# cython: language_level=3
"""What links hold and see as C loops read it: bitmaps by kind and row. The seam for sync and gridlook."""

from cpython.mem cimport PyMem_Realloc
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from playhall.engine.native.tables cimport HIDDEN, PRIVATE, Table, Tracked, Tracker


cdef inline int ensure(void** array, size_t* cap, size_t count, size_t size) except -1:
    """Have memory for so many things, each of a size."""
    cdef size_t wanted
    cdef void* grown
    if count > cap[0]:
        wanted = max(count, 2 * cap[0], <size_t>64)
        grown = PyMem_Realloc(array[0], wanted * size)
        if grown is NULL:
            raise MemoryError
        array[0], cap[0] = grown, wanted
    return 0


cdef class RowSet:
    """Rows of any kinds, as one bitmap for each kind."""

    cdef uint64_t** bits  # by number of kind; NULL where it has none
    cdef uint32_t* words  # how many words that has
    cdef uint32_t kinds

    cdef int reserve_kinds(self, uint32_t kinds) except -1
    cdef uint64_t* reserve(self, uint32_t number, uint32_t words) except? NULL
    cdef int add(self, uint32_t number, uint32_t row) except -1
    cdef int copy(self, RowSet other) except -1
    cdef bint equals(self, RowSet other) noexcept
    cdef void discard(self, uint32_t number, uint32_t row) noexcept
    cdef void clear(self) noexcept
    cdef Py_ssize_t count(self) noexcept


cdef inline bint has_row(RowSet rows, uint32_t number, uint32_t row) noexcept:
    return (
        number < rows.kinds
        and row >> 6 < rows.words[number]
        and rows.bits[number][row >> 6] >> (row & 63) & 1
    )


cdef inline uint64_t word_of(RowSet rows, uint32_t number, uint32_t word) noexcept:
    return rows.bits[number][word] if number < rows.kinds and word < rows.words[number] else 0


cdef class Sight:
    cdef RowSet visible
    cdef int state_kind  # number of shared state, once it was seen; -1
    cdef public set found
    cdef public list subscriptions
    cdef public bint too_many_keys, too_many_visible
    # Of declared grids: by grid, what it showed at the look before if it has a margin; and what the player
    # owns, as it was found in `owned_epoch`.
    cdef list shown
    cdef object owned
    cdef uint64_t owned_epoch


cdef class View:
    cdef readonly str player
    cdef public uint32_t version, told_version
    cdef public uint64_t told_tick
    cdef public bint fresh, resumed
    cdef public Sight sight
    cdef public object budget
    cdef Tracker tracker
    cdef bint widened, kept_back, holds_private
    cdef bint full  # holds all there was at `version`, and `held` is empty
    cdef RowSet held
    cdef set claimed  # ids, while it is fresh
    cdef list gone  # ids that it holds, and that are no more
    cdef dict corrections, behind

    cdef bint is_behind(self, uint32_t version) noexcept
    cdef int drop(self, uint32_t number, uint32_t row, object id) except -1
    cdef int unfollow(self, Tracker tracker, object flush) except -1
    cdef bint holds(self, Tracked tracked) except -1
    cdef int settle(self, Tracker tracker, uint32_t version) except -1
    cdef int add_step(self, object lack, Tracked tracked, bint held) except -1


cdef inline bint is_up_to_date(View view, uint32_t version) noexcept:
    """As `View.keeps_up`."""
    return view.is_behind(version) and view.budget is None and not view.behind


cdef inline bint is_public(const Table* t) noexcept:
    return t.sharing != HIDDEN and t.sharing != PRIVATE
