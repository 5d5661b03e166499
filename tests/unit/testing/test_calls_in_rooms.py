"""Calls and requests from end to end: a real client, a real room, and the clock of a test."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any, Literal

import msgspec
import pytest

from playhall.client import PlayhallError, RoomClient
from playhall.engine.schema import EMPTY
from playhall.room import (
    Call,
    CallRejected,
    Connection,
    Entity,
    Input,
    JsonIn,
    JsonOut,
    Message,
    Room,
    Schema,
    u8,
    u32,
)
from playhall.testing import RoomHost

Item = Literal["ring", "halo"]
PRICES: dict[Item, int] = {"ring": 3, "halo": 5}


class Board(Entity):
    sold: u32 = 0


class Mine(Entity):
    coins: u32 = 0


class Card(msgspec.Struct):
    suit: str


class Buy(Call[int]):
    item: Item


class Draw(Call[list[Card]]):
    count: u8


class Look(Call[JsonOut]):
    what: JsonIn = None


class Wait(Call):
    seconds: float


class Control(Input):
    dx: u8


SCHEMA = Schema(state=Board, private=Mine, calls=[Buy, Draw, Look, Wait])


class Shop(Room[Board, Mine]):
    schema = SCHEMA

    def __init__(self) -> None:
        self.waited = 0

    @Buy.handler
    def buy(self, conn: Connection, ask: Buy) -> int:
        mine = self.private(conn)
        if mine.coins < PRICES[ask.item]:
            raise CallRejected("not enough coins")
        mine.coins -= PRICES[ask.item]
        self.state.sold += 1
        return mine.coins

    @Draw.handler
    async def draw(self, conn: Connection, ask: Draw) -> list[Card]:
        await asyncio.sleep(1)
        return [Card("hearts")] * ask.count

    @Look.handler
    def look(self, conn: Connection, ask: Look) -> JsonOut:
        if ask.what == "bug":
            raise ValueError("a bug")
        return ask.what

    @Wait.handler
    async def wait(self, conn: Connection, ask: Wait) -> None:
        await asyncio.sleep(ask.seconds)
        self.waited += 1

    async def on_request(self, message: Message) -> JsonOut:
        match message:
            case "sell":
                self.state.sold += 1
                return self.state.sold
            case "wait":
                await asyncio.sleep(5)
                return self.now()
            case "no":
                raise CallRejected("the shop is closed")
            case "stop":
                self.request_hibernate()
                return "soon"
            case bytes():
                return len(message)
            case _:
                raise LookupError(f"what is {message!r}?")


@pytest.mark.ledger("TEST-12")
async def test_a_purchase_is_rejected_or_answered_once_saved(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    with pytest.raises(PlayhallError, match="not enough coins") as raised:
        await alice.call(Buy(item="halo"))
    assert (raised.value.code, raised.value.message) == (422, "not enough coins")
    t.room.private("alice", create=True).coins = 9
    bought = alice.call(Buy(item="halo"))
    await room_host.settle()
    assert not bought.done()
    await t.tick()
    assert await bought == 4
    assert t.stored().private["alice"] == {"coins": 4}
    assert alice.private.coins == 4


async def test_a_reply_comes_as_the_type_the_call_declares(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    drawn = alice.call(Draw(count=2))
    await t.advance(1)
    assert await drawn == [Card("hearts"), Card("hearts")]
    sent: JsonOut = {"a": [1, None, 2.5]}
    assert await alice.call(Look(what={"a": [1, None, 2.5]})) == sent


async def test_a_reply_that_is_not_as_this_client_declares(room_host: RoomHost) -> None:
    class OtherLook(Call[int], name="look"):
        what: str

    t = room_host.room(Shop)
    other = RoomClient(
        "http://playhall.test",
        project="test",
        room="main",
        schema=Schema(state=Board, private=Mine, calls=[OtherLook]),
        dial=lambda receiver: t.dial(receiver, "alice", None),
    )
    await other.ready
    with pytest.raises(PlayhallError, match=r"the reply to look is not as declared: .*`int`") as raised:
        await other.call(OtherLook(what="text"))
    assert raised.value.code == 0
    await other.leave()


@pytest.mark.ledger("CALL-14", "CALL-16")
async def test_every_way_a_call_fails(room_host: RoomHost) -> None:
    class Steal(Call):
        pass

    t = room_host.room(Shop)
    alice = await t.connect("alice")
    codes: list[int] = []

    async def code_of(future: asyncio.Future[Any]) -> int:
        with pytest.raises(PlayhallError) as raised:
            await future
        return raised.value.code

    codes.append(await code_of(alice.call(Look(what="bug"))))
    assert "a bug" in t.errors[0]
    codes.append(await code_of(alice.call(Buy(item="crown"))))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Steal is no call of the schema"):
        alice.call(Steal())
    slow = alice.call(Wait(seconds=5), timeout=2)
    await t.advance(2)
    codes.append(await code_of(slow))
    cut = alice.call(Wait(seconds=1))
    await alice.drop()
    codes.append(await code_of(cut))
    codes.append(await code_of(alice.call(Look())))
    await alice.reconnected()
    crashed = alice.call(Wait(seconds=1))
    await t.crash()
    codes.append(await code_of(crashed))
    await alice.reconnected()
    ended = alice.call(Wait(seconds=1))
    await t.hibernate()
    codes.append(await code_of(ended))
    assert codes == [422, 422, 0, 0, 0, 0, 0]


@pytest.mark.ledger("CALL-13")
async def test_the_time_of_a_call_is_ten_seconds_unless_it_is_given(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    alice.cut()
    long, short = alice.call(Look()), alice.call(Look(), timeout=3)
    await t.advance(2.9)
    assert (long.done(), short.done()) == (False, False)
    await t.advance(0.2)
    assert (long.done(), short.done()) == (False, True)
    await t.advance(6.8)
    assert not long.done()
    await t.advance(0.2)
    for future in (long, short):
        with pytest.raises(PlayhallError, match="not answered in time"):
            await future
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="above 0"):
            alice.call(Look(), timeout=timeout)


@pytest.mark.ledger("CALL-15")
async def test_a_call_that_was_lost_is_not_made_again(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    t.room.private("alice", create=True).coins = 9
    await t.tick()
    lost = alice.call(Buy(item="ring"))
    await room_host.settle()
    await alice.drop()
    with pytest.raises(PlayhallError):
        await lost
    await alice.reconnected()
    await t.advance(30)
    assert (t.room.state.sold, alice.private.coins) == (1, 6)


@pytest.mark.ledger("CALL-17")
async def test_a_client_that_has_not_joined_cannot_call(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    client = RoomClient(
        "http://playhall.test",
        project="test",
        room="main",
        schema=SCHEMA,
        dial=lambda receiver: t.dial(receiver, "alice", None),
    )
    with pytest.raises(PlayhallError, match="connecting, and cannot call"):
        client.call(Look())
    await client.ready
    assert await client.call(Look(what=1)) == 1
    await client.leave()
    with pytest.raises(PlayhallError, match="closed, and cannot call"):
        client.call(Look())


async def test_a_cancelled_call_is_forgotten_and_the_room_goes_on(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    wait = alice.call(Wait(seconds=1))
    await room_host.settle()
    wait.cancel()
    await t.advance(1.1)
    assert t.room.waited == 1
    assert await alice.call(Look(what="still here")) == "still here"


async def test_a_call_that_is_still_waiting_fails_when_its_client_leaves(
    room_host: RoomHost, caplog: pytest.LogCaptureFixture
) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    wait = alice.call(Wait(seconds=1))
    await alice.leave()
    with caplog.at_level(logging.ERROR), pytest.raises(PlayhallError) as raised:
        await wait
    gc.collect()
    assert (raised.value.code, caplog.records) == (0, [])


async def test_calls_of_a_connection_that_drops_run_to_their_end(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    lost = alice.call(Wait(seconds=3))
    await room_host.settle()
    await alice.drop()
    with pytest.raises(PlayhallError):
        await lost
    await t.advance(3.1)
    assert t.room.waited == 1


@pytest.mark.ledger("SCHM-14")
async def test_a_schema_takes_any_of_its_parts_and_a_room_needs_none(room_host: RoomHost) -> None:
    class Whole(Room[Board, Mine]):
        schema = Schema(state=Board, private=Mine, entities=[], calls=[], input=Control)

    class Only(Room):
        schema = Schema(calls=[Look])

        @Look.handler
        def look(self, conn: Connection, ask: Look) -> JsonOut:
            return ask.what

    class Bare(Room):
        def on_message(self, conn: Connection, message: Message) -> None:
            self.broadcast(message)

    parts: list[Any] = [
        Schema(state=Board),
        Schema(private=Mine),
        Schema(entities=[Board]),
        Schema(input=Control),
        Schema(calls=[Look]),
    ]
    assert len({schema.hash for schema in parts}) == 5
    assert parts[-1].hash == EMPTY.hash
    whole = await room_host.room(Whole, id="whole").connect("alice")
    assert whole.state.sold == 0
    only = await room_host.room(Only, id="only").connect("alice")
    assert await only.call(Look(what=[1])) == [1]
    bare = room_host.room(Bare, id="bare")
    alice, bob = await bare.connect("alice"), await bare.connect("bob")
    alice.send("hello")
    await bare.tick()
    bob.expect_message("hello")
    assert list(bob.presence) == ["alice", "bob"]


async def test_an_error_has_a_code_and_a_message(room_host: RoomHost) -> None:
    t = room_host.room(Shop)
    alice = await t.connect("alice")
    with pytest.raises(PlayhallError) as raised:
        await alice.call(Buy(item="ring"))
    error = raised.value
    assert (error.code, error.message) == (422, "not enough coins")
    assert str(error) == error.message
    with pytest.raises(PlayhallError) as raised:
        await room_host.room(Room, id="other").request("hello")  # as over HTTP, whose status is the code
    assert (raised.value.code, raised.value.message) == (404, "the room has no on_request")


class TestRequests:
    async def test_a_request_wakes_the_room_and_moves_the_clock_as_far_as_it_needs(
        self, room_host: RoomHost
    ) -> None:
        t = room_host.room(Shop)
        assert t.status == "hibernated"
        assert await t.request("sell") == 1
        assert t.stored().state == {"sold": 1}
        before = room_host.now().wall
        assert await t.request("wait") == before + 5
        assert await t.request(b"abc") == 3
        await t.hibernate()
        assert await t.request("sell") == 2

    @pytest.mark.ledger("HOOK-12")
    async def test_what_on_request_throws(self, room_host: RoomHost) -> None:
        t = room_host.room(Shop)
        with pytest.raises(PlayhallError, match=r"^the shop is closed$") as raised:
            await t.request("no")
        assert raised.value.code == 422
        assert t.errors == []
        with pytest.raises(PlayhallError, match=r"what is {'a': 1}") as raised:
            await t.request({"a": 1})
        assert raised.value.code == 422
        assert "LookupError" in t.errors[0]

    async def test_a_room_without_on_request(self, room_host: RoomHost) -> None:
        with pytest.raises(PlayhallError, match="the room has no on_request") as raised:
            await room_host.room(Room).request("hello")
        assert raised.value.code == 404

    async def test_one_that_hibernates_the_room_is_answered(self, room_host: RoomHost) -> None:
        t = room_host.room(Shop)
        assert await t.request("stop") == "soon"
        await t.advance(1)
        assert t.status == "hibernated"
        with pytest.raises(TypeError):
            await t.request(object())  # type: ignore[arg-type]
