"""The scenarios that a harness for rooms must be able to tell, in the words of a game's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import PlayhallError
from playhall.room import (
    Call,
    CallRejected,
    Connection,
    Entity,
    Message,
    Room,
    Schema,
    f32,
    i16,
    u8,
    u32,
    writable,
)
from playhall.testing import RoomHost


class Board(Entity):
    moves: u32 = 0


class Purse(Entity):
    moves: u32 = 0
    coins: u32 = 0
    volume: writable[u8] = 5


class Dot(Entity):
    x: f32 = 50
    y: f32 = 50


class Dots(Room[Board, Purse]):
    schema = Schema(state=Board, private=Purse, entities=[Dot])

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Dot(), owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "move", "x": int() as x, "y": int() as y}:
                for dot in self.entities.all(Dot, owner=conn.player):
                    dot.x, dot.y = x, y
                self.state.moves += 1
                self.private(conn).moves += 1

    def on_player_leave(self, player: str) -> None:
        for dot in self.entities.all(Dot, owner=player):
            self.entities.delete(dot)


@pytest.mark.ledger("TEST-09")
async def test_a_move_is_seen_by_all_and_counted_for_the_one_who_made_it(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.send({"type": "move", "x": 10, "y": 20})
    await t.tick()
    [dot] = bob.entities.all(Dot, owner="alice")
    assert (dot.x, dot.y) == (10, 20)
    assert (bob.state.moves, alice.private.moves, bob.private.moves) == (1, 1, 0)


@pytest.mark.ledger("TEST-10")
async def test_counts_outlive_a_hibernation_and_dots_do_not(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice = await t.connect("alice")
    alice.send({"type": "move", "x": 10, "y": 20})
    await t.tick()
    await alice.leave()
    await t.hibernate()
    back = await t.connect("alice")
    assert (back.state.moves, back.private.moves) == (1, 1)
    [dot] = back.entities.all(Dot)
    assert (dot.x, dot.y) == (50, 50)  # a new one


@pytest.mark.ledger("TEST-11")
async def test_a_crash_leaves_one_dot_where_it_was(room_host: RoomHost) -> None:
    t = room_host.room(Dots)
    alice = await t.connect("alice")
    alice.send({"type": "move", "x": 10, "y": 20})
    await t.tick()
    await t.crash()
    await alice.reconnected()
    [dot] = alice.mine(Dot)
    assert alice.entities.all(Dot) == [dot]
    assert (dot.x, dot.y) == (10, 20)


class Buy(Call[int]):
    price: int


class Runner(Entity):
    x: f32 = 0


class Aim(Entity):
    angle: writable[i16] = 0


class Arena(Room[None, Purse]):
    schema = Schema(private=Purse, entities=[Runner, Aim], calls=[Buy])

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Runner(), owner=conn.player, once=True)
        self.entities.add(Aim(), owner=conn.player, once=True)
        self.send(conn, {"type": "hello", "to": conn.player})

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> dict[str, Any] | None:
        return {**values, "angle": values["angle"] % 360} if isinstance(entity, Aim) else values

    @Buy.handler
    def buy(self, conn: Connection, ask: Buy) -> int:
        purse = self.private(conn)
        if purse.coins < ask.price:
            raise CallRejected("not enough coins")
        purse.coins -= ask.price
        return purse.coins


@pytest.mark.ledger("TEST-12")
async def test_a_call_is_rejected_with_the_rooms_words_or_answered_once_it_is_saved(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Arena)
    alice = await t.connect("alice")
    alice.expect_message({"type": "hello"})
    with pytest.raises(PlayhallError, match="not enough coins"):
        await alice.call(Buy(price=5))
    t.room.private("alice", create=True).coins = 9
    bought = alice.call(Buy(price=5))
    await room_host.settle()
    assert not bought.done()
    await t.tick()
    assert await bought == 4
    assert t.stored().private["alice"]["coins"] == 4


@pytest.mark.ledger("TEST-13")
async def test_an_owner_is_corrected_and_others_see_what_the_room_made_of_it(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    [aim] = alice.mine(Aim)
    aim.angle = 400
    await t.tick(2)
    alice.expect_corrected(aim, "angle")
    alice.expect_corrected(t.room.entities.all(Aim, owner="alice")[0], "angle")
    with pytest.raises(AssertionError, match="was not corrected in angle"):
        bob.expect_corrected(aim, "angle")
    with pytest.raises(AssertionError, match="no field 'angel'"):
        alice.expect_corrected(aim, "angel")
    assert (aim.angle, [other.angle for other in bob.entities.all(Aim, owner="alice")]) == (40, [40])


@pytest.mark.ledger("TEST-14")
async def test_one_runner_after_a_crash_and_private_state_after_a_hibernation(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    alice = await t.connect("alice")
    await t.crash()
    await alice.reconnected()
    assert len(alice.entities.all(Runner)) == 1
    alice.private.volume = 3
    await t.tick(2)
    await t.hibernate()
    assert alice.closed_with == 4011
    back = await t.connect("alice")
    assert back.private.volume == 3
    assert len(back.entities.all(Runner)) == 1


class Lobby(Room):
    schema = Schema()

    def on_join(self, conn: Connection) -> None:
        match conn.meta:
            case {"displayName": str(name)}:
                self.presence.set(conn.player, name=name)


@pytest.mark.ledger("TEST-19")
async def test_others_see_name_and_status_of_a_player(room_host: RoomHost) -> None:
    t = room_host.room(Lobby)
    alice, bob = await t.connect("alice", meta={"displayName": "Alice"}), await t.connect("bob")
    alice.presence.set_status({"ready": True})
    await t.tick(2)
    shown = bob.presence["alice"]
    assert (shown.name, shown.status, shown.connected) == ("Alice", {"ready": True}, True)
    assert len(t.room.presence) == 2


class Deck(Entity, hidden=True):
    card: str


class Table(Room):
    schema = Schema(entities=[Deck])

    def on_create(self) -> None:
        self.entities.add(Deck(card="ace"))


@pytest.mark.ledger("TEST-20")
async def test_hidden_entities_are_stored_and_never_seen(room_host: RoomHost) -> None:
    t = room_host.room(Table)
    alice = await t.connect("alice")
    await t.tick()
    assert (alice.entities.all(Deck), len(alice.entities)) == ([], 0)
    assert [deck.fields for deck in t.stored().all(Deck)] == [{"card": "ace"}]
