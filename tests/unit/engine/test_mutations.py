"""Json that is changed in place is told of while a game is made, and costs nothing where it runs."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.engine.mutations import mutated_fields
from playhall.engine.outputs import LogOut
from playhall.room import Entity, Json, Room, Schema
from tests.support.rooms import Driver


class Bag(Entity):
    things: Json[Any]
    notes: Json[Any] = None


class Board(Entity):
    rows: Json[Any] = None


class Wallet(Entity):
    has: Json[Any] = None


class Bags(Room[Board, Wallet]):
    schema = Schema(state=Board, private=Wallet, entities=[Bag])
    tick_rate = 5


def warnings(driver: Driver) -> list[tuple[Any, Any, Any]]:
    return [
        (output.fields["kind"], output.fields["id"], output.fields["field"])
        for output in driver.outputs
        if isinstance(output, LogOut) and output.event == "room.json_changed_in_place"
    ]


def test_what_was_changed_in_place_is_named() -> None:
    bag = Bag(things=["rope"])
    assert list(mutated_fields(bag)) == []
    bag.things.append("lamp")
    bag.notes = {"a": 1}
    assert list(mutated_fields(bag)) == ["things"]
    bag.things = [*bag.things]
    assert list(mutated_fields(bag)) == []


@pytest.mark.parametrize("developing", [True, False])
def test_a_room_looks_once_a_second_while_a_game_is_made(developing: bool) -> None:
    driver = Driver(Bags, clock=(lambda: 0.0) if developing else None)
    driver.join("ann")
    bag, other = (driver.room.entities.add(Bag(things=[])) for _ in range(2))
    driver.room.state.rows = []
    driver.tick()
    bag.things.append("lamp")
    other.things.append("rope")  # told of once: where it was found says enough
    driver.room.state.rows.append(1)
    driver.tick(3)
    assert warnings(driver) == []
    driver.tick(10)
    told = [("bag", bag.id, "things"), ("board", 0, "rows")]
    assert warnings(driver) == (told if developing else [])


def test_of_private_state_the_player_is_named() -> None:
    driver = Driver(Bags, clock=lambda: 0.0)
    driver.join("ann")
    wallet = driver.room.private("ann", create=True)
    wallet.has = []
    driver.tick()
    wallet.has.append("ring")
    driver.tick(10)
    warned = [output for output in driver.outputs if isinstance(output, LogOut)]
    assert [output.fields["player"] for output in warned if output.event == "room.json_changed_in_place"] == [
        "ann"
    ]
