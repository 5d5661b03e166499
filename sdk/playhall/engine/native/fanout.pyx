# cython: language_level=3
"""Fan-out: twins of `links`, `views` and `sync` (see there for what they mean).

What a client holds and what it sees are bitmaps by row, for each kind. So what is new to it, what has gone and
what has changed are a few operations on words, and come in the order of rows, which is that of updates. What
is removed loses its bit at the flush that tells of it, and the ids of what a client held of that are kept until
it was told. A view that sees all there is and misses nothing is `full` and needs no bitmap.

Done here, into one growing buffer: updates of links that follow, and of links that are up to date with a
sight, where they fit one part. Each change and each enter is encoded once a flush and then copied. All else
(first updates, parts, budgets, what waits, what only owners are told) is `sync`'s, on steps made of the
bitmaps.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memmove, memset

from playhall.engine.native.tables cimport (
    HIDDEN,
    PADDING,
    PRIVATE,
    SHARED,
    Flush,
    KindTable,
    Table,
    Tracked,
    Tracker,
    bitmap_words,
    changes_bound,
    clear_bit,
    ctz64,
    enter_size,
    has_bit,
    is_plain,
    popcount64,
    put_changes,
    put_enter,
    put_varint,
    set_bit,
    varint_size,
)

from playhall.engine import sync as pure
from playhall.engine.catchup import Step
from playhall.engine.entries import Entries
from playhall.engine.links import MAX_INBOX_BYTES, MAX_WAITING_BYTES, LinkState
from playhall.engine.outputs import FramesOut
from playhall.engine.payloads import MIN_COMPRESSED, compress
from playhall.engine.schema import PRIVATE_ID, SHARED_ID
from playhall.engine.tracking import Scope
from playhall.engine.updates import DEFLATED, LAST_PART, MAX_BODY, UPDATE, Section, encode_owner
from playhall.engine.views import Lack, place_of, ration

__all__ = ["Link", "Outbox", "Sight", "Sync", "View"]

cdef Py_ssize_t _MAX_WAITING_BYTES = MAX_WAITING_BYTES
cdef object _JOINED = LinkState.JOINED
cdef object _SCOPE_SHARED = Scope.SHARED
cdef object _SCOPE_HIDDEN = Scope.HIDDEN
cdef object _SCOPE_PRIVATE = Scope.PRIVATE
cdef object _SCOPE_PRESENCE = Scope.PRESENCE
cdef object _PATCH = Section.PATCH
cdef object _CHANGE = Section.CHANGE

cdef enum:
    HEAD_UPDATE = 4
    HEAD_LAST = 1
    HEAD_DEFLATED = 2
    LEAVE = 1
    ENTER = 2
    CHANGE = 3
    PATCH = 4
    OWNER = 5
    MOST_BODY = 61425
    MIN_PACKED = 1024
    MOST_SECTION = 16  # bytes of what stands before the entries of a section
    MOST_KEPT = 4194304  # bytes of a buffer that stay for the next flush
    GROUP_START = 9  # size, flags, count
    EACH_HEAD = 2
    UNRELIABLE = 1

assert (UPDATE, LAST_PART, DEFLATED) == (HEAD_UPDATE, HEAD_LAST, HEAD_DEFLATED)
assert (MAX_BODY, MIN_COMPRESSED) == (MOST_BODY, MIN_PACKED)


cdef class RowSet:
    def __dealloc__(self):
        cdef uint32_t number
        for number in range(self.kinds):
            PyMem_Free(self.bits[number])
        PyMem_Free(self.bits)
        PyMem_Free(self.words)

    cdef int reserve_kinds(self, uint32_t kinds) except -1:
        cdef uint32_t number
        cdef void* grown
        if kinds <= self.kinds:
            return 0
        grown = PyMem_Realloc(self.bits, kinds * sizeof(uint64_t*))
        if grown is NULL:
            raise MemoryError
        self.bits = <uint64_t**>grown
        grown = PyMem_Realloc(self.words, kinds * sizeof(uint32_t))
        if grown is NULL:
            raise MemoryError
        self.words = <uint32_t*>grown
        for number in range(self.kinds, kinds):
            self.bits[number] = NULL
            self.words[number] = 0
        self.kinds = kinds
        return 0

    cdef uint64_t* reserve(self, uint32_t number, uint32_t words) except? NULL:
        """Have at least so many words for a kind, and return them."""
        cdef uint32_t cap
        cdef void* grown
        self.reserve_kinds(number + 1)
        if self.words[number] < words:
            cap = max(words, 2 * self.words[number])
            grown = PyMem_Realloc(self.bits[number], cap * sizeof(uint64_t))
            if grown is NULL:
                raise MemoryError
            self.bits[number] = <uint64_t*>grown
            memset(self.bits[number] + self.words[number], 0, (cap - self.words[number]) * sizeof(uint64_t))
            self.words[number] = cap
        return self.bits[number]

    cdef int add(self, uint32_t number, uint32_t row) except -1:
        set_bit(self.reserve(number, (row >> 6) + 1), row)
        return 0

    cdef void discard(self, uint32_t number, uint32_t row) noexcept:
        if has_row(self, number, row):
            clear_bit(self.bits[number], row)

    cdef int copy(self, RowSet other) except -1:
        """Hold what another does."""
        cdef uint32_t number
        cdef uint64_t* bits
        self.clear()
        for number in range(other.kinds):
            if other.words[number]:
                bits = self.reserve(number, other.words[number])
                memcpy(bits, other.bits[number], other.words[number] * sizeof(uint64_t))
        return 0

    cdef bint equals(self, RowSet other) noexcept:
        cdef uint32_t number, word
        for number in range(max(self.kinds, other.kinds)):
            for word in range(
                max(
                    self.words[number] if number < self.kinds else 0,
                    other.words[number] if number < other.kinds else 0,
                )
            ):
                if word_of(self, number, word) != word_of(other, number, word):
                    return False
        return True

    cdef void clear(self) noexcept:
        cdef uint32_t number
        for number in range(self.kinds):
            if self.words[number]:
                memset(self.bits[number], 0, self.words[number] * sizeof(uint64_t))

    cdef Py_ssize_t count(self) noexcept:
        cdef uint32_t number, word
        cdef Py_ssize_t total = 0
        for number in range(self.kinds):
            for word in range(self.words[number]):
                total += popcount64(self.bits[number][word])
        return total


cdef class Outbox:
    def __init__(self, long long credit):
        self.credit = credit

    @property
    def open(self):
        return self.may_send()

    @property
    def credit_left(self):
        return self.credit - (self.total_sent - self.total_drained)

    @property
    def stalled_since(self):
        return self.since

    def sent(self, long long size):
        self.total_sent += size

    def hold(self, bytes head, bytes body, mono, *, bint counted):
        self._keep((head, body, counted, iter(())))
        if counted:
            self.waiting_bytes += len(head) + len(body)
        self.owe(mono)

    def hold_all(self, frames, mono):
        for head, body in frames:
            self._keep((head, body, False, frames))
            self.owe(mono)
            return

    def owe(self, mono):
        if self.since is None:
            self.since = mono

    def settle(self):
        if not self.waiting_count:
            self.since = None

    def drained(self, total, mono):
        cdef long long step = (total - self.total_drained) & 0xFFFFFFFF
        if step == 0 or step > self.total_sent - self.total_drained:
            return False
        self.total_drained += step
        if self.since is not None:
            self.since = mono
        return True

    def take(self):
        while self.waiting_count and not self.held and self.credit > self.total_sent - self.total_drained:
            head, body, counted, rest = self.waiting.popleft()
            self.waiting_count -= 1
            size = len(head) + len(body)
            if counted:
                self.waiting_bytes -= size
            self.total_sent += size
            for following in rest:
                self.waiting.appendleft((*following, counted, rest))
                self.waiting_count += 1
                break
            yield head, body

    def _keep(self, waiting):
        if self.waiting is None:
            self.waiting = deque()
        self.waiting.append(waiting)
        self.waiting_count += 1


cdef class Link:
    def __init__(
        self,
        uint64_t number,
        str player,
        conn,
        View view,
        Outbox outbox,
        session,
        attempt,
        connected_at_ms,
        state=LinkState.JOINING,
    ):
        self.number = number
        self.player = player
        self.conn = conn
        self.view = view
        self.outbox = outbox
        self.session, self.attempt, self.connected_at_ms = session, attempt, connected_at_ms
        self.state = state
        self.inbox = []
        self.warned = set()

    @property
    def state(self):
        return self._state

    @state.setter
    def state(self, state):
        self._state = state
        self.joined = state is _JOINED

    def supersedes(self, session, attempt, connected_at_ms):
        if self.session == session:
            return self.attempt > attempt
        return self.connected_at_ms > connected_at_ms

    def keep(self, bytes frame):
        self.inbox_bytes += len(frame)
        self.inbox.append(frame)
        return self.inbox_bytes <= MAX_INBOX_BYTES


cdef class Sight:
    def __cinit__(self):
        self.visible = RowSet()
        self.state_kind = -1
        self.found = set()
        self.subscriptions = []

    @property
    def size(self):
        """How many things it sees. Shared state does not count; it is the only thing of its kind."""
        cdef bint state = self.state_kind >= 0 and word_of(self.visible, self.state_kind, 0) != 0
        return self.visible.count() - state

    def sees(self, Tracked tracked):
        return has_row(self.visible, tracked.number, tracked.row)

    def show(self, Tracked tracked):
        if tracked.id == SHARED_ID:
            self.state_kind = tracked.number
        self.visible.add(tracked.number, tracked.row)

    def hide(self, Tracked tracked):
        if not has_row(self.visible, tracked.number, tracked.row):
            return False
        self.visible.discard(tracked.number, tracked.row)
        return True

    def replace(self, dict visible):
        cdef Tracked tracked
        cdef RowSet before = self.visible
        self.visible = RowSet()
        for tracked in visible.values():
            self.show(tracked)
        return not self.visible.equals(before)


cdef class View:
    def __init__(self, str player, version, tick):
        self.player = player
        self.told_version, self.told_tick = version, tick
        self.fresh = True
        self.held = RowSet()
        self.claimed = set()
        self.gone = []
        self.corrections = {}
        self.behind = {}

    @property
    def count(self):
        cdef KindTable table
        cdef Tracked tracked
        cdef Py_ssize_t total
        cdef uint32_t word
        if self.fresh:
            return len(self.claimed)
        if not self.full:
            return self.held.count() + len(self.gone) + self.holds_private
        total = self.holds_private
        for tracked in self.tracker._removed:
            total += tracked.scope is _SCOPE_SHARED or tracked.scope is _SCOPE_PRESENCE
        for table in self.tracker.tables:
            if table is not None and is_public(&table.t):
                for word in range(bitmap_words(&table.t)):
                    total += popcount64(table.t.alive[word] & ~table.t.fresh[word])
        return total

    @property
    def waits(self):
        return self.kept_back and (self.budget is None or self.budget.open)

    def resume(self, version, held):
        self.version = self.told_version = version
        self.resumed = True
        self.claimed = set(held)

    def see_all(self):
        self.widened = self.sight is not None
        self.sight = self.budget = None

    def follows(self, version):
        return self.sight is None and not self.widened and self.full and self.is_behind(version)

    def keeps_up(self, version):
        return self.is_behind(version) and self.budget is None and not self.behind

    cdef bint is_behind(self, uint32_t version) noexcept:
        """By one version, and no more."""
        return not self.fresh and self.version + 1 == version

    def note(self, flush):
        for tracked, mask in flush.corrections.get(self.player, {}).items():
            self.corrections[tracked.id] = self.corrections.get(tracked.id, 0) | mask

    cdef int drop(self, uint32_t number, uint32_t row, object id) except -1:
        """What was in this row is no more, and this flush tells so."""
        if has_row(self.held, number, row):
            self.held.discard(number, row)
            self.gone.append(id)
        return 0

    cdef int unfollow(self, Tracker tracker, object flush) except -1:
        """It is full, and will not be told of this flush now: remember what it holds."""
        cdef KindTable table
        cdef Tracked tracked
        cdef uint64_t* bits
        cdef uint32_t word
        self.full = False
        for table in tracker.tables:
            if table is None or not is_public(&table.t):
                continue
            bits = self.held.reserve(table.t.number, bitmap_words(&table.t))
            for word in range(bitmap_words(&table.t)):
                bits[word] = table.t.alive[word] & ~table.t.fresh[word]
                if flush is not None:
                    bits[word] &= ~table.t.added[word]
        if flush is not None:
            for tracked in flush.removed:
                if tracked.scope is _SCOPE_SHARED or tracked.scope is _SCOPE_PRESENCE:
                    self.gone.append(tracked.id)
        return 0

    cdef bint holds(self, Tracked tracked) except -1:
        if tracked.scope is _SCOPE_PRIVATE:
            return PRIVATE_ID in self.claimed if self.fresh else self.holds_private
        if self.fresh:
            return tracked.id in self.claimed
        if self.full:
            return tracked.born <= self.version
        return has_row(self.held, tracked.number, tracked.row)

    def lack(self, Tracker tracker, changes):
        cdef RowSet visible = None if self.sight is None else self.sight.visible
        cdef KindTable table
        cdef Table* t
        cdef Tracked tracked
        cdef uint32_t number, word, row
        cdef uint64_t seen, left, held
        self.tracker = tracker
        lack = Lack([], [])
        if self.full:
            self.unfollow(tracker, None)
        left_over = set(self.claimed)
        for number in range(len(tracker.tables)):
            table = tracker.tables[number]
            if table is None or not is_public(&table.t):
                continue
            t = &table.t
            for word in range(bitmap_words(t)):
                seen = t.alive[word] if visible is None else word_of(visible, number, word)
                held = word_of(self.held, number, word)
                left = held & ~seen
                while left:
                    row = 64 * word + ctz64(left)
                    left &= left - 1
                    lack.leaving.append(t.id[row])
                left = seen
                while left:
                    row = 64 * word + ctz64(left)
                    left &= left - 1
                    if self.fresh:
                        tracked = table.by_row[row]
                        left_over.discard(tracked.id)
                        self.add_step(lack, tracked, tracked.id in self.claimed)
                    elif not held >> (row & 63) & 1:
                        self.add_step(lack, table.by_row[row], False)
                    elif t.changed_at[row] > self.version or (self.behind and t.id[row] in self.behind):
                        self.add_step(lack, table.by_row[row], True)
        left_over.discard(PRIVATE_ID)
        lack.leaving.extend(left_over)
        lack.leaving.extend(self.gone)
        self.add_private(lack, tracker)
        lack.leaving.sort()
        return lack

    def own(self, Tracker tracker, among):
        cdef Tracked tracked
        lack = Lack([], [])
        for tracked in among:
            if tracked.t is NULL:
                continue
            if self.sight is None or has_row(self.sight.visible, tracked.number, tracked.row):
                self.add_step(lack, tracked, self.holds(tracked))
        self.add_private(lack, tracker)
        return lack

    def add_private(self, lack, Tracker tracker):
        cdef Tracked private = tracker.private(self.player)
        cdef bint held = PRIVATE_ID in self.claimed if self.fresh else self.holds_private
        if private is not None:
            self.add_step(lack, private, held)
        elif held:
            lack.leaving.append(PRIVATE_ID)
        lack.steps.sort(key=place_of)

    cdef int add_step(self, object lack, Tracked tracked, bint held) except -1:
        cdef object id = tracked.id
        cdef bint mine = tracked.owner is not None and tracked.owner == self.player
        if held and tracked.born <= self.version:
            lack.steps.append(
                Step(id, tracked, False, mine, self.corrected(tracked, mine), self.since(tracked))
            )
            return 0
        if held:
            lack.leaving.append(id)
        lack.steps.append(Step(id, tracked, True, mine, 0, 0))
        return 0

    def since(self, Tracked tracked):
        if self.fresh and self.resumed and self.budget is not None and tracked.scope is _SCOPE_SHARED:
            return -1  # what the budget kept back in the connection before is not known any more
        return self.behind.get(tracked.id, self.version)

    def corrected(self, Tracked tracked, bint mine):
        mask = self.corrections.get(tracked.id, 0)
        if self.fresh and self.resumed and (mine or tracked.owner_changed > self.version):
            # What the player wrote before it dropped may never have come, and it still believes it.
            mask |= tracked.spec.writable_mask
            if mine and tracked.scope is _SCOPE_PRESENCE:
                mask |= 1 << tracked.spec.by_name["status"].index
        return mask

    def ration(self, lack, entries):
        if self.budget is not None:
            ration(self.budget, lack, entries, fresh=self.fresh)

    def follow(self, flush, removed, added, Tracker tracker):
        self.settle(tracker, flush.version)

    cdef int settle(self, Tracker tracker, uint32_t version) except -1:
        """The client was sent all that it lacked."""
        self.tracker = tracker
        self.holds_private = self.player in tracker._private
        self.version = version
        if self.fresh:
            self.fresh = False
            self.claimed = set()
        if self.corrections:
            self.corrections = {}
        return 0

    def take(self, lack, version):
        """As in `views`; the tracker is that of `lack`."""
        if self.sight is None:
            self.full = True
            self.held.clear()
        elif lack.waits:
            self.hold_entered(lack)
        else:
            self.held.copy(self.sight.visible)
        self.gone = []
        self.behind = {step.id: step.since for step in lack.waits if not step.enters}
        self.kept_back = bool(lack.waits)
        self.widened = False
        self.settle(self.tracker, version)

    def hold_entered(self, lack):
        cdef Tracked tracked
        cdef uint32_t number, word
        for number in range(self.held.kinds):
            for word in range(self.held.words[number]):
                self.held.bits[number][word] &= word_of(self.sight.visible, number, word)
        for step in lack.steps:
            tracked = step.tracked
            if step.enters and tracked.scope is not _SCOPE_PRIVATE:
                self.held.add(tracked.number, tracked.row)

    def name(self, version, tick):
        self.told_version, self.told_tick = version, tick


cdef inline bint is_public(const Table* t) noexcept:
    return t.sharing != HIDDEN and t.sharing != PRIVATE


# Buffers

cdef class Buffer:
    """Bytes that grow, with PADDING behind them."""

    cdef char* data
    cdef size_t used, cap

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef char* reserve(self, size_t size) except NULL:
        """Have space for so many bytes more, and return where they go. `used` stays as it is."""
        cdef size_t wanted = self.used + size + PADDING
        cdef void* grown
        if wanted > self.cap:
            wanted = max(wanted, 2 * self.cap, 4096)
            grown = PyMem_Realloc(self.data, wanted)
            if grown is NULL:
                raise MemoryError
            self.data, self.cap = <char*>grown, wanted
        return self.data + self.used

    cdef int add(self, const char* data, size_t size) except -1:
        memcpy(self.reserve(size), data, size)
        self.used += size
        return 0

    cdef bytes take(self):
        """Return all of it, and start anew. What one large update needed is not kept."""
        cdef bytes data = PyBytes_FromStringAndSize(self.data, self.used)
        self.used = 0
        if self.cap > MOST_KEPT:
            PyMem_Free(self.data)
            self.data, self.cap = NULL, 0
        return data


cdef inline char* put_u32(char* out, uint32_t value) noexcept nogil:
    memcpy(out, &value, 4)
    return out + 4


cdef inline char* put_piece(char* out, const char* piece, uint32_t size) noexcept nogil:
    # Most have less than 16 bytes, and one move without a branch is faster than a call. Both are padded.
    memcpy(out, piece, PADDING)
    if size > PADDING:
        memcpy(out + PADDING, piece + PADDING, size - PADDING)
    return out + size


cdef inline char* put_section(char* out, uint8_t section, uint64_t count) noexcept nogil:
    out[0] = <char>section
    return put_varint(out + 1, count)


cdef inline char* put_head(char* out, View view, uint32_t version, uint64_t tick, uint8_t flags) noexcept:
    out[0] = HEAD_UPDATE
    out[1] = <char>flags
    return put_varint(put_varint(out + 2, version - view.told_version), tick - view.told_tick)


# What is encoded once a flush

cdef class Now:
    """Of what flush updates are. `moment` is the same for `sync`, made when it is needed."""

    cdef uint32_t version
    cdef uint64_t tick
    cdef object mono, tracker, made

    def __cinit__(self, tracker, version, tick, mono):
        self.tracker, self.version, self.tick, self.mono = tracker, version, tick, mono

    cdef object moment(self):
        if self.made is None:
            self.made = pure.Moment(
                self.version, self.tick, self.mono, Entries(), pure.Changes(self.tracker)
            )
        return self.made


cdef struct Pieces:
    # Of one kind. By row: its CHANGE as everyone is told it, and its ENTER with the OWNER after it, if that was
    # made for this flush (`entered`).
    uint32_t* at
    uint32_t* size
    uint32_t* enter_at
    uint32_t* enter_size
    uint32_t* owner_size
    uint64_t* entered_in
    uint32_t cap
    uint64_t* told  # bitmap: of what is there is something to tell
    uint32_t most  # no CHANGE is larger
    bint any


cdef struct Place:
    uint32_t number
    uint32_t row


cdef struct Group:
    size_t start, body, end  # in the buffer
    size_t head  # its size
    uint32_t link  # the first of its links


cdef int compare_ids(const void* a, const void* b) noexcept nogil:
    return (<uint32_t*>a)[0] > (<uint32_t*>b)[0] or -((<uint32_t*>a)[0] < (<uint32_t*>b)[0])


cdef inline int ensure(void** array, size_t* cap, size_t count, size_t size) except -1:
    cdef size_t wanted
    cdef void* grown
    if count > cap[0]:
        wanted = max(count, 2 * cap[0], <size_t>64)
        grown = PyMem_Realloc(array[0], wanted * size)
        if grown is NULL:
            raise MemoryError
        array[0], cap[0] = grown, wanted
    return 0


cdef class Encoded:
    """What a flush changed, encoded as it is first needed."""

    cdef Tracker tracker
    cdef Now now
    cdef uint64_t generation
    cdef Pieces* of_kind
    cdef uint32_t kinds
    cdef Buffer changes, enters
    cdef size_t told_count  # rows of which `changes` tells
    cdef bint is_plain  # that is all there is to tell of the flush
    cdef list extras  # by kind: None, or by row (patches, their number, owner) as bytes

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
            self.extras[number] = None
            if table is not None and is_public(&table.t):
                reserve_pieces(&self.of_kind[number], &table.t)
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
        cdef Pieces* pieces = &self.of_kind[number]
        cdef char* end
        cdef bytes owner
        if pieces.entered_in[row] == self.generation:
            return 0
        end = put_enter(self.enters.reserve(enter_size(t, row, False)), t, row, False)
        pieces.enter_at[row] = <uint32_t>self.enters.used
        pieces.enter_size[row] = <uint32_t>(end - self.enters.data - self.enters.used)
        self.enters.used = end - self.enters.data
        pieces.owner_size[row] = 0
        if t.sharing == SHARED and has_bit(t.owned, row):
            owner = encode_owner(t.id[row], table.by_row[row].owner)
            pieces.owner_size[row] = <uint32_t>len(owner)
            self.enters.add(PyBytes_AS_STRING(owner), len(owner))
        pieces.entered_in[row] = self.generation
        return 0


cdef void free_pieces(Pieces* pieces) noexcept:
    PyMem_Free(pieces.at)
    PyMem_Free(pieces.size)
    PyMem_Free(pieces.enter_at)
    PyMem_Free(pieces.enter_size)
    PyMem_Free(pieces.owner_size)
    PyMem_Free(pieces.entered_in)
    PyMem_Free(pieces.told)


cdef int reserve_pieces(Pieces* pieces, const Table* t) except -1:
    cdef uint32_t cap
    if t.used <= pieces.cap:
        return 0
    cap = t.cap + 63 & ~<uint32_t>63
    free_pieces(pieces)
    memset(pieces, 0, sizeof(Pieces))
    pieces.at = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.size = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.enter_at = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.enter_size = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.owner_size = <uint32_t*>PyMem_Malloc(cap * sizeof(uint32_t))
    pieces.entered_in = <uint64_t*>PyMem_Malloc(cap * sizeof(uint64_t))
    pieces.told = <uint64_t*>PyMem_Malloc(cap // 64 * sizeof(uint64_t))
    if (
        pieces.at is NULL
        or pieces.size is NULL
        or pieces.enter_at is NULL
        or pieces.enter_size is NULL
        or pieces.owner_size is NULL
        or pieces.entered_in is NULL
        or pieces.told is NULL
    ):
        raise MemoryError
    memset(pieces.entered_in, 0, cap * sizeof(uint64_t))
    memset(pieces.told, 0, cap // 64 * sizeof(uint64_t))
    pieces.cap = cap
    return 0


# Updates

cdef class Lacks:
    """What one link, or all that follow, are to be told by one body: rows and ids, in order."""

    cdef Encoded encoded
    cdef uint32_t* leaves
    cdef Place* enters
    cdef Place* kept
    cdef size_t leaf_count, enter_count, kept_count, leaf_cap, enter_cap, kept_cap
    cdef bint has_secrets  # among what enters is the player's own, of a kind with fields for owners only

    def __cinit__(self, Encoded encoded):
        self.encoded = encoded

    def __dealloc__(self):
        PyMem_Free(self.leaves)
        PyMem_Free(self.enters)
        PyMem_Free(self.kept)

    cdef void clear(self) noexcept:
        self.leaf_count = self.enter_count = self.kept_count = 0
        self.has_secrets = False

    cdef int leave(self, uint32_t id) except -1:
        ensure(<void**>&self.leaves, &self.leaf_cap, self.leaf_count + 1, sizeof(uint32_t))
        self.leaves[self.leaf_count] = id
        self.leaf_count += 1
        return 0

    cdef int leave_word(self, const Table* t, uint32_t word, uint64_t left) except -1:
        while left:
            self.leave(t.id[64 * word + ctz64(left)])
            left &= left - 1
        return 0

    cdef int enter_word(self, uint32_t number, uint32_t word, uint64_t left) except -1:
        cdef Place* place
        ensure(<void**>&self.enters, &self.enter_cap, self.enter_count + 64, sizeof(Place))
        while left:
            place = self.enters + self.enter_count
            place.number, place.row = number, 64 * word + ctz64(left)
            self.enter_count += 1
            left &= left - 1
        return 0

    cdef int keep_word(self, uint32_t number, uint32_t word, uint64_t left) except -1:
        cdef Place* place
        ensure(<void**>&self.kept, &self.kept_cap, self.kept_count + 64, sizeof(Place))
        place = self.kept + self.kept_count
        while left:
            place.number, place.row = number, 64 * word + ctz64(left)
            place += 1
            left &= left - 1
        self.kept_count = place - self.kept
        return 0

    cdef int gather(self, View view) except -1:
        """What a view that is up to date but for this flush lacks of what it sees."""
        cdef Tracker tracker = self.encoded.tracker
        cdef KindTable table
        cdef Table* t
        cdef Pieces* pieces
        cdef uint32_t number, word, words
        cdef uint64_t* visible
        cdef uint64_t* held
        cdef uint64_t seen, had
        self.clear()
        for id in view.gone:
            self.leave(id)
        for number in range(self.encoded.kinds):
            table = tracker.tables[number]
            if table is None or not is_public(&table.t):
                continue
            t = &table.t
            pieces = &self.encoded.of_kind[number]
            words = bitmap_words(t)
            visible = view.sight.visible.reserve(number, words)
            held = view.held.reserve(number, words)
            for word in range(words):
                seen, had = visible[word], held[word]
                if seen != had:
                    if had & ~seen:
                        self.leave_word(t, word, had & ~seen)
                    if seen & ~had:
                        self.enter_word(number, word, seen & ~had)
                if pieces.any and seen & had & pieces.told[word]:
                    self.keep_word(number, word, seen & had & pieces.told[word])
            if t.has_owner_only:
                self.look_for_secrets(table, view.player)
        if self.leaf_count > 1:
            qsort(self.leaves, self.leaf_count, sizeof(uint32_t), compare_ids)
        return 0

    cdef int look_for_secrets(self, KindTable table, str player) except -1:
        cdef size_t n = self.enter_count
        while n and self.enters[n - 1].number == table.t.number and not self.has_secrets:
            n -= 1
            if has_bit(table.t.owned, self.enters[n].row):
                self.has_secrets = table.by_row[self.enters[n].row].owner == player
        return 0

    cdef int gather_all(self, flush) except -1:
        """What a flush tells everyone."""
        cdef KindTable table
        cdef Tracked tracked
        cdef Pieces* pieces
        cdef uint32_t number, word
        self.clear()
        for tracked in flush.removed:
            if tracked.scope is _SCOPE_SHARED or tracked.scope is _SCOPE_PRESENCE:
                self.leave(tracked.id)
        for number in range(self.encoded.kinds):
            table = self.encoded.tracker.tables[number]
            if table is None or not is_public(&table.t) or not table.t.flushed:
                continue
            pieces = &self.encoded.of_kind[number]
            for word in range(bitmap_words(&table.t)):
                if table.t.added[word]:
                    self.enter_word(number, word, table.t.added[word])
                if pieces.any and pieces.told[word]:
                    self.keep_word(number, word, pieces.told[word])
        if self.leaf_count > 1:
            qsort(self.leaves, self.leaf_count, sizeof(uint32_t), compare_ids)
        return 0

    cdef bint any(self) noexcept:
        return self.leaf_count or self.enter_count or self.kept_count

    cdef int put(self, Buffer out) except -1:
        """Write the body of an update's only part. The caller looks whether it is one, by its size."""
        cdef Encoded encoded = self.encoded
        cdef Pieces* pieces
        cdef Place* place
        cdef char* to
        cdef char* data
        cdef size_t n, owners = 0, patches = 0, changes = 0, space
        cdef bint extras = False
        for n in range(self.enter_count):
            encoded.enter(self.enters[n].number, self.enters[n].row)
            owners += encoded.of_kind[self.enters[n].number].owner_size[self.enters[n].row] != 0
        space = self.space(&extras)
        to = out.reserve(space)
        if self.leaf_count:
            to = put_section(to, LEAVE, self.leaf_count)
            for n in range(self.leaf_count):
                to = put_varint(to, self.leaves[n])
        if self.enter_count:
            to = put_section(to, ENTER, self.enter_count)
            for n in range(self.enter_count):
                pieces, place = &encoded.of_kind[self.enters[n].number], self.enters + n
                data = encoded.enters.data + pieces.enter_at[place.row]
                to = put_piece(to, data, pieces.enter_size[place.row])
        if not extras:
            to = self.put_changes(to, self.kept_count)
        else:
            for n in range(self.kept_count):
                changes += encoded.of_kind[self.kept[n].number].size[self.kept[n].row] != 0
            to = self.put_changes(to, changes)
        out.used = to - out.data
        if owners or extras:
            self.put_extras(out, extras)
        return 0

    cdef char* put_changes(self, char* to, size_t count) noexcept:
        cdef Pieces* pieces = NULL
        cdef const char* data = self.encoded.changes.data
        cdef Place* place = self.kept
        cdef Place* end = self.kept + self.kept_count
        if not count:
            return to
        to = put_section(to, CHANGE, count)
        while place < end:
            pieces = &self.encoded.of_kind[place.number]
            to = put_piece(to, data + pieces.at[place.row], pieces.size[place.row])
            place += 1
        return to

    cdef size_t space(self, bint* extras) except? 0:
        """How many bytes a body may need, but for patches and owners."""
        cdef size_t n, total = 64 + 5 * self.leaf_count
        cdef uint32_t number, most = 0
        for n in range(self.enter_count):
            total += self.encoded.of_kind[self.enters[n].number].enter_size[self.enters[n].row]
        for number in range(self.encoded.kinds):
            if self.encoded.of_kind[number].any:
                most = max(most, self.encoded.of_kind[number].most)
                extras[0] = extras[0] or self.encoded.extras[number] is not None
        if most <= 64:
            return total + self.kept_count * most
        for n in range(self.kept_count):
            total += self.encoded.of_kind[self.kept[n].number].size[self.kept[n].row]
        return total

    cdef int put_extras(self, Buffer out, bint extras) except -1:
        """Write patches, and then owners: of what changed and of what entered, in one order."""
        cdef list patches = [], owners = []
        cdef Pieces* pieces
        cdef Place* place
        cdef size_t e = 0, k = 0
        cdef uint64_t patch_count = 0
        cdef char* to
        cdef bytes joined
        while e < self.enter_count or k < self.kept_count:
            if k == self.kept_count or (e < self.enter_count and comes_first(self.enters + e, self.kept + k)):
                place = self.enters + e
                e += 1
                pieces = &self.encoded.of_kind[place.number]
                if pieces.owner_size[place.row]:
                    owners.append(
                        PyBytes_FromStringAndSize(
                            self.encoded.enters.data + pieces.enter_at[place.row] + pieces.enter_size[place.row],
                            pieces.owner_size[place.row],
                        )
                    )
                continue
            place = self.kept + k
            k += 1
            of_kind = self.encoded.extras[place.number] if extras else None
            extra = None if of_kind is None else of_kind.get(place.row)
            if extra is not None:
                if extra[0]:
                    patches.append(extra[0])
                    patch_count += extra[1]
                if extra[2]:
                    owners.append(extra[2])
        for section, parts, count in ((PATCH, patches, patch_count), (OWNER, owners, len(owners))):
            if parts:
                joined = b"".join(parts)
                to = put_section(out.reserve(16 + len(joined)), section, count)
                memcpy(to, PyBytes_AS_STRING(joined), len(joined))
                out.used = to + len(joined) - out.data
        return 0


