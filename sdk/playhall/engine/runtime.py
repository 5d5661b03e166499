"""What the parts of one room's state machine share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, Literal

from playhall.engine.backend import Tracker
from playhall.engine.fanout import Link, Sync
from playhall.engine.faults import error_text, traceback_text
from playhall.engine.hooks import Hooks, Then, ThenAnswer
from playhall.engine.mutations import Mutations
from playhall.engine.outputs import AnswerOut, LogOut, Now, Output, RoomIdentity
from playhall.engine.presence import PresenceBook
from playhall.engine.profile import WHOLE, Profile
from playhall.engine.recording import Recorder
from playhall.engine.retention import Retention
from playhall.engine.roomlog import RoomLog
from playhall.engine.running import Watch
from playhall.engine.schema import Schema
from playhall.engine.store import EntityStore

__all__ = ["HOOK_S", "START_HOOK_S", "Runtime"]

# How long an async hook may take; and on_create and on_wake.
HOOK_S = 10.0
START_HOOK_S = 60.0
# What the recorder keeps of what a room puts out.
_RECORDED: Final = frozenset((AnswerOut, LogOut))


class Runtime:
    """State, time and outputs of one room. `now` is the time of the call being worked on.

    With a `clock` (seconds, for measuring) what the room does is timed and recorded for the inspector, and
    its author is warned of Json that is changed in place.
    """

    __slots__ = (
        "flush_timing",
        "generation",
        "hooks",
        "identity",
        "interest_timing",
        "log",
        "mutations",
        "now",
        "outputs",
        "presence",
        "profile",
        "recorder",
        "retention",
        "schema",
        "store",
        "sync",
        "tick",
        "tick_timing",
        "tracker",
        "version",
        "write_timing",
    )

    def __init__(
        self,
        schema: Schema[Any, Any],
        identity: RoomIdentity,
        generation: int,
        retention: float | Literal["forever"],
        clock: Callable[[], float] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.schema = schema
        self.identity = identity
        self.generation = generation
        self.now = Now(0.0, 0.0)
        self.tick = 0
        self.version = 0
        self.tracker = Tracker()
        self.store = EntityStore(schema, self.tracker)
        self.presence = PresenceBook(self.tracker, schema.presence_number)
        self.retention = Retention(retention)
        self.sync = Sync(self.tracker, self.emit)
        self.profile = None if clock is None else Profile(clock)
        self.recorder = None if clock is None else Recorder(schema, clock)
        self.mutations = None if clock is None else Mutations(schema, self.warn)
        self.hooks = Hooks(self.emit, self.profile, watch)
        self.log = RoomLog(self.emit)
        self.tick_timing, self.write_timing, self.flush_timing, self.interest_timing = (
            nullcontext() if self.profile is None else self.profile.timing(row)
            for row in (WHOLE, "owner writes", "flush", "interest")
        )
        """These time blocks, as rows of the profile."""
        self.outputs: list[Output] = []
        """What `take_outputs` will return. To read."""

    def emit(self, output: Output) -> None:
        self.outputs.append(output)
        if self.recorder is not None and type(output) in _RECORDED:
            self.recorder.noted(output, self.now.wall, self.tick)

    def take_outputs(self) -> list[Output]:
        if self.log._waiting:
            self.log.taken()
        outputs, self.outputs = self.outputs, []
        return outputs

    def run(
        self,
        hook: str,
        call: Callable[[], Any],
        then: Then | None = None,
        *,
        timeout_s: float = HOOK_S,
        link: int | None = None,
    ) -> None:
        """Run a hook. Without `then`, what it raises is logged, and that is all."""
        self.hooks.run(
            hook,
            call,
            then or (lambda error: self.report(hook, error)),
            mono=self.now.mono,
            timeout_s=timeout_s,
            link=link,
        )

    def returned(self, hook: str, got: Any, link: int) -> None:
        """A hook of a link that was begun has returned something. What comes of it is logged, as by `run`."""
        self.hooks.returned(
            hook,
            got,
            lambda _, error: self.report(hook, error),
            mono=self.now.mono,
            timeout_s=HOOK_S,
            link=link,
        )

    def ask(self, hook: str, call: Callable[[], Any], then: ThenAnswer, *, link: int | None = None) -> None:
        """Run room code that answers."""
        self.hooks.ask(hook, call, then, mono=self.now.mono, timeout_s=HOOK_S, link=link)

    def report(self, hook: str, error: BaseException | None, **about: Any) -> None:
        """Log what a hook raised; `about`: what it was called for."""
        if error is not None:
            fields = {"hook": hook, **about, "error": error_text(error)}
            self.emit(LogOut("error", "room.hook_failed", fields, traceback_text(error)))

    def look_for_mutations(self) -> None:
        """Look for Json that was changed in place, where that is wanted."""
        if self.mutations is not None and self.mutations.possible:
            self.mutations.look(tracked.entity for tracked in self.store.tracked())

    def debug(self, event: str, **fields: Any) -> None:
        """Log what explains why something did not happen."""
        self.emit(LogOut("debug", event, fields))

    def warn_of(self, link: Link, event: str, reason: str) -> None:
        """Warn of what a client does, once for each connection: it may do it as often as it likes."""
        if event not in link.warned:
            link.warned.add(event)
            self.warn(event, player=link.player, reason=reason)

    def warn(self, event: str, **fields: Any) -> None:
        """Log what a room's author or operator should know."""
        self.emit(LogOut("warning", event, fields))
