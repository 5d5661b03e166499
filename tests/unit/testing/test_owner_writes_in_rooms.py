"""Owner writes as a game tests them: real clients of a real room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from playhall.room import Connection, Entity, Interest, Room, Schema, f32, owner_only, u8, writable
from playhall.testing import RoomHost


class Cursor(Entity):
    x: writable[f32] = 0
    color: u8 = 0


class Hand(Entity):
    cards: owner_only[u8] = 0


class Settings(Entity):
    volume: writable[u8] = 5


class Nothing(Interest):
    """Shows nobody anything: what a player sees is what it owns."""

    def keys_of(self, room: Any, entity: Any) -> list[str]:
        return ["hidden"]

    def subscriptions_of(self, room: Any, conn: Any) -> list[str]:
        return []


class Board(Room[None, Settings]):
    schema = Schema(private=Settings, entities=[Cursor, Hand])

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Cursor(), owner=conn.player, once=True)

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        if isinstance(entity, Settings) and values["volume"] > 100:
            return None
        if isinstance(entity, Cursor) and "x" in values:
            return {**values, "x": min(values["x"], 800.0)}
        return values

    def on_tick(self, dt: float) -> None:
        for player, entry in self.presence.items():
            if entry.status == "cheating":
                self.presence.set(player, status="honest")


class Dark(Board):
    interest = Nothing()


@pytest.mark.ledger("OWN-21")
async def test_a_player_writes_its_private_state_subject_to_on_write(room_host: RoomHost) -> None:
    t = room_host.room(Board)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.private.volume = 7
    assert alice.private.volume == 7
    await t.tick(2)
    assert (t.room.private("alice", create=True).volume, bob.private.volume) == (7, 5)
    alice.private.volume = 101
    await t.tick(2)
    assert (t.room.private("alice", create=True).volume, alice.private.volume) == (7, 7)
    alice.expect_corrected(alice.private, "volume")


@pytest.mark.ledger("PRES-08")
async def test_the_room_corrects_a_status_afterwards(room_host: RoomHost) -> None:
    t = room_host.room(Board)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    heard: list[Any] = []
    alice.presence.on_change(lambda entry, names: heard.append((entry.status, *names)))
    alice.presence.set_status("ready")
    await t.tick(2)
    assert (t.room.presence["alice"].status, bob.presence["alice"].status, heard) == ("ready", "ready", [])
    alice.presence.set_status("cheating")
    assert alice.presence["alice"].status == "cheating"
    await t.tick(2)
    assert (alice.presence["alice"].status, bob.presence["alice"].status) == ("honest", "honest")
    assert heard == [("honest", "status")]


@pytest.mark.ledger("OWN-03")
async def test_who_owns_what_it_cannot_write_sees_it_and_what_is_for_owners(room_host: RoomHost) -> None:
    t = room_host.room(Dark)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    hand = Hand(cards=9)
    t.room.entities.add(hand, owner="alice")
    await t.tick()
    [held] = alice.entities.mine(Hand)
    assert (held.cards, t.room.entities.all(Hand, owner="alice")) == (9, [hand])
    bob.expect_not_sees(hand)
    with pytest.raises(TypeError, match=r"hand \d+: cards .* not writable"):
        held.cards = 1
    hand.cards = 8
    await t.tick()
    assert held.cards == 8


@pytest.mark.ledger("OWN-13")
async def test_a_client_makes_no_entities_ends_none_and_gives_none_away(room_host: RoomHost) -> None:
    t = room_host.room(Board)
    alice, _ = await t.connect("alice"), await t.connect("bob")
    [cursor] = alice.entities.mine(Cursor)
    for name in ("add", "delete", "set_owner", "create"):
        assert not hasattr(alice.entities, name)
    with pytest.raises(AttributeError):
        cursor.owner = "bob"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        cursor.id = 3  # type: ignore[misc]
    mine = Cursor(x=5)
    mine.x = 6
    await t.tick(2)
    assert len(t.room.entities) == 2
    assert [each.owner for each in t.room.entities.all(Cursor)] == ["alice", "bob"]


async def test_what_a_player_writes_last_is_in_the_room_as_it_leaves_and_after_a_hibernation(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Board)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    await t.tick()
    [cursor] = alice.entities.mine(Cursor)
    cursor.x = 900.0
    await alice.leave()
    assert t.room.entities.all(Cursor, owner="alice")[0].x == 800
    [his] = bob.entities.mine(Cursor)
    his.x = 3.0
    await room_host.settle()
    await t.hibernate()
    await t.wake()
    assert t.room.entities.all(Cursor, owner="bob")[0].x == 3


async def test_a_write_as_the_connection_drops_is_lost_and_the_room_says_what_it_holds(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Board)
    alice, _ = await t.connect("alice"), await t.connect("bob")
    [cursor] = alice.entities.mine(Cursor)
    cursor.x = 5.0
    await t.tick(2)
    cursor.x = 6.0
    await alice.drop()
    cursor.x = 7.0
    assert cursor.x == 7
    await alice.reconnected()
    await t.tick(2)
    assert alice.entities.mine(Cursor)[0].x == t.room.entities.all(Cursor, owner="alice")[0].x == 5
