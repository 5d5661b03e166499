"""`TestRoom`: one room under test, with the store and the router around it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Generic, cast

from typing_extensions import TypeVar

from playhall.client.core import ABNORMAL
from playhall.client.transport import Receiver, Transport
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall.engine.connection import JsonIn
from playhall.engine.errors import PlayhallError
from playhall.engine.kinds import Entity
from playhall.engine.outputs import CloseOut, JoinedOut, JoinRequest, RoomIdentity, Status, WakeReason
from playhall.engine.room import Room
from playhall.testing.client import TestClient
from playhall.testing.running import Running
from playhall.testing.socket import Phase, Socket
from playhall.testing.store import RoomData, RoomStore

if TYPE_CHECKING:
    from playhall.testing.host import RoomHost

__all__ = ["PROJECT", "RoomStoppedError", "TestRoom"]

R = TypeVar("R")
S = TypeVar("S", bound="Entity | None", default=None)
P = TypeVar("P", bound="Entity | None", default=None)

PROJECT = "test"
CREDIT = 256 * 1024
# Hooks of a room that starts or hibernates may take so long by the test's clock.
HOOKS_S = 80.0


class RoomStoppedError(RuntimeError):
    """Room code raised where that stops the room."""


class TestRoom(Generic[R, S, P]):
    """One room. It starts when it is needed, hibernates by its own rules, and can be crashed."""

    __test__ = False

    def __init__(self, host: RoomHost, room_class: Any, id: str) -> None:
        self._host = host
        self._class = cast("type[Room[Any, Any, Any]]", room_class)
        self._store = RoomStore()
        self._running: Running | None = None
        self._links = itertools.count(1)
        self._sockets: list[Socket] = []
        self._clients: list[TestClient[Any, Any]] = []
        self._stopped: str | None = None
        self.id = id
        self.errors: list[str] = []
        """Tracebacks of what room code raised."""

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

    def stored(self) -> RoomData:
        """Return the room state that a wake would start from. Raises LookupError where there is none."""
        return self._store.data(self._schema)

    async def connect(self, player: str, *, meta: JsonIn = None) -> TestClient[S, P]:
        """Connect a client, until its first state is in. Raises PlayhallError where the room refuses it."""
        self._host.check_loop()
        client: TestClient[S, P] = TestClient(self, player, meta, self._schema)
        self._clients.append(client)
        try:
            await client.ready
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
        if self._running is None:
            self._start("request")
        await self._pass_time(self._is_up, "start")

    async def close(self) -> None:
        """End the room and its clients. For the host."""
        for client in self._clients:
            await client.leave()
        if self._running is not None:
            self._running.kill()
            self._running = None

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
    def host(self) -> RoomHost:
        """The host that made the room."""
        return self._host

    async def _pass_time(self, done: Any, what: str) -> None:
        deadline = self._host.now().mono + HOOKS_S
        await self._host.settle()
        while not done() and self._stopped is None:
            at = await self._host.next_event_at()
            if at is None or at > deadline:
                raise TimeoutError(f"the room did not {what} within {HOOKS_S:g} s")
            await self._host.advance_to(at)
        self._raise_if_stopped()

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

    async def dial(self, receiver: Receiver, player: str, meta: JsonIn) -> Transport:
        """Connect a client's transport."""
        socket = Socket(self, receiver, player, meta)
        self._sockets.append(socket)
        return socket

    async def cut(self, player: str) -> None:
        """Cut the network of a player's connection."""
        for socket in self._sockets:
            if socket.player == player:
                socket.closed(ABNORMAL, "the test cut the network")
        await self._host.settle()

    def socket_wants_in(self, socket: Socket) -> None:
        if self._running is None:
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
        self._running = Running(self._class, identity, self._store, self, self._host.now, reason)
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
        socket, running = self._socket_of(link), self._running
        if socket is not None and running is not None:
            socket.say(frame)
            socket.drained += len(frame)
            running.core.drained(link, socket.drained % 2**32, self._host.now())

    def room_closes(self, output: CloseOut) -> None:
        socket = self._socket_of(output.link)
        if socket is not None:
            socket.link = 0
            prefix = f"retry-after={output.retry_after_ms};" if output.retry_after_ms else ""
            socket.closed(output.code, prefix + output.reason)

    def room_raised(self, traceback: str) -> None:
        self.errors.append(traceback)

    def room_ended(self, error: str | None) -> None:
        self._running = None
        if error is not None:
            self._stopped = error
        waiting = [socket for socket in self._sockets if socket.phase is Phase.WAITING]
        if error is None and waiting:
            self._start("connect")
        elif error is not None:
            for socket in waiting:
                socket.closed(CloseCode.ROOM_STOPPED, "the room stopped by an error")
