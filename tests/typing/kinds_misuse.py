"""Mistakes with kinds that both checkers must report: an ignore that hides nothing is an error in itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from playhall.room import Entity, Input, Json, Schema, f32, local, u8, u32


class Dot(Entity):
    x: f32
    hp: u8 = 100
    tags: Json[list[str]] = []
    cooldown: float = local(0.0)


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0


class Control(Input):
    dx: f32


class ReservedField(Entity):
    id: u32  # type: ignore[misc]  # pyright: ignore


class ReservedMethod(Entity):
    def patch(self) -> None: ...  # type: ignore[misc, override]  # pyright: ignore


class MisspeltKeyword(Entity, hiden=True): ...  # type: ignore[call-arg]  # pyright: ignore


class WrongKeyword(Entity, max="many"): ...  # type: ignore[arg-type]  # pyright: ignore


class WrongDefault(Entity):
    hp: u8 = "full"  # type: ignore[assignment]  # pyright: ignore


class WrongJsonDefault(Entity):
    tags: Json[list[str]] = [1]  # type: ignore[list-item]  # pyright: ignore


Dot()  # type: ignore[call-arg]  # pyright: ignore
Dot(1)  # type: ignore[call-arg]  # pyright: ignore
Dot(x=1, y=2)  # type: ignore[call-arg]  # pyright: ignore
Dot(x="1")  # type: ignore[arg-type]  # pyright: ignore
Dot(x=1, cooldown=2.0)  # type: ignore[call-arg]  # pyright: ignore


class WrongLocal(Entity):
    seen: dict[str, int] = local(factory=list)  # type: ignore[assignment]  # pyright: ignore


dot = Dot(x=1)
dot.y = 3  # type: ignore[attr-defined]  # pyright: ignore
dot.hp = "a"  # type: ignore[assignment]  # pyright: ignore
dot.hp = 1.5  # type: ignore[assignment]  # pyright: ignore
dot.tags = {"a": 1}  # type: ignore[assignment]  # pyright: ignore
dot.id = 3  # type: ignore[misc]  # pyright: ignore
dot.owner = "bob"  # type: ignore[misc]  # pyright: ignore
dot.patch("hp", "0", b"")  # type: ignore[arg-type]  # pyright: ignore

control = Control(dx=1)
control.dx = 2  # type: ignore[misc]  # pyright: ignore
Control(dy=1)  # type: ignore[call-arg]  # pyright: ignore

other: Schema[Mine, Board] = Schema(state=Board, private=Mine)  # type: ignore[arg-type]  # pyright: ignore
Schema(entities=[Control])  # type: ignore[list-item]  # pyright: ignore
Schema(input=Dot)  # type: ignore[arg-type]  # pyright: ignore
Schema(state=int)  # type: ignore[type-var]  # pyright: ignore
