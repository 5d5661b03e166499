"""Group commit: one queue, one commit at a time, answers after it.

Requests wait until the oldest is `commit_s` old or 256 KiB are together; whatever came while a commit ran
is the next one. Who submits never waits for a commit. A full disk fails the batch as a whole and everyone in
it is told; any other failure ends the process, because whether the commit happened cannot be known.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_statestore import meters
from playhall_statestore.model import Change, Now
from playhall_statestore.requests import EndStream, Hello, Output, Part, Parts, Refused, Reply, Request, Ticks
from playhall_statestore.shard import Shard
from playhall_statestore.volume import DiskFullError
from playhall_statestore.writer import Writer

__all__ = ["EXIT_UNKNOWN_COMMIT", "Committer", "wall_clock"]

BATCH_BYTES = 256 * 1024
BATCH_REQUESTS = 2_000
EXIT_UNKNOWN_COMMIT = 70
# What a request weighs besides the bytes it carries, and what each room that it names does.
OVERHEAD_BYTES = 128
ROOM_BYTES = 64

log = logs.get_logger()


def wall_clock() -> Now:
    return Now(time.monotonic(), time.time_ns() // 1_000_000)


def _content_bytes(request: Request) -> int:
    match request:
        case Part():
            return len(request.data)
        case Parts():
            extra = OVERHEAD_BYTES * (len(request.parts) - 1)
            return sum([len(part.data) for part in request.parts]) + extra
        case Hello() | Ticks():
            return ROOM_BYTES * len(request.rooms)
        case _:
            return 0


def _whole_items(request: Part | Parts) -> int:
    """How many records and bases end in it."""
    parts = request.parts if isinstance(request, Parts) else [request]
    return sum([part.last for part in parts])


@dataclass(frozen=True, slots=True)
class _Queued:
    request: Request
    size: int
    at: float
    done: Callable[[int], None] | None


class Committer:
    """The queue before the shard."""

    def __init__(
        self,
        shard: Shard,
        writer: Writer,
        deliver: Callable[[list[Output]], None],
        disk_full: Callable[[], None],
        *,
        commit_s: float,
    ) -> None:
        self._shard = shard
        self._writer = writer
        self._deliver = deliver
        self._disk_full = disk_full
        self._commit_s = commit_s
        self._queue: deque[_Queued] = deque()
        self._bytes = 0
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._queue)

    def submit(self, request: Request, done: Callable[[int], None] | None = None) -> int:
        """Queue a request. `done` is called with the size that this gives, once it is out of the queue."""
        size = OVERHEAD_BYTES + _content_bytes(request)
        self._queue.append(_Queued(request, size, time.monotonic(), done))
        self._bytes += size
        self._some.set()
        self._empty.clear()
        if self._bytes >= BATCH_BYTES or len(self._queue) >= BATCH_REQUESTS:
            self._enough.set()
        return size

    async def flushed(self) -> None:
        """Until everything that is queued is committed and answered."""
        self._enough.set()
        await self._empty.wait()

    async def run(self) -> None:
        """For as long as the shard serves."""
        while True:
            await self._some.wait()
            await self._gather()
            await self._commit(self._take())
            if not self._queue:
                self._empty.set()

    async def _gather(self) -> None:
        wait_s = self._queue[0].at + self._commit_s - time.monotonic()
        if wait_s > 0 and not self._enough.is_set():
            try:
                async with asyncio.timeout(wait_s):
                    await self._enough.wait()
            except TimeoutError:
                return

    def _take(self) -> list[_Queued]:
        batch: list[_Queued] = []
        size = 0
        while self._queue and size < BATCH_BYTES and len(batch) < BATCH_REQUESTS:
            queued = self._queue.popleft()
            size += queued.size
            batch.append(queued)
        self._bytes -= size
        if not self._queue:
            self._some.clear()
        if self._bytes < BATCH_BYTES and len(self._queue) < BATCH_REQUESTS:
            self._enough.clear()
        meters.QUEUE_BYTES.set(self._bytes)
        return batch

    async def _commit(self, batch: list[_Queued]) -> None:
        now = wall_clock()
        for queued in batch:
            self._shard.apply(queued.request, now)
        changes = self._shard.take_changes()
        if changes is None or await self._write(changes):
            outputs = self._shard.committed(wall_clock())
        else:
            outputs = self._refuse(batch)
        self._deliver(outputs)
        self._release(batch)

    async def _write(self, changes: list[Change]) -> bool:
        """Whether it is on disk. No third answer leaves here."""
        began = time.monotonic()
        try:
            await self._writer.commit(changes)
        except DiskFullError:
            meters.COMMITS.labels("full").inc()
            return False
        except Exception:
            log.critical("commit_failed", exc_info=True)
            os._exit(EXIT_UNKNOWN_COMMIT)
        meters.COMMITS.labels("ok").inc()
        meters.COMMIT_SECONDS.observe(time.monotonic() - began)
        return True

    def _refuse(self, batch: list[_Queued]) -> list[Output]:
        log.error("disk_full", requests=len(batch))
        requests = [queued.request for queued in batch]
        streams = {request.stream for request in requests if hasattr(request, "stream")}
        tokens = [request.token for request in requests if hasattr(request, "token")]
        self._shard.rolled_back(streams)
        self._disk_full()
        full = Refused(ErrorCode.FULL, "the shard's disk is full")
        return [
            *(Reply(token, full) for token in tokens),
            *(EndStream(stream, full) for stream in sorted(streams)),
        ]

    def _release(self, batch: list[_Queued]) -> None:
        now = time.monotonic()
        for queued in batch:
            if isinstance(queued.request, Part | Parts):
                meters.APPEND_SECONDS.observe(now - queued.at, _whole_items(queued.request))
            if queued.done is not None:
                queued.done(queued.size)
