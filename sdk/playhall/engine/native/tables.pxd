# cython: language_level=3
"""Tables: the entities of one kind in memory, as C loops see them. The seam for all that reads them.

A `Table` is the struct in a `KindTable`: columns by field, stamps by field, and what there is by row. A row is
an entity's from the moment it is added; that of a removed one is free again only when the flush after the one
that told of it begins. Pointers into a table hold until something is added or `columns()` is asked for: take
them anew for each loop, and run no Python code within one.

Bitmaps have one bit a row, `bitmap_words(t)` words are in use. Of the last flush there are `added`, `changed`
(which leaves out what was added) and `special` (of the changed: those of which `mask` does not tell all, since
a patch says it shorter or the owner changed). `mask` is valid for the rows in `added` and `changed`.

Sizes are exact unless they say `bound`. What writes to a buffer may write up to PADDING bytes beyond what it
returns as its end: leave so much room behind every buffer.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from cpython.object cimport PyObject


cdef extern from *:
    """
    #include <math.h>
    #define ph_ctz64(x) __builtin_ctzll(x)
    #define ph_clz64(x) __builtin_clzll(x)
    #define ph_popcount64(x) __builtin_popcountll(x)
    """
    int ctz64 "ph_ctz64"(uint64_t bits) noexcept nogil
    int clz64 "ph_clz64"(uint64_t bits) noexcept nogil
    int popcount64 "ph_popcount64"(uint64_t bits) noexcept nogil
    double floor(double) noexcept nogil

cdef extern from "Python.h":
    # Borrowed, all of them.
    const char* PyUnicode_AsUTF8AndSize(PyObject* text, Py_ssize_t* size) except NULL
    PyObject* item_of "PyList_GET_ITEM"(PyObject* list, Py_ssize_t at) noexcept
    const char* bytes_of "PyBytes_AS_STRING"(PyObject* data) noexcept
    Py_ssize_t size_of_bytes "PyBytes_GET_SIZE"(PyObject* data) noexcept


cdef extern from "runs.h":
    ctypedef struct Run "ph_run":
        uint32_t count
        uint32_t row[64]
    void whole_run "ph_whole"(Run* run, uint32_t first, const uint32_t* ids) noexcept nogil
    uint64_t part_run "ph_part"(
        Run* run, uint32_t first, uint64_t rows, const uint64_t* masks, const uint32_t* ids
    ) noexcept nogil
    void mark_64 "ph_mark_64"(uint64_t* masks, uint64_t bits) noexcept nogil
    bint same_64 "ph_same_64"(const uint64_t* masks) noexcept nogil
    void fill_32 "ph_fill_32"(uint32_t* out, uint32_t value) noexcept nogil
    void fill_64 "ph_fill_64"(uint64_t* out, uint64_t value) noexcept nogil
    char* put_heads "ph_put_heads"(
        char* out, Run* run, bint record, uint64_t tail, uint32_t tail_size, uint32_t fields
    ) noexcept nogil
    void put_pieces "ph_put_pieces"(const Run* run, uint32_t base, uint32_t* offset, uint32_t* size) noexcept nogil
    void ph_put_4_4(char* out, const Run* run, const char* one, const char* other) noexcept nogil
    void ph_put_column(char* out, const Run* run, const char* column, uint32_t size) noexcept nogil
    void ph_put_steps(
        char* out, const Run* run, const char* column, uint32_t size, double lo, double hi, double steps
    ) noexcept nogil

cdef enum:
    PADDING = 16
    MAX_WORDS = 4  # of a mask: 255 fields
    UNBORN = 0xFFFFFFFF  # in `born`: added, and told by no flush yet


cdef enum Code:  # the type of a field
    CODE_BOOL, CODE_U8, CODE_U16, CODE_U32, CODE_I8, CODE_I16, CODE_I32
    CODE_F32, CODE_F64, CODE_Q8, CODE_Q16
    CODE_STR, CODE_BYTES, CODE_JSON  # in lists of objects; CODE_STR is the first of them


cdef enum Sharing:  # the scope of a kind in its room
    SHARED, HIDDEN, PRIVATE, PRESENCE


cdef struct Field:
    uint8_t code
    uint8_t size  # on the wire; 0: it depends on the value
    uint8_t width  # in memory; 0: objects in a list. Quantised values are doubles
    uint8_t owner_only
    uint8_t writable
    double lo, hi, steps  # of a quantised one


cdef struct Table:
    # The kind.
    uint32_t number
    uint32_t fields
    uint32_t words  # of a mask: one for up to 64 fields
    uint8_t sharing
    uint8_t var  # has fields whose size depends on the value
    uint8_t has_owner_only
    Field* field
    uint64_t public_mask[MAX_WORDS]
    uint64_t owner_only_mask[MAX_WORDS]
    uint64_t writable_mask[MAX_WORDS]
    uint64_t all_mask[MAX_WORDS]
    uint64_t var_mask[MAX_WORDS]  # those whose size depends on the value
    uint32_t fixed_size  # of all fields that have one, on the wire
    uint32_t public_fixed_size  # of those among them that everyone is told

    # The rows: `cap` there is memory for, `used` from 0 on were ever taken, `count` are alive.
    uint32_t cap, used, count
    char** data  # by field: the column, or a list: strs, bytes, JsonValues
    PyObject** blobs  # by field: the list whose items are what is sent: strs, bytes, JSON as bytes
    char** told  # by field: what the tracker has heard of; NULL where no array was handed out
    uint32_t** stamps  # by field and row: the version of the last change
    uint32_t* id
    uint32_t* born
    uint32_t* changed_at
    uint32_t* owner_changed
    uint64_t* dirty  # by row, `words` each: written since the last flush
    uint64_t* mask  # the same: what the last flush told

    # By row, one bit each.
    uint64_t* alive
    uint64_t* owned  # belongs to a player
    uint64_t* fresh  # added, and told by no flush yet
    uint64_t* dirty_rows
    uint64_t* pending  # the next flush has more to do than to stamp what is dirty
    uint64_t* added
    uint64_t* changed
    uint64_t* special

    # By 64 rows, of tables of one word.
    uint64_t* whole  # fields written in all of them since the last flush, beside what `dirty` says
    uint64_t* alike  # `mask` of all of them, where the last flush told the same of each; else 0

    uint8_t touched  # anything in dirty_rows
    uint8_t flushed  # anything in added or changed
    uint64_t any_mask[MAX_WORDS]  # all that `mask` says of those rows
    # When the table is pinned: what Columns shows.
    char* shown_alive
    uint64_t* shown_id


# Handles, and the books around the tables. `by_row` keeps the Tracked of a row until the row is free again.

cdef class Layout:
    """What the tables of one class have in common, and its table of entities that are in no room."""

    cdef readonly object spec
    cdef Field* field
    cdef void* descriptors
    cdef dict index_of
    cdef list json
    cdef KindTable nursery
    cdef long default_size


cdef class KindTable:
    cdef Table t
    cdef readonly Layout layout
    cdef readonly list by_row
    cdef list objects, texts  # by field, None for numbers: what t.data and t.blobs point to
    cdef uint64_t* taken
    cdef uint32_t first_free  # no row below is
    cdef uint32_t most  # rows there can be once it is pinned, 0 before
    cdef object pages

    cdef int grow(self, uint32_t cap) except -1
    cdef int grow_column(self, uint32_t index, uint32_t before, uint32_t cap) except -1
    cdef uint32_t take(self) except? 0xFFFFFFFF
    cdef int give_back(self, uint32_t row) except -1
    cdef int blank(self, uint32_t row) except -1
    cdef int copy_row(self, uint32_t row, KindTable source, uint32_t source_row) except -1
    cdef object get(self, uint32_t row, uint32_t index)
    cdef object value_in(self, char* column, uint32_t row, uint32_t index)
    cdef int put(self, uint32_t row, uint32_t index, object stored) except -1


cdef class Handle:
    cdef Table* t  # NULL: dead
    cdef uint32_t row
    cdef bint foreign  # its home is neither the nursery nor a room's, and is told of writes by `write`
    cdef KindTable table
    cdef object home, identity, player
    cdef public long _size

    cdef int settle_in(self, Layout layout) except -1
    cdef int leave_nursery(self) except -1
    cdef bint take_simple(self, Layout layout, dict given) except -1
    cdef int take_given(self, Layout layout, dict given) except -1


cdef class Tracked:
    cdef Table* t  # NULL: a twin, or removed
    cdef readonly uint32_t row
    cdef readonly uint32_t number
    cdef KindTable table
    cdef readonly Handle entity
    cdef readonly object scope, id, owner
    cdef readonly bint owner_dirty
    cdef dict _believed, _corrected_at, _patched, _patches  # None while empty
    cdef set _lost_by
    cdef Tracked _twin
    # Of a twin, or of what was removed:
    cdef list kept_values, kept_stamps
    cdef long long kept_born, kept_changed, kept_owner_changed

    cdef int touch(self) except -1
    cdef object told(self, uint32_t index)
    cdef int note_belief(self, uint32_t index, object told) except -1
    cdef bint owner_writes(self, uint32_t index) except -1
    cdef int settle(self, Flush flush, uint32_t version, bint added) except -1
    cdef object overruled(self, uint32_t version)
    cdef int settle_patches(self, uint32_t version, bint added) except -1
    cdef Tracked copy(self)
    cdef int keep(self, Tracked source) except -1


cdef class Tracker:
    cdef readonly list tables  # KindTables by number of kind, None where there was nothing yet
    cdef dict _public, _private
    cdef list _removed, _resting, _columns

    cdef Tracked register(self, Handle entity, object scope, object id, uint32_t number, object owner)
    cdef int enter(self, KindTable table, Tracked tracked) except -1
    cdef int leave(self, KindTable table, uint32_t row) except -1
    cdef KindTable table_of(self, Layout layout, uint32_t number, uint8_t sharing)
    cdef list listed(self, bint added)


cdef class Flush:
    cdef readonly uint32_t version
    cdef readonly list removed
    cdef readonly dict corrections
    cdef Tracker tracker
    cdef list _added, _changed


# Bits and numbers

cdef inline uint32_t bitmap_words(const Table* t) noexcept nogil:
    return (t.used + 63) >> 6


cdef inline bint has_bit(const uint64_t* bits, uint32_t n) noexcept nogil:
    return bits[n >> 6] >> (n & 63) & 1


cdef inline void set_bit(uint64_t* bits, uint32_t n) noexcept nogil:
    bits[n >> 6] |= <uint64_t>1 << (n & 63)


cdef inline void clear_bit(uint64_t* bits, uint32_t n) noexcept nogil:
    bits[n >> 6] &= ~(<uint64_t>1 << (n & 63))


cdef inline size_t varint_size(uint64_t value) noexcept nogil:
    return (70 - clz64(value | 1)) // 7  # bits/7, rounded up


cdef inline char* put_varint(char* out, uint64_t value) noexcept nogil:
    while value >= 0x80:
        out[0] = <char>(value & 0x7F | 0x80)
        out += 1
        value >>= 7
    out[0] = <char>value
    return out + 1


cdef inline size_t mask_size(const uint64_t* mask, uint32_t words) noexcept nogil:
    """The mask has at least one bit."""
    while words > 1 and not mask[words - 1]:
        words -= 1
    return (64 * words - clz64(mask[words - 1] | 1) + 6) // 7


cdef inline char* put_mask(char* out, const uint64_t* mask, uint32_t words) noexcept nogil:
    """Groups of seven bits, the lowest first: a varint of any length."""
    cdef size_t groups, n
    cdef uint32_t bit
    cdef uint64_t group
    if words == 1:
        return put_varint(out, mask[0])
    groups = mask_size(mask, words)
    for n in range(groups):
        bit = 7 * <uint32_t>n
        group = mask[bit >> 6] >> (bit & 63)
        if (bit & 63) > 57 and (bit >> 6) + 1 < words:
            group |= mask[(bit >> 6) + 1] << (64 - (bit & 63))
        out[n] = <char>(group & 0x7F | (0x80 if n + 1 < groups else 0))
    return out + groups


# Values

cdef inline double number_in(const char* column, uint8_t code, uint32_t row) noexcept nogil:
    """The value of a bool or number in a column of this type."""
    if code == CODE_F32:
        return (<const float*>column)[row]
    if code >= CODE_F64:
        return (<const double*>column)[row]
    if code == CODE_I32:
        return (<const int32_t*>column)[row]
    if code == CODE_U32:
        return (<const uint32_t*>column)[row]
    if code == CODE_I16:
        return (<const int16_t*>column)[row]
    if code == CODE_U16:
        return (<const uint16_t*>column)[row]
    if code == CODE_I8:
        return (<const int8_t*>column)[row]
    return (<const uint8_t*>column)[row]


cdef inline double number_at(const Table* t, uint32_t index, uint32_t row) noexcept nogil:
    """The value of a bool or number of a row."""
    return number_in(t.data[index], t.field[index].code, row)


cdef inline bint is_quantised(const Field* field) noexcept nogil:
    return field.code == CODE_Q8 or field.code == CODE_Q16


cdef inline double at_step(Field* field, double value) noexcept nogil:
    """The value of the step nearest to one between the bounds, as QuantisedType has it."""
    cdef double step = floor((value - field.lo) / (field.hi - field.lo) * field.steps + 0.5)
    return field.hi if step == field.steps else field.lo + (field.hi - field.lo) * (step / field.steps)


cdef inline void mark(Table* t, uint32_t row, uint32_t index) noexcept nogil:
    """Note that a field was written since the last flush."""
    t.dirty[<size_t>row * t.words + (index >> 6)] |= <uint64_t>1 << (index & 63)
    set_bit(t.dirty_rows, row)
    t.touched = 1


cdef inline void mark_whole(Table* t, uint32_t word, uint32_t index) noexcept nogil:
    """Note that a field was written in all 64 rows of a word since the last flush: for tables of one word."""
    if t.dirty_rows[word] and not t.whole[word]:
        mark_64(t.dirty + 64 * <size_t>word, <uint64_t>1 << index)
    else:
        t.whole[word] |= <uint64_t>1 << index
    t.dirty_rows[word] = ~<uint64_t>0
    t.touched = 1


cdef inline void spread(Table* t, uint32_t word) noexcept nogil:
    """Note by row what `whole` says of 64."""
    if t.whole[word]:
        mark_64(t.dirty + 64 * <size_t>word, t.whole[word])
        t.whole[word] = 0


cdef inline char* put_number(char* out, const Table* t, uint32_t index, uint32_t row) noexcept nogil:
    """Write a bool or number as it is sent."""
    cdef const Field* field = t.field + index
    cdef char* column = t.data[index]
    cdef double value
    cdef uint16_t step
    if field.code == CODE_F32 or field.code == CODE_U32 or field.code == CODE_I32:
        memcpy(out, column + 4 * <size_t>row, 4)
    elif is_quantised(field):
        value = (<double*>column)[row]
        step = <uint16_t>floor((value - field.lo) / (field.hi - field.lo) * field.steps + 0.5)
        memcpy(out, &step, 2)
    elif field.code == CODE_F64:
        memcpy(out, column + 8 * <size_t>row, 8)
    elif field.code == CODE_U16 or field.code == CODE_I16:
        memcpy(out, column + 2 * <size_t>row, 2)
    else:
        out[0] = column[row]
    return out + field.size


cdef inline const char* blob_at(
    const Table* t, uint32_t index, uint32_t row, Py_ssize_t* size
) except NULL:
    """The bytes of a str, bytes or Json value, which are the table's."""
    cdef PyObject* found = item_of(t.blobs[index], row)
    if t.field[index].code == CODE_STR:
        return PyUnicode_AsUTF8AndSize(found, size)
    size[0] = size_of_bytes(found)
    return bytes_of(found)


