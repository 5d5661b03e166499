"""A client that is watched: its callbacks, and what it is sent, are held to what they promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhall.client.core import ClientCore
from playhall.client.entities import ClientEntities
from playhall.client.replica import Changes
from playhall.engine import frames
from playhall.engine.schema import FIRST_ENTITY_ID, FIRST_PRESENCE_ID, PresenceRow
from playhall.engine.updates import MAX_PART, Enter, Leave, UpdateReader
from playhall.room import Entity, Schema

__all__ = ["Player", "Witness"]


class Witness:
    """Reads what a client is sent, and holds it to what the protocol promises, update by update."""

    def __init__(self, schema: Schema[Any, Any]) -> None:
        self._reader = UpdateReader(schema.kinds)
        self._generation = 0
        self._applied: tuple[int, int] = (0, 0)
        self.updates = 0

    def welcome(self, welcome: frames.Welcome) -> None:
        assert welcome.generation >= self._applied[0], "an older life of the room"
        self._generation = welcome.generation
        self._reader.welcome(welcome.version, welcome.tick, resumed=welcome.resumed)

    def part(self, data: bytes) -> None:
        assert len(data) <= MAX_PART
        held = set(self._reader.held)
        update = self._reader.part(data)
        if update is None:
            return
        if update.full:
            held = set()
        at = (self._generation, update.version)
        assert at >= self._applied, f"version {at} after {self._applied}"
        self._applied = at
        for operation in update.operations:
            match operation:
                case Leave(id):
                    assert id in held, f"{id} leaves, which was not there"
                    held.remove(id)
                case Enter(id):
                    assert id not in held, f"{id} enters, which is there"
                    held.add(id)
                case _:
                    assert operation.id in held
        self.updates += 1


class Player:
    """One client object, with its callbacks held to what they promise."""

    def __init__(self, name: str, core: ClientCore, whole: Callable[[Player, Entity], None]) -> None:
        self.name = name
        self.core = core
        self.socket: Any = None  # whatever its test carries it over
        self.witness = Witness(core.schema)
        self.entities = ClientEntities(core)
        self.withheld = False
        self.restored = 0
        self._whole = whole
        # What callbacks told of, by id; and what they found wrong, for what they raise is logged and lost.
        self.told: dict[int, Entity] = {}
        self.problems: list[str] = []
        self.entities.on_enter(Entity, self._entered)
        self.entities.on_leave(Entity, self._left)
        self.entities.on_change(Entity, self._changed)
        self.entities.on_correct(Entity, self._changed)
        self.entities.on_owner(Entity, lambda entity: self._changed(entity, frozenset()))

    def hear(self, changes: Changes) -> None:
        self.entities.tell(changes)
        assert not self.problems, self.problems
        held = {entity.id: entity for entity in self.entities}
        assert {id: e for id, e in self.told.items() if FIRST_ENTITY_ID <= id < FIRST_PRESENCE_ID} == held
        for entity in self.told.values():
            self._whole(self, entity)

    def _entered(self, entity: Entity) -> None:
        if entity.id in self.told:
            self.problems.append(f"{entity!r} enters twice")
        self.told[entity.id] = entity
        self._check(entity)

    def _left(self, entity: Entity) -> None:
        if self.told.pop(entity.id, None) is not entity:
            self.problems.append(f"{entity!r} leaves, which was not there")
        self._check(entity)

    def _changed(self, entity: Entity, names: frozenset[str]) -> None:
        if self.told.get(entity.id) is not entity:
            self.problems.append(f"{entity!r} changes {sorted(names)}, which was not there")
        self._check(entity)

    def _check(self, entity: Entity) -> None:
        try:
            self._whole(self, entity)
        except AssertionError as error:
            self.problems.append(str(error))

    def presence(self) -> dict[str, tuple[str, Any, bool]]:
        rows = self.core.replica.of_kind(PresenceRow)
        return {row.player: (row.name, row.status, row.connected) for row in rows}
