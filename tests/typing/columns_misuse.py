"""Mistakes with columns that both checkers must report; an ignore that hides nothing is an error itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from playhall.room import Columns, Entity, Room, Schema, f32


class Npc(Entity):
    x: f32


def of(npcs: Columns) -> None:
    npcs.id = npcs.id  # type: ignore[misc]  # pyright: ignore
    npcs.alive = npcs.alive  # type: ignore[misc]  # pyright: ignore
    npcs.x = object()  # type: ignore[assignment]  # pyright: ignore
    npcs.x = None  # type: ignore[assignment]  # pyright: ignore


class Swarm(Room):
    schema = Schema(entities=[Npc])

    def on_tick(self, dt: float) -> None:
        self.entities.columns("npc")  # type: ignore[arg-type]  # pyright: ignore
        self.entities.columns(int)  # type: ignore[arg-type]  # pyright: ignore
        self.entities.columns(Npc(x=1))  # type: ignore[arg-type]  # pyright: ignore
        self.entities.columns()  # type: ignore[call-arg]  # pyright: ignore
