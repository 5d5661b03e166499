"""A room host process: its rooms, the shards they write to, and the routers attached to it.

Everything runs on one loop. A second's beat tells shards and routers that the loop turns. When the loop
itself was away for 3 s or more (a long pause, a blocked room), the process may have lost its rooms without
hearing of it: nothing goes down to routers until every shard has confirmed what is still ours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.backend import by_room
from playhall.engine.codes import CloseCode, ErrorCode
from playhall.engine.outputs import Now, Status
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_roomhost import meters
from playhall_roomhost.attach import AttachStream, link_number
from playhall_roomhost.build import LoadedBuild
from playhall_roomhost.inspection import list_rooms, show_room
from playhall_roomhost.join import read_join
from playhall_roomhost.places import Places
from playhall_roomhost.pulse import PulseWriter
from playhall_roomhost.room import RunningRoom, ended_down
from playhall_roomhost.rooms import Rooms
from playhall_roomhost.scheduler import Scheduler, Tick, Timer
from playhall_roomhost.statestore_client import ShardClient, Token
from playhall_roomhost.ticker import Ticker, Turn
from playhall_roomhost.write_stream import BaseNeeded, Deleted, Durable, Event

__all__ = ["RoomHost"]

BEAT_S = 1.0
PULSE_S = 0.25
AWAY_S = 3.0
MOVES_PER_S = 20
DRAIN_RESERVE_S = 2.0
MAX_SHARDS = 1_024
FRESH_S = 0.001
"""How old the time may be that rooms are told."""

log = logs.get_logger()


class RoomHost:
    """See the module's text. `start` before use, `drain` and `stop` at the end."""

    def __init__(
        self,
        build: LoadedBuild,
        *,
        host_id: str,
        address: str,
        project: str,
        max_rooms: int,
        pulse: PulseWriter,
        on_change: Callable[[], None],
        on_token: Callable[[str], None],
        inspector: bool = False,
    ) -> None:
        self.host_id = host_id
        self.project = project
        self.pulse = pulse
        self.scheduler: Scheduler[RunningRoom] = Scheduler()
        self.token = Token()
        self.rooms = Rooms(
            build, host_id, address, max_rooms, self, self._shard, time.perf_counter if inspector else None
        )
        self._inspector = inspector
        self.connections = 0
        self._on_change = on_change
        self._on_token = on_token
        self._ticker = Ticker(self.scheduler, self._due, self._flush)
        self._shards: dict[str, ShardClient] = {}
        self._streams: dict[int, AttachStream[RunningRoom]] = {}
        self._wakes: dict[int, asyncio.Event] = {}
        self._break_off: dict[int, Callable[[], object]] = {}
        self._touched: set[AttachStream[RunningRoom]] = set()
        self.touch: Callable[[AttachStream[RunningRoom]], None] = self._touched.add
        self.stream: Callable[[int], AttachStream[RunningRoom] | None] = self._streams.get
        self._now = Now(time.monotonic(), time.time())
        self._stream_numbers = 0
        self._counts: dict[RunningRoom, int] = {}
        self._verifying = False
        self._seen_at = time.monotonic()
        self._beat_at = 0.0
        self._beat_handle: asyncio.TimerHandle | None = None
        self._places = Places()
        self._emptier = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self.drained = False
        """No room is left, nor will one come: Attach streams end when they have said so."""
        self._after_is_due = False

    def start(self) -> None:
        """Begin to beat."""
        self._beat()

    async def stop(self) -> None:
        """End the streams to shards; the rooms that are left are left to the next host."""
        self._ticker.stop()
        if self._beat_handle is not None:
            self._beat_handle.cancel()
        for shard in self._shards.values():
            await shard.stop()

    # Rooms.

    async def start_room(self, request: pb.StartRequest) -> pb.StartResponse:
        """Start a room here, or find it running. Raises ApiError."""
        if request.host_id and request.host_id != self.host_id:
            raise ApiError(ErrorCode.FENCED, "another process answers here now")
        if request.project != self.project:
            raise ApiError(ErrorCode.BUSY, "the process is bound to another project")
        self.set_token(request.host_token)
        return await self.rooms.start(request)

    async def hibernate_room(self, room_uid: str, generation: int) -> None:
        """End a room so that it can start anew, and return when the state store has closed it."""
        room = self.rooms.get(room_uid, generation)
        if room is None:
            raise ApiError(ErrorCode.UNKNOWN, "the room does not run here in this generation")
        await room.ready
        room.move()
        self._after()
        await room.over.wait()

    def inspect(self, request: pb.InspectRequest) -> bytes:
        """What is to be seen of a room, or of all, as JSON. Raises ApiError."""
        if not self._inspector:
            raise ApiError(ErrorCode.FORBIDDEN, "the inspector is off")
        if request.host_id and request.host_id != self.host_id:
            raise ApiError(ErrorCode.FENCED, "another process answers here now")
        if not request.room_uid:
            return list_rooms(self.rooms, self.host_id)
        room = self.rooms.find(request.room_uid)
        if room is None:
            raise ApiError(ErrorCode.UNKNOWN, "the room does not run here")
        return show_room(room, self.host_id, request)

    def set_token(self, token: str) -> None:
        """Use a newer host token."""
        if token and token != self.token.text:
            self.token.text = token
            self._on_token(token)
            for shard in self._shards.values():
                shard.refresh_token()

    # Surroundings of rooms.

    def now(self, mono: float) -> Now:
        now = self._now
        if mono - now.mono > FRESH_S:
            now = self._now = Now(mono, time.time())
        return now

    def changed(self, room: RunningRoom) -> None:
        count = room.connections
        self.connections += count - self._counts.get(room, 0)
        self._counts[room] = count
        if room.over.is_set():
            del self._counts[room]
            self.rooms.release(room)
            self._emptier.set()
        self._on_change()
        self.soon()

    def soon(self) -> None:
        if not self._after_is_due:
            self._after_is_due = True
            asyncio.get_running_loop().call_soon(self._after)

    # Attach.

    def attach(
        self, hello: pb.AttachHello, break_off: Callable[[], object]
    ) -> tuple[AttachStream[RunningRoom], asyncio.Event]:
        """A router process attaches. The event says that there may be something to take; `break_off` ends
        the stream."""
        if hello.host_id != self.host_id:
            raise ApiError(ErrorCode.FENCED, "another process answers here now")
        self._stream_numbers += 1
        stream: AttachStream[RunningRoom] = AttachStream(self._stream_numbers, hello.router_id)
        self._streams[stream.number] = stream
        self._break_off[stream.number] = break_off
        wake = self._wakes[stream.number] = asyncio.Event()
        return stream, wake

    def detach(self, stream: AttachStream[RunningRoom]) -> None:
        """The stream is gone; its connections are lost to their rooms."""
        del self._streams[stream.number]
        del self._wakes[stream.number]
        del self._break_off[stream.number]
        self._touched.discard(stream)
        self._places.forget(stream.number)
        for link, room in list(stream.links.items()):
            room.leave(link_number(stream.number, link), False)
        self._after()

    def take(self, stream: AttachStream[RunningRoom]) -> pb.AttachResponse | None:
        """What goes down now; nothing while it is not certain which rooms are still ours."""
        now = self._look_away()
        response = None if self._verifying else stream.take(lambda room: room.clock(now))
        if response is not None:
            response.next_ticks_us = round(self.scheduler.next_ticks_in(now) * 1e6)
        self._hold(stream)
        return response

    def _hold(self, stream: AttachStream[RunningRoom]) -> None:
        """The stream's connections are without credit while too much waits on it, and only so long."""
        if stream.stalled != stream.held:
            stream.held = stream.stalled
            for link, room in list(stream.links.items()):
                room.hold(link_number(stream.number, link), stream.held)
            self.soon()

    async def upstream(self, stream: AttachStream[RunningRoom], request: pb.AttachRequest) -> None:
        """A router's batch. Where rooms take long over their frames, others have their turns in between."""
        self.set_token(request.host_token)
        if request.places:
            self._places.offer(stream.number, request.places, time.monotonic())
        turn = Turn(self._after)
        for item in request.items:
            if time.monotonic() >= turn.ends_at:
                await turn.pause()
            if item.frames:
                await self._hand_over(stream, item.frames, turn)
            elif item.HasField("join"):
                self._join(stream, item.link, item.join)
            else:
                room = stream.release(item.link)
                if room is not None:
                    room.leave(link_number(stream.number, item.link), item.leave.clean)
        if request.drained_links:
            self._drained(stream, zip(request.drained_links, request.drained_bytes, strict=False))
        self._after()

    async def _hand_over(self, stream: AttachStream[RunningRoom], run: bytes, turn: Turn) -> None:
        """Frames by link, in order. Those of a room go there together: between rooms there is no order."""
        try:
            frames = by_room(run, link_number(stream.number, 0), stream.links)
        except ValueError as error:
            raise ApiError(ErrorCode.INVALID, str(error)) from error
        mono = time.monotonic()
        for room, of_room in frames.items():
            while of_room:
                if mono >= turn.ends_at:
                    mono = await turn.pause()
                mono = room.receive(of_room, mono, turn.ends_at)

    def _drained(self, stream: AttachStream[RunningRoom], reports: Iterable[tuple[int, int]]) -> None:
        """Bytes that were handed on, by link; a room is told of all its own together."""
        links, high = stream.links, link_number(stream.number, 0)
        of_rooms: dict[RunningRoom, list[tuple[int, int]]] = {}
        for link, drained in reports:
            room = links.get(link)
            if room is not None:
                of_rooms.setdefault(room, []).append((high | link, drained))
        for room, of_room in of_rooms.items():
            room.drained(of_room)

    def _join(self, stream: AttachStream[RunningRoom], link: int, join: pb.Join) -> None:
        room = self.rooms.get(join.room_uid, join.generation)
        if room is None:
            self._not_here(stream, link, join)
            return
        if not room.takes_joins:
            room.refuse(stream, link)
            return
        request = read_join(join)
        if request is None or not stream.admit(link, room):
            close = pb.Close(code=CloseCode.PROTOCOL, reason="the join makes no sense")
            stream.say(pb.Down(links=[link], generation=join.generation, close=close))
            self.touch(stream)
        elif not room.join(link_number(stream.number, link), request):
            stream.release(link)
            self._not_here(stream, link, join)

    def _not_here(self, stream: AttachStream[RunningRoom], link: int, join: pb.Join) -> None:
        reason = pb.RoomEnded.REASON_NOT_HERE
        stream.say(ended_down(join.room_uid, join.generation, reason, link=link))
        self.touch(stream)

    # Shards.

    def _shard(self, address: str) -> ShardClient:
        shard = self._shards.get(address)
        if shard is None:
            if not address or len(self._shards) >= MAX_SHARDS:
                raise ApiError(ErrorCode.INVALID, f"shard_address {address!r} cannot be used")
            shard = ShardClient(
                address, self.host_id, self.token, self._on_events, lambda: self._ticks(address)
            )
            self._shards[address] = shard
            shard.start()
        return shard

    def _on_events(self, events: Sequence[Event]) -> None:
        find, mono = self.rooms.get, time.monotonic()
        for event in events:
            room = find(event.room_uid, event.generation)
            if room is None:
                continue
            if type(event) is Durable:
                room.durable(event.version, mono)
            elif isinstance(event, BaseNeeded):
                room.need_base()
            elif isinstance(event, Deleted):
                room.lost(pb.RoomEnded.REASON_STOPPED, CloseCode.ROOM_NOT_FOUND)
            else:
                room.lost(pb.RoomEnded.REASON_FENCED)
        self._acknowledged.set()
        self._after()

    def _ticks(self, address: str) -> Iterable[tuple[str, int, int]]:
        for room in self.rooms:
            if room.shard.address == address and room.status is Status.ACTIVE:
                yield room.identity.room_uid, room.generation, room.core.tick_number

    # The loop's turns.

    def _due(self, due: Tick[RunningRoom] | Timer[RunningRoom], mono: float) -> float:
        if isinstance(due, Tick):
            ended: float = due.key.tick(due, mono)
            return ended
        due.key.timer()
        return time.monotonic()

    def _after(self) -> None:
        """Rooms were called: wake the streams that have something, and look when the next room is due."""
        self._after_is_due = False
        self._flush()
        self._ticker.arm()

    def _flush(self) -> None:
        while self._touched:
            stream = self._touched.pop()
            if stream.number in self._streams:
                self._hold(stream)
                self._wakes[stream.number].set()

    def _beat(self) -> None:
        self._beat_handle = asyncio.get_running_loop().call_later(PULSE_S, self._beat)
        self.pulse.beat()
        now = self._look_away()
        for stream in self._streams.values():
            if stream.broken:
                log.warning("attach_broken_off", router=stream.router_id, bytes=stream.pending_bytes)
                self._break_off[stream.number]()
        if now - self._beat_at < BEAT_S:
            return
        self._beat_at = now
        for shard in self._shards.values():
            shard.beat()
        for stream in self._streams.values():
            stream.beat()
            self.touch(stream)
        self._measure(now)
        self._after()

    def _look_away(self) -> float:
        """Notice that the loop was away, and when all shards have answered since."""
        now = time.monotonic()
        if now - self._seen_at >= AWAY_S:
            log.warning("loop_was_away", seconds=round(now - self._seen_at, 3))
            self._verifying = True
            for shard in self._shards.values():
                shard.reverify()
        elif self._verifying and all(shard.verified for shard in self._shards.values()):
            self._verifying = False
            self._touched.update(self._streams.values())
        self._seen_at = now
        return now

    def _measure(self, now: float) -> None:
        counts = dict.fromkeys(Status, 0)
        for room in self.rooms:
            counts[room.status] += 1
        for status, count in counts.items():
            meters.rooms.labels(status.value).set(count)
        meters.connections.set(self.connections)
        streams = [shard.stream for shard in self._shards.values()]
        meters.durable_lag.set(max((stream.lag_s(now) for stream in streams), default=0.0))
        meters.unacked_bytes.set(sum(stream.queued_bytes for stream in streams))
        meters.stream_bytes.set(sum(stream.pending_bytes for stream in self._streams.values()))
        for stream in self._streams.values():
            meters.frames_dropped.inc(stream.dropped)
            stream.dropped = 0

    # Drain.

    async def drain(self, deadline: float) -> None:
        """Release every room by `deadline` (of the loop's clock): empty ones at once, the others at most 20 a
        second, as routers find places for them. Those for which none was found fail over, with nothing lost.
        """
        self.rooms.draining = True
        self._on_change()
        log.info("host_draining", rooms=len(self.rooms))
        try:
            async with asyncio.timeout_at(deadline - DRAIN_RESERVE_S):
                while len(self.rooms):
                    self._move_some()
                    self._emptier.clear()
                    await self._pause(1 / MOVES_PER_S)
        except TimeoutError:
            log.warning("drain_cut_off", rooms=len(self.rooms))
            self._ticker.stop()
            await self._written(deadline)
        self.drained = True
        self._touched.update(self._streams.values())
        self._flush()

    def _move_some(self) -> None:
        """Every room that is empty, and one that is not, if there is a place for it."""
        now = time.monotonic()
        active = self.rooms.by_status(Status.ACTIVE)
        for room in active:
            if not room.connections:
                room.move()
        for room in active:
            # One whose shard is not heard would wait for that, and somebody else could have the place.
            if (
                room.connections
                and now < room.shard.stream.heard_until
                and self._places.take(room.streams, now)
            ):
                room.move()
                break
        self._after()

    async def _pause(self, seconds: float) -> None:
        """Wait so long; without rooms no longer."""
        end = time.monotonic() + seconds
        while len(self.rooms) and (left := end - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._emptier.wait()
            except TimeoutError:
                return
            self._emptier.clear()

    async def _written(self, deadline: float) -> None:
        """What was flushed is to be durable before the process goes; wait for it as long as there is time."""
        try:
            async with asyncio.timeout_at(deadline):
                while any(shard.stream.queued_bytes for shard in self._shards.values()):
                    self._acknowledged.clear()
                    await self._acknowledged.wait()
        except TimeoutError:
            log.warning("drain_not_durable")
