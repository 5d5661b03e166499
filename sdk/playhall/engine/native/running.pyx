"""What is in the way of every message and every hook: timing, the watch, the log of frames, frames that come.

Twins of `timers`, `watch`, `framelog`, `hookstack` and `intake` (see there for what they mean).
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.math cimport floor
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from playhall.engine.native.links cimport Link, Outbox

from playhall.engine import timers as pure
from playhall.engine.framelog import MAX_BYTES, MAX_MESSAGES
from playhall.engine.frames import MAX_FRAME, MESSAGE, UNRELIABLE
from playhall.engine.jsontext import MAX_DEPTH
from playhall.engine.payloads import BYTES, MAX_PAYLOAD
from playhall.engine.watch import HOOK_BYTES

__all__ = ["FrameLog", "HookStack", "Intake", "KeptFrames", "Timers", "Watch"]

cdef extern from *:
    """
    #include <time.h>
    #ifdef __linux__
    #define PH_READS_CLOCK 1
    static double ph_monotonic(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    }
    #else
    #define PH_READS_CLOCK 0
    static double ph_monotonic(void) { return 0.0; }
    #endif
    """
    const bint READS_CLOCK "PH_READS_CLOCK"
    double monotonic "ph_monotonic"() noexcept nogil

cdef extern from "Python.h":
    const char* utf8_of "PyUnicode_AsUTF8AndSize"(object text, Py_ssize_t* size) except NULL

cdef enum:
    MOST_ROWS = 64
    MOST_SAMPLES = 512
    MOST_DRAWN = 32
    MOST_FRAMES = 200
    MOST_FRAME_BYTES = 1048576
    NAME_BYTES = 64
    MESSAGE_FRAME = 5
    UNRELIABLE_FRAME = 6
    BYTES_FORMAT = 1
    MOST_PAYLOAD = 65536
    MOST_FRAME = 65600
    MOST_DEPTH = 512
    LONG_DIGITS = 16
    SEEN_BYTES = 7  # of a varint that the fast way reads

assert (pure.MAX_ROWS, pure.MAX_SAMPLES, pure.MAX_DRAWN) == (MOST_ROWS, MOST_SAMPLES, MOST_DRAWN)
assert (MAX_MESSAGES, MAX_BYTES, HOOK_BYTES) == (MOST_FRAMES, MOST_FRAME_BYTES, NAME_BYTES)
assert (MESSAGE, UNRELIABLE, BYTES) == (MESSAGE_FRAME, UNRELIABLE_FRAME, BYTES_FORMAT)
assert (MAX_PAYLOAD, MAX_FRAME, MAX_DEPTH) == (MOST_PAYLOAD, MOST_FRAME, MOST_DEPTH)

cdef str _WHOLE = pure.WHOLE
cdef str _OTHER = pure.OTHER


cdef bint is_monotonic(clock):
    """Whether a clock is one of those that are read here without Python."""
    return (
        READS_CLOCK
        and type(clock) is type(len)
        and clock.__module__ == "time"
        and clock.__name__ in ("monotonic", "perf_counter")
    )


# Timing

cdef int compare(const void* a, const void* b) noexcept nogil:
    return ((<double*>a)[0] > (<double*>b)[0]) - ((<double*>a)[0] < (<double*>b)[0])


cdef class Second:
    """As in `timers`."""

    cdef Py_ssize_t count, many
    cdef double p50, p95, most, total
    cdef double* samples

    def __dealloc__(self):
        PyMem_Free(self.samples)

    @property
    def times(self):
        return pure.Times(self.count, self.p50, self.p95, self.most, self.total)

    @property
    def drawn(self):
        return [self.samples[n] for n in range(self.many)]


cdef class Row:
    """Of one name, in the second that runs."""

    cdef Py_ssize_t count, many, stride
    cdef double most, total
    cdef double* samples
    cdef Py_ssize_t space

    def __cinit__(self):
        self.stride = 1

    def __dealloc__(self):
        PyMem_Free(self.samples)

    cdef int add(self, double seconds) except -1:
        cdef void* grown
        cdef Py_ssize_t n
        self.count += 1
        if seconds > self.most:
            self.most = seconds
        self.total += seconds
        if self.stride > 1 and self.count % self.stride:
            return 0
        if self.many == self.space:
            n = max(2 * self.space, 16)
            grown = PyMem_Realloc(self.samples, n * sizeof(double))
            if grown == NULL:
                raise MemoryError
            self.samples, self.space = <double*>grown, n
        self.samples[self.many] = seconds
        self.many += 1
        if self.many > MOST_SAMPLES:
            self.many = (self.many + 1) // 2
            for n in range(self.many):
                self.samples[n] = self.samples[2 * n]
            self.stride *= 2
        return 0

    cdef Second reduced(self):
        """Return what is kept of it. Its samples are in order from then on."""
        cdef Second second = Second.__new__(Second)
        cdef Py_ssize_t n
        qsort(self.samples, self.many, sizeof(double), compare)
        second.many = min(self.many, MOST_DRAWN)
        second.samples = <double*>PyMem_Malloc(second.many * sizeof(double))
        if second.samples == NULL:
            raise MemoryError
        for n in range(second.many):
            second.samples[n] = self.samples[n if self.many <= MOST_DRAWN else (2 * n + 1) * self.many // (2 * MOST_DRAWN)]
        second.count, second.most, second.total = self.count, self.most, self.total
        second.p50 = self.samples[max(0, (self.many * 50 + 99) // 100 - 1)]
        second.p95 = self.samples[max(0, (self.many * 95 + 99) // 100 - 1)]
        return second

    cdef Row copy(self):
        cdef Row made = Row.__new__(Row)
        made.count, made.many, made.stride, made.space = self.count, self.many, self.stride, self.many
        made.most, made.total = self.most, self.total
        made.samples = <double*>PyMem_Malloc(self.many * sizeof(double))
        if made.samples == NULL:
            raise MemoryError
        memcpy(made.samples, self.samples, self.many * sizeof(double))
        return made


cdef struct Running:
    PyObject* name
    double began
    double inner


cdef class Timers:
    """See timers.Timers."""

    cdef object clock
    cdef bint plain
    cdef readonly long long first, second
    cdef readonly object done
    cdef Running* running
    cdef Py_ssize_t depth, space
    cdef dict by_name

    def __init__(self, clock):
        self.clock = clock
        self.plain = is_monotonic(clock)
        self.first = self.second = <long long>floor(self.read())
        self.by_name = {}
        self.done = deque(maxlen=pure.KEPT_S)

    def __dealloc__(self):
        while self.depth:
            self.depth -= 1
            Py_DECREF(<object>self.running[self.depth].name)
        PyMem_Free(self.running)

    cdef inline double read(self) except? -1.0:
        return monotonic() if self.plain else self.clock()

    def now(self):
        """See timers.Timers.now."""
        return <long long>floor(self.read())

    def enter(self, str name):
        """See timers.Timers.enter."""
        self.push(name)

    def leave(self):
        """See timers.Timers.leave."""
        self.pop()

    cdef int push(self, str name) except -1:
        cdef void* grown
        cdef Running* running
        cdef double now = self.read()
        if self.depth == self.space:
            grown = PyMem_Realloc(self.running, (2 * self.space + 8) * sizeof(Running))
            if grown == NULL:
                raise MemoryError
            self.running, self.space = <Running*>grown, 2 * self.space + 8
        running = self.running + self.depth
        Py_INCREF(name)
        running.name, running.began, running.inner = <PyObject*>name, now, 0.0
        self.depth += 1
        return 0

    cdef int pop(self) except -1:
        cdef double now = self.read(), took
        cdef long long second = <long long>floor(now)
        cdef PyObject* found
        cdef Running running
        cdef Row row
        cdef str name
        if not self.depth:
            raise IndexError("nothing was entered")
        self.depth -= 1
        running = self.running[self.depth]
        name = <str>running.name
        Py_DECREF(name)
        took = now - running.began
        if self.depth:
            self.running[self.depth - 1].inner += took
        if second != self.second:
            self.end_second(second)
        found = PyDict_GetItem(self.by_name, name)
        if found == NULL:
            row = self.new_row(name)
        else:
            row = <Row>found
        row.add(took if name == _WHOLE else took - running.inner)
        return 0

    cdef Row new_row(self, str name):
        if len(self.by_name) >= MOST_ROWS:
            name = _OTHER
            if name in self.by_name:
                return self.by_name[name]
        self.by_name[name] = row = Row.__new__(Row)
        return row

    def timing(self, name):
        """See timers.Timers.timing."""
        cdef Timing made = Timing.__new__(Timing)
        made.timers, made.name = self, name
        return made

    def rows(self):
        """See timers.Timers.rows."""
        cdef Row row
        return {name: row.copy().reduced() for name, row in self.by_name.items()}

    cdef int end_second(self, long long second) except -1:
        cdef Row row
        if self.by_name:
            self.done.append((self.second, {name: row.reduced() for name, row in self.by_name.items()}))
            self.by_name = {}
        self.second = second
        return 0


cdef class Timing:
    """See timers.Timing."""

    cdef Timers timers
    cdef str name

    def __enter__(self):
        self.timers.push(self.name)

    def __exit__(self, kind, error, trace):
        self.timers.pop()


# The watch

cdef class Watch:
    """See watch.Watch."""

    cdef uint8_t[::1] page
    cdef object clock, hook
    cdef bint plain
    cdef double slow_s, began
    cdef readonly tuple slow

    def __init__(self, page, double slow_s, clock):
        self.page = page
        if self.page.shape[0] != NAME_BYTES:
            raise ValueError(f"{self.page.shape[0]} bytes for a hook's name, and {NAME_BYTES} are needed")
        self.slow_s = slow_s
        self.clock = clock
        self.plain = is_monotonic(clock)
        self.hook = ""
        self.slow = ("", 0.0, 0.0)

    def enter(self, str hook):
        """See watch.Watch.enter."""
        self.begin(hook)

    def leave(self):
        """See watch.Watch.leave."""
        self.end()

    def past(self, double moment):
        """See watch.Watch.past."""
        return self.read() >= moment

    cdef inline double read(self) except? -1.0:
        return monotonic() if self.plain else self.clock()

    cdef int begin(self, str hook) except -1:
        cdef Py_ssize_t size
        cdef const char* name
        cdef uint8_t* page = &self.page[0]
        try:
            name = utf8_of(hook, &size)
        except UnicodeEncodeError:
            encoded = hook.encode(errors="replace")
            name, size = PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded)
        size = min(size, <Py_ssize_t>NAME_BYTES)
        memcpy(page, name, size)
        memset(page + size, 0, NAME_BYTES - size)
        self.hook = hook
        self.began = self.read()
        return 0

    cdef int end(self) except -1:
        self.page[0] = 0
        cdef double took = self.read() - self.began
        if took > self.slow_s:
            self.slow = (self.hook, self.began, took)
        return 0


# The log of frames

cdef struct Kept:
    long long number, tick
    double wall
    Py_ssize_t others
    PyObject* player
    PyObject* data
    bint from_client


cdef class KeptFrames:
    """See framelog.KeptFrames."""

    cdef Kept* ring
    cdef Py_ssize_t space, first, count, size

    def __dealloc__(self):
        while self.count:
            self.drop()
        PyMem_Free(self.ring)

    cdef int keep(
        self, long long number, double wall, long long tick, bint from_client, str player, Py_ssize_t others, bytes data
    ) except -1:
        cdef Kept* kept
        if self.count == MOST_FRAMES:
            self.drop()
        if self.count == self.space:
            self.grow()
        kept = self.ring + (self.first + self.count) % self.space
        Py_INCREF(player)
        Py_INCREF(data)
        kept.number, kept.tick, kept.wall, kept.others = number, tick, wall, others
        kept.player, kept.data, kept.from_client = <PyObject*>player, <PyObject*>data, from_client
        self.count += 1
        self.size += PyBytes_GET_SIZE(data)
        while self.size > MOST_FRAME_BYTES:
            self.drop()
        return 0

    cdef void drop(self) noexcept:
        """Drop the oldest."""
        cdef Kept* kept = self.ring + self.first
        self.first = (self.first + 1) % self.space
        self.count -= 1
        self.size -= PyBytes_GET_SIZE(<object>kept.data)
        Py_DECREF(<object>kept.player)
        Py_DECREF(<object>kept.data)

    cdef int grow(self) except -1:
        """Make space for more. `first` is 0 as long as not all the space that there can be is there."""
        cdef Py_ssize_t space = min(2 * self.space + 16, <Py_ssize_t>MOST_FRAMES), n
        cdef Kept* ring = <Kept*>PyMem_Malloc(space * sizeof(Kept))
        if ring == NULL:
            raise MemoryError
        for n in range(self.count):
            ring[n] = self.ring[(self.first + n) % self.space]
        PyMem_Free(self.ring)
        self.ring, self.space, self.first = ring, space, 0
        return 0

    def add(self, number, wall, tick, from_client, player, others, data):
        """See framelog.KeptFrames.add."""
        self.keep(number, wall, tick, from_client, player, others, data)

    def __iter__(self):
        cdef Kept* kept
        cdef Py_ssize_t n
        cdef list found = []
        for n in range(self.count):
            kept = self.ring + (self.first + n) % self.space
            found.append(
                (
                    kept.number,
                    kept.wall,
                    kept.tick,
                    bool(kept.from_client),
                    <object>kept.player,
                    kept.others,
                    <object>kept.data,
                )
            )
        return iter(found)


cdef class FrameLog:
    """See framelog.FrameLog."""

    cdef long long count
    cdef readonly KeptFrames kept_messages, kept_writes, kept_others

    def __cinit__(self):
        self.kept_messages, self.kept_writes, self.kept_others = KeptFrames(), KeptFrames(), KeptFrames()

    def number(self):
        """See framelog.FrameLog.number."""
        self.count += 1
        return self.count


# Hooks

cdef class HookStack:
    """See hookstack.HookStack."""

    cdef Timers timers
    cdef Watch watch
    cdef public Py_ssize_t _depth
    cdef public object _deferred
    cdef public dict _pending

    def __init__(self, timers, watch):
        self.timers, self.watch = timers, watch
        self._deferred = deque()
        self._pending = {}

    def __len__(self):
        return len(self._pending)

    def begin(self, str hook):
        """See hookstack.HookStack.begin."""
        self.enter(hook)

    def end(self):
        """See hookstack.HookStack.end."""
        self.leave()

    def release(self):
        """See hookstack.HookStack.release."""
        self.let_go()

    cdef int enter(self, str hook) except -1:
        self._depth += 1
        if self.watch is not None:
            self.watch.begin(hook)
        if self.timers is not None:
            self.timers.push(hook)
        return 0

    cdef int leave(self) except -1:
        if self.timers is not None:
            self.timers.pop()
        if self.watch is not None:
            self.watch.end()
        return 0

    cdef int let_go(self) except -1:
        self._depth -= 1
        if not self._depth and self._deferred:
            self._run_deferred()
        return 0

    def abandon(self):
        """See hookstack.HookStack.abandon."""
        self._depth -= 1

    def hold(self):
        """See hookstack.HookStack.hold."""
        self._depth += 1

    def __enter__(self):
        self._depth += 1

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.let_go()
        else:
            self._depth -= 1

    def _run_deferred(self):
        while not self._depth and self._deferred:
            call, nests = self._deferred.popleft()
            self._depth += not nests
            try:
                call()
            finally:
                self._depth -= not nests


# Frames that come

cdef inline bint is_plain_json(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    """Whether a JSON text has neither numbers of which a browser may change, nor many brackets."""
    cdef Py_ssize_t n, digits = 0, brackets = 0
    cdef bint behind_point = False
    for n in range(size):
        if 48 <= data[n] <= 57:
            digits += 1
            if digits == LONG_DIGITS and not behind_point:
                return False
        else:
            digits = 0
            behind_point = data[n] == 46
            brackets += data[n] == 91 or data[n] == 123
    return brackets <= MOST_DEPTH


cdef class Intake:
    """See intake.Intake."""

    cdef dict links
    cdef HookStack hooks
    cdef FrameLog log
    cdef object runtime, room, decode, slow, early
    cdef double wall
    cdef long long tick

    def __init__(self, runtime, room, dict links, slow, early, decode):
        self.runtime, self.room, self.links = runtime, room, links
        self.hooks, self.log = runtime.hooks, runtime.recorder
        self.slow, self.early, self.decode = slow, early, decode

    def receive(self, number, frame):
        """See intake.Intake.receive."""
        self.begin()
        self.take(number, frame)

    cdef int begin(self) except -1:
        """Frames come: note when that is."""
        if self.log is not None:
            self.wall, self.tick = self.runtime.now[1], self.runtime.tick
        return 0

    cdef int take(self, number, frame) except -1:
        cdef PyObject* found = PyDict_GetItem(self.links, number)
        cdef Link link
        if found == NULL:
            return 0
        link = <Link>found  # held, as room code may end it
        if not link.joined:
            self.early(link, frame)
        elif not self.hand_over(link, frame):
            self.slow(link, frame)
        return 0

    def receive_all(self, frames, Py_ssize_t start, double until):
        """See intake.Intake.receive_all."""
        cdef Watch watch = self.hooks.watch
        cdef Py_ssize_t n
        self.begin()
        for n in range(start, len(frames)):
            number, frame = frames[n]
            self.take(number, frame)
            if watch is not None and watch.read() >= until:
                return n + 1 - start
        return len(frames) - start

    cdef bint hand_over(self, Link link, bytes frame) except -1:
        """Hand a message to room code, where nothing about it is unusual. False: nothing was done, and the
        general way has to take it.
        """
        cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(frame)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(frame), at = 1
        cdef uint64_t seen = 0
        cdef int shift = 0
        cdef HookStack hooks = self.hooks
        if size < 3 or size > MOST_FRAME or hooks._pending:
            return False
        if data[0] != MESSAGE_FRAME and data[0] != UNRELIABLE_FRAME:
            return False
        while data[at] >= 0x80:
            seen |= <uint64_t>(data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if at > SEEN_BYTES or at == size:
                return False
        if data[at] == 0 and shift:
            return False  # not in its shortest form
        seen |= <uint64_t>data[at] << shift
        at += 1
        if size - at < 1 or data[at] > BYTES_FORMAT or size - at - 1 > MOST_PAYLOAD:
            return False
        content = PyBytes_FromStringAndSize(<const char*>data + at + 1, size - at - 1)
        if data[at] != BYTES_FORMAT:
            if not is_plain_json(data + at + 1, size - at - 1):
                return False
            try:
                content = self.decode(content)
            except Exception:
                return False
        if self.log is not None:
            self.log.count += 1
            self.log.kept_messages.keep(
                self.log.count, self.wall, self.tick, True, link.player, 0, frame
            )
        conn = link.conn
        conn._client_tick = seen - 1 if seen else None
        if data[0] == MESSAGE_FRAME:
            self.run("on_message", link, conn, content)
        else:
            self.run("on_unreliable", link, conn, content)
        return True

    cdef int run(self, str hook, Link link, conn, content) except -1:
        """Call the hook, as `hooks.Hooks.run` does."""
        cdef HookStack hooks = self.hooks
        hooks.enter(hook)
        try:
            if hook == "on_message":
                got = self.room.on_message(conn, content)
            else:
                got = self.room.on_unreliable(conn, content)
        except (KeyboardInterrupt, GeneratorExit):
            hooks.leave()
            hooks._depth -= 1
            raise
        except BaseException as error:
            hooks.leave()
            self.report(hook, error)
        else:
            hooks.leave()
            if got is not None:
                self.runtime.returned(hook, got, link.number)
        hooks.let_go()
        return 0

    cdef int report(self, str hook, error) except -1:
        try:
            self.runtime.report(hook, error)
        except BaseException:
            self.hooks._depth -= 1
            raise
        return 0

    def drained(self, number, total, mono):
        """See intake.Intake.drained."""
        cdef PyObject* found = PyDict_GetItem(self.links, number)
        cdef Outbox outbox
        cdef long long step
        if found == NULL:
            return False
        outbox = (<Link>found).outbox
        if outbox.waiting_count or outbox.since is not None:
            return True
        step = (<long long>total - outbox.total_drained) & 0xFFFFFFFF
        if step <= outbox.total_sent - outbox.total_drained:
            outbox.total_drained += step
        return False
