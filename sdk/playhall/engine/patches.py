"""The last patches of bytes fields, by version.

So a small edit of a big field travels as the edit, to a client that missed a few updates too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Patches", "Range"]

MAX_PATCHES = 16

Range = tuple[int, int]
"""A half-open range of a bytes field."""


@dataclass(slots=True)
class Patches:
    """The last patches of one bytes field. They tell the whole difference to any version from `since` on."""

    since: int
    made: list[tuple[int, Range]]

    def ranges(self, version: int, size: int) -> list[Range] | None:
        """Return what has changed since a version, or None where sending the whole field is as good."""
        if version < self.since:
            return None
        found = _merged([made for stamp, made in self.made if stamp > version])
        return found if 2 * sum(stop - start for start, stop in found) < size else None

    def add(self, version: int, ranges: list[Range]) -> None:
        self.made.extend((version, made) for made in _merged(ranges))
        if len(self.made) > MAX_PATCHES:
            dropped = self.made[:-MAX_PATCHES]
            self.made = self.made[-MAX_PATCHES:]
            self.since = dropped[-1][0]


def _merged(ranges: Sequence[Range]) -> list[Range]:
    """Return the ranges in order, those that touch or overlap made one."""
    out: list[Range] = []
    for start, stop in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(stop, out[-1][1]))
        else:
            out.append((start, stop))
    return out
