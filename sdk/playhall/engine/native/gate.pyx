"""The native twins of `gate` and `wsheaders`."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy


cdef enum:
    FORWARD = 0
    CONTROL = 1
    UNKNOWN = 2
    TOO_LONG = 3
    TOO_MANY = 4
    TOO_MUCH = 5

cdef enum:
    IS_CONTROL = 1
    IS_STEADY = 2
    IS_FREE = 4

cdef double WHOLE = 1.0 - 1e-6


@cython.final
cdef class Rules:
    """See gate.Rules."""

    def __init__(self, limits, *, control, steady, free, messages_per_s, bytes_per_s, bytes_at_once):
        cdef int kind
        for kind in range(256):
            self.limits[kind] = limits.get(kind, -1)
            self.traits[kind] = (
                IS_CONTROL * (kind in control) | IS_STEADY * (kind in steady) | IS_FREE * (kind in free)
            )
        self.messages_per_s = messages_per_s
        self.bytes_per_s, self.bytes_at_once = bytes_per_s, bytes_at_once


cdef Bucket full(double rate, double at_once, double now) noexcept:
    return Bucket(rate, at_once, at_once, now)


cdef bint take(Bucket* bucket, double now, double cost) noexcept:
    cdef double tokens = bucket.tokens + (now - bucket.at) * bucket.rate
    if tokens > bucket.at_once:
        tokens = bucket.at_once
    bucket.at = now
    if tokens < cost * WHOLE:
        bucket.tokens = tokens
        return False
    bucket.tokens = tokens - cost
    return True


@cython.final
cdef class Gate:
    """See gate.Gate."""

    def __init__(self, Rules rules not None, double steady_per_s, double now):
        self.heard_at, self.rules = now, rules
        self.messages = full(rules.messages_per_s, rules.messages_per_s, now)
        self.steady = full(steady_per_s, steady_per_s, now)
        self.volume = full(rules.bytes_per_s, rules.bytes_at_once, now)

    def judge(self, bytes frame not None, double now):
        """See gate.Gate.judge."""
        return self.weigh(<const unsigned char*> PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame), now)

    cdef int weigh(self, const unsigned char* frame, Py_ssize_t size, double now) noexcept:
        cdef unsigned char kind, traits
        self.heard_at = now
        if size == 0:
            return UNKNOWN
        kind = frame[0]
        if self.rules.limits[kind] < 0:
            return UNKNOWN
        if size > self.rules.limits[kind]:
            return TOO_LONG
        traits = self.rules.traits[kind]
        if not traits & IS_FREE and not take(&self.steady if traits & IS_STEADY else &self.messages, now, 1.0):
            return TOO_MANY
        if not take(&self.volume, now, <double> size):
            return TOO_MUCH
        return FORWARD if self.open and not traits & IS_CONTROL else CONTROL

    def change_steady(self, double per_s):
        """See gate.Gate.change_steady."""
        if per_s > self.steady.at_once:
            self.steady.tokens += per_s - self.steady.at_once
        self.steady.rate = self.steady.at_once = per_s


cdef enum:
    SHORT = 126
    LONG = 127
    MASK_BYTES = 4
    MASKED = 0x80
    WHOLE_BINARY = 0x82
    READ_BYTES = 65536


@cython.final
cdef class HeaderScanner:
    """See wsheaders.HeaderScanner."""

    def __init__(self, uint64_t limit):
        self.limit = limit

    def scan(self, data, Py_ssize_t size):
        """See wsheaders.HeaderScanner.scan."""
        cdef Py_buffer view
        cdef Py_ssize_t at = 0
        cdef bint good = True
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if size < 0 or size > view.len:
                raise ValueError("there are not so many bytes")
            while good and at < size:
                at = self.follow(<const unsigned char*> view.buf, at, size, &good)
        finally:
            PyBuffer_Release(&view)
        return at

    cdef bint between(self) noexcept:
        return self.skip == 0 and self.have == 0

    cdef Py_ssize_t follow(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size, bint* good
    ) noexcept:
        """See wsheaders.HeaderScanner.scan_one."""
        cdef uint64_t announced
        cdef Py_ssize_t step
        while self.skip == 0 and at < size:
            self.header[self.have] = data[at]
            self.have += 1
            at += 1
            if self.have < 2 or self.have < 2 + self.wide():
                continue
            announced = self.announced()
            if announced > self.limit:
                at = at - self.have if at > self.have else 0
                self.have = 0
                good[0] = False
                return at
            self.skip = announced + (MASK_BYTES if self.header[1] & MASKED else 0)
            self.have = 0
            break
        step = size - at
        if self.skip < <uint64_t> step:
            step = <Py_ssize_t> self.skip
        self.skip -= step
        return at + step

    cdef int wide(self) noexcept:
        """Bytes of the header that hold the length, beside the first two."""
        cdef int short = self.header[1] & 0x7F
        return 2 if short == SHORT else 8 if short == LONG else 0

    cdef uint64_t announced(self) noexcept:
        cdef int wide = self.wide()
        cdef uint64_t length = 0
        cdef int i
        if wide == 0:
            return self.header[1] & 0x7F
        for i in range(wide):
            length = length << 8 | self.header[2 + i]
        return length


cdef void unmask(unsigned char* payload, Py_ssize_t size, const unsigned char* mask) noexcept:
    cdef uint64_t eight, masks
    cdef Py_ssize_t at = 0
    memcpy(&masks, mask, MASK_BYTES)
    memcpy(<char*> &masks + MASK_BYTES, mask, MASK_BYTES)
    while at + 8 <= size:
        memcpy(&eight, payload + at, 8)
        eight ^= masks
        memcpy(payload + at, &eight, 8)
        at += 8
    while at < size:
        payload[at] ^= mask[at & (MASK_BYTES - 1)]
        at += 1


@cython.final
cdef class Intake:
    """See wsheaders.Intake."""

    def __init__(self, uint64_t limit, clock):
        self.store = bytearray(READ_BYTES)
        self.buffer, self.clock, self.limit = memoryview(self.store), clock, limit


cdef class Guard:
    """See wsheaders.Guard."""

    def __init__(self, inner, Intake intake not None, Gate gate not None, reader):
        self.scanner = HeaderScanner(intake.limit)
        self.inner_buffer, self.inner_updated = inner.get_buffer, inner.buffer_updated
        self.intake, self.gate, self.reader = intake, gate, reader
        self.open = True

    def get_buffer(self, sizehint, /):
        """See wsheaders.Guard.get_buffer."""
        return self.intake.buffer

    def buffer_updated(self, Py_ssize_t nbytes, /):
        """See wsheaders.Guard.buffer_updated."""
        self.feed(nbytes, self.intake.clock())

    cdef int feed(self, Py_ssize_t size, double now) except -1:
        cdef unsigned char* data = <unsigned char*> PyByteArray_AS_STRING(self.intake.store)
        cdef Py_ssize_t taken, end, at = 0
        if size > READ_BYTES:
            raise ValueError("there are not so many bytes")
        while at < size and self.open:
            if self.scanner.between():
                taken = self.take(data + at, size - at, now)
                if taken:
                    at += taken
                    continue
            end = self.scanner.follow(data, at, size, &self.open)
            self.hand_on(data + at, end - at)
            at = end
            if not self.open:
                self.reader.oversized(now)
        return 0

    cdef Py_ssize_t take(self, unsigned char* data, Py_ssize_t length, double now) except -1:
        """See wsheaders.Guard._take."""
        cdef Py_ssize_t size, end, start = 2
        cdef unsigned char* payload
        if length <= 2 + MASK_BYTES or data[0] != WHOLE_BINARY or not data[1] & MASKED:
            return 0
        size = data[1] & 0x7F
        if size == 0 or size == LONG:
            return 0
        if size == SHORT:
            size, start = data[2] << 8 | data[3], 4
            if size < SHORT:
                return 0
        end = start + MASK_BYTES + size
        if <uint64_t> size > self.intake.limit or end > length:
            return 0
        payload = data + start + MASK_BYTES
        unmask(payload, size, data + start)
        self.pass_on(payload, size, now)
        return end

    cdef int pass_on(self, const unsigned char* frame, Py_ssize_t size, double now) except -1:
        cdef int verdict = self.gate.weigh(frame, size, now)
        if verdict != FORWARD or self.gate.queue is None:
            self.reader.judged(verdict, PyBytes_FromStringAndSize(<const char*> frame, size), now)
        elif not self.gate.queue.put(self.gate.link, <const char*> frame, size):
            self.reader.overflowed(PyBytes_FromStringAndSize(<const char*> frame, size), now)
        return 0

    cdef int hand_on(self, const unsigned char* data, Py_ssize_t size) except -1:
        cdef Py_buffer view
        cdef Py_ssize_t step
        while size:
            PyObject_GetBuffer(self.inner_buffer(size), &view, PyBUF_WRITABLE)
            step = min(size, view.len)
            memcpy(view.buf, data, step)
            PyBuffer_Release(&view)
            self.inner_updated(step)
            data += step
            size -= step
        return 0
