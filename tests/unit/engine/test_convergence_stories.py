"""Schedules of the proof of convergence, in order: where a rule of the protocol is left out, they go wrong.

Each is short for what the machines found with that rule broken.
"""

from __future__ import annotations

from typing import Any

from playhall.engine.schema import PRIVATE_ID
from playhall.room import Entity, Interest, Limit, Room, Schema, owner_only, u8, u32, writable
from tests.support.converging import Table
from tests.support.watched import Player


class Pawn(Entity):
    pose: writable[u8] = 0
    score: u8 = 0
    hand: owner_only[u8] = 0
    data: bytes = b""


class Chip(Entity):
    score: u8 = 0


class Purse(Entity):
    coins: u32 = 0


class Game(Room[None, Purse]):
    schema = Schema(private=Purse, entities=[Pawn, Chip])
    tick_rate = 5

    def on_create(self) -> None:
        for id in (2, 3):
            self.entities.add(Pawn(), id=id, owner="ann")


class All(Interest):
    limit = Limit(100, priority=lambda room, conn, entity: entity.id, bytes_per_second=1_000)

    def keys_of(self, room: Any, entity: Any) -> list[int]:
        return [0]

    def subscriptions_of(self, room: Any, conn: Any) -> list[int]:
        return [0]


class Rationed(Game):
    interest = All()


def sit(room_class: type[Game] = Game) -> tuple[Table, Player, Player]:
    table = Table(room_class, saved=lambda core: None, whole=lambda player, entity: None)
    ann, bob = table.player("ann"), table.player("bob")
    for player in (ann, bob):
        table.carry(player)
        assert player.core.status == "open"
    return table, ann, bob


def rest(table: Table) -> None:
    """Let all come back, all be said, and all be answered."""
    for _ in range(20):
        for player in table.players.values():
            table.carry(player)
        table.tick()
    for player in table.players.values():
        table.carry(player)
        assert player.core.status == "open"


def pawn(player: Player, id: int = 2) -> Pawn:
    found = player.entities.get(Pawn, id)
    assert found is not None
    return found


def test_a_write_that_was_lost_with_the_connection_is_taken_back() -> None:
    """The room never got it, and changed nothing: only the resume can tell its owner."""
    table, ann, bob = sit()
    pawn(ann).pose = 7
    table.tick()
    table.drop(ann, noticed=False)
    rest(table)
    assert pawn(ann).pose == pawn(bob).pose == table.room.entities.get(Pawn, 2).pose == 0
    assert ann.restored == 1


def test_a_write_that_crosses_a_correction_loses() -> None:
    table, ann, bob = sit()
    pawn(ann).pose = 7
    table.tick()
    table.room.entities.get(Pawn, 2).pose = 5
    table.tick()
    # The write was sent before the correction came, and comes after the room has said it.
    table.hear(ann, 9)
    rest(table)
    assert pawn(ann).pose == pawn(bob).pose == table.room.entities.get(Pawn, 2).pose == 5


def test_a_change_that_a_budget_kept_back_comes_after_a_resume() -> None:
    """The client's version went on past it, by what could not wait."""
    table, ann, bob = sit(Rationed)
    room = table.room
    room.entities.get(Pawn, 3).data = bytes(n * 31 % 251 for n in range(6_000))
    table.tick()
    room.entities.add(Chip(), id=9)
    room.entities.get(Pawn, 2).score = 8
    room.private("bob", create=True).coins = 1
    table.tick()
    table.carry(bob)
    purse = bob.core.replica.get(PRIVATE_ID)
    assert isinstance(purse, Purse)
    assert (purse.coins, pawn(bob).score) == (1, 0)
    table.drop(bob, noticed=True)
    rest(table)
    assert (pawn(bob).score, len(bob.entities)) == (8, 3)
    assert (pawn(ann).score, len(ann.entities)) == (8, 3)


def test_a_new_life_of_the_room_owes_nothing_to_the_old_ones_versions() -> None:
    """What was not durable is gone, though clients had seen it, and versions have been given out anew."""
    table, ann, bob = sit()
    table.store_answers = False
    for score in (1, 2, 3):
        table.room.entities.get(Pawn, 2).score = score
        table.tick()
    for player in (ann, bob):
        table.carry(player)
        assert pawn(player).score == 3
    table.crash(1, with_sockets=True)
    table.store_answers = True
    for score in range(1, 9):
        table.room.entities.get(Pawn, 3).score = score
        table.tick()
    rest(table)
    assert pawn(ann).score == pawn(bob).score == table.room.entities.get(Pawn, 2).score == 1


def test_what_only_owners_see_comes_with_an_ownership_and_to_nobody_else() -> None:
    table, ann, bob = sit()
    table.room.entities.get(Pawn, 2).hand = 5
    table.tick()
    bob.withheld = True
    table.room.entities.set_owner(table.room.entities.get(Pawn, 2), "bob")
    table.tick()
    rest(table)
    assert (pawn(bob).hand, pawn(bob).owner, pawn(ann).owner) == (5, "bob", "bob")
    table.room.entities.get(Pawn, 2).hand = 6
    rest(table)
    assert (pawn(bob).hand, pawn(ann).hand) == (6, 5)


def test_an_id_that_is_another_kinds_while_nobody_reads() -> None:
    table, ann, bob = sit()
    table.drop(bob, noticed=True)
    table.credit = 1
    table.room.entities.delete(table.room.entities.get(Pawn, 2))
    table.tick()
    table.room.entities.add(Chip(score=4), id=2)
    table.tick()
    table.hear(table.player("bob"), 2)
    table.room.entities.delete(table.room.entities.get(Chip, 2))
    table.room.entities.add(Pawn(score=9), id=2)
    rest(table)
    for player in (ann, bob):
        assert (pawn(player).score, pawn(player).owner) == (9, None)
