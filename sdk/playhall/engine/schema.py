"""Schemas: what a room and its clients must agree on to read each other's bytes (docs/protocol/schema.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, cast

from typing_extensions import TypeVar

from playhall.engine.calls import Call, check_calls
from playhall.engine.fields import Json
from playhall.engine.inputs import Input, input_spec_of
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.specs import KindSpec

__all__ = [
    "EMPTY",
    "FIRST_ENTITY_ID",
    "FIRST_PRESENCE_ID",
    "LAST_ID",
    "PRIVATE_ID",
    "SHARED_ID",
    "PresenceRow",
    "Schema",
]

SHARED_ID: Final = 0
PRIVATE_ID: Final = 1
FIRST_ENTITY_ID: Final = 2
FIRST_PRESENCE_ID: Final = 2**31
LAST_ID: Final = 2**32 - 1

HASH_SIZE: Final = 16

State = TypeVar("State", bound="Entity | None", default=None)
Private = TypeVar("Private", bound="Entity | None", default=None)


class PresenceRow(Entity, kind="playhall_presence"):
    """The built-in last kind of every schema: a player who is in the room, or was."""

    player: str
    name: str
    status: Json[object] = None
    connected: bool


class Schema(Generic[State, Private]):
    """What a room and its clients declare in common: `schema = Schema(state=Board, entities=[Dot])`.

    A client whose schema has another `hash` than the room's is closed with 4004.
    """

    def __init__(
        self,
        *,
        state: type[State] | None = None,
        private: type[Private] | None = None,
        entities: Iterable[type[Entity]] = (),
        calls: Iterable[type[Call[Any]]] = (),
        input: type[Input] | None = None,
    ) -> None:
        """All of it is optional.

        `state` is the kind of shared state, `private` of each player's own, `entities` of everything else, in
        an order that counts. `calls` are what clients may ask; `input` is for steppers, still to come.

        Raises TypeError for what is listed twice or has one name with another, an abstract kind, shared state
        that is hidden or has writable fields, and calls of types that are no JSON.
        """
        self.state = state
        self.private = private
        # A type variable that may be None has no class for a checker; these are the same two classes.
        shared, own = cast("type[Entity] | None", state), cast("type[Entity] | None", private)
        self.entities = tuple(entities)
        self.calls = check_calls(calls)
        self.input = input
        self.classes: tuple[type[Entity], ...] = (
            *self.entities,
            *(cls for cls in (shared, own) if cls is not None),
            PresenceRow,
        )
        _check_classes(self.entities, self.classes)
        if shared is not None:
            _check_state(shared)
        if input is Input:
            raise TypeError("Input is a base: declare a class of your own")
        # By number: entities as listed, shared state, private state, presence.
        self.kinds: tuple[KindSpec, ...] = tuple(map(spec_of, self.classes))
        self.presence_number = len(self.kinds) - 1
        self.private_number = self.presence_number - 1 if private is not None else None
        self.state_number = len(self.entities) if state is not None else None
        self._numbers = {spec_of(cls): number for number, cls in enumerate(self.entities)}
        self.hash: bytes = hashlib.sha256(self.canonical().encode()).digest()[:HASH_SIZE]
        """Of kinds, fields with their types and flags, and their order; the same on every machine. Calls are
        left out: they may differ.
        """

    @property
    def input_spec(self) -> KindSpec | None:
        """What the compact input declares. For the engine itself."""
        return None if self.input is None else input_spec_of(self.input)

    def number_of(self, spec: KindSpec) -> int | None:
        """Return the number of an entity kind, or None where the schema does not list it.

        For the engine itself.
        """
        return self._numbers.get(spec)

    def canonical(self) -> str:
        """Return the text that is hashed. For the engine itself."""

        def declared(number: int | None) -> dict[str, object] | None:
            return None if number is None else self.kinds[number].canonical()

        input_spec = self.input_spec
        return json.dumps(
            {
                "entities": [declared(number) for number in range(len(self.entities))],
                "input": None if input_spec is None else input_spec.canonical(),
                "presence": declared(self.presence_number),
                "private": declared(self.private_number),
                "state": declared(self.state_number),
                "v": 1,
            },
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )

    def __repr__(self) -> str:
        names = ", ".join(cls.__name__ for cls in self.classes[:-1])
        return f"<Schema {self.hash.hex()[:8]}: {names}>"


def _check_classes(entities: Sequence[Any], classes: Sequence[Any]) -> None:
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, Entity)):
            raise TypeError(f"{cls!r} is no Entity class")
        if spec_of(cls).abstract:
            raise TypeError(f"{cls.__name__} is abstract, and no kind")
    if len(set(entities)) < len(entities):
        twice = next(cls for cls in entities if entities.count(cls) > 1)
        raise TypeError(f"{twice.__name__} is listed twice in entities")
    by_name: dict[str, type[Entity]] = {}
    for cls in classes:
        other = by_name.setdefault(spec_of(cls).name, cls)
        if other is not cls:
            raise TypeError(f"{other.__name__} and {cls.__name__} have one kind name, {spec_of(cls).name!r}")


def _check_state(state: type[Entity]) -> None:
    spec = spec_of(state)
    if spec.hidden:
        raise TypeError(f"{state.__name__}: shared state cannot be hidden")
    if spec.writable_mask:
        field = next(field for field in spec.fields if field.writable)
        raise TypeError(f"{state.__name__}.{field.name}: shared state has no owner, so it cannot be writable")


EMPTY: Final = Schema[None, None]()
"""The schema of a room without one."""
