"""What gates have of `packing`: where frames go that pass."""

from libc.stdint cimport uint32_t


cdef class Buffer:
    cdef char* data
    cdef Py_ssize_t length
    cdef Py_ssize_t room

    cdef char* more(self, Py_ssize_t size) except NULL


cdef class UpRun(Buffer):
    cdef readonly Py_ssize_t frames
    cdef Py_ssize_t holes
    cdef Py_ssize_t at

    cdef int add(self, uint32_t link, const char* frame, Py_ssize_t size) except -1
    cdef void close_holes(self) noexcept


cdef class UpQueue:
    cdef public UpRun run
    cdef public Py_ssize_t room
    cdef public Py_ssize_t size

    cdef bint put(self, uint32_t link, const char* frame, Py_ssize_t size) except -1


cdef class Port:
    cdef Py_ssize_t write(self, unsigned char* frame, Py_ssize_t size) except -1
