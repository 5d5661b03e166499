"""The last frames that went between a room and its clients, as they are: `recording` reads them.

Keeping one costs next to nothing. The pure twin of `native.running`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["MAX_BYTES", "MAX_MESSAGES", "Frame", "FrameLog", "KeptFrames"]

MAX_MESSAGES = 200
MAX_BYTES = 1024 * 1024

Frame: TypeAlias = tuple[int, float, int, bool, str, int, bytes]
"""A number that counts up, when (wall, tick), whether it came from the client, whose it was (of several: the
first, and how many others), and the frame."""


class KeptFrames:
    """The last MAX_MESSAGES frames of one sort, of MAX_BYTES together; iterated over oldest first."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._bytes = 0

    def add(
        self, number: int, wall: float, tick: int, from_client: bool, player: str, others: int, data: bytes
    ) -> None:
        """Keep a frame, and drop those there is no place for any more."""
        self._frames.append((number, wall, tick, from_client, player, others, data))
        self._bytes += len(data)
        while len(self._frames) > MAX_MESSAGES or self._bytes > MAX_BYTES:
            self._bytes -= len(self._frames.popleft()[-1])

    def __iter__(self) -> Iterator[Frame]:
        return iter(list(self._frames))


class FrameLog:
    """Frames by their sort, numbered together."""

    def __init__(self) -> None:
        self._count = 0
        self.kept_messages = KeptFrames()
        self.kept_writes = KeptFrames()
        self.kept_others = KeptFrames()

    def number(self) -> int:
        """Return the next number."""
        self._count += 1
        return self._count
