"""What the room and every client agree on. `playhall gen` writes the page's copy of it."""

from playhall.room import Entity, Schema, f32, u32

SIZE = 100.0


class Dot(Entity):
    """A player, as a place on the board."""

    x: f32
    y: f32


class Board(Entity):
    """What everyone sees."""

    moves: u32 = 0


class Mine(Entity):
    """What one player sees alone. It is there again when the player comes back."""

    moves: u32 = 0


schema = Schema(state=Board, private=Mine, entities=[Dot])
