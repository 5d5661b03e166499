"""What a client may send: sizes and rates, checked by its `Gate` before anything is decoded.

The numbers are those of docs/protocol/frames.md and flow.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from playhall.engine import frames
from playhall.engine.backend import Rules
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
    "RULES",
    "SILENCE_S",
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


RULES = Rules(
    CLIENT_FRAMES,
    control=(frames.HELLO, frames.PING, frames.RESUME, frames.LEAVE),
    steady=(frames.PING, frames.RESUME, frames.INPUTS, frames.WRITE),
    free=(frames.HELLO, frames.LEAVE),
    messages_per_s=MESSAGES_PER_S,
    bytes_per_s=BYTES_PER_S,
    bytes_at_once=BYTES_AT_ONCE,
)
"""The same in the form that gates take."""


def steady_rate(tick_rate: int) -> int:
    """Inputs, writes, pings and resumes a second that a room of this tick rate takes."""
    return 2 * tick_rate + 30
