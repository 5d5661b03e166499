"""What the vault's rooms and clients share."""

from playhall.room import Call, Entity, Schema, f64, owner_only, u8, u32, writable

HOSTILE = "<img src=x onerror='window.hacked = true'><script>window.hacked = true</script>\u202e"


class Hall(Entity):
    opened: u32 = 0
    motto: str = HOSTILE


class Purse(Entity):
    coins: u32 = 7


class Key(Entity):
    turns: writable[u8] = 0
    engraved: owner_only[str] = "for you"


class Card(Entity, hidden=True):
    face: str
    worth: f64 = float("nan")


class Open(Call[int]):
    door: int


schema = Schema(state=Hall, private=Purse, entities=[Key, Card], calls=[Open])
