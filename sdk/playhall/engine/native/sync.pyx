# cython: language_level=3
"""Twin of the sending half of `sync` (see there for what it means).

Done here, into one growing buffer: updates of links that follow, and of links that are up to date with a
sight, where they fit one part. What they tell was encoded once (`encoded`) and is copied. All else (first
updates, parts, budgets, what waits, what only owners are told) is the pure `sync`'s, on steps made of the
bitmaps of `views`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from playhall.engine.native.encoded cimport (
    CHANGE,
    ENTER,
    LEAVE,
    OWNER,
    PATCH,
    Buffer,
    Encoded,
    Entered,
    Now,
    Pieces,
    put_section,
    put_u32,
)
from playhall.engine.native.links cimport Link
from playhall.engine.native.tables cimport (
    PRIVATE,
    SHARED,
    KindTable,
    Table,
    Tracked,
    Tracker,
    bitmap_words,
    ctz64,
    has_bit,
    put_varint,
)
from playhall.engine.native.views cimport View, ensure, is_up_to_date

cdef extern from "sights.h" nogil:
    size_t split "ph_split"(
        const uint64_t* seen,
        const uint64_t* held,
        const uint64_t* told,
        uint32_t words,
        uint32_t* rows,
        uint32_t* differ,
        size_t* differing,
    )
    size_t differing_words "ph_differing"(
        const uint64_t* a, const uint64_t* b, uint32_t words, uint32_t* differ
    )
    char* copy_piece "ph_copy_piece"(char* to, const char* piece, uint32_t size)
    char* copy_pieces "ph_copy_pieces"(
        char* to,
        const char* data,
        const uint32_t* at,
        const uint32_t* size,
        const uint32_t* rows,
        size_t count,
    )

from playhall.engine import sync as pure
from playhall.engine.links import MAX_WAITING_BYTES
from playhall.engine.outputs import FramesOut
from playhall.engine.payloads import MIN_COMPRESSED, compress
from playhall.engine.tracking import Scope
from playhall.engine.updates import DEFLATED, LAST_PART, MAX_BODY, UPDATE

__all__ = ["Sync"]

cdef Py_ssize_t _MAX_WAITING_BYTES = MAX_WAITING_BYTES
cdef object _SCOPE_SHARED = Scope.SHARED
cdef object _SCOPE_HIDDEN = Scope.HIDDEN
cdef object _SCOPE_PRIVATE = Scope.PRIVATE
cdef object _SCOPE_PRESENCE = Scope.PRESENCE

cdef enum:
    HEAD_UPDATE = 4
    HEAD_LAST = 1
    HEAD_DEFLATED = 2
    MOST_BODY = 61425
    MIN_PACKED = 1024
    GROUP_START = 9  # size, flags, count
    EACH_HEAD = 2
    UNRELIABLE = 1

assert (UPDATE, LAST_PART, DEFLATED) == (HEAD_UPDATE, HEAD_LAST, HEAD_DEFLATED)
assert (MAX_BODY, MIN_COMPRESSED) == (MOST_BODY, MIN_PACKED)


cdef inline char* put_head(char* out, View view, uint32_t version, uint64_t tick, uint8_t flags) noexcept:
    out[0] = HEAD_UPDATE
    out[1] = <char>flags
    return put_varint(put_varint(out + 2, version - view.told_version), tick - view.told_tick)


cdef struct Kept:
    # Rows of one kind in `Lacks.rows`, up to `end`.
    uint32_t number
    size_t end


cdef struct Place:
    uint32_t number
    uint32_t row


cdef enum Answer:  # what became of one link's update
    NOTHING, IN_PARTS, FIRST, LIKE


cdef struct Group:
    size_t start, body, end  # in the buffer
    size_t head  # its size
    size_t like  # LIKE: the number of the link whose body it shares
    bint shared  # FIRST: others share its body
    Answer answer


cdef int compare_ids(const void* a, const void* b) noexcept nogil:
    return (<uint32_t*>a)[0] > (<uint32_t*>b)[0] or -((<uint32_t*>a)[0] < (<uint32_t*>b)[0])


cdef class Lacks:
    """What one link, or all that follow, are to be told by one body: rows and ids, in order."""

    cdef Encoded encoded
    cdef uint32_t* leaves
    cdef Place* enters
    cdef uint32_t* rows  # that changed, by kind
    cdef Kept* kept
    cdef uint32_t* differ
    cdef size_t leaf_count, enter_count, kept_count, row_count
    cdef size_t leaf_cap, enter_cap, kept_cap, row_cap, differ_cap
    cdef bint has_secrets  # among what enters is the player's own, of a kind with fields for owners only

    def __cinit__(self, Encoded encoded):
        self.encoded = encoded

    def __dealloc__(self):
        PyMem_Free(self.leaves)
        PyMem_Free(self.enters)
        PyMem_Free(self.rows)
        PyMem_Free(self.kept)
        PyMem_Free(self.differ)

    cdef void clear(self) noexcept:
        self.leaf_count = self.enter_count = self.kept_count = self.row_count = 0
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

    cdef size_t compare(self, uint32_t number, const uint64_t* seen, const uint64_t* held) except? 0:
        """Keep what has changed of what is seen and held. Returns in how many words these differ: `differ`."""
        cdef Pieces* pieces = &self.encoded.of_kind[number]
        cdef size_t differing = 0, found
        ensure(<void**>&self.differ, &self.differ_cap, pieces.words + 1, sizeof(uint32_t))
        if not pieces.any:
            return differing_words(seen, held, pieces.words, self.differ)
        ensure(<void**>&self.rows, &self.row_cap, self.row_count + 64 * <size_t>pieces.words + 4, sizeof(uint32_t))
        found = split(
            seen, held, pieces.told, pieces.words, self.rows + self.row_count, self.differ, &differing
        )
        if found:
            ensure(<void**>&self.kept, &self.kept_cap, self.kept_count + 1, sizeof(Kept))
            self.row_count += found
            self.kept[self.kept_count].number, self.kept[self.kept_count].end = number, self.row_count
            self.kept_count += 1
        return differing

    cdef int gather(self, View view) except -1:
        """What a view that is up to date but for this flush lacks of what it sees."""
        cdef const Table* t
        cdef uint32_t number, word
        cdef uint64_t* seen
        cdef uint64_t* held
        cdef size_t n
        self.clear()
        if view.gone:
            for id in view.gone:
                self.leave(id)
        for number in range(self.encoded.kinds):
            t = self.encoded.of_kind[number].t
            if t is NULL or not t.used:
                continue
            seen = view.sight.visible.reserve(number, self.encoded.of_kind[number].words)
            held = view.held.reserve(number, self.encoded.of_kind[number].words)
            for n in range(self.compare(number, seen, held)):
                word = self.differ[n]
                if held[word] & ~seen[word]:
                    self.leave_word(t, word, held[word] & ~seen[word])
                if seen[word] & ~held[word]:
                    self.enter_word(number, word, seen[word] & ~held[word])
            if t.has_owner_only:
                self.look_for_secrets(number, view.player)
        self.sort_leaves()
        return 0

    cdef void sort_leaves(self) noexcept:
        if self.leaf_count > 1:
            qsort(self.leaves, self.leaf_count, sizeof(uint32_t), compare_ids)

    cdef int look_for_secrets(self, uint32_t number, str player) except -1:
        cdef KindTable table = self.encoded.tracker.tables[number]
        cdef size_t n = self.enter_count
        while n and self.enters[n - 1].number == number and not self.has_secrets:
            n -= 1
            if has_bit(table.t.owned, self.enters[n].row):
                self.has_secrets = (<Tracked>table.by_row[self.enters[n].row]).owner == player
        return 0

    cdef int gather_all(self, flush) except -1:
        """What a flush tells everyone."""
        cdef const Table* t
        cdef Tracked tracked
        cdef uint32_t number, word
        self.clear()
        for tracked in flush.removed:
            if tracked.scope is _SCOPE_SHARED or tracked.scope is _SCOPE_PRESENCE:
                self.leave(tracked.id)
        for number in range(self.encoded.kinds):
            t = self.encoded.of_kind[number].t
            if t is NULL or not t.flushed:
                continue
            for word in range(bitmap_words(t)):
                if t.added[word]:
                    self.enter_word(number, word, t.added[word])
            if self.encoded.of_kind[number].any:
                self.compare(number, self.encoded.of_kind[number].told, self.encoded.of_kind[number].told)
        self.sort_leaves()
        return 0

    cdef bint any(self) noexcept:
        return self.leaf_count or self.enter_count or self.row_count

    cdef int put(self, Buffer out) except -1:
        """Write the body of an update's only part. The caller looks whether it is one, by its size."""
        cdef Encoded encoded = self.encoded
        cdef Entered* entered
        cdef Place* place
        cdef char* to
        cdef size_t n, owners = 0, size = 0
        cdef bint extras = False
        for n in range(self.enter_count):
            place = self.enters + n
            entered = encoded.of_kind[place.number].enter + place.row
            if entered.generation != encoded.generation:
                encoded.enter(place.number, place.row)
            owners += entered.owner_size != 0
            size += entered.size + entered.owner_size
        to = out.reserve(self.space(&extras) + size)
        if self.leaf_count:
            to = put_section(to, LEAVE, self.leaf_count)
            for n in range(self.leaf_count):
                to = put_varint(to, self.leaves[n])
        if self.enter_count:
            to = put_section(to, ENTER, self.enter_count)
            for n in range(self.enter_count):
                entered = encoded.of_kind[self.enters[n].number].enter + self.enters[n].row
                to = copy_piece(to, encoded.enters.data + entered.at, entered.size)
        to = self.put_changes(to, extras)
        if owners and not extras:
            to = self.put_owners(to, owners)
        out.used = to - out.data
        if extras:
            self.put_extras(out)
        return 0

    cdef char* put_changes(self, char* to, bint extras) noexcept:
        cdef Pieces* pieces
        cdef size_t n, row, start = 0, count = self.row_count
        if extras:
            for n in range(self.kept_count):
                pieces = &self.encoded.of_kind[self.kept[n].number]
                for row in range(start, self.kept[n].end):
                    count -= pieces.size[self.rows[row]] == 0
                start = self.kept[n].end
            start = 0
        if not count:
            return to
        to = put_section(to, CHANGE, count)
        for n in range(self.kept_count):
            pieces = &self.encoded.of_kind[self.kept[n].number]
            to = copy_pieces(
                to,
                self.encoded.changes.data,
                pieces.at,
                pieces.size,
                self.rows + start,
                self.kept[n].end - start,
            )
            start = self.kept[n].end
        return to

    cdef char* put_owners(self, char* to, size_t count) noexcept:
        """Write the owners of what enters, where no others have to be told."""
        cdef Entered* entered
        cdef size_t n
        to = put_section(to, OWNER, count)
        for n in range(self.enter_count):
            entered = self.encoded.of_kind[self.enters[n].number].enter + self.enters[n].row
            if entered.owner_size:
                to = copy_piece(to, self.encoded.enters.data + entered.at + entered.size, entered.owner_size)
        return to

    cdef size_t space(self, bint* extras) except? 0:
        """How many bytes a body may need, but for what enters, patches and owners."""
        cdef size_t n, row, start = 0, total = 64 + 5 * self.leaf_count
        cdef uint32_t number, most = 0
        cdef uint32_t* size
        for number in range(self.encoded.kinds):
            if self.encoded.of_kind[number].any:
                most = max(most, self.encoded.of_kind[number].most)
                extras[0] = extras[0] or self.encoded.extras[number] is not None
        if most <= 64:
            return total + self.row_count * most
        for n in range(self.kept_count):
            size = self.encoded.of_kind[self.kept[n].number].size
            for row in range(start, self.kept[n].end):
                total += size[self.rows[row]]
            start = self.kept[n].end
        return total

    cdef int put_extras(self, Buffer out) except -1:
        """Write patches, and then owners: of what changed and of what entered, in one order."""
        cdef list patches = [], owners = []
        cdef Entered* entered
        cdef size_t n, k, start = 0
        cdef uint32_t number, row
        cdef uint64_t patch_count = 0
        cdef char* to
        cdef bytes joined
        for n in range(self.kept_count):
            number = self.kept[n].number
            of_kind = self.encoded.extras[number]
            if of_kind is not None:
                for k in range(start, self.kept[n].end):
                    row = self.rows[k]
                    extra = of_kind.get(row) if has_bit(self.encoded.of_kind[number].t.special, row) else None
                    if extra is None:
                        continue
                    if extra[0]:
                        patches.append(extra[0])
                        patch_count += extra[1]
                    if extra[2]:
                        owners.append((number, row, extra[2]))
            start = self.kept[n].end
        for n in range(self.enter_count):
            number, row = self.enters[n].number, self.enters[n].row
            entered = self.encoded.of_kind[number].enter + row
            if entered.owner_size:
                joined = PyBytes_FromStringAndSize(
                    self.encoded.enters.data + entered.at + entered.size, entered.owner_size
                )
                owners.append((number, row, joined))
        owners.sort()
        owners = [told for _, _, told in owners]
        for section, parts, count in ((PATCH, patches, patch_count), (OWNER, owners, len(owners))):
            if parts:
                joined = b"".join(parts)
                to = put_section(out.reserve(16 + len(joined)), section, count)
                memcpy(to, PyBytes_AS_STRING(joined), len(joined))
                out.used = to + len(joined) - out.data
        return 0


