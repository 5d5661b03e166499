"""Entities by interest key and by owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from playhall.engine.backend import Tracked
from playhall.engine.interest import Key

__all__ = ["Keyed"]

_NOTHING: Mapping[int, Any] = {}


@dataclass(frozen=True, slots=True)
class _Place:
    tracked: Tracked
    owner: str | None
    keys: Sequence[Sequence[Key]]


class Keyed:
    """The entities of one room that interest is asked of. Keys are kept apart for each part of it."""

    def __init__(self, parts: int) -> None:
        self._places: dict[int, _Place] = {}
        self._by_key: list[dict[Key, dict[int, Tracked]]] = [{} for _ in range(parts)]
        self._by_owner: dict[str, dict[int, Tracked]] = {}

    def put(self, tracked: Tracked, keys: Sequence[Sequence[Key]]) -> None:
        """Put an entity in its place; `keys` are those that each part gives it."""
        self.drop(tracked.id)
        self._places[tracked.id] = _Place(tracked, tracked.owner, keys)
        for by_key, of_part in zip(self._by_key, keys, strict=True):
            for key in of_part:
                by_key.setdefault(key, {})[tracked.id] = tracked
        if tracked.owner is not None:
            self._by_owner.setdefault(tracked.owner, {})[tracked.id] = tracked

    def drop(self, id: int) -> None:
        """Take an entity out, if it is there."""
        place = self._places.pop(id, None)
        if place is None:
            return
        for by_key, of_part in zip(self._by_key, place.keys, strict=True):
            for key in of_part:
                _remove(by_key, key, id)
        if place.owner is not None:
            _remove(self._by_owner, place.owner, id)

    def keys(self, id: int) -> Sequence[Sequence[Key]]:
        """Return the keys that each part gives an entity."""
        return self._places[id].keys

    def owned(self, player: str) -> Mapping[int, Tracked]:
        return self._by_owner.get(player, _NOTHING)

    def sharing(self, part: int, subscriptions: Set[Key]) -> dict[int, Tracked]:
        """Return what has one of these keys of a part."""
        by_key = self._by_key[part]
        found: dict[int, Tracked] = {}
        for key in by_key.keys() & subscriptions:
            found.update(by_key[key])
        return found


def _remove(groups: dict[Any, dict[int, Tracked]], group: Any, id: int) -> None:
    # An entity may be given the same key twice.
    members = groups.get(group)
    if members is not None:
        members.pop(id, None)
        if not members:
            del groups[group]
