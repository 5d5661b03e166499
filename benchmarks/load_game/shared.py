"""The game of the load benchmark: everybody moves all the time."""

from playhall.room import Entity, Schema, f32, u32


class Mover(Entity):
    x: f32
    y: f32


class Board(Entity):
    moves: u32 = 0


schema = Schema(state=Board, entities=[Mover])
