# cython: language_level=3
"""Twins of `links` (see there for what they mean)."""

from collections import deque

from libc.stdint cimport uint64_t

from playhall.engine.native.views cimport View

from playhall.engine.links import MAX_INBOX_BYTES, LinkState

__all__ = ["Link", "Outbox"]

cdef object _JOINED = LinkState.JOINED


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
