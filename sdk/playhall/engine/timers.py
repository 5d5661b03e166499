"""Timing what a room does: the rows of the second that runs, and those of the seconds that are over.

Here is what runs many thousand times a second; `profile` says what the rows mean, and adds them up. The pure
twin of `native.running`.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

__all__ = ["KEPT_S", "MAX_DRAWN", "MAX_ROWS", "MAX_SAMPLES", "OTHER", "WHOLE", "Second", "Timers", "Times"]

KEPT_S = 60
MAX_ROWS = 64
MAX_SAMPLES = 512
MAX_DRAWN = 32
WHOLE = "tick"
OTHER = "other"
"""The row of what there is no place for."""


@dataclass(frozen=True, slots=True)
class Times:
    """One row of a second or of more, in seconds. `count`: how often it ran; `total`: for how long."""

    count: int
    p50: float
    p95: float
    max: float
    total: float


@dataclass(frozen=True, slots=True)
class Second:
    """One row of a second that is over: `drawn` are samples, in order."""

    times: Times
    drawn: Sequence[float]


@dataclass(slots=True)
class _Row:
    count: int = 0
    max: float = 0.0
    total: float = 0.0
    samples: list[float] = field(default_factory=list)
    # One of so many is sampled.
    stride: int = 1

    def add(self, seconds: float) -> None:
        self.count += 1
        self.max = max(self.max, seconds)
        self.total += seconds
        if self.count % self.stride == 0:
            self.samples.append(seconds)
            if len(self.samples) > MAX_SAMPLES:
                self.samples = self.samples[::2]
                self.stride *= 2

    def reduced(self) -> Second:
        ordered = sorted(self.samples)
        p50, p95 = _percentile(ordered, 50), _percentile(ordered, 95)
        return Second(Times(self.count, p50, p95, self.max, self.total), array("d", _drawn(ordered)))


def _percentile(ordered: list[float], percent: int) -> float:
    """Return the smallest sample that so many per cent of them do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _drawn(ordered: list[float]) -> list[float]:
    """Return the samples, or MAX_DRAWN of them that are spread as they are."""
    many = len(ordered)
    if many <= MAX_DRAWN:
        return ordered
    return [ordered[(2 * n + 1) * many // (2 * MAX_DRAWN)] for n in range(MAX_DRAWN)]


@dataclass(slots=True)
class _Running:
    name: str
    began: float
    inner: float = 0.0


class Timers:
    """What runs now, and the rows of the last KEPT_S seconds. `enter` and `leave` come in pairs, and nest.

    `clock` gives seconds from anywhere, and never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._running: list[_Running] = []
        self.first = self.second = int(clock())
        """The second in which it began, and the one that `rows` are of."""
        self._rows: dict[str, _Row] = {}
        self.done: deque[tuple[int, dict[str, Second]]] = deque(maxlen=KEPT_S)
        """The seconds that are over and in which something ran, oldest first."""

    def now(self) -> int:
        """Return which second it is."""
        return int(self._clock())

    def enter(self, name: str) -> None:
        """What belongs to this row begins."""
        self._running.append(_Running(name, self._clock()))

    def leave(self) -> None:
        """What was entered last is done."""
        now = self._clock()
        running = self._running.pop()
        took = now - running.began
        if self._running:
            self._running[-1].inner += took
        if int(now) != self.second:
            self._end_second(int(now))
        row = self._rows.get(running.name)
        if row is None:
            name = running.name if len(self._rows) < MAX_ROWS else OTHER
            row = self._rows.setdefault(name, _Row())
        row.add(took if running.name == WHOLE else took - running.inner)

    def timing(self, name: str) -> AbstractContextManager[None]:
        """Return what times a block: as often as it is entered, and it may be within itself."""
        return Timing(self, name)

    def rows(self) -> dict[str, Second]:
        """Return the rows of `second` so far."""
        return {name: row.reduced() for name, row in self._rows.items()}

    def _end_second(self, second: int) -> None:
        if self._rows:
            self.done.append((self.second, self.rows()))
        self.second, self._rows = second, {}


class Timing(AbstractContextManager[None]):
    """A block that is timed."""

    __slots__ = ("_name", "_timers")

    def __init__(self, timers: Timers, name: str) -> None:
        self._timers = timers
        self._name = name

    def __enter__(self) -> None:
        self._timers.enter(self._name)

    def __exit__(self, *raised: object) -> None:
        self._timers.leave()