cdef inline bint comes_first(const Place* a, const Place* b) noexcept:
    return a.number < b.number or (a.number == b.number and a.row < b.row)


cdef class FanOut:
    """Sends the updates of one room's flushes to many links at once."""

    cdef Tracker tracker
    cdef Encoded encoded
    cdef Lacks lacks
    cdef Buffer out, scratch
    cdef Group* groups
    cdef size_t group_cap

    def __cinit__(self, Tracker tracker):
        self.tracker = tracker
        self.encoded = Encoded(tracker)
        self.lacks = Lacks(self.encoded)
        self.out, self.scratch = Buffer(), Buffer()

    def __dealloc__(self):
        PyMem_Free(self.groups)

    cdef int add_group(self, list links, list heads, bytes body, bint unreliable) except -1:
        """As packing.pack_group, of links; heads may be alike."""
        cdef size_t count = len(links), size = GROUP_START - 4 + 8 * count + 4 + len(body)
        cdef bytes head
        cdef char* start
        cdef char* to
        if not links:
            return 0
        if len(heads) > 1 and heads.count(heads[0]) == len(heads):
            heads = heads[:1]
        for head in heads:
            size += 1 + len(head)
        start = self.out.reserve(4 + size)
        to = start_group(start, UNRELIABLE * unreliable | (EACH_HEAD if len(heads) > 1 else 0), links)
        to = put_u32(to, <uint32_t>len(body))
        for head in heads:
            to[0] = <char>len(head)
            memcpy(to + 1, PyBytes_AS_STRING(head), len(head))
            to += 1 + len(head)
        memcpy(to, PyBytes_AS_STRING(body), len(body))
        put_u32(start, <uint32_t>size)
        self.out.used += 4 + size
        return 0

    cdef object take(self):
        return FramesOut(self.out.take()) if self.out.used else None

    cdef int send_one_body(
        self, list links, const char* body, size_t size, list own, uint32_t version, uint64_t tick
    ) except -1:
        """Send links a body as the first part of an update, deflated if that pays. `own`: by link, the bodies
        of the parts that follow; None: nobody gets more.
        """
        cdef bytes packed = None
        cdef Link link
        cdef size_t n, count = len(links), heads
        cdef char* start
        cdef char* to
        cdef char* head
        if count > 1 and size >= MIN_PACKED:
            packed = compress(PyBytes_FromStringAndSize(body, size))
            if packed is not None:
                body, size = PyBytes_AS_STRING(packed), len(packed)
        heads = 1 if heads_are_alike(links, own) else count
        start = self.out.reserve(GROUP_START + 8 * count + 4 + 16 * heads + size)
        to = start_group(start, EACH_HEAD if heads > 1 else 0, links)
        to = put_u32(to, <uint32_t>size)
        for n in range(count):
            link = links[n]
            if n < heads:
                head = to + 1
                to = put_head(
                    head,
                    link.view,
                    version,
                    tick,
                    (HEAD_LAST if own is None or not own[n] else 0) | (0 if packed is None else HEAD_DEFLATED),
                )
                (head - 1)[0] = <char>(to - head)
            link.outbox.total_sent += (head - 1)[0] + <long long>size
        memcpy(to, body, size)
        to += size
        put_u32(start, <uint32_t>(to - start - 4))
        self.out.used = to - self.out.data
        return 0

    cdef int follow(self, sync, list links, flush, Now now, dict business) except -1:
        """Send what a flush has changed to links that see all there is, and were up to date before it."""
        cdef Link link
        cdef list own = None
        cdef const char* body
        cdef size_t n, size = 0
        cdef bint shared
        self.lacks.clear()
        if self.encoded.is_plain:
            body = self.encoded.all_changes(&size)
        else:
            self.scratch.used = 0
            self.lacks.gather_all(flush)
            if self.lacks.any():
                self.lacks.put(self.scratch)
            body, size = self.scratch.data, self.scratch.used
        if size > MOST_BODY:
            sync.follow(links, flush, now.moment())
            return 0
        if business:
            own = [self.own_of(link, now, business) for link in links]
        shared = size > 0
        if shared:
            self.send_one_body(links, body, size, own, now.version, now.tick)
        for n in range(len(links)):
            link = links[n]
            link.view.settle(self.tracker, now.version)
            self.finish(sync, link, None if own is None else own[n], shared, now)
        return 0

    cdef list own_of(self, Link link, Now now, dict business):
        """Return the bodies of what only the player is told."""
        cdef size_t n
        cdef KindTable table
        cdef object among = business.get(link.player)
        if among is None and not self.lacks.has_secrets:
            return []
        among = set() if among is None else set(among)
        if self.lacks.has_secrets:
            for n in range(self.lacks.enter_count):
                table = self.tracker.tables[self.lacks.enters[n].number]
                if table.t.has_owner_only:
                    among.add(table.by_row[self.lacks.enters[n].row])
        return pure.own_bodies(link.view.own(self.tracker, among), now.moment().entries)

    cdef int finish(self, sync, Link link, list own, bint shared, Now now) except -1:
        """The link was sent what it shares; send it the rest."""
        if own:
            sync.send_own(link, own, now.moment(), first=not shared)
        if shared or own:
            link.view.told_version, link.view.told_tick = now.version, now.tick
        if not link.outbox.waiting_count:
            link.outbox.since = None
        return 0

    cdef list share(self, sync, list links, Now now, dict business):
        """Send links with a sight, which were up to date before this flush, what they lack. Those that lack the
        same share a body. Returns the links whose update is in parts, to which nothing was sent.
        """
        cdef Link link
        cdef list done = [], own = [], shared = [], left = []
        cdef dict found = {}, members = {}
        cdef size_t groups = 0, start = self.out.used
        cdef Py_ssize_t group
        cdef bint some
        cdef list others
        ensure(<void**>&self.groups, &self.group_cap, len(links), sizeof(Group))
        for link in links:
            self.lacks.gather(link.view)
            others = self.own_of(link, now, business)
            if not self.put_alone(link, &self.groups[groups], others, now):
                left.append(link)
                continue
            done.append(link)
            own.append(others)
            some = self.groups[groups].end > self.groups[groups].body
            shared.append(some)
            if some:
                self.groups[groups].link = <uint32_t>(len(done) - 1)
                group = -1 if len(links) == 1 else self.alike(found, groups)
                if group < 0:
                    groups += 1
                else:
                    self.out.used = self.groups[groups].start
                    members.setdefault(group, [self.groups[group].link]).append(len(done) - 1)
            if self.lacks.leaf_count or self.lacks.enter_count:
                link.view.held.copy(link.view.sight.visible)
                link.view.gone.clear()
            link.view.widened = link.view.kept_back = False
        self.regroup(done, own, groups, start, members, now)
        for n, link in enumerate(done):
            # What is its own is measured by what the view held before, so this comes last.
            link.view.settle(self.tracker, now.version)
            self.finish(sync, link, own[n], shared[n], now)
        return left

    cdef bint put_alone(self, Link link, Group* group, list own, Now now) except -1:
        """Write what a link lacks as a group for it alone, or nothing where it lacks nothing. Returns whether
        it is one part.
        """
        cdef char* start
        cdef char* head
        cdef char* to
        group.start = self.out.used
        start = self.out.reserve(GROUP_START + 8 + 4 + 16)
        start[4] = 0
        put_u32(start + 5, 1)
        memcpy(start + GROUP_START, &link.number, 8)
        head = start + GROUP_START + 8 + 4 + 1
        to = put_head(head, link.view, now.version, now.tick, 0 if own else HEAD_LAST)
        (head - 1)[0] = <char>(to - head)
        group.head = to - head
        self.out.used = group.body = to - self.out.data
        if self.lacks.any():
            self.lacks.put(self.out)
        group.end = self.out.used
        if group.end == group.body or group.end - group.body > MOST_BODY:
            self.out.used = group.start
            return group.end == group.body
        start = self.out.data + group.start
        put_u32(start, <uint32_t>(group.end - group.start - 4))
        put_u32(start + GROUP_START + 8, <uint32_t>(group.end - group.body))
        return True

    cdef Py_ssize_t alike(self, dict found, size_t new) except -2:
        """Return an earlier group with the body of the new one, or -1."""
        cdef Group* group = &self.groups[new]
        cdef Group* other
        cdef size_t size = group.end - group.body
        cdef object key = sample(self.out.data + group.body, size)
        cdef object earlier = found.get(key)
        if earlier is None:
            found[key] = new
            return -1
        if type(earlier) is int:
            earlier = found[key] = [earlier]
        for at in earlier:
            other = &self.groups[<size_t>at]
            if other.end - other.body == size and not memcmp(
                self.out.data + other.body, self.out.data + group.body, size
            ):
                return at
        earlier.append(new)
        return -1

    cdef int regroup(self, list links, list own, size_t groups, size_t start, dict members, Now now) except -1:
        """Write the groups anew, if some are for several links."""
        cdef Group* group
        cdef Link link
        cdef size_t n
        cdef list indices
        if members:
            self.scratch.used = 0
            self.scratch.add(self.out.data + start, self.out.used - start)
            self.out.used = start
        for n in range(groups):
            group = &self.groups[n]
            indices = members.get(n) if members else None
            if indices is None:
                link = links[group.link]
                link.outbox.total_sent += <long long>(group.head + group.end - group.body)
                if members:
                    self.out.add(self.scratch.data + group.start - start, group.end - group.start)
            else:
                self.send_one_body(
                    [links[index] for index in indices],
                    self.scratch.data + group.body - start,
                    group.end - group.body,
                    [own[index] for index in indices],
                    now.version,
                    now.tick,
                )
        return 0


