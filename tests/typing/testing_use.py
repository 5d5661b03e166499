"""What a game's tests write, and what both checkers must infer of it."""

# pyright: strict
import asyncio
from typing import assert_type

from playhall.client import JsonIn, Net, connect
from playhall.room import Call, Connection, Entity, Message, Room, Schema, u8, u32, writable
from playhall.testing import RoomData, RoomHost, StillLoop, StoredBot, TestClient, TestRoom


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0
    volume: writable[u8] = 5


class Dot(Entity):
    pass


class Buy(Call[int]):
    price: int


class Game(Room[Board, Mine]):
    schema = Schema(state=Board, private=Mine, entities=[Dot], calls=[Buy])
    extra: int = 3

    @Buy.handler
    def buy(self, conn: Connection, ask: Buy) -> int:
        return ask.price


class Bare(Room):
    schema = Schema()


async def test_game(room_host: RoomHost) -> None:
    t = room_host.room(Game, id="one", max_players=4)
    assert_type(t, TestRoom[Game, Board, Mine])
    assert_type(t.room, Game)
    assert_type(t.room.extra, int)
    assert_type(t.status, str)
    assert_type(t.errors, list[str])
    assert_type(t.log, list[str])
    net = Net(rtt=0.1, jitter=0.01, loss=0.1, reorder=0.1, duplicate=0.1, bandwidth=10_000, seed=3)
    alice = await t.connect("alice", meta={"name": "Alice"}, net=net)
    assert_type(alice, TestClient[Board, Mine])
    assert_type(alice.state, Board)
    assert_type(alice.private.coins, int)
    assert_type(alice.messages, list[Message])
    assert_type(alice.closed_with, int | None)
    assert_type(alice.mine(Dot), list[Dot])
    assert_type(await room_host.wait(alice.call(Buy(price=1)), timeout=3), int)
    alice.net = Net()
    alice.cut()
    alice.mend()
    alice.private.volume = 3
    await alice.drop()
    await alice.reconnected()
    alice.expect_message({"type": "hello"})
    for dot in t.room.entities.all(Dot):
        alice.expect_sees(dot)
        alice.expect_not_sees(dot)
    alice.expect_corrected(alice.private, "volume")
    await t.tick(2)
    await t.advance(0.5)
    await t.crash()
    await t.hibernate()
    await t.wake()
    assert_type(await t.request({"ask": 1}), JsonIn)
    assert_type(t.stored(), RoomData)
    assert_type(t.stored().bots, tuple[StoredBot, ...])
    await alice.leave()


async def test_bare(room_host: RoomHost) -> None:
    t = room_host.room(Bare)
    assert_type(t, TestRoom[Bare, None, None])
    bob = await t.connect("bob")
    assert_type(bob.state, None)


async def without_pytest() -> None:
    async with RoomHost(seed=4) as host:
        await test_game(host)


async def on_a_bad_network() -> None:
    room = await connect(
        "http://localhost:7350", project="p", room="r", schema=Game.schema, simulate=Net(rtt=0.1)
    )
    assert_type(room.state, Board)


with asyncio.Runner(loop_factory=StillLoop) as runner:
    runner.run(without_pytest())
