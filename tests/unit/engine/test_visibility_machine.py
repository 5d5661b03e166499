"""Whatever moves, changes hands, goes and comes back: a client that is let read holds exactly what it sees.

The clients are the shipped `Replica` behind the shipped reader; what they should see is worked out anew after
each tick, pair by pair, from the rules as they are written down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from playhall.client.replica import Replica
from playhall.engine.frames import Resume
from playhall.engine.kinds import spec_of, stored_values
from playhall.engine.outputs import JoinedOut
from playhall.engine.schema import FIRST_PRESENCE_ID, PRIVATE_ID, SHARED_ID
from playhall.engine.updates import Enter, Leave, Update, UpdateReader
from playhall.room import (
    Connection,
    Entity,
    Interest,
    Limit,
    PresenceEntry,
    Room,
    Schema,
    combine,
    f32,
    grid,
    i8,
    owner_only,
    u8,
    u32,
    writable,
)
from tests.support.rooms import PLENTY, Driver, TestClient

pytestmark = pytest.mark.ledger("INT-05", "INT-06", "INT-14", "OWN-19", "PRES-12")

PLAYERS = ("ann", "bob", "cy")
RANGE, MARGIN, MOST = 20.0, 5.0, 10


class Dot(Entity):
    x: f32 = 0
    y: f32 = 0
    hand: owner_only[u8] = 0
    pose: writable[u8] = 0
    blocks: bytes = b""


class Rock(Entity):
    team: u8 = 0
    worth: i8 = 0


class Trap(Entity, hidden=True):
    x: f32 = 0
    y: f32 = 0


class Board(Entity):
    round: u32 = 0


class Purse(Entity):
    coins: u32 = 0


class Teams(Interest):
    """Rocks of one's own team, those that are cloaked not."""

    def keys_of(self, room: World, entity: Dot | Rock) -> Iterable[str]:
        return [f"team:{entity.team}"] if isinstance(entity, Rock) else []

    def subscriptions_of(self, room: World, conn: Connection) -> Iterable[str]:
        return [f"team:{room.team.get(conn.player, 0)}"]

    def sees(self, room: World, conn: Connection, entity: Rock) -> bool:
        return (conn.player, entity.id) not in room.cloaked


def worth(room: World, conn: Connection, entity: Dot | Rock) -> float:
    if isinstance(entity, Rock):
        return entity.worth + room.bonus.get(entity.id, 0)
    return math.inf if entity.pose > 200 else -entity.x


class World(Room[Board, Purse]):
    schema = Schema(state=Board, private=Purse, entities=[Dot, Rock, Trap])
    exact = False
    margin = 0.0

    def __init__(self) -> None:
        self.team: dict[str, int] = {}
        self.bonus: dict[int, int] = {}
        self.cloaked: set[tuple[str, int]] = set()
        self.blocked: set[tuple[str, str]] = set()

    def on_create(self) -> None:
        for number in range(MOST + 2):
            self.entities.add(Rock(worth=number))

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Dot(), owner=conn.player, once=True)

    def sees_presence(self, viewer: Connection, entry: PresenceEntry) -> bool:
        return (viewer.player, entry.player) not in self.blocked


def dots(margin: float) -> Interest:
    return grid(cell_size=10, range=RANGE, margin=margin, around=Dot, kinds=[Dot], prefix="d:")


class Exact(World):
    """What is seen depends on nothing that was: it may be checked at joins between ticks too."""

    exact = True
    interest = combine(dots(0), Teams())


class Margin(World):
    margin = MARGIN
    interest = combine(dots(MARGIN), Teams(), limit=Limit(MOST, priority=worth))


class Budget(World):
    interest = combine(dots(0), Teams(), limit=Limit(1_000, priority=worth, bytes_per_second=300))


class Open(World):
    exact = True


class Shipped:
    """The client's own reader and replica, for `TestClient`."""

    def __init__(self, player: str) -> None:
        self.player = player
        self.reader = UpdateReader(World.schema.kinds)
        self.held = Replica(World.schema)
        self.updates: list[Update] = []
        self.generation = self.version = self.tick = self._welcomed_by = 0

    def welcome(self, joined: JoinedOut, generation: int) -> None:
        self._welcomed_by = generation
        self.reader.welcome(joined.version, joined.tick, resumed=joined.resumed)

    def part(self, frame: bytes) -> None:
        held = set(self.reader.held)
        update = self.reader.part(frame)
        if update is None:
            return
        left = {operation.id for operation in update.operations if isinstance(operation, Leave)}
        entered = [operation.id for operation in update.operations if isinstance(operation, Enter)]
        assert len(entered) == len(set(entered)), "entered twice"
        assert update.full or not set(entered) & (held - left), "entered without leaving"
        self.held.apply(update, self.player)
        self.updates.append(update)
        self.generation, self.version, self.tick = self._welcomed_by, update.version, update.tick

    def resume(self) -> Resume:
        held = tuple(self.held.ids())
        return Resume(0, self.generation, self.version, full=False, held=held)


