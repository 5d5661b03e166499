# cython: language_level=3
"""What a flush changed, encoded once, and buffers for it, as C loops read them. The seam for sync."""

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from playhall.engine.native.tables cimport KindTable, Table, Tracker, put_varint

cdef enum:
    # Sections of an update.
    LEAVE = 1
    ENTER = 2
    CHANGE = 3
    PATCH = 4
    OWNER = 5


cdef class Buffer:
    cdef PyObject* store  # NULL: there is none
    cdef char* data
    cdef size_t used
    cdef size_t cap  # 0 while others have the bytes
    cdef size_t whole  # how much `store` has space for

    cdef char* reserve(self, size_t size) except NULL
    cdef int grow(self, size_t wanted) except -1
    cdef int add(self, const char* data, size_t size) except -1
    cdef bytes take(self)


cdef inline char* put_u32(char* out, uint32_t value) noexcept nogil:
    memcpy(out, &value, 4)
    return out + 4


cdef inline char* put_section(char* out, uint8_t section, uint64_t count) noexcept nogil:
    out[0] = <char>section
    return put_varint(out + 1, count)


cdef class Now:
    cdef uint32_t version
    cdef uint64_t tick
    cdef object mono, tracker, made

    cdef object moment(self)


cdef struct Entered:
    uint32_t at
    uint32_t size
    uint32_t owner_size  # of the OWNER that stands behind it; 0: there is none
    uint32_t generation  # made for this flush, if it is that of the flush


cdef struct Pieces:
    # Of one kind. By row: its CHANGE as everyone is told it, and its ENTER.
    const Table* t  # NULL: nobody is told of this kind
    uint32_t* at
    uint32_t* size
    Entered* enter
    uint32_t cap
    uint32_t words
    uint64_t* told  # bitmap: of what is there is something to tell
    uint32_t most  # no CHANGE is larger
    bint any


cdef class Encoded:
    cdef Tracker tracker
    cdef Now now
    cdef uint32_t generation  # counts flushes, from 1
    cdef Pieces* of_kind
    cdef uint32_t kinds
    cdef Buffer changes, enters
    cdef size_t told_count  # rows of which `changes` tells
    cdef bint is_plain  # that is all there is to tell of the flush
    cdef list extras  # by kind: None, or by row (patches, their number, owner) as bytes

    cdef int begin(self, object flush, Now now) except -1
    cdef int end(self) except -1
    cdef int reserve_kinds(self, uint32_t kinds) except -1
    cdef int encode(self, KindTable table, Pieces* pieces) except -1
    cdef const char* all_changes(self, size_t* size) noexcept
    cdef int encode_special(self, KindTable table, Pieces* pieces, uint32_t row) except -1
    cdef int enter(self, uint32_t number, uint32_t row) except -1
