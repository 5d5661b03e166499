"""The client's copy of what it may see of a room.

The entities are handles of the same classes as the room's, in a home that refuses writes. An update is
applied as a whole, and `apply` returns what came of it: an entity that was replaced by another of its id
has left, and the other has entered; one that came and went within the update was never there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from playhall.engine.errors import ProtocolError, ReadOnlyError
from playhall.engine.fields import patched
from playhall.engine.kinds import Entity, Home, put, restore, set_owner, spec_of, stored_values
from playhall.engine.schema import FIRST_ENTITY_ID, FIRST_PRESENCE_ID, PRIVATE_ID, SHARED_ID, Schema
from playhall.engine.updates import Change, Correct, Enter, Leave, Owner, Patch, Update

__all__ = ["Changes", "Replica"]

E = TypeVar("E", bound=Entity)


@dataclass(slots=True)
class Changes:
    """What an update did, for the callbacks. Fields are given by name."""

    entered: list[Entity] = field(default_factory=list)
    left: list[Entity] = field(default_factory=list)
    changed: list[tuple[Entity, frozenset[str]]] = field(default_factory=list)
    corrected: list[tuple[Entity, frozenset[str]]] = field(default_factory=list)
    owned: list[Entity] = field(default_factory=list)


class _ClientHome(Home):
    """Where a client's entities live: all writes are the room's."""

    __slots__ = ()

    def write(self, entity: Entity, index: int, value: object) -> NoReturn:
        raise _read_only(entity, spec_of(entity).fields[index].name)

    def patch(self, entity: Entity, index: int, offset: int, data: bytes) -> NoReturn:
        raise _read_only(entity, spec_of(entity).fields[index].name)


def _read_only(entity: Entity, name: str) -> ReadOnlyError:
    return ReadOnlyError(
        f"{entity.kind}.{name} is the room's to write: send a message, and let the room do it"
    )


class Replica:
    """Every entity the client holds, by id; shared and private state and presence rows are among them."""

    def __init__(self, schema: Schema[Any, Any]) -> None:
        self._schema = schema
        self._home = _ClientHome()
        self._by_id: dict[int, Entity] = {}
        self._by_class: dict[type[Entity], dict[int, Entity]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, id: int) -> Entity | None:
        """Return the entity of this id, or None."""
        return self._by_id.get(id)

    def ids(self) -> list[int]:
        """Return the ids a resume names: of all there is but shared and private state, ascending."""
        return sorted(id for id in self._by_id if id >= FIRST_ENTITY_ID)

    def of_kind(self, kind: type[E]) -> Iterator[E]:
        """Yield the entities of a kind, or of every kind under a base; not shared and private state."""
        for cls, entities in self._by_class.items():
            if issubclass(cls, kind):
                for id, entity in entities.items():
                    if id >= FIRST_ENTITY_ID and isinstance(entity, kind):
                        yield entity

    def apply(self, update: Update, player: str) -> Changes:
        """Apply an update. Raises ProtocolError for an id of the wrong kind, and changes nothing then."""
        for operation in update.operations:
            if isinstance(operation, Enter):
                self._check_kind(operation)
        return _Application(self, update, player).changes()

    def _check_kind(self, enter: Enter) -> None:
        schema = self._schema
        if enter.id >= FIRST_PRESENCE_ID:
            fits = enter.number == schema.presence_number
        elif enter.id >= FIRST_ENTITY_ID:
            fits = enter.number < len(schema.entities)
        else:
            fits = (
                enter.number == {SHARED_ID: schema.state_number, PRIVATE_ID: schema.private_number}[enter.id]
            )
        if not fits:
            raise ProtocolError(f"entity {enter.id} cannot be of kind {enter.number}")

    def add(self, enter: Enter, owner: str | None) -> Entity:
        """Put a new entity in place; there is none of its id."""
        cls = self._schema.classes[enter.number]
        entity = restore(cls, self._home, enter.id, owner, enter.values)
        self._by_id[enter.id] = entity
        self._by_class.setdefault(cls, {})[enter.id] = entity
        return entity

    def remove(self, id: int) -> Entity | None:
        """Take an entity out. Its handle can still be read: a game may want its last values."""
        entity = self._by_id.pop(id, None)
        if entity is not None:
            del self._by_class[type(entity)][id]
        return entity

    def clear(self) -> dict[int, Entity]:
        """Take everything out, and return it."""
        everything, self._by_id = self._by_id, {}
        self._by_class.clear()
        return everything


class _Application:
    """One update being applied, and what was there before it."""

    def __init__(self, replica: Replica, update: Update, player: str) -> None:
        self._replica = replica
        self._player = player
        self._before: dict[int, Entity | None] = {}
        self._values_before: dict[int, dict[int, Any]] = {}
        self._owner_before: dict[int, str | None] = {}
        self._corrected: dict[int, set[int]] = {}
        if update.full:
            self._before.update(replica.clear())
        for operation in update.operations:
            self._apply(operation)

    def _apply(self, operation: Leave | Enter | Change | Patch | Owner | Correct) -> None:
        match operation:
            case Leave(id):
                self._remove(id)
            case Enter(id):
                self._remove(id)
                self._replica.add(operation, self._player if id == PRIVATE_ID else None)
            case Change(id, values):
                entity = self._held(id)
                kept = spec_of(entity).writable_mask if self._is_written_by_player(entity) else 0
                for index, stored in values.items():
                    if not kept >> index & 1:
                        self._put(entity, index, stored)
            case Patch(id, index, offset, data):
                entity = self._held(id)
                self._put(entity, index, patched(stored_values(entity)[index], offset, data))
            case Owner(id, owner):
                entity = self._held(id)
                self._owner_before.setdefault(id, entity.owner)
                set_owner(entity, owner)
            case Correct(id, values):
                entity = self._held(id)
                self._corrected.setdefault(id, set()).update(values)
                for index, stored in values.items():
                    self._put(entity, index, stored)

    def _remove(self, id: int) -> None:
        self._before.setdefault(id, self._replica.remove(id))
        self._values_before.pop(id, None)
        self._corrected.pop(id, None)

    def _held(self, id: int) -> Entity:
        entity = self._replica.get(id)
        assert entity is not None, "the reader of updates has checked that it is held"
        return entity

    def _is_written_by_player(self, entity: Entity) -> bool:
        """Whether the player owned it before this update: then its writable fields are the player's."""
        if entity.id in self._before:
            return False
        return self._owner_before.get(entity.id, entity.owner) == self._player

    def _put(self, entity: Entity, index: int, stored: Any) -> None:
        if entity.id not in self._before:
            self._values_before.setdefault(entity.id, {}).setdefault(index, stored_values(entity)[index])
        put(entity, index, stored)

    def changes(self) -> Changes:
        """Compare what is with what was."""
        changes = Changes()
        for id, old in self._before.items():
            new = self._replica.get(id)
            if old is not None:
                changes.left.append(old)
            if new is not None:
                changes.entered.append(new)
        for id, values in self._values_before.items():
            entity = self._held(id)
            now = stored_values(entity)
            differ = (f for f in spec_of(entity).fields if f.index in values)
            names = frozenset(f.name for f in differ if not f.type.same(values[f.index], now[f.index]))
            if names:
                changes.changed.append((entity, names))
        for id, owner in self._owner_before.items():
            entity_now = self._replica.get(id)
            if entity_now is not None and id not in self._before and entity_now.owner != owner:
                changes.owned.append(entity_now)
        for id, indices in self._corrected.items():
            if id not in self._before:
                entity = self._held(id)
                fields = spec_of(entity).fields
                changes.corrected.append((entity, frozenset(fields[index].name for index in indices)))
        return changes
