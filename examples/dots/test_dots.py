import pytest

from playhall.client import JsonOut
from playhall.testing import RoomHost

from .room import RETURN_S, Dots
from .shared import Dot


@pytest.mark.ledger("TEST-09")
async def test_a_move_reaches_everyone_and_is_counted(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.send({"type": "move", "x": 10, "y": 20})
    await t.tick()
    [dot] = bob.entities.all(Dot, owner="alice")
    assert (dot.x, dot.y) == (10, 20)
    assert bob.state.moves == 1
    assert (alice.private.moves, bob.private.moves) == (1, 0)


@pytest.mark.ledger("TEST-10")
async def test_counts_outlive_the_room_and_dots_do_not(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice = await t.connect("alice")
    alice.send({"type": "move", "x": 10, "y": 20})
    await t.tick()
    await alice.leave()
    await t.hibernate()
    back = await t.connect("alice")
    assert (back.state.moves, back.private.moves) == (1, 1)
    assert len(back.entities.all(Dot)) == 1


@pytest.mark.ledger("TEST-11")
async def test_a_crash_keeps_one_dot_where_it_was(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice = await t.connect("alice")
    alice.send({"type": "move", "x": 5, "y": 6})
    await t.tick()
    await t.crash()
    await alice.reconnected()
    [dot] = alice.entities.all(Dot)
    assert (dot.owner, dot.x, dot.y) == ("alice", 5, 6)


async def test_the_dot_of_who_does_not_come_back_goes(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    bob.cut()
    await t.crash()
    await alice.reconnected()
    assert alice.entities.count(Dot) == 2
    await t.advance(RETURN_S)
    assert [dot.owner for dot in alice.entities.all(Dot)] == ["alice"]


async def test_a_move_stays_on_the_board(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice = await t.connect("alice")
    alice.send({"type": "move", "x": -3, "y": 1e9})
    await t.tick()
    [dot] = alice.entities.all(Dot)
    assert (dot.x, dot.y) == (0, 100)


async def test_a_name_is_trimmed_and_shown_to_everyone(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.send({"type": "name", "name": "  Ada, Countess of Lovelace "})
    await t.tick()
    assert bob.presence["alice"].name == "Ada, Countess of Lovelac"


@pytest.mark.parametrize("message", [None, "hello", {"type": "move", "x": "left"}, {"type": "name"}, b"\x00"])
async def test_what_makes_no_sense_changes_nothing(room_host: RoomHost, message: "JsonOut | bytes") -> None:
    t = room_host.room(Dots)
    alice = await t.connect("alice")
    alice.send(message)
    await t.tick()
    assert (alice.status, t.errors, alice.state.moves) == ("open", [], 0)
