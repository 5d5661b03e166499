"""The way in of what comes most: frames of clients, and the credit they give back.

This is the pure twin of `native.running`, and all of it is the general way. The native one has a fast way for
the usual message: a joined link's, well-formed, while no hook waits. It does the same as `Receiving.receive`
and `Hooks.run` do, in C; whatever else it meets it leaves to them, and has done nothing by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from playhall.engine.links import Link, LinkState

if TYPE_CHECKING:
    from playhall.engine.room import Room
    from playhall.engine.runtime import Runtime

__all__ = ["Intake"]


class Intake:
    """Of one room. `links` are its links by number, as they come and go.

    `slow` takes a frame of a link that has joined, `early` one of a link that has not; `decode` reads JSON,
    and raises for what is none.
    """

    def __init__(
        self,
        runtime: Runtime,
        room: Room[Any, Any, Any],
        links: Mapping[int, Link],
        slow: Callable[[Link, bytes], None],
        early: Callable[[Link, bytes], None],
        decode: Callable[[bytes], Any],
    ) -> None:
        self._runtime = runtime
        self._links = links
        self._slow = slow
        self._early = early

    def receive(self, number: int, frame: bytes) -> None:
        """Take a frame of a link. Those of a link that has gone are dropped."""
        link = self._links.get(number)
        if link is None:
            return
        if link.state is LinkState.JOINED:
            self._slow(link, frame)
        else:
            self._early(link, frame)

    def receive_all(self, frames: Sequence[tuple[int, bytes]], start: int, until: float) -> int:
        """Take frames from `start` on, and return how many: all, or up to the first that is done at `until`
        or later, by the watch.
        """
        watch = self._runtime.hooks.watch
        for n in range(start, len(frames)):
            self.receive(*frames[n])
            if watch is not None and watch.past(until):
                return n + 1 - start
        return len(frames) - start

    def drained(self, number: int, total: int, mono: float) -> bool:
        """Note how much a link has drained. Returns whether that is not all there is to do: then nothing was
        noted.
        """
        return number in self._links
