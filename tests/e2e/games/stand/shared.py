"""What the test stand's rooms and players agree on."""

from playhall.room import Call, Entity, Schema, u32


class Board(Entity):
    """Counts what happened to the room, over all its lives."""

    creates: u32 = 0
    wakes: u32 = 0
    joins: u32 = 0
    leaves: u32 = 0
    player_leaves: u32 = 0
    presses: u32 = 0
    beats: u32 = 0
    beating: bool = False
    reason: str = ""


class Mine(Entity):
    presses: u32 = 0


class Pawn(Entity):
    number: u32 = 0


class Vault(Entity, hidden=True):
    presses: u32 = 0


class Press(Call[int]):
    """Press so many times; the reply is the presses there are then."""

    times: int = 1


schema = Schema(state=Board, private=Mine, entities=[Pawn, Vault], calls=[Press])
