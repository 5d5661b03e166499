"""Entities by id, which come in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterable

from playhall.engine.kinds import Entity

__all__ = ["EntitiesById"]


class EntitiesById(dict[int, Entity]):
    """Put into by `put`, read by `in_order`.

    That order is the one that is the same after the room was saved and started anew. A dict's own, in which
    things came, is not: an id may be chosen, and an entity may come to its owner later than a younger one.
    """

    __slots__ = ("_is_sorted", "_last")

    def __init__(self) -> None:
        super().__init__()
        self._last = -1
        self._is_sorted = True

    def put(self, id: int, entity: Entity) -> None:
        """Add an entity."""
        if id < self._last:
            self._is_sorted = False
        else:
            self._last = id
        self[id] = entity

    def in_order(self) -> Iterable[Entity]:
        """Return the entities, lowest id first. Not to be kept while entities are added."""
        if not self._is_sorted:
            items = sorted(self.items())
            self.clear()
            self.update(items)
            self._is_sorted = True
        return self.values()
