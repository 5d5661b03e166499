"""Mistakes with interest that both checkers must report: an ignore that hides nothing is an error itself."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from collections.abc import Iterable
from typing import Any

from playhall.room import Connection, Entity, Interest, Limit, PresenceEntry, Room, combine, f32, grid


class Dot(Entity):
    x: f32 = 0
    y: f32 = 0


def point(room: Room, conn: Connection) -> tuple[float, float] | None:
    return None


def value(room: Any, conn: Any, entity: Any) -> float:
    return 0


near = grid(cell_size=10, range=5, around=point)
grid(cell_size=10, around=point)  # type: ignore[call-overload]  # pyright: ignore
grid(cell_size=10, around=point, range=5, radius=2)  # type: ignore[call-overload]  # pyright: ignore
grid(cell_size=10, around=point, radius=2, margin=1)  # type: ignore[call-overload]  # pyright: ignore
grid(cell_size=10, around=point, radius=2, dims="yz")  # type: ignore[call-overload]  # pyright: ignore
grid(cell_size=10, around=Connection, range=5)  # type: ignore[arg-type]  # pyright: ignore
grid(cell_size=10, around=point, range=5, kinds=[Room])  # type: ignore[list-item]  # pyright: ignore
combine(near, point)  # type: ignore[arg-type]  # pyright: ignore
combine(near, limit=5)  # type: ignore[arg-type]  # pyright: ignore
Limit(5)  # type: ignore[call-arg]  # pyright: ignore
Limit(5, value)  # type: ignore[call-arg]  # pyright: ignore
Limit(5, priority=value).max = 6  # type: ignore[misc]  # pyright: ignore


class Keyless(Interest):
    def keys_of(self, room: Any, entity: Dot) -> Iterable[bytes]:  # type: ignore[override]  # pyright: ignore
        return [b"red"]

    async def sees(self, room: Any, conn: Any, entity: Any) -> bool:  # type: ignore[override]  # pyright: ignore
        return True


class Wrong(Room):
    interest = grid  # type: ignore[assignment]  # pyright: ignore


class WrongPresence(Room):
    def sees_presence(self, viewer: str, entry: PresenceEntry) -> bool:  # type: ignore[override]  # pyright: ignore
        return True
