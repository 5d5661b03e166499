"""When a batch leaves for a room host process: often enough for a few frames, in step with ticks for many.

A batch costs as much as a hundred frames, whatever is in it, and what clients send takes effect in their
room's next tick, however early it is there. While many frames come they therefore leave just before the
process's next ticks, which it tells with what it sends; where those are not near, or it did not say, as often
as is bearable. Few frames do not wait for ticks.

Nothing here reads a clock.
"""

from __future__ import annotations

import math

__all__ = ["Departures"]

GATHER_S = 0.005
"""How long after a batch the next one leaves."""
MANY_PER_S = 1_000
"""Frames; what comes after a batch of so many in its time waits for ticks."""
GATHER_MANY_S = 0.010
"""How long after such a batch the next one leaves where no tick is near."""
NEAR_S = 0.050
"""So far ahead a tick is worth waiting for."""
AHEAD_S = 0.004
"""How long before the ticks a batch leaves, to be there, and to be read, by then."""
LATE_S = 0.025
"""How long after its ticks a process is given to say when the next ones are."""
MOST_S = 0.1
"""The longest that anything waits, whatever a process says."""


class Departures:
    """The times of one stream. All times are in seconds of one clock."""

    def __init__(self) -> None:
        self._left_at = -math.inf
        self._many = False
        self._ticks_at = -math.inf

    def told(self, ticks_in_s: float, now: float) -> None:
        """The process says in how long its rooms tick next; 0: not soon. Ticks that are news too late to be
        met count as none: a busy process may say no others.
        """
        at = now + ticks_in_s
        is_too_late = ticks_in_s < AHEAD_S and at - self._ticks_at > AHEAD_S
        self._ticks_at = -math.inf if is_too_late or not ticks_in_s else at

    def left(self, frames: int, now: float) -> None:
        """A batch left with so many frames."""
        self._many = frames >= MANY_PER_S * max(now - self._left_at, GATHER_S)
        self._left_at = now

    def next(self, now: float) -> float:
        """When what waits may leave; a time that is over: now."""
        if not self._many:
            return self._left_at + GATHER_S
        ahead = self._ticks_at - now
        if ahead > NEAR_S or ahead < -LATE_S:
            return self._left_at + GATHER_MANY_S
        if ahead < AHEAD_S:
            return min(self._ticks_at + LATE_S, self._left_at + MOST_S)
        return min(max(self._ticks_at - AHEAD_S, self._left_at + GATHER_S), self._left_at + MOST_S)
