"""Records, and what bases hold of entities, private and shared states: in msgpack, for `statelog`.

The pure twin of `native.records`, which writes the same bytes straight from the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from playhall.engine.tracking import Scope
from playhall.engine.wire import Writer

if TYPE_CHECKING:
    from playhall.engine.tracking import Flush, Tracked

__all__ = ["Change", "Owner", "Patch", "Private", "Row", "record_of", "rows_of"]


_ENCODER = msgspec.msgpack.Encoder()
_ARRAY_OF_11 = b"\x9b"


class Row(msgspec.Struct, array_like=True):
    """An entity: `data` is all its fields in order."""

    id: int
    kind: int
    owner: str | None
    data: bytes


class Private(msgspec.Struct, array_like=True):
    """A player's private state."""

    player: str
    data: bytes


class Change(msgspec.Struct, array_like=True):
    """Fields of an entity (by id) or a private state (by player): a mask, and the masked fields in order."""

    of: int | str
    data: bytes


class Patch(msgspec.Struct, array_like=True):
    of: int | str
    field: int
    offset: int
    data: bytes


class Owner(msgspec.Struct, array_like=True):
    id: int
    owner: str | None


def rows_of(tracked: Iterable[Tracked]) -> tuple[list[Row], list[Private]]:
    """Return all that is saved of these: entities and shared state, and private states."""
    rows: list[Row] = []
    privates: list[Private] = []
    for one in tracked:
        out = Writer()
        for spec in one.spec.fields:
            spec.type.encode(out, one.values[spec.index])
        if one.scope is Scope.PRIVATE:
            privates.append(Private(one.owner or "", out.finish()))
        elif one.scope is not Scope.PRESENCE:
            rows.append(Row(one.id, one.number, one.owner, out.finish()))
    return rows, privates


def record_of(flush: Flush, tick: int, next_id: int, rest: bytes, *, always: bool) -> bytes | None:
    """Return the record of a flush, or None where it changed nothing that is saved, unless `always`.

    `rest` is what stands in it after all that is said of entities and states.
    """
    removed: list[int | str] = [
        one.owner or "" if one.scope is Scope.PRIVATE else one.id
        for one in flush.removed
        if one.scope is not Scope.PRESENCE
    ]
    changes: tuple[list[Change], list[Patch], list[Owner]] = ([], [], [])
    for one in flush.changed:
        if one.scope is not Scope.PRESENCE:
            _write_change(one, flush.version, *changes)
    parts = (removed, *rows_of(flush.added), *changes)
    if not (always or any(parts)):
        return None
    return b"".join([_ARRAY_OF_11, *map(_ENCODER.encode, (tick, next_id, *parts)), rest])


def _write_change(
    tracked: Tracked, version: int, changes: list[Change], patches: list[Patch], owners: list[Owner]
) -> None:
    name = tracked.owner or "" if tracked.scope is Scope.PRIVATE else tracked.id
    mask = tracked.changed_since(version - 1)
    for index, ranges in tracked.patches_since(version - 1, mask).items():
        mask &= ~(1 << index)
        value = tracked.values[index]
        patches.extend(Patch(name, index, start, value[start:stop]) for start, stop in ranges)
    if mask:
        out = Writer()
        out.mask(mask)
        for spec in tracked.spec.fields:
            if mask >> spec.index & 1:
                spec.type.encode(out, tracked.values[spec.index])
        changes.append(Change(name, out.finish()))
    if tracked.owner_changed == version and tracked.scope is not Scope.PRIVATE:
        owners.append(Owner(tracked.id, tracked.owner))
