"""statestore.v1 on the wire: protos to requests and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc.aio

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2_grpc as pb_grpc
from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_statestore import messages
from playhall_statestore.callers import Callers, caller
from playhall_statestore.epochs import Epochs
from playhall_statestore.links import WatchLink
from playhall_statestore.loader import Loader
from playhall_statestore.requests import AlreadyOpen, Answer, Backoff, Granted, Refused, Struck
from playhall_statestore.store import Store
from playhall_statestore.write_session import HEARTBEAT_S, WriteSession, send

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[Any, Any]

__all__ = ["StateStoreServicer"]

LOAD_TRIES = 3
LOAD_SLOT_S = 10.0
MAX_ERROR_CHARS = 2_000

log = logs.get_logger()


class StateStoreServicer(pb_grpc.StateStoreServicer):
    """See statestore.proto."""

    def __init__(self, store: Store, loader: Loader, callers: Callers, epochs: Epochs) -> None:
        self._store = store
        self._loader = loader
        self._callers = callers
        self._epochs = epochs

    async def Open(self, request: pb.OpenRequest, context: Context) -> None:  # type: ignore[override]
        messages.open_room(0, request)
        caller().check(request.project, request.host_id)
        self._refuse_while_draining()
        await self._epochs.check(request.map_epoch)
        answer = await self._open(request)
        if not isinstance(answer, Granted):
            await send(context, messages.outcome(answer))
            return
        async with self._load_slot():
            items = await self._loader.read(request.room_uid, answer)
            log.info(
                "room_opened",
                project=request.project,
                room_uid=request.room_uid,
                generation=answer.generation,
                host_id=request.host_id,
                prior_end=answer.prior_end.name,
            )
            await send(context, messages.outcome(answer))
            for part in messages.state_parts(items):
                await send(context, part)

    async def _open(self, request: pb.OpenRequest) -> Granted | AlreadyOpen | Backoff:
        """Rows may leave for the object store between the look and the grant: then look again."""
        for _ in range(LOAD_TRIES):
            await self._loader.prepare(request.room_uid, has_state=request.has_state)
            answer = await self._store.ask(lambda token: messages.open_room(token, request))
            if not isinstance(answer, Refused) or answer.code is not ErrorCode.UNAVAILABLE:
                break
        answer = _accepted(answer)
        assert isinstance(answer, Granted | AlreadyOpen | Backoff), "what Open is answered"
        return answer

    @asynccontextmanager
    async def _load_slot(self) -> AsyncIterator[None]:
        """Bounds what loaded states hold in memory. E_UNAVAILABLE where none is free in time."""
        slots = self._loader.slots
        try:
            async with asyncio.timeout(LOAD_SLOT_S):
                await slots.acquire()
        except TimeoutError:
            raise ApiError(ErrorCode.UNAVAILABLE, "too many rooms load at once") from None
        try:
            yield
        finally:
            slots.release()

    async def Write(self, request_iterator: object, context: Context) -> None:  # type: ignore[override]
        await WriteSession(self._store, self._callers, self._epochs, caller(), context).run()

    async def Close(self, request: pb.CloseRequest, context: Context) -> pb.CloseResponse:
        caller().check(request.project, request.host_id)
        _accepted(await self._store.ask(lambda token: messages.close_room(token, request)))
        log.info(
            "room_closed",
            project=request.project,
            room_uid=request.room_uid,
            generation=request.generation,
            end=pb.End.Name(request.kind),
        )
        return pb.CloseResponse()

    async def Strike(self, request: pb.StrikeRequest, context: Context) -> pb.StrikeResponse:
        caller().check(request.project)
        answer = _accepted(await self._store.ask(lambda token: messages.strike_room(token, request)))
        assert isinstance(answer, Struck), "what Strike is answered"
        log.warning(
            "room_struck",
            project=request.project,
            room_uid=request.room_uid,
            generation=request.generation,
            strikes=answer.strikes,
            error=request.error[:MAX_ERROR_CHARS],
        )
        return pb.StrikeResponse(strikes=answer.strikes)

    async def Watch(self, request_iterator: object, context: Context) -> None:  # type: ignore[override]
        link = self._store.open_watch()
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = tasks.create_task(self._send_news(link, context))
                tasks.create_task(self._read_watches(link, context, sender))
        except* ApiError as errors:
            raise errors.exceptions[0] from None
        finally:
            self._store.close_watch(link)

    async def _read_watches(self, link: WatchLink, context: Context, sender: asyncio.Task[None]) -> None:
        while (request := await context.read()) is not grpc.aio.EOF:
            assert isinstance(request, pb.WatchRequest), "what the stub decodes"
            self._store.watch(link, [messages.checked_uid(uid) for uid in request.watch])
            self._store.unwatch(link, list(request.unwatch))
        sender.cancel()

    async def _send_news(self, link: WatchLink, context: Context) -> None:
        while True:
            await link.signal.wait(HEARTBEAT_S)
            rooms = [messages.room_status(room) for room in link.take()]
            await send(context, pb.WatchResponse(rooms=rooms, heartbeat=not rooms))
            if link.error is not None:
                raise ApiError(link.error.code, link.error.message)

    def _refuse_while_draining(self) -> None:
        if self._store.draining:
            raise ApiError(ErrorCode.UNAVAILABLE, "the shard is stopping")


def _accepted(answer: Answer) -> Answer:
    """Raises what was refused."""
    if isinstance(answer, Refused):
        raise ApiError(answer.code, answer.message)
    return answer
