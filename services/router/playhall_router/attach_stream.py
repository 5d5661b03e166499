"""One Attach stream: feeds an `Attachment` with what comes down, and sends its batches up.

A batch costs as much as a hundred frames, whatever is in it. It goes out at once when the stream is idle,
else 5 ms after the last, or 10 where that carried many frames. The stream ends when it breaks, when the host
falls silent, or when it has had nothing to do for a while; its owner is told, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import grpc.aio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall_common import logs
from playhall_common.auth import channel
from playhall_common.errors import ApiError
from playhall_router.attach import Attachment, Client, Ended, JoinRequest, Link
from playhall_router.wake import Route

__all__ = ["AttachStream"]

GATHER_S = 0.005
MANY_FRAMES = 32
GATHER_MANY_S = 0.010
BEAT_S = 0.5
IDLE_S = 10.0
TOKEN_S = 10.0

AttachCall: TypeAlias = "grpc.aio.StreamStreamCall[pb.AttachRequest, pb.AttachResponse]"

log = logs.get_logger()


class AttachStream:
    """The stream to the process of a route. `run` is its life; all else may be called while it runs."""

    def __init__(
        self,
        route: Route,
        *,
        router_id: str,
        now: float,
        on_ended: Callable[[AttachStream, Ended], None],
        host_token: Callable[[str], Awaitable[str]],
        read_first: Callable[[], object] = lambda: None,
    ) -> None:
        """`read_first` is called before a batch goes out, so that it has what clients have sent by then."""
        self.host_id = route.host_id
        self.address = route.address
        self._wake = asyncio.Event()
        self.attachment = Attachment(route.host_id, now, self._wake.set)
        self._router_id = router_id
        self._on_ended = on_ended
        self._host_token = host_token
        self._read_first = read_first
        self._used_at = now
        self._beat_due = False
        self._new_token = ""
        self._places = 0
        self.broken = False

    # Called by sessions.

    def join(self, client: Client, route: Route, request: JoinRequest) -> Link:
        """See Attachment.join."""
        return self.attachment.join(client, route, request)

    def blame(self, link: Link) -> Link:
        """See Attachment.blame."""
        return self.attachment.blame(link)

    def leave(self, link: Link, clean: bool) -> None:
        """See Attachment.leave."""
        self.attachment.leave(link, clean)

    def drained(self) -> None:
        """A client has drained enough to be worth telling."""
        self._wake.set()

    def offer_places(self, count: int) -> None:
        """Tell the host for how many of its rooms there are places elsewhere."""
        self._places = count
        self._wake.set()

    # Its life.

    async def run(self) -> None:
        """Attach, and stay so until the stream is of no use any more. Raises nothing a host can cause."""
        target = channel(self.address)
        try:
            async with asyncio.TaskGroup() as group:
                call = rpc.RoomHostStub(target).Attach()
                group.create_task(self._write(call))
                group.create_task(self._beat())
                group.create_task(self._renew_token())
                await self._read(call)
                raise _OverError("the host ended the stream")
        except* (_OverError, grpc.aio.AioRpcError, asyncio.InvalidStateError, ValueError) as errors:
            log.info(
                "attach_ended", host_id=self.host_id, address=self.address, why=_why(errors.exceptions[0])
            )
        finally:
            self.broken = True
            await target.close(None)

    async def _read(self, call: AttachCall) -> None:
        loop = asyncio.get_running_loop()
        while isinstance(response := await call.read(), pb.AttachResponse):
            for ended in self.attachment.received(response, loop.time()):
                self._on_ended(self, ended)
            if self.attachment.owes_credit:
                self._wake.set()

    async def _write(self, call: AttachCall) -> None:
        """Send what there is to say. Only this task writes: a stream takes one message at a time."""
        hello = pb.AttachHello(router_id=self._router_id, host_id=self.host_id)
        await call.write(pb.AttachRequest(hello=hello))
        while True:
            await self._wake.wait()
            self._read_first()
            self._wake.clear()
            many = len(self.attachment.uplink) >= MANY_FRAMES
            if await self._write_all(call):
                await asyncio.sleep(GATHER_MANY_S if many else GATHER_S)

    async def _write_all(self, call: AttachCall) -> bool:
        loop = asyncio.get_running_loop()
        beat, self._beat_due = self._beat_due, False
        batch = self.attachment.batch(loop.time(), all_credit=beat)
        if batch is None and (beat or self._new_token or self._places):
            batch = pb.AttachRequest()
        if batch is None:
            return False
        batch.host_token, self._new_token = self._new_token, ""
        batch.places, self._places = self._places, 0
        while batch is not None:
            await call.write(batch)
            batch = self.attachment.batch(loop.time())
        return True

    async def _beat(self) -> None:
        """Tell the host that this side lives, report what credit is left over, listen for its silence."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(BEAT_S)
            now = loop.time()
            if self.attachment.silent(now):
                raise _OverError("the host fell silent")
            if len(self.attachment) or len(self.attachment.uplink):
                self._used_at = now
            elif now - self._used_at > IDLE_S:
                raise _OverError("nobody is attached")
            self._beat_due = True
            self._wake.set()

    async def _renew_token(self) -> None:
        """Hand the host each new token there is for it: minutes before the one that it has ends, and within
        seconds where data was away for so long that it ended.
        """
        newest = ""
        while True:
            try:
                token = await self._host_token(self.host_id)
            except ApiError as error:
                log.warning("host_token_missing", host_id=self.host_id, error=error.message)
            else:
                if token != newest:
                    newest = self._new_token = token
                    self._wake.set()
            await asyncio.sleep(TOKEN_S)


def _why(error: BaseException) -> str:
    return error.details() or error.code().name if isinstance(error, grpc.aio.AioRpcError) else str(error)


class _OverError(Exception):
    """The stream is of no use any more."""
