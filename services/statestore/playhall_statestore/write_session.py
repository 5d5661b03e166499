"""One Write stream: a reader that only queues, and a sender that says what was committed.

The reader never waits for a commit, so that nothing of a host that dies is lost in its socket; beyond 4 MB it
stops reading. Both sides say something at least each second.

Who the host is was settled at hello, and what it may write by the grants: a stream outlives the token that
opened it, so that rooms lose nothing however long data, which signs tokens, is away.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc.aio

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_statestore import messages
from playhall_statestore.callers import Caller, Callers
from playhall_statestore.epochs import Epochs
from playhall_statestore.links import WriteLink
from playhall_statestore.store import Store

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[Any, Any]

__all__ = ["HEARTBEAT_S", "WriteSession", "send"]

HELLO_S = 5.0
HEARTBEAT_S = 1.0
SEND_S = 10.0


async def send(context: Context, message: Any) -> None:
    """Send on a stream; a peer that is gone, or does not read for long, is given up: E_UNAVAILABLE."""
    try:
        async with asyncio.timeout(SEND_S):
            await context.write(message)
    except TimeoutError:
        raise ApiError(ErrorCode.UNAVAILABLE, "the peer does not read") from None
    except grpc.aio.InternalError:
        raise ApiError(ErrorCode.UNAVAILABLE, "the peer is gone") from None


class WriteSession:
    """Runs from hello to the end of the stream. Raises ApiError to end it with an error."""

    def __init__(self, store: Store, callers: Callers, epochs: Epochs, who: Caller, context: Context) -> None:
        self._store = store
        self._callers = callers
        self._epochs = epochs
        self._who = who
        self._context = context
        self._numbers = messages.Numbers()

    async def run(self) -> None:
        hello, first = await self._hello()
        self._numbers.learn(hello.rooms)
        link = self._store.open_write(hello.host_id, self._who.project, messages.grants(hello))
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = tasks.create_task(self._send(link))
                tasks.create_task(self._read(link, first, sender))
        except* ApiError as errors:
            raise errors.exceptions[0] from None
        finally:
            self._store.close_write(link)

    async def _hello(self) -> tuple[pb.WriteHello, pb.WriteRequest]:
        try:
            async with asyncio.timeout(HELLO_S):
                first = await self._context.read()
        except TimeoutError:
            raise ApiError(ErrorCode.INVALID, "no hello came") from None
        if not isinstance(first, pb.WriteRequest) or not first.HasField("hello"):
            raise ApiError(ErrorCode.INVALID, "a Write stream begins with hello")
        messages.checked_host(first.hello.host_id)
        if self._who.project is not None:
            self._who.check(self._who.project, first.hello.host_id)
        await self._epochs.check(first.hello.map_epoch)
        return first.hello, first

    async def _read(self, link: WriteLink, first: pb.WriteRequest, sender: asyncio.Task[None]) -> None:
        """Until the host ends its side."""
        request: Any = first
        while request is not grpc.aio.EOF:
            self._store.heard(link)
            if request.host_token:
                self._refresh(request.host_token, link.host_id)
            if request.ticks:
                await self._store.queue_ticks(link, messages.ticks(request))
            if request.rooms or request.ended:
                self._numbers.learn(request.rooms, request.ended)
            if request.records or request.run:
                parts = messages.parts(link.stream, request)
                await self._store.queue_parts(link, parts + self._numbers.parts(link.stream, request.run))
            request = await self._context.read()
        sender.cancel()

    def _refresh(self, token: str, host_id: str) -> None:
        who = self._callers.host(token)
        if self._who.project is not None:
            who.check(self._who.project)
        if who.host_id != host_id:
            raise ApiError(ErrorCode.FORBIDDEN, "the host token is for another host")
        self._who = who

    async def _send(self, link: WriteLink) -> None:
        while True:
            await link.signal.wait(HEARTBEAT_S)
            waiting, hello = link.take()
            await send(self._context, self._numbers.acks(waiting, hello))
            if link.error is not None:
                raise ApiError(link.error.code, link.error.message)
