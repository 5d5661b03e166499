"""What records and bases hold of entities, private and shared states. The twin of `records`.

The same msgpack, written straight from the tables; `msgspec.Raw` puts it in its place among the rest.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from msgspec import Raw

from playhall.engine.native.tables cimport (
    MAX_WORDS,
    PADDING,
    PRESENCE,
    PRIVATE,
    Flush,
    KindTable,
    Table,
    Tracked,
    bitmap_words,
    ctz64,
    fields_size,
    has_bit,
    mask_size,
    put_fields,
    put_mask,
)

cdef enum:
    HEADS = 32  # bytes of what stands before the data of an item, at most, but for names


cdef class Items:
    """The items of a msgpack array, of which there may be any number."""

    cdef char* data
    cdef size_t size, space
    cdef uint32_t count

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef char* begin(self, size_t most) except NULL:
        """Return where the next item goes, which has at most so many bytes."""
        cdef void* made
        if self.space - self.size < most + PADDING:
            self.space = 2 * self.space + most + PADDING
            made = PyMem_Realloc(self.data, self.space)
            if made == NULL:
                raise MemoryError
            self.data = <char*>made
        self.count += 1
        return self.data + self.size

    cdef void end(self, const char* end) noexcept:
        self.size = end - self.data

    cdef object finish(self):
        """Return the array, or an empty list."""
        cdef char head[8]
        cdef Py_ssize_t size = put_head(head, 0x90, 0xDC, self.count, 15) - head
        if not self.count:
            return []
        made = PyBytes_FromStringAndSize(NULL, size + <Py_ssize_t>self.size)
        memcpy(PyBytes_AS_STRING(made), head, size)
        memcpy(PyBytes_AS_STRING(made) + size, self.data, self.size)
        return Raw(made)


# msgpack, in the shortest form, as msgspec writes it

cdef inline char* put_big(char* out, uint64_t value, int size) noexcept nogil:
    cdef int n
    for n in range(size):
        out[n] = <char>(value >> 8 * (size - 1 - n))
    return out + size


cdef inline char* put_head(char* out, uint8_t short, uint8_t longer, uint64_t size, uint32_t most) noexcept nogil:
    """Write the head of an array or text: in one byte up to `most`, else as `longer`, of 16 or 32 bits."""
    if size <= most:
        out[0] = <char>(short | size)
        return out + 1
    out[0] = <char>(longer if size < 0x10000 else longer + 1)
    return put_big(out + 1, size, 2 if size < 0x10000 else 4)


cdef inline char* put_number(char* out, uint64_t value) noexcept nogil:
    if value < 0x80:
        out[0] = <char>value
        return out + 1
    out[0] = <char>(0xCC if value < 0x100 else 0xCD if value < 0x10000 else 0xCE)
    return put_big(out + 1, value, 1 if value < 0x100 else 2 if value < 0x10000 else 4)


cdef inline char* put_bin(char* out, size_t size) noexcept nogil:
    out[0] = <char>(0xC4 if size < 0x100 else 0xC5 if size < 0x10000 else 0xC6)
    return put_big(out + 1, size, 1 if size < 0x100 else 2 if size < 0x10000 else 4)


cdef char* put_text(char* out, bytes text) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
    if 31 < size < 0x100:
        out[0] = <char>0xD9
        out[1] = <char>size
        out += 2
    else:
        out = put_head(out, 0xA0, 0xDA, size, 31)
    memcpy(out, PyBytes_AS_STRING(text), size)
    return out + size


cdef char* put_owner(char* out, bytes owner) noexcept:
    """None is the room."""
    if owner is None:
        out[0] = <char>0xC0
        return out + 1
    return put_text(out, owner)


cdef bytes text_of(owner):
    return None if owner is None else (<str>owner).encode()


# Rows

def rows_of(tracked):
    """Return all that is saved of these: entities and shared state, and private states."""
    cdef Items rows = Items(), privates = Items()
    cdef Tracked one
    for one in tracked:
        if one.t == NULL:
            raise ValueError(f"{one.entity!r} was removed")
        if one.t.sharing == PRIVATE:
            put_private(privates, one)
        elif one.t.sharing != PRESENCE:
            put_row(rows, one)
    return rows.finish(), privates.finish()


cdef int put_row(Items rows, Tracked one) except -1:
    cdef Table* t = one.t
    cdef bytes owner = text_of(one.owner)
    cdef Py_ssize_t size = fields_size(t, one.row, t.all_mask)
    cdef char* out = rows.begin(HEADS + size + (0 if owner is None else len(owner)))
    out = put_number(put_number(put_head(out, 0x90, 0xDC, 4, 15), t.id[one.row]), t.number)
    out = put_bin(put_owner(out, owner), size)
    rows.end(put_fields(out, t, one.row, t.all_mask))
    return 0


cdef int put_private(Items privates, Tracked one) except -1:
    cdef Table* t = one.t
    cdef bytes player = text_of(one.owner or "")
    cdef Py_ssize_t size = fields_size(t, one.row, t.all_mask)
    cdef char* out = privates.begin(HEADS + size + len(player))
    out = put_bin(put_text(put_head(out, 0x90, 0xDC, 2, 15), player), size)
    privates.end(put_fields(out, t, one.row, t.all_mask))
    return 0


# Changes

def changes_of(Flush flush not None):
    """Return what a flush has changed of what is saved."""
    cdef Items changes = Items(), patches = Items(), owners = Items()
    cdef KindTable table
    cdef Table* t
    cdef uint32_t word, row
    cdef uint64_t rows
    for table in flush.tracker.tables:
        if table is None or not table.t.flushed or table.t.sharing == PRESENCE:
            continue
        t = &table.t
        for word in range(bitmap_words(t)):
            rows = t.changed[word]
            while rows:
                row = 64 * word + <uint32_t>ctz64(rows)
                rows &= rows - 1
                if has_bit(t.special, row):
                    put_special(changes, patches, owners, table.by_row[row], flush.version)
                else:
                    put_change(changes, table, row, t.mask + <size_t>row * t.words)
    return changes.finish(), patches.finish(), owners.finish()


cdef int put_change(Items changes, KindTable table, uint32_t row, const uint64_t* mask) except -1:
    """Write fields of a row, if there are any in the mask."""
    cdef Table* t = &table.t
    cdef bytes player = None
    cdef uint32_t word
    cdef uint64_t any = 0
    cdef Py_ssize_t size
    cdef char* out
    for word in range(t.words):
        any |= mask[word]
    if not any:
        return 0
    if t.sharing == PRIVATE:
        player = text_of((<Tracked>table.by_row[row]).owner or "")
    size = <Py_ssize_t>mask_size(mask, t.words) + fields_size(t, row, mask)
    out = put_head(changes.begin(HEADS + size + (0 if player is None else len(player))), 0x90, 0xDC, 2, 15)
    out = put_number(out, t.id[row]) if player is None else put_text(out, player)
    changes.end(put_fields(put_mask(put_bin(out, size), mask, t.words), t, row, mask))
    return 0


cdef int put_special(Items changes, Items patches, Items owners, Tracked one, uint32_t version) except -1:
    """Write what has changed of a row with patches or a new owner."""
    cdef uint64_t mask[MAX_WORDS]
    cdef uint64_t* told = one.t.mask + <size_t>one.row * one.t.words
    cdef char* out
    cdef bytes player
    memcpy(mask, told, 8 * one.t.words)
    fields = one.changed_since(version - 1)
    for index, ranges in one.patches_since(version - 1, fields).items():
        mask[<uint32_t>index >> 6] &= ~(<uint64_t>1 << (<uint32_t>index & 63))
        for start, stop in ranges:
            put_patch(patches, one, index, start, one.values[index][start:stop])
    put_change(changes, one.table, one.row, mask)
    if one.t.owner_changed[one.row] == version and one.t.sharing != PRIVATE:
        player = text_of(one.owner)
        out = owners.begin(HEADS + (0 if player is None else len(player)))
        out = put_number(put_head(out, 0x90, 0xDC, 2, 15), one.t.id[one.row])
        owners.end(put_owner(out, player))
    return 0


cdef int put_patch(Items patches, Tracked one, uint32_t index, uint32_t start, bytes data) except -1:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef bytes player = text_of(one.owner or "") if one.t.sharing == PRIVATE else b""
    cdef char* out = put_head(patches.begin(HEADS + size + len(player)), 0x90, 0xDC, 4, 15)
    out = put_text(out, player) if one.t.sharing == PRIVATE else put_number(out, one.t.id[one.row])
    out = put_bin(put_number(put_number(out, index), start), size)
    memcpy(out, PyBytes_AS_STRING(data), size)
    patches.end(out + size)
    return 0
