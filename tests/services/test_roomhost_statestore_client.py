"""What a room host makes of a shard's refusals: a scripted state store over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall_common.auth import bearer
from playhall_common.errors import ApiError, abort
from playhall_roomhost.statestore_client import Granted, ShardClient, Token

UID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
EPOCH = 7


class _Store(rpc.StateStoreServicer):
    """Serves under EPOCH, and closes for who bears `token`."""

    def __init__(self) -> None:
        self.token = "fresh"
        self.refusal: ErrorCode | None = None
        self.refused = asyncio.Event()
        self.hellos: asyncio.Queue[pb.WriteHello] = asyncio.Queue()

    async def _check(self, map_epoch: int, context: Any) -> None:
        if map_epoch not in (0, EPOCH):
            await abort(context, ApiError(ErrorCode.WRONG_SHARD, epoch=EPOCH))

    async def Open(self, request: pb.OpenRequest, context: Any) -> AsyncIterator[pb.OpenResponse]:  # noqa: N802
        await self._check(request.map_epoch, context)
        yield pb.OpenResponse(granted=pb.Granted(generation=1))

    async def Write(self, requests: Any, context: Any) -> AsyncIterator[pb.WriteResponse]:  # noqa: N802
        async for request in requests:
            if request.HasField("hello"):
                self.hellos.put_nowait(request.hello)
                await self._check(request.hello.map_epoch, context)
                yield pb.WriteResponse(hello=True)

    async def Close(self, request: pb.CloseRequest, context: Any) -> pb.CloseResponse:  # noqa: N802
        code = self.refusal
        if bearer(context.invocation_metadata()) != self.token:
            code = ErrorCode.UNAUTHENTICATED
        if code is not None:
            self.refused.set()
            await abort(context, ApiError(code))
        return pb.CloseResponse()


@pytest_asyncio.fixture
async def store() -> AsyncIterator[tuple[_Store, str]]:
    server = grpc.aio.server()
    made = _Store()  # type: ignore[abstract]  # the other calls are answered UNIMPLEMENTED
    rpc.add_StateStoreServicer_to_server(made, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield made, f"127.0.0.1:{port}"
    await server.stop(0)


def shard_client(address: str, token: Token, **settings: Any) -> ShardClient:
    return ShardClient(address, "h1", token, lambda event: None, list, **settings)


def a_token(text: str) -> Token:
    token = Token()
    token.text = text
    return token


@pytest.mark.asyncio
async def test_a_close_waits_for_a_token_that_is_accepted(store: tuple[_Store, str]) -> None:
    servicer, address = store
    token = a_token("expired")
    shard = shard_client(address, token)
    async with asyncio.timeout(10):
        closing = asyncio.ensure_future(shard.close(pb.CloseRequest(room_uid=UID)))
        await servicer.refused.wait()
        token.text = "fresh"
        assert await closing
    await shard.stop()


@pytest.mark.asyncio
async def test_a_close_that_is_refused_says_why(store: tuple[_Store, str]) -> None:
    servicer, address = store
    request = pb.CloseRequest(room_uid=UID)
    async with asyncio.timeout(10):
        shard = shard_client(address, a_token("expired"), token_wait_s=0.1)
        with pytest.raises(ApiError) as refused:
            await shard.close(request)
        assert refused.value.code is ErrorCode.UNAUTHENTICATED
        await shard.stop()
        shard = shard_client(address, a_token("fresh"))
        servicer.refusal = ErrorCode.FORBIDDEN
        with pytest.raises(ApiError) as refused:
            await shard.close(request)
        assert refused.value.code is ErrorCode.FORBIDDEN
        servicer.refusal = ErrorCode.FENCED
        assert not await shard.close(request)
        await shard.stop()


@pytest.mark.asyncio
async def test_open_and_hello_name_the_epoch_and_learn_a_newer_one(store: tuple[_Store, str]) -> None:
    servicer, address = store
    async with asyncio.timeout(10):
        shard = shard_client(address, a_token("fresh"))
        shard.stream.learn_epoch(EPOCH - 1)
        shard.start()
        assert (await servicer.hellos.get()).map_epoch == EPOCH - 1
        assert (await servicer.hellos.get()).map_epoch == EPOCH
        await shard.stop()

        shard = shard_client(address, a_token("fresh"))
        assert isinstance(await shard.open(pb.OpenRequest(room_uid=UID, map_epoch=EPOCH - 1)), Granted)
        shard.start()
        assert (await servicer.hellos.get()).map_epoch == EPOCH
        await shard.stop()

        shard = shard_client(address, a_token("fresh"))  # the map knows a newer one than the shard
        with pytest.raises(ApiError) as refused:
            await shard.open(pb.OpenRequest(room_uid=UID, map_epoch=EPOCH + 1))
        assert refused.value.code is ErrorCode.WRONG_SHARD
        await shard.stop()
