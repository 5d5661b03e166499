"""Many rows at once: what is written of runs of them is what is written of each, on both engines.

Entities come in hundreds, with ids of every size that is written differently, and the same is written in many
of them, so that whole words of rows change alike; or in every third, or another field in each.
"""

from __future__ import annotations

from typing import Annotated, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from playhall.engine.kinds import spec_of
from playhall.room import (
    Entity,
    Json,
    Room,
    Schema,
    f32,
    f64,
    i8,
    i16,
    i32,
    owner_only,
    q8,
    q16,
    u8,
    u16,
    u32,
)
from tests.support.rooms import Driver, TestClient
from tests.support.twins import twins_of


class Dot(Entity):
    """A number of every type, in pairs of four bytes and alone, and what has no size of its own."""

    x: f32 = 0
    y: f32 = 0
    flag: bool = False
    b1: u8 = 0
    b2: u16 = 0
    b4: u32 = 0
    s1: i8 = 0
    s2: i16 = 0
    s4: i32 = 0
    far: f64 = 0
    hue: Annotated[float, q8(0, 360)] = 90
    fine: Annotated[float, q16(-1, 1)] = 0
    ammo: owner_only[u8] = 0
    name: str = ""
    wears: Json[Any] = None


class Ghost(Entity, hidden=True):
    x: f32 = 0
    y: f32 = 0
    name: str = ""


class Mark(Entity):
    """Has no fields."""


def many(name: str, types: list[Any]) -> type[Any]:
    """Make a kind of so many fields."""
    annotations = {f"n{n}": each for n, each in enumerate(types)}
    body = {"__annotations__": annotations, "__module__": __name__, **dict.fromkeys(annotations, 0)}
    make: Any = type(Entity)
    made: type[Any] = make(name, (Entity,), body)
    return made


# Masks of one word, which are too long for runs where the last fields change; and of more.
Late = many("Late", [u8, u16, f64, f32] * 10)
Wide = many("Wide", [u8, f32] * 40)

KINDS: tuple[type[Any], ...] = (Dot, Ghost, Mark, Late, Wide)
NUMBERS = {
    kind: [field.name for field in spec_of(kind).fields if field.name not in ("name", "wears")]
    for kind in KINDS
}
# On both sides of where a varint or msgpack's number gets longer.
FIRST_IDS = (2, 60, 100, 200, 16_300, 65_400, 2**21 - 70, 2**28 - 70, 2**31 - 400)


class Hall(Room):
    schema = Schema(entities=KINDS)


slices = st.builds(slice, st.integers(0, 130), st.none() | st.integers(1, 260), st.sampled_from([1, 1, 2, 3]))
kinds = st.sampled_from([Dot, Dot, Dot, Ghost, Mark, Late, Wide])


class Runs(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(Hall)
        self.clients: list[TestClient] = []

    @rule(kind=kinds, first=st.sampled_from(FIRST_IDS), count=st.integers(1, 140), owned=st.booleans())
    def add(self, kind: type[Any], first: int, count: int, owned: bool) -> None:
        entities = self.driver.room.entities
        for id in range(first, first + count):
            if entities.get(id) is None:
                entities.add(kind(), id=id, owner="ann" if owned and kind is Dot and id % 16 == 3 else None)

    @rule(
        kind=kinds, which=slices, first=st.integers(0, 79), count=st.integers(1, 4), value=st.integers(0, 1)
    )
    def write(self, kind: type[Any], which: slice, first: int, count: int, value: int) -> None:
        names = NUMBERS[kind][first % max(1, len(NUMBERS[kind])) :][:count]
        for entity in self.driver.room.entities.all(kind)[which]:
            for name in names:
                setattr(entity, name, bool(value) if name == "flag" else value)

    @rule(which=slices, value=st.text(max_size=3), json=st.booleans())
    def write_text(self, which: slice, value: str, json: bool) -> None:
        for dot in self.driver.room.entities.all(Dot)[which]:
            setattr(dot, "wears" if json else "name", value)

    @rule(
        kind=st.sampled_from([Dot, Ghost, Late, Wide]),
        which=slices,
        first=st.integers(0, 79),
        value=st.integers(0, 1),
    )
    def write_column(self, kind: type[Any], which: slice, first: int, value: int) -> None:
        name = NUMBERS[kind][first % len(NUMBERS[kind])]
        getattr(self.driver.room.entities.columns(kind), name)[which] = value

    @rule(which=slices, each=st.integers(1, 3))
    def write_one_of_each(self, which: slice, each: int) -> None:
        for n, dot in enumerate(self.driver.room.entities.all(Dot)[which]):
            name = NUMBERS[Dot][n * each % len(NUMBERS[Dot])]
            value = not getattr(dot, name)
            setattr(dot, name, value if name == "flag" else int(value))

    @rule(kind=kinds, which=slices)
    def delete(self, kind: type[Any], which: slice) -> None:
        for entity in self.driver.room.entities.all(kind)[which]:
            self.driver.room.entities.delete(entity)

    @precondition(lambda self: len(self.clients) < 3)
    @rule(player=st.sampled_from(["ann", "bob"]))
    def join(self, player: str) -> None:
        self.clients = [client for client in self.clients if client.player != player]
        self.clients.append(self.driver.join(player))

    @rule()
    def tick(self) -> None:
        self.driver.tick()
        assert self.driver.stopped is None

    def teardown(self) -> None:
        self.driver.tick(2)
        for client in self.clients:
            self.driver.assert_in_sync(client)
        woken = self.driver.wake()
        for kind in KINDS:
            mine, theirs = (driver.room.entities.all(kind) for driver in (self.driver, woken))
            assert [repr(entity) for entity in mine] == [repr(entity) for entity in theirs]


def read_version(machine: Runs) -> int:
    return machine.driver.core.version


TestRuns = twins_of(Runs, read_version).TestCase
TestRuns.settings = settings(
    max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
