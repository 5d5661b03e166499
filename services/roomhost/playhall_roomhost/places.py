"""Places elsewhere for rooms that are to move, as routers say that they found them.

A room host asks nobody where its rooms could go: it shows no secret, and so could ask only for itself. The
routers that have its rooms' connections ask, and will start the rooms again. A room with connections moves
only into a place that one of them named just now, so that nobody is sent away without somewhere to go
(protocols, D1).
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["HOLD_S", "Places"]

HOLD_S = 3.0
"""A place that was not named again for so long may be taken."""


class Places:
    """Offers, by Attach stream. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._offers: dict[int, tuple[int, float]] = {}

    def offer(self, stream: int, count: int, now: float) -> None:
        """The router found so many, in all."""
        self._offers[stream] = (count, now + HOLD_S)

    def take(self, streams: Iterable[int], now: float) -> bool:
        """Use a place that one of these routers found. False: there is none."""
        for stream in streams:
            count, until = self._offers.get(stream, (0, 0.0))
            if count and now < until:
                self._offers[stream] = (count - 1, until)
                return True
        return False

    def forget(self, stream: int) -> None:
        """The router is gone, and nobody would start its rooms."""
        self._offers.pop(stream, None)
