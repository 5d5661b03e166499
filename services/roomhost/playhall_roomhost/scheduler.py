"""When rooms tick: a fixed timestep each, the earliest deadline first, and no room in the others' way.

Tick k of a room is due at exactly `start + k / rate`: computed from the start, never from the tick before,
so that a room neither drifts nor, after a stall, runs its ticks in a bunch. Of ticks whose time has passed
at most two are made up for; older ones are skipped and counted, and the room's own tick number counts only
those that ran.

Rooms of one rate share a few starts, about 25 ms apart: many rooms tick in one pass of the loop, and what
they say leaves in one message, while rooms that start together are spread over those by the golden ratio.
Each pass that has something to say costs a host, a router and a shard about two milliseconds of CPU, however
little it is: at 20 ticks a second there are 40 passes, and a tick waits for half of the rooms at most.

Of what is due the cheapest rooms go first: a room whose tick took long steps back by several times that,
so that quick rooms tick between the ticks of slow ones, and slow ones share what is left.

A room may also have one timer, for what it must do between ticks. `take` gives what is due, `next_due` says
when to call it again. Nothing here reads a clock.
"""

from __future__ import annotations

import heapq
import math
from typing import Generic, TypeVar

import msgspec

__all__ = ["Scheduler", "Tick", "Timer"]

K = TypeVar("K")

_GOLDEN = (math.sqrt(5) - 1) / 2
GRID_S = 1 / 40
"""About how far the starts of rooms of one rate are apart."""
MAX_REPLAYED = 2
"""Late ticks that are made up for: a room that stands behind another's long tick loses none by it."""
STEPS_BACK = 8
"""How many times the time of its last tick a room that is due lets others go first."""


