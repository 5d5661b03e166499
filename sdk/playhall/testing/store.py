"""What the state store has of a room under test, and how a test sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playhall.engine.connection import JsonIn
from playhall.engine.jsontext import decode
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.outputs import BaseOut, RecordOut, StoredRoom, WakeInfo, WakeReason
from playhall.engine.schema import Schema
from playhall.engine.specs import KindSpec
from playhall.engine.statelog import read

__all__ = ["RoomData", "RoomStore", "StoredBot", "StoredEntity"]

EPOCH = 1


@dataclass(frozen=True)
class StoredEntity:
    """An entity as it was saved: all its fields, hidden and owner-only ones too."""

    kind: str
    id: int
    owner: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class StoredBot:
    """A bot as it was saved. `fields` are its data."""

    player: str
    kind: str
    name: str
    status: JsonIn
    fields: Mapping[str, JsonIn]


@dataclass(frozen=True)
class RoomData:
    """The room state that a wake would start from."""

    tick: int
    """The room's tick when it was saved."""
    state: Mapping[str, Any] | None
    """Fields of the shared state; None in a room that has none."""
    private: Mapping[str, Mapping[str, Any]]
    """Fields of the private states, by player."""
    entities: tuple[StoredEntity, ...]
    """All of them, those of hidden kinds too."""
    bots: tuple[StoredBot, ...] = ()
    """In the order they were added."""
    banned: frozenset[str] = frozenset()
    """Players who were banned."""

    def all(self, kind: type[Entity]) -> list[StoredEntity]:
        """Return the entities of a kind."""
        return [entity for entity in self.entities if entity.kind == kind.kind]


class RoomStore:
    """The base and the log of one room. What is put here is durable at once."""

    def __init__(self) -> None:
        self._base: bytes | None = None
        self._records: list[RecordOut] = []
        self._tick = 0
        self._saved_at = 0.0
        self._generation = EPOCH << 32
        self._open = False

    def begin(self, reason: WakeReason, wall: float) -> tuple[int, WakeInfo]:
        """Grant the next generation, and say why the room starts: one that never ended has crashed."""
        info = WakeInfo(
            "crash" if self._open else reason, max(0.0, wall - self._saved_at), self._saved_at, self._tick
        )
        self._generation += 1
        self._open = True
        return self._generation, info

    def stored(self) -> StoredRoom | None:
        """Return what a start reads; None for a room that never was."""
        if self._base is None and not self._records:
            return None
        return StoredRoom(self._base, [record.data for record in self._records])

    def append(self, record: RecordOut, wall: float) -> None:
        """Commit a record."""
        self._records.append(record)
        self._tick, self._saved_at = record.tick, wall

    def replace(self, base: BaseOut, wall: float) -> None:
        """Commit a base, which stands for all that was written before it, in earlier generations too."""
        self._base, self._records = base.data, []
        self._tick, self._saved_at = base.tick, wall

    def end(self, wall: float) -> None:
        """Close the generation."""
        self._open = False
        self._saved_at = wall

    def data(self, schema: Schema[Any, Any]) -> RoomData:
        """Read what is stored. Raises LookupError where nothing is."""
        stored = self.stored()
        if stored is None:
            raise LookupError("nothing is stored: the room has never run")
        saved = read(stored, schema)
        return RoomData(
            tick=saved.tick,
            state=_fields(schema.state, saved.state),
            private={
                private.player: _fields(schema.private, private.values) or {} for private in saved.privates
            },
            entities=tuple(
                StoredEntity(e.cls.kind, e.id, e.owner, _fields(e.cls, e.values) or {})
                for e in saved.entities
            ),
            bots=tuple(
                StoredBot(b.player, b.kind, b.name, decode(b.status), decode(b.data)) for b in saved.bots
            ),
            banned=frozenset(saved.banned),
        )


def _fields(cls: type[Entity] | None, values: list[Any] | None) -> dict[str, Any] | None:
    if cls is None or values is None:
        return None
    spec: KindSpec = spec_of(cls)
    return {field.name: field.type.load(value) for field, value in zip(spec.fields, values, strict=True)}
