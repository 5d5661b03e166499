"""What the player writes: the writable fields of its entities and of its private state, and its status.

A write shows at once, and its field is *unsent* from then on. The value is not kept beside it: what is sent,
at most once a tick of the room, is what the field holds by then.

A frame says which update the client had applied (`seen`) when it was *sent*, though a field in it may have
been written some updates before. That is right, and the version of the writing would tell the room nothing
else: the room drops a field for a correction, a birth or a change of owner after `seen`, and for what is
still unsent there was none between the writing and the sending. A correction that is applied makes its
fields unsent no more; a change of owner, a leave or an enter (the id is another entity's now) all fields of
the entity; a full state everything.

While the client has no room a write shows, and is not noted: the update it comes back with says what the room
holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from playhall.engine.errors import FieldError, ReadOnlyError
from playhall.engine.frames import MAX_FRAME, Write, WriteEntry
from playhall.engine.kinds import Entity, Home, put, spec_of, stored_values
from playhall.engine.presence import check_status
from playhall.engine.schema import PRIVATE_ID, SHARED_ID, PresenceRow, Schema

__all__ = ["Writes"]

ALL = -1
"""The mask of all fields."""

# Of a frame, and of each entry without its values: the longest there can be.
HEAD_BYTES = 11
ENTRY_BYTES = 48

_STATUS = spec_of(PresenceRow).by_name["status"]


def _nobody_listens() -> None:
    pass


class Writes(Home):
    """Where a client's entities live: takes the player's writes, and refuses the others with TypeError.

    `held` returns what the client holds of an id.
    """

    def __init__(self, schema: Schema[Any, Any], held: Callable[[int], Entity | None]) -> None:
        self._schema = schema
        self._held = held
        self._player = ""
        self._has_room = False
        self._is_over = False
        # Masks by id, in the order of the first write to each.
        self._unsent: dict[int, int] = {}
        self.on_unsent: Callable[[], None] = _nobody_listens
        """Called when something is unsent that was not, and nothing else was."""

    def __bool__(self) -> bool:
        """Whether anything is unsent."""
        return bool(self._unsent)

    # What the game does

    def write(self, entity: Entity, index: int, value: object) -> None:
        self._check(entity, index)
        super().write(entity, index, value)

    def patch(self, entity: Entity, index: int, offset: int, data: bytes) -> None:
        self._check(entity, index)
        super().patch(entity, index, offset, data)

    def on_write(self, entity: Entity, index: int, stored: Any) -> None:
        if isinstance(stored, float) and not math.isfinite(stored):
            # Rooms may store it, but take it for a broken client if one sends it.
            name = spec_of(entity).fields[index].name
            raise FieldError(entity.kind, entity.id, name, f"a client cannot write {stored}")
        self._note(entity, index)

    def set_status(self, row: PresenceRow, status: object) -> None:
        """Set the status in the player's own row. Raises TypeError or ValueError."""
        stored = check_status(status)
        if not _STATUS.type.same(stored_values(row)[_STATUS.index], stored):
            put(row, _STATUS.index, stored)
            self._note(row, _STATUS.index)

    def _check(self, entity: Entity, index: int) -> None:
        why = self._refusal(entity, index)
        if why:
            name = spec_of(entity).fields[index].name
            raise ReadOnlyError(f"{entity.kind} {entity.id}: {name} cannot be written here: {why}")

    def _refusal(self, entity: Entity, index: int) -> str:
        if self._is_over:
            return "the client is closed"
        if self._held(entity.id) is not entity:
            return "the entity has left"
        if entity.id == SHARED_ID:
            return "shared state is the room's; send a message, and let the room do it"
        if not spec_of(entity).fields[index].writable:
            return "the field is not writable; send a message, and let the room do it"
        if entity.owner != self._player:
            return f"the entity is {'the room' if entity.owner is None else repr(entity.owner)}'s"
        return ""

    def _note(self, entity: Entity, index: int) -> None:
        if self._has_room:
            was_empty = not self._unsent
            self._unsent[entity.id] = self._unsent.get(entity.id, 0) | 1 << index
            if was_empty:
                self.on_unsent()

    # What the core does

    def begin(self, player: str) -> None:
        """The client is in the room, as this player, and holds what the room does."""
        self._player = player
        self._has_room = True

    def lose(self) -> None:
        """The room is lost, and so is what is unsent."""
        self._has_room = False
        self._unsent.clear()

    def end(self) -> None:
        """The client is closed: nothing may be written any more."""
        self.lose()
        self._is_over = True

    def drop(self, id: int, mask: int = ALL) -> None:
        """Forget that fields of an entity are unsent: the room has said what they are."""
        left = self._unsent.get(id, 0) & ~mask
        if left:
            self._unsent[id] = left
        else:
            self._unsent.pop(id, None)

    def clear(self) -> None:
        """Forget all that is unsent."""
        self._unsent.clear()

    def take(self, seen: int) -> Write | None:
        """Return the next frame, or None if nothing is unsent. What does not fit it stays unsent."""
        entries: list[WriteEntry] = []
        space = MAX_FRAME - HEAD_BYTES
        for id, mask in list(self._unsent.items()):
            entity = self._held(id)
            assert entity is not None, "what leaves is dropped"
            spec, stored = spec_of(entity), stored_values(entity)
            fields = [field for field in spec.fields if mask >> field.index & 1]
            space -= ENTRY_BYTES + sum(field.type.size(stored[field.index]) for field in fields)
            if entries and space < 0:
                break
            del self._unsent[id]
            values = {field.index: stored[field.index] for field in fields}
            entries.append(WriteEntry(id, self._number_of(entity), spec, values))
        return Write(seen, tuple(entries)) if entries else None

    def _number_of(self, entity: Entity) -> int:
        if isinstance(entity, PresenceRow):
            return self._schema.presence_number
        # A kind may be an entity's and private state's too, and has a number for each.
        schema = self._schema
        number = schema.private_number if entity.id == PRIVATE_ID else schema.number_of(spec_of(entity))
        assert number is not None, "what is held is of the schema"
        return number
