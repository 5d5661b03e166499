"""What the rooms of the field log and their players agree on."""

from playhall.room import Call, Entity, Schema, u32


class Board(Entity):
    """Counts what happened to the room."""

    beats: u32 = 0
    tried: u32 = 0
    joins: u32 = 0
    leaves: u32 = 0
    strays: u32 = 0


class Pawn(Entity):
    number: u32 = 0


class Blob(Entity):
    beats: u32 = 0
    data: bytes = b""


class Echo(Call[str]):
    text: str


schema = Schema(state=Board, entities=[Pawn, Blob], calls=[Echo])
