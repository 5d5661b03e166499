# cython: language_level=3
"""What a flush changed: each change and each enter, encoded once and then copied by `sync`."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from playhall.engine.native.tables cimport (
    PADDING,
    SHARED,
    KindTable,
    Table,
    Tracked,
    PyUnicode_AsUTF8AndSize,
    Tracker,
    bitmap_words,
    bytes_of,
    changes_bound,
    ctz64,
    enter_size,
    has_bit,
    is_plain,
    popcount64,
    put_changes,
    put_enter,
    put_varint,
    set_bit,
)
from playhall.engine.native.views cimport is_public

cdef extern from *:
    """
    /* What nobody else has can be changed; its hash may be known already. */
    static void ph_cut_bytes(PyObject *data, Py_ssize_t size)
    {
        Py_SET_SIZE((PyVarObject *)data, size);
        PyBytes_AS_STRING(data)[size] = 0;
        _Py_COMP_DIAG_PUSH
        _Py_COMP_DIAG_IGNORE_DEPR_DECLS
        ((PyBytesObject *)data)->ob_shash = -1;
        _Py_COMP_DIAG_POP
    }
    """
    void cut_bytes "ph_cut_bytes"(PyObject* data, Py_ssize_t size)

cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size) except NULL
    Py_ssize_t Py_REFCNT(PyObject* thing)
    void Py_XDECREF(PyObject* thing)
    void Py_CLEAR(PyObject* thing)

from playhall.engine.entries import Entries
from playhall.engine.sync import Changes, Moment
from playhall.engine.updates import Section

cdef object _PATCH = Section.PATCH
cdef object _CHANGE = Section.CHANGE

assert list(Section)[:5] == [LEAVE, ENTER, CHANGE, PATCH, OWNER]

cdef enum:
    MOST_SECTION = 16  # bytes of what stands before the entries of a section
    MOST_KEPT = 4194304  # bytes of a buffer that stay for the next flush
    LEAST_LENT = 16384  # bytes of a buffer that are not copied when they are taken


cdef class Buffer:
    """Bytes that grow, with PADDING behind them. They are those of a bytes object."""

    def __dealloc__(self):
        Py_XDECREF(self.store)

    cdef char* reserve(self, size_t size) except NULL:
        """Have space for so many bytes more, and return where they go. `used` stays as it is."""
        cdef size_t wanted = self.used + size + PADDING
        if wanted > self.cap:
            self.grow(wanted)
        return self.data + self.used

    cdef int grow(self, size_t wanted) except -1:
        cdef PyObject* grown
        if self.cap == 0 and self.store is not NULL and Py_REFCNT(self.store) == 1:
            self.cap = self.whole  # nobody has what was taken any more
        if wanted > self.cap:
            wanted = max(wanted, 2 * self.cap, self.whole, 4096)
            grown = new_bytes(NULL, wanted)
            if self.used:
                memcpy(<char*>bytes_of(grown), self.data, self.used)
            Py_XDECREF(self.store)
            self.store, self.data, self.cap, self.whole = grown, <char*>bytes_of(grown), wanted, wanted
        return 0

    cdef int add(self, const char* data, size_t size) except -1:
        memcpy(self.reserve(size), data, size)
        self.used += size
        return 0

    cdef bytes take(self):
        """Return all of it, and start anew. Where it is much it is not copied, and its memory is used again
        when nobody has it any more; what one large update needed is not kept.
        """
        cdef size_t used = self.used
        cdef object taken
        self.used = 0
        if used < LEAST_LENT:
            return PyBytes_FromStringAndSize(self.data, used)
        cut_bytes(self.store, used)
        taken = <object>self.store
        self.cap = 0
        if self.whole > MOST_KEPT:
            Py_CLEAR(self.store)
            self.whole = 0
        return taken


cdef class Now:
    """Of what flush updates are. `moment` is the same for `sync`, made when it is needed."""

    def __cinit__(self, tracker, version, tick, mono):
        self.tracker, self.version, self.tick, self.mono = tracker, version, tick, mono

    cdef object moment(self):
        if self.made is None:
            self.made = Moment(
                self.version, self.tick, self.mono, Entries(), Changes(self.tracker)
            )
        return self.made


cdef class Encoded:
    """What a flush changed, encoded as it is first needed."""

    def __cinit__(self, Tracker tracker):
        self.tracker = tracker
        self.changes, self.enters = Buffer(), Buffer()
        self.extras = []

    def __dealloc__(self):
        cdef uint32_t number
        for number in range(self.kinds):
            free_pieces(&self.of_kind[number])
        PyMem_Free(self.of_kind)

    cdef int begin(self, object flush, Now now) except -1:
        """`flush`: None where nothing has changed but what is seen."""
        cdef KindTable table
        cdef uint32_t number
        self.now = now
        self.generation += 1
        self.enters.used = self.changes.used = 0
        self.changes.reserve(MOST_SECTION)
        self.changes.used = MOST_SECTION  # for `put_section`, if it comes to that
        self.told_count, self.is_plain = 0, flush is not None and not flush.removed
        self.reserve_kinds(len(self.tracker.tables))
        for number in range(self.kinds):
            table = self.tracker.tables[number]
            self.of_kind[number].any = False
            self.of_kind[number].t = NULL
            self.extras[number] = None
            if table is not None and is_public(&table.t):
                reserve_pieces(&self.of_kind[number], &table.t)
                self.of_kind[number].t, self.of_kind[number].words = &table.t, bitmap_words(&table.t)
                if flush is not None and table.t.flushed:
                    self.encode(table, &self.of_kind[number])
        return 0

    cdef int end(self) except -1:
        """What was encoded is not kept where that is much."""
        self.now = None
        if self.changes.cap > MOST_KEPT or self.enters.cap > MOST_KEPT:
            self.changes, self.enters = Buffer(), Buffer()
        return 0

    cdef int reserve_kinds(self, uint32_t kinds) except -1:
        cdef void* grown
        if kinds > self.kinds:
            grown = PyMem_Realloc(self.of_kind, kinds * sizeof(Pieces))
            if grown is NULL:
                raise MemoryError
            self.of_kind = <Pieces*>grown
            memset(self.of_kind + self.kinds, 0, (kinds - self.kinds) * sizeof(Pieces))
            self.extras += [None] * (kinds - self.kinds)
            self.kinds = kinds
        return 0

    cdef int encode(self, KindTable table, Pieces* pieces) except -1:
        cdef Table* t = &table.t
        cdef char* start = self.changes.reserve(changes_bound(t))
        cdef char* end = put_changes(start, t, <uint32_t>self.changes.used, pieces.at, pieces.size)
        cdef uint32_t word, row
        cdef uint64_t left, told
        self.changes.used += end - start
        pieces.most = 0
        for word in range(bitmap_words(t)):
            left, told = t.changed[word] & ~t.special[word], 0
            self.is_plain = self.is_plain and not (t.added[word] | t.special[word])
            if left == ~<uint64_t>0 and is_plain(t, t.alike[word] & t.public_mask[0]):
                told, left = left, 0
                pieces.most = max(pieces.most, pieces.size[64 * word] + 4)  # the id may be longer
            while left:
                row = 64 * word + ctz64(left)
                left &= left - 1
                if pieces.size[row]:
                    told |= <uint64_t>1 << (row & 63)
                    pieces.most = max(pieces.most, pieces.size[row])
            pieces.told[word] = told
            pieces.any = pieces.any or told != 0
            self.told_count += popcount64(told)
        for word in range(bitmap_words(t)):
            left = t.changed[word] & t.special[word]
            while left:
                row = 64 * word + ctz64(left)
                left &= left - 1
                self.encode_special(table, pieces, row)
        return 0

    cdef const char* all_changes(self, size_t* size) noexcept:
        """Return the body of an update of all that was encoded, where it `is_plain`."""
        cdef char section[MOST_SECTION]
        cdef size_t before = put_section(section, CHANGE, self.told_count) - section
        cdef char* body = self.changes.data + MOST_SECTION - before
        memcpy(body, section, before)
        size[0] = self.changes.used - MOST_SECTION + before if self.told_count else 0
        return body

    cdef int encode_special(self, KindTable table, Pieces* pieces, uint32_t row) except -1:
        """Of a row of which more is to be told than a CHANGE."""
        cdef bytes changes = b"", patches = b"", owner = b""
        cdef uint32_t count = 0
        entries = self.now.moment().entries.change(table.by_row[row], self.now.version - 1, mine=False)
        for section, entry in entries:
            if section is _CHANGE:
                changes += entry
            elif section is _PATCH:
                patches += entry
                count += 1
            else:
                owner += entry
        if not entries:
            return 0
        pieces.at[row], pieces.size[row] = <uint32_t>self.changes.used, <uint32_t>len(changes)
        self.changes.add(PyBytes_AS_STRING(changes), len(changes))
        pieces.most = max(pieces.most, pieces.size[row])
        set_bit(pieces.told, row)
        pieces.any = True
        if self.extras[table.t.number] is None:
            self.extras[table.t.number] = {}
        self.extras[table.t.number][row] = (patches, count, owner)
        return 0

    cdef int enter(self, uint32_t number, uint32_t row) except -1:
        """Encode that an entity is there, as everyone is told it, unless that was done for this flush."""
        cdef KindTable table = self.tracker.tables[number]
        cdef Table* t = &table.t
        cdef Entered* entered = self.of_kind[number].enter + row
        cdef char* end
        cdef const char* owner
        cdef Py_ssize_t size = 0
        cdef object player
        if entered.generation == self.generation:
            return 0
        end = put_enter(self.enters.reserve(enter_size(t, row, False)), t, row, False)
        entered.at = <uint32_t>self.enters.used
        entered.size = <uint32_t>(end - self.enters.data - self.enters.used)
        self.enters.used = end - self.enters.data
        entered.owner_size = 0
        if t.sharing == SHARED and has_bit(t.owned, row):
            player = (<Tracked>table.by_row[row]).owner
            owner = PyUnicode_AsUTF8AndSize(<PyObject*>player, &size)
            end = self.enters.reserve(10 + size)
            end = put_varint(put_varint(end, t.id[row]), size)
            memcpy(end, owner, size)
            entered.owner_size = <uint32_t>(end + size - self.enters.data - self.enters.used)
            self.enters.used += entered.owner_size
        entered.generation = self.generation
        return 0


cdef void free_pieces(Pieces* pieces) noexcept:
    PyMem_Free(pieces.enter)
    PyMem_Free(pieces.at)
    PyMem_Free(pieces.size)
    PyMem_Free(pieces.told)


cdef int reserve_pieces(Pieces* pieces, const Table* t) except -1:
    cdef uint32_t cap
    if t.used <= pieces.cap:
        return 0
    cap = t.cap + 63 & ~<uint32_t>63
    free_pieces(pieces)
    memset(pieces, 0, sizeof(Pieces))
    pieces.enter = <Entered*>PyMem_Malloc(cap * sizeof(Entered))
    pieces.at = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.size = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.told = <uint64_t*>PyMem_Malloc(cap // 64 * sizeof(uint64_t))
    if (
        pieces.enter is NULL
        or pieces.at is NULL
        or pieces.size is NULL
        or pieces.told is NULL
    ):
        raise MemoryError
    memset(pieces.enter, 0, cap * sizeof(Entered))
    memset(pieces.told, 0, cap // 64 * sizeof(uint64_t))
    pieces.cap = cap
    return 0
