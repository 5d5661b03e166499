"""Owners and the room write the same fields, with frames on the way in both directions: in the end all agree.

A real ClientCore for each player, and a real RoomCore. What either sends waits in a queue until a rule
delivers some of it, so every crossing of writes, corrections, births, changes of owner, drops and resumes can
happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from playhall.client import outputs as client_outputs
from playhall.client.core import ClientCore
from playhall.engine import frames
from playhall.engine.core import RoomCore
from playhall.engine.kinds import spec_of, stored_values
from playhall.engine.outputs import (
    CloseOut,
    FramesOut,
    JoinedOut,
    JoinRequest,
    LogOut,
    Now,
    RecordOut,
    RoomIdentity,
    WakeInfo,
)
from playhall.engine.packing import unpack_groups
from playhall.engine.schema import FIRST_PRESENCE_ID, PRIVATE_ID
from playhall.engine.updates import LAST_PART, UPDATE
from playhall.room import Connection, Entity, Interest, Json, Limit, Room, Schema, owner_only, u8, writable

pytestmark = pytest.mark.ledger("OWN-14", "OWN-15", "OWN-17", "OWN-18")

PLAYERS = ("ann", "bob")
IDS = (2, 3)
PLENTY = 2**30
CLAMPED, REJECTED, RAISED = 200, 251, 252


class Piece(Entity):
    x: writable[u8] = 0
    y: writable[u8] = 0
    hand: writable[owner_only[u8]] = 0
    label: writable[Json[Any]] = None
    pixels: writable[bytes] = bytes(8)
    score: u8 = 0


class Card(Entity):
    x: writable[u8] = 0


class Purse(Entity):
    volume: writable[u8] = 5
    coins: u8 = 0


class Table(Room[None, Purse]):
    schema = Schema(private=Purse, entities=[Piece, Card])
    max_players = 8

    def on_create(self) -> None:
        for id in IDS:
            self.entities.add(Piece(), id=id, owner="ann")

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        x = values.get("x", values.get("volume"))
        if x == REJECTED:
            return None
        if x == RAISED:
            raise RuntimeError("a room that fails")
        return {
            name: min(value, CLAMPED) if name in ("x", "volume") else value for name, value in values.items()
        }


class EvenScores(Interest):
    """Shows pieces of an even score, as few bytes a second allow."""

    limit = Limit(max=8, priority=lambda room, conn, entity: 0.0, bytes_per_second=100)

    def keys_of(self, room: Any, entity: Any) -> list[int]:
        return [entity.score % 2] if isinstance(entity, Piece) else [0]

    def subscriptions_of(self, room: Any, conn: Any) -> list[int]:
        return [0]


class FoggyTable(Table):
    interest = EvenScores()


@dataclass
class Player:
    """One client and what is on the way to it and from it."""

    name: str
    core: ClientCore
    link: int = 0
    attempt: int = 0
    up: deque[bytes] = field(default_factory=deque)
    down: deque[bytes] = field(default_factory=deque)
    received: int = 0
    corrected: int = 0
    hello: frames.Hello | None = None


class Tables(RuleBasedStateMachine):
    """Two players at a table."""

    room_class: type[Table] = Table

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.room = RoomCore(
            self.room_class, identity=RoomIdentity("games", "table", "uid-1"), generation=1, idle_s=1e9
        )
        self.last_link = 0
        self.of_link: dict[int, Player] = {}
        self.room.start(None, WakeInfo("connect"), self.at())
        self.pump_room()
        self.players = {name: self.client(name) for name in PLAYERS}
        for player in self.players.values():
            player.core.start(self.now)
            self.pump(player)
            self.carry(player)
            assert player.core.status == "open"

    def at(self) -> Now:
        return Now(self.now, 1e9 + self.now)

    def client(self, name: str) -> Player:
        core = ClientCore(
            Table.schema,
            project="games",
            room="table",
            type=None,
            token=None,
            session=name.ljust(16).encode(),
            sdk="test",
            rng=lambda: 0.0,
            timeout=1e9,
        )
        return Player(name, core)

    # What is carried, by whom

    def pump(self, player: Player) -> None:
        for output in player.core.take_outputs():
            match output:
                case client_outputs.OpenTransport():
                    self.last_link += 1
                    player.link, player.received, player.hello = self.last_link, 0, None
                    player.up.clear()
                    player.down.clear()
                    self.of_link[player.link] = player
                    player.core.opened(self.now)
                    self.pump(player)
                    return
                case client_outputs.SendFrame(data):
                    player.up.append(data)
                case client_outputs.CloseTransport():
                    raise AssertionError("the client gave up")
                case client_outputs.Updated(_, changes):
                    player.corrected += len(changes.corrected)
                    for entity in changes.owned:
                        assert self.may_write(player, entity) == (entity.owner == player.name)
                case _:
                    pass

    def pump_room(self) -> None:
        while found := self.room.take_outputs():
            for output in found:
                match output:
                    case JoinedOut(link, version, tick, tick_rate, resumed):
                        welcome = frames.Welcome(
                            generation=1,
                            version=version,
                            tick=tick,
                            fraction=0,
                            resumed=resumed,
                            asleep=False,
                            tick_rate=tick_rate,
                            player=self.of_link[link].name,
                            room="table",
                            type="default",
                            token="",
                        )
                        self.send_down(link, frames.encode_server(welcome), metered=False)
                    case FramesOut(data):
                        for link, frame, _ in unpack_groups(data):
                            self.send_down(link, frame)
                    case CloseOut(link, code):
                        assert code == 4012, code
                    case RecordOut():
                        self.room.durable(output.version, self.at())
                    case LogOut(level="error"):
                        assert output.fields["hook"] == "on_write"
                    case _:
                        pass

    def send_down(self, link: int, data: bytes, *, metered: bool = True) -> None:
        player = self.of_link[link]
        if player.link == link:
            player.down.append(data if metered else b"\0" + data)

    def hear(self, player: Player) -> None:
        """The room gets the oldest of what a client sent, through what a router does."""
        frame = frames.decode_client(player.up[0], Table.schema)
        data = player.up.popleft()
        match frame:
            case frames.Hello():
                player.hello = frame
            case frames.Resume():
                assert player.hello is not None
                request = JoinRequest(
                    player=player.name,
                    meta=None,
                    schema_hash=Table.schema.hash,
                    session=player.hello.session,
                    attempt=player.hello.attempt,
                    connected_at_ms=player.link,
                    was_joined=False,
                    resume=frame,
                    connection_id=str(player.link),
                    room_type="",
                    credit_bytes=self.credit,
                )
                assert self.room.join(player.link, request, self.at())
            case frames.Write():
                self.room.receive(player.link, data, self.at())
            case _:
                pass
        self.pump_room()

    credit = PLENTY

    def carry(self, player: Player) -> None:
        """Deliver all there is, in both directions."""
        while player.up or player.down:
            if player.up:
                self.hear(player)
            else:
                self.read(player)

    def read(self, player: Player) -> None:
        """A client gets the oldest of what the room sent."""
        data = player.down.popleft()
        if data[0] == 0:
            data = data[1:]
        else:
            player.received += len(data)
        link = player.link
        player.core.received(data, self.now)
        self.pump(player)
        if player.link == link:
            self.room.drained(link, player.received, self.at())
            self.pump_room()

    # Players

    @rule(
        name=st.sampled_from(PLAYERS),
        id=st.sampled_from(IDS),
        write=st.sampled_from(["x", "x", "y", "hand"]),
        value=st.sampled_from([0, 1, 2, 199, 210, 250, REJECTED, RAISED]),
    )
    def owner_writes(self, name: str, id: int, write: str, value: int) -> None:
        player = self.players[name]
        entity = player.core.replica.get(id)
        if entity is not None and self.may_write(player, entity) and write in spec_of(entity).by_name:
            setattr(entity, write, value)

    @rule(
        name=st.sampled_from(PLAYERS), id=st.sampled_from(IDS), at=st.integers(0, 9), label=st.integers(0, 2)
    )
    def owner_writes_more(self, name: str, id: int, at: int, label: int) -> None:
        player = self.players[name]
        piece = player.core.replica.get(id)
        if isinstance(piece, Piece) and self.may_write(player, piece):
            piece.patch("pixels", at, bytes([label]))
            piece.label = {"is": label}

    @rule(name=st.sampled_from(PLAYERS), volume=st.sampled_from([1, 2, 250, REJECTED]))
    def player_writes_its_own(self, name: str, volume: int) -> None:
        player = self.players[name]
        purse = player.core.replica.get(PRIVATE_ID)
        if isinstance(purse, Purse):
            purse.volume = volume
            player.core.set_status([volume])

    def may_write(self, player: Player, entity: Entity) -> bool:
        try:
            entity.x = entity.x  # type: ignore[attr-defined]
        except TypeError:
            return False
        return True

    @rule(name=st.sampled_from(PLAYERS), noticed=st.sampled_from([None, None, True, False]))
    def drop(self, name: str, noticed: bool | None) -> None:
        """The connection breaks; the room may notice, or find out as the client comes back."""
        player = self.players[name]
        if noticed is not None:
            link = player.link
            player.core.closed(1006, "", self.now)
            if noticed:
                self.room.leave(link, False, self.at())
                self.pump_room()
            self.pump(player)

    # The way between

    @rule(name=st.sampled_from(PLAYERS), count=st.integers(1, 6))
    def some_of_what_is_sent_comes(self, name: str, count: int) -> None:
        player = self.players[name]
        for _ in range(min(count, len(player.up))):
            self.hear(player)

    @rule(name=st.sampled_from(PLAYERS), count=st.integers(1, 6))
    def some_updates_come(self, name: str, count: int) -> None:
        player = self.players[name]
        for _ in range(min(count, len(player.down))):
            self.read(player)

    @rule(name=st.sampled_from(PLAYERS))
    def all_comes(self, name: str) -> None:
        self.carry(self.players[name])

    @rule(credit=st.sampled_from([1, 60, PLENTY]))
    def the_next_connections_are_slow(self, credit: int) -> None:
        self.credit = credit

    # The room

    @rule(
        id=st.sampled_from(IDS),
        write=st.sampled_from(["x", "x", "y", "hand", "score"]),
        value=st.sampled_from([0, 1, 2, 200, 210]),
    )
    def room_writes(self, id: int, write: str, value: int) -> None:
        entity = self.room.room.entities.get(id)
        if entity is not None and write in spec_of(entity).by_name:
            setattr(entity, write, value)

    @rule(id=st.sampled_from(IDS), at=st.integers(0, 9), label=st.integers(0, 2))
    def room_writes_more(self, id: int, at: int, label: int) -> None:
        piece = self.room.room.entities.get(id)
        if isinstance(piece, Piece):
            piece.patch("pixels", at, bytes([label]))
            piece.label = {"is": label}

    @rule(name=st.sampled_from(PLAYERS), value=st.sampled_from([1, 2, 200]))
    def room_writes_what_is_the_players(self, name: str, value: int) -> None:
        self.room.room.private(name, create=True).volume = value
        if name in self.room.room.presence:
            self.room.room.presence.set(name, status=[value])

    @rule(id=st.sampled_from(IDS), owner=st.sampled_from([*PLAYERS, None]))
    def give(self, id: int, owner: str | None) -> None:
        entity = self.room.room.entities.get(id)
        if entity is not None:
            self.room.room.entities.set_owner(entity, owner)

    @rule(id=st.sampled_from(IDS), kind=st.sampled_from([Piece, Card, None]), owner=st.sampled_from(PLAYERS))
    def replace(self, id: int, kind: type[Entity] | None, owner: str) -> None:
        entities = self.room.room.entities
        old = entities.get(id)
        if old is not None:
            entities.delete(old)
        if kind is not None:
            entities.add(kind(), id=id, owner=owner)

    @rule(of=st.sampled_from([None, None, *PLAYERS]), to=st.sampled_from([None, None, *PLAYERS]))
    def tick(self, of: str | None, to: str | None) -> None:
        """Clients whose time has come send, and the room ticks.

        What one of them has sent comes before the tick, and what another is sent before that.
        """
        if to is not None:
            for _ in range(len(self.players[to].down)):
                self.read(self.players[to])
        self.now += 1 / self.room.tick_rate
        for player in self.players.values():
            while (at := player.core.next_timer()) is not None and at <= self.now:
                player.core.timer(self.now)
                self.pump(player)
        if of is not None:
            for _ in range(len(self.players[of].up)):
                self.hear(self.players[of])
        self.room.tick(self.at())
        self.pump_room()

    @rule(name=st.sampled_from(PLAYERS))
    def tick_with_all(self, name: str) -> None:
        self.tick(name, name)

    # In the end

    def teardown(self) -> None:
        for _ in range(60):
            for player in self.players.values():
                self.carry(player)
            self.tick(None, None)
            if all(p.core.status == "open" and not p.up and not p.down for p in self.players.values()):
                before = {p.name: p.corrected for p in self.players.values()}
                self.tick(None, None)
                if not any(p.up or p.down for p in self.players.values()):
                    assert before == {p.name: p.corrected for p in self.players.values()}
                    break
        else:
            raise AssertionError("it does not come to rest")
        for player in self.players.values():
            self.check(player)

    def sees(self, player: Player, entity: Entity) -> bool:
        return True

    def check(self, player: Player) -> None:
        room, replica = self.room.room, player.core.replica
        expected: dict[int, Entity] = {e.id: e for e in room.entities if self.sees(player, e)}
        expected[PRIVATE_ID] = room.private(player.name, create=True)
        held = [*(replica.get(id) for id in replica.ids() if id < FIRST_PRESENCE_ID), replica.get(PRIVATE_ID)]
        assert {entity.id for entity in held if entity} == expected.keys()
        for entity in filter(None, held):
            theirs = expected[entity.id]
            assert type(entity) is type(theirs)
            assert entity.id == PRIVATE_ID or entity.owner == theirs.owner
            pairs = zip(spec_of(entity).fields, stored_values(entity), stored_values(theirs), strict=True)
            for field_spec, mine, rooms in pairs:
                if theirs.owner == player.name or not field_spec.owner_only:
                    assert field_spec.type.same(mine, rooms), (player.name, entity.id, field_spec.name)
        for name, entry in room.presence.items():
            row = replica.presence_of(name)
            assert row is not None
            assert row.status == entry.status, (player.name, name)


class FoggyTables(Tables):
    """Two players who see all of their own, and part of the rest, which a byte budget delays."""

    room_class = FoggyTable

    def sees(self, player: Player, entity: Entity) -> bool:
        return entity.owner == player.name or not isinstance(entity, Piece) or entity.score % 2 == 0


TestTables = Tables.TestCase
TestFoggyTables = FoggyTables.TestCase
TestTables.settings = TestFoggyTables.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_who_missed_a_flush_is_told_of_an_own_new_entity_in_one_part() -> None:
    """It shares nothing with others then, so what is for owners only need not stand apart."""
    tables = Tables()
    tables.drop(name="ann", noticed=True)
    tables.the_next_connections_are_slow(credit=1)
    tables.tick_with_all(name="ann")
    tables.replace(id=2, kind=Piece, owner="ann")
    tables.tick_with_all(name="bob")
    tables.tick_with_all(name="ann")
    (update,) = tables.players["ann"].down
    assert update[0] == UPDATE
    assert update[1] & LAST_PART
    tables.teardown()