# Fields of a row, those in a mask, as they are sent. The mask may be t.all_mask or t.public_mask.

cdef inline Py_ssize_t fields_size(const Table* t, uint32_t row, const uint64_t* mask) except -1:
    cdef Py_ssize_t total = 0, size = 0
    cdef uint32_t word, index
    cdef uint64_t left
    for word in range(t.words):
        left = mask[word]
        while left:
            index = 64 * word + <uint32_t>ctz64(left)
            left &= left - 1
            if t.field[index].size:
                total += t.field[index].size
            else:
                blob_at(t, index, row, &size)
                total += <Py_ssize_t>varint_size(size) + size
    return total


cdef inline char* put_fields(char* out, const Table* t, uint32_t row, const uint64_t* mask) except NULL:
    cdef Py_ssize_t size = 0
    cdef const char* blob
    cdef uint32_t word, index
    cdef uint64_t left
    for word in range(t.words):
        left = mask[word]
        while left:
            index = 64 * word + <uint32_t>ctz64(left)
            left &= left - 1
            if t.field[index].size:
                out = put_number(out, t, index, row)
            else:
                blob = blob_at(t, index, row, &size)
                out = put_varint(out, size)
                memcpy(out, blob, size)
                out += size
    return out


# Entries of an update (docs/protocol): what stands in its sections.

