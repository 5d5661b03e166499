"""Joins that come before a room takes them.

While a room starts nobody comes in. After a failover its people are still on their way, from several routers:
for a second those come in who were in before, and newcomers wait, so that none takes the seat of somebody who
had one (protocols, M7).
"""

from __future__ import annotations

import enum

from playhall.engine.outputs import JoinRequest, WakeInfo

__all__ = ["MAX_ARRIVALS", "NEWCOMERS_WAIT_S", "Arrivals", "brings_people"]

NEWCOMERS_WAIT_S = 1.0
"""How long a room that its people come back to is theirs alone."""
MAX_ARRIVALS = 1_024
_PEOPLE_WAIT_S = 30.0
"""After this long nobody is held any more for whom a seat would have to be kept."""


def brings_people(wake: WakeInfo) -> bool:
    """Whether those who were in the room before are expected back."""
    return wake.reason in ("crash", "deploy") and wake.elapsed < _PEOPLE_WAIT_S


class _Open(enum.Enum):
    TO_NOBODY = enum.auto()
    TO_WHO_WAS_IN = enum.auto()
    TO_ALL = enum.auto()


class Arrivals:
    """Those who wait at a room's door, by link."""

    def __init__(self) -> None:
        self._open = _Open.TO_NOBODY
        self._waiting: dict[int, JoinRequest] = {}

    @property
    def is_open(self) -> bool:
        """Whether anybody may enter."""
        return self._open is not _Open.TO_NOBODY

    def may_enter(self, request: JoinRequest) -> bool:
        """Whether this join need not wait."""
        return self._open is _Open.TO_ALL or (self._open is _Open.TO_WHO_WAS_IN and request.was_joined)

    def wait(self, link: int, request: JoinRequest) -> bool:
        """Keep a join until it may enter. False: there are too many."""
        if len(self._waiting) >= MAX_ARRIVALS:
            return False
        self._waiting[link] = request
        return True

    def forget(self, link: int) -> None:
        """A connection is gone; one that does not wait is no error."""
        self._waiting.pop(link, None)

    def clear(self) -> None:
        """The room is over."""
        self._waiting.clear()

    def open(self, *, to_all: bool) -> list[tuple[int, JoinRequest]]:
        """The room takes joins, those of who was in before or all; gives who waited for that, in order."""
        self._open = _Open.TO_ALL if to_all else _Open.TO_WHO_WAS_IN
        enter = [(link, request) for link, request in self._waiting.items() if self.may_enter(request)]
        for link, _ in enter:
            del self._waiting[link]
        return sorted(enter, key=lambda each: not each[1].was_joined)
