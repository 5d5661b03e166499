"""What the room and every client agree on. `playhall gen` writes the page's copy of it."""

from typing import Annotated, TypedDict

from playhall.room import Entity, Json, Schema, f32, owner_only, q16, u8, u16, u32

#: The sea is a square of so many units.
SIZE = 1_600.0
TICK_RATE = 20
#: How far a player sees.
SIGHT = 300.0
#: The least glow there is; what fades, dashes and thieves leave.
LEAST_GLOW = 20
MOST_GLOW = 4_000
#: A light takes in what is nearer than REACH + REACH_PER_ROOT * sqrt(glow).
REACH = 7.0
REACH_PER_ROOT = 1.1
#: A light swims so many units a second, and so many times as fast when it dashes.
SPEED = 105.0
DASH = 1.85
#: It takes up the speed that it is steered to by so much a second.
AGILITY = 5.0
#: The map has so many cells a side.
MAP_CELLS = 40
#: What a fish of each species adds to a light's glow.
WORTHS = [1, 2, 3, 15]
NAME_LENGTH = 20


class Fish(Entity, max=8_192):
    """One of thousands, moved by columns."""

    x: Annotated[float, q16(0, SIZE)]
    y: Annotated[float, q16(0, SIZE)]
    species: u8 = 0


class Light(Entity, max=512):
    """What people and bots steer."""

    x: Annotated[float, q16(0, SIZE)]
    y: Annotated[float, q16(0, SIZE)]
    glow: u16 = LEAST_GLOW
    hue: u8 = 0
    is_dashing: bool = False
    name: str = ""
    vx: owner_only[f32] = 0
    vy: owner_only[f32] = 0
    aim_x: owner_only[f32] = 0
    aim_y: owner_only[f32] = 0


class Leader(TypedDict):
    """A row of the list of the brightest."""

    id: int
    name: str
    glow: int
    hue: int
    x: int
    y: int


class Sea(Entity):
    """What everyone sees, wherever they are. It changes once a second."""

    leaders: Json[list[Leader]] = []
    lights: u16 = 0
    map: bytes = bytes(MAP_CELLS * MAP_CELLS)
    """How many fish are in each cell, row by row."""


class Mine(Entity):
    """What one player sees alone. It is there again when the player comes back."""

    rank: u16 = 0
    best: u16 = 0
    caught: u32 = 0


schema = Schema(state=Sea, private=Mine, entities=[Fish, Light])
