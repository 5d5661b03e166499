# cython: language_level=3
"""Links and their outboxes as C loops read them. The seam for running, sync and gridlook."""

from libc.stdint cimport uint64_t

from playhall.engine.native.views cimport View


cdef class Outbox:
    cdef long long credit, total_sent, total_drained
    cdef object waiting  # a deque; None where nothing ever waited
    cdef Py_ssize_t waiting_count
    cdef object since
    cdef public Py_ssize_t waiting_bytes
    cdef public bint held

    cdef inline bint may_send(self) noexcept:
        return (
            not self.held
            and not self.waiting_count
            and self.credit > self.total_sent - self.total_drained
        )


cdef class Link:
    cdef readonly uint64_t number
    cdef readonly str player
    cdef public object conn
    cdef public View view
    cdef public Outbox outbox
    cdef readonly object session, attempt, connected_at_ms
    cdef object _state
    cdef bint joined
    cdef public list inbox
    cdef public Py_ssize_t inbox_bytes
    cdef public bint brought_presence
    cdef public set warned