cdef uint64_t sample(const char* body, size_t size) noexcept nogil:
    """A number that is the same for bodies that are the same, and mostly not for others."""
    cdef uint64_t key = size, word
    cdef size_t n, at
    if size < 8:
        word = 0
        memcpy(&word, body, size)
        return key * <uint64_t>0x9E3779B97F4A7C15 ^ word
    for n in range(16):
        at = n * (size - 8) // 15
        memcpy(&word, body + at, 8)
        key = (key ^ word) * <uint64_t>0x9E3779B97F4A7C15
        key ^= key >> 29
    return key


cdef bint heads_are_alike(list links, list own) noexcept:
    cdef Link link, first = links[0]
    cdef size_t n
    cdef bint last = own is None or not own[0]
    for n in range(1, len(links)):
        link = links[n]
        if (
            link.view.told_version != first.view.told_version
            or link.view.told_tick != first.view.told_tick
            or (own is not None and (not own[n]) != last)
        ):
            return False
    return True


cdef char* start_group(char* to, uint8_t flags, list links) noexcept:
    """Write a group up to the size of its body. Its own size comes later."""
    cdef Link link
    to[4] = <char>flags
    to = put_u32(to + 5, <uint32_t>len(links))
    for link in links:
        memcpy(to, &link.number, 8)
        to += 8
    return to


