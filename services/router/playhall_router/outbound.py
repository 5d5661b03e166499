"""What waits to go out to one client, and what is dropped for it.

Bytes wait in two places: the socket's buffer in this process, and unsent in the kernel. Reliable frames go to
the socket at once; over the hard bound the client is too slow to be served. Unreliable frames go out only
while nothing waits; else a few of the newest are held until the socket has drained, so that what is dropped
is the oldest.

What has drained is what the room host is told as credit: bytes of its frames that have left, or were dropped.
It starts at 0 with every join, and runs modulo 2^32. The numbers stand in the client's `Lane`, which counts
frames that go straight through by itself.
"""

from __future__ import annotations

import enum
from collections import deque

from playhall.engine.backend import Lane

__all__ = ["CREDIT_BYTES", "HARD_BYTES", "STALL_S", "UNSENT_BYTES", "Backlog", "Outbound", "Verdict"]

CREDIT_BYTES = 32 * 1024
"""What a room host may have on the way to one client."""
HARD_BYTES = 256 * 1024
UNSENT_BYTES = 4096
"""More than this unsent in the kernel: the client does not keep up."""
STALL_S = 15.0
_HELD_FRAMES = 16
_HELD_BYTES = 16 * 1024


class Verdict(enum.Enum):
    """What to do with a frame."""

    SEND = enum.auto()
    HOLD = enum.auto()
    """Kept here; `release` gives it back once the socket drained."""
    CLOSE = enum.auto()
    """Over the hard bound."""


class Backlog:
    """Bytes that wait: in the socket's buffer, and unsent in the kernel."""

    __slots__ = ("buffered", "unsent")

    def __init__(self, buffered: int, unsent: int) -> None:
        self.buffered = buffered
        self.unsent = unsent

    @property
    def clear(self) -> bool:
        """Nothing waits that matters."""
        return self.buffered == 0 and self.unsent <= UNSENT_BYTES


class Outbound:
    """Bookkeeping for one client's way out. The caller owns the socket and says what waits in it."""

    __slots__ = ("_held", "_held_bytes", "_lane", "dropped")

    def __init__(self, lane: Lane, now: float) -> None:
        self._lane = lane
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self.dropped = 0
        """Unreliable frames dropped so far."""
        self.restart(now)

    def restart(self, now: float) -> None:
        """The client joins or loses a room: credit counts from here, what was held of the last is gone."""
        lane = self._lane
        lane.given = lane.drained = lane.reported = 0
        lane.progress_at = now
        self.dropped += len(self._held)
        self._held.clear()
        lane.held = 0
        self._held_bytes = 0

    def offer(self, frame: bytes, unreliable: bool, backlog: Backlog, now: float) -> Verdict:
        """A frame of the room's is to go out."""
        size = len(frame)
        if not self.waiting:
            self._lane.progress_at = now  # a client that had nothing to read was not slow to read it
        self._lane.given += size
        if not unreliable:
            return Verdict.CLOSE if backlog.buffered + size > HARD_BYTES else Verdict.SEND
        if not self._held and backlog.clear:
            return Verdict.SEND
        self._held.append(frame)
        self._held_bytes += size
        while len(self._held) > _HELD_FRAMES or self._held_bytes > _HELD_BYTES:
            self._held_bytes -= len(self._held.popleft())
            self.dropped += 1
        self._lane.held = len(self._held)
        return Verdict.HOLD

    def release(self, backlog: Backlog) -> list[bytes]:
        """Held frames, oldest first, if they may go now. They count as sent."""
        if not self._held or not backlog.clear:
            return []
        frames = list(self._held)
        self._held.clear()
        self._lane.held = self._held_bytes = 0
        return frames

    @property
    def waiting(self) -> bool:
        """Whether something given has not drained: then look again soon."""
        return self._lane.drained != self._lane.given

    @property
    def creditable(self) -> int:
        """What has drained since it was last reported."""
        return self._lane.drained - self._lane.reported

    def drain(self, backlog: Backlog, now: float) -> None:
        """Take note of what the socket has got rid of by now."""
        lane = self._lane
        left = backlog.buffered + self._held_bytes
        # Little in the kernel is on its way; much is a client that does not read.
        if backlog.unsent > UNSENT_BYTES:
            left += backlog.unsent
        drained = max(lane.drained, lane.given - left)
        if drained != lane.drained or drained == lane.given:
            lane.drained = drained
            lane.progress_at = now

    def stalled(self, now: float) -> bool:
        """Whether the client has drained nothing for so long that it is closed."""
        return self.waiting and now - self._lane.progress_at >= STALL_S
