"""The shell's ends of Write and Watch streams: what waits to go out, and the bound on what came in.

What waits is one entry for each room: a newer word on a room replaces the older one, so that a peer that does
not read costs no more than the rooms it asked about.
"""

from __future__ import annotations

import asyncio

from playhall_statestore.model import Outcome
from playhall_statestore.requests import Ack, Acks, Refused, RoomNews

__all__ = ["QUEUE_BYTES", "WatchLink", "WriteLink"]

# Uncommitted bytes of one stream; then it is not read any further.
QUEUE_BYTES = 4 * 1024 * 1024


class _Signal:
    """Something to say, or a second passed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()


class WriteLink:
    """One Write stream."""

    def __init__(self, stream: int, host_id: str) -> None:
        self.stream = stream
        self.host_id = host_id
        self.error: Refused | None = None
        """Set: the stream ends with this, after what waits."""
        self.signal = _Signal()
        self._acks: dict[tuple[str, int], Ack] = {}
        self._hello = False
        self._queued = 0
        self._room = asyncio.Event()
        self._room.set()

    def push(self, acks: Acks) -> None:
        for ack in acks.acks:
            key = (ack.uid, ack.generation)
            waiting = self._acks.get(key)
            # A fence is final; DURABLE after NEED_BASE would hide that a base is wanted, until it came.
            if waiting is None or waiting.outcome is Outcome.DURABLE or ack.outcome is Outcome.FENCED:
                self._acks[key] = ack
        self._hello |= acks.hello
        self.signal.set()

    def end(self, error: Refused) -> None:
        self.error = self.error or error
        self.signal.set()

    def take(self) -> tuple[list[Ack], bool]:
        """What waits to go out, and whether it answers hello."""
        acks, self._acks = list(self._acks.values()), {}
        hello, self._hello = self._hello, False
        return acks, hello

    def queued(self, size: int) -> None:
        self._queued += size
        if self._queued >= QUEUE_BYTES:
            self._room.clear()

    def committed(self, size: int) -> None:
        self._queued -= size
        if self._queued < QUEUE_BYTES:
            self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    async def room(self) -> None:
        """Until more may be read."""
        await self._room.wait()


class WatchLink:
    """One Watch stream."""

    def __init__(self, watcher: int) -> None:
        self.watcher = watcher
        self.error: Refused | None = None
        self.signal = _Signal()
        self._rooms: dict[str, RoomNews] = {}

    def push(self, room: RoomNews) -> None:
        self._rooms[room.uid] = room
        self.signal.set()

    def end(self, error: Refused) -> None:
        self.error = self.error or error
        self.signal.set()

    def forget(self, uid: str) -> None:
        self._rooms.pop(uid, None)

    def take(self) -> list[RoomNews]:
        rooms, self._rooms = list(self._rooms.values()), {}
        return rooms
