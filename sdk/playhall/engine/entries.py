"""The entries of updates: what is said of one entity, as bytes."""

from __future__ import annotations

from playhall.engine.backend import Tracked
from playhall.engine.tracking import Scope
from playhall.engine.updates import (
    Section,
    encode_change,
    encode_correct,
    encode_enter,
    encode_owner,
    encode_patch,
)

__all__ = ["Entries", "Entry"]

Entry = tuple[Section, bytes]


class Entries:
    """The entries of updates to one version. Each is encoded once, however many clients it goes to."""

    def __init__(self) -> None:
        self._enters: dict[tuple[int, bool], list[Entry]] = {}
        self._changes: dict[tuple[int, int], list[Entry]] = {}

    def enter(self, tracked: Tracked, mine: bool) -> list[Entry]:
        """Return what makes an entity known. `mine`: to its owner."""
        key = (tracked.id, mine)
        if tracked.scope is not Scope.PRIVATE and key in self._enters:
            return self._enters[key]
        entry = encode_enter(tracked.id, tracked.number, tracked.spec, tracked.values, owner_only=mine)
        entries = [(Section.ENTER, entry)]
        if tracked.owner is not None and tracked.scope is Scope.SHARED:
            entries.append((Section.OWNER, encode_owner(tracked.id, tracked.owner)))
        if tracked.scope is not Scope.PRIVATE:
            self._enters[key] = entries
        return entries

    def change(self, tracked: Tracked, since: int, mine: bool) -> list[Entry]:
        """Return what has changed of an entity since a version. `mine`: for its owner, who is told more."""
        if tracked.scope is Scope.PRIVATE:
            return _changes(tracked, since, ~0)
        key = (tracked.id, since)
        if key not in self._changes:
            self._changes[key] = _changes(tracked, since, ~tracked.spec.owner_only_mask)
            if tracked.owner_changed > since and tracked.scope is Scope.SHARED:
                self._changes[key].append((Section.OWNER, encode_owner(tracked.id, tracked.owner)))
        return self._changes[key] + self.change_for_owner(tracked, since) if mine else self._changes[key]

    def change_for_owner(self, tracked: Tracked, since: int) -> list[Entry]:
        """Return what an entity's owner is told of a change, beyond what everyone is."""
        if tracked.owner_changed <= since:
            return _changes(tracked, since, tracked.spec.owner_only_mask)
        # A new owner knows nothing of what is for owners only. And it may have been the owner before, and
        # believe its own values of what owners write.
        return self.secrets(tracked) + self.correct(tracked, tracked.spec.writable_mask, mine=True)

    def secrets(self, tracked: Tracked) -> list[Entry]:
        """Return all that is for the owner only."""
        mask = tracked.spec.owner_only_mask
        return (
            [(Section.CHANGE, encode_change(tracked.id, tracked.spec, tracked.values, mask))] if mask else []
        )

    def correct(self, tracked: Tracked, mask: int, *, mine: bool) -> list[Entry]:
        """Return fields that a client must take whatever it believes."""
        if not mine:
            mask &= ~tracked.spec.owner_only_mask
        return (
            [(Section.CORRECT, encode_correct(tracked.id, tracked.spec, tracked.values, mask))]
            if mask
            else []
        )


def _changes(tracked: Tracked, since: int, among: int) -> list[Entry]:
    if not among:
        return []
    mask = tracked.changed_since(since) & among
    entries: list[Entry] = []
    for index, ranges in tracked.patches_since(since, mask).items():
        mask &= ~(1 << index)
        value: bytes = tracked.values[index]
        entries += (
            (Section.PATCH, encode_patch(tracked.id, index, start, value[start:stop]))
            for start, stop in ranges
        )
    if mask:
        entries.append((Section.CHANGE, encode_change(tracked.id, tracked.spec, tracked.values, mask)))
    return entries
