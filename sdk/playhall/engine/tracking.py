"""Change tracking by version stamps: what has changed since any version, without a list of changes.

The room's state has a version, +1 per flush. Everything that clients or the log can be told of is a
`Tracked`: shared state, entities, private state, presence entries. It knows in which version it was born,
when its owner last changed, and when each field did; so the difference between any two moments of one
generation can be told from the stamps and from what a client holds, and nothing need be remembered of what
is gone.

A Tracked is the home of its entity (see `handles`): a write marks the field as dirty, and the flush stamps
it. Several writes between two flushes are one change. What one flush finds stands by number of kind, then by
row (see `places`): in order of memory, for the native twin of this, `native.tables`.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from playhall.engine.handles import Home, Values, adopt, bury, restore, spec_of, stored_values
from playhall.engine.patches import Patches, Range
from playhall.engine.places import Places
from playhall.engine.specs import KindSpec

if TYPE_CHECKING:
    from playhall.engine.columns import Columns
    from playhall.engine.kinds import Entity
    from playhall.engine.rows import Rows

__all__ = ["Flush", "Scope", "Tracked", "Tracker"]


class Scope(enum.Enum):
    """Who is told of a Tracked, and whether it is saved."""

    SHARED = enum.auto()  # everyone; saved
    HIDDEN = enum.auto()  # no one; saved
    PRIVATE = enum.auto()  # its owner; saved
    PRESENCE = enum.auto()  # everyone; not saved


class Tracked(Home):
    """One thing that changes. `born` and `changed` are versions; masks are bits by field index.

    `row` is its place among those of its number. `born` is -1 until a flush has told of it.
    """

    __slots__ = (
        "_tracker",
        "_twin",
        "believed",
        "born",
        "changed",
        "corrected_at",
        "dirty",
        "entity",
        "id",
        "lost_by",
        "number",
        "owner",
        "owner_changed",
        "owner_dirty",
        "owner_mask",
        "patched",
        "patches",
        "queued",
        "row",
        "scope",
        "spec",
        "stamps",
        "values",
    )

    entity: Entity
    spec: KindSpec
    values: Sequence[Any]
    stamps: list[int]

    def __init__(self, tracker: Tracker, scope: Scope, id: int, number: int, owner: str | None) -> None:
        self._tracker = tracker
        self.scope = scope
        self.id = id
        self.number = number
        self.row = -1
        self.owner = owner
        self.born = self.changed = self.owner_changed = 0
        self.patches: dict[int, Patches] = {}
        # By field: when the owner of now was last told a value other than what it believed.
        self.corrected_at: dict[int, int] = {}
        # By field the owner writes: what it believes, where that may not be the room's value any more.
        self.believed: dict[int, Any] = {}
        # Since the last flush:
        self.dirty = 0
        self.patched: dict[int, list[Range]] = {}
        self.owner_dirty = False
        self.lost_by: set[str] = set()
        self.queued = False
        self._twin: Tracked | None = None

    def bind(self, entity: Entity) -> None:
        """Say whose home this is."""
        self.entity = entity
        self.spec = spec_of(entity)
        self.values = stored_values(entity)
        self.stamps = [0] * len(self.spec.fields)
        presence = self.scope is Scope.PRESENCE
        self.owner_mask = 1 << self.spec.by_name["status"].index if presence else self.spec.writable_mask

    def on_write(self, entity: Entity, index: int, stored: Any) -> None:
        if self.patched:
            self.patched.pop(index, None)
        self.wrote(1 << index)

    def on_patch(self, entity: Entity, index: int, offset: int, data: bytes, stored: bytes) -> None:
        bit = 1 << index
        if not self.dirty & bit or index in self.patched:
            # A patch beyond the end changes the gap before it too, but filling it with zeros is what a
            # patch means.
            self.patched.setdefault(index, []).append((offset, offset + len(data)))
        self.wrote(bit)

    def set_owner(self, owner: str | None) -> None:
        """Note another owner."""
        if self.owner is not None:
            self.lost_by.add(self.owner)
        self.owner = owner
        self.owner_dirty = True
        self._tracker.touch(self)

    def owner_wrote(self, index: int, stored: Any) -> None:
        """Note what the owner wrote, whatever the room is going to make of it.

        If that is not the room's value at the flush, the owner is corrected, also where nothing has changed.
        """
        self.believed[index] = stored
        if not self.spec.fields[index].type.same(self.values[index], stored):
            self._tracker.touch(self)

    def overruled(self, version: int) -> int:
        """Return the mask of the fields that are not as the owner believes, and note that it is told."""
        mask = 0
        for index, believed in self.believed.items():
            if not self.spec.fields[index].type.same(self.values[index], believed):
                self.corrected_at[index] = version
                mask |= 1 << index
        return mask

    def changed_since(self, version: int) -> int:
        """Return the mask of the fields that have changed since a version."""
        mask = 0
        for index, stamp in enumerate(self.stamps):
            if stamp > version:
                mask |= 1 << index
        return mask

    def patches_since(self, version: int, mask: int) -> dict[int, list[Range]]:
        """Return, of the fields in `mask`, those that patches bring up to date, with the ranges to send."""
        out = {}
        for index, patches in self.patches.items():
            if mask >> index & 1:
                ranges = patches.ranges(version, len(self.values[index]))
                if ranges is not None:
                    out[index] = ranges
        return out

    def twin(self) -> Tracked:
        """Return a copy of this as it was flushed last, which does not change. To be called after a flush.

        It holds the same values. All who ask between two changes get the same.
        """
        if self._twin is None:
            twin = copy(self)
            twin.values, twin.stamps = list(self.values), list(self.stamps)
            twin.patches = {
                index: replace(each, made=list(each.made)) for index, each in self.patches.items()
            }
            self._twin = twin
        return self._twin

    def stamp(self, version: int) -> None:
        """Give what has changed since the last flush its version."""
        self._twin = None
        self.changed = version
        if self.owner_dirty:
            self.owner_changed = version
        mask = self.dirty
        while mask:
            index = (mask & -mask).bit_length() - 1
            mask &= mask - 1
            self._stamp_patches(index, version)
            self.stamps[index] = version
        # Most have none of these, and there may be many.
        if self.patched:
            self.patched = {}
        if self.believed:
            self.believed = {}
        if self.lost_by:
            self.lost_by = set()
        self.dirty = 0
        self.owner_dirty = self.queued = False

    def _stamp_patches(self, index: int, version: int) -> None:
        ranges = self.patched.get(index)
        if ranges is None or self.born == version:
            self.patches.pop(index, None)
        else:
            # Before its first patch the field had been the same since it was last written.
            self.patches.setdefault(index, Patches(self.stamps[index], [])).add(version, ranges)

    def wrote(self, mask: int) -> None:
        """Note that room code has written these fields."""
        self.dirty |= mask
        if mask & self.owner_mask and self.owner is not None:
            self._note_beliefs(mask & self.owner_mask)
        if not self.queued:
            self._tracker.touch(self)

    def _note_beliefs(self, mask: int) -> None:
        values, believed = self.values, self.believed
        while mask:
            index = (mask & -mask).bit_length() - 1
            mask &= mask - 1
            if index not in believed:
                # In arrays (see `rows`) the new value may be in place already.
                believed[index] = values.told(index) if isinstance(values, Values) else values[index]


@dataclass(slots=True)
class Flush:
    """What has changed from one version to the next. Everything is stamped with `version`.

    `added` and `changed`, which leaves out what was added, stand by kind and row. `corrections` are masks by
    player and Tracked: what the player must be told, since it is not what the player believes, or since the
    player wrote it until now and owns it no longer.
    """

    version: int
    added: list[Tracked] = field(default_factory=list)
    changed: list[Tracked] = field(default_factory=list)
    removed: list[Tracked] = field(default_factory=list)
    corrections: dict[str, dict[Tracked, int]] = field(default_factory=dict)

    def correct(self, player: str, tracked: Tracked, mask: int) -> None:
        if mask:
            masks = self.corrections.setdefault(player, {})
            masks[tracked] = masks.get(tracked, 0) | mask


class Tracker:
    """All that is tracked in one room."""

    def __init__(self) -> None:
        self._untold: list[Rows] = []
        self._public: dict[int, Tracked] = {}
        # In order of last change.
        self._by_change: OrderedDict[int, Tracked] = OrderedDict()
        self._private: dict[str, Tracked] = {}
        self._places: dict[int, Places] = {}
        self._columns: dict[int, Rows] = {}
        self._touched: dict[Tracked, None] = {}
        # Since the last flush, and told by it: rows of the latter are free with the next.
        self._removed: list[Tracked] = []
        self._resting: list[Tracked] = []

    # What clients can be told of. What each of them sees of it is `visibility`'s.

    @property
    def public(self) -> Mapping[int, Tracked]:
        """All that may be seen by anybody, by id: shared state, entities, presence."""
        return self._public

    def public_since(self, version: int) -> dict[int, Tracked]:
        """Return what of it has changed since a version, by kind and row."""
        found = []
        for tracked in reversed(self._by_change.values()):
            if tracked.changed <= version:
                break
            found.append(tracked)
        return {tracked.id: tracked for tracked in sorted(found, key=_place)}

    def add(self, entity: Entity, scope: Scope, id: int, number: int, owner: str | None) -> Tracked:
        """Track something new: born in the next flush. Raises ValueError for what was added before."""
        tracked = Tracked(self, scope, id, number, owner)
        adopt(entity, tracked, id, None if scope is Scope.PRESENCE else owner)
        self._register(tracked, entity)
        tracked.born = -1
        self.touch(tracked)
        return tracked

    def restore(
        self, cls: type[Entity], scope: Scope, id: int, number: int, owner: str | None, values: list[Any]
    ) -> Tracked:
        """Track what was saved: it was there before the generation's first version."""
        tracked = Tracked(self, scope, id, number, owner)
        self._register(tracked, restore(cls, tracked, id, owner, values))
        return tracked

    def remove(self, tracked: Tracked) -> None:
        """Forget it; its handle is dead from now on. Its last values stay with the Tracked."""
        if tracked.scope is Scope.PRIVATE:
            del self._private[tracked.owner or ""]
        elif tracked.scope is not Scope.HIDDEN:
            del self._public[tracked.id]
            del self._by_change[tracked.id]
        bury(tracked.entity)
        columns = self._columns.get(tracked.number)
        if columns is not None:
            columns.detach(tracked)
        if tracked.born >= 0:
            self._removed.append(tracked)
        else:
            self._places[tracked.number].free(tracked.row)
        if tracked.queued:
            del self._touched[tracked]
            tracked.queued = False

    def touch(self, tracked: Tracked) -> None:
        """Note that it has changed since the last flush."""
        if not tracked.queued:
            tracked.queued = True
            self._touched[tracked] = None

    def private(self, player: str) -> Tracked | None:
        return self._private.get(player)

    def private_players(self) -> list[str]:
        return list(self._private)

    def columns(self, kind: type[Entity], number: int) -> Columns:
        """Return the columns of a kind.

        Raises TypeError where it can have none, ModuleNotFoundError without NumPy.
        """
        rows = self._columns.get(number)
        if rows is None:
            from playhall.engine.rows import Rows

            rows = self._columns[number] = Rows(spec_of(kind), self._places_of(number).there)
            self._untold.append(rows)
        return rows.columns()

    @property
    def dirty(self) -> bool:
        """Whether a flush would find anything."""
        return bool(self._touched or self._removed) or any(untold.changed() for untold in self._untold)

    def flush(self, version: int) -> Flush:
        """Stamp all that has changed with `version`, and return it.

        Raises FieldError, and stamps nothing then, where what was written through columns does not fit.
        """
        for tracked in self._resting:
            self._places[tracked.number].free(tracked.row)
        self._resting = []
        for untold in self._untold:
            untold.tell()
        flush = Flush(version, removed=self._removed)
        for tracked in sorted(self._touched, key=_place):
            if tracked.born < 0:
                tracked.born = version
                flush.added.append(tracked)
            else:
                flush.changed.append(tracked)
                if tracked.believed and tracked.owner is not None and not tracked.owner_dirty:
                    flush.correct(tracked.owner, tracked, tracked.overruled(version))
                # Who has just become the owner is told all that owners write, and need not be twice.
                for player in tracked.lost_by:
                    if player != tracked.owner:
                        flush.correct(player, tracked, tracked.spec.writable_mask)
            tracked.stamp(version)
            if tracked.id in self._by_change and tracked.scope is not Scope.PRIVATE:
                self._by_change.move_to_end(tracked.id)
        self._touched = {}
        self._removed, self._resting = [], self._removed
        return flush

    def _register(self, tracked: Tracked, entity: Entity) -> None:
        tracked.bind(entity)
        tracked.row = self._places_of(tracked.number).take(tracked)
        if tracked.scope is Scope.PRIVATE:
            self._private[tracked.owner or ""] = tracked
        elif tracked.scope is not Scope.HIDDEN:
            self._public[tracked.id] = self._by_change[tracked.id] = tracked
        columns = self._columns.get(tracked.number)
        if columns is not None:
            columns.attach(tracked)

    def _places_of(self, number: int) -> Places:
        return self._places.setdefault(number, Places())


_place = attrgetter("number", "row")
