"""`RoomClient` over a room in memory: what a game calls, and what calls it."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import PlayhallError, RoomClient
from playhall.room import Connection, Entity, Message, Room, Schema, u32
from playhall.testing import RoomHost, TestRoom


class Board(Entity):
    n: u32 = 0


class Mine(Entity):
    n: u32 = 0


class Dot(Entity):
    x: u32


SCHEMA = Schema(state=Board, private=Mine, entities=[Dot])


class Game(Room[Board, Mine]):
    schema = SCHEMA

    def on_join(self, conn: Connection) -> None:
        self.send(conn, "welcome")
        self.entities.add(Dot(x=1), owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Message) -> None:
        self.state.n += 1
        self.send(conn, [message, conn.client_tick])
        if message == "kick":
            self.kick(conn)

    def on_unreliable(self, conn: Connection, message: Message) -> None:
        self.send(conn, ["unreliable", message], unreliable=True)


def client_of(t: TestRoom[Any, Any, Any]) -> RoomClient[Board, Mine]:
    return RoomClient(
        "http://playhall.test",
        project="test",
        room="main",
        schema=SCHEMA,
        dial=lambda receiver: t.dial(receiver, "alice", None),
    )


@pytest.mark.ledger("CENT-02")
async def test_listeners_added_before_ready_hear_of_the_first_state_and_later_ones_do_not(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Game)
    client = client_of(t)
    early: list[Any] = []
    client.entities.on_enter(Dot, lambda dot: early.append(dot.owner))
    client.entities.on_enter(Board, lambda board: early.append(board.n))
    client.presence.on_join(lambda entry: early.append(entry.player))
    client.on("tick", early.append)
    client.on("waking", lambda: early.append("waking"))
    client.on("message", early.append)
    await client.ready
    assert early == ["waking", "welcome", "alice", 0, "alice", 0]
    late: list[Dot] = []
    client.entities.on_enter(Dot, late.append)
    await t.tick(3)
    assert late == []
    await client.leave()


async def test_messages_of_on_join_wait_for_the_first_who_listens_in_time(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    client = client_of(t)
    await client.ready
    heard: list[Message] = []
    client.on("message", heard.append)
    client.on("message", heard.append)
    assert heard == ["welcome"]
    await client.leave()
    late = client_of(t)
    await late.ready
    await t.advance(1.1)
    late.on("message", heard.append)
    assert heard == ["welcome"]


async def test_ready_can_be_awaited_again(room_host: RoomHost) -> None:
    client = client_of(room_host.room(Game))
    await client.ready
    await client.ready
    await client.leave()
    await client.ready


async def test_state_before_ready_says_what_to_do(room_host: RoomHost) -> None:
    client = client_of(room_host.room(Game))
    with pytest.raises(PlayhallError, match="await"):
        _ = client.state
    with pytest.raises(PlayhallError, match="connecting"):
        client.send("too soon")
    assert (client.status, client.server_tick(), client.tick) == ("connecting", 0.0, 0)
    await client.leave()
    with pytest.raises(PlayhallError):
        await client.ready


async def test_messages_carry_the_tick_that_was_applied(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.send("one")
    await t.tick()
    alice.send("two")
    alice.send("three", unreliable=True)
    await t.tick()
    assert alice.messages == ["welcome", ["one", 0], ["two", 1], ["unreliable", "three"]]


async def test_the_server_tick_follows_the_room(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    await t.advance(30.02)
    assert alice.server_tick() == pytest.approx(30.02 * 20, abs=0.1)
    assert t.room.tick == 600
    assert (alice.rtt, alice.tick_rate) == (0.0, 20)


@pytest.mark.ledger("CENT-10")
async def test_closed_tells_the_code_and_is_not_told_of_leaving(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    errors: list[PlayhallError] = []
    for client in (alice, bob):
        client.on("closed", errors.append)
    await bob.leave()
    alice.send("kick")
    await t.tick()
    [error] = errors
    assert (error.code, alice.status, bob.status) == (4006, "closed", "closed")


async def test_a_listener_may_send_and_leave(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.on("tick", lambda tick: alice.send(tick))
    alice.send("go")
    await t.tick(3)
    assert len(alice.messages) >= 3


async def test_an_event_that_does_not_exist(room_host: RoomHost) -> None:
    client = client_of(room_host.room(Game))
    with pytest.raises(ValueError, match="disconnected"):
        client.on("disconected", print)  # type: ignore[call-overload]
