"""What room authors write about kinds, and what both checkers must infer of it."""

# pyright: strict
from typing import Annotated, Any, Literal, assert_type

from playhall.room import Entity, Input, Json, Schema, f32, local, owner_only, q8, q16, u8, u32, writable

Item = Literal["ring", "halo"]


class Positioned(Entity, abstract=True):
    x: f32
    y: f32 = 0


class Dot(Positioned, max=64):
    hp: u8 = 100
    name: str
    blob: bytes = b""
    alive: bool = True
    heading: Annotated[float, q16(0, 360)] = 0
    glow: Annotated[float, q8(0, 1)]
    wears: Json[list[Item]] = []
    note: Json[Any] = None
    volume: writable[u8] = 5
    secret: owner_only[writable[u32]] = 0
    cooldown: float = local(0.0)
    seen: list[int] = local(factory=list)

    def heal(self, by: int) -> None:
        self.hp = min(255, self.hp + by)


class Board(Entity):
    moves: u32 = 0


class Mine(Entity, kind="own"):
    coins: u32 = 0


class Secret(Entity, hidden=True):
    plan: str = ""


class Control(Input):
    dx: f32
    fire: bool = False


dot = Dot(x=1, name="a", glow=0.5)
assert_type(dot.x, float)
assert_type(dot.hp, int)
assert_type(dot.blob, bytes)
assert_type(dot.heading, float)
assert_type(dot.wears, list[Item])
assert_type(dot.volume, int)
assert_type(dot.secret, int)
assert_type(dot.cooldown, float)
assert_type(dot.seen, list[int])
assert_type(dot.id, int)
assert_type(dot.owner, str | None)
assert_type(dot.kind, str)
dot.x += 1
dot.wears = [*dot.wears, "ring"]
dot.patch("blob", 3, b"ab")
dot.heal(3)

everything: Schema[Board, Mine] = Schema(state=Board, private=Mine, entities=[Dot, Secret], input=Control)
nothing: Schema = Schema()
assert_type(everything.state, type[Board] | None)
assert_type(everything.hash, bytes)

control = Control(dx=1)
assert_type(control.dx, float)
assert_type({control: 1}, dict[Control, int])
assert_type({dot: 1}, dict[Dot, int])
