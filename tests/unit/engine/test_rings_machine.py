"""Histories under any schedule: what a rewind gives is what was there, from both twins to the bit."""

from __future__ import annotations

import math
import struct
from typing import Annotated, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from playhall.engine.backend import Tracker, native
from playhall.engine.entities import Entities
from playhall.engine.kinds import spec_of
from playhall.engine.rewinding import Ring
from playhall.engine.rings import Ring as PureRing
from playhall.engine.store import EntityStore
from playhall.room import Entity, Schema, f32, f64, i8, i16, i32, q16, u8, u16, u32

DEPTH = 4


class Rock(Entity):
    x: f32
    y: Annotated[float, q16(-10, 10)] = 0
    z: f64 = 0
    name: str = ""
    a: bool = False
    b: u8 = 0
    c: u16 = 0
    d: u32 = 0
    e: i8 = 0
    f: i16 = 0
    g: i32 = 0


FIELDS = tuple(field for field in spec_of(Rock).fields if field.name != "name")
FLOATS = {"x", "y", "z"}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "x": st.floats(width=32) | st.integers(-10, 10).map(float),
    "y": st.floats(-10, 10),
    "z": st.floats() | st.integers(-10, 10).map(float),
    "a": st.booleans(),
    "b": st.integers(0, 255),
    "c": st.integers(0, 2**16 - 1),
    "d": st.integers(0, 2**32 - 1),
    "e": st.integers(-128, 127),
    "f": st.integers(-(2**15), 2**15 - 1),
    "g": st.integers(-(2**31), 2**31 - 1),
}
writes = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))
coordinates = st.integers(-10, 10) | st.floats(-12, 12) | st.just(-0.0)
vectors = st.integers(2, 3).flatmap(lambda size: st.lists(coordinates, min_size=size, max_size=size))
lengths = st.integers(0, 10) | st.floats(0, 30) | st.just(math.inf)


def bits(values: Any) -> list[object]:
    return [struct.pack("<d", value) if isinstance(value, float) else value for value in values]


def outcome(call: Any, *args: Any) -> object:
    """What a call returns, or the text of what it raises."""
    try:
        returned = call(*args)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return [bits(each) for each in returned] if isinstance(returned, list) else bits(returned or ())


