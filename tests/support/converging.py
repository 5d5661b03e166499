"""A room, its state store, a router and real clients, with all that is on its way between them in queues.

Nothing moves by itself: a test says which frames come, what becomes durable, what breaks and when it is
noticed. Everything goes through the public calls of `RoomCore` and `ClientCore`, as encoded frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from playhall.client import outputs as client_outputs
from playhall.client.core import ClientCore
from playhall.engine import frames
from playhall.engine.core import RoomCore
from playhall.engine.outputs import (
    BaseOut,
    CloseOut,
    FramesOut,
    HibernateOut,
    JoinedOut,
    JoinRequest,
    LogOut,
    Now,
    RecordOut,
    RoomIdentity,
    Status,
    StopOut,
    StoredRoom,
    WakeInfo,
)
from playhall.engine.packing import unpack_groups
from playhall.room import Entity, Room, Schema
from tests.support.watched import Player

PLENTY = 2**30
MAX_FRAME = 65_600
ABNORMAL = 1006
MOVED = 4008


@dataclass(frozen=True)
class Frame:
    """A frame on its way to a client. `link`: the link whose credit it takes; 0 is none."""

    data: bytes
    link: int = 0


@dataclass(frozen=True)
class Close:
    """The end of a socket, behind the frames that were sent before it."""

    code: int
    reason: str


@dataclass
class Socket:
    """What is on its way between one client and its router, and what the router knows of it."""

    player: Player
    credit: int
    up: deque[bytes] = field(default_factory=deque)
    down: deque[Frame | Close] = field(default_factory=deque)
    hello: frames.Hello | None = None
    resets: int = 0
    # The room's link of it, if it has one now; how many bytes of the link the client has read.
    link: int = 0
    read: int = 0
    was_joined: bool = False
    over: bool = False


@dataclass
class Written:
    """What went to the state store in one go, and what the room held then, where that is known."""

    version: int
    data: bytes
    is_base: bool
    held: Any = None


class Table:
    """The room's lives one after the other, its store, and the clients there are."""

    def __init__(
        self,
        room_class: type[Room[Any, Any, Any]],
        *,
        saved: Callable[[RoomCore], Any],
        whole: Callable[[Player, Entity], None],
    ) -> None:
        self.room_class = room_class
        self.schema: Schema[Any, Any] = getattr(room_class, "schema")  # noqa: B009  (as in the core)
        self.now = 1_000.0
        self.players: dict[str, Player] = {}
        self.credit = PLENTY
        self.store_answers = True
        self.unnoticed: list[int] = []
        self._saved = saved
        self._whole = whole
        self._generation = self._last_link = self._last_connection = self._sessions = 0
        self._written: list[Written] = []
        self._durable = 0
        self._links: dict[int, Socket] = {}
        self.core: RoomCore
        self.start(WakeInfo("connect"))

    def at(self) -> Now:
        return Now(self.now, 1e9 + self.now)

    # The room's lives

    @property
    def room(self) -> Any:
        """The running room: one that sleeps is woken."""
        self.ensure_awake()
        return self.core.room

    def ensure_awake(self) -> None:
        if self.core.status is Status.CLOSING:
            self.becomes_durable()
        if self.core.status is Status.CLOSED:
            self.start(WakeInfo("connect", 0.0, 1e9 + self.now, self.core.tick_number))

    def start(self, wake: WakeInfo) -> None:
        last_base = max((n for n, each in enumerate(self._written) if each.is_base), default=None)
        stored = None
        if last_base is not None:
            self._written = self._written[last_base:]
            stored = StoredRoom(self._written[0].data, [each.data for each in self._written[1:]])
        self._generation += 1
        self._durable = 0
        held = self._written[-1].held if stored is not None else None
        self._written = []
        self.core = RoomCore(
            self.room_class,
            identity=RoomIdentity("games", "table", "uid-1"),
            generation=self._generation,
        )
        self.core.start(stored, wake, self.at())
        if held is not None:
            assert self._saved(self.core) == held, "what was durable is there after a wake"
        self.pump_room()
        assert self.core.status is Status.ACTIVE

    def crash(self, kept: int, *, with_sockets: bool) -> None:
        """Kill the room host. Of what was not acknowledged, the store has the first `kept` writes."""
        unacknowledged = [each for each in self._written if each.version > self._durable]
        lost = len(unacknowledged) - min(kept, len(unacknowledged))
        del self._written[len(self._written) - lost :]
        self._hand_over(with_sockets)
        self.start(WakeInfo("crash", 0.0, 1e9 + self.now, self.core.tick_number))

    def hibernate(self, *, move: bool) -> None:
        if self.core.status is Status.ACTIVE:
            self.core.hibernate(self.at(), move=move)
            self.pump_room()

    def _hand_over(self, with_sockets: bool) -> None:
        """The room behind all sockets is gone: they go too, or their routers find its next life for them."""
        for player in self.players.values():
            socket = player.socket
            if socket is None or not socket.link:
                continue
            if with_sockets:
                socket.resets += 1
                socket.was_joined = True
                reset = frames.encode_server(frames.Reset(socket.resets, MOVED))
                socket.down.append(Frame(reset))
            else:
                socket.down.append(Close(ABNORMAL, ""))
            socket.link = 0
        self._links.clear()
        self.unnoticed.clear()

    def becomes_durable(self, count: int | None = None) -> None:
        """The store acknowledges the next so many writes; None: all."""
        waiting = [each.version for each in self._written if each.version > self._durable]
        for version in waiting[:count]:
            self._durable = version
            self.core.durable(version, self.at())
            self.pump_room()

    # The clients

    def player(self, name: str) -> Player:
        """The player's client; a new one where there is none, or where it is over."""
        found = self.players.get(name)
        if found is None or found.core.status == "closed":
            self._sessions += 1
            core = ClientCore(
                self.schema,
                project="games",
                room="table",
                type=None,
                token=None,
                session=self._sessions.to_bytes(16, "big"),
                sdk="test",
                rng=lambda: 0.0,
                timeout=1e9,
            )
            found = self.players[name] = Player(name, core, self._whole)
            core.start(self.now)
            self.pump(found)
        return found

    def pump(self, player: Player) -> None:
        """Carry out what a client asks for."""
        for output in player.core.take_outputs():
            match output:
                case client_outputs.OpenTransport():
                    player.socket = Socket(player, self.credit)
                    player.core.opened(self.now)
                    self.pump(player)
                    return
                case client_outputs.SendFrame(data):
                    assert len(data) <= MAX_FRAME
                    assert player.socket is not None
                    player.socket.up.append(data)
                case client_outputs.CloseTransport(code):
                    assert code != 4000, "the client says that the room broke the protocol"
                    self._client_closes(player)
                case client_outputs.Updated(_, changes):
                    player.hear(changes)
                case client_outputs.Restored():
                    player.restored += 1
                case _:
                    pass

    def _client_closes(self, player: Player) -> None:
        socket, player.socket = player.socket, None
        if socket is not None:
            while socket.up and not socket.over:
                self._hear(socket)
            self._leave(socket.link, clean=False)

    def drop(self, player: Player, *, noticed: bool) -> None:
        """The connection breaks for the client; for the room at once, or later."""
        socket, player.socket = player.socket, None
        if socket is not None:
            if noticed:
                self._leave(socket.link, clean=False)
            elif socket.link:
                self.unnoticed.append(socket.link)
            player.core.closed(ABNORMAL, "", self.now)
            self.pump(player)

    def notice(self) -> None:
        """What broke unnoticed is noticed, whatever has happened since."""
        for link in self.unnoticed:
            self._leave(link, clean=False)
        self.unnoticed.clear()

    def _leave(self, link: int, *, clean: bool) -> None:
        if link:
            self.core.leave(link, clean, self.at())
            self.pump_room()

    # The way between

    def hear(self, player: Player, count: int) -> None:
        """The router gets the oldest frames that a client sent."""
        for _ in range(count):
            if player.socket is None or not player.socket.up:
                return
            self._hear(player.socket)

    def _hear(self, socket: Socket) -> None:
        data = socket.up.popleft()
        match frames.decode_client(data, self.schema):
            case frames.Hello() as hello:
                socket.hello = hello
            case frames.Resume() as resume:
                if resume.reset == socket.resets:
                    self._join(socket, resume)
            case frames.Ping(nonce):
                pong = frames.Pong(nonce, self.core.tick_number, 0)
                socket.down.append(Frame(frames.encode_server(pong)))
            case frames.Leave():
                socket.over = True
                self._leave(socket.link, clean=True)
                socket.link = 0
            case _:
                if socket.link:
                    self.core.receive(socket.link, data, self.at())
        self.pump_room()

    def _join(self, socket: Socket, resume: frames.Resume) -> None:
        assert socket.hello is not None
        self.ensure_awake()
        self._last_link += 1
        self._last_connection += 1
        socket.link, socket.read = self._last_link, 0
        self._links[socket.link] = socket
        request = JoinRequest(
            player=socket.player.name,
            meta=None,
            schema_hash=self.schema.hash,
            session=socket.hello.session,
            attempt=socket.hello.attempt,
            connected_at_ms=self._last_connection,
            was_joined=socket.was_joined,
            resume=resume,
            connection_id=str(socket.link),
            room_type="",
            credit_bytes=socket.credit,
        )
        assert self.core.join(socket.link, request, self.at())

    def read(self, player: Player, count: int) -> None:
        """A client reads the oldest frames that are on their way to it."""
        for _ in range(count):
            socket = player.socket
            if socket is None or not socket.down:
                return
            item = socket.down.popleft()
            if isinstance(item, Close):
                player.socket = None
                player.core.closed(item.code, item.reason, self.now)
                self.pump(player)
                return
            self._witness(player, item.data)
            player.core.received(item.data, self.now)
            self.pump(player)
            if item.link and item.link == socket.link:
                socket.read += len(item.data)
                if not player.withheld:
                    self.give_credit(player)

    @staticmethod
    def _witness(player: Player, data: bytes) -> None:
        match frames.decode_server(data):
            case frames.Welcome() as welcome:
                player.witness.welcome(welcome)
            case frames.UpdatePart(part):
                player.witness.part(part)
            case _:
                pass

    def give_credit(self, player: Player) -> None:
        """The router tells the room how much its client has read."""
        if player.socket is not None and player.socket.link:
            self.core.drained(player.socket.link, player.socket.read, self.at())
            self.pump_room()

    def carry(self, player: Player) -> None:
        """Deliver all there is, in both directions, until nothing is on its way."""
        while player.socket is not None and (player.socket.up or player.socket.down):
            self.hear(player, len(player.socket.up))
            if player.socket is not None:
                self.read(player, len(player.socket.down))

    # Time

    def tick(self) -> None:
        """A tick's time passes, for clients too, and the room ticks if it runs."""
        self.now += 1 / self.core.tick_rate
        for player in list(self.players.values()):
            while (at := player.core.next_timer()) is not None and at <= self.now:
                player.core.timer(self.now)
                self.pump(player)
        while (at := self.core.next_timer()) is not None and at <= self.now:
            self.core.timer(self.at())
            self.pump_room()
        if self.core.status is Status.ACTIVE:
            self.core.tick(self.at())
            self.pump_room()

    # What the room asks for

    def pump_room(self) -> None:
        while found := self.core.take_outputs():
            fresh = [self._carry_out(output) for output in found]
            written = [each for each in fresh if each is not None]
            if written:
                written[-1].held = self._saved(self.core)
                self._written += written
                if self.store_answers:
                    self.becomes_durable()

    def _carry_out(self, output: Any) -> Written | None:
        match output:
            case JoinedOut(link, version, tick, tick_rate, resumed):
                self._welcome(link, version, tick, tick_rate, resumed)
            case FramesOut(groups):
                for link, data, _ in unpack_groups(groups):
                    assert len(data) <= MAX_FRAME
                    self._down(link, Frame(data, link))
            case CloseOut(link, code, reason):
                self._down(link, Close(code, reason))
                socket = self._links.pop(link, None)
                if socket is not None and socket.link == link:
                    socket.link = 0
            case RecordOut() | BaseOut():
                return Written(output.version, output.data, isinstance(output, BaseOut))
            case HibernateOut(moved=moved):
                if moved:
                    self._hand_over(with_sockets=True)
            case LogOut(level="error"):
                assert output.event == "room.bot_error", output
            case StopOut():
                raise AssertionError(f"the room stopped: {output.error}")
            case _:
                pass
        return None

    def _welcome(self, link: int, version: int, tick: int, tick_rate: int, resumed: bool) -> None:
        welcome = frames.Welcome(
            generation=self._generation,
            version=version,
            tick=tick,
            fraction=0,
            resumed=resumed,
            asleep=False,
            tick_rate=tick_rate,
            player=self._links[link].player.name,
            room="table",
            type="default",
            token="",
        )
        self._down(link, Frame(frames.encode_server(welcome)))

    def _down(self, link: int, item: Frame | Close) -> None:
        socket = self._links.get(link)
        if socket is not None and socket.link == link and socket.player.socket is socket:
            socket.down.append(item)
