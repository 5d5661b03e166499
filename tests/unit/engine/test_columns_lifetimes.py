"""Arrays and handles that are kept too long: of rows that went, of rooms that ended and were forgotten.

An array reads stale values at worst, and what is written to it then reaches nobody; a handle of what was
deleted raises. Nothing crashes: sanitizers look at that when they run this (`make test-sanitized`).
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from playhall.room import DeadEntityError, Entity, Room, Schema, f32, f64, i16, u8, writable
from tests.support.rooms import Driver


class Npc(Entity, max=40):
    x: f32 = 0
    far: f64 = 0
    hp: i16 = 1
    team: u8 = 0
    awake: bool = True
    speed: writable[f32] = 0
    name: str = ""


class Game(Room):
    schema = Schema(entities=[Npc])


NAMES = ("x", "far", "hp", "team", "awake", "speed")
MOST_KEPT = 12
picks = st.integers(0, 255)
names = st.sampled_from([*NAMES, "id", "alive"])
cuts = st.sampled_from(
    [slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(0, 3)]
)


class Lifetimes(RuleBasedStateMachine):
    """One room after the other, and what was kept of all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(Game)
        self.living: list[Npc] = []
        self.dead: list[Npc] = []
        # Of rooms that were forgotten.
        self.lost: list[Npc] = []
        # Arrays of the room there is, and of rooms that were forgotten with what is in them.
        self.arrays: list[Any] = []
        self.stale: list[tuple[Any, Any]] = []

    @property
    def entities(self) -> Any:
        return self.driver.room.entities

    @rule(count=st.integers(1, 20))
    def add(self, count: int) -> None:
        for number in range(min(count, 40 - len(self.living))):
            self.living.append(self.entities.add(Npc(x=number, hp=number), owner="ann"))

    @rule(pick=picks, count=st.integers(1, 20))
    def delete(self, pick: int, count: int) -> None:
        for _ in range(min(count, len(self.living))):
            npc = self.living.pop(pick % len(self.living))
            self.entities.delete(npc)
            self.dead = [*self.dead, npc][-MOST_KEPT:]

    @rule(pick=picks, x=st.floats(-9, 9, width=32))
    def write(self, pick: int, x: float) -> None:
        if self.living:
            npc = self.living[pick % len(self.living)]
            npc.x, npc.speed, npc.name = x, x, str(pick)

    @rule(name=names, cut=cuts)
    def keep(self, name: str, cut: slice) -> None:
        column = getattr(self.entities.columns(Npc), name)
        self.arrays = [*self.arrays, column[cut]][-MOST_KEPT:]

    @rule(pick=picks, value=st.integers(0, 1))
    def write_kept(self, pick: int, value: int) -> None:
        if self.arrays:
            array = self.arrays[pick % len(self.arrays)]
            if array.flags.writeable:
                array[...] = value

    @rule(pick=picks, value=st.integers(0, 1))
    def write_stale(self, pick: int, value: int) -> None:
        """It reaches no room: the invariants look at the living one."""
        if self.stale:
            array = self.stale[pick % len(self.stale)][0]
            if array.flags.writeable:
                array[...] = value
                # Others may be of the same memory.
                self.stale = [(each, each.copy()) for each, _ in self.stale]

    @rule(pick=picks)
    def let_go(self, pick: int) -> None:
        for kept in (self.arrays, self.stale, self.dead, self.lost):
            if kept:
                del kept[pick % len(kept)]
        gc.collect(1)  # it is young

    @rule()
    def tick(self) -> None:
        self.driver.tick()

    @rule(crashes=st.booleans())
    def end(self, crashes: bool) -> None:
        """The room ends, is forgotten by all but arrays and handles, and its next generation begins."""
        if not crashes:
            self.driver.hibernate()
        self.driver = self.driver.wake()
        self.stale = [*self.stale, *((array, array.copy()) for array in self.arrays)][-MOST_KEPT:]
        self.lost = [*self.lost, *self.living][-MOST_KEPT:]
        self.arrays, self.living = [], list(self.entities.all(Npc))
        gc.collect(1)  # it is young

    @invariant()
    def columns_and_handles_are_one(self) -> None:
        columns = self.entities.columns(Npc)
        rows = {int(columns.id[row]): row for row in np.flatnonzero(columns.alive)}
        assert sorted(rows) == sorted(npc.id for npc in self.living)
        for npc in self.living:
            row = rows[npc.id]
            assert [getattr(npc, name) for name in NAMES] == [getattr(columns, name)[row] for name in NAMES]

    @invariant()
    def the_dead_raise(self) -> None:
        for npc in self.dead:
            with pytest.raises(DeadEntityError):
                _ = npc.x
            with pytest.raises(DeadEntityError):
                npc.name = "again"
            assert npc.id > 0
            assert npc.owner == "ann"

    @invariant()
    def the_stale_stay_as_they_were(self) -> None:
        for array, before in self.stale:
            assert np.array_equal(array, before)
        for npc in self.lost:
            assert isinstance(npc.x, float)
            assert isinstance(npc.name, str)


def read_lifetimes(machine: Lifetimes) -> Any:
    """All there is of it, for the twins."""
    return [
        machine.arrays,
        machine.stale,
        [[getattr(npc, name) for name in (*NAMES, "name")] for npc in (*machine.living, *machine.lost)],
    ]


TestLifetimes = Lifetimes.TestCase
TestLifetimes.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
