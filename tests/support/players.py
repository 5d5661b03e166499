"""Players for tests of the whole product: the Python client, with a record of all that it reported.

    async with Player(dev.url, "stand", "main", schema) as alice:
        alice.send({"type": "press"})
        await alice.until(lambda: alice.state.presses == 1)

Nothing here sleeps: a wait looks again when the client reports anything, and ends with its deadline.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from playhall.client import Entity, PlayhallError, RoomClient, Schema
from playhall.client.transport import Receiver, Transport
from playhall.client.websocket import WebSocketDial

__all__ = ["Event", "Player", "eventually", "everyone", "together"]

WAIT_S = 20.0
RETRY_S = 0.5
LOOK_S = 0.02

S = TypeVar("S", bound=Entity | None)
P = TypeVar("P", bound=Entity | None)
T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """Something the client reported; `at` is of the monotonic clock."""

    name: str
    value: Any
    at: float


class Player(Generic[S, P]):
    """One player in one room. `sockets` counts the connections that were opened for it."""

    def __init__(
        self,
        url: str,
        project: str,
        room: str,
        schema: Schema[S, P],
        *,
        type: str | None = None,
        token: str | None = None,
    ) -> None:
        self._dial = WebSocketDial(url, project)
        self._changed = asyncio.Event()
        self._asks = itertools.count(1)
        self.sockets = 0
        self.events: list[Event] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.client: RoomClient[S, P] = RoomClient(
            url, project=project, room=room, schema=schema, type=type, token=token, dial=self._dialled
        )
        for name in ("waking", "disconnected", "restored", "closed", "message", "tick"):
            self.client.on(name, self._hears(name))

    async def __aenter__(self) -> Self:
        await self.client.ready
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.leave()

    async def _dialled(self, receiver: Receiver) -> Transport:
        self.sockets += 1
        return await self._dial(receiver)

    @property
    def state(self) -> S:
        return self.client.state

    @property
    def private(self) -> P:
        return self.client.private

    @property
    def player(self) -> str:
        return self.client.player

    def named(self, name: str) -> list[Event]:
        """What was reported by one name, oldest first."""
        return [event for event in self.events if event.name == name]

    def story(self) -> list[str]:
        """The names of what happened to the connection, without what the game said over it."""
        return [event.name for event in self.events]

    @property
    def closed_with(self) -> int | None:
        """The code of the error that ended the client, if any did."""
        for event in self.named("closed"):
            assert isinstance(event.value, PlayhallError)
            return int(event.value.code)
        return None

    def send(self, message: Any) -> None:
        self.client.send(message)

    async def until(self, done: Callable[[], object], timeout: float = WAIT_S) -> None:
        """Wait until something holds; looked at after everything the client reports."""
        try:
            async with asyncio.timeout(timeout):
                while not done():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"{self.player} waited {timeout} s in vain, {self.client.status}, after {self.events[-12:]}"
            ) from None

    async def happens(self, name: str, times: int = 1, timeout: float = WAIT_S) -> Event:
        """Wait until something was reported so many times in all; return the last of these."""
        await self.until(lambda: len(self.named(name)) >= times, timeout)
        return self.named(name)[times - 1]

    async def ask(self, type: str, **values: Any) -> dict[str, Any]:
        """Send a message that the room answers, and return the answer."""
        ask = next(self._asks)
        self.send({"type": type, "ask": ask, **values})
        await self.until(lambda: ask in self.answers)
        return self.answers[ask]

    async def ask_until_answered(self, type: str, timeout: float = 2 * WAIT_S) -> dict[str, Any]:
        """The same, asked again and again: a message is lost when the room or the socket is."""
        deadline = time.monotonic() + timeout
        while True:
            ask = next(self._asks)
            self.send({"type": type, "ask": ask})
            try:
                async with asyncio.timeout(RETRY_S):
                    await self.until(lambda: ask in self.answers)  # noqa: B023  (awaited here)
            except TimeoutError:
                assert time.monotonic() < deadline, f"{self.player} got no answer: {self.events[-12:]}"
            else:
                return self.answers[ask]

    async def updates(self, count: int) -> None:
        """Wait for so many more updates."""
        ticks = 0

        def counts(_tick: int) -> None:
            nonlocal ticks
            ticks += 1

        remove = self.client.on_tick(counts)
        try:
            await self.until(lambda: ticks >= count)
        finally:
            remove()

    def _hears(self, name: str) -> Callable[..., None]:
        def heard(value: Any = None) -> None:
            if name == "message" and isinstance(value, dict) and "answer" in value:
                self.answers[value["answer"]] = value
            elif name != "tick":
                self.events.append(Event(name, value, time.monotonic()))
            self._changed.set()

        return heard


async def together(awaitables: Sequence[Awaitable[T]]) -> list[T]:
    """Await all at once; the first that fails fails."""

    async def one(awaitable: Awaitable[T]) -> T:
        return await awaitable

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(awaitable)) for awaitable in awaitables]
    return [task.result() for task in tasks]


async def everyone(players: Sequence[Player[S, P]], done: Callable[[Player[S, P]], object]) -> None:
    """Wait until something holds for each of the players."""
    await together([player.until(partial(done, player)) for player in players])


async def eventually(done: Callable[[], object], timeout: float = WAIT_S) -> None:
    """Wait for what nothing reports, such as a line in a log: looked at every 20 ms."""
    deadline = time.monotonic() + timeout
    while not done():
        assert time.monotonic() < deadline, f"waited {timeout} s in vain"
        await asyncio.sleep(LOOK_S)
