"""Records, and what bases hold of entities, private and shared states. The twin of `records`.

The same msgpack, written straight from the tables. `msgspec.Raw` puts rows in their place in a base.
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
    Run,
    Table,
    Tracked,
    bitmap_words,
    ctz64,
    fields_size,
    has_bit,
    is_plain,
    mask_size,
    plain_size,
    put_columns,
    put_fields,
    put_heads,
    put_mask,
    put_varint,
    take_run,
)

cdef enum:
    HEADS = 32  # bytes of what stands before the data of an item, at most, but for names
    MOST_KEPT = 4194304  # bytes of items that stay for the next record
    FEW = 4  # changes that are written one by one rather than together


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

    cdef size_t array_size(self) noexcept:
        return self.size + (1 if self.count <= 15 else 3 if self.count < 0x10000 else 5)

    cdef char* put_array(self, char* out) noexcept:
        out = put_head(out, 0x90, 0xDC, self.count, 15)
        if self.size:  # there is no data else, and nothing may be copied from nowhere
            memcpy(out, self.data, self.size)
        return out + self.size

    cdef object finish(self):
        """Return the array, or an empty list."""
        if not self.count:
            return []
        made = PyBytes_FromStringAndSize(NULL, self.array_size())
        self.put_array(PyBytes_AS_STRING(made))
        return Raw(made)

    cdef int clear(self) except -1:
        """Begin again. Memory is kept for that, unless it is much."""
        self.size = self.count = 0
        if self.space > MOST_KEPT:
            PyMem_Free(self.data)
            self.data, self.space = NULL, 0
        return 0


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
    if value >> 32:
        out[0] = <char>0xCF
        return put_big(out + 1, value, 8)
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
        put_saved(rows, privates, one)
    return rows.finish(), privates.finish()


cdef int put_saved(Items rows, Items privates, Tracked one) except -1:
    if one.t == NULL:
        raise ValueError(f"{one.entity!r} was removed")
    if one.t.sharing == PRIVATE:
        put_private(privates, one)
    elif one.t.sharing != PRESENCE:
        put_row(rows, one)
    return 0


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


# Records

cdef class Parts:
    """What a record says of entities and states, in the order in which it does."""

    cdef Items removed, rows, privates, changes, patches, owners

    def __cinit__(self):
        self.removed, self.rows, self.privates = Items(), Items(), Items()
        self.changes, self.patches, self.owners = Items(), Items(), Items()

    cdef bint any(self) noexcept:
        return (
            self.removed.count + self.rows.count + self.privates.count
            + self.changes.count + self.patches.count + self.owners.count
        ) != 0

    cdef bytes record(self, uint64_t tick, uint64_t next_id, bytes rest):
        cdef Items items
        cdef char head[32]
        cdef char* at = put_number(put_number(put_head(head, 0x90, 0xDC, 11, 15), tick), next_id)
        cdef size_t head_size = at - head, size = head_size + PyBytes_GET_SIZE(rest)
        cdef tuple arrays = (self.removed, self.rows, self.privates, self.changes, self.patches, self.owners)
        for items in arrays:
            size += items.array_size()
        cdef bytes made = PyBytes_FromStringAndSize(NULL, size)
        at = PyBytes_AS_STRING(made)
        memcpy(at, head, head_size)
        at += head_size
        for items in arrays:
            at = items.put_array(at)
        memcpy(at, PyBytes_AS_STRING(rest), PyBytes_GET_SIZE(rest))
        return made

    cdef int clear(self) except -1:
        cdef Items items
        for items in (self.removed, self.rows, self.privates, self.changes, self.patches, self.owners):
            items.clear()
        return 0


cdef Parts spare = Parts()


def record_of(Flush flush not None, uint64_t tick, uint64_t next_id, bytes rest not None, *, bint always):
    """Return the record of a flush, or None where it changed nothing that is saved, unless `always`."""
    global spare
    cdef Parts parts = spare if spare is not None else Parts()
    spare = None
    try:
        put_removed(parts, flush)
        put_tables(parts, flush)
        return parts.record(tick, next_id, rest) if always or parts.any() else None
    finally:
        parts.clear()
        spare = parts


cdef int put_removed(Parts parts, Flush flush) except -1:
    cdef Tracked one
    cdef bytes player
    for one in flush.removed:
        if one.table.t.sharing == PRIVATE:
            player = text_of(one.owner or "")
            parts.removed.end(put_text(parts.removed.begin(HEADS + len(player)), player))
        elif one.table.t.sharing != PRESENCE:
            parts.removed.end(put_number(parts.removed.begin(HEADS), <uint64_t>one.id))
    return 0


cdef int put_tables(Parts parts, Flush flush) except -1:
    """Write what was added and changed."""
    cdef KindTable table
    cdef uint32_t word
    cdef uint64_t rows
    for table in flush.tracker.tables:
        if table is None or not table.t.flushed or table.t.sharing == PRESENCE:
            continue
        for word in range(bitmap_words(&table.t)):
            rows = table.t.added[word]
            while rows:
                put_saved(parts.rows, parts.privates, table.by_row[64 * word + <uint32_t>ctz64(rows)])
                rows &= rows - 1
            if table.t.changed[word]:
                put_changes(parts, table, word, flush.version)
    return 0


cdef int put_changes(Parts parts, KindTable table, uint32_t word, uint32_t version) except -1:
    cdef Table* t = &table.t
    cdef uint32_t row
    cdef uint64_t rows = t.changed[word], left
    cdef Run run
    while rows and t.words == 1 and t.sharing != PRIVATE and not rows & t.special[word]:
        left = take_run(&run, t, word, rows)
        if run.count <= FEW or not is_plain(t, t.mask[run.row[0]]):
            break
        put_run(parts.changes, t, &run)
        rows = left
    while rows:
        row = 64 * word + <uint32_t>ctz64(rows)
        rows &= rows - 1
        if has_bit(t.special, row):
            put_special(parts.changes, parts.patches, parts.owners, table.by_row[row], version)
        else:
            put_change(parts.changes, table, row, t.mask + <size_t>row * t.words)
    return 0


cdef int put_run(Items changes, Table* t, Run* run) except -1:
    """Write rows in which the same has changed."""
    cdef uint64_t mask = t.mask[run.row[0]], tail = 0
    cdef uint32_t fields = plain_size(t, mask)
    cdef char* end = put_varint(put_bin(<char*>&tail, mask_size(&mask, 1) + fields), mask)
    cdef char* out = changes.begin(run.count * (HEADS + <size_t>fields))
    changes.count += run.count - 1
    changes.end(put_heads(out, run, True, tail, <uint32_t>(end - <char*>&tail), fields))
    put_columns(out, t, run, mask)
    return 0


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
