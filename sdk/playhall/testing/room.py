"""`TestRoom`: one room under test, with the store and the router around it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, cast

from typing_extensions import TypeVar

from playhall.client.net import Net
from playhall.client.transport import Receiver, Transport
from playhall.engine import frames, jsontext
from playhall.engine.codes import ERRORS, CloseCode, ErrorCode
from playhall.engine.connection import JsonIn, JsonOut
from playhall.engine.errors import PlayhallError
from playhall.engine.kinds import Entity
from playhall.engine.outputs import (
    AnswerOut,
    CloseOut,
    JoinedOut,
    JoinRequest,
    RoomIdentity,
    Status,
    WakeReason,
)
from playhall.engine.payloads import decode_payload, encode_payload
from playhall.engine.room import Room
from playhall.testing.client import TestClient
from playhall.testing.network import Network
from playhall.testing.running import Running
from playhall.testing.socket import Phase, Socket
from playhall.testing.store import RoomData, RoomStore

if TYPE_CHECKING:
    from playhall.testing.host import RoomHost

__all__ = ["PROJECT", "RoomStoppedError", "TestRoom"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

R = TypeVar("R")
S = TypeVar("S", bound="Entity | None", default=None)
P = TypeVar("P", bound="Entity | None", default=None)

PROJECT = "test"
CREDIT = 32 * 1024  # as the router grants it
# A client gives up by itself before that.
CONNECT_S = 60.0
# Hooks of a room that starts or hibernates may take so long by the test's clock.
HOOKS_S = 80.0


class RoomStoppedError(RuntimeError):
    """Room code raised where that stops the room. Its text ends with the traceback, where there is one."""


class TestRoom(Generic[R, S, P]):
    """One room. It starts when it is needed, hibernates by its own rules, and can be crashed."""

    __test__ = False

    def __init__(self, host: RoomHost, room_class: Any, id: str, max_players: int | None) -> None:
        self._host = host
        self._class = cast("type[Room[Any, Any, Any]]", room_class)
        self._max_players = max_players
        self._store = RoomStore()
        self._running: Running | None = None
        self._links = itertools.count(1)
        self._sockets: list[Socket] = []
        self._clients: list[TestClient[Any, Any]] = []
        self._stopped: str | None = None
        self._tokens = itertools.count(1)
        self._answers: dict[int, AnswerOut] = {}
        self._closing = False
        self._errors: list[str] = []
        self._untold: list[str] = []
        self.id = id
        self.log: list[str] = []
        """The room's log: room code's lines as they are, the engine's about it as `event name=value`."""

    # The room

    @property
    def room(self) -> R:
        """The running room."""
        if self._running is None or self._running.core.status is not Status.ACTIVE:
            raise RuntimeError("the room is not running: connect to it, or wake it")
        return cast(R, self._running.core.room)

    @property
    def status(self) -> str:
        """ "active" or "hibernated"; the latter also after an error: the next who comes wakes the room."""
        return "hibernated" if self._running is None else "active"

    @property
    def errors(self) -> list[str]:
        """Tracebacks of what room code raised, oldest first.

        A test that never looks at those in here fails at its end. What `tick`, `advance` or `connect` has
        raised is not in question, nor what on_join raised: that refuses the client, and stops nothing.
        """
        self._untold.clear()
        return self._errors

    @property
    def generation(self) -> int | None:
        """Which life of the room runs; None while none does."""
        return None if self._running is None else self._running.generation

    def stored(self) -> RoomData:
        """Return the room state that a wake would start from. Raises LookupError where there is none."""
        return self._store.data(self._schema)

    async def connect(self, player: str, *, meta: JsonIn = None, net: Net | None = None) -> TestClient[S, P]:
        """Connect a client, until its first state is in. Raises PlayhallError where the room refuses it.

        Moves the clock, with all ticks on the way, as far as the network `net` and an on_join that waits
        need; by default not at all.
        """
        self._host.check_loop()
        before = sum(client.player == player for client in self._clients)
        network = Network(net or Net(), self._host.seed, f"{self.id} {player} {before}")
        client: TestClient[S, P] = TestClient(self, player, meta, network, self._schema)
        self._clients.append(client)
        try:
            await self._host.wait(client.ready, timeout=CONNECT_S)
        except PlayhallError:
            self._stopped = None  # the client's error tells of it
            raise
        await self._host.settle()
        return client

    async def tick(self, n: int = 1) -> None:
        """Run n ticks. A room that does not run lets the time of n ticks pass. Raises RoomStoppedError."""
        await self._host.settle()
        for _ in range(n):
            at = self.next_tick_at
            if at is None:
                await self._host.advance(1 / self._class.tick_rate)
            else:
                await self._host.advance_to(at)
            self._raise_if_stopped()

    async def advance(self, seconds: float) -> None:
        """Move the clock, with all ticks and timers on the way. Raises RoomStoppedError."""
        await self._host.advance(seconds)
        self._raise_if_stopped()

    async def crash(self) -> None:
        """Kill the room host. Its clients hold on: for them the room starts again, if there are any."""
        await self._host.settle()
        running, self._running = self._running, None
        if running is None:
            raise RuntimeError("the room is not running, and cannot crash")
        running.kill()
        for socket in self._sockets:
            if socket.phase is Phase.JOINED:
                socket.lose_room(CloseCode.ROOM_MOVED)
        if any(socket.phase is Phase.WAITING for socket in self._sockets):
            self._start("connect")
        await self._host.settle()
        self._raise_if_stopped()

    async def hibernate(self) -> None:
        """Hibernate the room as `request_hibernate` does: its connections end with 4011.

        Moves the clock as far as the room's hooks need. Raises RoomStoppedError.
        """
        await self._host.settle()
        if self._running is not None:
            running = self._running
            running.call(lambda now: running.core.timer(now))
            running.call(lambda _: running.core.request_hibernate())
        await self._pass_time(lambda: self._running is None, "hibernate")

    async def wake(self) -> None:
        """Start the room, as a request from a backend does. Moves the clock as far as its hooks need."""
        self._host.check_loop()
        # One that is ending wakes anew when it has.
        await self._pass_time(lambda: self._running is None or self._is_up(), "start or end")
        if self._running is None:
            self._start("request")
        await self._pass_time(self._is_up, "start")

    async def request(self, message: JsonOut | bytes) -> JsonIn:
        """Send a request as a backend does, waking the room if need be, and return what `on_request` answers.

        Moves the clock as far as the answer needs. Raises PlayhallError where there is none: with 422 where
        `on_request` raised, 404 where the room has none, 503 where the room ended first.
        """
        payload = encode_payload(message)
        content = decode_payload(payload.format, payload.data)
        await self.wake()
        running, token = self._running, next(self._tokens)
        assert running is not None
        running.call(lambda now: running.core.request(token, content, now))
        await self._pass_time(lambda: token in self._answers or self._running is not running, "answer")
        answer = self._answers.pop(token, None)
        if answer is None:
            raise PlayhallError(ERRORS[ErrorCode.UNAVAILABLE].http, "the room ended before it answered")
        if answer.error is not None:
            raise PlayhallError(ERRORS[answer.error].http, answer.text)
        reply: JsonIn = jsontext.decode(answer.json)
        return reply

    async def close(self) -> None:
        """End the room, as a process that is killed, and then its clients. For the host."""
        self._closing = True
        if self._running is not None:
            self._running.kill()
            self._running = None
        for client in self._clients:
            client.mend()
            await client.leave()

    # For the host's clock

    @property
    def next_tick_at(self) -> float | None:
        """When the room's next tick is due; None while it does not tick."""
        return None if self._running is None else self._running.next_tick_at

    def tick_if_due(self, time: float) -> None:
        """Run the tick that is due by `time`, if one is."""
        at = self.next_tick_at
        if self._running is not None and at is not None and at <= time:
            self._running.tick()

    @property
    def has_chance(self) -> bool:
        """Whether the network of any client has drawn anything from the seed."""
        return any(client.net.has_chance and client.net.seed is None for client in self._clients)

    @property
    def host(self) -> RoomHost:
        """The host that made the room."""
        return self._host

    async def _pass_time(self, done: Callable[[], bool], what: str) -> None:
        await self._host.pass_time(lambda: done() or self._stopped is not None, HOOKS_S)
        self._raise_if_stopped()
        if not done():
            raise TimeoutError(f"the room did not {what} within {HOOKS_S:g} s")

    def untold(self) -> list[str]:
        """Return what room code raised that the test has not heard of. For the host."""
        untold = [*self._untold, *([] if self._stopped is None else [self._stopped])]
        self._untold.clear()
        self._stopped = None
        return untold

    def _is_up(self) -> bool:
        return self._running is not None and self._running.core.status is Status.ACTIVE

    def _raise_if_stopped(self) -> None:
        if self._stopped is not None:
            error, self._stopped = self._stopped, None
            raise RoomStoppedError(error)

    @property
    def _schema(self) -> Any:
        return self._class.schema

    # The router's part

    async def dial(
        self, receiver: Receiver, player: str, meta: JsonIn, network: Network | None = None
    ) -> Transport:
        """Connect a client's transport. Raises TimeoutError while the network is cut."""
        network = network or Network(Net(), self._host.seed, player)
        await network.handshake()
        socket = Socket(self, receiver, network, player, meta)
        self._sockets.append(socket)
        return socket

    async def drop(self, player: str) -> None:
        """End a player's connection, for both ends at once."""
        for socket in [socket for socket in self._sockets if socket.player == player]:
            socket.abort("the test dropped the connection")
        await self._host.settle()

    def socket_wants_in(self, socket: Socket) -> None:
        if self._closing:
            socket.closed(CloseCode.HIBERNATED, "the test is over")
        elif self._running is None:
            socket.say(frames.Waking())
            self._start("connect")
        elif self._running.core.status is Status.ACTIVE:
            self._join(socket)
        else:
            socket.say(frames.Waking())

    def socket_frame(self, socket: Socket, frame: bytes) -> None:
        running = self._running
        if running is not None:
            running.call(lambda now: running.core.receive(socket.link, frame, now))

    def socket_drained(self, socket: Socket) -> None:
        running = self._running
        if running is not None and socket.link:
            running.call(lambda now: running.core.drained(socket.link, socket.drained % 2**32, now))

    def socket_gone(self, socket: Socket, clean: bool) -> None:
        self._sockets.remove(socket)
        running = self._running
        if running is not None and socket.link:
            running.call(lambda now: running.core.leave(socket.link, clean, now))

    def pong(self, nonce: int) -> frames.Pong:
        if self._running is None:
            return frames.Pong(nonce, None, 0)
        tick, fraction = self._running.position()
        return frames.Pong(nonce, tick, fraction)

    def _start(self, reason: WakeReason) -> None:
        identity = RoomIdentity(PROJECT, self.id, f"uid-{self.id}")
        self._running = Running(
            self._class, identity, self._store, self, self._host.now, reason, self._max_players
        )
        self._running.start()

    def _join(self, socket: Socket) -> None:
        running, hello, resume = self._running, socket.hello, socket.resume
        assert running is not None
        assert hello is not None
        assert resume is not None
        if hello.type not in ("", "default"):
            socket.closed(CloseCode.WRONG_ROOM_TYPE, CloseCode.WRONG_ROOM_TYPE.help)
            return
        link = socket.link = next(self._links)
        socket.drained = 0
        request = JoinRequest(
            player=socket.player,
            meta=socket.meta,
            schema_hash=hello.schema,
            session=hello.session,
            attempt=hello.attempt,
            connected_at_ms=int(self._host.now().wall * 1000),
            was_joined=socket.was_joined,
            resume=resume,
            connection_id=f"test-{link}",
            room_type=hello.type or "default",
            credit_bytes=CREDIT,
        )
        running.call(lambda now: running.core.join(link, request, now))

    def _socket_of(self, link: int) -> Socket | None:
        return next((socket for socket in self._sockets if socket.link == link), None)

    # What the running room reports

    def room_ready(self) -> None:
        waiting = [socket for socket in self._sockets if socket.phase is Phase.WAITING]
        for socket in sorted(waiting, key=lambda each: not each.was_joined):
            self._join(socket)

    def room_joined(self, output: JoinedOut) -> None:
        socket, running = self._socket_of(output.link), self._running
        if socket is None or running is None:
            return
        socket.phase = Phase.JOINED
        socket.was_joined = True
        socket.say(
            frames.Welcome(
                generation=running.generation,
                version=output.version,
                tick=output.tick,
                fraction=running.position()[1],
                resumed=output.resumed,
                asleep=False,
                tick_rate=output.tick_rate,
                player=socket.player,
                room=self.id,
                type="default",
                token="",
            )
        )

    def room_frame(self, link: int, frame: bytes) -> None:
        socket = self._socket_of(link)
        if socket is not None:
            socket.pass_on(frame)

    def room_closes(self, output: CloseOut) -> None:
        socket = self._socket_of(output.link)
        if socket is not None:
            socket.link = 0
            prefix = f"retry-after={output.retry_after_ms};" if output.retry_after_ms else ""
            socket.closed(output.code, prefix + output.reason)

    def room_answers(self, output: AnswerOut) -> None:
        self._answers[output.token] = output

    def room_logged(self, line: str) -> None:
        self.log.append(line)

    def room_raised(self, hook: str, traceback: str) -> None:
        self._errors.append(traceback)
        if hook != "on_join":
            self._untold.append(traceback)

    def room_ended(self, error: str | None, traceback: str | None) -> None:
        self._running = None
        if error is not None:
            self._stopped = error if traceback is None else f"{error}\n\n{traceback}"
            if traceback in self._untold:
                self._untold.remove(traceback)  # who hears of the stop hears of this
        waiting = [socket for socket in self._sockets if socket.phase is Phase.WAITING]
        if error is None and waiting:
            self._start("connect")
        elif error is not None:
            for socket in waiting:
                socket.closed(CloseCode.ROOM_STOPPED, "the room stopped by an error")
