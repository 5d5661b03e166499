"""When a room whose code fails again and again may start (Q-75).

Three stops within a minute start a back-off of 1 s; each further stop within a minute of the back-off's end
doubles it, up to 60 s; a minute without a stop forgets all. Kept by wall time, because it outlives the shard;
a clock that jumps can shorten a back-off, and lengthen it to 60 s at most.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Strikes"]

WINDOW_MS = 60_000
FREE = 2
FIRST_MS = 1_000
LONGEST_MS = 60_000


class Strikes(NamedTuple):
    """The failures of one room."""

    recent_ms: tuple[int, ...] = ()
    """When the last three were."""
    level: int = 0
    """Back-offs in a row; 0: none."""
    until_ms: int = 0
    generation: int = 0
    """The newest that failed: each counts once."""
    streak: int = 0
    """How many in a row."""

    def struck(self, generation: int, now_ms: int) -> Strikes:
        """After a failure of this generation; unchanged if it was counted before."""
        if generation <= self.generation:
            return self
        quiet_since = max((*self.recent_ms[-1:], self.until_ms))
        forgotten = not self.recent_ms or now_ms - quiet_since > WINDOW_MS
        recent = (*self.recent_ms, now_ms)[-(FREE + 1) :]
        level = 0 if forgotten else self.level
        if level or (len(recent) > FREE and now_ms - recent[0] <= WINDOW_MS):
            level += 1
        wait_ms = min(LONGEST_MS, FIRST_MS << min(level - 1, 6)) if level else 0
        return Strikes(recent, level, now_ms + wait_ms, generation, 1 if forgotten else self.streak + 1)

    def wait_ms(self, now_ms: int) -> int:
        """How long an Open has to wait."""
        return min(LONGEST_MS, max(0, self.until_ms - now_ms)) if self.level else 0
