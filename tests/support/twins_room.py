"""The rooms of the differential machine: every sort of kind, field and rule of sight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from playhall.room import (
    Bot,
    Connection,
    Entity,
    History,
    Interest,
    Json,
    Limit,
    PresenceEntry,
    Room,
    Schema,
    combine,
    f32,
    f64,
    grid,
    i8,
    i16,
    i32,
    local,
    owner_only,
    q8,
    q16,
    u8,
    u16,
    u32,
    writable,
)

__all__ = ["HOOKS", "KINDS", "PATHS", "PLACES", "PLAYERS", "ROOMS", "Npc", "Thing", "TwinRoom", "Wide"]

PLAYERS = ("ann", "bob", "cy")


class Placed(Entity, abstract=True):
    x: f32 = 0
    y: f32 = 0


class Thing(Placed):
    """A field of every type."""

    flag: bool = False
    b1: u8 = 3
    b2: u16 = 0
    b4: u32 = 0
    s1: i8 = -1
    s2: i16 = 0
    s4: i32 = 0
    far: f64 = 0
    hue: Annotated[float, q8(0, 360)] = 90
    fine: Annotated[float, q16(-1, 1)] = 0
    name: str = ""
    blocks: bytes = b""
    tags: Json[Any] = None
    hand: owner_only[u32] = 0
    diary: owner_only[str] = ""
    cards: owner_only[Json[Any]] = None
    pose: writable[u8] = 0
    aim: writable[f32] = 0
    pixels: writable[bytes] = bytes(8)
    note: writable[owner_only[str]] = ""
    memo: Any = local(None)


class Npc(Placed, max=12):
    """Moved by columns; numbers alone, but for one."""

    z: f32 = 0
    hp: i16 = 100
    dial: Annotated[float, q8(-1, 1)] = 0.5
    turn: Annotated[float, q16(0, 1)] = 0
    mass: f64 = 1
    team: u8 = 0
    awake: bool = True
    speed: writable[f32] = 0
    secret: owner_only[i32] = 0
    label: str = ""


class Few(Entity, max=2):
    level: u8 = 1


class Trap(Placed, hidden=True):
    armed: bool = False


class Bare(Entity):
    """No field at all."""


def _wide() -> type[Entity]:
    sorts: tuple[Any, ...] = (u8, u8, f32, i16, bool, str, u8, owner_only[u8])
    annotations = {f"w{index}": sorts[index % len(sorts)] for index in range(255)}
    namespace = {"__module__": __name__, "__annotations__": annotations, "__qualname__": "Wide"}
    make: Any = type(Entity)  # which checkers take for `type`
    made: type[Entity] = make("Wide", (Entity,), namespace)
    return made


Wide = _wide()


class Board(Entity):
    a: u8 = 1
    title: str = ""
    map: bytes = b""


class Purse(Entity):
    coins: u32 = 0
    volume: writable[u8] = 5
    log: bytes = b""
    bag: Json[Any] = None


class Walker(Bot):
    pace: int = 1

    def tick(self, room: TwinRoom) -> None:
        room.tricked("bot")
        for thing in room.entities.all(Thing, owner=self.player):
            thing.x = (thing.x + self.pace) % 60


KINDS: dict[str, type[Entity]] = {
    "thing": Thing,
    "npc": Npc,
    "few": Few,
    "trap": Trap,
    "bare": Bare,
    "wide": Wide,
    "placed": Placed,
}
HOOKS = (
    *("on_message", "on_write", "on_tick", "bot", "on_player_leave"),
    *("keys_of", "subscriptions_of", "sees", "priority", "around", "sees_presence"),
)
"""Where a room does what `trick` says."""
PATHS = History(Npc, "x", "y", "z", "hp")
PLACES = History(Thing, "x", "y")


class TwinRoom(Room[Board, Purse]):
    schema = Schema(state=Board, private=Purse, entities=[Thing, Npc, Few, Trap, Bare, Wide])
    bot_kinds = (Walker,)
    history = (PATHS, PLACES)
    tick_rate = 10
    max_players = 5
    private_retention = 3600.0

    def __init__(self) -> None:
        self.team: dict[str, int] = {}
        self.cloaked: set[tuple[str, int]] = set()
        self.fails = False
        self.heard: list[Any] = []
        self.trick: list[Any] | None = None

    def tricked(self, hook: str) -> None:
        """Do what a machine wants done in a hook, at its turn."""
        if self.trick is not None and self.trick[0] == hook:
            self.trick[1] -= 1
            if self.trick[1] < 0:
                do, self.trick = self.trick[2], None
                do()

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Thing(name=conn.player), owner=conn.player, once=True)
        self.send(conn, {"welcome": conn.player})

    def on_message(self, conn: Connection, message: Any) -> None:
        self.heard.append((conn.player, message))
        self.tricked("on_message")
        self.broadcast({"from": conn.player, "said": message if isinstance(message, str) else None})

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        self.heard.append((conn.player, entity.id, dict(values)))
        self.tricked("on_write")
        if values.get("pose") == 255:
            return None
        if values.get("pose") == 254:
            raise LookupError("no such pose")
        return {name: min(value, 200) if name == "pose" else value for name, value in values.items()}

    def on_tick(self, dt: float) -> None:
        self.tricked("on_tick")
        if self.fails:
            raise ZeroDivisionError("as it was told to")

    def on_player_leave(self, player: str) -> None:
        self.tricked("on_player_leave")
        for thing in self.entities.all(Thing, owner=player):
            self.entities.delete(thing)


class Teams(Interest):
    """What is of one's own team, but for what is cloaked."""

    def keys_of(self, room: TwinRoom, entity: Any) -> Iterable[str]:
        room.tricked("keys_of")
        if isinstance(entity, Npc):
            return [f"team:{entity.team}"]
        return [] if isinstance(entity, Thing) else ["*"]

    def subscriptions_of(self, room: TwinRoom, conn: Connection) -> Iterable[str]:
        room.tricked("subscriptions_of")
        return [f"team:{room.team.get(conn.player, 0)}"]

    def sees(self, room: TwinRoom, conn: Connection, entity: Entity) -> bool:
        room.tricked("sees")
        return (conn.player, entity.id) not in room.cloaked


