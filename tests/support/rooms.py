"""Drives one RoomCore by hand, under a clock that only the test moves, with clients that know the wire only.

`Replica` is written for these tests from docs/protocol/state.md, so that the room is not checked against the
client it ships with.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from playhall.engine.core import RoomCore
from playhall.engine.fields import patched
from playhall.engine.frames import (
    Call,
    Message,
    Reply,
    ReplyError,
    Resume,
    Unreliable,
    UpdatePart,
    Write,
    WriteEntry,
    decode_server,
    encode_client,
)
from playhall.engine.kinds import Entity, spec_of, stored_values
from playhall.engine.outputs import (
    AwaitOut,
    BaseOut,
    CancelOut,
    CloseOut,
    FramesOut,
    HibernateOut,
    JoinedOut,
    JoinRequest,
    LogOut,
    Now,
    Output,
    ReadyOut,
    RecordOut,
    RoomIdentity,
    Status,
    StopOut,
    StoredRoom,
    WakeInfo,
)
from playhall.engine.packing import Group, read_groups, unpack_groups
from playhall.engine.room import Room
from playhall.engine.schema import FIRST_PRESENCE_ID, PRIVATE_ID, SHARED_ID, PresenceRow, Schema
from playhall.engine.updates import Change, Correct, Enter, Leave, Owner, Patch, Update, UpdateReader

R = TypeVar("R", bound=Room[Any, Any, Any])

START = Now(100.0, 1_700_000_000.0)
PLENTY = 2**30


@dataclass
class Held:
    """An entity as a client holds it."""

    number: int
    values: list[Any]
    owner: str | None = None
    # The player owned it at some time since it entered, and keeps what it learnt then.
    knows_secrets: bool = False


@dataclass
class Replica:
    """What a client holds, by state.md."""

    schema: Schema[Any, Any]
    player: str
    entities: dict[int, Held] = field(default_factory=dict)
    generation: int = 0
    version: int = 0
    tick: int = 0
    updates: list[Update] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = UpdateReader(self.schema.kinds)
        self._welcomed_by = 0

    def welcome(self, joined: JoinedOut, generation: int) -> None:
        self._welcomed_by = generation
        self._reader.welcome(joined.version, joined.tick, resumed=joined.resumed)
        self._reader.held = {id: held.number for id, held in self.entities.items()}

    def part(self, frame: bytes) -> None:
        update = self._reader.part(frame)
        if update is None:
            return
        self.updates.append(update)
        self.generation, self.version, self.tick = self._welcomed_by, update.version, update.tick
        if update.full:
            self.entities.clear()
        mine = {id for id, held in self.entities.items() if self._is_mine(id, held)}
        for operation in update.operations:
            self._apply(operation, mine)

    def _apply(self, operation: Any, mine: set[int]) -> None:
        match operation:
            case Leave(id):
                self.entities.pop(id, None)
                mine.discard(id)
            case Enter(id, number, values, owner_only):
                self.entities[id] = Held(number, values, knows_secrets=owner_only)
                mine.discard(id)
            case Change(id, values):
                held = self.entities[id]
                for index, value in values.items():
                    if id not in mine or not self._writes(held, index):
                        held.values[index] = value
            case Patch(id, index, offset, data):
                held = self.entities[id]
                if id not in mine or not self._writes(held, index):
                    held.values[index] = patched(held.values[index], offset, data)
            case Owner(id, owner):
                held = self.entities[id]
                held.owner = owner
                held.knows_secrets |= owner == self.player
            case Correct(id, values):
                for index, value in values.items():
                    self.entities[id].values[index] = value

    def _is_mine(self, id: int, held: Held) -> bool:
        if id >= FIRST_PRESENCE_ID:
            return bool(held.values[0] == self.player)
        return id == PRIVATE_ID or held.owner == self.player

    def _writes(self, held: Held, index: int) -> bool:
        """Whether the owner writes this field: other changes of it than corrections are ignored."""
        field = self.schema.kinds[held.number].fields[index]
        return field.writable or (self.schema.classes[held.number] is PresenceRow and field.name == "status")

    def write(self, id: int, **values: Any) -> Write:
        """Write to one's own entity, and return the frame that tells the room."""
        held = self.entities[id]
        spec = self.schema.kinds[held.number]
        stored = {
            spec.by_name[name].index: spec.by_name[name].accept(spec.name, id, value)
            for name, value in values.items()
        }
        for index, value in stored.items():
            held.values[index] = value
        return Write(self.version, (WriteEntry(id, held.number, spec, stored),))

    def resume(self) -> Resume:
        ids = tuple(sorted(id for id in self.entities if id not in (SHARED_ID, PRIVATE_ID)))
        return Resume(0, self.generation, self.version, full=False, held=ids)

    def of_kind(self, cls: type[Entity]) -> dict[int, dict[str, Any]]:
        """The fields of what is held of a kind, by id, as room code would read them."""
        number = self.schema.classes.index(cls)
        return {id: self.fields(id) for id, held in sorted(self.entities.items()) if held.number == number}

    def fields(self, id: int) -> dict[str, Any]:
        held = self.entities[id]
        specs = self.schema.kinds[held.number].fields
        return {spec.name: spec.type.load(held.values[spec.index]) for spec in specs}

    def presence(self) -> dict[str, dict[str, Any]]:
        return {row["player"]: row for row in self.of_kind(PresenceRow).values()}