class Sync(pure.Sync):
    """Brings the clients of one room up to date."""

    def __init__(self, Tracker tracker, emit):
        super().__init__(tracker, emit)
        self._fan_out = FanOut(tracker)
        self._version = -1

    def update(self, links, flush, version, tick, mono):
        cdef FanOut fan_out = self._fan_out
        cdef Now now = Now(self._tracker, version, tick, mono)
        cdef list together = [], alike = [], apart = []
        cdef dict business = {}
        # With no news, who is a version behind missed something before: it is not in the flush.
        cdef bint news = flush is not None or version != self._version
        self._version = version
        sort_out(links, flush, now, together, alike, apart)
        if news and (together or alike):
            fan_out.encoded.begin(flush, now)
            if flush is not None:
                business = owners_business(fan_out.tracker, flush)
            if together:
                fan_out.follow(self, together, flush, now, business)
            if alike:
                alike = fan_out.share(self, alike, now, business)
            fan_out.encoded.end()
        if alike or apart:
            # Parts, first updates, budgets, and who was behind.
            self.catch_up(alike, apart, now.moment())
        self.put_out()

    def deliver(self, links, frame, mono):
        cdef Link link
        self.send(links, [b""], frame, mono, counted=True)
        self.put_out()
        return [link for link in links if link.outbox.waiting_bytes > _MAX_WAITING_BYTES]

    def add_group(self, list links, list heads, bytes body, *, bint unreliable):
        (<FanOut>self._fan_out).add_group(links, heads, body, unreliable)

    def put_out(self):
        frames = (<FanOut>self._fan_out).take()
        if frames is not None:
            self._emit(frames)


