"""Views: what one client holds, and how it is brought up to date.

A join, a resume and a merge after updates were left out are one thing: the client holds certain ids, as of
a certain version, and the difference to what it sees now follows from that and from the version stamps
(protocols, Resume).
"""

from __future__ import annotations

from collections.abc import Iterable

from playhall.engine.tracking import Flush, Scope, Tracked, Tracker
from playhall.engine.updates import (
    Section,
    UpdateBuilder,
    encode_change,
    encode_correct,
    encode_enter,
    encode_leave,
    encode_owner,
    encode_patch,
)

__all__ = ["Entries", "Entry", "View"]

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


class View:
    """What one client holds.

    It is equal to what the player sees at `version`; `told` is the version and tick its last update named,
    which the next one counts from. Until the first update it is `fresh`: it holds what it said it holds,
    which may be anything.
    """

    __slots__ = (
        "_corrections",
        "_held",
        "_leaving",
        "fresh",
        "player",
        "resumed",
        "told_tick",
        "told_version",
        "version",
    )

    def __init__(self, player: str, version: int, tick: int) -> None:
        """Start with nothing, from a welcome that names this version and tick."""
        self.player = player
        self.version = 0
        self.told_version, self.told_tick = version, tick
        self.fresh = True
        self.resumed = False
        self._held: set[int] = set()
        # Held, and gone or replaced since.
        self._leaving: set[int] = set()
        # What the client must be told whatever it believes: masks by id.
        self._corrections: dict[int, int] = {}

    def resume(self, version: int, held: Iterable[int]) -> None:
        """Start from what the client says it holds, as of a version of this generation."""
        self.version = self.told_version = version
        self.resumed = True
        self._held = set(held)

    def note(self, flush: Flush, tracker: Tracker) -> None:
        """Take in what a flush means for this client.

        To be called for every flush, before an update is made of it.
        """
        for tracked in flush.removed:
            if tracked.id in self._held and tracker.sees(self.player, tracked):
                self._held.remove(tracked.id)
                self._leaving.add(tracked.id)
                self._corrections.pop(tracked.id, None)
        for tracked, mask in flush.corrections.get(self.player, {}).items():
            self._corrections[tracked.id] = self._corrections.get(tracked.id, 0) | mask

    def enter(self, flush: Flush, tracker: Tracker) -> None:
        """Note that the client was sent exactly what the flush changed for everyone."""
        self._held.update(tracked.id for tracked in flush.added if tracker.sees(self.player, tracked))

    def sent(self, version: int, told: tuple[int, int] | None) -> None:
        """Note that the client holds all it sees at `version`; `told`: what the head of an update said."""
        self.version = version
        self.fresh = False
        self._leaving = set()
        self._corrections = {}
        if told is not None:
            self.told_version, self.told_tick = told

    def catch_up(self, tracker: Tracker, entries: Entries) -> UpdateBuilder:
        """Return all that the client lacks, and note that it holds it."""
        builder = UpdateBuilder()
        seen = sorted(
            tracker.visible(self.player) if self.fresh else tracker.visible_since(self.player, self.version),
            key=lambda tracked: tracked.id,
        )
        if self.fresh:
            visible = {tracked.id for tracked in seen}
            self._leaving |= self._held - visible
            self._held &= visible
        entered = []
        for tracked in seen:
            mine = tracked.owner == self.player and tracked.scope is not Scope.PRESENCE
            if tracked.id in self._held and tracked.born <= self.version:
                found = entries.change(tracked, self.version, mine) if tracked.changed > self.version else []
                found = found + self._corrected(tracked, entries)
            else:
                if tracked.id in self._held:
                    self._leaving.add(tracked.id)
                entered.append(tracked.id)
                found = entries.enter(tracked, mine or tracked.scope is Scope.PRIVATE)
            for section, entry in found:
                builder.add(section, entry)
        builder.extend(Section.LEAVE, (encode_leave(id) for id in sorted(self._leaving)))
        self._held.update(entered)
        return builder

    def _corrected(self, tracked: Tracked, entries: Entries) -> list[Entry]:
        mask = self._corrections.get(tracked.id, 0)
        mine = tracked.owner == self.player
        if self.fresh and self.resumed and (mine or tracked.owner_changed > self.version):
            # What the player wrote before it dropped may never have come, and it still believes it.
            mask |= tracked.spec.writable_mask
            if mine and tracked.scope is Scope.PRESENCE:
                mask |= 1 << tracked.spec.by_name["status"].index
        return entries.correct(tracked, mask, mine=mine) if mask else []
