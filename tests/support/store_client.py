"""A room host and a router as a state store sees them, for tests of the real process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
import zlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import grpc.aio

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2_grpc as pb_grpc
from playhall.engine.codes import ErrorCode
from playhall_common.auth import bearer_metadata, channel
from playhall_common.errors import ApiError, from_rpc
from playhall_common.ids import ulid
from tests.support.processes import SERVICE_SECRET

CALL_S = 10.0
PROJECT = "demo"

_numbers = itertools.count(1)


def new_uid() -> str:
    return ulid(int(time.time() * 1000), os.urandom)


async def answer_of(call: Any) -> Any:
    """Awaits a call or a read; failures as ApiError."""
    try:
        return await call
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None


class Opened:
    """What came of an Open: the outcome, and the stored state."""

    def __init__(self, responses: list[pb.OpenResponse]) -> None:
        self.outcome: Any = getattr(responses[0], str(responses[0].WhichOneof("part")))
        self.parts = [response.state for response in responses[1:]]
        self.state: list[bytes] = []
        pieces: list[bytes] = []
        for part in self.parts:
            pieces.append(part.data)
            if part.last:
                self.state.append(b"".join(pieces))
                pieces = []


class StoreClient:
    """Calls to a state store. `token` None shows nothing. Raises ApiError."""

    def __init__(self, address: str, token: str | None = SERVICE_SECRET) -> None:
        self._channel = channel(address)
        self.stub = pb_grpc.StateStoreStub(self._channel)
        self.metadata = () if token is None else bearer_metadata(token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def open(self, uid: str, host: str = "h1", **fields: Any) -> Opened:
        request = pb.OpenRequest(
            project=PROJECT, room_uid=uid, host_id=host, host_address=f"{host}:1", deploy_seq=1
        )
        request.open_id = f"open-{next(_numbers)}"
        request.MergeFrom(pb.OpenRequest(**fields))
        try:
            call = self.stub.Open(request, metadata=self.metadata, timeout=CALL_S, wait_for_ready=True)
            return Opened([response async for response in call])
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from None

    async def close(
        self, uid: str, generation: int, version: int, host: str = "h1", **fields: Any
    ) -> pb.CloseResponse:
        request = pb.CloseRequest(
            project=PROJECT, room_uid=uid, generation=generation, version=version, kind=pb.END_HIBERNATED,
            alarm_ms=-1, host_id=host,
        )  # fmt: skip
        request.MergeFrom(pb.CloseRequest(**fields))
        response: pb.CloseResponse = await answer_of(
            self.stub.Close(request, metadata=self.metadata, timeout=CALL_S)
        )
        return response

    async def strike(self, uid: str, generation: int) -> int:
        request = pb.StrikeRequest(project=PROJECT, room_uid=uid, generation=generation, error="boom")
        response: pb.StrikeResponse = await answer_of(
            self.stub.Strike(request, metadata=self.metadata, timeout=CALL_S)
        )
        return response.strikes

    async def write(self, host: str = "h1", *rooms: tuple[str, int], **hello: Any) -> WriteStream:
        """A Write stream after its hello was answered."""
        stream = WriteStream(self.stub.Write(metadata=self.metadata, wait_for_ready=True))
        held = [pb.RoomGrant(room_uid=uid, generation=generation) for uid, generation in rooms]
        # Where the shard has refused the stream already, the read tells why; the write only that it is over.
        with contextlib.suppress(ApiError):
            await stream.send(hello=pb.WriteHello(host_id=host, rooms=held, **hello))
        await stream.until(lambda: stream.greeted)
        return stream

    def watch(self) -> WatchStream:
        return WatchStream(self.stub.Watch(metadata=self.metadata, wait_for_ready=True))


class WriteStream:
    """A host's end. `acks` holds the last word on each (uid, generation)."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.acks: dict[tuple[str, int], pb.RoomAck] = {}
        self.greeted = False

    async def send(self, **fields: Any) -> None:
        try:
            async with asyncio.timeout(CALL_S):
                await self.call.write(pb.WriteRequest(**fields))
        except grpc.aio.AioRpcError as failure:
            # A write that meets the end of the stream hides why it ended: those who want to know read first.
            raise from_rpc(failure) from None

    async def read(self) -> pb.WriteResponse:
        try:
            async with asyncio.timeout(CALL_S):
                response = await self.call.read()
                if response is grpc.aio.EOF:
                    raise EOFError(await self.call.code())
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from None
        assert isinstance(response, pb.WriteResponse)
        for ack in response.acks:
            self.acks[ack.room_uid, ack.generation] = ack
        self.greeted |= response.hello
        return response

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(CALL_S):
            while not done():
                await self.read()

    async def error(self) -> ErrorCode:
        """Read on until the stream ends; the code it ends with."""
        try:
            while True:
                await self.read()
        except ApiError as error:
            return error.code

    def is_told(self, uid: str, generation: int, outcome: pb.RoomAck.Outcome.ValueType) -> bool:
        ack = self.acks.get((uid, generation))
        return ack is not None and ack.outcome == outcome

    def durable(self, uid: str, generation: int) -> int:
        ack = self.acks.get((uid, generation))
        return ack.version if ack is not None and ack.outcome == pb.RoomAck.OUTCOME_DURABLE else 0

    async def record(self, uid: str, generation: int, version: int, data: bytes, **fields: Any) -> None:
        await self.send(records=[record(uid, generation, version, data, **fields)])

    async def written(self, uid: str, generation: int, version: int, data: bytes, **fields: Any) -> None:
        """Send and wait until it is durable."""
        await self.record(uid, generation, version, data, **fields)
        await self.until(lambda: self.durable(uid, generation) >= version)


class WatchStream:
    """A router's end."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.news: list[pb.RoomStatus] = []

    async def watch(self, *uids: str) -> None:
        await self.call.write(pb.WatchRequest(router_id="r1", watch=uids))

    async def until(self, status: pb.RoomStatus.Status.ValueType) -> pb.RoomStatus:
        """The first news of this status among those not looked at yet."""
        async with asyncio.timeout(CALL_S):
            while True:
                while self.news:
                    room = self.news.pop(0)
                    if room.status == status:
                        return room
                response = await self.call.read()
                assert isinstance(response, pb.WatchResponse), response
                self.news += response.rooms


def record(uid: str, generation: int, version: int, data: bytes, **fields: Any) -> pb.RecordPart:
    made = pb.RecordPart(
        room_uid=uid, generation=generation, prev=version - 1, version=version, tick=version, data=data,
        last=True, crc32=zlib.crc32(data),
    )  # fmt: skip
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def parts(
    uid: str, generation: int, version: int, data: bytes, size: int, **fields: Any
) -> list[pb.RecordPart]:
    """One item in pieces."""
    starts = range(0, len(data), size)
    made = [
        record(uid, generation, version, data[start : start + size], last=start == starts[-1], **fields)
        for start in starts
    ]
    made[-1].crc32 = zlib.crc32(data)
    return made
