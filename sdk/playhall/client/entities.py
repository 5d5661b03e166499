"""`room.entities` of a client: the entities it sees, and who wants to hear of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, overload

from playhall.client.core import ClientCore
from playhall.client.listeners import EntityListeners, Remove
from playhall.client.replica import Changes
from playhall.engine.kinds import Entity
from playhall.engine.schema import FIRST_ENTITY_ID, FIRST_PRESENCE_ID, PresenceRow

__all__ = ["ClientEntities"]

E = TypeVar("E", bound=Entity)


class ClientEntities:
    """The entities of the room that this client sees. The room writes them; the player writes the writable
    fields of its own.

    Such a write (`cursor.x = 5`, also to `room.private`) shows at once, and is sent once a tick of the room.
    The room may overrule it, which is an `on_change` and an `on_correct`. What is not sent yet is lost when
    the connection is. Any other write raises TypeError, and a value that does not fit FieldError.

    A handle is the same object for as long as the entity is seen, over reconnects too; a room that was away
    (another generation) sends everything anew. One that has left keeps its last values.

    Callbacks run once a whole update is in, in this order: all of its enters, then changes, corrections,
    owners and leaves. Where an entity takes the place of another with its id, the other leaves before
    the enters. Callbacks for a base hear of every kind under it; those for the kinds of shared and
    private state hear of these two. Each `on_...` returns a function that takes the callback off.
    """

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._replica = core.replica
        self._enter = EntityListeners()
        self._change = EntityListeners()
        self._leave = EntityListeners()
        self._owner = EntityListeners()
        self._correct = EntityListeners()

    @overload
    def get(self, id: int, /) -> Entity | None: ...
    @overload
    def get(self, kind: type[E], id: int, /) -> E | None: ...
    def get(self, kind: type[E] | int, id: int | None = None, /) -> Entity | None:
        """Return the entity of an id, or None: also where it is of another kind than was asked for."""
        if isinstance(kind, int):
            return self._replica.get(kind) if _is_entity(kind) else None
        found = None if id is None or not _is_entity(id) else self._replica.get(id)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[E], /, *, owner: str | None = None) -> list[E]:
        """Return the entities of a kind in a new list. With `owner`, that player's."""
        return list(self._iter(kind, owner))

    def mine(self, kind: type[E], /) -> list[E]:
        """Return the player's own entities of a kind in a new list."""
        return list(self._iter(kind, self._core.player))

    def first(self, kind: type[E], /, *, owner: str | None = None) -> E | None:
        """Return one entity of a kind, or None. With `owner`, of that player's."""
        return next(self._iter(kind, owner), None)

    def count(self, kind: type[Entity], /) -> int:
        """Return how many entities of a kind there are."""
        return sum(1 for _ in self._iter(kind, None))

    def __len__(self) -> int:
        return self.count(Entity)

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.all(Entity))

    def __contains__(self, entity: object) -> bool:
        return isinstance(entity, Entity) and _is_entity(entity.id) and self._replica.get(entity.id) is entity

    def on_enter(self, kind: type[E], callback: Callable[[E], object], /) -> Remove:
        """Call back for each entity of a kind that comes in sight."""
        return self._enter.add(kind, callback)

    def on_change(self, kind: type[E], callback: Callable[[E, frozenset[str]], object], /) -> Remove:
        """Call back for each entity of a kind of which fields changed, with their names."""
        return self._change.add(kind, callback)

    def on_leave(self, kind: type[E], callback: Callable[[E], object], /) -> Remove:
        """Call back for each entity of a kind that is gone, or no longer seen."""
        return self._leave.add(kind, callback)

    def on_owner(self, kind: type[E], callback: Callable[[E], object], /) -> Remove:
        """Call back for each entity of a kind that another player owns now, or nobody."""
        return self._owner.add(kind, callback)

    def on_correct(self, kind: type[E], callback: Callable[[E, frozenset[str]], object], /) -> Remove:
        """Call back for each entity of a kind, of the player's own, in which the room overruled the player.

        With the names of the fields; `on_change` has been called for them.
        """
        return self._correct.add(kind, callback)

    def tell(self, changes: Changes) -> None:
        """Run the callbacks of an update. For the client itself."""
        entered = {entity.id for entity in changes.entered}
        for entity in changes.left:
            if entity.id in entered:
                self._call(self._leave, entity)
        for entity in changes.entered:
            self._call(self._enter, entity)
        for entity, names in changes.changed:
            self._call(self._change, entity, names)
        for entity, names in changes.corrected:
            self._call(self._correct, entity, names)
        for entity in changes.owned:
            self._call(self._owner, entity)
        for entity in changes.left:
            if entity.id not in entered:
                self._call(self._leave, entity)

    @staticmethod
    def _call(listeners: EntityListeners, entity: Entity, *args: object) -> None:
        if not isinstance(entity, PresenceRow):
            listeners.call(entity, *args)

    def _iter(self, kind: type[E], owner: str | None) -> Iterator[E]:
        for entity in self._replica.of_kind(kind):
            if entity.id < FIRST_PRESENCE_ID and (owner is None or entity.owner == owner):
                yield entity


def _is_entity(id: int) -> bool:
    return FIRST_ENTITY_ID <= id < FIRST_PRESENCE_ID
