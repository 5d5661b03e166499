"""What a Room class may say, and what a room offers its author."""

from __future__ import annotations

from typing import Any

import pytest

import playhall.room
from playhall.engine.outputs import LogOut
from playhall.room import Connection, Entity, Room, Schema, u8
from tests.support.rooms import Driver


class Board(Entity):
    moves: u8 = 0


class Mine(Entity):
    coins: u8 = 0


class Seat(Connection):
    """A connection with an attribute of the game's own."""

    hits: int = 0


SCHEMA = Schema(state=Board, private=Mine)


class Game(Room[Board, Mine, Seat]):
    schema = SCHEMA


def test_connections_are_of_the_class_the_room_names() -> None:
    driver = Driver(Game)
    driver.join("ann", meta={"a": 1})
    conn = driver.room.connections["ann"]
    assert type(conn) is Seat
    conn.hits += 1
    assert (conn.hits, conn.meta, repr(conn)) == (1, {"a": 1}, "<Seat c1 of ann>")

    class Derived(Game):
        pass

    other = Driver(Derived)
    other.join("bob")
    assert type(other.room.connections["bob"]) is Seat


@pytest.mark.ledger("HOOK-22")
def test_what_a_room_knows_of_itself() -> None:
    driver = Driver(Game)
    room = driver.room
    assert (room.id, room.project, room.join_code, room.tick) == ("lobby", "games", None, 0)
    assert room.now() == driver.now.wall
    driver.tick(2)
    assert room.tick == 2
    assert room.now() == driver.now.wall
    assert room.state.moves == 0
    assert list(room.entities) == list(room.connections) == list(room.presence) == []


@pytest.mark.ledger("PRES-01")
def test_a_room_without_a_schema_has_presence_and_messages() -> None:
    class Plain(Room):
        def on_message(self, conn: Connection, message: Any) -> None:
            self.broadcast(message)

    driver = Driver(Plain)
    ann = driver.join("ann")
    driver.send(ann, "echo")
    assert ann.messages == ["echo"]
    assert driver.room.state is None
    with pytest.raises(TypeError, match="no private state"):
        driver.room.private("ann")
    assert list(ann.replica.presence()) == ["ann"]


@pytest.mark.ledger("TERM-16")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"tick_rate": 0}, "tick_rate must be an int from 1 to 120"),
        ({"tick_rate": 121}, "tick_rate"),
        ({"tick_rate": 2.5}, "tick_rate"),
        ({"max_players": 1_025}, "max_players"),
        ({"private_retention": "never"}, "private_retention"),
        ({"private_retention": -1}, "private_retention"),
        ({"schema": None}, "schema must be a Schema"),
        ({"schema": SCHEMA}, "the state of Room"),
        ({"log": None}, "hides a member of Room"),
        ({"send": lambda self: None}, "hides a member of Room"),
        ({"entities": 3}, "hides a member of Room"),
    ],
)
def test_what_a_class_may_not_say(body: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("Wrong", (Room,), body)


@pytest.mark.ledger("TERM-16")
def test_a_room_ticks_20_times_a_second_unless_it_says_otherwise() -> None:
    assert Driver(Game).core.tick_rate == 20
    for rate in (1, 120):
        assert Driver(type("Paced", (Game,), {"tick_rate": rate})).core.tick_rate == rate


def test_on_tick_cannot_be_async() -> None:
    async def on_tick(self: Any, dt: float) -> None: ...

    with pytest.raises(TypeError, match="on_tick cannot be async"):
        type("Wrong", (Room,), {"on_tick": on_tick})


def test_the_parameters_must_be_the_schemas() -> None:
    with pytest.raises(TypeError, match=r"the state of Room.* is Mine, that of its schema Board"):

        class Swapped(Room[Mine, Board]):
            schema = SCHEMA  # type: ignore[assignment]

    with pytest.raises(TypeError, match=r"the private of Room.* is NoneType, that of its schema Mine"):

        class Missing(Room[Board]):
            schema = SCHEMA  # type: ignore[assignment]


def test_members_cannot_be_set() -> None:
    room = Driver(Game).room
    for name in ("log", "state", "connections", "tick"):
        with pytest.raises(AttributeError):
            setattr(room, name, 1)


def test_the_log_is_written_like_the_standard_librarys() -> None:
    class Talker(Game):
        def on_message(self, conn: Connection, message: Any) -> None:
            self.log.debug("plain")
            self.log.info("from %s: %d", conn.player, 7)
            self.log.warning("%d", "slip")
            self.log.error("100 %")
            try:
                raise KeyError("k")
            except KeyError:
                self.log.exception("caught")
            self.log.exception("nothing to catch")

    driver = Driver(Talker)
    driver.send(driver.join("ann"), 1)
    lines = [output for output in driver.of(LogOut) if output.event == "room.log"]
    assert [(line.level, line.fields["message"]) for line in lines] == [
        ("debug", "plain"),
        ("info", "from ann: 7"),
        ("warning", "%d ('slip',)"),
        ("error", "100 %"),
        ("error", "caught"),
        ("error", "nothing to catch"),
    ]
    assert [line.traceback is not None for line in lines] == [False] * 4 + [True, False]
    assert "KeyError" in (lines[4].traceback or "")


def test_exports() -> None:
    for name in playhall.room.__all__:
        assert getattr(playhall.room, name) is not None
    assert len(set(playhall.room.__all__)) == len(playhall.room.__all__)