cdef class FanOut:
    """Sends the updates of one room's flushes to many links at once."""

    cdef Tracker tracker
    cdef Encoded encoded
    cdef Lacks lacks
    cdef Buffer out, scratch
    cdef Group* groups  # by link
    cdef uint32_t* bodies  # a hash table of numbers of links, by body
    cdef size_t group_cap, body_cap, body_mask

    def __cinit__(self, Tracker tracker):
        self.tracker = tracker
        self.encoded = Encoded(tracker)
        self.lacks = Lacks(self.encoded)
        self.out, self.scratch = Buffer(), Buffer()

    def __dealloc__(self):
        PyMem_Free(self.groups)
        PyMem_Free(self.bodies)

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
        """Return the bodies of what only the player is told; None where there are none."""
        cdef size_t n
        cdef KindTable table
        cdef object among = business.get(link.player) if business else None
        if among is None and not self.lacks.has_secrets:
            return None
        among = set() if among is None else set(among)
        if self.lacks.has_secrets:
            for n in range(self.lacks.enter_count):
                table = self.tracker.tables[self.lacks.enters[n].number]
                if table.t.has_owner_only:
                    among.add(table.by_row[self.lacks.enters[n].row])
        return pure.own_bodies(link.view.own(self.tracker, among), now.moment().entries) or None

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
        cdef View view
        cdef Group* group
        cdef size_t n, count = len(links), start = self.out.used
        cdef list others, own = None, left = []
        cdef bint alike = False
        self.prepare_bodies(count)
        for n in range(count):
            link, group = <Link>links[n], self.groups + n
            view = link.view
            self.lacks.gather(view)
            others = self.own_of(link, now, business)
            if others is not None:
                if own is None:
                    own = [None] * count
                own[n] = others
            self.put_alone(link, group, others is not None, now)
            if group.answer == IN_PARTS:
                left.append(link)
                continue
            if group.answer == FIRST and self.is_like_another(n):
                alike = True
            if self.lacks.leaf_count or self.lacks.enter_count:
                view.held.copy(view.sight.visible)
                if view.gone:
                    view.gone.clear()
            view.widened = view.kept_back = False
        if alike:
            self.regroup(links, own, start, now)
        for n in range(count):
            link, group = <Link>links[n], self.groups + n
            if group.answer == IN_PARTS:
                continue
            if group.answer == FIRST and not group.shared:
                link.outbox.total_sent += <long long>(group.head + group.end - group.body)
            # What is its own is measured by what the view held before, so this comes last.
            link.view.settle(self.tracker, now.version)
            self.finish(sync, link, None if own is None else own[n], group.answer != NOTHING, now)
        return left

    cdef int prepare_bodies(self, size_t count) except -1:
        cdef size_t wanted = 64
        while wanted < 2 * count:
            wanted *= 2
        ensure(<void**>&self.groups, &self.group_cap, count, sizeof(Group))
        ensure(<void**>&self.bodies, &self.body_cap, wanted, sizeof(uint32_t))
        self.body_mask = wanted - 1
        memset(self.bodies, 0xFF, wanted * sizeof(uint32_t))
        return 0

    cdef int put_alone(self, Link link, Group* group, bint more, Now now) except -1:
        """Write what a link lacks as a group for it alone, or nothing where it lacks nothing or that is no one
        part. `more`: a part of its own follows.
        """
        cdef char* start
        cdef char* head
        cdef char* to
        group.shared, group.answer = False, NOTHING
        if not self.lacks.any():
            return 0
        group.start = self.out.used
        start = self.out.reserve(GROUP_START + 8 + 4 + 16)
        start[4] = 0
        put_u32(start + 5, 1)
        memcpy(start + GROUP_START, &link.number, 8)
        head = start + GROUP_START + 8 + 4 + 1
        to = put_head(head, link.view, now.version, now.tick, 0 if more else HEAD_LAST)
        (head - 1)[0] = <char>(to - head)
        group.head = to - head
        self.out.used = group.body = to - self.out.data
        self.lacks.put(self.out)
        group.end = self.out.used
        if group.end == group.body or group.end - group.body > MOST_BODY:
            self.out.used = group.start
            group.answer = NOTHING if group.end == group.body else IN_PARTS
            return 0
        group.answer = FIRST
        start = self.out.data + group.start
        put_u32(start, <uint32_t>(group.end - group.start - 4))
        put_u32(start + GROUP_START + 8, <uint32_t>(group.end - group.body))
        return 0

    cdef bint is_like_another(self, size_t new) noexcept:
        """Whether another link before has the same body. Takes the new one back then."""
        cdef Group* group = self.groups + new
        cdef Group* other
        cdef size_t size = group.end - group.body
        cdef size_t at = <size_t>sample(self.out.data + group.body, size) & self.body_mask
        while self.bodies[at] != 0xFFFFFFFFU:
            other = self.groups + self.bodies[at]
            if other.end - other.body == size and not memcmp(
                self.out.data + other.body, self.out.data + group.body, size
            ):
                other.shared = True
                group.like, group.answer = self.bodies[at], LIKE
                self.out.used = group.start
                return True
            at = (at + 1) & self.body_mask
        self.bodies[at] = <uint32_t>new
        return False

    cdef int regroup(self, list links, list own, size_t start, Now now) except -1:
        """Write the groups anew: some are for several links."""
        cdef Group* group
        cdef size_t n, count = len(links)
        cdef dict members = {}
        for n in range(count):
            if self.groups[n].answer == LIKE:
                members.setdefault(self.groups[n].like, [self.groups[n].like]).append(n)
        self.scratch.used = 0
        self.scratch.add(self.out.data + start, self.out.used - start)
        self.out.used = start
        for n in range(count):
            group = self.groups + n
            if group.answer != FIRST:
                continue
            if not group.shared:
                self.out.add(self.scratch.data + group.start - start, group.end - group.start)
                continue
            self.send_one_body(
                [links[index] for index in members[n]],
                self.scratch.data + group.body - start,
                group.end - group.body,
                None if own is None else [own[index] for index in members[n]],
                now.version,
                now.tick,
            )
        return 0


cdef uint64_t sample(const char* body, size_t size) noexcept nogil:
    """A number that is the same for bodies that are the same, and mostly not for others."""
    cdef uint64_t key = size, word
    cdef uint64_t[4] lane
    cdef size_t n
    if size < 8:
        word = 0
        memcpy(&word, body, size)
        key = key * <uint64_t>0x9E3779B97F4A7C15 ^ word
        return key ^ key >> 29
    # Four at once, since each step waits for the one before it.
    lane[0] = lane[1] = lane[2] = lane[3] = key
    for n in range(16):
        memcpy(&word, body + n * (size - 8) // 15, 8)
        lane[n & 3] = (lane[n & 3] ^ word) * <uint64_t>0x9E3779B97F4A7C15
        lane[n & 3] ^= lane[n & 3] >> 29
    for n in range(4):
        key = (key ^ lane[n]) * <uint64_t>0x9E3779B97F4A7C15
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
            if view.sight is not None and is_up_to_date(view, now.version):
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
