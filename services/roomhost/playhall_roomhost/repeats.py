"""Folding a room's errors: one that is raised again and again is written once in ten seconds, with how often.

Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["FOLD_S", "MAX_FOLDED", "Repeats"]

FOLD_S = 10.0
MAX_FOLDED = 32
"""Different errors that are folded at a time; more are written as they come."""

T = TypeVar("T")


@dataclass(slots=True)
class _Fold(Generic[T]):
    until: float
    last: T
    count: int = 0


class Repeats(Generic[T]):
    """Those of one room; `T` is a line."""

    def __init__(self) -> None:
        self._folds: dict[Hashable, _Fold[T]] = {}

    def is_new(self, key: Hashable, line: T, now: float) -> bool:
        """Whether to write the line. Where not, one like it was not long ago, and `due` has it in time."""
        fold = self._folds.get(key)
        if fold is not None:
            fold.last, fold.count = line, fold.count + 1
            return False
        if len(self._folds) < MAX_FOLDED:
            self._folds[key] = _Fold(now + FOLD_S, line)
        return True

    def due(self, now: float) -> list[tuple[T, int]]:
        """The last of lines that were not written, and how many, whose ten seconds are over by `now`."""
        over = [key for key, fold in self._folds.items() if fold.until <= now]
        told = []
        for key in over:
            fold = self._folds.pop(key)
            if fold.count:
                told.append((fold.last, fold.count))
                # It goes on: what comes next is told of in ten seconds, too.
                self._folds[key] = _Fold(now + FOLD_S, fold.last)
        return told

    @property
    def next_due(self) -> float | None:
        """When `due` has something, or forgets."""
        return min((fold.until for fold in self._folds.values()), default=None)
