"""What is saved of a room: bases and records, msgpack of the values' wire bytes.

A base holds all of it: the writer's layout (kinds, fields and types), the tick, the next automatic id,
shared state and every entity with id, kind, owner and fields, private states with when their players were
last connected, the bots, and who is banned. A record holds what one flush changed, in the layout of the base
before it; so a log is read with one layout only. Clients are told less (nothing of hidden entities) and more
(presence).

Reading maps by name to the schema of the room as it is now. Kinds and fields may have been added; anything
else is a change of shape, which `read` refuses with LayoutError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from playhall.engine.backend import Flush, Tracked, record_of, rows_of
from playhall.engine.bots import is_bot
from playhall.engine.fields import (
    BOOL,
    BYTES,
    F32,
    F64,
    I8,
    I16,
    I32,
    JSON,
    STR,
    U8,
    U16,
    U32,
    FieldType,
    patched,
    q8,
    q16,
)
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.outputs import StoredRoom
from playhall.engine.records import Change, Owner, Patch, Private, Row
from playhall.engine.schema import FIRST_ENTITY_ID, FIRST_PRESENCE_ID, SHARED_ID, Schema
from playhall.engine.specs import MAX_ENTITY, KindSpec
from playhall.engine.store import check_player
from playhall.engine.wire import VARINT53_MAX, Reader

__all__ = ["BansChange", "BotsChange", "DamagedStateError", "LayoutError", "SavedBot", "SavedEntity"]
__all__ += ["SavedPrivate", "SavedRoom", "Totals", "read", "write_base", "write_record"]

FORMAT = 1


_ADVICE = (
    ". Put it back, and the room wakes; or, under playhall dev, stop that and delete .playhall/data to start "
    "every room afresh. Migrations come later"
)


class LayoutError(ValueError):
    """The saved state has another shape than the room's schema."""


class DamagedStateError(ValueError):
    """The saved state cannot be read."""


class _Field(msgspec.Struct, array_like=True, frozen=True):
    name: str
    type: str


class _Kind(msgspec.Struct, array_like=True, frozen=True):
    name: str
    fields: list[_Field]


class _Seen(msgspec.Struct, array_like=True):
    """When a player with private state was last connected; None is now."""

    player: str
    wall: float | None


class SavedBot(msgspec.Struct, array_like=True, frozen=True):
    """A bot; `status` and `data` are JSON text."""

    player: str
    kind: str
    name: str
    status: bytes
    data: bytes


class BotsChange(msgspec.Struct, array_like=True, frozen=True):
    """Bots that went, and those that came or changed; `next_number` is that of the next bot's id."""

    next_number: int = 1
    removed: list[str] = []
    bots: list[SavedBot] = []


class BansChange(msgspec.Struct, array_like=True, frozen=True):
    """Players that were banned, and those whose ban was lifted."""

    added: list[str] = []
    lifted: list[str] = []


class _Base(msgspec.Struct, array_like=True):
    format: int
    layout: list[_Kind]
    tick: int
    next_id: int
    rows: list[Row]
    privates: list[Private]
    seen: list[_Seen]
    # What was added since: absent where a base is older.
    bots: BotsChange | None = None
    bans: BansChange | None = None


class _Record(msgspec.Struct, array_like=True):
    tick: int
    next_id: int
    removed: list[int | str]
    rows: list[Row]
    privates: list[Private]
    changes: list[Change]
    patches: list[Patch]
    owners: list[Owner]
    seen: list[_Seen]
    bots: BotsChange | None = None
    bans: BansChange | None = None


_ENCODER = msgspec.msgpack.Encoder()
# Where nobody was seen, and neither bots nor bans have changed.
_UNCHANGED = b"".join(map(_ENCODER.encode, ([], None, None)))
_BASES = msgspec.msgpack.Decoder(_Base)
_RECORDS = msgspec.msgpack.Decoder(_Record)


class Totals(msgspec.Struct, frozen=True):
    """What a base and a record hold beside entities.

    `seen` is that of the players it has changed for. `next_id_moved`: it is not what was last written, which
    is worth a record of its own, since room code may have told of an id that came and went within one flush.
    """

    tick: int
    next_id: int
    seen: Mapping[str, float | None]
    next_id_moved: bool = False
    bots: BotsChange | None = None
    bans: BansChange | None = None


# Writing


def write_base(schema: Schema[Any, Any], totals: Totals, tracked: Iterable[Tracked]) -> bytes:
    """Return a base."""
    layout = [
        _Kind(spec.name, [_Field(f.name, f.type.canonical) for f in spec.fields])
        for spec in schema.kinds[:-1]
    ]
    rows, privates = rows_of(tracked)
    return _ENCODER.encode(
        _Base(
            FORMAT,
            layout,
            totals.tick,
            totals.next_id,
            rows,
            privates,
            _seen(totals),
            totals.bots,
            totals.bans,
        )
    )


