"""The room of the proof of convergence: every sort of field, kind and rule of sight that there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from playhall.engine.core import RoomCore
from playhall.engine.kinds import stored_values
from playhall.room import (
    Bot,
    Connection,
    Entity,
    Interest,
    Json,
    Limit,
    PresenceEntry,
    Room,
    Schema,
    combine,
    f32,
    grid,
    owner_only,
    q8,
    u8,
    u32,
    writable,
)

PLAYERS = ("ann", "bob", "cy")
RANGE, MARGIN, MOST = 20.0, 5.0, 5
FILLER = bytes(n * 31 % 251 for n in range(49_152))


class Marked(Entity, abstract=True):
    """Fields that always go together: a client that sees one change without the other saw half a tick."""

    born: u32
    tag: str
    a: u8 = 1
    b: u8 = 8


class Dot(Marked):
    x: f32 = 0
    y: f32 = 0
    hand: owner_only[u32] = 0
    pose: writable[u8] = 0
    note: writable[owner_only[str]] = ""
    pixels: writable[bytes] = bytes(8)
    blocks: bytes = b""
    deck: Json[list[int]] = []  # noqa: RUF012 - copied for each


class Rock(Marked, max=40):
    team: u8 = 0
    dial: Annotated[float, q8(-1, 1)] = 0.5


class Trap(Marked, hidden=True):
    x: f32 = 0


class Board(Entity):
    a: u8 = 1
    b: u8 = 8
    title: str = ""


class Purse(Entity):
    a: u8 = 1
    b: u8 = 8
    volume: writable[u8] = 5
    log: bytes = b""


class Walker(Bot):
    pace: int = 1

    def tick(self, room: World) -> None:
        for dot in room.entities.all(Dot, owner=self.player):
            dot.x = (dot.x + self.pace) % 60


class World(Room[Board, Purse]):
    schema = Schema(state=Board, private=Purse, entities=[Dot, Rock, Trap])
    bot_kinds = (Walker,)
    tick_rate = 5
    max_players = 5
    private_retention = "forever"

    def __init__(self) -> None:
        self.team: dict[str, int] = {}
        self.cloaked: set[tuple[str, int]] = set()
        self.blocked: set[tuple[str, str]] = set()
        self.born = itertools.count(self.entities_born())

    def entities_born(self) -> int:
        return 1 + max((each.born for each in self.entities.all(Marked)), default=0)

    def marks(self) -> dict[str, Any]:
        born = next(self.born)
        return {"born": born, "tag": f"#{born}"}

    def on_create(self) -> None:
        for team in (0, 1, 0, 1):
            self.entities.add(Rock(team=team, **self.marks()))

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Dot(**self.marks()), owner=conn.player, once=True)

    def on_player_leave(self, player: str) -> None:
        for dot in self.entities.all(Dot, owner=player):
            self.entities.delete(dot)

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        if values.get("pose") == 255:
            return None
        return {name: min(value, 200) if name == "pose" else value for name, value in values.items()}

    def sees_presence(self, viewer: Connection, entry: PresenceEntry) -> bool:
        return (viewer.player, entry.player) not in self.blocked


class Teams(Interest):
    """Rocks of one's own team, but for those that are cloaked."""

    def keys_of(self, room: World, entity: Dot | Rock) -> Iterable[str]:
        return [f"team:{entity.team}"] if isinstance(entity, Rock) else []

    def subscriptions_of(self, room: World, conn: Connection) -> Iterable[str]:
        return [f"team:{room.team.get(conn.player, 0)}"]

    def sees(self, room: World, conn: Connection, entity: Rock) -> bool:
        return (conn.player, entity.id) not in room.cloaked


def worth(room: Any, conn: Any, entity: Entity) -> float:
    return float(entity.a) if isinstance(entity, Marked) else 0.0


def dots(margin: float) -> Interest:
    return grid(cell_size=10, range=RANGE, margin=margin, around=Dot, kinds=[Dot])


class Near(World):
    interest = combine(dots(MARGIN), Teams(), limit=Limit(MOST, priority=worth))


class Budget(World):
    interest = combine(dots(0), Teams(), limit=Limit(1_000, priority=worth, bytes_per_second=3_000))


def saved(core: RoomCore) -> Any:
    """All that must outlive the room's life."""
    room = core.room
    return {
        "state": [repr(value) for value in stored_values(room.state)],
        "entities": {
            entity.id: (entity.kind, entity.owner, [repr(value) for value in stored_values(entity)])
            for entity in room.entities
        },
        "private": {
            player: [repr(value) for value in stored_values(room.private(player, create=True))]
            for player in room.private_players()
        },
        "bots": [(repr(bot), room.presence[bot.player]) for bot in room.bots],
    }