class Tick(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """A tick that is due: how late it starts, and how many before it were given up."""

    key: K
    late_s: float
    skipped: int


class Timer(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """A room's timer is due."""

    key: K


class _Entry(Generic[K]):
    """A room's place. `number` of a heap item that is not the entry's own marks it as outdated."""

    __slots__ = (
        "armed_at",
        "key",
        "last_took_s",
        "next_tick",
        "phase",
        "tick_number",
        "timer_at",
        "timer_number",
    )

    def __init__(self, key: K) -> None:
        self.key = key
        self.phase: _Phase[K] | None = None
        """Where it ticks; None: it does not."""
        self.next_tick = 0
        """Counted as its phase counts."""
        self.last_took_s = 0.0
        self.tick_number = 0
        self.timer_at = math.inf
        self.armed_at = math.inf
        self.timer_number = 0


class _Phase(Generic[K]):
    """The rooms of one rate that tick together, at `start + n / rate`."""

    __slots__ = ("entries", "next", "rate", "start")

    def __init__(self, start: float, rate: int) -> None:
        self.start = start
        self.rate = rate
        self.next = 0
        """The first n that `take` has not come to."""
        self.entries: dict[_Entry[K], None] = {}

    def due(self, number: int) -> float:
        return self.start + number / self.rate

    def newest_due(self, now: float) -> int:
        """The last n whose time has come, by the same sums as `due`."""
        number = math.floor((now - self.start) * self.rate)
        return number + 1 if self.due(number + 1) <= now else number


class _Rate(Generic[K]):
    """The phases that rooms of one rate tick in, by their place on the grid."""

    __slots__ = ("epoch", "phases", "places", "rate")

    def __init__(self, rate: int, epoch: float) -> None:
        self.rate = rate
        self.epoch = epoch
        self.places = max(1, round(1 / (rate * GRID_S)))
        self.phases: dict[int, _Phase[K]] = {}


def _whole_ms(at: float) -> float:
    """The next whole millisecond: timers know no others, and would be late by the rest."""
    return math.ceil(at * 1_000) / 1_000


class Scheduler(Generic[K]):
    """The rooms of a process, by any key that can be hashed."""

    def __init__(self) -> None:
        self._entries: dict[K, _Entry[K]] = {}
        self._rates: dict[int, _Rate[K]] = {}
        self._phases: list[tuple[float, int, _Phase[K]]] = []
        """A heap: when each phase is due next."""
        self._timers: list[tuple[float, int, _Entry[K]]] = []
        """A heap: when timers are due."""
        self._ready: list[tuple[float, int, float, _Entry[K]]] = []
        """A heap, of what was due when `take` looked: in which order to run it, its number, and when it was
        due."""
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
        self._leave_phase(entry)
        entry.phase = phase = self._next_phase(rate, now)
        entry.next_tick = max(phase.next, math.ceil((now - phase.start) * rate))
        phase.entries[entry] = None

    def stop(self, key: K) -> None:
        """No more ticks; the timer stays."""
        self._leave_phase(self._entries[key])

    def remove(self, key: K) -> None:
        """Forget a room. One that is not there is no error."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._leave_phase(entry)
            entry.timer_number = 0

    def set_timer(self, key: K, at: float | None) -> None:
        """Set a room's one timer, or clear it."""
        entry = self._entries[key]
        entry.timer_at = math.inf if at is None else at
        if entry.timer_at < entry.armed_at:
            entry.armed_at = entry.timer_at
            entry.timer_number = self._arm(entry.timer_at, entry)

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
        return min((heap[0][0] for heap in (self._phases, self._timers) if heap), default=None)

    def next_ticks_in(self, now: float) -> float:
        """In how many seconds rooms tick next, of those whose time has not come; 0: in none."""
        self._tidy_phases()
        return max(0.0, self._phases[0][0] - now) if self._phases else 0.0

    def take(self, now: float) -> Tick[K] | Timer[K] | None:
        """What is due, the longest due of the cheapest first; the caller runs it before it takes the next."""
        phases, timers, ready = self._phases, self._timers, self._ready
        while phases and phases[0][0] <= now:
            self._reach(heapq.heappop(phases)[2], now)
        while timers and timers[0][0] <= now:
            at, number, entry = heapq.heappop(timers)
            if number == entry.timer_number:
                heapq.heappush(ready, (at, number, at, entry))
        while ready:
            _, number, at, entry = heapq.heappop(ready)
            if number == entry.tick_number:
                return self._take_tick(entry, at, now)
            if number != entry.timer_number:
                continue
            if at != entry.timer_at:
                self._put_off(entry)
                continue
            entry.timer_at = entry.armed_at = math.inf
            entry.timer_number = 0
            return Timer(entry.key)
        return None

    def fraction(self, key: K, now: float) -> float:
        """How far a room is between its last tick and the next one, 0 up to 1."""
        entry = self._entries.get(key)
        phase = None if entry is None else entry.phase
        if entry is None or phase is None:
            return 0.0
        return min(max(1.0 - (phase.due(entry.next_tick) - now) * phase.rate, 0.0), 1.0)

    # Ticks.

    def _next_phase(self, rate: int, now: float) -> _Phase[K]:
        """The phase of the next room that starts."""
        group = self._rates.get(rate)
        if group is None:
            group = self._rates[rate] = _Rate(rate, _whole_ms(now))
        self._phase = (self._phase + _GOLDEN) % 1.0
        place = math.floor(self._phase * group.places)
        phase = group.phases.get(place)
        if phase is None:
            start = _whole_ms(group.epoch + place / (group.places * rate))
            phase = group.phases[place] = _Phase(start, rate)
            phase.next = max(0, math.ceil((now - phase.start) * rate))
            self._await(phase)
        return phase

    def _leave_phase(self, entry: _Entry[K]) -> None:
        phase, entry.phase, entry.tick_number = entry.phase, None, 0
        if phase is None:
            return
        del phase.entries[entry]
        if not phase.entries:
            group = self._rates[phase.rate]
            group.phases = {place: other for place, other in group.phases.items() if other is not phase}
            if not group.phases:
                del self._rates[phase.rate]

    def _await(self, phase: _Phase[K]) -> None:
        self._numbers += 1
        heapq.heappush(self._phases, (phase.due(phase.next), self._numbers, phase))

    def _reach(self, phase: _Phase[K], now: float) -> None:
        """A phase's time has come: its rooms are ready, but for those that still are from the time before."""
        if not phase.entries:
            return
        newest = phase.newest_due(now)
        phase.next = newest + 1
        for entry in phase.entries:
            if not entry.tick_number and entry.next_tick <= newest:
                self._make_ready(entry, phase)
        self._await(phase)

    def _make_ready(self, entry: _Entry[K], phase: _Phase[K]) -> None:
        self._numbers = entry.tick_number = self._numbers + 1
        at = phase.due(entry.next_tick)
        heapq.heappush(self._ready, (at + STEPS_BACK * entry.last_took_s, entry.tick_number, at, entry))

    def _take_tick(self, entry: _Entry[K], at: float, now: float) -> Tick[K]:
        """A tick that was due at `at`. Its phase has come to all that is due now."""
        phase = entry.phase
        assert phase is not None, "only what ticks has a tick number"
        skipped = phase.next - 1 - MAX_REPLAYED - entry.next_tick
        if skipped > 0:
            entry.next_tick += skipped
            at = phase.due(entry.next_tick)
        else:
            skipped = 0
        entry.next_tick += 1
        entry.tick_number = 0
        if entry.next_tick < phase.next:
            self._make_ready(entry, phase)
        return Tick(entry.key, now - at if now > at else 0.0, skipped)

    # Timers.

    def _arm(self, at: float, entry: _Entry[K]) -> int:
        self._numbers += 1
        heapq.heappush(self._timers, (at, self._numbers, entry))
        return self._numbers

    def _put_off(self, entry: _Entry[K]) -> None:
        """A timer that was put off goes back in only when its old time has come, so that one that is put off
        at every tick does not fill the heap."""
        entry.armed_at = entry.timer_at
        entry.timer_number = 0 if math.isinf(entry.timer_at) else self._arm(entry.timer_at, entry)

    def _tidy(self) -> None:
        """Take from the tops what is outdated."""
        while self._ready:
            _, number, at, entry = self._ready[0]
            if number == entry.tick_number or (number == entry.timer_number and at == entry.timer_at):
                break
            heapq.heappop(self._ready)
            if number == entry.timer_number:
                self._put_off(entry)
        while self._timers:
            at, number, entry = self._timers[0]
            if number == entry.timer_number and at == entry.timer_at:
                break
            heapq.heappop(self._timers)
            if number == entry.timer_number:
                self._put_off(entry)
        self._tidy_phases()

    def _tidy_phases(self) -> None:
        while self._phases and not self._phases[0][2].entries:
            heapq.heappop(self._phases)
