"""Views: what one client holds, and how it is brought up to date.

A join, a resume and a merge after updates were left out are one thing: the client holds certain ids, as of
a certain version, and the difference to what it sees now follows from that and from the version stamps
(protocols, Resume).
"""

from __future__ import annotations

from collections.abc import Iterable

from playhall.engine.catchup import CatchUp, Step
from playhall.engine.entries import Entries
from playhall.engine.tracking import Flush, Scope, Tracked, Tracker

__all__ = ["View"]


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

    @property
    def count(self) -> int:
        """How many entities and other things the client holds."""
        return len(self._held)

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

    def catch_up(self, tracker: Tracker, entries: Entries) -> CatchUp:
        """Return all that the client lacks, and note that it holds it."""
        seen = sorted(
            tracker.visible(self.player) if self.fresh else tracker.visible_since(self.player, self.version),
            key=lambda tracked: tracked.id,
        )
        if self.fresh:
            visible = {tracked.id for tracked in seen}
            self._leaving |= self._held - visible
            self._held &= visible
        steps = []
        for tracked in seen:
            mine = tracked.owner == self.player
            if tracked.id in self._held and tracked.born <= self.version:
                steps.append(Step(tracked, False, mine, self._corrected(tracked, mine)))
            else:
                if tracked.id in self._held:
                    self._leaving.add(tracked.id)
                steps.append(Step(tracked, True, mine, 0))
        leaving = sorted(self._leaving)
        self._held.update(step.tracked.id for step in steps if step.enters)
        return CatchUp(leaving, steps, self.version, entries)

    def _corrected(self, tracked: Tracked, mine: bool) -> int:
        mask = self._corrections.get(tracked.id, 0)
        if self.fresh and self.resumed and (mine or tracked.owner_changed > self.version):
            # What the player wrote before it dropped may never have come, and it still believes it.
            mask |= tracked.spec.writable_mask
            if mine and tracked.scope is Scope.PRESENCE:
                mask |= 1 << tracked.spec.by_name["status"].index
        return mask
