"""What a process says to one shard: Open, Write, Close and Strike, over one channel.

The Write stream is opened with the first room and opened anew whenever it breaks; `WriteStream` decides
what goes over it. Events that come of it are handed to `on_events` on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import grpc.aio

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall.engine.outputs import BaseOut, RecordOut, StoredRoom
from playhall_common import auth, logs
from playhall_common.errors import ApiError, from_rpc
from playhall_roomhost.write_stream import Event, WriteStream

__all__ = ["Granted", "OpenOutcome", "ShardClient", "Token", "strike"]

OPEN_S = 10.0
CLOSE_TRY_S = 5.0
# Tokens come from data, by routers, within seconds of its return. Where none came for so long, nobody can
# open the room anew either.
TOKEN_WAIT_S = 900.0
STRIKE_S = 5.0
BEAT_S = 1.0
SILENT_S = 10.0
_RETRY_FIRST_S = 0.05
_RETRY_LONGEST_S = 1.0
_MAX_STATE_BYTES = 64 * 1024 * 1024
_UNSETTLED = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.LIMIT, ErrorCode.INTERNAL})
"""After these nothing is known; the same request may be sent again."""

log = logs.get_logger()


class Token:
    """The newest host token of the process. `text` is empty before the first."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def metadata(self) -> auth.Metadata:
        return auth.bearer_metadata(self.text)


@dataclass(frozen=True, slots=True)
class Granted:
    """The room is this host's to write."""

    grant: pb.Granted
    stored: StoredRoom | None


OpenOutcome = Granted | pb.AlreadyOpen | pb.OpenBackoff | pb.RoomDeleted


async def strike(address: str, token: str, request: pb.StrikeRequest) -> bool:
    """Report a failure of room code, on a channel of its own. Whether the shard took note."""
    async with auth.channel(address) as channel:
        return await _strike(rpc.StateStoreStub(channel), auth.bearer_metadata(token), request)


async def _strike(stub: rpc.StateStoreAsyncStub, metadata: auth.Metadata, request: pb.StrikeRequest) -> bool:
    try:
        await stub.Strike(request, metadata=metadata, timeout=STRIKE_S, wait_for_ready=True)
    except grpc.aio.AioRpcError as failure:
        error = from_rpc(failure)
        log.warning("strike_failed", room_uid=request.room_uid, code=error.code, error=error.message)
        return False
    return True


@dataclass(slots=True)
class _Received:
    """The answer to Open as far as it has come."""

    outcome: OpenOutcome | None = None
    grant: pb.Granted | None = None
    base: bytes | None = None
    records: list[bytes] = field(default_factory=list)
    ended: bool = False
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    def take(self, response: pb.OpenResponse) -> None:
        match response.WhichOneof("part"):
            case "granted":
                self.grant = response.granted
                self.ended = not response.granted.has_state
            case "already_open":
                self.outcome = response.already_open
            case "backoff":
                self.outcome = response.backoff
            case "deleted":
                self.outcome = response.deleted
            case "state":
                self._state(response.state)

    def _state(self, part: pb.StatePart) -> None:
        self._size += len(part.data)
        if self._size > _MAX_STATE_BYTES:
            raise ApiError(ErrorCode.DAMAGED, f"the stored state is larger than {_MAX_STATE_BYTES} bytes")
        self._parts.append(part.data)
        if part.last:
            whole, self._parts = b"".join(self._parts), []
            if part.kind == pb.StatePart.KIND_BASE:
                self.base = whole
            else:
                self.records.append(whole)
        self.ended |= part.end

    def result(self) -> OpenOutcome | None:
        """None: the stream broke before its end."""
        if self.grant is None or not self.ended:
            return self.outcome
        stored = StoredRoom(self.base, self.records) if self.base is not None or self.records else None
        return Granted(self.grant, stored)


