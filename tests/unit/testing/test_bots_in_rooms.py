"""Bots, kicks and bans as real clients see them."""

from __future__ import annotations

import pytest

import playhall.client
import playhall.room
from playhall.client import PlayhallError
from playhall.room import Bot, Connection, Entity, Message, Room, Schema, f32
from playhall.testing import RoomHost


class Paddle(Entity):
    x: f32 = 0


class Opponent(Bot):
    pace: float = 1.0

    def start(self, room: Court) -> None:
        room.entities.add(Paddle(), owner=self.player, once=True)

    def tick(self, room: Court) -> None:
        for paddle in room.entities.all(Paddle, owner=self.player):
            paddle.x += self.pace


class Court(Room):
    """Two play. Whoever is alone plays with a bot, and whoever comes then takes over where it was."""

    schema = Schema(entities=[Paddle])
    bot_kinds = (Opponent,)
    max_players = 2

    def __init__(self) -> None:
        self.left_at: dict[str, float] = {}

    def on_join(self, conn: Connection) -> None:
        if conn.meta == "rude":
            self.kick(conn)
            return
        x = max(self.left_at.values(), default=0)
        self.entities.add(Paddle(x=x), owner=conn.player, once=True)
        if len(self.connections) + len(self.bots) < self.max_players:
            self.bots.add(Opponent(pace=2.0), name="Robo", status={"ready": True})

    def on_player_leave(self, player: str) -> None:
        for paddle in self.entities.all(Paddle, owner=player):
            self.left_at[player] = paddle.x
            self.entities.delete(paddle)

    def on_message(self, conn: Connection, message: Message) -> None:
        if isinstance(message, str):
            self.ban(message)


@pytest.mark.ledger("BOT-07", "BOT-19")
async def test_a_bot_is_a_player_without_a_connection(room_host: RoomHost) -> None:
    t = room_host.room(Court)
    alice = await t.connect("alice")
    robo = alice.presence["bot:1"]
    assert (robo.name, robo.status, robo.connected) == ("Robo", {"ready": True}, True)
    await t.tick(3)
    [paddle] = alice.entities.all(Paddle, owner="bot:1")
    assert paddle.x == 6
    assert list(t.room.connections) == ["alice"]
    # A client that plays by itself is a person to the room: a bot of another sort.
    await t.connect("simulated")
    assert list(t.room.connections) == ["alice", "simulated"]
    assert not playhall.room.is_bot("simulated")


@pytest.mark.ledger("BOT-14")
async def test_whoever_comes_takes_the_bots_seat_and_goes_on_from_where_it_was(room_host: RoomHost) -> None:
    t = room_host.room(Court)
    alice = await t.connect("alice")
    gone: list[str] = []
    alice.presence.on_leave(lambda entry: gone.append(entry.player))
    await t.tick(4)
    bob = await t.connect("bob")
    # The first state is of after the change.
    assert list(bob.presence) == ["alice", "bob"]
    assert [paddle.x for paddle in bob.entities.all(Paddle, owner="bob")] == [8]
    assert bob.entities.all(Paddle, owner="bot:1") == []
    await t.tick()
    assert (gone, set(alice.presence)) == (["bot:1"], {"alice", "bob"})
    with pytest.raises(PlayhallError) as full:
        await t.connect("carol")
    assert full.value.code == 4003
    await bob.leave()
    await t.tick()
    assert alice.presence["bob"].connected is False
    await t.connect("bob")
    assert len(t.room.bots) == 0


@pytest.mark.ledger("BOT-16", "BOT-17")
@pytest.mark.parametrize("how", ["crash", "hibernate"])
async def test_a_bot_plays_on_after_a_wake(room_host: RoomHost, how: str) -> None:
    t = room_host.room(Court)
    alice = await t.connect("alice")
    await t.tick(3)
    if how == "crash":
        await t.crash()
        await alice.reconnected()
    else:
        await t.hibernate()
        alice = await t.connect("alice")
    await t.tick(2)
    [paddle] = alice.entities.all(Paddle, owner="bot:1")
    assert (paddle.x, alice.presence["bot:1"].status) == (10, {"ready": True})
    assert len(t.room.bots) == 1


@pytest.mark.ledger("BOT-18")
async def test_a_room_of_bots_hibernates(room_host: RoomHost) -> None:
    t = room_host.room(Court)
    alice = await t.connect("alice")
    await t.tick()
    await alice.leave()
    await t.advance(29)
    assert t.status == "active"
    await t.advance(2)
    assert t.status == "hibernated"


@pytest.mark.ledger("PRES-13", "HOOK-21")
async def test_who_is_kicked_or_banned_in_its_on_join_is_never_shown(room_host: RoomHost) -> None:
    t = room_host.room(Court)
    alice = await t.connect("alice")
    seen: list[str] = []
    alice.presence.on_join(lambda entry: seen.append(entry.player))
    alice.presence.on_change(lambda entry, _: seen.append(entry.player))
    with pytest.raises(PlayhallError) as kicked:
        await t.connect("mallory", meta="rude")
    assert (kicked.value.code, kicked.value.message) == (4006, "kicked")
    await t.advance(12)
    assert (seen, set(t.room.presence)) == ([], {"alice"})

    bob = await t.connect("bob")
    await t.tick()
    assert seen == ["bob"]
    alice.send("bob")
    await t.tick()
    assert (bob.status, bob.closed_with, bob.events[-1]) == ("closed", 4006, "closed")
    assert set(alice.presence) == {"alice"}
    # The client does not come back by itself, and cannot.
    await t.advance(30)
    assert "bob" not in t.room.connections
    for _ in range(2):
        with pytest.raises(PlayhallError) as banned:
            await t.connect("bob")
        assert (banned.value.code, banned.value.message) == (4006, "banned")
        await t.tick()
        await t.crash()
        await alice.reconnected()
    assert [player for player in seen if not playhall.client.is_bot(player)] == ["bob"]
    assert set(t.stored().banned) == {"bob"}


@pytest.mark.ledger("BOT-02")
def test_both_packages_tell_bots_from_people() -> None:
    assert playhall.client.is_bot is playhall.room.is_bot
