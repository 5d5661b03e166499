"""`RoomHost`, the fixture: rooms in process under one clock, which only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Protocol

from typing_extensions import TypeVar

from playhall.engine.kinds import Entity
from playhall.engine.outputs import Now
from playhall.engine.room import Room
from playhall.testing.backend import Backend
from playhall.testing.loop import StillLoop
from playhall.testing.room import TestRoom

__all__ = ["DEFAULT_SEED", "RoomClass", "RoomHost"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound="Entity | None")
P = TypeVar("P", bound="Entity | None")
R_co = TypeVar("R_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)
P_co = TypeVar("P_co", covariant=True)

# The wall clock of a test begins here: 14 November 2023, 22:13:20 UTC.
WALL_AT_0 = 1_700_000_000.0
# A century: more is a mistake, and would take for ever where a room ticks.
LONGEST_S = 3_155_760_000.0
DEFAULT_SEED = 1


class RoomClass(Protocol[R_co, S_co, P_co]):
    """A room class as what it makes: how `room_host.room(Dots)` knows Dots, Board and Mine."""

    def __playhall_types__(self) -> tuple[R_co, S_co, P_co]: ...


class RoomHost:
    """Makes rooms under test. They share a clock, and tick on it whichever of them a test moves.

    In pytest it is the fixture `room_host`. Without pytest:

        async def main() -> None:
            async with RoomHost() as host:
                t = host.room(Dots)
                ...

        with asyncio.Runner(loop_factory=StillLoop) as runner:
            runner.run(main())
    """

    def __init__(self, loop: StillLoop | None = None, *, seed: int = DEFAULT_SEED) -> None:
        """`loop`: by default the running one, which must be a StillLoop; RuntimeError otherwise.

        `seed` is what networks draw their chances from: the same seed, the same delays and losses in each
        run.
        """
        running = asyncio.get_running_loop() if loop is None else loop
        if not isinstance(running, StillLoop):
            raise RuntimeError(
                "RoomHost needs the loop whose clock stands still: asyncio.Runner(loop_factory=StillLoop)"
            )
        self._loop = running
        self._rooms: list[TestRoom[Any, Any, Any]] = []
        self._backends: list[Backend] = []
        self.seed: int = seed
        """What networks draw their chances from."""

    async def __aenter__(self) -> RoomHost:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if error is None:
            self.check_errors()

    def room(
        self, room_class: RoomClass[R, S, P], *, id: str = "main", max_players: int | None = None
    ) -> TestRoom[R, S, P]:
        """Make a room, which starts with the first that needs it: a connect, or `wake`.

        `max_players` stands for the class's, as a room that was created with it has it. Raises ValueError for
        an id that another room of the test has.
        """
        if not (isinstance(room_class, type) and issubclass(room_class, Room)):
            raise TypeError(f"a room under test is made from its class, not {room_class!r}")
        if any(room.id == id for room in self._rooms):
            raise ValueError(f"there is a room {id!r} already: give this one another id")
        if max_players is not None and max_players < 1:
            raise ValueError(f"max_players is 1 or more, not {max_players}")
        backend = Backend(room_class, id, max_players, self.seed, self.now)
        self._backends.append(backend)
        room: TestRoom[R, S, P] = TestRoom(self, backend)
        self._rooms.append(room)
        return room

    def now(self) -> Now:
        """The time of the test. For the harness itself."""
        return Now(self._loop.time(), WALL_AT_0 + self._loop.time())

    @property
    def has_chance(self) -> bool:
        """Whether anything in the test depends on the seed. For the harness itself."""
        return any(each.has_chance for each in self._backends)

    async def advance(self, seconds: float) -> None:
        """Move the clock, with all ticks and timers on the way. Raises ValueError for what is no time."""
        if not 0 <= seconds <= LONGEST_S:
            raise ValueError(f"the clock moves by 0 to {LONGEST_S:g} seconds, not by {seconds}")
        await self.advance_to(self._loop.time() + seconds)

    async def advance_to(self, time: float) -> None:
        """Move the clock to `time`, with all ticks and timers on the way. For the harness itself."""
        self.check_loop()
        while True:
            timer_at = await self._idle()
            ticks = [at for each in self._backends if (at := each.next_tick_at) is not None]
            at = min([time, *ticks, *([] if timer_at is None else [timer_at])])
            self._loop.move_to(at)
            await self._idle()
            for each in self._backends:
                each.tick_if_due(at)
            if at >= time:
                break
        await self._idle()

    async def settle(self) -> None:
        """Let everything happen that takes no time."""
        self.check_loop()
        await self._idle()

    async def next_event_at(self) -> float | None:
        """Let everything happen that takes no time, and return when something next will.

        For the harness itself.
        """
        timer_at = await self._idle()
        ticks = [at for each in self._backends if (at := each.next_tick_at) is not None]
        return min([*ticks, *([] if timer_at is None else [timer_at])], default=None)

    async def wait(self, awaitable: Awaitable[T], *, timeout: float = 60.0) -> T:
        """Await something, and move the clock, with all ticks on the way, as far as it needs.

        Raises TimeoutError where it needs more than `timeout` seconds; it is cancelled then.
        """
        future = asyncio.ensure_future(awaitable)
        try:
            await self.pass_time(future.done, timeout)
            if not future.done():
                raise TimeoutError(f"this is not done after {timeout:g} s of the test's clock")
            return await future
        finally:
            future.cancel()

    async def pass_time(self, done: Callable[[], bool], at_most: float) -> None:
        """Move the clock until `done`, from event to event, for at most so many seconds.

        For the harness itself.
        """
        self.check_loop()
        deadline = self._loop.time() + at_most
        await self._idle()
        while not done():
            at = await self.next_event_at()
            if at is None or at > deadline:
                return
            await self.advance_to(at)

    async def _idle(self) -> float | None:
        for each in self._backends:
            each.pump()
        timer_at = await self._loop.idle()
        self._loop.raise_what_was_raised()
        return timer_at

    def check_errors(self) -> None:
        """Raise AssertionError if room code raised what the test has not heard of. Tells of each once.

        What a callback raised, or a task that nobody awaited, is raised as it is.
        """
        self._loop.raise_what_was_raised()
        if untold := [error for each in self._backends for error in each.take_untold()]:
            raise AssertionError(
                "room code raised, and the test did not look at t.errors:\n\n" + "\n\n".join(untold)
            )

    def check_loop(self) -> None:
        """Raise RuntimeError where the test runs on another plugin's loop. For the harness itself."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                "room_host is of another event loop than the test: take the asyncio or anyio mark off, and"
                " Playhall's own plugin runs the test"
            )

    async def close(self) -> None:
        """End all rooms and clients."""
        for room in self._rooms:
            await room.close()
