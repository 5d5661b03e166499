"""The shell around the shard: it queues requests, hands out what the shard says, and runs its clock."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_statestore import meters
from playhall_statestore.committer import EXIT_UNKNOWN_COMMIT, Committer, wall_clock
from playhall_statestore.links import WatchLink, WriteLink
from playhall_statestore.requests import (
    Acks,
    Answer,
    EndStream,
    Hello,
    News,
    Output,
    Part,
    Parts,
    Refused,
    Reply,
    Request,
    StreamClosed,
    Ticks,
)
from playhall_statestore.shard import Shard
from playhall_statestore.volume import DiskFullError
from playhall_statestore.writer import Reader, Writer

if TYPE_CHECKING:
    from playhall_statestore.disk import Disk
    from playhall_statestore.model import Room

__all__ = ["Store"]

ANSWER_S = 10.0
MAX_REQUESTS = 10_000
MAX_WATCHED = 100_000
TIMER_S = 0.1
HOUSEKEEPING_S = 1.0
SWEEP_S = 0.01

log = logs.get_logger()


class Store:
    """One shard, running."""

    def __init__(self, shard: Shard, writer: Writer, reader: Reader, disk: Disk, *, commit_s: float) -> None:
        self.shard = shard
        self._writer = writer
        self._reader = reader
        self._disk = disk
        self._committer = Committer(shard, writer, self._deliver, self._full, commit_s=commit_s)
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._writes: dict[int, WriteLink] = {}
        self._watches: dict[int, WatchLink] = {}
        self._draining = False
        disk.take_ballast()
        self.shard.takes_new_rooms = not disk.nearly_full()

    @property
    def draining(self) -> bool:
        return self._draining

    def room(self, uid: str) -> Room | None:
        return self.shard.room(uid)

    async def ask(self, make: Callable[[int], Request]) -> Answer:
        """Queue the request that `make(token)` gives; its answer, once durable. Raises ApiError."""
        if len(self._committer) >= MAX_REQUESTS:
            raise ApiError(ErrorCode.UNAVAILABLE, "too many requests wait for a commit")
        token = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[token] = answer
        self._committer.submit(make(token))
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answer
        except TimeoutError:
            raise ApiError(
                ErrorCode.UNAVAILABLE, "the commit takes too long; its outcome is unknown"
            ) from None
        finally:
            del self._answers[token]

    def tell(self, request: Request) -> None:
        """Queue a request that has no answer."""
        self._committer.submit(request)

    # Write streams.

    def open_write(self, host_id: str, project: str | None, rooms: tuple[tuple[str, int], ...]) -> WriteLink:
        """A stream said hello. Ends an older stream of the host."""
        link = WriteLink(next(self._numbers), host_id)
        old = self.shard.stream_opened(link.stream, host_id, wall_clock())
        if old is not None and old in self._writes:
            self._writes[old].end(Refused(ErrorCode.FENCED, "the host opened another Write stream"))
        self._writes[link.stream] = link
        self._committer.submit(Hello(link.stream, host_id, project, rooms))
        return link

    def heard(self, link: WriteLink) -> None:
        self.shard.stream_beat(link.stream, link.host_id, wall_clock())

    async def queue_parts(self, link: WriteLink, parts: list[Part]) -> None:
        """Queue what came, and return when more may be read."""
        link.queued(self._committer.submit(Parts(link.stream, parts), link.committed))
        await self._until_room(link)

    async def queue_ticks(self, link: WriteLink, rooms: tuple[tuple[str, int, int], ...]) -> None:
        """The same for ticks of quiet rooms."""
        link.queued(self._committer.submit(Ticks(link.stream, rooms), link.committed))
        await self._until_room(link)

    async def _until_room(self, link: WriteLink) -> None:
        if not link.has_room:
            self.shard.stream_reading(link.stream, link.host_id, False, wall_clock())
            await link.room()
            self.shard.stream_reading(link.stream, link.host_id, True, wall_clock())

    def close_write(self, link: WriteLink) -> None:
        self._writes.pop(link.stream, None)
        self.shard.stream_closed(link.stream, link.host_id, wall_clock())
        self._committer.submit(StreamClosed(link.stream))

    # Watch streams.

    def open_watch(self) -> WatchLink:
        link = WatchLink(next(self._numbers))
        self._watches[link.watcher] = link
        return link

    def watch(self, link: WatchLink, uids: list[str]) -> None:
        """Follow rooms. Raises ApiError beyond the bound."""
        if self.shard.watch_count(link.watcher) + len(uids) > MAX_WATCHED:
            raise ApiError(ErrorCode.LIMIT, f"more than {MAX_WATCHED} rooms on a Watch stream")
        now = wall_clock()
        for uid in uids:
            self._deliver(self.shard.watch(link.watcher, uid, now))

    def unwatch(self, link: WatchLink, uids: list[str]) -> None:
        for uid in uids:
            self.shard.unwatch(link.watcher, uid)
            link.forget(uid)

    def close_watch(self, link: WatchLink) -> None:
        self._watches.pop(link.watcher, None)
        self.shard.watcher_left(link.watcher)

    # Life.

    async def run(self) -> None:
        """Until cancelled. A part that fails ends the process: none can be missed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._committer.run())
                tasks.create_task(self._run_clock())
                tasks.create_task(self._run_housekeeping())
                tasks.create_task(self._run_sweep())
        except* Exception:
            log.critical("store_failed", exc_info=True)
            os._exit(EXIT_UNKNOWN_COMMIT)

    async def drain(self) -> None:
        """Refuse Open, commit what came, end the streams."""
        self._draining = True
        await self._committer.flushed()
        going = Refused(ErrorCode.UNAVAILABLE, "the shard is stopping")
        for write in self._writes.values():
            write.end(going)
        for watch in self._watches.values():
            watch.end(going)

    async def close(self) -> None:
        """After `run` ended: what is committed is in the database, not in a log beside it."""
        await self._reader.close()
        await self._writer.close()

    async def _run_clock(self) -> None:
        while True:
            outputs, expired = self.shard.timer(now := wall_clock())
            self._deliver(outputs)
            for request in expired:
                self._committer.submit(request)
            wait_s = self.shard.next_timer(now) - wall_clock().mono
            await asyncio.sleep(min(TIMER_S, max(0.005, wait_s)))

    async def _run_housekeeping(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            try:
                if await self._reader.checkpoint():
                    await self._writer.restart_wal()
            except DiskFullError:
                log.error("checkpoint_found_disk_full")
                self._full()
                continue
            has_ballast = await asyncio.to_thread(self._disk.take_ballast)
            self.shard.takes_new_rooms = has_ballast and not self._disk.nearly_full()
            self._count_rooms()

    async def _run_sweep(self) -> None:
        while True:
            try:
                more = await self._writer.sweep()
            except DiskFullError:
                log.error("sweep_found_disk_full")
                self._full()
                more = False
            await asyncio.sleep(SWEEP_S if more else HOUSEKEEPING_S)

    def _count_rooms(self) -> None:
        counts = dict.fromkeys(("held", "closed", "evicted"), 0)
        for room in self.shard.rooms():
            counts["held" if room.held else "evicted" if room.evicted else "closed"] += 1
        for state, count in counts.items():
            meters.ROOMS.labels(state).set(count)

    def _full(self) -> None:
        self._disk.free_ballast()
        self.shard.takes_new_rooms = False

    def _deliver(self, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case Reply(token, answer):
                    future = self._answers.get(token)
                    if future is not None and not future.done():
                        future.set_result(answer)
                case Acks(stream):
                    if stream in self._writes:
                        self._writes[stream].push(output)
                case EndStream(stream, error):
                    if stream in self._writes:
                        self._writes[stream].end(error)
                case News(watcher, room):
                    if watcher in self._watches:
                        self._watches[watcher].push(room)
