"""How long what a room does takes, second by second: hooks, and the parts of a tick.

What is timed is a row of the profile, by name. A row has its own time only: what is timed within it counts
for itself, so that the rows of a tick add up. `tick` alone is the whole of it, as that is what must fit the
tick rate. Of an async hook each step counts, and none of its waiting.

The clock is given (seconds, from anywhere, never back). What is kept is bounded: MAX_ROWS rows, KEPT_S
seconds, MAX_SAMPLES samples of a row in the second that runs; where there are more, every second one goes. Of
a second that is over MAX_DRAWN are kept, evenly drawn, for the percentiles of the minute.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from playhall.engine.steps import run_marked

__all__ = ["KEPT_S", "MAX_DRAWN", "MAX_ROWS", "MAX_SAMPLES", "OTHER", "WHOLE", "Profile", "Times"]

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
class _Second:
    """One row of a second that is over: `drawn` are samples, in order."""

    times: Times
    drawn: array[float]


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

    def reduced(self) -> _Second:
        ordered = sorted(self.samples)
        p50, p95 = _percentile(ordered, 50), _percentile(ordered, 95)
        return _Second(Times(self.count, p50, p95, self.max, self.total), array("d", _drawn(ordered)))


def _percentile(ordered: list[float], percent: int) -> float:
    """Return the smallest sample that so many per cent of them do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _drawn(ordered: list[float]) -> list[float]:
    """Return the samples, or MAX_DRAWN of them that are spread as they are."""
    many = len(ordered)
    if many <= MAX_DRAWN:
        return ordered
    return [ordered[(2 * n + 1) * many // (2 * MAX_DRAWN)] for n in range(MAX_DRAWN)]


def _join(seconds: list[_Second]) -> Times:
    """Return one row over several seconds: in its percentiles each second has the weight of its count."""
    weighed = sorted(
        (sample, second.times.count / len(second.drawn)) for second in seconds for sample in second.drawn
    )
    count = sum(second.times.count for second in seconds)
    return Times(
        count,
        _weighed_percentile(weighed, count * 0.50),
        _weighed_percentile(weighed, count * 0.95),
        max(second.times.max for second in seconds),
        sum(second.times.total for second in seconds),
    )


def _weighed_percentile(weighed: list[tuple[float, float]], wanted: float) -> float:
    """Return the smallest sample at which the weights come to what is wanted, but for rounding."""
    reached = 0.0
    for sample, weight in weighed:
        reached += weight
        if reached >= wanted - 1e-6:
            return sample
    return weighed[-1][0]


@dataclass(slots=True)
class _Running:
    name: str
    began: float
    inner: float = 0.0


class Profile:
    """The profile of one room. Each `enter` is followed by one `leave`, and they nest."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._running: list[_Running] = []
        self._first = self._second = int(clock())
        self._rows: dict[str, _Row] = {}
        self._done: deque[tuple[int, dict[str, _Second]]] = deque(maxlen=KEPT_S)

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
        if int(now) != self._second:
            self._end_second(int(now))
        row = self._rows.get(running.name)
        if row is None:
            name = running.name if len(self._rows) < MAX_ROWS else OTHER
            row = self._rows.setdefault(name, _Row())
        row.add(took if running.name == WHOLE else took - running.inner)

    def timing(self, name: str) -> AbstractContextManager[None]:
        """Time the block."""
        return _Timing(self, name)

    def stepped(self, name: str, awaitable: Awaitable[Any]) -> Awaitable[Any]:
        """Return an awaitable that awaits this one, and times each of its steps."""
        return _Stepped(awaitable, lambda: self.enter(name), self.leave)

    def seconds(self) -> list[tuple[int, dict[str, Times]]]:
        """Return the seconds that are over, oldest first: how many seconds ago each was, and its rows.

        Those in which nothing ran are left out, and so is the one that runs.
        """
        return [
            (ago, {name: second.times for name, second in rows.items()}) for ago, rows in self._over(KEPT_S)
        ]

    def over(self, seconds: int) -> tuple[int, dict[str, Times]]:
        """Return the rows of so many seconds together (at most KEPT_S), as far as they are over.

        The first of the two is how many seconds that are: fewer in a profile that has just begun, and none
        in its first. Then there are no rows.
        """
        joined: dict[str, list[_Second]] = {}
        for _, rows in self._over(seconds):
            for name, second in rows.items():
                joined.setdefault(name, []).append(second)
        covered = min(seconds, int(self._clock()) - self._first)
        return covered, {name: _join(parts) for name, parts in joined.items()}

    def _over(self, seconds: int) -> list[tuple[int, dict[str, _Second]]]:
        now = int(self._clock())
        done = list(self._done)
        if now != self._second and self._rows:
            done.append((self._second, self._reduced()))
        return [(now - at, rows) for at, rows in done if now - at <= seconds]

    def _end_second(self, second: int) -> None:
        if self._rows:
            self._done.append((self._second, self._reduced()))
        self._second, self._rows = second, {}

    def _reduced(self) -> dict[str, _Second]:
        return {name: row.reduced() for name, row in self._rows.items()}


class _Timing(AbstractContextManager[None]):
    """A block that is timed."""

    __slots__ = ("_name", "_profile")

    def __init__(self, profile: Profile, name: str) -> None:
        self._profile = profile
        self._name = name

    def __enter__(self) -> None:
        self._profile.enter(self._name)

    def __exit__(self, *raised: object) -> None:
        self._profile.leave()


class _Stepped:
    """An awaitable whose steps are entered and left."""

    def __init__(
        self, awaitable: Awaitable[Any], enter: Callable[[], None], leave: Callable[[], None]
    ) -> None:
        self._arguments = (awaitable, enter, leave)

    def __await__(self) -> Generator[Any, Any, Any]:
        return run_marked(*self._arguments)
