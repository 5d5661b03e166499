"""What a client may send: sizes and rates, checked before anything is decoded.

The numbers are those of docs/protocol/frames.md and flow.md. A bucket of frames holds as many as it gains in
a second, so a burst is let through once and the rate holds over time. That of bytes holds as much as the
other buckets let through at once: it is there for those who go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from playhall.engine import frames
from playhall.engine.updates import UPDATE

__all__ = [
    "BYTES_AT_ONCE",
    "BYTES_PER_S",
    "CLIENT_FRAMES",
    "HELD_BYTES",
    "HELLO_S",
    "HOLD_S",
    "MAX_FRAME_BYTES",
    "MESSAGES_PER_S",
    "ROOM_FRAMES",
    "SILENCE_S",
    "TokenBucket",
    "steady_rate",
]  # fmt: skip

MAX_FRAME_BYTES = frames.MAX_FRAME
MESSAGES_PER_S = 120
BYTES_PER_S = 1024 * 1024
BYTES_AT_ONCE = 8 * BYTES_PER_S
HELD_BYTES = 64 * 1024
"""Frames kept for a room that sleeps."""
HELLO_S = 10.0
HOLD_S = 10.0
"""How long a connection waits for its room."""
SILENCE_S = 15.0
_WHOLE = 1.0 - 1e-6
"""Gains are sums of floats: the last bits of what something costs may be missing."""


CLIENT_FRAMES: Mapping[int, int] = MappingProxyType(
    {
        kind: frames.LIMITS[kind]
        for kind in (
            frames.HELLO, frames.RESUME, frames.PING, frames.LEAVE,
            frames.MESSAGE, frames.UNRELIABLE, frames.CALL, frames.INPUTS, frames.WRITE,
        )
    }
)  # fmt: skip
"""What a client sends, and how large it may be."""
ROOM_FRAMES: Mapping[int, int] = MappingProxyType(
    {
        kind: frames.LIMITS[kind]
        for kind in (
            UPDATE, frames.MESSAGE, frames.UNRELIABLE, frames.PEERS, frames.REPLY, frames.ACK,
        )
    }
)  # fmt: skip
"""What a room may send to a client, and how large it may be."""


class TokenBucket:
    """Lets `rate` tokens a second through, and `at_once` of them in one moment: as many, where not given."""

    __slots__ = ("_at", "_at_once", "_rate", "_tokens")

    def __init__(self, rate: float, now: float, at_once: float | None = None) -> None:
        self._rate = rate
        self._at_once = rate if at_once is None else at_once
        self._tokens = self._at_once
        self._at = now

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Whether something that costs so much may pass."""
        tokens = min(self._at_once, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if tokens < cost * _WHOLE:
            self._tokens = tokens
            return False
        self._tokens = tokens - cost
        return True

    def change_rate(self, rate: float) -> None:
        """Let another number through, a second and at once; what was gained stays gained."""
        self._tokens += max(0.0, rate - self._at_once)
        self._rate = self._at_once = rate


def steady_rate(tick_rate: int) -> int:
    """Inputs, writes, pings and resumes a second that a room of this tick rate takes."""
    return 2 * tick_rate + 30
