"""RoomCore: one room as a state machine.

Calls go in, each with the time; outputs come out by `take_outputs`, to be carried out in order. Nothing
here waits, sleeps or looks at a clock: what has to happen later is in `next_timer`, and `timer` is to be
called then.

What the shell owes:

- take the outputs after every call, or a few of them (frames of a millisecond), and after every step of an
  awaitable it runs (room code may send from there), and carry them out in order;
- run what AwaitOut holds, report its end by `settled`, and cancel it at CancelOut;
- call `tick` at `tick_rate` while the status is ACTIVE, and `timer` when `next_timer` says so;
- report `durable` as the state store acknowledges; HibernateOut waits for it.

Life:

    STARTING --on_create or on_wake done--> ACTIVE --asked, or empty for idle_s--> CLOSING --all durable-->
    CLOSED
        `----------------------------- room code raises where that stops a room ------------------> STOPPED

`join` is taken in ACTIVE alone. In any other state it returns False and nothing has happened: the arrival
belongs to the next generation, and its router is told so.

A closing room goes through: connections end (on_leave), people end (on_player_leave), what their hooks wait
for settles, on_hibernate, the last base, its acknowledgement.

One long class, because every call may move the life above. What does not is elsewhere: what room code asks
in `context`, frames in `receiving` and `sending`, versions and what is saved in `saving`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from playhall.engine import jsontext
from playhall.engine.answering import Answering
from playhall.engine.backend import Flush
from playhall.engine.bans import Bans
from playhall.engine.botbook import BotBook
from playhall.engine.bots import is_bot
from playhall.engine.codes import CloseCode
from playhall.engine.connections import Connections
from playhall.engine.context import Context
from playhall.engine.errors import FieldError
from playhall.engine.faults import error_text
from playhall.engine.inspecting import FIRST_PAGE, Page, inspect_room, show_bans, show_bots, summarise
from playhall.engine.journal import RoomTooLargeError
from playhall.engine.links import STALL_S, Link, LinkState
from playhall.engine.outputs import (
    CloseOut,
    HibernateOut,
    JoinRequest,
    LogOut,
    Now,
    Output,
    ReadyOut,
    RoomIdentity,
    Status,
    StopOut,
    StoredRoom,
    WakeInfo,
)
from playhall.engine.receiving import Receiving
from playhall.engine.retention import CHECK_S
from playhall.engine.rewinding import Rewinding
from playhall.engine.room import Room, Wake
from playhall.engine.running import Intake, Watch
from playhall.engine.runtime import START_HOOK_S, Runtime
from playhall.engine.saving import Saving, load
from playhall.engine.sending import Sending
from playhall.engine.statelog import DamagedStateError, LayoutError
from playhall.engine.visibility import Visibility, VisibilityError
from playhall.engine.writes import OwnerWrites

__all__ = ["RoomCore"]

IDLE_S = 30.0
# How long `next_timer` stands while there are only frames and ticks: far less than what these wait for.
LOOK_S = 1.0
# A room that would hibernate, but whose shard is not heard, looks again after this long.
IDLE_RETRY_S = 1.0
# One that was asked to hibernate or to move waits for its shard for so long, and stays as it is after that.
ASKED_S = 60.0
# A version is a u32. A room that gets there (after years) goes on in a new generation, where versions start
# anew.
LAST_VERSION = 2**32 - 1_000


@dataclass(slots=True)
class _Asked:
    """Somebody wants the room to close. `answers`: how many there had been by then."""

    code: CloseCode
    reason: str
    move: bool
    until: float
    answers: int


class RoomCore:
    """One room, in one generation. See the module's text for what a caller owes."""

    __slots__ = (
        "_answering",
        "_asked",
        "_bans",
        "_bots",
        "_connections",
        "_context",
        "_dt",
        "_idle_retry_at",
        "_idle_s",
        "_intake",
        "_last_base_written",
        "_max_players",
        "_moves",
        "_on_hibernate_ran",
        "_receiving",
        "_retention_due",
        "_rewinding",
        "_room_class",
        "_runtime",
        "_saving",
        "_timer_at",
        "_timer_hooks",
        "_timer_links",
        "_timer_status",
        "_timer_until",
        "_visibility",
        "_writes",
        "identity",
        "room",
        "shard_heard",
        "status",
        "tick_rate",
    )

    def __init__(
        self,
        room_class: type[Room[Any, Any, Any]],
        *,
        identity: RoomIdentity,
        generation: int,
        max_players: int = 0,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """`max_players` 0 is what the class says. With a `clock` (seconds, for measuring), `inspect` tells of
        times and messages. A `watch` follows hooks and calls.
        """
        # By getattr: to checkers, a class variable cannot have a type of the class's parameters.
        schema = getattr(room_class, "schema")  # noqa: B009
        self.identity = identity
        self._room_class = room_class
        self.tick_rate = room_class.tick_rate
        self._dt = 1 / self.tick_rate
        self.status = Status.STARTING
        self.shard_heard = True
        self._idle_s = idle_s
        self._max_players = max_players or room_class.max_players
        self._runtime = Runtime(schema, identity, generation, room_class.private_retention, clock, watch)
        self._connections: Connections | None = None
        self._bans = Bans()
        self._retention_due = 0.0
        self._idle_retry_at: float | None = None
        self._asked: _Asked | None = None
        self._moves = False
        self._on_hibernate_ran = False
        self._last_base_written = False
        self._timer_at: float | None = None
        # Until when `_timer_at` stands (mono), if there are still so many hooks and links, in this status.
        self._timer_until = -math.inf
        self._timer_hooks = self._timer_links = 0
        self._timer_status = Status.STARTING
        self.room: Room[Any, Any, Any]
        """There from `start` on."""
        # As is all of this; until then `_connections` is None.
        self._bots: BotBook
        self._visibility: Visibility
        self._saving: Saving
        self._writes: OwnerWrites
        self._answering: Answering
        self._rewinding: Rewinding
        self._receiving: Receiving
        self._intake: Intake | None = None
        self._context: Context

    @property
    def generation(self) -> int:
        return self._runtime.generation

    @property
    def version(self) -> int:
        return self._runtime.version

    @property
    def dirty(self) -> bool:
        """Whether anything has changed since the last flush, so that the next has a version of its own."""
        return self._saving.dirty

    @property
    def tick_number(self) -> int:
        return self._runtime.tick

    @property
    def connection_count(self) -> int:
        """How many connections are in the room or joining it."""
        return 0 if self._connections is None else len(self._connections)

    @property
    def has_outputs(self) -> bool:
        """Whether `take_outputs` has anything to return."""
        return bool(self._runtime.outputs)

    @property
    def awaits_durable(self) -> bool:
        """Whether anything may come of `durable` now. If not, it is only noted, and no room code runs."""
        return (
            self.status is Status.CLOSING
            or self._asked is not None
            or (self._connections is not None and bool(self._answering.waiting))
        )

    def take_outputs(self) -> list[Output]:
        """Return what is to be carried out, in order. Each output is given once."""
        return self._runtime.take_outputs()

    # Calls in

    def start(self, stored: StoredRoom | None, wake: WakeInfo, now: Now) -> None:
        """Start the room: from what is stored, or new. Answered by ReadyOut or StopOut."""
        self._runtime.now = now
        self._timer_until = -math.inf
        new = stored is None or (stored.base is None and not stored.records)
        saved = None
        try:
            if stored is None or new:
                self._runtime.store.make_state()
            else:
                saved = load(self._runtime, stored, wake)
                self._drop_expired()
        except (LayoutError, DamagedStateError) as error:
            self._stop(f"the saved state does not fit the room: {error}", None)
            return
        self._retention_due = now.mono + CHECK_S
        self._runtime.run("__new__", self._make_room, self._stopped_by("__new__"))
        if self.status is not Status.STARTING:
            return
        self._assemble()
        if saved is not None:
            self._bots.restore(saved.bots, saved.next_bot)
            self._bans.restore(saved.banned)
        self._runtime.run("__init__", self.room.__init__, self._stopped_by("__init__"))  # type: ignore[misc]
        if self.status is not Status.STARTING:
            return
        if new:
            self._runtime.run("on_create", self.room.on_create, self._created, timeout_s=START_HOOK_S)
        else:
            info = Wake(max(0.0, wake.elapsed), wake.saved_at, wake.reason)
            self._runtime.run("on_wake", lambda: self.room.on_wake(info), self._woken, timeout_s=START_HOOK_S)

    def join(self, link: int, request: JoinRequest, now: Now) -> bool:
        """A connection wants in. Returns False, and does nothing, unless the room is ACTIVE.

        Otherwise answered by JoinedOut, and then possibly CloseOut; or by CloseOut alone.
        """
        self._runtime.now = now
        self._timer_until = -math.inf
        if self.status is not Status.ACTIVE or self._connections is None:
            return False
        old = self._connections.of_player(request.player)
        if old is not None:
            self._writes.apply_of(old)
        if self.status is not Status.ACTIVE:
            return False
        self._connections.join(link, request)
        return True

    def receive(self, link: int, frame: bytes, now: Now) -> None:
        """A frame from a link's client. Frames of a link that has gone are dropped."""
        self._runtime.now = now
        if self._intake is not None:
            self._intake.receive(link, frame)

    def receive_all(self, frames: Sequence[tuple[int, bytes]], start: int, until: float, now: Now) -> int:
        """Receive frames, each with its link, from `start` on, and return how many were: all, or those up to
        the first that is done at `until` (by the watch) or later. Without a watch it is all.
        """
        self._runtime.now = now
        if self._intake is None:
            return len(frames) - start
        return self._intake.receive_all(frames, start, until)

    def request(self, token: int, message: Any, now: Now) -> bool:
        """A backend's request, for `on_request`: what JSON holds, or bytes. `token` is one not used before.

        Returns False, and does nothing, unless the room is ACTIVE. Otherwise answered by one AnswerOut. For a
        room without connections, the time after which it hibernates begins anew.
        """
        self._runtime.now = now
        self._timer_until = -math.inf
        if self.status is not Status.ACTIVE or self._connections is None:
            return False
        if self._connections.empty_since is not None:
            self._connections.empty_since = now.mono
        if self._runtime.recorder is not None:
            self._runtime.recorder.requested(token, message, now.wall, self._runtime.tick)
        self._answering.request(token, message)
        return True

    def leave(self, link: int, clean: bool, now: Now) -> None:
        """A link's connection is gone; `clean`: the player left on purpose. Unknown links are ignored."""
        self._runtime.now = now
        self._timer_until = -math.inf
        found = self._link(link)
        if found is not None and self._connections is not None:
            fields = {"player": found.player, "clean": clean}
            self._runtime.emit(LogOut("debug", "room.connection_left", fields))
            self._writes.apply_of(found)
            self._connections.leave(link)

    def drained(self, link: int, total_bytes: int, now: Now) -> None:
        """The client has got so many bytes of what the link was sent, counted from the join modulo 2^32."""
        self._runtime.now = now
        if self._intake is None or not self._intake.drained(link, total_bytes, now.mono):
            return
        found = self._link(link)
        if found is not None and found.outbox.drained(total_bytes, now.mono):
            self._runtime.sync.release(found)
            if found.view.version == self._runtime.version:
                found.outbox.settle()

    def hold(self, link: int, held: bool, now: Now) -> None:
        """While `held`, the link counts as without credit: too much is on the way to its router already."""
        self._runtime.now = now
        self._timer_until = -math.inf
        found = self._link(link)
        if found is not None and found.outbox.held != held:
            found.outbox.held = held
            self._runtime.sync.release(found)

    def tick(self, now: Now) -> None:
        """Run one tick. Does nothing unless the room is ACTIVE."""
        self._runtime.now = now
        if self.status is not Status.ACTIVE:
            return
        if self._runtime.version >= LAST_VERSION:
            self._begin_closing(CloseCode.ROOM_MOVED, "the room starts anew", move=False)
            return
        if self._asked is not None:
            self._close_if_asked()
        if self.status is not Status.ACTIVE:
            return
        with self._runtime.tick_timing:
            self._tick()

    def timer(self, now: Now) -> None:
        """Do what has fallen due."""
        self._runtime.now = now
        self._timer_until = -math.inf
        self._runtime.hooks.expire(now.mono)
        if self.status is Status.ACTIVE:
            self._end_grace()
            self._close_stalled()
            self._expire_private()
            self._base_if_due()
        if self.status is Status.ACTIVE:
            self._hibernate_if_idle()
        self._go_on_closing()

    def next_timer(self) -> float | None:
        """Return when (`mono`) `timer` is to be called next; None: not until something else has been.

        Frames, acknowledgements and ticks are many, and what they move are waits of many seconds: what they
        begin is found within LOOK_S, and one that they end early makes a timer that finds nothing to do.
        """
        runtime = self._runtime
        hooks, mono = len(runtime.hooks), runtime.now.mono
        links = 0 if self._connections is None else len(self._connections.by_number)
        if (
            mono >= self._timer_until
            or hooks != self._timer_hooks
            or links != self._timer_links
            or self.status is not self._timer_status
        ):
            self._timer_hooks, self._timer_links, self._timer_status = hooks, links, self.status
            self._timer_until = mono + LOOK_S
            self._timer_at = self._find_next_timer()
        return self._timer_at

    def _find_next_timer(self) -> float | None:
        dues = [self._runtime.hooks.next_deadline]
        if self.status is Status.ACTIVE and self._connections is not None:
            dues += [
                self._runtime.presence.next_deadline,
                self._saving.journal.next_deadline,
                self._retention_due,
                self._idle_at(),
            ]
            dues += [_stalled_at(link) for link in self._connections.links]
        return min((due for due in dues if due is not None), default=None)

    def durable(self, version: int, now: Now) -> None:
        """The state store has everything up to this version."""
        self._runtime.now = now
        journal = self._saving.journal
        if version > journal.durable:
            journal.durable = version
        if self.awaits_durable:
            self._answering.release()
            self._close_if_asked()
            self._go_on_closing()

    def need_base(self, now: Now) -> None:
        """The state store cannot go on from the records it has: write a base."""
        self._runtime.now = now
        self._timer_until = -math.inf
        if self.status in (Status.ACTIVE, Status.CLOSING) and self._runtime.version:
            self._flush_to_base()

    def settled(self, token: int, result: Any, error: BaseException | None, now: Now) -> None:
        """An awaitable has ended. `result` is what it came to; of account where room code answers."""
        self._runtime.now = now
        self._timer_until = -math.inf
        self._runtime.hooks.settle(token, error, result)
        self._go_on_closing()

    def hibernate(self, now: Now, *, move: bool = False) -> None:
        """Hibernate the room: its connections end with 4008 and come back. A room that starts does so first,
        and one whose shard is not heard waits for that: at most ASKED_S, then it stays as it is.

        With `move` they are kept by their routers and join the next generation: no leave hook runs, and
        links are forgotten without a CloseOut. Without any by then, the room hibernates.
        """
        self._runtime.now = now
        self._timer_until = -math.inf
        self._close_room(CloseCode.ROOM_MOVED, "the room is moving", move=move)

    def summary(self) -> dict[str, Any]:
        """Return the room's figures, as JSON. Changes nothing."""
        return {
            **summarise(self._runtime, self.tick_rate),
            "room_class": self._room_class.__qualname__,
            "status": self.status.value,
            "connection_count": self.connection_count,
            "max_players": self._max_players,
            "tick_rate": self.tick_rate,
            "durable": 0 if self._connections is None else self._saving.journal.durable,
            "base_bytes": 0 if self._connections is None else self._saving.journal.base_bytes,
            "record_bytes": 0 if self._connections is None else self._saving.journal.log_bytes,
        }

    def inspect(self, page: Page = FIRST_PAGE) -> dict[str, Any]:
        """Return all that is in the room, as JSON; `page`: which of its entities. Changes nothing."""
        shown = {**self.summary(), **inspect_room(self._runtime, self._connections, self._room_class, page)}
        if self._connections is not None:
            shown["bots"], shown["bans"] = show_bots(self._bots), show_bans(self._bans)
        return shown

    # Starting and stopping

    def _make_room(self) -> None:
        self.room = self._room_class.__new__(self._room_class)

    def _assemble(self) -> None:
        """Put together what works on the room, and give the room its face of it."""
        runtime, room = self._runtime, self.room
        bots = self._bots = BotBook(
            runtime,
            room,
            self._max_players,
            people=lambda: self.connection_count,
            make_space=self._make_space_in_presence,
        )
        connections = self._connections = Connections(
            runtime,
            room,
            bots,
            self._bans,
            max_players=self._max_players,
            tick_rate=self.tick_rate,
            joined=self._joined,
        )
        self._visibility = Visibility(room, runtime.tracker, runtime.presence, runtime.emit)
        self._saving = Saving(runtime, bots, self._bans)
        sending = Sending(runtime, connections)
        self._writes = OwnerWrites(runtime, room)
        self._answering = Answering(runtime, room, self._saving, sending)
        self._receiving = Receiving(runtime, room, connections, self._writes, self._answering)
        self._intake = Intake(
            runtime, room, connections.by_number, self._receiving.receive, self._receive_early, jsontext.read
        )
        self._rewinding = Rewinding(
            self._room_class.__name__, runtime, self._room_class.history, self.tick_rate
        )
        self._context = Context(
            runtime,
            connections,
            bots,
            self._bans,
            sending,
            self._rewinding,
            max_players=self._max_players,
            hibernate=lambda: self._close_room(CloseCode.HIBERNATED, "the room hibernates", move=False),
        )
        room._enter(self._context)

    def _make_space_in_presence(self) -> None:
        if self._connections is not None:
            self._connections.make_space_in_presence()

    def _created(self, error: BaseException | None) -> None:
        if error is not None:
            self._stopped_by("on_create")(error)
            return
        # Saved at once: on_create runs once in a room's life.
        self._flush(force=True)
        self._ready()

    def _woken(self, error: BaseException | None) -> None:
        if error is not None:
            self._stopped_by("on_wake")(error)
            return
        self._bots.start()
        self._ready()

    def _ready(self) -> None:
        if self.status is not Status.STARTING or self._connections is None:
            return
        self.status = Status.ACTIVE
        self._connections.empty_since = self._runtime.now.mono
        self._runtime.emit(ReadyOut())
        if self._asked is not None:
            self._asked.until = self._runtime.now.mono + ASKED_S
            self._close_if_asked()

    def _stopped_by(self, hook: str) -> Any:
        """Return what stops the room with the error of a hook."""

        def stop(error: BaseException | None) -> None:
            if error is not None:
                self._runtime.report(hook, error)
                self._stop(f"{hook} raised {error_text(error)}", error)

        return stop

    def _stop(self, reason: str, error: BaseException | None) -> None:
        """End the room by an error. What was not flushed is not saved."""
        if self.status in (Status.STOPPED, Status.CLOSED):
            return
        self.status = Status.STOPPED
        if self._connections is not None:
            for link in self._connections.links:
                self._runtime.emit(
                    CloseOut(link.number, CloseCode.ROOM_STOPPED, "the room stopped by an error")
                )
            self._connections.forget_all()
            self._answering.stop("the room stopped by an error")
        self._runtime.hooks.stop()
        if error is None:
            self._runtime.emit(LogOut("error", "room.stopped", {"error": reason}))
        self._runtime.emit(StopOut(CloseCode.ROOM_STOPPED, reason))

    # Ticks and flushes

    def _tick(self) -> None:
        """Run the parts of a tick for which there is something to do."""
        runtime = self._runtime
        runtime.tick += 1
        if runtime.presence.just_lost:
            runtime.presence.settle()
        if self._writes.waiting:
            with runtime.write_timing:
                self._writes.apply()
        if self._bots.by_player and self.status is Status.ACTIVE:
            self._bots.tick()
        if self.status is not Status.ACTIVE:
            return
        self._run_on_tick()
        if self.status is Status.ACTIVE:
            self._flush(tick=True)
            if runtime.tick % self.tick_rate == 0:
                runtime.look_for_mutations()

    def _run_on_tick(self) -> None:
        """Do what `Hooks.run` does, without what only other hooks need."""
        hooks = self._runtime.hooks
        hooks.begin("on_tick")
        try:
            try:
                returned: object = self.room.on_tick(self._dt)  # type: ignore[func-returns-value]
                if returned is not None:
                    raise TypeError(f"on_tick must return nothing, not {type(returned).__name__}")
            finally:
                hooks.end()
        except (KeyboardInterrupt, GeneratorExit):
            hooks.abandon()
            raise
        except BaseException as error:
            self._runtime.report("on_tick", error)
            self._stop(f"on_tick raised {error_text(error)}", error)
        hooks.release()

    def _flush(self, *, force: bool = False, tick: bool = False) -> None:
        """Give what has changed a version, save it, and send it. `tick`: a tick ends."""
        with self._runtime.flush_timing:
            self._do_flush(force, tick)

    def _do_flush(self, force: bool, tick: bool) -> None:
        runtime, status = self._runtime, self.status
        if self._bots.by_player:
            self._bots.check()
            if self.status is not status:
                return  # on_player_leave of a bot that failed has ended the room
        flush = None
        try:
            flush = self._saving.flush(force=force)
        except (FieldError, RoomTooLargeError) as error:
            self._end_unsaved(error)
        if self.status is not status:
            return
        with runtime.hooks.holding():
            if self._connections is not None:
                links = self._connections.links
                if not self._visibility.is_open:
                    if self._look(links, flush, tick=tick) and flush is None:
                        runtime.version += 1
                    if self.status is not status:
                        return  # interest has ended the room
                runtime.sync.update(links, flush, runtime.version, runtime.tick, runtime.now.mono)
                if tick and self._rewinding.records:
                    self._rewinding.record()
            if self._answering.waiting:
                self._answering.flushed()

    def _look(self, links: list[Link], flush: Flush | None, *, tick: bool) -> bool:
        """Find what each link sees. Returns whether there is anything to tell beside the flush."""
        try:
            with self._runtime.interest_timing:
                return self._visibility.look(links, flush, tick=tick)
        except VisibilityError as failure:
            self._runtime.report(failure.hook, failure.error, **failure.about)
            self._stop(f"{failure} raised {error_text(failure.error)}", failure.error)
            return False

    def _save(self, save: Callable[[], None]) -> None:
        """Call what saves. What it raises ends the room."""
        try:
            save()
        except (FieldError, RoomTooLargeError) as error:
            self._end_unsaved(error)

    def _end_unsaved(self, error: FieldError | RoomTooLargeError) -> None:
        if isinstance(error, FieldError):
            self._stopped_by("columns")(error)
        else:
            self._stop(str(error), None)

    def _base_if_due(self) -> None:
        due = self._saving.journal.next_deadline
        if due is not None and due <= self._runtime.now.mono:
            self._flush_to_base()

    def _flush_to_base(self) -> None:
        # A base says that it is everything up to its version, so nothing may have changed since.
        with self._runtime.hooks.holding():
            self._flush()
            if self.status in (Status.ACTIVE, Status.CLOSING):
                self._save(self._saving.write_base)

    # Connections

    def _link(self, number: int) -> Link | None:
        return None if self._connections is None else self._connections.get(number)

    def _receive_early(self, link: Link, frame: bytes) -> None:
        """Keep a frame that came before its link's on_join was done."""
        if not link.keep(frame):
            self._close(link, CloseCode.LIMIT_EXCEEDED, "too much was sent before the join was done")

    def _close(self, link: Link, code: CloseCode, reason: str) -> None:
        if self._connections is not None:
            self._connections.close(link, code, reason)

    def _joined(self, link: Link) -> None:
        """A link's on_join has taken effect: it gets its state, and everyone what has changed."""
        if link.state is not LinkState.JOINED or self.status is not Status.ACTIVE:
            return
        if self._runtime.schema.private is not None:
            self._context.private(link.player, True)
        self._flush()
        inbox, link.inbox = link.inbox, []
        for frame in inbox:
            if link.state is LinkState.JOINED:
                self._receiving.receive(link, frame)

    def _close_stalled(self) -> None:
        if self._connections is None:
            return
        for link in self._connections.links:
            due = _stalled_at(link)
            if due is not None and due <= self._runtime.now.mono:
                self._close(link, CloseCode.LIMIT_EXCEEDED, f"nothing was read for {STALL_S:g} s")

    def _end_grace(self) -> None:
        if self._connections is not None:
            for player in self._runtime.presence.expired(self._runtime.now.mono):
                self._connections.end_presence(player)

    def _expire_private(self) -> None:
        if self._retention_due <= self._runtime.now.mono:
            self._retention_due = self._runtime.now.mono + CHECK_S
            self._drop_expired()

    def _drop_expired(self) -> None:
        for player in self._runtime.retention.expired(self._runtime.now.wall):
            self._runtime.retention.forget(player)
            self._runtime.store.drop_private(player)

    # Hibernation

    def _idle_at(self) -> float | None:
        since = None if self._connections is None else self._connections.empty_since
        if since is None:
            return None
        return max(since + self._idle_s, self._idle_retry_at or 0.0)

    def _hibernate_if_idle(self) -> None:
        due, mono = self._idle_at(), self._runtime.now.mono
        if due is None or due > mono:
            return
        busy = len(self._runtime.hooks) > 0 or self._answering.held(self._answering.count)
        if self.shard_heard and not busy:
            self._begin_closing(CloseCode.HIBERNATED, "the room hibernates", move=False)
        else:
            self._idle_retry_at = mono + IDLE_RETRY_S

    def _close_room(self, code: CloseCode, reason: str, *, move: bool) -> None:
        if self._asked is None and self._connections is not None:
            until = self._runtime.now.mono + ASKED_S
            self._asked = _Asked(code, reason, move, until, self._answering.count)
        self._close_if_asked()

    def _close_if_asked(self) -> None:
        """Begin to close, if that was asked for, no answer from before that waits which is owed to somebody,
        and the shard is there to take the last base: a room that closes takes nobody in, so it had better not
        have to wait. Later answers do not count, or who calls all the time would keep the room where it is.
        """
        asked = self._asked
        if asked is None or self.status is not Status.ACTIVE:
            return
        if self.shard_heard and not self._answering.held(asked.answers):
            self._asked = None
            self._begin_closing(asked.code, asked.reason, move=asked.move)
        elif self._runtime.now.mono >= asked.until:
            self._asked = None
            what = "answers waited" if self.shard_heard else "no shard was heard"
            self._runtime.warn("room.hibernate_given_up", reason=f"{what} for {ASKED_S:g} s")

    def _begin_closing(self, code: CloseCode, reason: str, *, move: bool) -> None:
        if self.status is not Status.ACTIVE or self._connections is None:
            return
        self._writes.apply()
        if self.status is not Status.ACTIVE:
            return  # on_write has asked for it too
        self.status = Status.CLOSING
        self._moves = move and len(self._connections) > 0
        if self._moves:
            self._connections.forget_all()
        else:
            for link in self._connections.links:
                self._connections.close(link, code, reason)
            for player in self._runtime.presence:
                if not is_bot(player):
                    self._connections.end_presence(player)
        self._go_on_closing()

    def _go_on_closing(self) -> None:
        """Take the next step of hibernating, if it is time for it."""
        if self.status is not Status.CLOSING or len(self._runtime.hooks):
            return
        if not self._on_hibernate_ran:
            self._on_hibernate_ran = True
            self._runtime.run("on_hibernate", self.room.on_hibernate, self._hibernated)
        elif not self._last_base_written:
            self._write_last_base()
        elif self._saving.journal.settled:
            self.status = Status.CLOSED
            self._runtime.emit(HibernateOut(self._runtime.version, self._runtime.tick, moved=self._moves))

    def _hibernated(self, error: BaseException | None) -> None:
        if error is not None:
            self._stopped_by("on_hibernate")(error)
        else:
            self._go_on_closing()

    def _write_last_base(self) -> None:
        self._bots.check()
        if len(self._runtime.hooks):
            return  # on_player_leave of a bot that failed is waiting, and what it does is to be saved too
        self._save(self._saving.write_last_base)
        if self.status is not Status.CLOSING:
            return
        self._last_base_written = True
        self._answering.flushed()
        self._go_on_closing()


def _stalled_at(link: Link) -> float | None:
    since = link.outbox.stalled_since
    return None if since is None else since + STALL_S
