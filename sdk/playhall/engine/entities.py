"""`room.entities`: room code's face of the entity store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar, overload

from playhall.engine.columns import Columns
from playhall.engine.kinds import Entity, is_dead
from playhall.engine.store import EntityStore, as_id

__all__ = ["Entities"]

E = TypeVar("E", bound=Entity)


class Entities:
    """The room's entities.

    A handle is the entity: `is` holds, and a deleted one raises DeadEntityError when touched. Iteration,
    `len()` and `in` are of all of them.
    """

    __slots__ = ("_store",)

    def __init__(self, store: EntityStore) -> None:
        self._store = store

    def add(self, entity: E, *, owner: str | None = None, id: int | None = None, once: bool = False) -> E:
        """Put a new entity in the room, and return it.

        `id` is a number from 2 to 2**31 - 1; by default the next one that was never used.

        With `once`, return the owner's first entity of that kind instead where there is one: after a crash,
        on_join meets what it made before. Raises ValueError for an id that is taken, a kind that is full or
        an entity that was added before.
        """
        _check_entity(entity)
        if once:
            there = (
                self.first(type(entity), owner=owner)
                if owner is not None
                else self._first_unowned(type(entity))
            )
            if there is not None:
                return there
        self._store.add(entity, owner, id)
        return entity

    def delete(self, entity: Entity) -> None:
        """Take an entity out of the room. Its id may be used again at once."""
        _check_entity(entity)
        self._store.delete(entity)

    def set_owner(self, entity: Entity, player: str | None) -> None:
        """Give an entity to a player, or back to the room (None)."""
        _check_entity(entity)
        self._store.set_owner(entity, player)

    @overload
    def get(self, id: int, /) -> Entity | None: ...
    @overload
    def get(self, kind: type[E], id: int, /) -> E | None: ...
    def get(self, kind: type[E] | int, id: int | None = None, /) -> Entity | None:
        """Return the entity of an id, or None: also where it is of another kind than was asked for."""
        if isinstance(kind, type):
            found = self._store.get(as_id(id))
            if isinstance(found, kind):
                return found
            self._store.check_kind(kind)
            return None
        if id is not None:
            raise TypeError("get takes an id, or a kind and an id")
        return self._store.get(as_id(kind))

    def first(self, kind: type[E], /, *, owner: str | None = None) -> E | None:
        """Return one entity of a kind, the one of the lowest id, or None. With `owner`, of that player's.

        Ids count up, so it is the one that was made first, unless ids were chosen.
        """
        for entity in self._find(kind, owner):
            if isinstance(entity, kind):
                return entity
        return None

    def all(self, kind: type[E], /, *, owner: str | None = None) -> list[E]:
        """Return the entities of a kind in a new list, by id. With `owner`, that player's."""
        return [entity for entity in self._find(kind, owner) if isinstance(entity, kind)]

    def count(self, kind: type[Entity], /) -> int:
        """Return how many entities of a kind there are."""
        return sum(1 for _ in self._store.of_kind(kind))

    def columns(self, kind: type[Entity], /) -> Columns:
        """Return a kind's bool and number fields as NumPy arrays, to move many entities at once.

        Arrays end at the rows there are now: ask again after an `add`. Raises TypeError for an abstract
        kind, one that is not among the schema's entities, and one with a field named `alive`.
        """
        return self._store.columns(kind)

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[Entity]:
        return iter(list(self._store))

    def __contains__(self, entity: object) -> bool:
        return isinstance(entity, Entity) and not is_dead(entity) and self._store.holds(entity)

    def _find(self, kind: type[Entity], owner: str | None) -> Iterable[Entity]:
        """Give the entities of a kind, by id; those of an owner, and of other kinds too."""
        return self._store.of_kind(kind) if owner is None else self._store.owned(kind, owner)

    def _first_unowned(self, kind: type[E]) -> E | None:
        found = self._find(kind, None)
        return next((each for each in found if isinstance(each, kind) and each.owner is None), None)


def _check_entity(entity: object) -> None:
    if not isinstance(entity, Entity):
        what = f"the class {entity.__name__}" if isinstance(entity, type) else repr(entity)
        raise TypeError(f"this takes an entity, not {what}")
