"""Which rooms a router wakes first when many are to be woken: those most people wait for.

A room host that dies leaves up to 250 rooms; woken all at once, none is back quickly. A start may also take
as long as room code takes to wake, so no project has more than a share of what is under way: slow rooms of
one hold up nobody else's.
"""

from __future__ import annotations

import heapq
from collections import Counter

__all__ = ["MAX_PROJECT_WAKES", "MAX_WAKES", "WakeQueue"]

MAX_WAKES = 64
"""Starts under way at once, in one router process."""
MAX_PROJECT_WAKES = 16
"""Those of one project."""


class WakeQueue:
    """A queue with room for `limit` under way, `project_limit` of one project. Each key is in it once."""

    def __init__(self, limit: int = MAX_WAKES, project_limit: int = MAX_PROJECT_WAKES) -> None:
        self._limit = limit
        self._project_limit = project_limit
        self._heaps: dict[str, list[tuple[int, int, str]]] = {}
        """What waits, by project."""
        self._waiting: set[str] = set()
        self._running: dict[str, str] = {}
        """What is under way, and its project."""
        self._shares: Counter[str] = Counter()
        self._counter = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are under way."""
        return len(self._running)

    def add(self, key: str, project: str, people: int) -> None:
        """A room is to be woken, for so many people. Once it is queued, more people change nothing."""
        if key in self._waiting or key in self._running:
            return
        self._waiting.add(key)
        self._counter += 1
        heapq.heappush(self._heaps.setdefault(project, []), (-people, self._counter, key))

    def take(self) -> list[str]:
        """The rooms to wake now. Each is under way until `done`."""
        keys = []
        while len(self._running) < self._limit:
            fit = [name for name in self._heaps if self._shares[name] < self._project_limit]
            if not fit:
                break
            keys.append(self._pop(min(fit, key=lambda name: self._heaps[name][0])))
        return keys

    def _pop(self, project: str) -> str:
        heap = self._heaps[project]
        _, _, key = heapq.heappop(heap)
        if not heap:
            del self._heaps[project]
        self._waiting.remove(key)
        self._running[key] = project
        self._shares[project] += 1
        return key

    def done(self, key: str) -> None:
        """A wake has ended, one way or the other."""
        project = self._running.pop(key, None)
        if project is not None:
            self._shares[project] -= 1
            if not self._shares[project]:
                del self._shares[project]
