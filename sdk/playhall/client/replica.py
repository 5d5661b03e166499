"""The client's copy of what it may see of a room.

The entities are handles of the same classes as the room's, in a home that knows what the player may write
(see `writes`). An update is
applied as a whole, and `apply` returns what came of it: an entity that was replaced by another of its id
has left, and the other has entered; one that came and went within the update was never there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from playhall.client.writes import Writes
from playhall.engine.errors import ProtocolError
from playhall.engine.fields import patched
from playhall.engine.kinds import Entity, put, restore, set_owner, spec_of, stored_values
from playhall.engine.schema import (
    FIRST_ENTITY_ID,
    FIRST_PRESENCE_ID,
    PRIVATE_ID,
    SHARED_ID,
    PresenceRow,
    Schema,
)
from playhall.engine.updates import Change, Correct, Enter, Leave, Owner, Patch, Update

__all__ = ["Changes", "Replica"]

E = TypeVar("E", bound=Entity)


@dataclass(slots=True)
class Changes:
    """What an update did, for the callbacks. Fields are given by name.

    `corrected` are the fields in which the room overruled the player: a correction changed them, and the
    player owned the entity before.
    """

    entered: list[Entity] = field(default_factory=list)
    left: list[Entity] = field(default_factory=list)
    changed: list[tuple[Entity, frozenset[str]]] = field(default_factory=list)
    corrected: list[tuple[Entity, frozenset[str]]] = field(default_factory=list)
    owned: list[Entity] = field(default_factory=list)


class Replica:
    """Every entity the client holds, by id; shared and private state and presence rows are among them."""

    def __init__(self, schema: Schema[Any, Any]) -> None:
        self._schema = schema
        self._by_id: dict[int, Entity] = {}
        self.writes = Writes(schema, self._by_id.get)
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

    def presence_of(self, player: str) -> PresenceRow | None:
        """Return a player's row, or None."""
        return next((row for row in self.of_kind(PresenceRow) if row.player == player), None)

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
        if not fits or schema.kinds[enter.number].hidden:
            raise ProtocolError(f"entity {enter.id} cannot be of kind {enter.number}")

    def add(self, enter: Enter, owner: str | None) -> Entity:
        """Put a new entity in place; there is none of its id."""
        cls = self._schema.classes[enter.number]
        entity = restore(cls, self.writes, enter.id, owner, enter.values)
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
        everything = dict(self._by_id)
        self._by_id.clear()
        self._by_class.clear()
        self.writes.clear()
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
                kept = self._written_by_player(entity)
                for index, stored in values.items():
                    if not kept >> index & 1:
                        self._put(entity, index, stored)
            case Patch(id, index, offset, data):
                entity = self._held(id)
                if not self._written_by_player(entity) >> index & 1:
                    self._put(entity, index, patched(stored_values(entity)[index], offset, data))
            case Owner(id, owner):
                entity = self._held(id)
                self._owner_before.setdefault(id, entity.owner)
                set_owner(entity, owner)
                self._replica.writes.drop(id)
            case Correct(id, values):
                entity = self._held(id)
                self._corrected.setdefault(id, set()).update(values)
                for index, stored in values.items():
                    self._put(entity, index, stored)
                self._replica.writes.drop(id, sum(1 << index for index in values))

    def _remove(self, id: int) -> None:
        self._before.setdefault(id, self._replica.remove(id))
        self._replica.writes.drop(id)
        self._values_before.pop(id, None)
        self._corrected.pop(id, None)

    def _held(self, id: int) -> Entity:
        entity = self._replica.get(id)
        assert entity is not None, "the reader of updates has checked that it is held"
        return entity

    def _written_by_player(self, entity: Entity) -> int:
        """Return the mask of the fields that the player wrote until now: only corrections change them."""
        if isinstance(entity, PresenceRow):
            mine = entity.id not in self._before and entity.player == self._player
            return 1 << spec_of(entity).by_name["status"].index if mine else 0
        return spec_of(entity).writable_mask if self._was_mine(entity) else 0

    def _was_mine(self, entity: Entity) -> bool:
        """Whether the player owned it before this update."""
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
            differ = [f for f in spec_of(entity).fields if f.index in values]
            differ = [f for f in differ if not f.type.same(values[f.index], now[f.index])]
            if differ:
                changes.changed.append((entity, frozenset(f.name for f in differ)))
            corrected = self._corrected.get(id, set()) if self._was_mine(entity) else set()
            overruled = frozenset(f.name for f in differ if f.index in corrected)
            if overruled:
                changes.corrected.append((entity, overruled))
        for id, owner in self._owner_before.items():
            entity_now = self._replica.get(id)
            if entity_now is not None and id not in self._before and entity_now.owner != owner:
                changes.owned.append(entity_now)
        return changes