cdef int sort_out(links, flush, Now now, list together, list alike, list apart) except -1:
    """Put links where their update is made; those that get none now are in no list."""
    cdef Link link
    cdef View view
    cdef Tracked tracked
    cdef list removed = None if flush is None else flush.removed
    cdef object corrections = None if flush is None else flush.corrections
    for link in links:
        view = link.view
        if corrections:
            view.note(flush)
        if removed and not view.full and not view.fresh:
            for tracked in removed:
                if tracked.scope is not _SCOPE_PRIVATE and tracked.scope is not _SCOPE_HIDDEN:
                    view.drop(tracked.number, tracked.row, tracked.id)
        if not link.joined or not (view.fresh or view.version < now.version):
            continue
        if not link.outbox.may_send():
            link.outbox.owe(now.mono)
            if view.full:
                view.unfollow(now.tracker, flush)
        elif flush is not None and view.full and view.sight is None and view.follows(now.version):
            together.append(link)
        else:
            if view.full:
                view.unfollow(now.tracker, flush)
            if view.sight is not None and view.keeps_up(now.version):
                alike.append(link)
            else:
                apart.append(link)
    return 0


cdef dict owners_business(Tracker tracker, flush):
    """As in `sync`, without what turns out to be nothing: by player, what a flush may tell its owner, or who
    was that, more of than others.
    """
    cdef dict found = {}
    cdef KindTable table
    cdef Tracked tracked
    cdef Table* t
    cdef uint32_t word, row
    cdef uint64_t left
    for tracked in flush.removed:
        if tracked.scope is _SCOPE_PRIVATE:
            found.setdefault(tracked.owner, set())
    for table in tracker.tables:
        if table is None or not table.t.flushed:
            continue
        t = &table.t
        if t.sharing != PRIVATE and t.sharing != SHARED:
            continue
        for word in range(bitmap_words(t)):
            left = (t.added[word] | t.changed[word]) & t.owned[word]
            while left:
                row = 64 * word + ctz64(left)
                left &= left - 1
                if t.sharing == PRIVATE:
                    found.setdefault(table.by_row[row].owner, set())
                elif concerns_owner(t, row, flush.version):
                    tracked = table.by_row[row]
                    found.setdefault(tracked.owner, set()).add(tracked)
    for player, masks in flush.corrections.items():
        found.setdefault(player, set()).update(
            [corrected for corrected in masks if corrected.scope is not _SCOPE_PRIVATE]
        )
    return found


cdef bint concerns_owner(const Table* t, uint32_t row, uint32_t version) noexcept:
    cdef uint32_t word
    if has_bit(t.added, row):
        return t.has_owner_only
    if t.owner_changed[row] == version:
        return True
    for word in range(t.words):
        if t.mask[<size_t>row * t.words + word] & t.owner_only_mask[word]:
            return True
    return False
