"""What room authors and clients write about calls, and what both checkers must infer of it."""

# pyright: strict
import asyncio
from collections.abc import Awaitable
from typing import Literal, TypedDict, assert_type

import msgspec

from playhall.client import RoomClient
from playhall.room import (
    Call,
    CallRejected,
    Connection,
    Entity,
    JsonIn,
    JsonOut,
    Message,
    Room,
    Schema,
    u8,
    u32,
)

Item = Literal["ring", "halo"]


class Card(msgspec.Struct):
    suit: str


class Deal(TypedDict):
    cards: list[int]


class Mine(Entity):
    coins: u32 = 0


class Buy(Call[int]):
    item: Item
    count: u8 = 1

    def __post_init__(self) -> None:
        if self.count == 0:
            raise ValueError("buy something")


class Draw(Call[list[Card]], name="draw_cards"):
    pass


class Ready(Call):
    is_ready: bool = True


class Look(Call[JsonOut]):
    where: JsonIn = None


class Dealt(Call[Deal | None]):
    pass


class Seat(Connection):
    hits: int = 0


schema = Schema(private=Mine, calls=[Buy, Draw, Ready, Look, Dealt])
assert_type(schema, Schema[None, Mine])

ask = Buy(item="ring")
assert_type(ask.item, Item)
assert_type(ask.count, int)


class Shop(Room[None, Mine, Seat]):
    schema = schema

    @Buy.handler
    def buy(self, conn: Seat, ask: Buy) -> int:
        mine = self.private(conn)
        if mine.coins < ask.count:
            raise CallRejected("not enough coins")
        conn.hits += 1
        return mine.coins

    @Draw.handler
    async def draw(self, conn: Seat, ask: Draw) -> list[Card]:
        await asyncio.sleep(0.1)
        return [Card("hearts")]

    @Ready.handler
    def ready(self, conn: Connection, ask: Ready) -> None:
        self.presence.set(conn.player, status={"ready": ask.is_ready})

    @Look.handler
    def look(self, conn: Seat, ask: Look) -> JsonOut:
        return {"at": [1, 2.5, None]}

    @Dealt.handler
    def dealt(self, conn: Seat, ask: Dealt) -> Deal | None:
        return {"cards": [1]}

    def on_request(self, message: Message) -> JsonOut:
        return {"got": 1}


class Sequel(Shop):
    @Buy.handler
    async def buy(self, conn: Seat, ask: Buy) -> int:
        return 3


class Later(Room):
    async def on_request(self, message: Message) -> JsonOut:
        return None


class Either(Room):
    def on_request(self, message: Message) -> JsonOut | Awaitable[JsonOut]:
        return 1


async def play(room: RoomClient[None, Mine]) -> None:
    left = room.call(Buy(item="ring"), timeout=2)
    assert_type(left, asyncio.Future[int])
    assert_type(await left, int)
    assert_type(await room.call(Draw()), list[Card])
    assert_type(await room.call(Dealt()), Deal | None)
    print(await room.call(Buy(item="halo", count=2)))
    await room.call(Ready(is_ready=False))
