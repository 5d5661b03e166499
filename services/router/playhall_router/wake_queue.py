"""Which rooms a router wakes first when many are to be woken: those most people wait for.

A room host that dies leaves up to 250 rooms; woken all at once, none is back quickly.
"""

from __future__ import annotations

import heapq

__all__ = ["MAX_WAKES", "WakeQueue"]

MAX_WAKES = 32
"""Starts under way at once, in one router process."""


class WakeQueue:
    """A queue with room for `limit` under way. Each key is in it once."""

    def __init__(self, limit: int = MAX_WAKES) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, str]] = []
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._counter = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are under way."""
        return len(self._running)

    def add(self, key: str, people: int) -> None:
        """A room is to be woken, for so many people. Once it is queued, more people change nothing."""
        if key in self._waiting or key in self._running:
            return
        self._waiting.add(key)
        self._counter += 1
        heapq.heappush(self._heap, (-people, self._counter, key))

    def take(self) -> list[str]:
        """The rooms to wake now. Each is under way until `done`."""
        keys = []
        while self._heap and len(self._running) < self._limit:
            _, _, key = heapq.heappop(self._heap)
            self._waiting.remove(key)
            self._running.add(key)
            keys.append(key)
        return keys

    def done(self, key: str) -> None:
        """A wake has ended, one way or the other."""
        self._running.discard(key)
