"""One generation of a room under test: the shell around its RoomCore, as the room host is in production."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from playhall.engine.core import RoomCore
from playhall.engine.kinds import Entity
from playhall.engine.mutations import mutated_fields
from playhall.engine.outputs import (
    AnswerOut,
    AwaitOut,
    BaseOut,
    CancelOut,
    CloseOut,
    FramesOut,
    HibernateOut,
    JoinedOut,
    LogOut,
    Now,
    Output,
    ReadyOut,
    RecordOut,
    RoomIdentity,
    Status,
    StopOut,
    WakeReason,
)
from playhall.engine.packing import unpack_groups
from playhall.engine.room import Room
from playhall.engine.steps import run_marked
from playhall.testing.store import RoomStore

__all__ = ["Events", "Running"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

_log = logging.getLogger("playhall.room")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Events(Protocol):
    """What a running room reports to the test's router, in order."""

    def room_ready(self) -> None: ...
    def room_joined(self, output: JoinedOut) -> None: ...
    def room_frame(self, link: int, frame: bytes) -> None: ...
    def room_closes(self, output: CloseOut) -> None: ...
    def room_answers(self, output: AnswerOut) -> None: ...
    def room_logged(self, line: str) -> None: ...
    def room_raised(self, hook: str, traceback: str) -> None: ...
    def room_ended(self, error: str | None, traceback: str | None) -> None: ...


class Running:
    """A room that runs: carries out what its core puts out, runs its awaitables, keeps timer and ticks."""

    def __init__(
        self,
        room_class: type[Room[Any, Any, Any]],
        identity: RoomIdentity,
        store: RoomStore,
        events: Events,
        now: Callable[[], Now],
        reason: WakeReason,
        max_players: int | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._store = store
        self._events = events
        self._now = now
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ticks_from: tuple[float, int] | None = None
        self._pumping = False
        self._dead = False
        self._traceback: str | None = None
        """What the last line of the log came with."""
        self.generation, self._wake = store.begin(reason, now().wall)
        self.core = RoomCore(
            room_class, identity=identity, generation=self.generation, max_players=max_players or 0
        )

    def start(self) -> None:
        """Start from what is stored."""
        self.call(lambda now: self.core.start(self._store.stored(), self._wake, now))

    def kill(self) -> None:
        """End at once, as a process that is killed: nothing of the room runs any more."""
        self._dead = True
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def next_tick_at(self) -> float | None:
        """When the next tick is due; None while the room does not tick."""
        if self._ticks_from is None or self.core.status is not Status.ACTIVE:
            return None
        since, number = self._ticks_from
        return since + (self.core.tick_number - number + 1) / self.core.tick_rate

    def position(self) -> tuple[int, int]:
        """The room's tick at the moment, and its fraction in 1/256."""
        due = self.next_tick_at
        if due is None:
            return self.core.tick_number, 0
        passed = 1.0 - (due - self._now().mono) * self.core.tick_rate
        return self.core.tick_number, min(255, max(0, int(passed * 256)))

    def tick(self) -> None:
        """Run one tick, and complain of what nobody will hear of."""
        self.call(lambda now: self.core.tick(now))
        if self.core.status is Status.ACTIVE:
            self._refuse_mutated_json()

    def call(self, call: Callable[[Now], object]) -> None:
        """Call the core, and carry out what comes of it."""
        if not self._dead:
            call(self._now())
            self.pump()

    def pump(self) -> None:
        """Carry out what the core has put out."""
        if self._pumping or self._dead:
            return
        self._pumping = True
        try:
            while outputs := self.core.take_outputs():
                for output in outputs:
                    self._carry_out(output)
        finally:
            self._pumping = False
        self._arm()

    def _carry_out(self, output: Output) -> None:
        match output:
            case FramesOut(data):
                for link, frame, _ in unpack_groups(data):
                    self._events.room_frame(link, frame)
            case RecordOut():
                self._store.append(output, self._now().wall)
                self.core.durable(output.version, self._now())
            case BaseOut():
                self._store.replace(output, self._now().wall)
                self.core.durable(output.version, self._now())
            case JoinedOut():
                self._events.room_joined(output)
            case CloseOut():
                self._events.room_closes(output)
            case AwaitOut(token, awaitable):
                self._tasks[token] = self._loop.create_task(self._run(token, awaitable))
            case AnswerOut():
                self._events.room_answers(output)
            case CancelOut(token):
                task = self._tasks.pop(token, None)
                if task is not None:
                    task.cancel()
            case ReadyOut():
                self._ticks_from = self._now().mono, self.core.tick_number
                self._events.room_ready()
            case HibernateOut():
                self._store.end(self._now().wall)
                self._end(None, None)
            case StopOut(_, error):
                self._store.end(self._now().wall)
                self._end(error, self._traceback)
            case LogOut():
                self._log(output)

    def _log(self, output: LogOut) -> None:
        fields = output.fields
        told = " ".join(f"{name}={value!r}" for name, value in fields.items())
        is_own = output.event == "room.log"
        line = str(fields["message"]) if is_own else f"{output.event} {told}"
        self._traceback = output.traceback
        _log.log(_LEVELS[output.level], "%s", "\n".join([line, output.traceback or ""]).rstrip())
        self._events.room_logged(line)
        if output.traceback is not None and not is_own:
            self._events.room_raised(str(fields.get("hook", "")), output.traceback)

    def _end(self, error: str | None, traceback: str | None) -> None:
        self.kill()
        self._events.room_ended(error, traceback)

    async def _run(self, token: int, awaitable: Awaitable[Any]) -> None:
        error: BaseException | None = None
        result: Any = None
        try:
            result = await run_marked(awaitable, self._before_step, self.pump)
        except asyncio.CancelledError as cancelled:
            if self._tasks.get(token) is not asyncio.current_task():
                raise  # the room did not want it any more
            error = cancelled
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:
            error = raised  # SystemExit too: room code does not end the test run
        self._tasks.pop(token, None)
        self.call(lambda now: self.core.settled(token, result, error, now))

    def _before_step(self) -> None:
        if not self._dead:
            self.core.timer(self._now())  # so that room.now() is that of the step

    def _arm(self) -> None:
        at = None if self._dead else self.core.next_timer()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if at is None else self._loop.call_at(at, self._timer_due)

    def _timer_due(self) -> None:
        self._timer = None
        self.call(self.core.timer)

    def _refuse_mutated_json(self) -> None:
        room = self.core.room
        state: list[Entity | None] = [room.state]
        state += [room.private(player, create=False) for player in room.private_players()]
        for entity in (*room.entities, *(each for each in state if each is not None)):
            for field in mutated_fields(entity):
                whose = "" if entity.owner is None else f" of {entity.owner}"
                raise AssertionError(
                    f"{entity.kind} {entity.id}{whose}: {field} was changed in place, which nobody hears of"
                    " and nothing saves: assign a new value"
                )
