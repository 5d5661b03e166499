"""What tables hold, and let go: of rooms, kinds and entities that are gone nothing is left."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import pytest

from playhall.engine.backend import Tracker
from playhall.engine.entities import Entities
from playhall.engine.store import EntityStore
from playhall.room import Entity, Json, Room, Schema, f32, owner_only, q8, u8
from tests.support.rooms import Driver


class Npc(Entity, max=500):
    x: f32 = 0
    dial: Annotated[float, q8(-1, 1)] = 0
    name: str = ""
    secret: owner_only[bytes] = b""
    wears: Json[Any] = None


class Board(Entity):
    moves: u8 = 0


class Hall(Room[Board]):
    schema = Schema(state=Board, entities=[Npc])

    def on_create(self) -> None:
        for n in range(20):
            self.entities.add(
                Npc(name=f"npc {n}", secret=bytes(n), wears=[n]), owner="ann" if n % 2 else None
            )

    def on_tick(self, dt: float) -> None:
        self.entities.columns(Npc).x += 1
        self.entities.delete(self.entities.all(Npc)[0])
        self.entities.add(Npc(wears={"deep": [self.tick]}))


def of_ours() -> Counter[str]:
    """Count the objects of the engine and of this test that the collector knows."""
    gc.collect()
    names = ((str(type(one).__module__), type(one).__name__) for one in gc.get_objects())
    return Counter(name for module, name in names if module.startswith(("playhall.engine", __name__)))


def play() -> None:
    driver = Driver(Hall)
    driver.join("ann")
    driver.tick(3)


def test_of_a_room_that_is_gone_no_object_is_left() -> None:
    play()
    before = of_ours()
    for _ in range(10):
        play()
    assert of_ours() - before == Counter()


def test_a_kind_goes_with_what_it_was_made_for() -> None:
    def make() -> None:
        body = {"__annotations__": {"x": f32, "name": str}, "__module__": __name__, "x": 0.0, "name": ""}
        metaclass: Any = type(Entity)
        kind = metaclass("Passing", (Entity,), body)
        kept = kind(x=1, name="kept")
        assert (kept.x, kind.x.__get__(kept, kind)) == (1, 1)

    make()
    before = of_ours()
    for _ in range(10):
        make()
    assert of_ours() - before == Counter()


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of memory")
def test_rooms_that_come_and_go_leave_memory_as_it_was() -> None:
    # A sanitizer keeps what was freed resident for a while, and counts what is not freed.
    allocated = getattr(ctypes.CDLL(None), "__sanitizer_get_current_allocated_bytes", None)
    if allocated is not None:
        allocated.restype = ctypes.c_size_t

    def fill(rooms: int) -> None:
        for _ in range(rooms):
            tracker = Tracker()
            entities = Entities(EntityStore(Hall.schema, tracker))
            npcs = [entities.add(Npc(name="n" * 100, secret=bytes(200), wears=[1, 2, 3])) for _ in range(20)]
            entities.columns(Npc).x[:] = 5
            tracker.flush(1)
            npcs[0].wears = "other"
            entities.delete(npcs[1])
            tracker.flush(2)

    def resident() -> int:
        gc.collect()
        if allocated is not None:
            return int(allocated())
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    def grown_by(rooms: int) -> int:
        before = resident()
        fill(rooms)
        return resident() - before

    fill(100)
    # A table of any of them, kept, would be some 20 KiB: 2 MB in every round. One round may grow, as the
    # allocator takes pages when it likes.
    assert min(grown_by(100) for _ in range(5)) < 500_000


def test_a_flush_can_be_read_after_the_table_has_grown() -> None:
    tracker = Tracker()
    entities = Entities(EntityStore(Hall.schema, tracker))
    first = [entities.add(Npc()) for _ in range(10)]
    tracker.flush(1)
    for npc in first[::2]:
        npc.x = 3
    new = entities.add(Npc())
    flush = tracker.flush(2)
    later = [entities.add(Npc(x=n)) for n in range(300)]
    first[1].x = 9
    assert [one.entity for one in flush.changed] == first[::2]
    assert [one.entity for one in flush.added] == [new]
    assert [one.changed_since(1) for one in flush.changed] == [1] * 5
    assert [one.entity for one in tracker.flush(3).added] == later


def test_arrays_outlive_the_room_and_read_what_was_there() -> None:
    def last() -> Any:
        driver = Driver(Hall)
        driver.tick(3)
        return driver.room.entities.columns(Npc).x

    kept = last()
    gc.collect()
    assert sorted(kept.tolist())[-1] >= 2
    kept += 1