def worth(room: Any, conn: Any, entity: Entity) -> float:
    room.tricked("priority")
    return entity.hp - entity.id if isinstance(entity, Npc) else float(entity.id % 7)


def near(margin: float, **options: Any) -> Interest:
    return grid(cell_size=10, range=20, margin=margin, around=Thing, kinds=[Thing, Npc], **options)


def middle(room: Any, conn: Any) -> tuple[float, float, float]:
    room.tricked("around")
    return 5, 5, 5


class RangeRoom(TwinRoom):
    interest = near(0)


class MarginRoom(TwinRoom):
    interest = near(5)


class SphereRoom(TwinRoom):
    """On three axes, around a point of the room's, with what has no z field."""

    interest = grid(cell_size=8, range=20, around=middle, dims="xyz", margin=2)


class RadiusRoom(TwinRoom):
    interest = grid(cell_size=10, radius=1, around=Thing)


class KeyedRoom(TwinRoom):
    interest = Teams()

    def sees_presence(self, viewer: Connection, entry: PresenceEntry) -> bool:
        self.tricked("sees_presence")
        return (viewer.player, len(entry.player)) not in self.cloaked


class LimitRoom(TwinRoom):
    interest = combine(near(5), Teams(), limit=Limit(4, priority=worth))


class BudgetRoom(TwinRoom):
    interest = combine(near(2, prefix="n:"), Teams(), limit=Limit(50, priority=worth, bytes_per_second=600))


ROOMS: dict[str, type[TwinRoom]] = {
    "open": TwinRoom,
    "range": RangeRoom,
    "margin": MarginRoom,
    "sphere": SphereRoom,
    "radius": RadiusRoom,
    "keyed": KeyedRoom,
    "limit": LimitRoom,
    "budget": BudgetRoom,
}
