"""Mistakes with calls that both checkers must report: an ignore that hides nothing is an error in itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from typing import Literal

from playhall.client import RoomClient
from playhall.room import Call, Connection, Message, Room, Schema

Item = Literal["ring", "halo"]


class Buy(Call[int]):
    item: Item


class Sell(Call[int]):
    item: Item


class MisspeltKeyword(Call[int], nam="x"): ...  # type: ignore[call-arg]  # pyright: ignore


class WrongKeyword(Call[int], name=3): ...  # type: ignore[arg-type]  # pyright: ignore


Buy()  # type: ignore[call-arg]  # pyright: ignore
Buy("ring")  # type: ignore[call-arg]  # pyright: ignore
Buy(item="crown")  # type: ignore[arg-type]  # pyright: ignore
Buy(item="ring", count=1)  # type: ignore[call-arg]  # pyright: ignore
Buy(item="ring").item = "halo"  # type: ignore[misc]  # pyright: ignore
Schema(calls=[Buy(item="ring")])  # type: ignore[list-item]  # pyright: ignore
Schema(calls=[int])  # type: ignore[list-item]  # pyright: ignore


class Shop(Room):
    schema = Schema(calls=[Buy, Sell])

    @Buy.handler  # type: ignore[arg-type]  # pyright: ignore
    def reply_of_the_wrong_type(self, conn: Connection, ask: Buy) -> str:
        return "3"

    @Buy.handler  # type: ignore[arg-type]  # pyright: ignore
    async def later_of_the_wrong_type(self, conn: Connection, ask: Buy) -> str:
        return "3"

    @Buy.handler  # type: ignore[arg-type]  # pyright: ignore
    def call_of_another(self, conn: Connection, ask: Sell) -> int:
        return 3

    @Buy.handler  # type: ignore[arg-type]  # pyright: ignore
    def without_the_connection(self, ask: Buy) -> int:
        return 3

    @Sell.handler
    def sell(self, conn: Connection, ask: Sell) -> int:
        return ask.count  # type: ignore[attr-defined, no-any-return]  # pyright: ignore

    def on_request(self, message: Message) -> object:  # type: ignore[override]  # pyright: ignore
        return 1


async def play(room: RoomClient) -> None:
    left: str = await room.call(Buy(item="ring"))  # type: ignore[arg-type]  # pyright: ignore
    room.call(Buy)  # type: ignore[arg-type]  # pyright: ignore
    room.call("buy")  # type: ignore[arg-type]  # pyright: ignore
    await room.call(Buy(item="ring"), 2)  # type: ignore[call-arg]  # pyright: ignore
    await room.call(Buy(item="ring"), timeout="2")  # type: ignore[arg-type]  # pyright: ignore
    print(left)
