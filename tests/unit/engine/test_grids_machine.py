"""Grids that room code has no part in, on both engines at once: the native one looks at tables, the pure one
asks for keys, and what every client is told has to be the same to the byte.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from playhall.engine import visibility
from playhall.engine.fanout import grid_look
from playhall.engine.frames import Resume
from playhall.engine.outputs import FramesOut, JoinedOut
from playhall.engine.packing import unpack_groups
from playhall.room import (
    Connection,
    Entity,
    Room,
    Schema,
    combine,
    f32,
    f64,
    grid,
    i16,
    owner_only,
    q16,
    u8,
    u32,
)
from tests.support.rooms import PLENTY, Driver, TestClient
from tests.support.twins import engine, twins_of

pytestmark = pytest.mark.ledger("INT-05", "INT-06")

PLAYERS = tuple(f"p{n}" for n in range(5))
MOST_ENTITIES = 60
MAX_VISIBLE = visibility.MAX_VISIBLE


class Body(Entity, abstract=True):
    x: f32 = 0
    y: f32 = 0


class Dot(Body):
    hand: owner_only[u8] = 0
    name: str = ""


class Ship(Body):
    """Another kind that is looked from, where that is any Body."""

    speed: i16 = 0


class Ball(Entity):
    x: f64 = 0
    y: i16 = 0
    z: Annotated[float, q16(-100.0, 100.0)] = 0.0


class Rock(Entity):
    """Without a position."""

    worth: u8 = 0


class Trap(Entity, hidden=True):
    x: f32 = 0
    y: f32 = 0


class Board(Entity):
    round: u32 = 0


class Purse(Entity):
    coins: u32 = 0


KINDS = (Dot, Ship, Ball, Rock, Trap)


class World(Room[Board, Purse]):
    schema = Schema(state=Board, private=Purse, entities=KINDS)
    max_players = 1_000


class Plain(World):
    interest = grid(cell_size=10, range=20, around=Dot)


class Margin(World):
    interest = grid(cell_size=7, range=20, margin=5, around=Body, prefix="m:")


class Several(World):
    interest = combine(
        grid(cell_size=10, range=12.5, margin=7.5, around=Dot, kinds=[Dot, Rock]),
        grid(cell_size=33, range=30, around=Ball, kinds=[Ball], dims="xz"),
        grid(cell_size=20, range=25, margin=0.5, around=Ball, kinds=[Ball], dims="xyz"),
        grid(cell_size=5, range=0, around=Ship, kinds=[Body]),
    )


class Wide(World):
    """More keys than a connection has, where it were asked for them."""

    interest = grid(cell_size=0.1, range=20, around=Dot)


class Noted:
    """Keeps no replica: what comes is compared as bytes."""

    def __init__(self) -> None:
        self.generation = self.version = 0

    def welcome(self, joined: JoinedOut, generation: int) -> None:
        self.generation, self.version = generation, joined.version

    def part(self, frame: bytes) -> None:
        pass

    def resume(self) -> Resume:
        return Resume(0, self.generation, self.version, full=False, held=(0, 2, 3, 5))


def read_outputs(machine: Any) -> Any:
    """Nothing but what went out, and how far the room is."""
    core = machine.driver.core
    return core.version, core.tick_number, core.status, [entity.id for entity in machine.room.entities]


near = st.sampled_from([0.0, 5.0, 12.5, 19.75, 20.0, 20.25, 24.75, 25.0, 25.25, -19.5, -22.0, -45.5])
far = st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -3e38, 4_000.0, -(2.0**31), 1e-40])
places = st.one_of(near, near, near, st.floats(-60, 60, width=32), far)
players = st.sampled_from(PLAYERS)
owners = st.one_of(st.none(), players)
ids = st.integers(2, MOST_ENTITIES)
small = st.integers(0, 255)


class Grids(RuleBasedStateMachine):
    """Few clients of all kinds, and entities that go, come back in the same row and change hands."""

    room_class: type[World]
    most: int

    def __init__(self) -> None:
        super().__init__()
        visibility.MAX_VISIBLE = self.most
        self.driver = Driver(self.room_class)
        self.open: dict[str, TestClient] = {}
        self.away: dict[str, TestClient] = {}

    @property
    def room(self) -> World:
        room: World = self.driver.room
        return room

    @initialize()
    def begin(self) -> None:
        for number in range(12):
            kind = KINDS[number % len(KINDS)]
            self.put(kind, 2 + number, None, number * 4.0, number * -3.0)
        for number, player in enumerate(PLAYERS[:3]):
            self.put((Dot, Ship, Ball)[number], 20 + number, player, number * 10.0, 0.0)
            self.join(player, PLENTY, fresh=True)

    def put(self, kind: type[Any], id: int, owner: str | None, x: float, y: float) -> None:
        entity = kind()
        self.place(entity, x, y)
        self.room.entities.add(entity, id=id, owner=None if kind is Trap else owner)

    def place(self, entity: Any, x: float, y: float) -> None:
        if isinstance(entity, Ball):
            entity.x = x
            entity.y = int(y) if abs(y) < 1_000 else 0
            entity.z = max(-100.0, min(100.0, y)) if y == y else 0.0
        elif isinstance(entity, Body | Trap):
            entity.x, entity.y = x, y
        elif isinstance(entity, Rock):
            entity.worth = int(x) % 256 if abs(x) < 1_000 else 0

    def pick(self, pick: int) -> Any:
        found = list(self.room.entities)
        return found[pick % len(found)] if found else None

    @rule(player=players, credit=st.sampled_from([PLENTY, PLENTY, 1, 300]), fresh=st.booleans())
    def join(self, player: str, credit: int, fresh: bool) -> None:
        old = self.open.pop(player, None) or self.away.pop(player, None)
        if old is None or fresh:
            replica: Any = Noted()
            self.open[player] = self.driver.join(player, replica=replica, credit=credit)
        else:
            self.open[player] = self.driver.rejoin(old, credit=credit)

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

    @rule(player=players, held=st.booleans())
    def hold(self, player: str, held: bool) -> None:
        if player in self.open:
            self.driver.core.hold(self.open[player].link, held, self.driver.now)

    @rule(kind=st.sampled_from(KINDS), id=ids, owner=owners, x=places, y=places, again=st.booleans())
    def add(self, kind: type[Any], id: int, owner: str | None, x: float, y: float, again: bool) -> None:
        there = self.room.entities.get(id)
        if there is not None:
            if not again:
                return
            self.room.entities.delete(there)
        self.put(kind, id, owner, x, y)

    @rule(pick=small)
    def delete(self, pick: int) -> None:
        entity = self.pick(pick)
        if entity is not None:
            self.room.entities.delete(entity)

    @rule(pick=small, x=places, y=places)
    def move(self, pick: int, x: float, y: float) -> None:
        entity = self.pick(pick)
        if entity is not None:
            self.place(entity, x, y)

    @rule(player=players, x=places, y=places)
    def walk(self, player: str, x: float, y: float) -> None:
        for entity in self.room.entities:
            if entity.owner == player:
                self.place(entity, x, y)

    @rule(step=st.sampled_from([0.25, -0.25, 4.75, -5.0]))
    def drift(self, step: float) -> None:
        for entity in self.room.entities:
            if isinstance(entity, Body) and math.isfinite(entity.x):
                entity.x += step

    @rule(pick=small, owner=owners)
    def give(self, pick: int, owner: str | None) -> None:
        entity = self.pick(pick)
        if entity is not None and not isinstance(entity, Trap):
            self.room.entities.set_owner(entity, owner)

    @rule(pick=small, hand=small, name=st.text(max_size=4))
    def write(self, pick: int, hand: int, name: str) -> None:
        entity = self.pick(pick)
        if isinstance(entity, Dot):
            entity.hand, entity.name = hand, name

    @rule(player=players, value=small)
    def write_state(self, player: str, value: int) -> None:
        self.room.state.round = value
        self.room.private(player, create=True).coins = value

    @rule(count=st.integers(1, 3))
    def tick(self, count: int) -> None:
        self.driver.tick(count)

    @rule()
    def need_base(self) -> None:
        """A flush between ticks."""
        self.driver.core.need_base(self.driver.now)
        self.driver.pump()

    def teardown(self) -> None:
        visibility.MAX_VISIBLE = MAX_VISIBLE


class Crowd(RuleBasedStateMachine):
    """Three hundred connections and three thousand rows; a step is many things at once, from a seed."""

    LINKS, ROWS = 300, 3_000

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(Crowded)
        self.clients: list[TestClient] = []

    @property
    def room(self) -> Crowded:
        room: Crowded = self.driver.room
        return room

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        dice = Dice(seed)
        for number in range(self.ROWS):
            kind = (Dot, Ball, Dot, Rock if number % 100 == 3 else Dot)[number % 4]
            self.put(kind, None, dice)
        replica: Any = Noted()
        for number in range(self.LINKS):
            self.put(Dot, f"p{number}", dice)
            self.clients.append(self.driver.join(f"p{number}", replica=replica, credit=PLENTY))
        self.driver.tick()

    def put(self, kind: type[Any], owner: str | None, dice: Dice) -> None:
        entity = kind() if kind is Rock else kind(x=dice.place(), y=dice.place())
        self.room.entities.add(entity, owner=owner)

    @rule(seed=st.integers(0, 2**32), ticks=st.integers(1, 2))
    def live(self, seed: int, ticks: int) -> None:
        dice = Dice(seed)
        entities = list(self.room.entities)
        for entity in entities:
            chance = dice.below(1_000)
            if chance < 30:
                self.room.entities.delete(entity)
                if chance < 25:
                    self.put((Dot, Ball, Rock)[chance % 25 // 12], entity.owner, dice)
            elif isinstance(entity, Dot | Ball):
                if chance < 700:
                    entity.x = dice.step(entity.x)
                elif chance < 720:
                    entity.x, entity.y = dice.place(), dice.place()
                elif chance < 723 and isinstance(entity, Dot):
                    entity.x = math.nan
                elif chance < 726:
                    self.room.entities.set_owner(entity, f"p{dice.below(self.LINKS)}")
        for client in self.clients:
            if dice.below(50) == 0:
                self.driver.core.hold(client.link, bool(dice.below(2)), self.driver.now)
        self.driver.tick(ticks)


class Dice:
    """The same numbers in both engines, and in any order of imports."""

    def __init__(self, seed: int) -> None:
        self._at = seed

    def below(self, most: int) -> int:
        self._at = (self._at * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (self._at >> 33) % most

    def place(self) -> int:
        return self.below(2_000) - 1_000

    def step(self, at: float) -> float:
        return at + (self.below(41) - 20) / 4 if math.isfinite(at) else 0.0


class Crowded(World):
    interest = combine(
        grid(cell_size=50, range=75, margin=10, around=Dot, kinds=[Dot, Rock]),
        grid(cell_size=40, range=100, around=Dot, kinds=[Ball]),
    )

    def on_join(self, conn: Connection) -> None:
        self.private(conn.player, create=True)


def case(room: type[World], examples: int, most: int = MAX_VISIBLE) -> Any:
    members = {"room_class": room, "most": most, "__module__": __name__}
    machine: Any = type(f"Grids{room.__name__}{most}", (Grids,), members)
    globals()[machine.__name__] = machine
    twins = twins_of(machine, read_outputs).TestCase
    twins.settings = settings(
        max_examples=examples,
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return twins


TestPlain = case(Plain, 40)
TestMargin = case(Margin, 40)
TestSeveral = case(Several, 40)
TestWide = case(Wide, 5)
TestFew = case(Several, 40, most=8)
TestCrowd = twins_of(Crowd, read_outputs).TestCase
TestCrowd.settings = settings(
    max_examples=1, stateful_step_count=3, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_the_native_engine_asks_nothing() -> None:
    for room_class, asks in ((Plain, False), (Margin, False), (Several, False), (Wide, True)):
        core: Any = Driver(room_class).core
        assert (core._visibility._declared is None) == (asks or engine() == "pure")
    assert (grid_look(core._runtime.tracker, [], None, 1, print) is None) == (engine() == "pure")


def test_where_there_is_too_much_to_see_who_comes_is_made_room_for_at_once() -> None:
    machine = globals()["GridsSeveral8"]()
    machine.begin()
    machine.delete(pick=129)
    machine.give(owner="p0", pick=231)
    machine.move(pick=69, x=0.0, y=math.inf)
    before = len(machine.driver.outputs)
    machine.join(player="p3", credit=PLENTY, fresh=False)
    told = [output for output in machine.driver.outputs[before:] if isinstance(output, FramesOut)]
    [frame] = [frame for output in told for link, frame, _ in unpack_groups(output.data) if link == 3]
    machine.teardown()
    leave, count, *gone = frame[4:8]
    assert (leave, count, gone) == (1, 2, [4, 9])
