"""When rooms tick: a fixed timestep each, the earliest deadline first, and no room in the others' way.

Tick k of a room is due at exactly `start + k / rate`: computed from the start, never from the tick before,
so that a room neither drifts nor, after a stall, runs its ticks in a bunch. Of ticks whose time has passed
at most two are made up for; older ones are skipped and counted, and the room's own tick number counts only
those that ran. Starts are spread over the tick by the golden ratio, so that rooms that start together do
not tick together.

Of what is due the cheapest rooms go first: a room whose tick took long steps back by several times that,
so that quick rooms tick between the ticks of slow ones, and slow ones share what is left.

A room may also have one timer, for what it must do between ticks. `take` gives what is due, `next_due` says
when to call it again. Nothing here reads a clock.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Scheduler", "Tick", "Timer"]

K = TypeVar("K")

_GOLDEN = (math.sqrt(5) - 1) / 2
MAX_REPLAYED = 2
"""Late ticks that are made up for: a room that stands behind another's long tick loses none by it."""
STEPS_BACK = 8
"""How many times the time of its last tick a room that is due lets others go first."""


@dataclass(frozen=True, slots=True)
class Tick(Generic[K]):
    """A tick that is due: how late it starts, and how many before it were given up."""

    key: K
    late_s: float
    skipped: int


@dataclass(frozen=True, slots=True)
class Timer(Generic[K]):
    """A room's timer is due."""

    key: K


class _Entry(Generic[K]):
    """A room's place. `number` of a heap item that is not the entry's own marks it as outdated."""

    __slots__ = (
        "armed_at",
        "key",
        "last_took_s",
        "next_tick",
        "rate",
        "start",
        "tick_number",
        "timer_at",
        "timer_number",
    )

    def __init__(self, key: K) -> None:
        self.key = key
        self.rate = 0
        self.start = 0.0
        self.next_tick = 0
        self.last_took_s = 0.0
        self.tick_number = 0
        self.timer_at = math.inf
        self.armed_at = math.inf
        self.timer_number = 0

    def due(self) -> float:
        return self.start + self.next_tick / self.rate

    def newest_due(self, now: float) -> int:
        """The number of the last tick whose time has come, by the same sums as `due`."""
        number = math.floor((now - self.start) * self.rate)
        return number + 1 if self.start + (number + 1) / self.rate <= now else number


class Scheduler(Generic[K]):
    """The rooms of a process, by any key that can be hashed."""

    def __init__(self) -> None:
        self._entries: dict[K, _Entry[K]] = {}
        self._heap: list[tuple[float, int, _Entry[K]]] = []
        self._ready: list[tuple[float, int, float, _Entry[K]]] = []
        """What was due when `take` looked: in which order to run it, its number, and when it was due."""
        self._numbers = 0
        self._phase = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key: K) -> None:
        """A room that does not tick yet, but may have a timer."""
        if key in self._entries:
            raise ValueError(f"{key!r} is scheduled already")
        self._entries[key] = _Entry(key)

    def start(self, key: K, rate: int, now: float) -> None:
        """Let a room tick so many times a second, first within one tick's time from now."""
        if rate <= 0:
            raise ValueError(f"a tick rate of {rate} is none")
        entry = self._entries[key]
        self._phase = (self._phase + _GOLDEN) % 1.0
        entry.rate = rate
        entry.start = now + self._phase / rate
        entry.next_tick = 0
        entry.tick_number = self._push(entry.start, entry)

    def stop(self, key: K) -> None:
        """No more ticks; the timer stays."""
        entry = self._entries[key]
        entry.rate = 0
        entry.tick_number = 0

    def remove(self, key: K) -> None:
        """Forget a room. One that is not there is no error."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.rate = entry.tick_number = entry.timer_number = 0

    def set_timer(self, key: K, at: float | None) -> None:
        """Set a room's one timer, or clear it."""
        entry = self._entries[key]
        entry.timer_at = math.inf if at is None else at
        if entry.timer_at < entry.armed_at:
            entry.armed_at = entry.timer_at
            entry.timer_number = self._push(entry.timer_at, entry)

    def took(self, key: K, seconds: float) -> None:
        """How long the room's last tick took. A room that is gone is no error."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.last_took_s = seconds

    def next_due(self) -> float | None:
        """When `take` next has something."""
        self._tidy()
        if self._ready:
            return self._ready[0][2]
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> Tick[K] | Timer[K] | None:
        """What is due, the longest due of the cheapest first; the caller runs it before it takes the next."""
        self._tidy()
        while self._heap and self._heap[0][0] <= now:
            at, number, entry = heapq.heappop(self._heap)
            waits = STEPS_BACK * entry.last_took_s if number == entry.tick_number else 0.0
            heapq.heappush(self._ready, (at + waits, number, at, entry))
            self._tidy()
        if not self._ready:
            return None
        _, number, _, entry = heapq.heappop(self._ready)
        if number == entry.timer_number:
            entry.timer_at = entry.armed_at = math.inf
            entry.timer_number = 0
            return Timer(entry.key)
        return self._take_tick(entry, now)

    def fraction(self, key: K, now: float) -> float:
        """How far a room is between its last tick and the next one, 0 up to 1."""
        entry = self._entries.get(key)
        if entry is None or not entry.rate:
            return 0.0
        return min(max(1.0 - (entry.due() - now) * entry.rate, 0.0), 1.0)

    def _take_tick(self, entry: _Entry[K], now: float) -> Tick[K]:
        newest = entry.newest_due(now)
        skipped = max(0, newest - MAX_REPLAYED - entry.next_tick)
        entry.next_tick += skipped
        late = max(0.0, now - entry.due())
        entry.next_tick += 1
        entry.tick_number = self._push(entry.due(), entry)
        return Tick(entry.key, late, skipped)

    def _push(self, at: float, entry: _Entry[K]) -> int:
        self._numbers += 1
        heapq.heappush(self._heap, (at, self._numbers, entry))
        return self._numbers

    def _tidy(self) -> None:
        """Take from the tops what is outdated."""
        ready, heap = self._ready, self._heap
        while ready and not _is_current(ready[0][2], ready[0][1], ready[0][3]):
            _, number, _, entry = heapq.heappop(ready)
            self._put_off(number, entry)
        while heap and not _is_current(*heap[0]):
            _, number, entry = heapq.heappop(heap)
            self._put_off(number, entry)

    def _put_off(self, number: int, entry: _Entry[K]) -> None:
        """A timer that was put off goes back in only when its old time has come, so that one that is put off
        at every tick does not fill the heap."""
        if number == entry.timer_number:
            entry.armed_at = entry.timer_at
            entry.timer_number = 0 if math.isinf(entry.timer_at) else self._push(entry.timer_at, entry)


def _is_current(at: float, number: int, entry: _Entry[K]) -> bool:
    """Whether an item of a heap is still to run, and then."""
    return number == entry.tick_number or (number == entry.timer_number and at == entry.timer_at)
