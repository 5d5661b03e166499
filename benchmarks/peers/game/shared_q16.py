"""The same with places of 16 bits: steps of 3 cm in a world of 2 km."""

from typing import Annotated

from playhall.room import Entity, Schema, local, q16, u8, u16

from .world import SIZE


class Player(Entity):
    x: Annotated[float, q16(0.0, SIZE)]
    y: Annotated[float, q16(0.0, SIZE)]
    hp: u8 = 100
    seq: u16 = 0
    dx: float = local(0.7)
    dy: float = local(0.7)


class Npc(Entity):
    x: Annotated[float, q16(0.0, SIZE)]
    y: Annotated[float, q16(0.0, SIZE)]
    hp: u8 = 100
    seq: u16 = 0


schema = Schema(entities=[Player, Npc])
