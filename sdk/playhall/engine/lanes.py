"""Lanes: the ways from an Attach stream to a router's clients, and what of them is the same for every frame.

A room host is not trusted. A frame reaches a client only if the client is attached to exactly the generation
that the frame names, if it is of a type that rooms send, and if it is not too large. While nothing waits on a
lane, a frame goes straight to its socket; else the lane's client decides.

`native/packing.pyx` has the twins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from playhall.engine.packing import read_down

__all__ = ["Downlink", "Lane"]

HEADER_BYTES = 10
"""The most that a WebSocket adds to a frame."""
_TOTAL_MASK = (1 << 32) - 1


class Lane:
    """One client's way out.

    `write` puts a frame on the socket, and says how many bytes wait in this process then. `offer` is called
    with a frame that does not go straight through, whether it may be lost, and the time; `waits` when
    something waits behind a frame that did; `look` when it matters what of it has drained by now.
    """

    __slots__ = (
        "busy", "drained", "generation", "given", "held", "live", "look", "offer", "owes", "progress_at",
        "reported", "spare", "waits", "write",
    )  # fmt: skip

    def __init__(
        self,
        write: Callable[[bytes], int],
        offer: Callable[[bytes, bool, float], object],
        waits: Callable[[], object],
        look: Callable[[float], object],
    ) -> None:
        self.write = write
        self.offer = offer
        self.waits = waits
        self.look = look
        self.generation = 0
        """What it is attached to."""
        self.live = False
        """The client is in its room, and nothing is over."""
        self.busy = False
        """Something waits in this process, as far as is known."""
        self.held = 0
        """Frames that are kept back."""
        self.given = 0
        """Bytes of the room's frames, from here to `reported` counted from the join."""
        self.drained = 0
        self.reported = 0
        self.progress_at = 0.0
        """When something drained, or there was nothing to drain."""
        self.spare = -1
        """So many bytes can be sent before the kernel has to be asked again whether too much is unsent."""
        self.owes = False
        """It stands in its downlink's `owing`."""


class Downlink:
    """The lanes of one Attach stream, by the number of their link."""

    def __init__(self, limits: Mapping[int, int], owe_at: int) -> None:
        """`limits`: what a room may send, and how large; `owe_at`: unreported bytes worth a look."""
        self.lanes: dict[int, Lane] = {}
        self.owing: list[int] = []
        """Links with so much unreported."""
        self.dropped = 0
        """Frames that came for nobody, or that no room may send."""
        self._limits = limits
        self._owe_at = owe_at

    def deliver(self, run: bytes, now: float) -> list[int]:
        """Give each link its frames. Returns the links that got what no room may send, whose lanes are closed
        from there. ValueError where it is no run; what came before that has been delivered.
        """
        bad: list[int] = []
        for generation, (links, heads, body, unreliable) in read_down(run):
            shared = heads[0] + body if len(heads) == 1 else None
            for index, number in enumerate(links):
                lane = self.lanes.get(number)
                if lane is None or lane.generation != generation:
                    self.dropped += 1
                    continue
                frame = heads[index] + body if shared is None else shared
                if not frame or len(frame) > self._limits.get(frame[0], 0):
                    self.dropped += 1
                    lane.generation, lane.live = 0, False
                    bad.append(number)
                    continue
                _pass(lane, frame, unreliable, now)
                self._see(number, lane)
        return bad

    def report(self, now: float, *, all_of_it: bool = False) -> tuple[list[int], list[int]]:
        """Links whose clients have drained much since it was last reported, and all that each has by now,
        modulo 2^32; with `all_of_it` those that have drained anything. It counts as reported.
        """
        at_least = 1 if all_of_it else self._owe_at
        links: list[int] = []
        totals: list[int] = []
        owing, self.owing = list(self.lanes) if all_of_it else self.owing, []
        for number in owing:
            lane = self.lanes.get(number)
            if lane is None:
                continue
            if lane.drained != lane.given and lane.given - lane.reported >= at_least:
                lane.look(now)
            if lane.drained - lane.reported >= at_least:
                lane.reported = lane.drained
                links.append(number)
                totals.append(lane.drained & _TOTAL_MASK)
            # What is still on the way may be all the credit there is: then nothing more comes down, and
            # nothing but its own draining would bring the link back here.
            lane.owes = False
            self._see(number, lane)
        return links, totals

    def _see(self, number: int, lane: Lane) -> None:
        """Let a lane with much unreported owe."""
        if not lane.owes and lane.given - lane.reported >= self._owe_at:
            lane.owes = True
            self.owing.append(number)


def _pass(lane: Lane, frame: bytes, unreliable: bool, now: float) -> None:
    if not lane.live or lane.busy or lane.held or (unreliable and lane.spare < 0):
        lane.offer(frame, unreliable, now)
        return
    if lane.given == lane.drained:
        lane.progress_at = now
    lane.given += len(frame)
    lane.spare -= len(frame) + HEADER_BYTES
    if lane.write(frame):
        lane.busy = True
        lane.waits()
    elif lane.spare >= 0:
        lane.drained = lane.given  # as little in the kernel is on its way
