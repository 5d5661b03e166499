"""Mistakes with owner writes that both checkers must report: an ignore that hides nothing is an error."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from typing import Any

from playhall.client import RoomClient
from playhall.room import Connection, Entity, Room, Schema, u8, writable


class Settings(Entity):
    volume: writable[u8] = 5


class Late(Room):
    async def on_write(  # type: ignore[override]  # pyright: ignore
        self, conn: Connection, entity: Entity, values: dict[str, Any]
    ) -> dict[str, Any]:
        return values


class Flag(Room):
    def on_write(  # type: ignore[override]  # pyright: ignore
        self, conn: Connection, entity: Entity, values: dict[str, Any]
    ) -> bool:
        return True


class Board(Room[None, Settings]):
    schema = Schema(private=Settings)


def plays(room: RoomClient[None, Settings]) -> None:
    room.private.volume = "loud"  # type: ignore[assignment]  # pyright: ignore
    room.private.loudness = 5  # type: ignore[attr-defined]  # pyright: ignore
    room.presence.set_status({1, 2})  # type: ignore[arg-type]  # pyright: ignore
    room.presence["alice"].status = 1  # type: ignore[misc]  # pyright: ignore
    room.entities.on_correct(Settings, lambda settings: None)  # type: ignore[arg-type, misc]  # pyright: ignore
