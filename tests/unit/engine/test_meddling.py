"""Values that run code when they are looked at: what the engine does goes on with what there is then."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from playhall.engine.outputs import Status
from playhall.room import DeadEntityError, Entity, Json, Room, Schema, f32, u8, u16
from tests.support.meddling import meddling
from tests.support.rooms import Driver


class Dot(Entity):
    x: f32 = 0
    n: u8 = 0
    m: u16 = 0
    blocks: bytes = b""
    tags: Json[Any] = None


class Game(Room):
    schema = Schema(entities=[Dot])


WRITES = [("x", "float"), ("n", "int"), ("m", "number"), ("blocks", "bytes"), ("tags", "mapping")]


@pytest.mark.parametrize(("name", "sort"), WRITES)
def test_an_entity_that_its_own_new_value_deletes_stays_deleted(name: str, sort: str) -> None:
    driver = Driver(Game)
    ann = driver.join("ann")
    dot = driver.room.entities.add(Dot(), owner="ann")
    driver.tick()
    with pytest.raises(DeadEntityError, match="was deleted"):
        setattr(dot, name, meddling(sort, lambda: driver.room.entities.delete(dot)))
    driver.tick(2)
    assert driver.core.status is Status.ACTIVE
    assert ann.replica.of_kind(Dot) == {}


def test_an_entity_that_its_own_patch_deletes_stays_deleted() -> None:
    driver = Driver(Game)
    dot = driver.room.entities.add(Dot())
    with pytest.raises(DeadEntityError, match="was deleted"):
        dot.patch("blocks", 0, meddling("bytes", lambda: driver.room.entities.delete(dot)))
    driver.tick(2)
    assert driver.core.status is Status.ACTIVE


def test_what_a_value_writes_while_it_is_looked_at_comes_before_it() -> None:
    driver = Driver(Game)
    ann = driver.join("ann")
    dot = driver.room.entities.add(Dot())

    def write() -> None:
        dot.n = 200

    dot.n = meddling("int", write)
    driver.tick()
    assert (dot.n, ann.replica.fields(dot.id)["n"]) == (7, 7)


@pytest.mark.parametrize(("name", "sort"), WRITES)
@pytest.mark.parametrize("deed", ["add", "add and delete", "init"])
def test_what_is_not_yet_made_harms_nobody(name: str, sort: str, deed: str) -> None:
    """A value of a new entity adds that one, or deletes it, before its fields are in place."""
    driver = Driver(Game)
    room = driver.room
    other = room.entities.add(Dot(x=1, n=2, m=3, blocks=b"four", tags=[5]))
    made = Dot.__new__(Dot)

    def do() -> None:
        if deed == "init":
            Dot.__init__(made, n=9)
        else:
            room.entities.add(made)
            if deed == "add and delete":
                room.entities.delete(made)

    init: Any = made.__init__  # type: ignore[misc]
    # Each engine says it as far as it has come.
    with suppress(AttributeError, DeadEntityError, TypeError, ValueError):
        init(**{name: meddling(sort, do)})
    later = [room.entities.add(Dot()) for _ in range(40)]
    assert (other.x, other.n, other.m, other.blocks, other.tags) == (1, 2, 3, b"four", [5])
    assert [(dot.x, dot.n, dot.m, dot.blocks, dot.tags) for dot in later] == [(0, 0, 0, b"", None)] * 40


@pytest.mark.parametrize(("name", "sort"), WRITES)
def test_odd_values_are_stored_as_plain_ones(name: str, sort: str) -> None:
    dot = Dot(**{name: meddling(sort, lambda: None)})
    stored = getattr(dot, name)
    if name != "tags":  # which is the object that was given
        assert type(stored) in (int, float, bytes)
