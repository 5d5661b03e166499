"""Where a room's time is between two of its reports: what pongs carry."""

from __future__ import annotations

import math

from playhall.engine.wire import VARINT53_MAX

__all__ = ["RoomClock"]

_MAX_AHEAD_S = 3.0
"""A host says its rooms' time at least every second; one that is silent for longer than this is lost."""


class RoomClock:
    """Extrapolates a room's tick from the newest (tick, fraction) its host reported."""

    __slots__ = ("_at", "_ticks", "tick_rate")

    def __init__(self, tick_rate: int, tick: int, fraction: int, now: float) -> None:
        self.tick_rate = tick_rate
        self.report(tick, fraction, now)

    def report(self, tick: int, fraction: int, now: float) -> None:
        """The host says where the room is; `fraction` in 1/256 of a tick."""
        self._ticks = tick + min(fraction, 255) / 256
        self._at = now

    def read(self, now: float) -> tuple[int, int]:
        """The tick, at most what a pong can carry, and the fraction in 1/256 of a tick."""
        ahead = min(max(0.0, now - self._at), _MAX_AHEAD_S)
        fraction, tick = math.modf(self._ticks + ahead * self.tick_rate)
        return min(int(tick), VARINT53_MAX), int(fraction * 256)
