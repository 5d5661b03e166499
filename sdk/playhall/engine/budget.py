"""Byte budgets: what one connection is told first, where not all of it fits.

A bucket of bytes fills each tick, up to what it gets in a second. While there is something in it, the thing
that comes first is told, and its bytes are taken out; so the bucket may go below zero, and a thing as large
as it likes is told in its turn. What waits has a score, which each time grows by 1 / (1 + its rank by
priority): the first by 1, the tenth by a tenth. So what matters more is told more often, by about that
ratio, and all of it in the end, also where priorities are negative or infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from playhall.engine.catchup import Step

__all__ = ["Budget"]


class Budget:
    """The bytes of one connection.

    `priorities` are by id, as they were asked for last; what is not among them comes last.
    """

    __slots__ = ("_bytes", "_scores", "priorities")

    def __init__(self) -> None:
        self._bytes = math.inf
        self._scores: dict[int, float] = {}
        self.priorities: Mapping[int, float] = {}

    @property
    def open(self) -> bool:
        """Whether anything may be told now."""
        return self._bytes > 0

    def fill(self, bytes_per_second: float, seconds: float) -> None:
        """Let time pass. A new bucket is full."""
        self._bytes = min(self._bytes + bytes_per_second * seconds, bytes_per_second)

    def choose(self, steps: Sequence[Step], size: Callable[[Step], int]) -> list[Step]:
        """Take the bytes of what is told now, and return what waits."""
        ranked = sorted(steps, key=lambda step: (-self.priorities.get(step.id, -math.inf), step.id))
        scores = {
            step.id: self._scores.get(step.id, 0.0) + 1 / (1 + rank) for rank, step in enumerate(ranked)
        }
        waits = []
        for step in sorted(ranked, key=lambda step: (-scores[step.id], step.id)):
            if self.open:
                self._bytes -= size(step)
            else:
                waits.append(step)
        self._scores = {step.id: scores[step.id] for step in waits}
        return waits

    def forget(self) -> None:
        """All has been told."""
        self._scores = {}
