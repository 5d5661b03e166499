"""What the desk's room and its page agree on."""

from typing import Literal

from playhall.room import Call, Entity, Schema, f32, u8, u32, writable

Item = Literal["ring", "halo"]


class Board(Entity):
    sold: u32 = 0


class Mine(Entity):
    coins: u32 = 5
    volume: writable[u8] = 5


class Pen(Entity):
    """What a player points with. The room keeps it on the desk: x is 0 to 100."""

    x: writable[f32] = 0
    ink: writable[bytes] = b""
    colour: u8 = 0


class Buy(Call[int]):
    """Answered with the coins left."""

    item: Item
    count: int = 1


class Break(Call[None]):
    """Fails in the room."""


class Wait(Call[None]):
    """Not answered within seconds."""


schema = Schema(state=Board, private=Mine, entities=[Pen], calls=[Buy, Break, Wait])
