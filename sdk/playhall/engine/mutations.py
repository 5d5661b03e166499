"""Json values that were changed in place, which nobody is told of and nothing saves: so their author must be.

To find them, all Json is written anew and compared with what was written when it was assigned. That is for
tests, and for games that are being made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from playhall.engine.fields import JSON, JsonValue
from playhall.engine.kinds import Entity, spec_of, stored_values
from playhall.engine.schema import PRIVATE_ID, Schema

__all__ = ["Mutations", "mutated_fields"]


def mutated_fields(entity: Entity) -> Iterator[str]:
    """Give the names of an entity's Json fields whose value was changed in place."""
    for field, value in zip(spec_of(entity).fields, stored_values(entity), strict=True):
        if isinstance(value, JsonValue) and value.mutated():
            yield field.name


class Mutations:
    """Warns of them while a room runs: of each field of a kind once, at most a second late."""

    def __init__(self, schema: Schema[Any, Any], warn: Callable[..., None]) -> None:
        self._warn = warn
        self.possible = any(
            field.type.name == JSON.name for kind in schema.kinds[:-1] for field in kind.fields
        )
        """Whether what is saved has any Json."""
        self._told: set[tuple[str, str]] = set()

    def look(self, entities: Iterable[Entity]) -> None:
        """Look at all of a room's entities, shared and private state among them."""
        for entity in entities:
            for field in mutated_fields(entity):
                if (entity.kind, field) not in self._told:
                    self._told.add((entity.kind, field))
                    whose = {"player": entity.owner} if entity.id == PRIVATE_ID else {}
                    self._warn(
                        "room.json_changed_in_place",
                        kind=entity.kind,
                        id=entity.id,
                        field=field,
                        **whose,
                        help="nobody hears of it and nothing saves it: assign a new value",
                    )
