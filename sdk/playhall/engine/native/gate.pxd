"""What readers of sockets have of `gate`."""

from libc.stdint cimport uint32_t, uint64_t

from playhall.engine.native.packing cimport UpQueue


cdef struct Bucket:
    double rate
    double at_once
    double tokens
    double at


cdef class Rules:
    cdef Py_ssize_t limits[256]  # -1: no client sends it
    cdef unsigned char traits[256]
    cdef double messages_per_s
    cdef double bytes_per_s
    cdef double bytes_at_once


cdef class Gate:
    cdef public bint open
    cdef public double heard_at
    cdef public UpQueue queue
    cdef public uint32_t link
    cdef Rules rules
    cdef Bucket messages
    cdef Bucket steady
    cdef Bucket volume

    cdef int weigh(self, const unsigned char* frame, Py_ssize_t size, double now) noexcept


cdef class HeaderScanner:
    cdef uint64_t limit
    cdef uint64_t skip
    cdef int have  # bytes of a header that is not whole
    cdef unsigned char header[10]

    cdef bint between(self) noexcept
    cdef Py_ssize_t follow(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size, bint* good
    ) noexcept
    cdef int wide(self) noexcept
    cdef uint64_t announced(self) noexcept


cdef class Intake:
    cdef readonly object buffer
    cdef readonly object clock
    cdef readonly uint64_t limit
    cdef bytearray store


cdef class Guard:
    cdef HeaderScanner scanner
    cdef object inner_buffer
    cdef object inner_updated
    cdef Intake intake
    cdef Gate gate
    cdef object reader
    cdef bint open

    cdef int feed(self, Py_ssize_t size, double now) except -1
    cdef Py_ssize_t take(self, unsigned char* data, Py_ssize_t length, double now) except -1
    cdef int pass_on(self, const unsigned char* frame, Py_ssize_t size, double now) except -1
    cdef int hand_on(self, const unsigned char* data, Py_ssize_t size) except -1