class ShardClient:
    """One shard, as this process sees it. `start` before use, `stop` at the end."""

    def __init__(
        self,
        address: str,
        host_id: str,
        token: Token,
        on_events: Callable[[Sequence[Event]], None],
        ticks: Callable[[], Iterable[tuple[str, int, int]]],
        token_wait_s: float = TOKEN_WAIT_S,
    ) -> None:
        self.address = address
        self.stream = WriteStream(host_id)
        self._token = token
        self._on_events = on_events
        self._ticks = ticks
        self._token_wait_s = token_wait_s
        self._channel = auth.channel(address)
        self._stub = rpc.StateStoreStub(self._channel)
        self._wake = asyncio.Event()
        self._beat_due = False
        self._call: grpc.aio.StreamStreamCall[pb.WriteRequest, pb.WriteResponse] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep a Write stream open."""
        self._task = asyncio.get_running_loop().create_task(
            self._keep_writing(), name=f"write {self.address}"
        )

    async def stop(self) -> None:
        """Close the stream and the channel; what is unacknowledged stays so."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._channel.close(grace=None)

    # Records.

    def add(self, room_uid: str, generation: int) -> None:
        """The shard granted this generation."""
        self.stream.add(room_uid, generation)
        self._wake.set()

    def remove(self, room_uid: str, generation: int) -> None:
        """The generation is over."""
        self.stream.remove(room_uid, generation)

    def record(self, room_uid: str, generation: int, record: RecordOut, now: float) -> None:
        """Send a record; `Durable` follows."""
        self.stream.record(room_uid, generation, record, now)
        self._wake.set()

    def base(self, room_uid: str, generation: int, base: BaseOut, now: float) -> None:
        """Send a base."""
        self.stream.base(room_uid, generation, base, now)
        self._wake.set()

    def refresh_token(self) -> None:
        """The process has a newer token."""
        self.stream.refresh_token(self._token.text)
        self._wake.set()

    def beat(self) -> None:
        """Call every second: tells the shard that the loop is alive."""
        self._beat_due = True
        self._wake.set()
        if self._call is not None and self.stream.silent_s(time.monotonic()) > SILENT_S:
            log.warning("shard_silent", shard=self.address)
            self._call.cancel()

    @property
    def verified(self) -> bool:
        """Whether the shard has confirmed, since `reverify`, which rooms are still ours."""
        return not self.stream.has_rooms or self.stream.answered

    def reverify(self) -> None:
        """Say hello anew: this process was away, and its rooms may be somebody else's by now."""
        self.stream.disconnected()
        if self._call is not None:
            self._call.cancel()

    # Calls.

    async def open(self, request: pb.OpenRequest) -> OpenOutcome:
        """Ask for a room, until there is an answer or 10 s are over. Raises ApiError."""
        request.open_id = secrets.token_hex(16)
        self.stream.learn_epoch(request.map_epoch)
        deadline = time.monotonic() + OPEN_S
        wait_s = _RETRY_FIRST_S
        while True:
            request.map_epoch = self.stream.map_epoch
            error = ApiError(ErrorCode.UNAVAILABLE, "the state store broke off")
            try:
                outcome = await self._open_once(request, deadline - time.monotonic())
                if outcome is not None:
                    return outcome
            except grpc.aio.AioRpcError as failure:
                error = from_rpc(failure)
            may_retry = error.code in _UNSETTLED or self._learn_epoch(error)
            if not may_retry or time.monotonic() + wait_s >= deadline:
                raise error
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _RETRY_LONGEST_S)

    def _learn_epoch(self, error: ApiError) -> bool:
        """A shard on a new volume names its epoch to who knows an older one. Whether that is news."""
        epoch = error.details.get("epoch", "") if error.code is ErrorCode.WRONG_SHARD else ""
        return epoch.isdecimal() and self.stream.learn_epoch(int(epoch))

    async def _open_once(self, request: pb.OpenRequest, timeout_s: float) -> OpenOutcome | None:
        received = _Received()
        call = self._stub.Open(request, metadata=self._token.metadata, timeout=timeout_s)
        try:
            async for response in call:
                received.take(response)
        finally:
            call.cancel()
        return received.result()

    async def close(self, request: pb.CloseRequest) -> bool:
        """End a generation, however long it takes. False: it was not ours any more. Cancel it to give up.

        While the token is not accepted it is tried again, with the newest there is, for `token_wait_s`.
        Raises ApiError after that, and where the shard refuses otherwise.
        """
        wait_s = _RETRY_FIRST_S
        deadline: float | None = None
        while True:
            try:
                await self._stub.Close(
                    request, metadata=self._token.metadata, timeout=CLOSE_TRY_S, wait_for_ready=True
                )
                return True
            except grpc.aio.AioRpcError as failure:
                error = from_rpc(failure)
            if error.code is ErrorCode.FENCED:
                log.warning("close_refused", room_uid=request.room_uid, code=error.code, error=error.message)
                return False
            if error.code is ErrorCode.UNAUTHENTICATED:
                deadline = deadline or time.monotonic() + self._token_wait_s
                if time.monotonic() + wait_s >= deadline:
                    raise error
            elif error.code not in _UNSETTLED:
                raise error
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _RETRY_LONGEST_S)

    async def strike(self, request: pb.StrikeRequest) -> bool:
        """Report a failure of room code. Whether the shard took note."""
        return await _strike(self._stub, self._token.metadata, request)

    # The stream.

    async def _keep_writing(self) -> None:
        wait_s = _RETRY_FIRST_S
        while True:
            began = time.monotonic()
            try:
                await self._write_once()
            except grpc.aio.AioRpcError as failure:
                error = from_rpc(failure)
                self._learn_epoch(error)
                log.info("write_stream_broke", shard=self.address, code=error.code, error=error.message)
            except asyncio.InvalidStateError:
                # The stream ended while a request was handed to it.
                log.info("write_stream_broke", shard=self.address)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
            finally:
                self._call = None
                self.stream.disconnected()
            wait_s = _RETRY_FIRST_S if time.monotonic() - began > _RETRY_LONGEST_S else wait_s
            # Many hosts lose their streams together when a shard restarts; they need not all be back
            # together.
            await asyncio.sleep(wait_s * random.uniform(0.5, 1))
            wait_s = min(2 * wait_s, _RETRY_LONGEST_S)

    async def _write_once(self) -> None:
        call = self._stub.Write(metadata=self._token.metadata, wait_for_ready=True)
        self._call = call
        self.stream.connected(time.monotonic())
        reader = asyncio.get_running_loop().create_task(self._read(call))
        try:
            await self._feed(call, reader)
        finally:
            reader.cancel()
            call.cancel()
            await asyncio.wait([reader])
        if not reader.cancelled():
            reader.result()

    async def _feed(
        self, call: grpc.aio.StreamStreamCall[pb.WriteRequest, pb.WriteResponse], reader: asyncio.Task[None]
    ) -> None:
        """Send what there is to send, as it comes, until the stream ends."""
        self._wake.set()
        reader.add_done_callback(lambda _: self._wake.set())
        while not reader.done():
            await self._wake.wait()
            self._wake.clear()
            if self._beat_due:
                self._beat_due = False
                beat = self.stream.heartbeat(self._ticks())
                if beat is not None:
                    await call.write(beat)
            while not reader.done() and (request := self.stream.next_request()) is not None:
                self._dispatch()
                await call.write(request)
            self._dispatch()

    async def _read(self, call: grpc.aio.StreamStreamCall[pb.WriteRequest, pb.WriteResponse]) -> None:
        async for response in call:
            self.stream.received(response, time.monotonic())
            self._wake.set()
            self._dispatch()

    def _dispatch(self) -> None:
        events = self.stream.take_events()
        if events:
            self._on_events(events)
