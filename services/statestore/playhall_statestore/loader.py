"""The state behind a grant: from the volume, or from the object store where the volume lacks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_statestore.model import MAX_PART_BYTES, Chunk, Item, Mark, Room, StoredObject
from playhall_statestore.objects import ObjectStore
from playhall_statestore.requests import AbandonGrant, Granted, Recover, Restored, RestorePiece
from playhall_statestore.snapshot import (
    ObjectName,
    Snapshot,
    decode,
    folder_of,
    parse_name,
    recovered,
)
from playhall_statestore.store import Store
from playhall_statestore.volume import DamagedError
from playhall_statestore.writer import Reader

__all__ = ["Loader"]

T = TypeVar("T")

# States in memory at once, each up to 32 MB and some.
LOADS = 8
OBJECT_S = 10.0

log = logs.get_logger()


class Loader:
    """Loads rooms, one at a time each, and not too many together."""

    def __init__(
        self, store: Store, reader: Reader, objects: ObjectStore, cluster: str, *, recovering: bool
    ) -> None:
        self._store = store
        self._reader = reader
        self._objects = objects
        self._cluster = cluster
        self._recovering = recovering
        self._restores: dict[str, asyncio.Task[None]] = {}
        self.slots = asyncio.Semaphore(LOADS)
        """Held by a caller from `read` until what it read is sent."""

    async def prepare(self, uid: str, *, has_state: bool) -> None:
        """Before an Open: bring what was written back to the volume, if only an object has it.

        Raises ApiError: E_STATE_MISSING, E_DAMAGED, E_UNAVAILABLE.
        """
        room = self._store.room(uid)
        if room is None and not has_state and not self._recovering:
            return
        if room is not None and not room.evicted:
            return
        task = self._restores.get(uid)
        if task is None:
            task = self._restores[uid] = asyncio.create_task(self._bring_back(uid, has_state=has_state))
            task.add_done_callback(lambda done: self._finished(uid, done))
        await asyncio.shield(task)

    def _finished(self, uid: str, task: asyncio.Task[None]) -> None:
        self._restores.pop(uid, None)
        if not task.cancelled():
            task.exception()  # those who waited got it; where all of them left, nobody needs it

    async def read(self, uid: str, granted: Granted) -> list[Item]:
        """What was written, up to the grant. If it is damaged, the grant is taken back: E_DAMAGED."""
        if granted.base is None:
            return []
        try:
            return await self._reader.read_items(uid, granted.base, granted.upto)
        except DamagedError as error:
            log.error("state_damaged", room_uid=uid, reason=str(error))
            self._store.tell(AbandonGrant(uid, granted.generation))
            raise ApiError(ErrorCode.DAMAGED, str(error)) from error

    async def _bring_back(self, uid: str, *, has_state: bool) -> None:
        room = self._store.room(uid)
        if room is None:
            snapshot = await self._find(uid)
            if snapshot is None:
                if has_state:
                    raise ApiError(ErrorCode.STATE_MISSING)
                return
        else:
            assert room.stored is not None, "a room is evicted only to its object"
            snapshot = await self._get(room.stored, uid)
        await self._restore(uid, snapshot)

    async def _get(self, stored: StoredObject, uid: str) -> Snapshot:
        """The object the index names. Its checksum was noted: another one is damage."""
        data = await self._call(lambda: self._objects.get(stored.name))
        if data is None:
            log.error("object_missing", room_uid=uid, object=stored.name)
            raise ApiError(ErrorCode.STATE_MISSING, f"the object {stored.name} is gone")
        try:
            snapshot = decode(data, uid)
            if data[-len(stored.digest) :] != stored.digest:
                raise DamagedError(f"{uid}: the object is not the one that was stored")
        except DamagedError as error:
            log.error("object_damaged", room_uid=uid, object=stored.name, reason=str(error))
            raise ApiError(ErrorCode.DAMAGED, str(error)) from error
        return snapshot

    async def _find(self, uid: str) -> Snapshot | None:
        """After the loss of the volume: the newest object that is whole."""
        names = await self._call(lambda: self._objects.list(folder_of(self._cluster, uid)))
        found = [name for name in map(parse_name, names) if name is not None]
        for name in sorted(found, key=_by_mark, reverse=True):
            data = await self._call(lambda name=name.name: self._objects.get(name))  # type: ignore[misc]
            try:
                snapshot = decode(data or b"", uid)
            except DamagedError as error:
                log.error("object_damaged", room_uid=uid, object=name.name, reason=str(error))
                continue
            await self._recover(snapshot, name, data or b"")
            return snapshot
        if found:
            raise ApiError(ErrorCode.DAMAGED, "every object of the room is damaged")
        return None

    async def _recover(self, snapshot: Snapshot, name: ObjectName, data: bytes) -> None:
        room: Room = recovered(snapshot)
        assert room.base is not None, "an object has a base"
        room.stored = StoredObject(name.name, room.base, name.at, name.alarm_ms, data[-32:])
        room.noted = True
        await self._store.ask(lambda token: Recover(token, room))
        log.warning("room_recovered", project=room.project, room_uid=room.uid, object=name.name)

    async def _restore(self, uid: str, snapshot: Snapshot) -> None:
        for piece in _pieces(snapshot.items):
            await self._store.ask(lambda token, piece=piece: RestorePiece(token, uid, piece))  # type: ignore[misc]
        room = self._store.room(uid)
        if room is not None and room.stored is not None:
            name = room.stored.name
            await self._store.ask(lambda token: Restored(token, uid, name))

    async def _call(self, work: Callable[[], T]) -> T:
        """A call of the object store: E_UNAVAILABLE where it fails or takes too long."""
        try:
            async with asyncio.timeout(OBJECT_S):
                return await asyncio.to_thread(work)
        except (OSError, TimeoutError) as error:
            raise ApiError(ErrorCode.UNAVAILABLE, "the object store does not answer") from error


def _pieces(items: list[Item]) -> Iterator[Item | Chunk]:
    """Items small enough for one write, others as chunks with their item last."""
    for item in items:
        if len(item.data) <= MAX_PART_BYTES:
            yield item
            continue
        parts = range(0, len(item.data), MAX_PART_BYTES)
        for index, start in enumerate(parts):
            yield Chunk(item.at, item.base, index, item.data[start : start + MAX_PART_BYTES])
        yield Item(item.at, item.base, item.tick, item.wall_ms, item.crc32, item.alarm_ms, b"", len(parts))


def _by_mark(name: ObjectName) -> Mark:
    return name.at
