"""What stands behind the clients of one room under test: its router, its state store, and the room that runs.

It decides what they decide in production, and takes no time for it; `TestRoom` is what a test sees of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from playhall.client.net import Net
from playhall.client.transport import Receiver, Transport
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall.engine.connection import JsonIn
from playhall.engine.outputs import (
    AnswerOut,
    CloseOut,
    JoinedOut,
    JoinRequest,
    Now,
    RoomIdentity,
    Status,
    WakeReason,
)
from playhall.engine.room import Room
from playhall.testing.network import Network
from playhall.testing.running import Running
from playhall.testing.socket import Phase, Socket
from playhall.testing.store import RoomStore

__all__ = ["Backend", "RoomStoppedError"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

PROJECT = "test"
CREDIT = 32 * 1024  # as the router grants it
MAX_ENDS = 5
"""Whoever waits for a room that hibernates as soon as it wakes, so often in a row, waits in vain."""


class RoomStoppedError(RuntimeError):
    """Room code raised where that stops the room. Its text ends with the traceback, where there is one."""


class Backend:
    """One room, whether it runs or not, and the connections to it.

    `errors`: what room code raised; `untold`: what of it the test has not heard of. `stopped`: by what the
    room has stopped, until the test is told.
    """

    def __init__(
        self,
        room_class: type[Room[Any, Any, Any]],
        id: str,
        max_players: int | None,
        seed: int,
        now: Callable[[], Now],
    ) -> None:
        self._class = room_class
        self._max_players = max_players
        self._seed = seed
        self._now = now
        self._links = itertools.count(1)
        self._tokens = itertools.count(1)
        self._sockets: list[Socket] = []
        self._networks: list[Network] = []
        self._is_over = False
        self.id = id
        self.tick_rate = room_class.tick_rate
        self.schema: Any = room_class.schema
        self.store = RoomStore()
        self.running: Running | None = None
        self.answers: dict[int, AnswerOut] = {}
        self.log: list[str] = []
        self.errors: list[str] = []
        self.untold: list[str] = []
        self.stopped: str | None = None
        self._ends = (0.0, 0)

    @property
    def is_up(self) -> bool:
        return self.running is not None and self.running.core.status is Status.ACTIVE

    @property
    def generation(self) -> int | None:
        return None if self.running is None else self.running.generation

    # Time

    @property
    def next_tick_at(self) -> float | None:
        """When the room's next tick is due; None while it does not tick."""
        return None if self.running is None else self.running.next_tick_at

    def tick_if_due(self, time: float) -> None:
        """Run the tick that is due by `time`, if one is."""
        at = self.next_tick_at
        if self.running is not None and at is not None and at <= time:
            self.running.tick()

    # The room's life

    def pump(self) -> None:
        """Carry out what the test itself has asked of the room, by its methods."""
        if self.running is not None:
            self.running.pump()

    def start(self, reason: WakeReason) -> None:
        """Start the room. For whom it starts waits until it is up."""
        identity = RoomIdentity(PROJECT, self.id, f"uid-{self.id}")
        self.running = Running(self._class, identity, self.store, self, self._now, reason, self._max_players)
        self.running.start()

    def crash(self) -> None:
        """Kill what runs the room, and start it anew for those who are in it."""
        running, self.running = self.running, None
        if running is None:
            raise RuntimeError("the room is not running, and cannot crash")
        running.kill()
        for socket in self._sockets:
            if socket.phase is Phase.JOINED:
                socket.lose_room(CloseCode.ROOM_MOVED)
        if any(socket.phase is Phase.WAITING for socket in self._sockets):
            self.start("connect")

    def hibernate(self) -> None:
        """Ask the room to hibernate, as its own code may."""
        running = self.running
        if running is not None:
            running.call(lambda now: running.core.timer(now))
            running.call(lambda _: running.core.room.request_hibernate())

    def request(self, content: JsonIn | bytes) -> int:
        """Ask the room that runs what `on_request` answers, and return under which number of `answers`."""
        running, token = self.running, next(self._tokens)
        assert running is not None
        running.call(lambda now: running.core.request(token, content, now))
        return token

    def end(self) -> None:
        """Kill the room for good."""
        self._is_over = True
        if self.running is not None:
            self.running.kill()
            self.running = None

    # What the test is told

    def raise_if_stopped(self) -> None:
        """Raise RoomStoppedError if the room has stopped by an error that the test has not heard of."""
        if self.stopped is not None:
            error, self.stopped = self.stopped, None
            raise RoomStoppedError(error)

    def take_untold(self) -> list[str]:
        """Return what room code raised that the test has not heard of. It counts as told then."""
        untold = [*self.untold, *([] if self.stopped is None else [self.stopped])]
        self.untold.clear()
        self.stopped = None
        return untold

    # Connections

    @property
    def has_chance(self) -> bool:
        """Whether any network depends on the host's seed."""
        return any(network.net.has_chance and network.net.seed is None for network in self._networks)

    def network(self, player: str, net: Net) -> Network:
        """Make the network of a new client of the player."""
        before = sum(network.player == player for network in self._networks)
        seed = self._seed if net.seed is None else net.seed
        network = Network(net, player, f"{seed} {self.id} {player} {before}")
        self._networks.append(network)
        return network

    async def dial(self, receiver: Receiver, network: Network, meta: JsonIn) -> Transport:
        """Connect a client's transport. Raises TimeoutError while the network is cut."""
        await network.handshake()
        socket = Socket(self, receiver, network, meta)
        self._sockets.append(socket)
        return socket

    def drop(self, player: str) -> None:
        """End a player's connection, for both ends at once."""
        for socket in [socket for socket in self._sockets if socket.player == player]:
            socket.abort("the test dropped the connection")

    def socket_wants_in(self, socket: Socket) -> None:
        if self._is_over:
            socket.closed(CloseCode.HIBERNATED, "the test is over")
        elif self.running is None:
            socket.say(frames.Waking())
            self.start("connect")
        elif self.running.core.status is Status.ACTIVE:
            self._join(socket)
        else:
            socket.say(frames.Waking())

    def socket_frame(self, socket: Socket, frame: bytes) -> None:
        running = self.running
        if running is not None:
            running.call(lambda now: running.core.receive(socket.link, frame, now))

    def socket_drained(self, socket: Socket) -> None:
        running = self.running
        if running is not None and socket.link:
            running.call(lambda now: running.core.drained(socket.link, socket.drained % 2**32, now))

    def socket_gone(self, socket: Socket, clean: bool) -> None:
        self._sockets.remove(socket)
        running = self.running
        if running is not None and socket.link:
            running.call(lambda now: running.core.leave(socket.link, clean, now))

    def pong(self, nonce: int) -> frames.Pong:
        if self.running is None:
            return frames.Pong(nonce, None, 0)
        tick, fraction = self.running.position()
        return frames.Pong(nonce, tick, fraction)

    def _join(self, socket: Socket) -> None:
        running, hello, resume = self.running, socket.hello, socket.resume
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
            connected_at_ms=int(self._now().wall * 1000),
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
        socket, running = self._socket_of(output.link), self.running
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
        self.answers[output.token] = output

    def room_logged(self, line: str) -> None:
        self.log.append(line)

    def room_raised(self, hook: str, traceback: str) -> None:
        self.errors.append(traceback)
        if hook != "on_join":
            self.untold.append(traceback)

    def _ends_whenever_it_wakes(self) -> bool:
        """Whether the room has ended MAX_ENDS times within one instant, in which nobody came in."""
        now = self._now().mono
        at, count = self._ends
        self._ends = (now, count + 1 if at == now else 1)
        return self._ends[1] >= MAX_ENDS

    def room_ended(self, error: str | None, traceback: str | None) -> None:
        self.running = None
        if error is not None:
            self.stopped = error if traceback is None else f"{error}\n\n{traceback}"
            if traceback in self.untold:
                self.untold.remove(traceback)  # who hears of the stop hears of this
        waiting = [socket for socket in self._sockets if socket.phase is Phase.WAITING]
        if error is None and waiting and not self._ends_whenever_it_wakes():
            self.start("connect")
        elif error is None:
            # Routers hold who waits for 10 s, and then say this.
            for socket in waiting:
                socket.closed(CloseCode.WAKE_TIMEOUT, "the room hibernates whenever it wakes")
        elif error is not None:
            for socket in waiting:
                socket.closed(CloseCode.ROOM_STOPPED, "the room stopped by an error")
