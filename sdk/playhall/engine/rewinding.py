"""A room's histories: recording them at the end of each tick, and looking back.

They take 8 MB a room at most. What an entity takes is counted as 8 bytes a field and tick kept, and 128 more,
whatever the rings themselves take; and from its first moment until the last one it was in is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeVar

from playhall.engine.backend import native
from playhall.engine.history import History, Past, recorded_by
from playhall.engine.kinds import Entity
from playhall.engine.outputs import LogOut
from playhall.engine.runtime import Runtime

if TYPE_CHECKING or not native:
    from playhall.engine.rings import Ring
else:
    from playhall.engine.native.rings import Ring

__all__ = ["MAX_HISTORY", "MAX_REWIND_MS", "Rewinding", "Ring", "depth_of"]

E = TypeVar("E", bound=Entity)

MAX_REWIND_MS: Final = 250
MAX_HISTORY: Final = 8 * 1024 * 1024
"""Bytes of a room's histories."""

_SPARE_TICKS = 2
_FIELD_BYTES = 8
_ENTITY_BYTES = 128


def depth_of(tick_rate: int) -> int:
    """Return how many ticks are kept: as many as MAX_REWIND_MS has, and two."""
    return -(-MAX_REWIND_MS * tick_rate // 1000) + _SPARE_TICKS


class Rewinding:
    """The histories of one room, empty as it starts."""

    __slots__ = ("_full", "_rings", "_room", "_runtime", "_shares", "_used", "records")

    def __init__(
        self, room: str, runtime: Runtime, histories: Sequence[History[Any]], tick_rate: int
    ) -> None:
        """`room` is the name of its class, for errors."""
        depth = depth_of(tick_rate)
        self._room = room
        self._runtime = runtime
        self._rings = {
            history: Ring(runtime.store, history.kind, recorded_by(history), depth) for history in histories
        }
        self._shares = [
            (ring, history, _FIELD_BYTES * len(history.fields) * depth + _ENTITY_BYTES)
            for history, ring in self._rings.items()
        ]
        self.records = bool(histories)
        """Whether there is any history."""
        self._used = 0
        self._full = False

    def record(self) -> None:
        """Record the tick that has just been sent."""
        tick = self._runtime.tick
        for ring, history, share in self._shares:
            others = self._used - share * ring.held
            unrecorded = ring.record(tick, (MAX_HISTORY - others) // share)
            self._used = others + share * ring.held
            if unrecorded and not self._full:
                self._full = True
                self._report(history, unrecorded)

    def rewind(self, history: History[E], tick: float) -> Past[E]:
        """Return what was at a tick. Raises ValueError or TypeError for what cannot be."""
        ring = self._rings.get(history)
        if ring is None:
            raise self._not_listed(history)
        if type(tick) is not float or not isfinite(tick):
            tick = _as_tick(tick)
        return Past(history, ring.rewind(tick, self._runtime.tick))

    def _not_listed(self, history: object) -> Exception:
        if isinstance(history, History):
            return ValueError(f"{self._room}.history does not list {history!r}, so nothing of it is recorded")
        return TypeError(f"rewind takes a History, one that {self._room}.history lists, and not {history!r}")

    def _report(self, history: History[Any], unrecorded: int) -> None:
        fields = {"kind": history.kind.kind, "unrecorded": unrecorded, "max_bytes": MAX_HISTORY}
        self._runtime.emit(LogOut("error", "room.history_full", fields))


def _as_tick(tick: object) -> float:
    if isinstance(tick, bool) or not isinstance(tick, Real):
        raise TypeError(f"a tick is a number, not {type(tick).__name__}")
    try:
        number = float(tick)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise ValueError(f"a tick is finite, and {tick!r:.40} is not")
    return number
