"""What a router goes on with while data is away, busy or at fault: a scripted data service over real gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio

from playhall.api.data.v1 import data_pb2 as pb
from playhall.api.data.v1 import data_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError, abort
from playhall_router.registry import Registry

UID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class _Data(rpc.RegistryServicer):
    """Answers, or fails with `failure`."""

    def __init__(self) -> None:
        self.failure: ErrorCode | None = None

    async def _fail(self, context: Any) -> None:
        if self.failure is not None:
            await abort(context, ApiError(self.failure))

    async def GetShardMap(self, request: pb.GetShardMapRequest, context: Any) -> pb.GetShardMapResponse:  # noqa: N802
        await self._fail(context)
        shard = pb.Shard(shard_id="s", address="shard:1", epoch=1, slot_from=[0], slot_to=[ids.SLOTS])
        return pb.GetShardMapResponse(shards=[shard])

    async def GetProjectAccess(  # noqa: N802
        self, request: pb.GetProjectAccessRequest, context: Any
    ) -> pb.GetProjectAccessResponse:
        await self._fail(context)
        return pb.GetProjectAccessResponse(settings=pb.Settings(guests=True))


@pytest.fixture
def data() -> _Data:
    return _Data()  # type: ignore[abstract]  # the other calls are answered UNIMPLEMENTED


@pytest_asyncio.fixture
async def registry(data: _Data) -> AsyncIterator[Registry]:
    server = grpc.aio.server()
    rpc.add_RegistryServicer_to_server(data, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    made = Registry(f"127.0.0.1:{port}", "a secret for tests only")
    yield made
    await made.close()
    await server.stop(0)


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [ErrorCode.UNAVAILABLE, ErrorCode.LIMIT, ErrorCode.INTERNAL])
async def test_a_shard_that_starts_again_is_found_while_data_is_away(
    registry: Registry, data: _Data, failure: ErrorCode
) -> None:
    assert await registry.shard_of(UID) == "shard:1"
    data.failure = failure
    registry.shards_moved()
    assert await registry.shard_of(UID) == "shard:1"


@pytest.mark.asyncio
async def test_what_data_says_is_not_there_is_not_there(registry: Registry, data: _Data) -> None:
    assert (await registry.access("dots")).guests
    registry.shards_moved()
    data.failure = ErrorCode.UNKNOWN
    with pytest.raises(ApiError):
        await registry.access("other")
