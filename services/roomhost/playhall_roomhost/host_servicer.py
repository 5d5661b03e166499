"""gRPC RoomHost: proto to `RoomHost` and back. One Attach is a reader and a writer that share a stream's
state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_roomhost.attach import AttachStream
from playhall_roomhost.host import RoomHost
from playhall_roomhost.room import RunningRoom

__all__ = ["RoomHostServicer"]

HELLO_S = 10.0
# At most 200 messages a second go down a stream; the first after a pause goes at once.
PACE_S = 0.005

Context = grpc.aio.ServicerContext[Any, Any]


class RoomHostServicer(rpc.RoomHostServicer):
    """See the proto."""

    def __init__(self, host: RoomHost) -> None:
        self._host = host

    async def Start(self, request: pb.StartRequest, context: Context) -> pb.StartResponse:
        return await self._host.start_room(request)

    async def Hibernate(self, request: pb.HibernateRequest, context: Context) -> pb.HibernateResponse:
        await self._host.hibernate_room(request.room_uid, request.generation)
        return pb.HibernateResponse()

    async def Inspect(self, request: pb.InspectRequest, context: Context) -> pb.InspectResponse:
        return pb.InspectResponse(document=self._host.inspect(request))

    # A coroutine and not a generator: what it holds is let go at once when the RPC is cancelled.
    async def Attach(  # type: ignore[override]
        self, request_iterator: AsyncIterator[pb.AttachRequest], context: Context
    ) -> None:
        async with asyncio.timeout(HELLO_S):
            first = await anext(request_iterator, None)
        if first is None or not first.HasField("hello"):
            raise ApiError(ErrorCode.INVALID, "the first request of an Attach holds hello")
        reader: asyncio.Task[None] | None = None
        writer = asyncio.current_task()
        assert writer is not None
        stream, wake = self._host.attach(first.hello, writer.cancel)
        try:
            await context.write(pb.AttachResponse(welcome=pb.AttachWelcome(host_id=self._host.host_id)))
            reader = asyncio.get_running_loop().create_task(self._read(stream, first, request_iterator))
            reader.add_done_callback(lambda _: wake.set())
            await self._write(stream, wake, reader, context)
        finally:
            self._host.detach(stream)
            if reader is not None:
                reader.cancel()
                await asyncio.wait([reader])
        if reader.done() and not reader.cancelled():
            reader.result()

    async def _read(
        self,
        stream: AttachStream[RunningRoom],
        first: pb.AttachRequest,
        request_iterator: AsyncIterator[pb.AttachRequest],
    ) -> None:
        await self._host.upstream(stream, first)
        async for request in request_iterator:
            await self._host.upstream(stream, request)

    async def _write(
        self,
        stream: AttachStream[RunningRoom],
        wake: asyncio.Event,
        reader: asyncio.Task[None],
        context: Context,
    ) -> None:
        while not reader.done():
            await wake.wait()
            wake.clear()
            while (response := self._host.take(stream)) is not None:
                await context.write(response)
                await asyncio.sleep(PACE_S)
            if self._host.drained:
                return
