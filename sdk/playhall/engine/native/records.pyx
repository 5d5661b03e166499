"""Records, and what bases hold of entities, private and shared states. The twin of `records`.

The same msgpack, written straight from the tables. `msgspec.Raw` puts rows in their place in a base.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE, _PyBytes_Resize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_INCREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

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
    bytes_of,
    ctz64,
    fields_size,
    has_bit,
    is_plain,
    mask_size,
    plain_size,
    popcount64,
    put_columns,
    put_fields,
    put_heads,
    put_mask,
    put_varint,
    take_run,
)

cdef extern from "Python.h":
    void Py_SET_SIZE(PyObject* made, Py_ssize_t size) noexcept

cdef enum:
    HEADS = 32  # bytes of what stands before the data of an item, at most, but for names
    CHANGE_HEADS = 6  # the same of a change, before the head of its data
    LARGE = 4096  # bytes of changes that are written where they stay
    MOST_KEPT = 4194304  # bytes of items that stay for the next record
    FEW = 4  # changes that are written one by one rather than together


cdef class Items:
    """The items of a msgpack array, of which there may be any number.

    They are in memory of its own, or from `stay` on in that of the bytes that come of them.
    """

    cdef char* data
    cdef size_t front, size, space  # where the items begin and end, and the memory does
    cdef uint32_t count
    cdef PyObject* made  # the bytes, or NULL

    def __dealloc__(self):
        self.clear(0)

    cdef char* begin(self, size_t most) except NULL:
        """Return where the next item goes, which has at most so many bytes."""
        if self.space - self.size < most + PADDING:
            self.grow(2 * self.space + most + PADDING)
        self.count += 1
        return self.data + self.size

    cdef int grow(self, size_t space) except -1:
        cdef void* made
        if self.made != NULL:
            return self.resize_made(space)
        made = PyMem_Realloc(self.data, space)
        if made == NULL:
            raise MemoryError
        self.data, self.space = <char*>made, space
        return 0

    cdef int resize_made(self, size_t space) except -1:
        self.data, self.space = NULL, 0  # if that fails
        _PyBytes_Resize(&self.made, space)
        self.data, self.space = <char*>bytes_of(self.made), space
        return 0

    cdef void end(self, const char* end) noexcept:
        self.size = end - self.data

    cdef size_t array_size(self) noexcept:
        return self.size - self.front + array_head_size(self.count)

    cdef char* put_array(self, char* out) noexcept:
        cdef size_t size = self.size - self.front
        out = put_head(out, 0x90, 0xDC, self.count, 15)
        if size and out != self.data + self.front:  # which they stay at, or where nothing may be copied from
            memcpy(out, self.data + self.front, size)
        return out + size

    cdef object finish(self):
        """Return the array, or an empty list."""
        if not self.count:
            return []
        made = PyBytes_FromStringAndSize(NULL, self.array_size())
        self.put_array(PyBytes_AS_STRING(made))
        return Raw(made)

    cdef int stay(self, size_t front, size_t most) except -1:
        """Write the items, of which there are none yet, into bytes, after `front` bytes of something else.

        They will have about `most` bytes.
        """
        self.clear(0)
        made = PyBytes_FromStringAndSize(NULL, front + most + PADDING)
        Py_INCREF(made)
        self.made, self.data = <PyObject*>made, PyBytes_AS_STRING(made)
        self.front, self.size, self.space = front, front, front + most + PADDING
        return 0

    cdef bytes stayed(self, size_t front, size_t size):
        """Return the bytes, of `size`: where the items are, after `front` bytes, is filled in, and no more."""
        if front != self.front:
            memmove(self.data + front, self.data + self.front, self.size - self.front)
            self.front, self.size = front, front + self.size - self.front
        if size < self.space <= size + size // 4:
            # Little is left over, and stays. A block that was made shorter teaches malloc, when it is freed, that
            # so much may stay with it: less than the next record asks for, whose pages are all new again then.
            self.data[size] = 0
            Py_SET_SIZE(self.made, size)
        else:
            self.resize_made(size)
        return <bytes>self.made

    cdef int clear(self, size_t most_kept=MOST_KEPT) except -1:
        """Begin again. Memory is kept for that, unless it is much."""
        if self.made != NULL or self.space > most_kept:
            if self.made == NULL:
                PyMem_Free(self.data)
            Py_CLEAR(self.made)
            self.data, self.space = NULL, 0
        self.front = self.size = self.count = 0
        return 0


# msgpack, in the shortest form, as msgspec writes it

cdef inline char* put_big(char* out, uint64_t value, int size) noexcept nogil:
    cdef int n
    for n in range(size):
        out[n] = <char>(value >> 8 * (size - 1 - n))
    return out + size


cdef inline size_t array_head_size(uint32_t count) noexcept nogil:
    return 1 if count <= 15 else 3 if count < 0x10000 else 5


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
    cdef char head[32]  # what stands before all of it
    cdef size_t head_size

    def __cinit__(self):
        self.removed, self.rows, self.privates = Items(), Items(), Items()
        self.changes, self.patches, self.owners = Items(), Items(), Items()

    cdef bint any(self) noexcept:
        return (
            self.removed.count + self.rows.count + self.privates.count
            + self.changes.count + self.patches.count + self.owners.count
        ) != 0

    cdef int put_head(self, uint64_t tick, uint64_t next_id) except -1:
        self.head_size = put_number(put_number(put_head(self.head, 0x90, 0xDC, 11, 15), tick), next_id) - self.head
        return 0

    cdef size_t front(self, uint32_t changes) noexcept:
        """How many bytes stand before the changes, of which there are so many."""
        cdef size_t size = self.removed.array_size() + self.rows.array_size() + self.privates.array_size()
        return self.head_size + size + array_head_size(changes)

    cdef bytes record(self, bytes rest):
        cdef Items items
        cdef bytes made
        cdef char* at
        cdef size_t size = self.head_size + PyBytes_GET_SIZE(rest)
        cdef tuple arrays = (self.removed, self.rows, self.privates, self.changes, self.patches, self.owners)
        for items in arrays:
            size += items.array_size()
        if self.changes.made != NULL:
            made = self.changes.stayed(self.front(self.changes.count), size)
        else:
            made = PyBytes_FromStringAndSize(NULL, size)
        at = PyBytes_AS_STRING(made)
        memcpy(at, self.head, self.head_size)
        at += self.head_size
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
        parts.put_head(tick, next_id)
        put_removed(parts, flush)
        put_all_added(parts, flush)
        put_all_changed(parts, flush, PyBytes_GET_SIZE(rest))
        return parts.record(rest) if always or parts.any() else None
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


cdef inline bint is_told(KindTable table) noexcept:
    """Whether the flush found something in a table that is saved."""
    return table is not None and table.t.flushed and table.t.sharing != PRESENCE


cdef int put_all_added(Parts parts, Flush flush) except -1:
    cdef KindTable table
    cdef uint32_t word
    cdef uint64_t rows
    for table in flush.tracker.tables:
        if not is_told(table):
            continue
        for word in range(bitmap_words(&table.t)):
            rows = table.t.added[word]
            while rows:
                put_saved(parts.rows, parts.privates, table.by_row[64 * word + <uint32_t>ctz64(rows)])
                rows &= rows - 1
    return 0


cdef int put_all_changed(Parts parts, Flush flush, size_t rest) except -1:
    """`rest`: bytes of what comes after all that."""
    cdef KindTable table
    cdef uint32_t word, count, all_count = 0
    cdef size_t most = 0
    for table in flush.tracker.tables:
        if is_told(table):
            count = 0
            for word in range(bitmap_words(&table.t)):
                count += popcount64(table.t.changed[word])
            most += count * change_bound(&table.t)
            all_count += count
    if most >= LARGE:
        parts.changes.stay(parts.front(all_count), most + rest + HEADS)
    for table in flush.tracker.tables:
        if is_told(table):
            for word in range(bitmap_words(&table.t)):
                if table.t.changed[word]:
                    put_changes(parts, table, word, flush.version)
    return 0


cdef size_t change_bound(const Table* t) noexcept:
    """At most how many bytes a change of the last flush has, but for what depends on values and names."""
    cdef size_t size = mask_size(t.any_mask, t.words)
    cdef uint32_t index
    for index in range(t.fields):
        if has_bit(t.any_mask, index):
            size += t.field[index].size
    return CHANGE_HEADS + (2 if size < 0x100 else 3 if size < 0x10000 else 5) + size


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
    cdef uint32_t tail_size = <uint32_t>(end - <char*>&tail)
    cdef char* out = changes.begin(run.count * (CHANGE_HEADS + <size_t>tail_size + fields))
    changes.count += run.count - 1
    changes.end(put_heads(out, run, True, tail, tail_size, fields))
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
