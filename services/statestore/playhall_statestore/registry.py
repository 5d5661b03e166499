"""The data service, as a shard needs it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import grpc.aio

from playhall.api.data.v1 import data_pb2 as pb
from playhall.api.data.v1 import data_pb2_grpc as pb_grpc
from playhall_common.auth import channel, service_metadata
from playhall_common.errors import from_rpc

__all__ = ["Registry"]

T = TypeVar("T")

CALL_S = 5.0


class Registry:
    """Calls end within 5 s and raise ApiError."""

    def __init__(self, address: str, secret: str, shard_id: str, *, replace: bool) -> None:
        self._channel = channel(address)
        self._stub = pb_grpc.RegistryStub(self._channel)
        self._metadata = service_metadata(secret)
        self._shard_id = shard_id
        self._replace = replace
        self.address = ""
        """What others dial; set before `register`."""

    async def close(self) -> None:
        await self._channel.close()

    async def register(self, volume_epoch: int, min_epoch: int) -> int:
        """The epoch to serve under. See RegisterShard."""
        request = pb.RegisterShardRequest(
            shard_id=self._shard_id,
            address=self.address,
            volume_epoch=volume_epoch,
            replace=self._replace and not volume_epoch,
            min_epoch=min_epoch,
        )
        call = self._stub.RegisterShard(request, metadata=self._metadata, timeout=CALL_S)
        return (await _answer(call)).epoch

    async def epoch(self) -> int:
        """The epoch of this shard in the map; 0: it is not in it."""
        call = self._stub.GetShardMap(pb.GetShardMapRequest(), metadata=self._metadata, timeout=CALL_S)
        shards = (await _answer(call)).shards
        return next((shard.epoch for shard in shards if shard.shard_id == self._shard_id), 0)

    async def mark_has_state(self, uid: str) -> None:
        request = pb.MarkHasStateRequest(room_uid=uid)
        await _answer(self._stub.MarkHasState(request, metadata=self._metadata, timeout=CALL_S))


async def _answer(call: Awaitable[T]) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from failure
