"""Watch streams: what the shards say of the rooms that this router has connections for.

One stream to each shard. It is not durable: when it breaks, or says nothing for 3 s, everything it said is in
doubt until it is back and every room was watched again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import grpc.aio

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.auth import channel, service_metadata
from playhall_common.errors import ApiError
from playhall_router.registry import Registry
from playhall_router.tasks import Tasks
from playhall_router.wake import Ownership, Route

__all__ = ["Watches"]

SILENT_S = 3.0
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 1.0
_BATCH = 1000
_OWNERSHIPS = {
    pb.RoomStatus.STATUS_NEW: Ownership.NEW,
    pb.RoomStatus.STATUS_LIVE: Ownership.LIVE,
    pb.RoomStatus.STATUS_DEAD: Ownership.DEAD,
    pb.RoomStatus.STATUS_CLOSED: Ownership.CLOSED,
    pb.RoomStatus.STATUS_ASLEEP: Ownership.ASLEEP,
    pb.RoomStatus.STATUS_DELETED: Ownership.DELETED,
}
WatchCall: TypeAlias = "grpc.aio.StreamStreamCall[pb.WatchRequest, pb.WatchResponse]"

log = logs.get_logger()


class Watches:
    """Rooms that are watched, over all shards. Both callbacks are called from the loop and must not wait.

    `on_status` is told a room's uid, how it is, its owner, and the deploy_seq of that owner's build.
    """

    def __init__(
        self,
        registry: Registry,
        secret: str,
        router_id: str,
        *,
        on_status: Callable[[str, Ownership, Route, int], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._secret = secret
        self._router_id = router_id
        self._on_status = on_status
        self._on_lost = on_lost
        self._rooms: set[str] = set()
        self._readers: dict[str, asyncio.Future[Ownership]] = {}
        self._shards: dict[str, _Shard] = {}
        self._tasks = Tasks()

    def watch(self, room_uid: str) -> None:
        """Follow a room: `on_status` says how it is, and how it changes. Again: say again how it is."""
        self._rooms.add(room_uid)
        self._tasks.start(self._assign(room_uid), f"watch {room_uid}")

    def unwatch(self, room_uid: str) -> None:
        """Follow it no more."""
        self._rooms.discard(room_uid)
        if room_uid not in self._readers:
            self._release(room_uid)

    async def read(self, room_uid: str, *, timeout: float) -> Ownership:
        """How a room is now. E_UNAVAILABLE: the shard did not say."""
        answer = self._readers.get(room_uid)
        if answer is None:
            answer = self._readers[room_uid] = asyncio.get_running_loop().create_future()
            self._tasks.start(self._assign(room_uid), f"watch {room_uid}")
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(answer)
        except TimeoutError:
            raise ApiError(ErrorCode.UNAVAILABLE, "the room's shard did not answer") from None
        finally:
            self._readers.pop(room_uid, None)
            if room_uid not in self._rooms:
                self._release(room_uid)

    async def close(self) -> None:
        """End the streams."""
        await self._tasks.close()

    def _release(self, room_uid: str) -> None:
        for shard in self._shards.values():
            shard.unwatch(room_uid)

    async def _assign(self, room_uid: str) -> None:
        """Give a room to its shard's stream, as soon as the shard is known."""
        while room_uid in self._rooms or room_uid in self._readers:
            try:
                address = await self._registry.shard_of(room_uid)
            except ApiError as error:
                log.debug("shard_unknown", room_uid=room_uid, error=error.message)
                await asyncio.sleep(_LAST_RETRY_S)
                continue
            self._shard(address).watch(room_uid)
            return

    def _shard(self, address: str) -> _Shard:
        shard = self._shards.get(address)
        if shard is None:
            shard = self._shards[address] = _Shard(address, self._secret, self._router_id)
            self._tasks.start(self._follow(shard), f"watch {address}")
        return shard

    async def _follow(self, shard: _Shard) -> None:
        """Keep one shard's stream up for as long as it has rooms to follow."""
        retry_s = _FIRST_RETRY_S
        try:
            while True:
                try:
                    async for status in shard.follow():
                        retry_s = _FIRST_RETRY_S
                        self._heard(status)
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError) as error:
                    log.debug("shard_lost", address=shard.address, error=str(error))
                for room_uid in list(shard.rooms):
                    self._on_lost(room_uid)
                self._registry.shards_moved()
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _LAST_RETRY_S)
                if await self._moved(shard):
                    return
        finally:
            await shard.close()

    async def _moved(self, shard: _Shard) -> bool:
        """Give rooms to another stream if the map says that their shard is elsewhere now."""
        for room_uid in list(shard.rooms):
            try:
                address = await self._registry.shard_of(room_uid)
            except ApiError:
                return False
            if address != shard.address:
                shard.rooms.discard(room_uid)
                self._shard(address).watch(room_uid)
        if shard.rooms:
            return False
        del self._shards[shard.address]
        return True

    def _heard(self, status: pb.RoomStatus) -> None:
        ownership = _OWNERSHIPS.get(status.status)
        reader = self._readers.get(status.room_uid)
        if ownership is not None and reader is not None and not reader.done():
            reader.set_result(ownership)
        if ownership is not None and status.room_uid in self._rooms:
            owner = Route(status.generation, status.host_id, status.host_address)
            self._on_status(status.room_uid, ownership, owner, status.deploy_seq)


class _Shard:
    """One shard's stream, again and again."""

    def __init__(self, address: str, secret: str, router_id: str) -> None:
        self.address = address
        self.rooms: set[str] = set()
        self._metadata = service_metadata(secret)
        self._router_id = router_id
        self._channel = channel(address)
        self._changes: dict[str, bool] = {}
        self._changed = asyncio.Event()

    def watch(self, room_uid: str) -> None:
        self.rooms.add(room_uid)
        self._changes[room_uid] = True
        self._changed.set()

    def unwatch(self, room_uid: str) -> None:
        if room_uid in self.rooms:
            self.rooms.discard(room_uid)
            self._changes[room_uid] = False
            self._changed.set()

    async def close(self) -> None:
        await self._channel.close(None)

    async def follow(self) -> AsyncIterator[pb.RoomStatus]:
        """What the shard says, until the stream breaks or falls silent: raises AioRpcError or TimeoutError
        then. Does not wait for a shard that is not there: it may be at another address by now.
        """
        call = rpc.StateStoreStub(self._channel).Watch(metadata=self._metadata)
        self._changes = dict.fromkeys(self.rooms, True)
        self._changed.set()
        writer = asyncio.ensure_future(self._write(call))
        try:
            while True:
                async with asyncio.timeout(SILENT_S):
                    response = await call.read()
                if not isinstance(response, pb.WatchResponse):
                    return
                for status in response.rooms:
                    yield status
        finally:
            writer.cancel()
            call.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _write(self, call: WatchCall) -> None:
        await call.write(pb.WatchRequest(router_id=self._router_id))
        while True:
            await self._changed.wait()
            self._changed.clear()
            changes, self._changes = self._changes, {}
            names = list(changes)
            for first in range(0, len(names), _BATCH):
                batch = names[first : first + _BATCH]
                await call.write(
                    pb.WatchRequest(
                        watch=[name for name in batch if changes[name]],
                        unwatch=[name for name in batch if not changes[name]],
                    )
                )
