"""One running room: the shell around its `RoomCore`.

It hands the core what comes (joins, frames, ticks, acknowledgements) and carries out what the core says.
Every call into the core is marked on the pulse page, and whatever it raises ends this room and no other.
How a room ends:

- it hibernates or moves: its last version is durable, then Close at the state store, then RELEASED to
  routers;
- its code raised: STOPPED to routers, a strike, then Close;
- somebody else holds the grant: FENCED, and nothing more leaves it.

One long class, because the three endings and what leads to them share all of its state.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.backend import route
from playhall.engine.codes import CloseCode
from playhall.engine.core import RoomCore
from playhall.engine.faults import traceback_text
from playhall.engine.outputs import (
    AwaitOut,
    BaseOut,
    CancelOut,
    CloseOut,
    FramesOut,
    HibernateOut,
    JoinedOut,
    JoinRequest,
    LogOut,
    Now,
    Output,
    ReadyOut,
    RecordOut,
    RoomIdentity,
    Status,
    StopOut,
    StoredRoom,
    WakeInfo,
)
from playhall.engine.steps import as_coroutine, run_marked
from playhall_common import logs
from playhall_roomhost import meters
from playhall_roomhost.arrivals import NEWCOMERS_WAIT_S, Arrivals, brings_people
from playhall_roomhost.attach import LINK_MASK, AttachStream, Clock, stream_of
from playhall_roomhost.log_limit import LogLimit
from playhall_roomhost.pulse import PulseWriter, culprit_bytes
from playhall_roomhost.repeats import FOLD_S, Repeats
from playhall_roomhost.scheduler import Scheduler, Tick
from playhall_roomhost.slow_calls import SlowCalls
from playhall_roomhost.statestore_client import ShardClient

__all__ = ["RunningRoom", "Surroundings", "ended_down"]

STOP_FLUSH_S = 5.0
TOGETHER_S = 0.001
"""What frames of so long bring about is carried out together."""
_CALLS = (
    "start",
    "join",
    "leave",
    "frame",
    "tick",
    "timer",
    "durable",
    "base",
    "hibernate",
    "settled",
    "await",
)

log = logs.get_logger()


def ended_down(
    room_uid: str,
    generation: int,
    reason: pb.RoomEnded.Reason.ValueType,
    code: int = 0,
    link: int | None = None,
) -> pb.Down:
    """What routers are told of a room that ended; of a link, where it is the answer to its join."""
    ended = pb.RoomEnded(room_uid=room_uid, reason=reason, code=code)
    return pb.Down(generation=generation, ended=ended, links=() if link is None else (link,))


class Surroundings(Protocol):
    """What a room needs of the process it runs in."""

    host_id: str
    pulse: PulseWriter
    scheduler: Scheduler[RunningRoom]

    def stream(self, number: int) -> AttachStream[RunningRoom] | None:
        """The Attach stream of this number, if it is still there."""

    def touch(self, stream: AttachStream[RunningRoom]) -> None:
        """Something waits on the stream."""

    def now(self, mono: float) -> Now:
        """The time that rooms are told at `mono`; it never goes back, and may be a millisecond old."""

    def changed(self, room: RunningRoom) -> None:
        """The room's status or the number of its connections changed; `room.over` is set when it is gone."""

    def soon(self) -> None:
        """A task of the room's own has changed what is due, or what waits on streams."""