def write_record(flush: Flush, totals: Totals) -> bytes | None:
    """Return the record of one flush, or None where it changed nothing that is saved."""
    rest = _UNCHANGED
    if totals.seen or totals.bots is not None or totals.bans is not None:
        rest = b"".join(map(_ENCODER.encode, (_seen(totals), totals.bots, totals.bans)))
    always = totals.next_id_moved or rest is not _UNCHANGED
    return record_of(flush, totals.tick, totals.next_id, rest, always=always)


def _seen(totals: Totals) -> list[_Seen]:
    return [_Seen(player, wall) for player, wall in totals.seen.items()]


# Reading


@dataclass(frozen=True, slots=True)
class SavedEntity:
    """An entity as it was saved, with values for the fields its class has now."""

    id: int
    cls: type[Entity]
    owner: str | None
    values: list[Any]


@dataclass(frozen=True, slots=True)
class SavedPrivate:
    """A private state as it was saved.

    `seen` is when its player was last connected; None: when it was saved.
    """

    player: str
    values: list[Any]
    seen: float | None


@dataclass(slots=True)
class SavedRoom:
    """Everything that was saved. `state` holds the values of shared state, or None where there were none."""

    tick: int
    next_id: int
    state: list[Any] | None = None
    entities: list[SavedEntity] = field(default_factory=list)
    privates: list[SavedPrivate] = field(default_factory=list)
    next_bot: int = 1
    bots: list[SavedBot] = field(default_factory=list)
    banned: list[str] = field(default_factory=list)


def read(stored: StoredRoom, schema: Schema[Any, Any]) -> SavedRoom:
    """Read a base and its log. Raises LayoutError or DamagedStateError."""
    if stored.base is None:
        raise DamagedStateError("there are records, but no base before them")
    try:
        base = _BASES.decode(stored.base)
        if base.format != FORMAT:
            raise DamagedStateError(f"the saved state has format {base.format}, and {FORMAT} is read here")
        layout = [_Layout.of(kind) for kind in base.layout]
        replay = _Replay(base, layout)
        for record in stored.records:
            replay.apply(_RECORDS.decode(record))
        replay.check()
    except DamagedStateError:
        raise
    except (ValueError, TypeError, LookupError, RecursionError, struct.error) as error:
        raise DamagedStateError(f"the saved state cannot be read: {error!r}") from error
    return _map(replay, schema)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A kind as the writer knew it."""

    name: str
    names: list[str]
    types: list[FieldType]

    @classmethod
    def of(cls, kind: _Kind) -> _Layout:
        return cls(kind.name, [f.name for f in kind.fields], [_type_of(f.type) for f in kind.fields])

    def decode(self, data: bytes) -> list[Any]:
        source = Reader(data)
        values = [type.decode(source) for type in self.types]
        source.done()
        return values


@dataclass(slots=True)
class _Saved:
    kind: int
    owner: str | None
    values: list[Any]


class _Replay:
    """A base with records applied to it, in the writer's layout."""

    def __init__(self, base: _Base, layout: Sequence[_Layout]) -> None:
        self.layout = layout
        self.tick, self.next_id = base.tick, base.next_id
        self.rows: dict[int | str, _Saved] = {}
        self.seen: dict[str, float | None] = {}
        self.next_bot = 1
        self.bots: dict[str, SavedBot] = {}
        self.banned: dict[str, None] = {}
        # Private state has no kind of its own in its rows: it is the last of the writer's kinds if there is
        # one.
        self._private_kind = len(layout) - 1
        self._add(base.rows, base.privates)
        self._see(base.seen)
        self._apply_others(base)

    def apply(self, record: _Record) -> None:
        self.tick, self.next_id = record.tick, record.next_id
        for name in record.removed:
            del self.rows[name]
            if isinstance(name, str):
                self.seen.pop(name, None)
        self._add(record.rows, record.privates)
        for change in record.changes:
            saved = self.rows[change.of]
            self._change(saved, change.data)
        for patch in record.patches:
            values = self.rows[patch.of].values
            if patch.field < 0 or patch.offset < 0:
                raise ValueError("a patch before the first field or byte")
            values[patch.field] = patched(values[patch.field], patch.offset, patch.data)
        for owner in record.owners:
            self.rows[owner.id].owner = owner.owner
        self._see(record.seen)
        self._apply_others(record)

    def check(self) -> None:
        """Raise ValueError for what no room holds, and so none has written."""
        if not 0 <= self.tick <= VARINT53_MAX:
            raise ValueError(f"{self.tick} is no tick")
        if not FIRST_ENTITY_ID <= self.next_id <= FIRST_PRESENCE_ID:
            raise ValueError(f"{self.next_id} is no next id")
        for name, saved in self.rows.items():
            if isinstance(name, int) and not (name == SHARED_ID or FIRST_ENTITY_ID <= name < self.next_id):
                raise ValueError(f"{name} is no entity's id")
            if saved.owner is not None:
                check_player(saved.owner)
        for player in (*self.bots, *self.banned):
            if is_bot(check_player(player)) != (player in self.bots):
                raise ValueError(f"{player!r} is no bot, or a bot is banned")

    def _apply_others(self, written: _Base | _Record) -> None:
        bots, bans = written.bots, written.bans
        if bots is not None:
            self.next_bot = bots.next_number
            for player in bots.removed:
                del self.bots[player]
            self.bots.update({bot.player: bot for bot in bots.bots})
        if bans is not None:
            self.banned.update(dict.fromkeys(bans.added))
            for player in bans.lifted:
                del self.banned[player]

    def _add(self, rows: list[Row], privates: list[Private]) -> None:
        for row in rows:
            if row.kind < 0:
                raise ValueError(f"no kind has number {row.kind}")
            self.rows[row.id] = _Saved(row.kind, row.owner, self.layout[row.kind].decode(row.data))
        for private in privates:
            values = self.layout[self._private_kind].decode(private.data)
            self.rows[private.player] = _Saved(self._private_kind, private.player, values)

    def _see(self, seen: list[_Seen]) -> None:
        for one in seen:
            self.seen[one.player] = one.wall

    def _change(self, saved: _Saved, data: bytes) -> None:
        types = self.layout[saved.kind].types
        source = Reader(data)
        mask = source.mask(len(types))
        for index, type in enumerate(types):
            if mask >> index & 1:
                saved.values[index] = type.decode(source)
        source.done()


