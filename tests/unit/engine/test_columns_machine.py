"""Columns under any schedule: they and handles are one store, and a flush tells all that has changed."""

from __future__ import annotations

import struct
from typing import Annotated, Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from playhall.engine.backend import Tracker
from playhall.engine.entities import Entities
from playhall.engine.kinds import spec_of, stored_values, write_stored
from playhall.engine.store import EntityStore
from playhall.room import Entity, Schema, f32, i16, q8, writable


class Npc(Entity, max=5):
    x: f32
    name: str = ""
    hp: i16 = 1
    dial: Annotated[float, q8(-1, 1)] = 0
    flag: bool = False
    speed: writable[f32] = 0


FIELDS = spec_of(Npc).fields
SPEED = spec_of(Npc).by_name["speed"].index
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "x": st.floats(width=32),
    "name": st.text(max_size=3),
    "hp": st.integers(-32768, 32767) | st.integers(-1, 1),
    "dial": st.sampled_from([-1.0, -0.5, 0.0, 0.004, 1.0]),
    "flag": st.booleans(),
    "speed": st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0]),
}
writes = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))
numbers = writes.filter(lambda write: write[0] != "name")
which = st.integers(0, 4)


def bits(values: Any) -> list[object]:
    return [struct.pack("<d", value) if isinstance(value, float) else value for value in values]


class Columns(RuleBasedStateMachine):
    """`told`: what a client that hears of every flush holds. `owners`: the speed that owners believe."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = Tracker()
        self.store = EntityStore(Schema(entities=[Npc]), self.tracker)
        self.entities = Entities(self.store)
        self.version = 0
        self.model: dict[int, list[Any]] = {}
        self.told: dict[int, list[Any]] = {}
        self.owners: dict[int, tuple[str, float]] = {}
        self.asked = False

    def one(self, which: int) -> Npc:
        there = self.entities.all(Npc)
        return there[which % len(there)]

    def put(self, npc: Npc, name: str, value: Any) -> None:
        field = spec_of(Npc).by_name[name]
        self.model[npc.id][field.index] = field.accept("npc", npc.id, value)

    @initialize(asks=st.booleans())
    def start(self, asks: bool) -> None:
        if asks:
            self.ask()

    @rule()
    def ask(self) -> None:
        self.asked = True
        npcs = self.entities.columns(Npc)
        assert npcs.id[npcs.alive].tolist() == sorted(self.model, key=npcs.id.tolist().index)
        assert len(set(npcs.id[npcs.alive].tolist())) == len(self.model) == npcs.alive.sum()

    @precondition(lambda self: len(self.model) < 5)
    @rule(write=writes, owned=st.booleans(), id=st.none() | st.integers(2, 9))
    def add(self, write: tuple[str, Any], owned: bool, id: int | None) -> None:
        if id not in self.model:
            npc = self.entities.add(
                Npc(**{"x": 0.0, write[0]: write[1]}), owner="ann" if owned else None, id=id
            )
            self.model[npc.id] = [getattr(npc, field.name) for field in FIELDS]

    @precondition(lambda self: self.model)
    @rule(which=which)
    def delete(self, which: int) -> None:
        npc = self.one(which)
        self.entities.delete(npc)
        del self.model[npc.id]

    @precondition(lambda self: self.model)
    @rule(which=which, player=st.sampled_from(["ann", "bob", None]))
    def give(self, which: int, player: str | None) -> None:
        self.entities.set_owner(self.one(which), player)

    @precondition(lambda self: self.model)
    @rule(which=which, write=writes)
    def write_by_handle(self, which: int, write: tuple[str, Any]) -> None:
        npc = self.one(which)
        setattr(npc, *write)
        self.put(npc, *write)

    @precondition(lambda self: self.model)
    @rule(which=which, value=VALUES["speed"])
    def write_by_owner(self, which: int, value: float) -> None:
        npc = self.one(which)
        tracked = self.store.tracked_of(npc.id)
        assert tracked is not None
        if npc.id in self.owners and self.owners[npc.id][0] == npc.owner and tracked.born >= 0:
            tracked.owner_wrote(SPEED, value)
            write_stored(npc, {SPEED: value})
            self.owners[npc.id] = (self.owners[npc.id][0], value)
            self.put(npc, "speed", value)

    @precondition(lambda self: self.model and self.asked)
    @rule(which=which, write=numbers)
    def write_one_row(self, which: int, write: tuple[str, Any]) -> None:
        npc = self.one(which)
        npcs = self.entities.columns(Npc)
        name, value = write
        getattr(npcs, name)[npcs.id == npc.id] = value
        if name != "dial":
            self.put(npc, name, value)
        else:
            self.model[npc.id][3] = value

    @precondition(lambda self: self.asked)
    @rule(write=numbers)
    def write_all_rows(self, write: tuple[str, Any]) -> None:
        npcs = self.entities.columns(Npc)
        getattr(npcs, write[0])[:] = write[1]  # those of no entity too
        for values in self.model.values():
            values[spec_of(Npc).by_name[write[0]].index] = write[1]

    @precondition(lambda self: self.asked)
    @rule(by=st.sampled_from([1, -1]))
    def move_all_rows(self, by: int) -> None:
        npcs = self.entities.columns(Npc)
        with np.errstate(all="ignore"):
            npcs.hp += np.int16(by)
        for values in self.model.values():
            values[2] = (values[2] + by + 32768) % 65536 - 32768

    @invariant()
    def handles_read_what_was_written(self) -> None:
        assert {npc.id for npc in self.entities.all(Npc)} == self.model.keys()
        for npc in self.entities.all(Npc):
            assert bits(stored_values(npc)) == bits(self.model[npc.id])

    @rule()
    def flush(self) -> None:
        for values in self.model.values():
            values[3] = FIELDS[3].accept("npc", None, values[3])
        dirty = self.tracker.dirty
        self.version += 1
        flush = self.tracker.flush(self.version)
        assert dirty or not (flush.added or flush.changed or flush.removed)
        assert not self.tracker.dirty
        for tracked in flush.removed:
            self.told.pop(tracked.id)
            self.owners.pop(tracked.id, None)
        for tracked in flush.added:
            self.told[tracked.id] = list(tracked.values)
        for tracked in flush.changed:
            mask = tracked.changed_since(self.version - 1)
            for field in FIELDS:
                if mask >> field.index & 1:
                    self.told[tracked.id][field.index] = tracked.values[field.index]
        assert {id: bits(values) for id, values in self.told.items()} == {
            id: bits(values) for id, values in self.model.items()
        }
        self.check_owners({t.id for masks in flush.corrections.values() for t, mask in masks.items() if mask})

    def check_owners(self, corrected: set[int]) -> None:
        """An owner keeps its own speed unless it is corrected, and must hold the room's in the end."""
        for npc in self.entities.all(Npc):
            before = self.owners.get(npc.id)
            if npc.owner is None:
                self.owners.pop(npc.id, None)
            elif before is None or before[0] != npc.owner or npc.id in corrected:
                self.owners[npc.id] = (npc.owner, npc.speed)
            assert npc.owner is None or bits([self.owners[npc.id][1]]) == bits([npc.speed])


TestColumns = Columns.TestCase
TestColumns.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
