"""A process's side of one Attach stream: which links are in which room, and what waits to go down.

A sans-IO core. Rooms know a connection by one number, the stream's in its upper half and the router's in
the lower, so that no table has to translate. What rooms say gathers here and leaves in batches; nothing
that a tick does waits for the stream. While more than 2 MB wait, the stream's connections count as without
credit and unreliable frames are dropped; a stream that takes nothing at all is broken off at 16 MB, and its
router comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.packing import Group

__all__ = ["LINK_MASK", "AttachStream", "Clock", "link_number", "split", "stream_of"]

R = TypeVar("R")

STREAM_SHIFT = 32
LINK_MASK = (1 << STREAM_SHIFT) - 1
MAX_PENDING_BYTES = 2 * 1024 * 1024
MAX_BROKEN_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 1024 * 1024
MAX_LINKS = 65_536
_OVERHEAD = 32


def link_number(stream: int, link: int) -> int:
    """The number by which rooms know a router's link."""
    return stream << STREAM_SHIFT | link


def stream_of(number: int) -> int:
    """The stream of such a number."""
    return number >> STREAM_SHIFT


@dataclass(frozen=True, slots=True)
class Clock(Generic[R]):
    """Where a room's time is; `fraction` is in 1/256 of a tick."""

    room: R
    tick: int
    fraction: int


class AttachStream(Generic[R]):
    """One router process's stream. `R` is a room, and compared by identity."""

    def __init__(self, number: int, router_id: str) -> None:
        self.number = number
        self.router_id = router_id
        self.links: dict[int, R] = {}
        """The rooms of the router's links."""
        self._room_numbers: dict[R, int] = {}
        self._next_room_number = 1
        self._items: list[pb.Down] = []
        self._sizes: list[int] = []
        self._clocks: list[Clock[R]] = []
        self._beat = False
        self._bytes = 0
        self.held = False
        """What the stream's connections were told last: whether they are without credit."""
        self.dropped = 0
        """Unreliable frames that were dropped because too much waits."""

    # Links.

    def admit(self, link: int, room: R) -> bool:
        """A router's new link goes to this room. False: the number is in use, or there are too many."""
        if link in self.links or len(self.links) >= MAX_LINKS:
            return False
        self.links[link] = room
        return True

    def release(self, link: int) -> R | None:
        """The link is over; gives its room. One that is not there is no error."""
        return self.links.pop(link, None)

    def forget(self, room: R) -> None:
        """The room is gone, and so are its links."""
        self._room_numbers.pop(room, None)
        for link in [link for link, other in self.links.items() if other is room]:
            del self.links[link]

    def room_number(self, room: R) -> int:
        """The room's number on this stream, for its clock."""
        number = self._room_numbers.get(room)
        if number is None:
            number = self._room_numbers[room] = self._next_room_number
            self._next_room_number += 1
        return number

    @property
    def rooms(self) -> Iterable[R]:
        """Rooms whose clock the router follows."""
        return self._room_numbers.keys()

    # Down.

    @property
    def stalled(self) -> bool:
        """Whether so much waits that its connections are without credit."""
        return self._bytes > MAX_PENDING_BYTES

    @property
    def broken(self) -> bool:
        """Whether so much waits that the stream is given up."""
        return self._bytes > MAX_BROKEN_BYTES

    @property
    def pending_bytes(self) -> int:
        return self._bytes

    def frames(self, generation: int, out: Group, indices: list[int] | None) -> None:
        """Queue a room's frame for its links at `indices` of `out`; None: for all of them."""
        if out.unreliable and self.stalled:
            self.dropped += 1
            return
        links, heads = out.links, out.heads
        if indices is not None:
            links = [links[i] for i in indices]
            heads = heads if len(heads) <= 1 else [heads[i] for i in indices]
        down = pb.Down(
            links=[link & LINK_MASK for link in links],
            generation=generation,
            heads=heads,
            body=out.body,
            unreliable=out.unreliable,
        )
        self._push(down, len(out.body) + sum(map(len, heads)) + 4 * len(links))

    def say(self, down: pb.Down) -> None:
        """Queue what is no frame."""
        self._push(down, 0)

    def discard(self, generation: int) -> None:
        """Drop what waits of a generation that is not ours any more."""
        kept = [
            (down, size)
            for down, size in zip(self._items, self._sizes, strict=True)
            if down.generation != generation
        ]
        self._items = [down for down, _ in kept]
        self._sizes = [size for _, size in kept]
        self._bytes = sum(self._sizes)

    def tell_clocks(self, clocks: Iterable[Clock[R]]) -> None:
        """With the next batch, say where these rooms are."""
        self._clocks = list(clocks)

    def beat(self) -> None:
        """With the next batch, or alone, say that the loop is alive."""
        self._beat = True

    def take(self) -> pb.AttachResponse | None:
        """The next batch; None: there is nothing to say."""
        if not (self._items or self._clocks or self._beat):
            return None
        response = pb.AttachResponse(items=self._take_items())
        response.heartbeat = self._beat and not response.items
        for clock in self._clocks:
            number = self._room_numbers.get(clock.room)
            if number is not None:
                response.clocks.add(room_no=number, tick=clock.tick, fraction=clock.fraction)
        self._clocks = []
        self._beat = False
        return response

    def _push(self, down: pb.Down, size: int) -> None:
        size += _OVERHEAD
        self._items.append(down)
        self._sizes.append(size)
        self._bytes += size

    def _take_items(self) -> list[pb.Down]:
        if self._bytes <= BATCH_BYTES:
            items, self._items, self._sizes, self._bytes = self._items, [], [], 0
            return items
        count = taken = 0
        for size in self._sizes:
            if count and taken + size > BATCH_BYTES:
                break
            count += 1
            taken += size
        items, self._items = self._items[:count], self._items[count:]
        self._sizes = self._sizes[count:]
        self._bytes -= taken
        return items


def split(out: Group) -> dict[int, list[int]]:
    """The indices of a frame's links, by stream."""
    parts: dict[int, list[int]] = {}
    for index, link in enumerate(out.links):
        parts.setdefault(stream_of(link), []).append(index)
    return parts
