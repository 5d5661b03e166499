"""Places: which rows of one kind are taken, and by what. Shared and private states have kinds, too."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhall.engine.tracking import Tracked

__all__ = ["Places"]


class Places:
    """The rows of one kind. The lowest free one is taken first, so that what there is stays close together.

    Who gives a row back lets it rest first, until nobody can take what comes next for what was there: that is
    the Tracker's part. Since rows rest, at most three times as many are taken as there may be entities: those
    there are, those removed since the last flush, and those whose removal the last flush told.
    """

    __slots__ = ("_free", "there")

    def __init__(self) -> None:
        self.there: list[Tracked | None] = []
        """What is in each row that was ever taken."""
        self._free: list[int] = []

    def take(self, tracked: Tracked) -> int:
        """Return the row that it has from now on."""
        if self._free:
            row = heappop(self._free)
            self.there[row] = tracked
            return row
        self.there.append(tracked)
        return len(self.there) - 1

    def free(self, row: int) -> None:
        """Let others take a row."""
        self.there[row] = None
        heappush(self._free, row)