cdef inline Py_ssize_t change_size(const Table* t, uint32_t row, const uint64_t* mask) except -1:
    """Of a CHANGE or CORRECT of the fields in the mask, of which there is at least one."""
    cdef Py_ssize_t size = fields_size(t, row, mask)
    return <Py_ssize_t>(varint_size(t.id[row]) + mask_size(mask, t.words)) + size


cdef inline char* put_change(char* out, const Table* t, uint32_t row, const uint64_t* mask) except NULL:
    out = put_mask(put_varint(out, t.id[row]), mask, t.words)
    return put_fields(out, t, row, mask)


cdef inline const uint64_t* told_fields(const Table* t, bint mine) noexcept nogil:
    """What an ENTER tells: all to the owner."""
    if mine:
        return t.all_mask
    return t.public_mask


cdef inline Py_ssize_t enter_size(const Table* t, uint32_t row, bint mine) except -1:
    """Of an ENTER. `mine`: to its owner, who is told all."""
    cdef Py_ssize_t size = fields_size(t, row, told_fields(t, mine))
    return <Py_ssize_t>(varint_size(t.id[row]) + varint_size(2 * t.number + mine)) + size


cdef inline char* put_enter(char* out, const Table* t, uint32_t row, bint mine) except NULL:
    out = put_varint(put_varint(out, t.id[row]), 2 * t.number + mine)
    return put_fields(out, t, row, told_fields(t, mine))


