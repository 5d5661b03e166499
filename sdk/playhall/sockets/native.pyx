"""The native twins of `plain`."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint32_t
from libc.string cimport memcpy
from posix.unistd cimport close

from playhall.engine.native.gate cimport Guard, Intake
from playhall.engine.native.packing cimport Port as LanePort

cdef extern from "<sys/socket.h>" nogil:
    enum: MSG_DONTWAIT, MSG_NOSIGNAL
    ssize_t recv(int fd, void* data, size_t size, int flags)
    ssize_t send(int fd, const void* data, size_t size, int flags)

cdef extern from "<sys/epoll.h>" nogil:
    enum: EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int what, int fd, epoll_event* event)
    int epoll_wait(int epoll, epoll_event* events, int count, int timeout)

cdef extern from *:
    object PyErr_SetFromErrno(object kind)

cdef enum:
    AT_ONCE = 1024
    HEADER_ROOM = 10
    WHOLE_BINARY = 0x82
    SHORT = 126
    LONG = 127


@cython.final
cdef class Poller:
    """See plain.Poller."""

    cdef int epoll
    cdef Intake intake
    cdef list readings  # by socket
    cdef object on_end
    cdef object on_error
    cdef epoll_event events[AT_ONCE]

    def __cinit__(self):
        self.epoll = -1

    def __init__(self, Intake intake not None, on_end, on_error):
        self.intake, self.on_end, self.on_error, self.readings = intake, on_end, on_error, []
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.epoll < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        self.shut()

    cdef void shut(self) noexcept:
        if self.epoll >= 0:
            close(self.epoll)
            self.epoll = -1

    def fileno(self):
        """See plain.Poller.fileno."""
        return self.epoll

    def add(self, int fd, reading not None):
        """See plain.Poller.add."""
        cdef epoll_event event
        event.events, event.data.fd = EPOLLIN, fd
        if epoll_ctl(self.epoll, EPOLL_CTL_ADD, fd, &event) < 0:
            PyErr_SetFromErrno(OSError)
        while len(self.readings) <= fd:
            self.readings.append(None)
        self.readings[fd] = reading

    def remove(self, int fd):
        """See plain.Poller.remove."""
        self.forget(fd)

    cdef int forget(self, int fd) except -1:
        cdef epoll_event event
        if 0 <= fd < len(self.readings) and self.readings[fd] is not None:
            self.readings[fd] = None
            if epoll_ctl(self.epoll, EPOLL_CTL_DEL, fd, &event) < 0:
                PyErr_SetFromErrno(OSError)
        return 0

    def close(self):
        """See plain.Poller.close."""
        self.readings = []
        self.shut()

    def read_all(self):
        """See plain.Poller.read_all."""
        cdef double now = self.intake.clock()
        cdef Py_ssize_t reads = 0
        cdef int i, found = epoll_wait(self.epoll, self.events, AT_ONCE, 0)
        for i in range(found):
            reads += self.read(self.events[i].data.fd, now)
        return reads

    cdef bint read(self, int fd, double now) except -1:
        """Read from one socket, unless it was taken out meanwhile. Returns whether it was not."""
        cdef object reading = self.readings[fd] if fd < len(self.readings) else None
        cdef Py_ssize_t size
        if reading is None:
            return False
        size = recv(
            fd, PyByteArray_AS_STRING(self.intake.store), PyByteArray_GET_SIZE(self.intake.store), MSG_DONTWAIT
        )
        if size < 0 and (errno == EAGAIN or errno == EINTR):
            return True
        if size <= 0:
            self.forget(fd)
            self.on_end(fd)
            return True
        try:
            if isinstance(reading, Guard):
                (<Guard> reading).feed(size, now)
            else:
                reading.buffer_updated(size)
        except Exception as error:
            self.forget(fd)
            self.on_error(fd, error)
        return True


@cython.final
cdef class Port(LanePort):
    """See plain.Port."""

    cdef object transport
    cdef object buffered
    cdef object rest
    cdef int fd

    def __init__(self, transport, below, int fd):
        self.transport, self.fd = transport, fd
        self.buffered, self.rest = below.get_write_buffer_size, below.write

    def __call__(self, bytes frame not None):
        """See plain.Port.__call__."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(frame)
        cdef unsigned char* data = <unsigned char*> PyMem_Malloc(HEADER_ROOM + size)
        if data == NULL:
            raise MemoryError
        try:
            memcpy(data + HEADER_ROOM, PyBytes_AS_STRING(frame), size)
            return self.write(data + HEADER_ROOM, size)
        finally:
            PyMem_Free(data)

    def close(self):
        """See plain.Port.close."""
        self.fd = -1

    cdef Py_ssize_t write(self, unsigned char* frame, Py_ssize_t size) except -1:
        cdef unsigned char* start
        cdef Py_ssize_t sent = 0
        if self.fd < 0 or self.transport.is_close_frame_sent:
            return 0
        start = put_header(frame, size)
        size += frame - start
        # Behind what waits, and not into it.
        if not self.buffered():
            sent = send(self.fd, start, size, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent == size:
                return 0
            if sent < 0:
                sent = 0  # why, the transport finds out
        self.rest(PyBytes_FromStringAndSize(<char*> start + sent, size - sent))
        return self.buffered()


cdef unsigned char* put_header(unsigned char* frame, Py_ssize_t size) noexcept:
    """Put the header of a message before it (RFC 6455, 5.2). Returns where it begins."""
    cdef int i
    cdef unsigned char* start
    if size < SHORT:
        start = frame - 2
        start[1] = <unsigned char> size
    elif size < 65536:
        start = frame - 4
        start[1] = SHORT
        start[2], start[3] = <unsigned char> (size >> 8), <unsigned char> (size & 0xFF)
    else:
        start = frame - 10
        start[1] = LONG
        for i in range(8):
            start[2 + i] = <unsigned char> ((size >> 8 * (7 - i)) & 0xFF)
    start[0] = WHOLE_BINARY
    return start
