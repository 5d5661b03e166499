"""How many lines a room may log: a burst, then so many a second. What is beyond is dropped and counted."""

from __future__ import annotations

__all__ = ["LogLimit"]

BURST = 100
PER_SECOND = 20.0


class LogLimit:
    """The lines of one room."""

    __slots__ = ("_at", "_left", "dropped")

    def __init__(self, now: float) -> None:
        self._at = now
        self._left = float(BURST)
        self.dropped = 0
        """Lines dropped since the last that was let through; the caller reports and clears it."""

    def allow(self, now: float) -> bool:
        """Whether one more line may be logged now."""
        self._left = min(BURST, self._left + (now - self._at) * PER_SECOND)
        self._at = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True
