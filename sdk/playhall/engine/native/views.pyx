# cython: language_level=3
"""Twins of `views` (see there for what they mean).

What a client holds and what it sees are bitmaps by row, for each kind. So what is new to it, what has gone and
what has changed are a few operations on words, and come in the order of rows, which is that of updates. What
is removed loses its bit at the flush that tells of it, and the ids of what a client held of that are kept until
it was told. A view that sees all there is and misses nothing is `full` and needs no bitmap.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from playhall.engine.native.tables cimport (
    KindTable,
    Table,
    Tracked,
    Tracker,
    bitmap_words,
    clear_bit,
    ctz64,
    popcount64,
    set_bit,
)

from playhall.engine.catchup import Step
from playhall.engine.schema import PRIVATE_ID, SHARED_ID
from playhall.engine.tracking import Scope
from playhall.engine.views import Lack, place_of, ration

__all__ = ["Sight", "View"]

cdef object _SCOPE_SHARED = Scope.SHARED
cdef object _SCOPE_PRIVATE = Scope.PRIVATE
cdef object _SCOPE_PRESENCE = Scope.PRESENCE


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
        cdef uint32_t number, words
        cdef uint64_t* bits
        for number in range(max(self.kinds, other.kinds)):
            words = other.words[number] if number < other.kinds else 0
            if words:
                bits = self.reserve(number, words)
                memcpy(bits, other.bits[number], words * sizeof(uint64_t))
            if number < self.kinds and self.words[number] > words:
                memset(self.bits[number] + words, 0, (self.words[number] - words) * sizeof(uint64_t))
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
        return is_up_to_date(self, version)

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
        self.holds_private = bool(tracker._private) and self.player in tracker._private
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