class Rings(RuleBasedStateMachine):
    """`past`: for each recorded tick the handles and values by id, which is what is to be found again."""

    def __init__(self) -> None:
        super().__init__()
        self.store = EntityStore(Schema(entities=[Rock]), Tracker())
        self.entities = Entities(self.store)
        self.version = self.tick = 0
        self.past: dict[int, dict[int, tuple[Rock, list[Any]]]] = {}
        self.held: dict[Rock, int] = {}

    @initialize(most=st.integers(3, 6) | st.just(100))
    def start(self, most: int) -> None:
        self.most = most
        self.rings = [PureRing(self.store, Rock, FIELDS, DEPTH)]
        if native:
            self.rings.append(Ring(self.store, Rock, FIELDS, DEPTH))

    @rule(id=st.integers(2, 9), fields=st.lists(writes, max_size=4))
    def add(self, id: int, fields: list[tuple[str, Any]]) -> None:
        if self.store.get(id) is None:
            self.entities.add(Rock(**{"x": 0, **dict(fields)}), id=id)

    @precondition(lambda self: len(self.entities) > 0)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.entities.delete(data.draw(st.sampled_from(self.entities.all(Rock))))

    @precondition(lambda self: len(self.entities) > 0)
    @rule(data=st.data(), write=writes)
    def write(self, data: st.DataObject, write: tuple[str, Any]) -> None:
        setattr(data.draw(st.sampled_from(self.entities.all(Rock))), *write)

    @precondition(lambda self: len(self.entities) > 0)
    @rule(value=st.floats(-10, 10, width=32))
    def write_columns(self, value: float) -> None:
        rocks = self.entities.columns(Rock)
        rocks.x[: len(rocks)] = value

    @rule()
    def flush(self) -> None:
        """As when somebody joins; after two of them a row is free."""
        self.version += 1
        self.store.tracked_in(Rock)[0].flush(self.version)

    @rule()
    def record(self) -> None:
        self.flush()
        self.tick += 1
        there = {rock.id: rock for rock in self.entities.all(Rock)}
        kept = {rock: last for rock, last in self.held.items() if last > self.tick - DEPTH}
        chosen = {}
        before = {rock for rock, last in kept.items() if last == self.tick - 1}
        for id, rock in there.items():
            if rock in before or len(kept) < self.most:
                kept[rock] = self.tick
                chosen[id] = rock
        self.held = kept
        self.past[self.tick] = {id: (rock, values_of(rock)) for id, rock in chosen.items()}
        self.past.pop(self.tick - DEPTH, None)
        for ring in self.rings:
            assert ring.record(self.tick, self.most) == len(there) - len(chosen)
            assert ring.held == len(kept)

    @rule(ticks=st.floats(-DEPTH - 1, 2, width=32) | st.integers(-DEPTH - 1, 2))
    def rewind(self, ticks: float) -> None:
        tick = float(self.tick + ticks)
        expected, expected_tick = self.expected(tick)
        for ring in self.rings:
            found = ring.rewind(tick, self.tick)
            assert found.tick == expected_tick
            assert list(found.ids) == sorted(expected)
            assert found.count == len(expected)
            for index, id in enumerate(found.ids):
                assert found.index_of(id) == index
                assert found.id_at(index) == id
                assert bits(found.values(index)) == bits(expected[id])
            assert found.index_of(1) is None
            for number, field in enumerate(FIELDS):
                column = memoryview(found.column(number)).cast("B")
                code = {"bool": "?", "u8": "B", "u16": "H", "u32": "I", "i8": "b", "i16": "h", "i32": "i"}
                code |= {"f32": "f"}
                values = [expected[id][number] for id in sorted(expected)]
                packed = struct.pack(f"={len(values)}{code.get(field.type.name, 'd')}", *values)
                assert column.tobytes() == packed or any(value != value for value in values)

    @rule(
        ticks=st.floats(-DEPTH - 1, 2, width=32) | st.integers(-DEPTH - 1, 2),
        origin=vectors,
        direction=vectors,
        reach=lengths,
        radius=lengths,
        skip=st.sets(st.integers(2, 9), max_size=3),
    )
    def look(
        self,
        ticks: float,
        origin: list[float],
        direction: list[float],
        reach: float,
        radius: float,
        skip: set[int],
    ) -> None:
        tick = float(self.tick + ticks)
        rays, nears = [], []
        for ring in self.rings:
            found = ring.rewind(tick, self.tick)
            for start, way in ((origin, direction), (tuple(origin), tuple(direction))):
                rays.append(outcome(found.ray, start, way, reach, radius, skip))
            nears.append(outcome(found.near, origin, radius, skip))
        assert all(ray == rays[0] or isinstance(ray, str) for ray in rays)
        assert len({str(type(ray)) for ray in rays}) == 1
        assert all(near == nears[0] for near in nears)

    def expected(self, tick: float) -> tuple[dict[int, list[Any]], float]:
        """What there is to be found at a tick, and of which tick it is."""
        present = {rock.id: (rock, values_of(rock)) for rock in self.entities.all(Rock)}
        if not self.past or tick >= self.tick + 1:
            return {id: values for id, (_, values) in present.items()}, float(self.tick + bool(self.past))
        whole = max(math.floor(tick), min(self.past))
        earlier, part = self.past[whole], max(tick - whole, 0.0)
        later = self.past.get(whole + 1, present) if part else earlier
        expected = {}
        for id, (rock, values) in earlier.items():
            then = later.get(id)
            same = then is not None and then[0] is rock
            expected[id] = blended(values, then[1], part) if then and same and part else values
        return expected, max(tick, float(whole))


def values_of(rock: Rock) -> list[Any]:
    return [getattr(rock, field.name) for field in FIELDS]


def blended(earlier: list[Any], later: list[Any], part: float) -> list[Any]:
    out = []
    for field, a, b in zip(FIELDS, earlier, later, strict=True):
        value = a
        if field.name in FLOATS and not math.isnan(between := a + (b - a) * part):
            value = struct.unpack("f", struct.pack("f", between))[0] if field.name == "x" else between
        out.append(value)
    return out


TestRings = Rings.TestCase
TestRings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