@dataclass
class TestClient:
    """One connection: its replica is of the client object, and outlives it."""

    __test__ = False

    link: int
    player: str
    replica: Replica
    joined: JoinedOut | None = None
    closed: CloseOut | None = None
    messages: list[Any] = field(default_factory=list)
    unreliable: list[Any] = field(default_factory=list)
    replies: list[Reply | ReplyError] = field(default_factory=list)
    # Everything in the order it came: "welcome", "message", "update", "reply", "close".
    log: list[str] = field(default_factory=list)
    received: int = 0
    frames: int = 0

    def take(self, frame: bytes) -> None:
        assert self.joined is not None, "a frame before the welcome"
        assert self.closed is None, "a frame after the close"
        self.received += len(frame)
        self.frames += 1
        match decode_server(frame):
            case UpdatePart(data):
                self.log.append("update")
                self.replica.part(data)
            case Message(content):
                self.log.append("message")
                self.messages.append(content)
            case Unreliable(content):
                self.log.append("unreliable")
                self.unreliable.append(content)
            case (Reply() | ReplyError()) as reply:
                self.log.append("reply")
                self.replies.append(reply)
            case other:
                raise AssertionError(f"a room does not send {other}")


class Gate:
    """Something to await in a hook that the test lets go."""

    def __init__(self) -> None:
        self.open = False

    def __await__(self) -> Generator[None, None, None]:
        while not self.open:
            yield