class RunningRoom:
    """See the module's text. Made with the grant, and gone when `over` is set."""

    __slots__ = (
        "_around",
        "_arrivals",
        "_audience",
        "_awaits",
        "_brings_people",
        "_carry",
        "_durable",
        "_durable_moved",
        "_ending",
        "_fold_handle",
        "_last_version",
        "_links",
        "_log",
        "_log_limit",
        "_marks",
        "_pulse",
        "_repeats",
        "_runs",
        "_slow_calls",
        "_status",
        "_step_at",
        "_tick_late",
        "_tick_s",
        "_tick_seconds",
        "_timer_at",
        "_writes",
        "core",
        "generation",
        "identity",
        "over",
        "ready",
        "shard",
    )

    def __init__(
        self,
        core: RoomCore,
        identity: RoomIdentity,
        generation: int,
        shard: ShardClient,
        surroundings: Surroundings,
        slow_calls: SlowCalls,
    ) -> None:
        self.core = core
        self.identity = identity
        self.generation = generation
        self.shard = shard
        self.ready: asyncio.Future[StopOut | None] = asyncio.get_running_loop().create_future()
        """Done when the room takes joins (None), or never will."""
        self.over = asyncio.Event()
        self._around = surroundings
        self._pulse = surroundings.pulse
        self._writes = shard.stream
        self._links: set[int] = set()
        self._arrivals = Arrivals()
        self._brings_people = False
        self._audience: set[int] = set()
        self._awaits: dict[int, asyncio.Task[Any]] = {}
        self._ending: asyncio.Task[None] | None = None
        self._status = Status.STARTING
        self._runs = True
        """Neither stopped nor over: calls into the core make sense."""
        self._durable = 0
        self._last_version = 0
        self._durable_moved = asyncio.Event()
        self._log_limit = LogLimit(time.monotonic())
        self._repeats: Repeats[LogOut] = Repeats()
        self._fold_handle: asyncio.TimerHandle | None = None
        self._slow_calls = slow_calls
        self._tick_s = slow_calls.tick_s
        self._step_at = 0.0
        self._timer_at: float | None = None
        self._log = log.bind(
            project=identity.project, room=identity.room_id, room_uid=identity.room_uid, generation=generation
        )
        self._marks = {call: self._mark(call) for call in _CALLS}
        kind = identity.room_type
        self._tick_seconds = meters.tick_seconds.labels(kind)
        self._tick_late = meters.tick_late.labels(kind)
        self._carry: dict[type[Output], Callable[[Any, Now], None]] = {
            BaseOut: self._base,
            JoinedOut: self._joined,
            CloseOut: self._close_link,
            AwaitOut: self._await,
            CancelOut: self._cancel,
            ReadyOut: self._is_ready,
            HibernateOut: self._hibernated,
            StopOut: self._stopped,
            LogOut: self._write_log,
        }

    @property
    def status(self) -> Status:
        """As routers know it: CLOSED and STOPPED rooms are being released."""
        return self._status

    @property
    def connections(self) -> int:
        return len(self._links)

    @property
    def streams(self) -> set[int]:
        """The streams of its connections."""
        return {stream_of(number) for number in self._links}

    @property
    def takes_joins(self) -> bool:
        return self._status in (Status.STARTING, Status.ACTIVE)

    # What comes.

    def start(self, stored: StoredRoom | None, wake: WakeInfo) -> None:
        """Start the core; `ready` tells how it went."""
        self._brings_people = brings_people(wake)
        self._around.scheduler.add(self)
        self._around.changed(self)
        self._run("start", self.core.start, stored, wake)

    def join(self, number: int, request: JoinRequest) -> bool:
        """A connection wants in. False: it has to wait, and too many do. Needs `takes_joins`."""
        self._audience.add(stream_of(number))
        if not self._arrivals.may_enter(request):
            return self._arrivals.wait(number, request)
        self._links.add(number)
        self._run("join", self.core.join, number, request)
        stream = self._around.stream(stream_of(number))
        if stream is not None and stream.held:
            self.hold(number, True)
        self._around.changed(self)
        return True

    def refuse(self, stream: AttachStream[RunningRoom], link: int) -> None:
        """Answer a join while the room is being released: it waits for RELEASED."""
        self._audience.add(stream.number)
        uid, generation = self.identity.room_uid, self.generation
        stream.say(ended_down(uid, generation, pb.RoomEnded.REASON_CLOSING, link=link))
        self._around.touch(stream)

    def receive(self, frames: list[tuple[int, bytes]], mono: float, until: float) -> float:
        """Frames of its connections, in order, from `mono` (now) on: takes out those up to a time, but at
        least one. Returns when that was done."""
        core = self.core
        try:
            while frames and self._runs:
                now = self._enter("frame", mono)
                together = mono + TOGETHER_S
                taken = core.receive_all(frames, 0, together if together < until else until, now)
                ended = time.monotonic()
                if ended - mono > self._tick_s:
                    self._look_if_slow("frame", mono, ended)
                if core.has_outputs or core.status is not self._status:
                    self._carry_out(now)
                del frames[:taken]
                mono = ended
                if mono >= until:
                    break
        except BaseException as error:
            self._fail(error)
        finally:
            self._pulse.leave()
        if not self._runs:
            frames.clear()
        return mono

    def leave(self, number: int, clean: bool) -> None:
        """A connection is gone. One the room does not know is no error."""
        self._arrivals.forget(number)
        if number in self._links:
            self._links.discard(number)
            self._run("leave", self.core.leave, number, clean)
            self._around.changed(self)

    def drained(self, reports: Iterable[tuple[int, int]]) -> None:
        """Of connections, how many bytes of theirs the router handed on, all together and modulo 2^32."""
        if not self._runs:
            return
        core, links = self.core, self._links
        now = self._enter("frame", time.monotonic())
        try:
            for number, total_bytes in reports:
                if number in links:
                    core.drained(number, total_bytes, now)
            if core.has_outputs or core.status is not self._status:
                self._carry_out(now)
        except BaseException as error:
            self._fail(error)
        finally:
            self._pulse.leave()

    def hold(self, number: int, held: bool) -> None:
        """Whether the connection is without credit, because too much waits on its stream."""
        if number in self._links:
            self._run("frame", self.core.hold, number, held)

    def tick(self, due: Tick[RunningRoom], mono: float) -> float:
        """A tick is due. `mono`: now. Returns when it was done."""
        late_s, skipped = due.late_s, due.skipped
        self._tick_late.observe(late_s)
        if late_s > meters.LATE_S:
            meters.ticks_late.labels(self.identity.room_type).inc()
        if skipped:
            meters.ticks_skipped.labels(self.identity.room_type).inc(skipped)
            self._slow_calls.skip(skipped)
        if self._runs:
            now = self._enter("tick", mono)
            try:
                self.core.tick(now)
                self._carry_out(now)
            except BaseException as error:
                self._fail(error)
            finally:
                self._pulse.leave()
        ended = time.monotonic()
        if ended - mono > self._tick_s:
            self._look_if_slow("tick", mono, ended)
        self._tick_seconds.observe(ended - mono)
        return ended

    def timer(self) -> None:
        """The core's timer is due."""
        self._timer_at = None
        self._run("timer", self.core.timer)

    def durable(self, version: int, mono: float) -> None:
        """The state store has everything up to `version` on disk. `mono`: now."""
        self._durable = version
        if self._ending is not None:
            self._durable_moved.set()
        if self.core.awaits_durable:
            self._call("durable", mono, self.core.durable, version)
        elif self._runs:
            # It takes note, and that is all: nothing to mark or to carry out.
            self.core.durable(version, self._around.now(mono))

    def need_base(self) -> None:
        """The state store needs all of the state."""
        self._run("base", self.core.need_base)

    def move(self) -> None:
        """Let the room end here, so that it starts elsewhere. One without connections hibernates."""
        if self._status is Status.ACTIVE:
            self._run("hibernate", partial(self.core.hibernate, move=True))

    def lost(self, reason: pb.RoomEnded.Reason.ValueType, code: int = 0) -> None:
        """The grant is gone: the room ends at once, and nothing more leaves it."""
        self._log.warning("room_lost", reason=pb.RoomEnded.Reason.Name(reason), tick=self.core.tick_number)
        for number in self._audience:
            stream = self._around.stream(number)
            if stream is not None:
                stream.discard(self.generation)
        self._release(reason, code)

    def clock(self, now: float) -> Clock:
        """Where the room's time is."""
        return Clock(self.core.tick_number, self._fraction(now))

    # Calls into the core.

    def _run(self, call: str, method: Callable[..., object], *arguments: Any) -> None:
        """Call the core now; see `_call`."""
        self._call(call, time.monotonic(), method, *arguments)

    def _enter(self, call: str, mono: float) -> Now:
        """A call into the core is about to begin: mark it, and tell the core what it has to know."""
        self.core.shard_heard = mono < self._writes.heard_until
        self._pulse.enter(mono, self._marks[call])
        return self._around.now(mono)

    def _call(self, call: str, mono: float, method: Callable[..., object], *arguments: Any) -> None:
        """Call the core: mark it, bound what it may break, carry out what comes of it."""
        if not self._runs:
            return
        now = self._enter(call, mono)
        try:
            method(*arguments, now)
        except BaseException as error:
            # What room code raises does not come out here: this is a fault of the engine's, or room code that
            # asks for the end of the process. Whatever it is, it concerns this room only.
            self._fail(error)
            return
        finally:
            self._pulse.leave()
        ended = time.monotonic()
        if ended - mono > self._tick_s:
            self._look_if_slow(call, mono, ended)
        self._carry_out(now)

    def _look_if_slow(self, call: str, began: float, now: float) -> None:
        """Warn of a room whose code takes longer than its ticks. How long it takes to start is its own."""
        if now - began <= self._tick_s or self._status is Status.STARTING:
            return
        slowness = self._slow_calls.ended(call, began, now)
        if slowness is not None:
            self._log.warning(
                "room_slow",
                tick=self.core.tick_number,
                hook=slowness.hook,
                reason=str(slowness),
                skipped=slowness.skipped,
            )

    def _mark(self, call: str) -> bytes:
        return culprit_bytes(self.identity.room_uid, self.generation, call, self.shard.address)

    def _carry_out(self, now: Now) -> None:
        core, around = self.core, self._around
        for output in core.take_outputs():
            if isinstance(output, FramesOut):
                for number, run in route(output.data, self.generation):
                    stream = around.stream(number)
                    if stream is not None:
                        stream.frames(self.generation, run)
                        around.touch(stream)
            elif isinstance(output, RecordOut):
                self._last_version = output.version
                self.shard.record(self.identity.room_uid, self.generation, output, now.mono)
            elif (do := self._carry.get(type(output))) is not None:
                do(output, now)
            else:
                self._log.error("room_output_unknown", output=type(output).__name__)
        if not self._runs:
            return
        status = core.status
        if status is not self._status:
            self._status = status
            self._around.changed(self)
            if status is Status.CLOSING:
                self._around.scheduler.stop(self)
                self._tell(pb.RoomEnded.REASON_CLOSING)
        timer_at = core.next_timer()
        if timer_at != self._timer_at:
            self._timer_at = timer_at
            self._around.scheduler.set_timer(self, timer_at)
        if status is Status.ACTIVE and not self._arrivals.is_open:
            self._open_door()

    def _open_door(self) -> None:
        self._let_in(to_all=not self._brings_people)
        if self._brings_people:
            asyncio.get_running_loop().call_later(NEWCOMERS_WAIT_S, partial(self._let_in, to_all=True))

    def _let_in(self, *, to_all: bool) -> None:
        for number, request in self._arrivals.open(to_all=to_all):
            if self._status is Status.ACTIVE:
                self.join(number, request)
        self._around.soon()

    # What the core says.

    def _say(self, number: int, down: pb.Down) -> None:
        stream = self._around.stream(number)
        if stream is not None:
            stream.say(down)
            self._around.touch(stream)

    def _joined(self, out: JoinedOut, now: Now) -> None:
        number = stream_of(out.link)
        stream = self._around.stream(number)
        if stream is None:
            return
        joined = pb.Joined(
            room_no=stream.room_number(self),
            version=out.version,
            tick=out.tick,
            fraction=self._fraction(now.mono),
            tick_rate=out.tick_rate,
            resumed=out.resumed,
        )
        self._say(number, pb.Down(links=[out.link & LINK_MASK], generation=self.generation, joined=joined))

    def _close_link(self, out: CloseOut, _now: Now) -> None:
        self._links.discard(out.link)
        number, link = stream_of(out.link), out.link & LINK_MASK
        close = pb.Close(code=out.code, reason=out.reason, retry_after_ms=out.retry_after_ms)
        self._say(number, pb.Down(links=[link], generation=self.generation, close=close))
        stream = self._around.stream(number)
        if stream is not None:
            stream.release(link)
        self._around.changed(self)

    def _base(self, out: BaseOut, now: Now) -> None:
        self._last_version = out.version
        self.shard.base(self.identity.room_uid, self.generation, out, now.mono)

    def _await(self, out: AwaitOut, _now: Now) -> None:
        steps = run_marked(out.awaitable, partial(self._steps, out.hook), partial(self._stepped, out.hook))
        task = asyncio.get_running_loop().create_task(as_coroutine(steps))
        self._awaits[out.token] = task
        task.add_done_callback(partial(self._settled, out.token))

    def _steps(self, hook: str) -> None:
        """Room code's coroutine runs on."""
        self._step_at = time.monotonic()
        self._pulse.enter(self._step_at, self._marks["await"])
        self._pulse.hook(hook)

    def _stepped(self, hook: str) -> None:
        """A step of room code's coroutine is done; it may have sent something."""
        self._pulse.leave()
        self._look_if_slow(hook, self._step_at, time.monotonic())
        if self._runs:
            self._carry_out(self._around.now(time.monotonic()))
        self._around.soon()

    def _cancel(self, out: CancelOut, _now: Now) -> None:
        task = self._awaits.pop(out.token, None)
        if task is not None:
            task.cancel()

    def _settled(self, token: int, task: asyncio.Task[Any]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._awaits.pop(token, None) is not None:
            self._run("settled", self.core.settled, token, None if error else task.result(), error)
            self._around.soon()

    def _is_ready(self, _out: ReadyOut, now: Now) -> None:
        self._around.scheduler.start(self, self.core.tick_rate, now.mono)
        if not self.ready.done():
            self.ready.set_result(None)

    def _hibernated(self, out: HibernateOut, _now: Now) -> None:
        self._last_version = out.version
        self._begin_end(self._close(out))

    def _stopped(self, out: StopOut, _now: Now) -> None:
        self._stop(out)

    def _write_log(self, out: LogOut, now: Now) -> None:
        # What is not written takes no line from those that are: clients can cause many at debug.
        if not logs.writes(self._log, out.level) or self._is_folded(out, now):
            return
        if not self._log_limit.allow(now.mono):
            return
        fields = dict(out.fields)
        if out.traceback is not None:
            fields["traceback"] = out.traceback
        if self._log_limit.dropped:
            fields["lines_dropped"], self._log_limit.dropped = self._log_limit.dropped, 0
        self._write(out, fields)

    def _write(self, out: LogOut, fields: dict[str, Any]) -> None:
        bound = self._log.bind(tick=self.core.tick_number)
        # Keys are room code's: none may meet a parameter's name.
        getattr(bound, out.level)(
            out.event, **{f"{k}_" if k in _RESERVED else k: v for k, v in fields.items()}
        )

    def _is_folded(self, out: LogOut, now: Now) -> bool:
        """Whether the line tells what one did just now. The author's own are as they wrote them."""
        if out.traceback is None or out.event == _AUTHORS_OWN:
            return False
        is_new = self._repeats.is_new((out.event, hash(out.traceback)), out, now.mono)
        self._fold_later()
        return not is_new

    def _fold_later(self) -> None:
        due = self._repeats.next_due
        if self._fold_handle is None and due is not None:
            wait_s = max(due - time.monotonic(), 0.0)
            self._fold_handle = asyncio.get_running_loop().call_later(wait_s, self._tell_repeats)

    def _tell_repeats(self) -> None:
        self._fold_handle = None
        for out, count in self._repeats.due(time.monotonic()):
            self._write(out, {**out.fields, "reason": f"same error {count} times in the last {FOLD_S:g} s"})
        self._fold_later()

    # The end.

    def _fail(self, error: BaseException) -> None:
        trace = traceback_text(error)
        self._log.error("room_fault", tick=self.core.tick_number, traceback=trace)
        self._stop(StopOut(CloseCode.ROOM_STOPPED, trace))

    def _stop(self, out: StopOut) -> None:
        """The room ended by an error. Its clients hear of it now; the state store in its own time."""
        self._status = Status.STOPPED
        self._runs = False
        self._log.error("room_stopped", code=out.code, error=_last_line(out), tick=self.core.tick_number)
        meters.rooms_stopped.labels(self.identity.room_type).inc()
        self._tell(pb.RoomEnded.REASON_STOPPED, out.code)
        self._drop_links()
        self._around.scheduler.remove(self)
        self._cancel_awaits()
        if not self.ready.done():
            self.ready.set_result(out)
        self._around.changed(self)
        self._begin_end(self._close_stopped(out))

    def _begin_end(self, end: Coroutine[Any, Any, None]) -> None:
        self._ending = asyncio.get_running_loop().create_task(end, name=f"end {self.identity.room_uid}")
        self._ending.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._log.error("room_end_failed", exc_info=error)
            self._release(pb.RoomEnded.REASON_RELEASED)

    async def _close(self, out: HibernateOut) -> None:
        await self._reach(out.version)
        kind = store_pb.END_MOVED if out.moved else store_pb.END_HIBERNATED
        closed = await self.shard.close(self._close_request(kind, out.version, out.tick, out.alarm_ms))
        self._log.info("room_closed", kind=store_pb.End.Name(kind), tick=out.tick, version=out.version)
        self._release(pb.RoomEnded.REASON_RELEASED if closed else pb.RoomEnded.REASON_FENCED)

    async def _close_stopped(self, out: StopOut) -> None:
        """Nothing before the tick that raised is lost: what was flushed is written before the grant ends.

        The grant ends however long that takes: while this process is heard, the state store calls it the
        owner, and nobody could get to the room.
        """
        await self.shard.strike(
            store_pb.StrikeRequest(
                project=self.identity.project,
                room_uid=self.identity.room_uid,
                generation=self.generation,
                error=_last_line(out)[-4_096:],
            )
        )
        try:
            async with asyncio.timeout(STOP_FLUSH_S):
                await self._reach(self._last_version)
        except TimeoutError:
            self._log.warning("room_stop_unflushed", version=self._last_version, durable=self._durable)
        closed = await self.shard.close(
            self._close_request(store_pb.END_STOPPED, self._durable, self.core.tick_number, None)
        )
        self._release(pb.RoomEnded.REASON_RELEASED if closed else pb.RoomEnded.REASON_FENCED)

    async def _reach(self, version: int) -> None:
        """Wait until the state store has this version."""
        while self._durable < version:
            self._durable_moved.clear()
            await self._durable_moved.wait()

    def _close_request(
        self, kind: store_pb.End.ValueType, version: int, tick: int, alarm_ms: int | None
    ) -> store_pb.CloseRequest:
        return store_pb.CloseRequest(
            project=self.identity.project,
            room_uid=self.identity.room_uid,
            generation=self.generation,
            version=version,
            tick=tick,
            kind=kind,
            alarm_ms=-1 if alarm_ms is None else alarm_ms,
            host_id=self._around.host_id,
        )

    def _release(self, reason: pb.RoomEnded.Reason.ValueType, code: int = 0) -> None:
        """Forget everything; nobody calls the room any more."""
        if self.over.is_set():
            return
        self.over.set()
        self._runs = False
        if self._fold_handle is not None:
            self._fold_handle.cancel()
        for out, count in self._repeats.due(math.inf):
            self._write(out, {**out.fields, "reason": f"same error {count} times before the room ended"})
        self._tell(reason, code)
        self._drop_links()
        self._cancel_awaits()
        self._around.scheduler.remove(self)
        self.shard.remove(self.identity.room_uid, self.generation)
        if self._ending is not None and self._ending is not asyncio.current_task():
            self._ending.cancel()
        if not self.ready.done():
            self.ready.set_result(StopOut(CloseCode.ROOM_MOVED, "the room's grant was lost while it started"))
        self._around.changed(self)

    def _tell(self, reason: pb.RoomEnded.Reason.ValueType, code: int = 0) -> None:
        for number in self._audience:
            self._say(number, ended_down(self.identity.room_uid, self.generation, reason, code))

    def _drop_links(self) -> None:
        for number in self._audience:
            stream = self._around.stream(number)
            if stream is not None:
                stream.forget(self)
        self._audience.clear()
        self._links.clear()
        self._arrivals.clear()

    def _cancel_awaits(self) -> None:
        awaits, self._awaits = self._awaits, {}
        for task in awaits.values():
            task.cancel()

    def _fraction(self, now: float) -> int:
        return min(int(self._around.scheduler.fraction(self, now) * 256), 255)


def _last_line(out: StopOut) -> str:
    """What the exception says; its traceback is in the log already."""
    return out.error.strip().rpartition("\n")[2]


_AUTHORS_OWN = "room.log"
_RESERVED = frozenset({"event", "self", "level", "timestamp"})
