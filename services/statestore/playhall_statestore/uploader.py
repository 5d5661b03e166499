"""Rooms to objects: the first at once, then as often as `upload_s`, and when a room is closed.

What is uploaded is a consistent copy of base and log. It counts once it was read back, compared and noted
on the volume; older objects of the room go after that. Then the registry hears that the room has state, and,
some time after a room was closed, its rows leave the volume. While the object store is away uploads wait;
nothing else does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_statestore import meters
from playhall_statestore.model import Room, StoredObject
from playhall_statestore.objects import ObjectStore
from playhall_statestore.requests import Done, Evict, NoteObject, NoteState
from playhall_statestore.snapshot import encode, folder_of, name_of, parse_name
from playhall_statestore.store import Store
from playhall_statestore.stored import is_stored
from playhall_statestore.volume import DamagedError
from playhall_statestore.writer import Reader

__all__ = ["Uploader"]

T = TypeVar("T")

TURN_S = 0.2
EVICT_TURN_S = 5.0
TOGETHER = 2
CALL_S = 30.0
RETRY_FIRST_S = 1.0
RETRY_LONGEST_S = 30.0

log = logs.get_logger()


class Uploader:
    """Uploads, notes, evicts."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        objects: ObjectStore,
        mark_has_state: Callable[[str], Awaitable[None]],
        *,
        cluster: str,
        upload_s: float,
        evict_s: float,
    ) -> None:
        self._store = store
        self._reader = reader
        self._objects = objects
        self._mark_has_state = mark_has_state
        self._cluster = cluster
        self._upload_s = upload_s
        self._evict_s = evict_s
        self._due: dict[str, float] = {}
        """When a room that changes is uploaded again."""
        self._retry_s: dict[str, float] = {}
        self._tidied: set[str] = set()
        self._unnoted = {
            room.uid for room in store.shard.rooms() if room.stored is not None and not room.noted
        }

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run_uploads())
            tasks.create_task(self._run_notes())
            if self._evict_s:
                tasks.create_task(self._run_evictions())

    async def _run_uploads(self) -> None:
        slots = asyncio.Semaphore(TOGETHER)
        while True:
            async with asyncio.TaskGroup() as tasks:
                for room in self._due_rooms():
                    await slots.acquire()
                    task = tasks.create_task(self._upload(room))
                    task.add_done_callback(lambda _task: slots.release())
            await asyncio.sleep(TURN_S)

    def _due_rooms(self) -> list[Room]:
        now = time.monotonic()
        due = []
        for uid in self._store.shard.unstored:
            room = self._store.room(uid)
            if room is None:
                continue
            urgent = room.stored is None or not room.held
            at = self._due.setdefault(uid, now if urgent else now + self._upload_s)
            if now >= at or (urgent and uid not in self._retry_s):
                due.append(room)
        return due

    async def _upload(self, room: Room) -> None:
        """One object. A failure is tried again later, and later each time."""
        uid = room.uid
        began = time.monotonic()
        try:
            stored = await self._put(room)
            answer = await self._store.ask(lambda token: NoteObject(token, uid, stored))
            if answer == Done(True):
                await self._delete_older(room, stored)
        except (OSError, TimeoutError, DamagedError, ApiError) as error:
            self._failed(room, began, error)
            return
        meters.OBJECT_WRITES.labels("ok").inc()
        self._retry_s.pop(uid, None)
        self._due[uid] = began + self._upload_s
        if not room.noted:
            self._unnoted.add(uid)

    def _failed(self, room: Room, began: float, error: Exception) -> None:
        now = self._store.room(room.uid)
        if isinstance(error, DamagedError) and now is not None and now.base != room.base:
            return  # a new base came while the old one was read: the next turn takes that
        meters.OBJECT_WRITES.labels("failed").inc()
        log.warning("upload_failed", project=room.project, room_uid=room.uid, error=repr(error))
        wait_s = min(RETRY_LONGEST_S, 2 * self._retry_s.get(room.uid, RETRY_FIRST_S / 2))
        self._retry_s[room.uid] = wait_s
        self._due[room.uid] = began + wait_s

    async def _put(self, room: Room) -> StoredObject:
        """Upload what is committed now, and read it back."""
        assert room.base is not None, "rooms without state are not uploaded"
        name, at, alarm_ms = name_of(self._cluster, room), room.saved.at, room.alarm_ms
        items = await self._reader.read_items(room.uid, room.base, at)

        def put() -> bytes:
            data = encode(room, items)
            self._objects.put(name, data)
            if self._objects.get(name) != data:
                raise OSError(f"{name} does not read back as it was written")
            return data[-32:]

        digest = await _call(put)
        return StoredObject(name, room.base, at, alarm_ms, digest)

    async def _delete_older(self, room: Room, stored: StoredObject) -> None:
        if room.uid in self._tidied:
            older = [] if room.stored is None or room.stored.name == stored.name else [room.stored.name]
        else:
            names = await _call(lambda: self._objects.list(folder_of(self._cluster, room.uid)))
            found = [name for name in map(parse_name, names) if name is not None]
            older = [name.name for name in found if name.name != stored.name and name.at <= stored.at]
            self._tidied.add(room.uid)
        for name in older:
            await _call(lambda name=name: self._objects.delete(name))  # type: ignore[misc]

    async def _run_notes(self) -> None:
        wait_s = RETRY_FIRST_S
        while True:
            for uid in sorted(self._unnoted):
                try:
                    await self._mark_has_state(uid)
                except ApiError as error:
                    if error.code is not ErrorCode.UNKNOWN:
                        log.warning("registry_away", error=repr(error))
                        await asyncio.sleep(wait_s)
                        wait_s = min(RETRY_LONGEST_S, 2 * wait_s)
                        break
                    log.warning("room_unknown_to_registry", room_uid=uid)
                wait_s = RETRY_FIRST_S
                self._unnoted.discard(uid)
                self._store.tell(NoteState(uid))
            await asyncio.sleep(TURN_S)

    async def _run_evictions(self) -> None:
        while True:
            await asyncio.sleep(min(EVICT_TURN_S, self._evict_s))
            before_ms = time.time() * 1000 - self._evict_s * 1000
            for room in list(self._store.shard.rooms()):
                if not room.held and not room.evicted and room.ended_ms <= before_ms and is_stored(room):
                    await self._evict(room)

    async def _evict(self, room: Room) -> None:
        assert room.stored is not None, "is_stored says so"
        name = room.stored.name
        try:
            answer = await self._store.ask(lambda token: Evict(token, room.uid, name))
        except ApiError as error:
            log.warning("evict_failed", room_uid=room.uid, error=repr(error))
            return
        if answer == Done(True):
            meters.EVICTIONS.inc()
            log.info("room_evicted", project=room.project, room_uid=room.uid, object=name)
            for table in (self._due, self._retry_s):
                table.pop(room.uid, None)
            self._tidied.discard(room.uid)


async def _call(work: Callable[[], T]) -> T:
    async with asyncio.timeout(CALL_S):
        return await asyncio.to_thread(work)
