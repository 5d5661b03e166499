"""The native twins of `gate` and `wsheaders`."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t

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

    cdef Py_ssize_t limits[256]  # -1: no client sends it
    cdef unsigned char traits[256]
    cdef double messages_per_s
    cdef double bytes_per_s
    cdef double bytes_at_once

    def __init__(self, limits, *, control, steady, free, messages_per_s, bytes_per_s, bytes_at_once):
        cdef int kind
        for kind in range(256):
            self.limits[kind] = limits.get(kind, -1)
            self.traits[kind] = (
                IS_CONTROL * (kind in control) | IS_STEADY * (kind in steady) | IS_FREE * (kind in free)
            )
        self.messages_per_s = messages_per_s
        self.bytes_per_s, self.bytes_at_once = bytes_per_s, bytes_at_once


cdef struct Bucket:
    double rate
    double at_once
    double tokens
    double at


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

    cdef public bint open
    cdef public double heard_at
    cdef Rules rules
    cdef Bucket messages
    cdef Bucket steady
    cdef Bucket volume

    def __init__(self, Rules rules not None, double steady_per_s, double now):
        self.heard_at, self.rules = now, rules
        self.messages = full(rules.messages_per_s, rules.messages_per_s, now)
        self.steady = full(steady_per_s, steady_per_s, now)
        self.volume = full(rules.bytes_per_s, rules.bytes_at_once, now)

    def judge(self, bytes frame not None, double now):
        """See gate.Gate.judge."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(frame)
        cdef unsigned char kind, traits
        self.heard_at = now
        if size == 0:
            return UNKNOWN
        kind = (<const unsigned char*> PyBytes_AS_STRING(frame))[0]
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


@cython.final
cdef class HeaderScanner:
    """See wsheaders.HeaderScanner."""

    cdef uint64_t limit
    cdef uint64_t skip
    cdef int have  # bytes of a header that is not whole
    cdef unsigned char header[10]

    def __init__(self, uint64_t limit):
        self.limit = limit

    def scan(self, data, Py_ssize_t size):
        """See wsheaders.HeaderScanner.scan."""
        return self.look(data, size)

    cdef Py_ssize_t look(self, data, Py_ssize_t size) except -1:
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if size < 0 or size > view.len:
                raise ValueError("there are not so many bytes")
            return self.follow(<const unsigned char*> view.buf, <uint64_t> size)
        finally:
            PyBuffer_Release(&view)

    cdef Py_ssize_t follow(self, const unsigned char* data, uint64_t size) noexcept:
        # Nothing overflows: a frame within the limit is small beside 2 ** 64.
        cdef uint64_t at = self.skip
        cdef uint64_t announced
        while at < size:
            self.header[self.have] = data[at]
            self.have += 1
            at += 1
            if self.have < 2 or self.have < 2 + self.wide():
                continue
            announced = self.announced()
            if announced > self.limit:
                at = at - self.have if at > <uint64_t> self.have else 0
                self.have = 0
                return <Py_ssize_t> at
            at += announced
            if self.header[1] & 0x80:
                at += MASK_BYTES
            self.have = 0
        self.skip = at - size
        return <Py_ssize_t> size

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


cdef class Guard:
    """See wsheaders.Guard."""

    cdef HeaderScanner scanner
    cdef object inner_buffer
    cdef object inner_updated
    cdef object on_oversized
    cdef object buffer
    cdef bint closed

    def __init__(self, inner, uint64_t limit, on_oversized):
        self.scanner = HeaderScanner(limit)
        self.inner_buffer, self.inner_updated = inner.get_buffer, inner.buffer_updated
        self.on_oversized = on_oversized
        self.buffer = b""

    def get_buffer(self, sizehint):
        """See wsheaders.Guard.get_buffer."""
        self.buffer = self.inner_buffer(sizehint)
        return self.buffer

    def buffer_updated(self, Py_ssize_t nbytes):
        """See wsheaders.Guard.buffer_updated."""
        cdef Py_ssize_t good
        if self.closed:
            return
        good = self.scanner.look(self.buffer, nbytes)
        if good:
            self.inner_updated(good)
        if good < nbytes:
            self.closed = True
            self.on_oversized()