class Driver:
    """A RoomCore, what it wrote, and its clients."""

    def __init__(
        self,
        room_class: type[Room[Any, Any, Any]],
        *,
        stored: StoredRoom | None = None,
        wake: WakeInfo | None = None,
        generation: int = 1,
        now: Now = START,
        auto_durable: bool = True,
        **options: Any,
    ) -> None:
        self.now = now
        self.auto_durable = auto_durable
        self.core = RoomCore(
            room_class, identity=RoomIdentity("games", "lobby", "uid-1"), generation=generation, **options
        )
        self.schema: Schema[Any, Any] = getattr(room_class, "schema")  # noqa: B009  (as in the core)
        self.outputs: list[Output] = []
        self.clients: dict[int, TestClient] = {}
        self.base = stored.base if stored is not None else None
        self.records = list(stored.records) if stored is not None else []
        self.last_written = 0
        self.waiting: dict[int, Generator[Any, Any, Any]] = {}
        self._links = itertools.count(1)
        self.core.start(stored, wake or WakeInfo("connect"), now)
        self.pump()

    @property
    def room(self) -> Any:
        return self.core.room

    @property
    def stored(self) -> StoredRoom:
        return StoredRoom(self.base, list(self.records))

    def join(
        self,
        player: str,
        *,
        replica: Replica | None = None,
        resume: Resume | None = None,
        credit: int = PLENTY,
        meta: Any = None,
        session: bytes | None = None,
        attempt: int = 0,
        connected_at_ms: int = 0,
        was_joined: bool = False,
        schema_hash: bytes | None = None,
        room_type: str = "",
    ) -> TestClient:
        client = TestClient(next(self._links), player, replica or Replica(self.schema, player))
        self.clients[client.link] = client
        request = JoinRequest(
            player=player,
            meta=meta,
            schema_hash=self.schema.hash if schema_hash is None else schema_hash,
            session=session if session is not None else f"{player}-{client.link}".encode(),
            attempt=attempt,
            connected_at_ms=connected_at_ms or client.link,
            was_joined=was_joined,
            resume=resume or Resume(0, 0, 0, full=False, held=()),
            connection_id=f"c{client.link}",
            room_type=room_type,
            credit_bytes=credit,
        )
        assert self.core.join(client.link, request, self.now)
        self.pump()
        return client

    def rejoin(self, client: TestClient, **options: Any) -> TestClient:
        """Let the same client object connect again, holding what it holds."""
        resume = client.replica.resume()
        return self.join(client.player, replica=client.replica, resume=resume, **options)

    def leave(self, client: TestClient, *, clean: bool = False) -> None:
        self.core.leave(client.link, clean, self.now)
        self.pump()

    def send(self, client: TestClient, content: Any, *, seen: int | None = None) -> None:
        self.receive(client, encode_client(Message(content, seen)))

    def send_unreliable(self, client: TestClient, content: Any) -> None:
        self.receive(client, encode_client(Unreliable(content)))

    def call(
        self, client: TestClient, number: int, name: str, content: Any = None, *, seen: int | None = None
    ) -> None:
        content = {} if content is None else content
        self.receive(client, encode_client(Call(number, seen, name, content)))

    def receive(self, client: TestClient, frame: bytes) -> None:
        self.core.receive(client.link, frame, self.now)
        self.pump()

    def write(self, client: TestClient, id: int, **values: Any) -> None:
        """Have the client write fields of an entity it holds."""
        self.receive(client, encode_client(client.replica.write(id, **values)))

    def drain(self, client: TestClient, total: int | None = None) -> None:
        self.core.drained(client.link, client.received if total is None else total, self.now)
        self.pump()

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.move(1 / self.core.tick_rate)
            self.core.tick(self.now)
            self.pump()

    def move(self, seconds: float) -> None:
        self.now = Now(self.now.mono + seconds, self.now.wall + seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass, with its timers, but without ticks."""
        end = self.now.mono + seconds
        while (due := self.core.next_timer()) is not None and due <= end:
            self.move(max(0.0, due - self.now.mono))
            self.core.timer(self.now)
            self.pump()
        self.move(end - self.now.mono)

    def hibernate(self, *, move: bool = False) -> None:
        self.core.hibernate(self.now, move=move)
        self.pump()

    def go_on(self, token: int) -> None:
        """Run an awaitable up to its next wait, and settle it if that was its end."""
        coroutine = self.waiting[token]
        result, error = None, None
        try:
            coroutine.send(None)
        except StopIteration as stop:
            result = stop.value
        except Exception as raised:
            error = raised
        else:
            self.pump()
            return
        self.waiting.pop(token, None)
        self.core.settled(token, result, error, self.now)
        self.pump()

    def go_on_all(self) -> None:
        for token in list(self.waiting):
            if token in self.waiting:
                self.go_on(token)

    def pump(self) -> None:
        """Carry out what the core asks for."""
        while outputs := self.core.take_outputs():
            for output in outputs:
                self.outputs.append(output)
                self._carry_out(output)

    def _carry_out(self, output: Output) -> None:
        match output:
            case JoinedOut():
                client = self.clients[output.link]
                assert client.joined is None
                client.joined = output
                client.log.append("welcome")
                client.replica.welcome(output, self.core.generation)
            case FramesOut(data):
                for link, frame, _ in unpack_groups(data):
                    self.clients[link].take(frame)
            case CloseOut():
                self.clients[output.link].closed = output
                self.clients[output.link].log.append("close")
            case RecordOut():
                assert output.prev == self.last_written, "a gap in the chain"
                assert output.version > output.prev
                self.records.append(output.data)
                self._written(output.version)
            case BaseOut():
                self.base, self.records = output.data, []
                self._written(output.version)
            case AwaitOut():
                self.waiting[output.token] = _coroutine(output.awaitable)
            case CancelOut():
                self.waiting.pop(output.token).close()
            case _:
                pass

    def _written(self, version: int) -> None:
        self.last_written = version
        if self.auto_durable:
            self.core.durable(version, self.now)

    # What came out

    def of(self, kind: type[Any]) -> list[Any]:
        return [output for output in self.outputs if isinstance(output, kind)]

    @property
    def groups(self) -> list[Group]:
        return [group for out in self.of(FramesOut) for group in read_groups(out.data)]

    def clear(self) -> None:
        self.outputs.clear()

    @property
    def stopped(self) -> StopOut | None:
        return next(iter(self.of(StopOut)), None)

    @property
    def errors(self) -> list[LogOut]:
        return [log for log in self.of(LogOut) if log.level == "error"]

    @property
    def ready(self) -> bool:
        return any(isinstance(output, ReadyOut) for output in self.outputs)

    def wake(
        self, room_class: type[Room[Any, Any, Any]] | None = None, *, away: float = 0.0, **options: Any
    ) -> Driver:
        """Start the next generation from what is stored."""
        now = Now(self.now.mono + away, self.now.wall + away)
        hibernated = any(isinstance(output, HibernateOut) for output in self.outputs)
        info = WakeInfo("connect" if hibernated else "crash", away, self.now.wall, self.core.tick_number)
        return Driver(
            room_class or type(self.room),
            stored=self.stored,
            wake=info,
            generation=self.core.generation + 1,
            now=now,
            **options,
        )

    # What a client should hold

    def view(self, player: str) -> dict[int, tuple[int, list[Any], str | None]]:
        """All that a player sees, by id: number of kind, values, owner."""
        out: dict[int, tuple[int, list[Any], str | None]] = {}
        room, schema = self.room, self.schema
        if schema.state is not None:
            assert schema.state_number is not None
            out[SHARED_ID] = (schema.state_number, list(stored_values(room.state)), None)
        private = room.private(player) if schema.private is not None else None
        if private is not None:
            assert schema.private_number is not None
            out[PRIVATE_ID] = (schema.private_number, list(stored_values(private)), None)
        for entity in room.entities:
            number = schema.number_of(spec_of(entity))
            assert number is not None
            if not spec_of(entity).hidden:
                out[entity.id] = (number, list(stored_values(entity)), entity.owner)
        return out

    def assert_in_sync(self, client: TestClient) -> None:
        """Check that a client holds exactly what its player sees."""
        expected = self.view(client.player)
        held = {id: one for id, one in client.replica.entities.items() if id < FIRST_PRESENCE_ID}
        assert held.keys() == expected.keys()
        for id, one in held.items():
            number, values, owner = expected[id]
            assert (one.number, one.owner) == (number, owner), id
            for spec, mine, theirs in zip(self.schema.kinds[number].fields, one.values, values, strict=True):
                if spec.owner_only and id != PRIVATE_ID and owner != client.player:
                    if not one.knows_secrets:
                        assert spec.type.same(mine, spec.type.zero), (id, spec.name)
                else:
                    assert spec.type.same(mine, theirs), (id, spec.name, mine, theirs)
        entries = {
            player: {
                "player": player,
                "name": entry.name,
                "status": entry.status,
                "connected": entry.connected,
            }
            for player, entry in self.room.presence.items()
        }
        assert client.replica.presence() == entries
        assert client.replica.version <= self.core.version

    @property
    def is_active(self) -> bool:
        return self.core.status is Status.ACTIVE


def _coroutine(awaitable: Awaitable[Any]) -> Generator[Any, Any, Any]:
    return awaitable.__await__()


def hook(calls: list[Any], name: str) -> Callable[..., None]:
    """A hook that notes its calls."""

    def run(self: Any, *args: Any) -> None:
        calls.append((name, *args))

    return run
