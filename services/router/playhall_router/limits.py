"""What a client may send: sizes and rates, checked before anything is decoded.

The numbers are those of docs/protocol/frames.md and flow.md. A bucket holds as many frames as it gains in a
second, so a burst is let through once and the rate holds over time.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from playhall.engine import frames
from playhall.engine.updates import UPDATE

__all__ = [
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
HELD_BYTES = 64 * 1024
"""Frames kept for a room that sleeps."""
HELLO_S = 10.0
HOLD_S = 10.0
"""How long a connection waits for its room."""
SILENCE_S = 15.0
_WHOLE = 1.0 - 1e-6
"""Gains are sums of floats: the last bits of one frame's worth may be missing."""


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
    """Lets `rate` frames a second through, and as many at once."""

    __slots__ = ("_at", "_rate", "_tokens")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._tokens = rate
        self._at = now

    def take(self, now: float) -> bool:
        """Whether one more may pass."""
        tokens = min(self._rate, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if tokens < _WHOLE:
            self._tokens = tokens
            return False
        self._tokens = tokens - 1.0
        return True

    def change_rate(self, rate: float) -> None:
        """Use another rate from now on; what was gained stays gained."""
        self._tokens += max(0.0, rate - self._rate)
        self._rate = rate


def steady_rate(tick_rate: int) -> int:
    """Inputs, writes, pings and resumes a second that a room of this tick rate takes."""
    return 2 * tick_rate + 30
