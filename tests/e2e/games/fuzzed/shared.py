"""What the room that is attacked and its players agree on: some of everything there is."""

from typing import Annotated, Any

from playhall.room import Call, Entity, Input, Json, Schema, f32, owner_only, q8, u8, u32, writable


class Board(Entity):
    """What happened, over all of the room's lives."""

    messages: u32 = 0
    calls: u32 = 0
    writes: u32 = 0
    wakes: u32 = 0


class Mine(Entity):
    coins: u32 = 0
    note: writable[str] = ""


class Pawn(Entity):
    """A player's own: `pose` is the player's to write, and the room refuses 255."""

    x: f32 = 0
    y: f32 = 0
    hue: Annotated[float, q8(0, 360)] = 0
    pose: writable[u8] = 0
    label: writable[str] = ""
    hand: owner_only[u8] = 0
    chunk: bytes = b""
    tags: Json[Any] = None


class Vault(Entity, hidden=True):
    secret: str = ""


class Steer(Input):
    dx: f32
    note: str


class Add(Call[int]):
    """The reply is the sum."""

    a: int
    b: int = 0
    tags: list[str] = []


class Echo(Call[bytes]):
    """The reply is the text, in UTF-8."""

    text: str


schema = Schema(state=Board, private=Mine, entities=[Pawn, Vault], calls=[Add, Echo], input=Steer)
