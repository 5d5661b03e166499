"""Links: the connections of a room as the room's state machine sees them, and the credit each has.

A link may have so many bytes on the way to its client (`credit`); the router reports how many have drained.
While there is no credit nothing is sent: state updates are left out (the view falls behind, and catches up
with one merged update), unreliable messages are dropped, and what must arrive in order waits in the link,
up to a bound.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from playhall.engine.views import View

__all__ = ["STALL_S", "Link", "LinkState", "Outbox"]

# A connection that drains nothing for so long, while there is something it should get, is closed.
STALL_S = 15.0
# Reliable messages that wait for credit.
MAX_WAITING_BYTES = 4 * 1024 * 1024
# Frames of a client that wait until its on_join is done.
MAX_INBOX_BYTES = 64 * 1024

_COUNTER_MASK = 2**32 - 1


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A frame that waits, and those that are made once it is gone."""

    head: bytes
    body: bytes
    counted: bool
    rest: Iterator[tuple[bytes, bytes]]


class Outbox:
    """What goes to one client, metered in bytes."""

    __slots__ = ("_credit", "_drained", "_sent", "_stalled_since", "_waiting", "held", "waiting_bytes")

    def __init__(self, credit: int) -> None:
        self._credit = credit
        self._sent = 0
        self._drained = 0
        self._waiting: deque[_Waiting] = deque()
        self._stalled_since: float | None = None
        self.waiting_bytes = 0
        self.held = False
        """Counts as without credit, because too much is on the way to its router already."""

    @property
    def open(self) -> bool:
        """Whether a frame may go out now, ahead of nothing."""
        return not self._waiting and self._has_credit()

    @property
    def credit_left(self) -> int:
        """How many more bytes may be on the way; negative where a frame was larger than what was left."""
        return self._credit - (self._sent - self._drained)

    @property
    def stalled_since(self) -> float | None:
        """Since when something waits and nothing has drained; None while nothing waits."""
        return self._stalled_since

    def sent(self, size: int) -> None:
        """A frame of so many bytes went out."""
        self._sent += size

    def hold(self, head: bytes, body: bytes, mono: float, *, counted: bool) -> None:
        """Keep a frame until there is credit.

        `counted`: in `waiting_bytes`, to which the caller keeps a bound.
        """
        self._waiting.append(_Waiting(head, body, counted, iter(())))
        self.waiting_bytes += counted * (len(head) + len(body))
        self.owe(mono)

    def hold_all(self, frames: Iterator[tuple[bytes, bytes]], mono: float) -> None:
        """Keep frames that are made only as there is credit for them, if there are any."""
        for head, body in frames:
            self._waiting.append(_Waiting(head, body, False, frames))
            self.owe(mono)
            return

    def owe(self, mono: float) -> None:
        """Note that something could not be sent for want of credit."""
        if self._stalled_since is None:
            self._stalled_since = mono

    def settle(self) -> None:
        """Note that the client was sent all there is: nothing is owed any more, unless some of it waits."""
        if not self._waiting:
            self._stalled_since = None

    def drained(self, total: int, mono: float) -> bool:
        """Take the router's count of bytes handed on, modulo 2^32.

        Returns whether any drained since the last one.
        """
        step = (total - self._drained) & _COUNTER_MASK
        if step == 0 or step > self._sent - self._drained:
            return False
        self._drained += step
        if self._stalled_since is not None:
            self._stalled_since = mono
        return True

    def take(self) -> Iterator[tuple[bytes, bytes]]:
        """Give the frames that wait, oldest first, for as long as there is credit. Each counts as sent."""
        while self._waiting and self._has_credit():
            first = self._waiting.popleft()
            size = len(first.head) + len(first.body)
            self.waiting_bytes -= first.counted * size
            self._sent += size
            for head, body in first.rest:
                self._waiting.appendleft(replace(first, head=head, body=body))
                break
            yield first.head, first.body

    def _has_credit(self) -> bool:
        return not self.held and self.credit_left > 0


class LinkState(enum.Enum):
    """JOINING until on_join is done, then JOINED; GONE when the room has forgotten it."""

    JOINING = enum.auto()
    JOINED = enum.auto()
    GONE = enum.auto()


@dataclass(slots=True, eq=False)
class Link:
    """One connection of the room."""

    number: int
    player: str
    conn: Any
    view: View
    outbox: Outbox
    session: bytes
    attempt: int
    connected_at_ms: int
    state: LinkState = LinkState.JOINING
    inbox: list[bytes] = field(default_factory=list)
    inbox_bytes: int = 0
    # The player's presence entry is there because of this connection, which has not joined yet.
    brought_presence: bool = False
    # Events that have been warned of.
    warned: set[str] = field(default_factory=set)

    def supersedes(self, session: bytes, attempt: int, connected_at_ms: int) -> bool:
        """Whether this connection stays when its player comes with another one that says so of itself.

        Attempts order the connections of one client object, whatever their clocks say; between client
        objects the later connection wins, and of two that are equal the one that came last.
        """
        if self.session == session:
            return self.attempt > attempt
        return self.connected_at_ms > connected_at_ms

    def keep(self, frame: bytes) -> bool:
        """Keep a frame that came before on_join was done. False: there is no more room."""
        self.inbox_bytes += len(frame)
        self.inbox.append(frame)
        return self.inbox_bytes <= MAX_INBOX_BYTES