# Masks of a row

cdef inline bint told_mask(const Table* t, uint32_t row, uint64_t* out) noexcept nogil:
    """What the last flush told everyone of a row in `changed`. Whether there is anything."""
    cdef uint32_t word
    cdef uint64_t found = 0
    for word in range(t.words):
        out[word] = t.mask[<size_t>row * t.words + word] & t.public_mask[word]
        found |= out[word]
    return found != 0


cdef inline bint mask_since(const Table* t, uint32_t row, uint32_t version, uint64_t* out) noexcept nogil:
    """The fields that have changed since a version, those for owners only among them."""
    cdef uint32_t index
    cdef uint64_t found = 0, bit
    for index in range(t.words):
        out[index] = 0
    for index in range(t.fields):
        bit = t.stamps[index][row] > version
        out[index >> 6] |= bit << (index & 63)
        found |= bit
    return found != 0


# Fields of many rows at once, those in a mask of one word, where no size depends on a value.

cdef inline bint is_plain(const Table* t, uint64_t mask) noexcept nogil:
    """Whether that can be done: there are some, and neither they nor the mask, of 5 bytes at most, are large."""
    return t.words == 1 and mask != 0 and not mask & t.var_mask[0] and mask < <uint64_t>1 << 35


cdef inline uint64_t take_run(Run* run, const Table* t, uint32_t word, uint64_t rows) noexcept nogil:
    """Make a run of those of these rows of a word, from the lowest on, of which the last flush told the same.

    Returns the others. The table's masks are of one word.
    """
    if t.alike[word] and rows == ~<uint64_t>0:
        whole_run(run, 64 * word, t.id)
        return 0
    return part_run(run, 64 * word, rows, t.mask, t.id)


