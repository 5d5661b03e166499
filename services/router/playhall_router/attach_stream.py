"""One Attach stream: feeds an `Attachment` with what comes down, and sends its batches up.

When batches leave is for `Departures` to say. The stream ends when it breaks, when the host falls silent, or
when it has had nothing to do for a while; its owner is told, once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import grpc.aio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall_common import logs
from playhall_common.auth import channel
from playhall_common.errors import ApiError
from playhall_router.attach import Attachment, Client, Ended, JoinRequest, Link
from playhall_router.departures import Departures
from playhall_router.wake import Route

__all__ = ["AttachStream"]

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
        self._departures = Departures()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._leaves = asyncio.Event()
        self.attachment = Attachment(route.host_id, now, self._leave_in_time)
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

    def blame(self, link: Link) -> Link | None:
        """See Attachment.blame."""
        return self.attachment.blame(link)

    def leave(self, link: Link, clean: bool) -> None:
        """See Attachment.leave."""
        self.attachment.leave(link, clean)

    def drained(self) -> None:
        """A client has drained enough to be worth telling."""
        self._leave_in_time()

    def offer_places(self, count: int) -> None:
        """Tell the host for how many of its rooms there are places elsewhere."""
        self._places = count
        self._leave_in_time()

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
            self._disarm()
            await target.close(None)

    async def _read(self, call: AttachCall) -> None:
        loop = asyncio.get_running_loop()
        while isinstance(response := await call.read(), pb.AttachResponse):
            # Before what takes a while, for it counts from when it was said.
            self._departures.told(response.next_ticks_us / 1e6, time.monotonic())
            for ended in self.attachment.received(response, loop.time()):
                self._on_ended(self, ended)
            if self._timer is not None or self.attachment.owes_credit:
                self._leave_in_time()

    def _leave_in_time(self) -> None:
        """Something waits, or what there is about its time is new."""
        self._disarm()
        now = time.monotonic()
        wait = self._departures.next(now) - now
        if wait > 0:
            self._timer = self._loop.call_later(wait, self._leaves.set)
        else:
            self._leaves.set()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _write(self, call: AttachCall) -> None:
        """Send what there is to say. Only this task writes: a stream takes one message at a time."""
        hello = pb.AttachHello(router_id=self._router_id, host_id=self.host_id)
        await call.write(pb.AttachRequest(hello=hello))
        while True:
            await self._leaves.wait()
            self._read_first()
            self._leaves.clear()
            self._disarm()
            await self._write_all(call)

    async def _write_all(self, call: AttachCall) -> None:
        frames = len(self.attachment.uplink)
        beat, self._beat_due = self._beat_due, False
        batch = self.attachment.batch(self._loop.time(), all_credit=beat)
        if batch is None and (beat or self._new_token or self._places):
            batch = pb.AttachRequest()
        if batch is None:
            return
        self._departures.left(frames, time.monotonic())
        batch.host_token, self._new_token = self._new_token, ""
        batch.places, self._places = self._places, 0
        while batch is not None:
            await call.write(batch)
            batch = self.attachment.batch(self._loop.time())

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
            self._leave_in_time()

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
                    self._leave_in_time()
            await asyncio.sleep(TOKEN_S)


def _why(error: BaseException) -> str:
    return error.details() or error.code().name if isinstance(error, grpc.aio.AioRpcError) else str(error)


class _OverError(Exception):
    """The stream is of no use any more."""
