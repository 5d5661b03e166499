"""Whether a room keeps its tick rate, and what takes the time if it does not: from its profile."""

from __future__ import annotations

from dataclasses import dataclass

from playhall.engine.profile import WHOLE, Profile, Times

__all__ = ["WINDOW_S", "Pace", "Slow", "measure"]

WINDOW_S = 5
"""Seconds that are looked at: one alone has a tick more or less."""
_ENOUGH = 0.9
"""Of the tick rate; a room with less is slow."""


@dataclass(frozen=True, slots=True)
class Slow:
    """What takes the time. `row`: that which takes most of it; `takes`: how long, in seconds a tick.

    `row` is None where the room's own work fits its ticks: something else holds its process.
    """

    row: str | None
    takes: float


@dataclass(frozen=True, slots=True)
class Pace:
    """`ticks`: how many a second there were."""

    ticks: float
    slow: Slow | None


def measure(profile: Profile, tick_rate: int) -> Pace | None:
    """Return the pace of the last seconds. None: the room has not ticked for so long yet."""
    first = next((ago for ago, rows in profile.seconds() if WHOLE in rows), 0)
    _, rows = profile.over(WINDOW_S)
    if first <= WINDOW_S or WHOLE not in rows:
        return None
    ticks = rows[WHOLE].count / WINDOW_S
    if ticks >= tick_rate * _ENOUGH:
        return Pace(ticks, None)
    return Pace(ticks, _find_slowest(rows, tick_rate))


def _find_slowest(rows: dict[str, Times], tick_rate: int) -> Slow:
    # What runs between ticks holds them up as well, so all rows count and not the whole of the ticks alone.
    own = {name: times.total for name, times in rows.items() if name != WHOLE}
    count = rows[WHOLE].count
    row = max(own, key=own.__getitem__, default=None)
    if row is None or sum(own.values()) / count <= _ENOUGH / tick_rate:
        return Slow(None, rows[WHOLE].total / count)
    return Slow(row, own[row] / count)
