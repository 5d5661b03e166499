"""What room authors write about interest, and what both checkers must infer of it."""

# pyright: strict
import math
from collections.abc import Iterable
from typing import assert_type

from playhall.room import (
    EVERYWHERE,
    Connection,
    Entity,
    Interest,
    Limit,
    PresenceEntry,
    Room,
    Schema,
    combine,
    f32,
    grid,
    i32,
)


class Fighter(Entity):
    x: f32 = 0
    y: f32 = 0
    team: i32 = 0


class Chunk(Entity):
    cx: i32 = 0
    cy: i32 = 0


class Seat(Connection):
    fighter: Fighter | None = None
    blocked: set[str] | None = None


class Team(Interest):
    def keys_of(self, room: "Arena", entity: Fighter | Chunk) -> Iterable[str]:
        return [f"team:{entity.team}"] if isinstance(entity, Fighter) else [EVERYWHERE]

    def subscriptions_of(self, room: "Arena", conn: Seat) -> Iterable[int | float | str]:
        yield f"team:{conn.fighter.team}" if conn.fighter else 0.5

    def sees(self, room: "Arena", conn: Seat, entity: Fighter | Chunk) -> bool:
        return room.tick > 10 or not isinstance(entity, Fighter)


def nearest(room: "Arena", conn: Seat, entity: Fighter | Chunk) -> float:
    me = conn.fighter
    if me is None or isinstance(entity, Chunk):
        return math.inf
    return -math.dist((me.x, me.y), (entity.x, entity.y))


def at_fighter(room: "Arena", conn: Seat) -> Fighter | None:
    return conn.fighter


chunks = grid(
    cell_size=32,
    radius=2,
    prefix="c:",
    kinds=[Chunk],
    around=lambda room, conn: (conn.fighter.x, conn.fighter.y) if conn.fighter else None,
    position=lambda room, chunk: (chunk.cx * 32, chunk.cy * 32),
)
fighters = grid(cell_size=20, range=60, margin=5, around=at_fighter, dims="xy", kinds=(Fighter,))
assert_type(chunks, Interest)
assert_type(fighters, Interest)


class Arena(Room[None, None, Seat]):
    schema = Schema(entities=[Fighter, Chunk])
    interest = combine(chunks, fighters, Team(), limit=Limit(500, priority=nearest, bytes_per_second=20_000))

    def sees_presence(self, viewer: Seat, entry: PresenceEntry) -> bool:
        return entry.player not in (viewer.blocked or set())


class Plain(Room):
    schema = Schema(entities=[Fighter])
    interest = grid(cell_size=20, range=60, around=Fighter)