cdef inline uint32_t plain_size(const Table* t, uint64_t mask) noexcept nogil:
    cdef uint32_t total = 0
    while mask:
        total += t.field[ctz64(mask)].size
        mask &= mask - 1
    return total


cdef inline void put_columns(char* out, const Table* t, const Run* run, uint64_t mask) noexcept nogil:
    """Write the fields of the rows of a run, after its heads, which begin at `out`."""
    cdef Field* field
    cdef uint32_t index, other
    while mask:
        index = <uint32_t>ctz64(mask)
        mask &= mask - 1
        other = <uint32_t>ctz64(mask) if mask else index
        field = t.field + index
        if is_quantised(field):
            ph_put_steps(out, run, t.data[index], field.size, field.lo, field.hi, field.steps)
        elif field.size == 4 and other != index and t.field[other].size == 4:
            ph_put_4_4(out, run, t.data[index], t.data[other])
            mask &= mask - 1
            out += 4
        else:
            ph_put_column(out, run, t.data[index], field.size)
        out += field.size


# All that the last flush changed, for everyone, as CHANGE entries in the order of rows. `offset` and `size` are by
# row: where an entry is, the first one being at `base`, and how long, 0 where there is nothing to tell. Of rows in
# `special` too, though more has to be told of those.

cdef Py_ssize_t changes_bound(const Table* t) except -1
cdef char* put_changes(char* out, const Table* t, uint32_t base, uint32_t* offset, uint32_t* size) except NULL
