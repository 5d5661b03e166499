"""A process's side of one Attach stream: which links are in which room, and what waits to go down.

A sans-IO core. Rooms know a connection by one number, the stream's in its upper half and the router's in
the lower, so that no table has to translate. What rooms say gathers here and leaves in batches; nothing
that a tick does waits for the stream. While more than 2 MB wait, the stream's connections count as without
credit and unreliable frames are dropped; a stream that takes nothing at all is broken off at 16 MB, and its
router comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.backend import reliable_only
from playhall.engine.packing import STREAM_SHIFT, stream_of

__all__ = ["LINK_MASK", "AttachStream", "Clock", "link_number", "stream_of"]

R = TypeVar("R")

LINK_MASK = (1 << STREAM_SHIFT) - 1
MAX_PENDING_BYTES = 2 * 1024 * 1024
MAX_BROKEN_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 1024 * 1024
MAX_LINKS = 65_536
_OVERHEAD = 32


def link_number(stream: int, link: int) -> int:
    """The number by which rooms know a router's link."""
    return stream << STREAM_SHIFT | link


class Clock(NamedTuple):
    """Where a room's time is; `fraction` is in 1/256 of a tick."""

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
        self._items: list[tuple[int, int, bytes | pb.Down]] = []
        """What waits: of which generation, for how many bytes it counts, a run of frames or what is none."""
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

    def frames(self, generation: int, run: bytes) -> None:
        """Queue a room's frames, a run of groups as `route` makes it."""
        if self._bytes > MAX_PENDING_BYTES:
            run, dropped = reliable_only(run)
            self.dropped += dropped
        if run:
            size = len(run) + _OVERHEAD
            self._items.append((generation, size, run))
            self._bytes += size

    def say(self, down: pb.Down) -> None:
        """Queue what is no frame."""
        self._items.append((down.generation, _OVERHEAD, down))
        self._bytes += _OVERHEAD

    def discard(self, generation: int) -> None:
        """Drop what waits of a generation that is not ours any more."""
        self._items = [item for item in self._items if item[0] != generation]
        self._bytes = sum(size for _, size, _ in self._items)

    def beat(self) -> None:
        """With the next batch, or alone, say that the loop is alive, and where the rooms are."""
        self._beat = True

    def take(self, clock: Callable[[R], Clock]) -> pb.AttachResponse | None:
        """The next batch; None: there is nothing to say. `clock` reads the clock of a room, now."""
        if not (self._items or self._beat):
            return None
        response = pb.AttachResponse(items=_downs(self._take_items()))
        if self._beat:
            response.heartbeat = not response.items
            for room, number in self._room_numbers.items():
                tick, fraction = clock(room)
                response.clocks.add(room_no=number, tick=tick, fraction=fraction)
            self._beat = False
        return response

    def _take_items(self) -> list[bytes | pb.Down]:
        count = taken = 0
        if self._bytes <= BATCH_BYTES:
            count, taken = len(self._items), self._bytes
        else:
            for _, size, _ in self._items:
                if count and taken + size > BATCH_BYTES:
                    break
                count += 1
                taken += size
        items, self._items = self._items[:count], self._items[count:]
        self._bytes -= taken
        return [what for _, _, what in items]


def _downs(items: Iterable[bytes | pb.Down]) -> Iterator[pb.Down]:
    """What waits, with all frames between two other things as one run."""
    runs: list[bytes] = []
    for item in items:
        if isinstance(item, bytes):
            runs.append(item)
            continue
        if runs:
            yield pb.Down(frames=b"".join(runs))
            runs.clear()
        yield item
    if runs:
        yield pb.Down(frames=b"".join(runs))
