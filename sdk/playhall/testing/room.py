"""`TestRoom`: one room under test, as a test sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, cast

from typing_extensions import TypeVar

from playhall.client.net import Net
from playhall.client.transport import Receiver, Transport
from playhall.engine import jsontext
from playhall.engine.bots import is_bot
from playhall.engine.codes import ERRORS, ErrorCode
from playhall.engine.connection import JsonIn, JsonOut
from playhall.engine.errors import PlayhallError
from playhall.engine.kinds import Entity
from playhall.engine.payloads import decode_payload, encode_payload
from playhall.engine.store import check_player
from playhall.testing.backend import Backend
from playhall.testing.client import TestClient
from playhall.testing.store import RoomData

if TYPE_CHECKING:
    from playhall.testing.host import RoomHost

__all__ = ["TestRoom"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

R = TypeVar("R")
S = TypeVar("S", bound="Entity | None", default=None)
P = TypeVar("P", bound="Entity | None", default=None)

# A client gives up by itself before that.
CONNECT_S = 60.0
# Hooks of a room that starts or hibernates may take so long by the test's clock.
HOOKS_S = 80.0


class TestRoom(Generic[R, S, P]):
    """One room. It starts when it is needed, hibernates by its own rules, and can be crashed."""

    __test__ = False

    def __init__(self, host: RoomHost, backend: Backend) -> None:
        self._host = host
        self._backend = backend
        self._clients: list[TestClient[Any, Any]] = []

    @property
    def id(self) -> str:
        """The room's id."""
        return self._backend.id

    @property
    def host(self) -> RoomHost:
        """The host that made the room."""
        return self._host

    @property
    def room(self) -> R:
        """The running room. Raises RuntimeError while it does not run."""
        running = self._backend.running
        if running is None or not self._backend.is_up:
            raise RuntimeError("the room is not running: connect to it, or wake it")
        return cast(R, running.core.room)

    @property
    def status(self) -> str:
        """ "active" or "hibernated"; the latter also after an error: the next who comes wakes the room."""
        return "hibernated" if self._backend.running is None else "active"

    @property
    def generation(self) -> int | None:
        """Which life of the room runs; None while none does."""
        return self._backend.generation

    @property
    def errors(self) -> list[str]:
        """Tracebacks of what room code raised, oldest first.

        A test that never looks at those in here fails at its end. What `tick`, `advance` or `connect` has
        raised is not in question, nor what on_join raised: that refuses the client, and stops nothing.
        """
        self._backend.untold.clear()
        return self._backend.errors

    @property
    def log(self) -> list[str]:
        """The room's log: room code's lines as they are, the engine's about it as `event name=value`."""
        return self._backend.log

    def stored(self) -> RoomData:
        """Return the room state that a wake would start from. Raises LookupError where there is none."""
        return self._backend.store.data(self._backend.schema)

    async def connect(self, player: str, *, meta: JsonIn = None, net: Net | None = None) -> TestClient[S, P]:
        """Connect a client, until its first state is in. Raises PlayhallError where the room refuses it.

        Moves the clock, with all ticks on the way, as far as the network `net` and an on_join that waits
        need; by default not at all. Raises RoomStoppedError where the room stops in that time, with the
        client's first state on its way, and TypeError or ValueError for what is no player's id.
        """
        self._host.check_loop()
        check_player(player)
        if is_bot(player):
            raise ValueError(f"{player} is a bot's id, and no token can name such a player")
        network = self._backend.network(player, net or Net())
        client: TestClient[S, P] = TestClient(self._host, self._backend, network, meta)
        self._clients.append(client)
        stopped = self._backend.stopped
        try:
            await self._host.wait(client.ready, timeout=CONNECT_S)
        except PlayhallError:
            self._backend.stopped = None  # the client's error tells of it
            raise
        await self._host.settle()
        if self._backend.stopped is not stopped:
            self._backend.raise_if_stopped()
        return client

    async def dial(self, receiver: Receiver, player: str, meta: JsonIn = None) -> Transport:
        """Connect a transport: the `dial` of a RoomClient that a test makes itself."""
        return await self._backend.dial(receiver, self._backend.network(player, Net()), meta)

    async def tick(self, n: int = 1) -> None:
        """Run n ticks. A room that does not run lets the time of n ticks pass.

        Raises RoomStoppedError, and ValueError for a negative n.
        """
        if n < 0:
            raise ValueError(f"ticks are not taken back: {n}")
        await self._host.settle()
        for _ in range(n):
            at = self._backend.next_tick_at
            if at is None:
                await self._host.advance(1 / self._backend.tick_rate)
            else:
                await self._host.advance_to(at)
            self._backend.raise_if_stopped()

    async def advance(self, seconds: float) -> None:
        """Move the clock, with all ticks and timers on the way.

        Raises RoomStoppedError, and ValueError for a time that is negative or no number.
        """
        await self._host.advance(seconds)
        self._backend.raise_if_stopped()

    async def crash(self) -> None:
        """Kill the room host. Its clients hold on: for them the room starts again, if there are any."""
        await self._host.settle()
        self._backend.crash()
        await self._host.settle()
        self._backend.raise_if_stopped()

    async def hibernate(self) -> None:
        """Hibernate the room as `request_hibernate` does: its connections end with 4011.

        Moves the clock as far as the room's hooks need. Raises RoomStoppedError.
        """
        await self._host.settle()
        self._backend.hibernate()
        await self._pass_time(lambda: self._backend.running is None, "hibernate")

    async def wake(self) -> None:
        """Start the room, as a request from a backend does. Moves the clock as far as its hooks need."""
        self._host.check_loop()
        backend = self._backend
        # One that is ending wakes anew when it has.
        await self._pass_time(lambda: backend.running is None or backend.is_up, "start or end")
        if backend.running is None:
            backend.start("request")
        await self._pass_time(lambda: backend.is_up, "start")

    async def request(self, message: JsonOut | bytes) -> JsonIn:
        """Send a request as a backend does, waking the room if need be, and return what `on_request` answers.

        Moves the clock as far as the answer needs. Raises PlayhallError where there is none: with 422 where
        `on_request` raised, 404 where the room has none, 503 where the room ended first.
        """
        payload = encode_payload(message)
        content = decode_payload(payload.format, payload.data)
        await self.wake()
        backend = self._backend
        running, token = backend.running, backend.request(content)
        await self._pass_time(lambda: token in backend.answers or backend.running is not running, "answer")
        answer = backend.answers.pop(token, None)
        if answer is None:
            raise PlayhallError(ERRORS[ErrorCode.UNAVAILABLE].http, "the room ended before it answered")
        if answer.error is not None:
            raise PlayhallError(ERRORS[answer.error].http, answer.text)
        reply: JsonIn = jsontext.decode(answer.json)
        return reply

    async def close(self) -> None:
        """End the room, as a process that is killed, and then its clients. The host does it at its end."""
        self._backend.end()
        for client in self._clients:
            client.mend()
            await client.leave()

    async def _pass_time(self, done: Callable[[], bool], what: str) -> None:
        await self._host.pass_time(lambda: done() or self._backend.stopped is not None, HOOKS_S)
        self._backend.raise_if_stopped()
        if not done():
            raise TimeoutError(f"the room did not {what} within {HOOKS_S:g} s")
