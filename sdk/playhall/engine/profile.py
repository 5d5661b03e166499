"""How long what a room does takes, second by second: hooks, and the parts of a tick.

What is timed is a row of the profile, by name. A row has its own time only: what is timed within it counts
for itself, so that the rows of a tick add up. `tick` alone is the whole of it, as that is what must fit the
tick rate. Of an async hook each step counts, and none of its waiting. A part of a tick in which there is
nothing to do has no row.

The clock is given (seconds, from anywhere, never back). What is kept is bounded: MAX_ROWS rows, KEPT_S
seconds, MAX_SAMPLES samples of a row in the second that runs; where there are more, every second one goes. Of
a second that is over MAX_DRAWN are kept, evenly drawn, for the percentiles of the minute.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from playhall.engine.running import Timers
from playhall.engine.steps import run_marked
from playhall.engine.timers import (
    KEPT_S,
    MAX_DRAWN,
    MAX_ROWS,
    MAX_SAMPLES,
    OTHER,
    WHOLE,
    Second,
    Times,
)

__all__ = ["KEPT_S", "MAX_DRAWN", "MAX_ROWS", "MAX_SAMPLES", "OTHER", "WHOLE", "Profile", "Times"]


class Profile(Timers):
    """The profile of one room."""

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
        joined: dict[str, list[Second]] = {}
        for _, rows in self._over(seconds):
            for name, second in rows.items():
                joined.setdefault(name, []).append(second)
        covered = min(seconds, self.now() - self.first)
        return covered, {name: _join(parts) for name, parts in joined.items()}

    def _over(self, seconds: int) -> list[tuple[int, dict[str, Second]]]:
        now = self.now()
        done = list(self.done)
        if now != self.second and (rows := self.rows()):
            done.append((self.second, rows))
        return [(now - at, rows) for at, rows in done if now - at <= seconds]


def _join(seconds: list[Second]) -> Times:
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


class _Stepped:
    """An awaitable whose steps are entered and left."""

    def __init__(
        self, awaitable: Awaitable[Any], enter: Callable[[], None], leave: Callable[[], None]
    ) -> None:
        self._arguments = (awaitable, enter, leave)

    def __await__(self) -> Generator[Any, Any, Any]:
        return run_marked(*self._arguments)
