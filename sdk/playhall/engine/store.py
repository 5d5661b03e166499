"""The room's entities by id, kind and owner: shared state, entities, private state.

Everything here is saved; what clients see of it, and what changed when, is the Tracker's. `Entities` (room
code's face of it) is in `entities`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from playhall.engine.backend import Tracked, Tracker
from playhall.engine.errors import DeadEntityError
from playhall.engine.kinds import Entity, is_dead, set_owner, spec_of
from playhall.engine.ordered import EntitiesById
from playhall.engine.schema import FIRST_ENTITY_ID, FIRST_PRESENCE_ID, PRIVATE_ID, SHARED_ID, Schema
from playhall.engine.specs import KindSpec
from playhall.engine.tracking import Scope

if TYPE_CHECKING:
    from playhall.engine.columns import Columns

__all__ = ["EntityStore", "as_id", "check_player"]

MAX_PLAYER_BYTES = 128
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_player(player: object) -> str:
    """Return a player's id if it can be one: 1 to 128 bytes of text without control characters.

    What is returned is a plain str, which one of NumPy's is not. Raises TypeError or ValueError.
    """
    if not isinstance(player, str):
        raise TypeError(f"a player is named by its id, a str, not {type(player).__name__}")
    if type(player) is not str:
        player = str.__str__(player)
    try:
        size = len(player.encode())
    except UnicodeEncodeError:
        raise ValueError(f"a player's id is Unicode, and {player!r} has half a surrogate pair") from None
    if not 1 <= size <= MAX_PLAYER_BYTES:
        raise ValueError(f"a player's id has 1 to {MAX_PLAYER_BYTES} bytes, not {size}")
    if _CONTROL.search(player):
        raise ValueError(f"a player's id has no control characters, as {player!r} has")
    return player


def as_id(id: object) -> int:
    """Return an id as an int, which one out of a column is not. Raises TypeError."""
    if type(id) is int:
        return id
    if isinstance(id, bool) or not isinstance(id, Integral):
        raise TypeError(f"an id is an int, not {type(id).__name__}")
    return int(id)


class EntityStore:
    """The saved part of a room's state."""

    __slots__ = ("_of_kind", "_of_owner", "_schema", "_tracked", "_tracker", "next_id", "state")

    def __init__(self, schema: Schema[Any, Any], tracker: Tracker) -> None:
        self._schema = schema
        self._tracker = tracker
        self._tracked: dict[int, Tracked] = {}
        self._of_kind: dict[type[Entity], EntitiesById] = {cls: EntitiesById() for cls in schema.entities}
        self._of_owner: dict[str, EntitiesById] = {}
        self.next_id = FIRST_ENTITY_ID
        self.state: Entity | None = None

    # Entities

    def add(self, entity: Entity, owner: str | None, id: int | None) -> None:
        """Put a new entity in the room. Raises TypeError or ValueError, and changes nothing then."""
        number = self._schema.number_of(spec_of(entity))
        if number is None:
            raise TypeError(f"{type(entity).__name__} is not one of the schema's entities")
        spec = spec_of(entity)
        if owner is not None:
            owner = self._checked_owner(entity, owner)
        if len(self._of_kind[type(entity)]) >= spec.max:
            raise ValueError(f"there are {spec.max} {spec.name} already, the most of this kind")
        id = self._free_id() if id is None else self._checked_id(id)
        self._index(self._tracker.add(entity, _scope_of(spec), id, number, owner))
        self.next_id = max(self.next_id, id + 1)

    def delete(self, entity: Entity) -> None:
        """Take an entity out of the room; its handle is dead from now on. Raises DeadEntityError."""
        tracked = self._of(entity)
        del self._tracked[tracked.id]
        del self._of_kind[type(entity)][tracked.id]
        self._disown(tracked)
        self._tracker.remove(tracked)

    def set_owner(self, entity: Entity, owner: str | None) -> None:
        """Give an entity to a player, or back to the room.

        Raises DeadEntityError, TypeError or ValueError.
        """
        tracked = self._of(entity)
        if owner is not None:
            owner = self._checked_owner(entity, owner)
        if owner == tracked.owner:
            return
        self._disown(tracked)
        set_owner(entity, owner)
        tracked.set_owner(owner)
        if owner is not None:
            self._own(owner, tracked)

    def get(self, id: int) -> Entity | None:
        tracked = self._tracked.get(id)
        return None if tracked is None else tracked.entity

    def tracked_of(self, id: int) -> Tracked | None:
        """Return what is tracked of an entity, or None where there is none of this id."""
        return self._tracked.get(id)

    def holds(self, entity: Entity) -> bool:
        """Whether this very entity is in the room."""
        tracked = self._tracked.get(entity._id) if entity._id is not None else None
        return tracked is not None and tracked.entity is entity

    def check_kind(self, kind: object) -> None:
        """Raise TypeError for what is neither one of the schema's entities nor an abstract kind."""
        if kind not in self._of_kind and not _is_abstract(kind):
            raise _not_an_entity(kind)

    def of_kind(self, kind: type[Entity]) -> Iterable[Entity]:
        """Give the entities of a kind, by id, or of all kinds under an abstract one, kind after kind.

        Raises TypeError for others.
        """
        if kind in self._of_kind:
            return self._of_kind[kind].in_order()
        self.check_kind(kind)
        below = [entities for cls, entities in self._of_kind.items() if issubclass(cls, kind)]
        return (entity for entities in below for entity in entities.in_order())

    def owned(self, kind: type[Entity], owner: str) -> Iterable[Entity]:
        """Give all entities that a player owns, by id. Raises TypeError where `kind` is none."""
        if kind not in self._of_kind:
            self.check_kind(kind)
        if not isinstance(owner, str):
            check_player(owner)
        owned = self._of_owner.get(owner)
        return () if owned is None else owned.in_order()

    def tracked_in(self, kind: type[Entity]) -> tuple[Tracker, int]:
        """Return what tracks the entities of a kind, and its number there. Raises TypeError for others."""
        number = self._schema.number_of(spec_of(kind)) if kind in self._of_kind else None
        if number is None:
            raise _not_an_entity(kind)
        return self._tracker, number

    def columns(self, kind: type[Entity]) -> Columns:
        """Return the columns of a kind. Raises TypeError for what is not one, ImportError without NumPy."""
        number = self._schema.number_of(spec_of(kind)) if kind in self._of_kind else None
        if number is None:
            if _is_abstract(kind):
                raise TypeError(f"{kind.__name__} is abstract: each kind under it has columns of its own")
            raise _not_an_entity(kind)
        try:
            return self._tracker.columns(kind, number)
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            raise ImportError("columns are NumPy arrays: install numpy", name="numpy") from error

    def __len__(self) -> int:
        return len(self._tracked)

    def __iter__(self) -> Iterator[Entity]:
        return (self._tracked[id].entity for id in sorted(self._tracked))

    # Shared and private state

    def make_state(self, values: list[Any] | None = None) -> None:
        """Make the shared state, new or of saved values. Does nothing where the schema has none."""
        if self._schema.state is not None:
            number = self._schema.state_number
            assert number is not None
            self.state = self._place(self._schema.state, Scope.SHARED, SHARED_ID, number, None, values)

    def private(self, player: str) -> Entity | None:
        """Return a player's private state. Raises TypeError where the schema has none."""
        self._private_class()
        tracked = self._tracker.private(player)
        return None if tracked is None else tracked.entity

    def make_private(self, player: str, values: list[Any] | None = None) -> Entity:
        """Make a player's private state, new or of saved values."""
        cls, number = self._private_class()
        return self._place(cls, Scope.PRIVATE, PRIVATE_ID, number, check_player(player), values)

    def has_private(self, player: str) -> bool:
        """Whether a player has private state; nobody has where the schema has none."""
        return self._tracker.private(player) is not None

    def drop_private(self, player: str) -> None:
        """Forget a player's private state."""
        tracked = self._tracker.private(player)
        if tracked is not None:
            self._tracker.remove(tracked)

    def private_players(self) -> list[str]:
        return self._tracker.private_players()

    # Saving

    def restore(self, cls: type[Entity], id: int, owner: str | None, values: list[Any]) -> None:
        """Put back an entity that was saved."""
        number = self._schema.number_of(spec_of(cls))
        assert number is not None, f"{cls.__name__} is not one of the schema's entities"
        self._index(self._tracker.restore(cls, _scope_of(spec_of(cls)), id, number, owner, values))

    def tracked(self) -> Iterator[Tracked]:
        """Give everything that is saved: entities, shared state, private states; by kind, then by row."""
        found = list(self._tracked.values())
        if self.state is not None:
            found.append(self._tracker.public[SHARED_ID])
        for player in self._tracker.private_players():
            private = self._tracker.private(player)
            if private is not None:
                found.append(private)
        return iter(sorted(found, key=attrgetter("number", "row")))

    def _place(
        self,
        cls: type[Entity],
        scope: Scope,
        id: int,
        number: int,
        owner: str | None,
        values: list[Any] | None,
    ) -> Entity:
        if values is not None:
            return self._tracker.restore(cls, scope, id, number, owner, values).entity
        return self._tracker.add(cls(), scope, id, number, owner).entity

    def _private_class(self) -> tuple[type[Entity], int]:
        cls, number = self._schema.private, self._schema.private_number
        if cls is None or number is None:
            raise TypeError("the room's schema has no private state")
        return cls, number

    def _of(self, entity: Entity) -> Tracked:
        if is_dead(entity) or not self.holds(entity):
            raise DeadEntityError(f"{entity!r} is not one of the room's entities")
        return self._tracked[entity.id]

    def _index(self, tracked: Tracked) -> None:
        self._tracked[tracked.id] = tracked
        self._of_kind[type(tracked.entity)].put(tracked.id, tracked.entity)
        if tracked.owner is not None:
            self._own(tracked.owner, tracked)

    def _own(self, owner: str, tracked: Tracked) -> None:
        owned = self._of_owner.get(owner)
        if owned is None:
            owned = self._of_owner[owner] = EntitiesById()
        owned.put(tracked.id, tracked.entity)

    def _disown(self, tracked: Tracked) -> None:
        if tracked.owner is not None:
            owned = self._of_owner[tracked.owner]
            del owned[tracked.id]
            if not owned:
                del self._of_owner[tracked.owner]

    def _free_id(self) -> int:
        if self.next_id >= FIRST_PRESENCE_ID:
            raise ValueError("there are no ids left; pass one of a deleted entity as id")
        return self.next_id

    def _checked_id(self, id: object) -> int:
        id = as_id(id)
        if not FIRST_ENTITY_ID <= id < FIRST_PRESENCE_ID:
            raise ValueError(f"an id is from {FIRST_ENTITY_ID} to {FIRST_PRESENCE_ID - 1}, not {id}")
        if id in self._tracked:
            raise ValueError(f"id {id} is taken by {self._tracked[id].entity!r}")
        return id

    @staticmethod
    def _checked_owner(entity: Entity, owner: str) -> str:
        player = check_player(owner)
        if spec_of(entity).hidden:
            raise TypeError(f"{entity.kind}: a hidden entity belongs to the room, and to no player")
        return player


def _scope_of(spec: KindSpec) -> Scope:
    return Scope.HIDDEN if spec.hidden else Scope.SHARED


def _is_abstract(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Entity) and spec_of(kind).abstract


def _not_an_entity(kind: object) -> TypeError:
    if not isinstance(kind, type):
        return TypeError(f"a kind is named by its class, and not by {kind!r}")
    return TypeError(f"{kind.__name__} is not one of the schema's entities")