def _map(replay: _Replay, schema: Schema[Any, Any]) -> SavedRoom:
    mappings = [_Mapping.between(layout, schema) for layout in replay.layout]
    room = SavedRoom(
        replay.tick,
        replay.next_id,
        next_bot=replay.next_bot,
        bots=list(replay.bots.values()),
        banned=list(replay.banned),
    )
    for name, saved in replay.rows.items():
        mapping = mappings[saved.kind]
        values = mapping.map(saved.values)
        if isinstance(name, str):
            mapping.check_role("private state", (schema.private,))
            room.privates.append(SavedPrivate(name, values, replay.seen.get(name)))
        elif name == SHARED_ID:
            mapping.check_role("shared state", (schema.state,))
            room.state = values
        else:
            mapping.check_role("an entity", schema.entities)
            room.entities.append(SavedEntity(name, mapping.cls, saved.owner, values))
    return room


@dataclass(frozen=True, slots=True)
class _Mapping:
    """How values in a writer's layout become those of a class. `indexes`: where each field was, or None."""

    cls: type[Entity]
    spec: KindSpec
    indexes: list[int | None]

    @classmethod
    def between(cls, layout: _Layout, schema: Schema[Any, Any]) -> _Mapping:
        kind = next((k for k in schema.classes[:-1] if k.kind == layout.name), None)
        if kind is None:
            raise LayoutError(f"kind {layout.name} was saved, and is not in the schema{_ADVICE}")
        spec = spec_of(kind)
        for name, type in zip(layout.names, layout.types, strict=True):
            now = spec.by_name.get(name)
            if now is None or now.type.canonical != type.canonical:
                is_now = "is gone" if now is None else f"is {now.type.canonical} now"
                raise LayoutError(f"{layout.name}.{name} was saved as {type.canonical} and {is_now}{_ADVICE}")
        where = {name: index for index, name in enumerate(layout.names)}
        return cls(kind, spec, [where.get(f.name) for f in spec.fields])

    def map(self, values: list[Any]) -> list[Any]:
        """Return the values of the fields there are now. A field that was added has its default."""
        mapped = [
            f.fresh_default() if index is None else values[index]
            for f, index in zip(self.spec.fields, self.indexes, strict=True)
        ]
        size = self.spec.size(mapped)
        if size > MAX_ENTITY:
            raise LayoutError(
                f"{self.spec.name}: with the fields added, one would have {size} bytes, over {MAX_ENTITY}"
            )
        return mapped

    def check_role(self, role: str, classes: Sequence[type[Entity] | None]) -> None:
        """Raise LayoutError if the schema does not use the kind for what it was saved as."""
        if self.cls not in classes:
            raise LayoutError(f"{self.spec.name} was saved as {role}, and is not that now{_ADVICE}")


_TYPES: dict[str, FieldType] = {
    type.name: type for type in (BOOL, U8, U16, U32, I8, I16, I32, F32, F64, STR, BYTES, JSON)
}


def _type_of(canonical: str) -> FieldType:
    name, *bounds = canonical.split(":")
    if not bounds:
        return _TYPES[name]
    lo, hi = (struct.unpack(">d", bytes.fromhex(bound))[0] for bound in bounds)
    return (q8 if name == "q8" else q16)(lo, hi)