class Sights:
    """What one connection should see, from look to look."""

    def __init__(self) -> None:
        self.near: set[Entity] = set()
        self.seen: set[Entity] = set()


players = st.sampled_from(PLAYERS)
owners = st.one_of(st.none(), players)
small = st.integers(0, 255)
places = st.sampled_from([0.0, 5.0, 12.5, 19.5, 20.0, 20.5, 24.5, 25.0, 25.5, -19.5, -22.0, math.nan, 1e30])
ids = st.integers(2, 24)


class Views(RuleBasedStateMachine):
    """Clients come, drop, resume and read slowly while what they see moves."""

    room_class: type[World]

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(self.room_class)
        self.open: dict[str, TestClient] = {}
        self.away: dict[str, TestClient] = {}
        self.sights: dict[int, Sights] = {}
        self.owned: set[tuple[str, int]] = set()
        # Links that never wait for credit.
        self.generous: set[int] = set()

    @initialize()
    def begin(self) -> None:
        for player in PLAYERS:
            self.join(player, PLENTY, fresh=True)

    # Clients

    @rule(player=players, credit=st.sampled_from([PLENTY, PLENTY, 1, 300]), fresh=st.booleans())
    def join(self, player: str, credit: int, fresh: bool) -> None:
        if not self.room_class.exact:
            self.tick()
        old = self.open.pop(player, None) or self.away.pop(player, None)
        if old is None or fresh:
            replica: Any = Shipped(player)
            client = self.driver.join(player, replica=replica, credit=credit)
        else:
            client = self.driver.rejoin(old, credit=credit)
        self.open[player] = client
        if credit == PLENTY:
            self.generous.add(client.link)
        self.note_owners()
        if not self.room_class.exact:
            self.tick()
        elif credit == PLENTY:
            self.check(client)

    @rule(player=players)
    def drop(self, player: str) -> None:
        client = self.open.pop(player, None)
        if client is not None:
            self.driver.leave(client)
            self.away[player] = client

    @rule(player=players)
    def read(self, player: str) -> None:
        if player in self.open:
            self.driver.drain(self.open[player])

    # The room

    @property
    def room(self) -> World:
        room: World = self.driver.room
        return room

    def pick(self, pick: int, kind: type[Any] = Entity) -> Any:
        found = [entity for entity in self.room.entities if isinstance(entity, kind)]
        return found[pick % len(found)] if found else None

    @rule(
        x=places, y=places, owner=owners, id=ids, kind=st.sampled_from([Dot, Rock, Trap]), again=st.booleans()
    )
    def add(self, x: float, y: float, owner: str | None, id: int, kind: type[Any], again: bool) -> None:
        there = self.room.entities.get(id)
        if there is not None:
            if not again:
                return
            self.room.entities.delete(there)
        entity = Rock(team=id % 2, worth=id) if kind is Rock else kind(x=x, y=y)
        self.room.entities.add(entity, owner=None if kind is Trap else owner, id=id)

    @rule(pick=small)
    def delete(self, pick: int) -> None:
        entity = self.pick(pick)
        if entity is not None:
            self.room.entities.delete(entity)

    @rule(pick=small, x=places, y=places)
    def move(self, pick: int, x: float, y: float) -> None:
        dot = self.pick(pick, (Dot, Trap))  # type: ignore[arg-type]
        if dot is not None:
            dot.x, dot.y = x, y

    @rule(player=players, x=places, y=places)
    def walk(self, player: str, x: float, y: float) -> None:
        dot = self.room.entities.first(Dot, owner=player)
        if dot is not None:
            dot.x, dot.y = x, y

    @rule(pick=small, owner=owners)
    def give(self, pick: int, owner: str | None) -> None:
        entity = self.pick(pick, (Dot, Rock))  # type: ignore[arg-type]
        if entity is not None:
            self.room.entities.set_owner(entity, owner)

    @rule(pick=small, hand=small, pose=small, data=st.binary(min_size=1, max_size=40))
    def write(self, pick: int, hand: int, pose: int, data: bytes) -> None:
        dot = self.pick(pick, Dot)
        if dot is not None:
            dot.hand, dot.pose = hand, pose
            dot.patch("blocks", hand, data)

    @rule(pick=small, team=st.integers(0, 1), worth=st.integers(-20, 20))
    def turn(self, pick: int, team: int, worth: int) -> None:
        rock = self.pick(pick, Rock)
        if rock is not None:
            rock.team, rock.worth = team, worth

    @rule(player=players, team=st.integers(0, 1))
    def change_sides(self, player: str, team: int) -> None:
        self.room.team[player] = team

    @rule(player=players, id=ids)
    def cloak(self, player: str, id: int) -> None:
        self.room.cloaked ^= {(player, id)}

    @rule(viewer=players, player=players)
    def block(self, viewer: str, player: str) -> None:
        self.room.blocked ^= {(viewer, player)}

    @rule(id=ids, bonus=st.integers(-30, 30))
    def reward(self, id: int, bonus: int) -> None:
        self.room.bonus[id] = bonus

    @rule(player=players, value=small)
    def write_state(self, player: str, value: int) -> None:
        self.room.state.round = value
        self.room.private(player, create=True).coins = value

    # Time

    @rule()
    def tick(self) -> None:
        self.note_owners()
        self.driver.tick()
        self.look()
        for client in self.open.values():
            if client.link in self.generous and self.room_class is not Budget:
                self.check(client)

    @rule()
    def wait(self) -> None:
        for _ in range(3):
            self.tick()

    def note_owners(self) -> None:
        for entity in self.room.entities:
            if entity.owner is not None:
                self.owned.add((entity.owner, entity.id))

    # What should be seen

    def look(self) -> None:
        for client in self.open.values():
            sights = self.sights.setdefault(client.link, Sights())
            sights.seen = set(self.expected(client.player, sights))

    def expected(self, player: str, sights: Sights) -> list[Entity]:
        entities = [entity for entity in self.room.entities if not spec_of(entity).hidden]
        if self.room_class is Open:
            return entities
        mine = [entity for entity in entities if entity.owner == player]
        sights.near = {dot for dot in entities if isinstance(dot, Dot) and self.is_near(player, dot, sights)}
        found = [
            entity
            for entity in entities
            if entity.owner != player and (entity in sights.near or self.is_of_team(player, entity))
        ]
        return mine + (self.best(player, found, sights) if self.room_class is Margin else found)

    def is_near(self, player: str, dot: Dot, sights: Sights) -> bool:
        me = self.room.entities.first(Dot, owner=player)
        if me is None:
            return False
        distance = math.dist((me.x, me.y), (dot.x, dot.y))
        return distance <= RANGE + (self.room_class.margin if dot in sights.near else 0)

    def is_of_team(self, player: str, entity: Entity) -> bool:
        of_team = isinstance(entity, Rock) and entity.team == self.room.team.get(player, 0)
        return of_team and (player, entity.id) not in self.room.cloaked

    def best(self, player: str, found: list[Any], sights: Sights) -> list[Any]:
        conn: Any = None
        found.sort(key=lambda entity: (-worth(self.room, conn, entity), entity.id))
        return [
            e for rank, e in enumerate(found, 1) if rank <= MOST or (rank <= 1.1 * MOST and e in sights.seen)
        ]

    def check(self, client: TestClient) -> None:
        player, room = client.player, self.room
        sights = self.sights.get(client.link, Sights())
        seen = self.expected(player, sights) if self.room_class.exact else sights.seen
        expected: dict[int, Any] = {entity.id: entity for entity in seen}
        expected[SHARED_ID] = room.state
        expected[PRIVATE_ID] = room.private(player)
        shipped: Any = client.replica
        held = shipped.held
        assert {id for id in shipped.reader.held if id < FIRST_PRESENCE_ID} == expected.keys()
        for id, entity in expected.items():
            self.check_entity(player, held.get(id), entity)
        shown = {held.get(id) for id in shipped.reader.held if id >= FIRST_PRESENCE_ID}
        assert {row.player: (row.name, row.connected) for row in shown} == {
            name: (entry.name, entry.connected)
            for name, entry in room.presence.items()
            if name == player or (player, name) not in room.blocked
        }

    def check_entity(self, player: str, held: Any, entity: Any) -> None:
        assert type(held) is type(entity)
        assert entity.id == PRIVATE_ID or held.owner == entity.owner
        for field, mine, theirs in zip(
            spec_of(entity).fields, stored_values(held), stored_values(entity), strict=True
        ):
            if not field.owner_only or entity.owner == player:
                assert field.type.same(mine, theirs), (entity, field.name)
            elif (player, entity.id) not in self.owned:
                assert field.type.same(mine, field.type.zero), (entity, field.name)

    @rule()
    def settle(self) -> None:
        """Let all read until they hold what they see: they must, after some time."""
        self.note_owners()
        silent = 0
        for _ in range(2_000):
            received = sum(client.received for client in self.open.values())
            self.driver.tick()
            self.look()
            for client in self.open.values():
                self.driver.drain(client)
            silent = silent + 1 if received == sum(client.received for client in self.open.values()) else 0
            # A bucket that is far below zero needs some ticks.
            if silent > (25 if self.room_class is Budget else 2):
                break
        else:
            raise AssertionError("there is always something to tell")
        for client in self.open.values():
            if client.closed is None:
                self.check(client)

    def teardown(self) -> None:
        self.settle()


def case(room: type[World], examples: int) -> Any:
    machine: Any = type(f"Views{room.__name__}", (Views,), {"room_class": room})
    machine.TestCase.settings = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return machine.TestCase


TestExact = case(Exact, 60)
TestMargin = case(Margin, 60)
TestBudget = case(Budget, 30)
TestOpen = case(Open, 20)
