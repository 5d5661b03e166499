"""Owner writes as both checkers must take them."""

# pyright: strict
from collections.abc import Mapping
from typing import Any

from playhall.client import PresenceEntry, RoomClient
from playhall.room import Connection, Entity, Json, Room, Schema, f32, u8, writable


class Cursor(Entity):
    x: writable[f32] = 0
    tags: writable[Json[list[str]]] = []


class Settings(Entity):
    volume: writable[u8] = 5


class Board(Room[None, Settings]):
    schema = Schema(private=Settings, entities=[Cursor])

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        if isinstance(entity, Cursor) and entity.x > 5:
            return {**values, "x": 5.0}
        return values if conn.player else None


class Guest(Connection):
    writes: int = 0


class Counting(Room[None, None, Guest]):
    def on_write(self, conn: Guest, entity: Entity, values: dict[str, Any]) -> dict[str, Any]:
        conn.writes += 1
        return values


def corrected(cursor: Cursor, fields: frozenset[str]) -> None:
    print(cursor.x, sorted(fields))


def plays(room: RoomClient[None, Settings]) -> None:
    room.private.volume = 5
    for cursor in room.entities.mine(Cursor):
        cursor.x = 3
        cursor.tags = ["red"]
    room.entities.on_correct(Cursor, corrected)
    room.entities.on_owner(Cursor, lambda cursor: print(cursor.owner))
    room.presence.set_status({"ready": True, "seat": [1, None]})
    entry: PresenceEntry = room.presence["alice"]
    print(entry.status)
