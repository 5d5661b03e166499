"""Views: what one client holds, and how it is brought up to date.

A join, a resume, a merge after updates were left out, and a move of what it sees are one thing: the client
holds certain ids, as of a certain version, and the difference to what it sees now follows from that and from
the version stamps (protocols, Resume). So what left its sight and came back while it was told nothing has
not left at all, and what is deleted needs no list.

Where a connection has a byte budget, some of what it holds may be older than the version of the rest; its
view remembers of when each such thing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from operator import itemgetter

from playhall.engine.budget import Budget
from playhall.engine.catchup import Step, tell
from playhall.engine.entries import Entries
from playhall.engine.schema import PRIVATE_ID, SHARED_ID
from playhall.engine.tracking import Flush, Scope, Tracked, Tracker

__all__ = ["Lack", "Sight", "View"]


@dataclass(slots=True)
class Sight:
    """What one connection sees, where not everyone sees everything: all but its player's private state.

    `found`: the ids among it that interest shows. `subscriptions`: its keys, for each part of the interest.
    """

    visible: dict[int, Tracked] = field(default_factory=dict)
    found: set[int] = field(default_factory=set)
    subscriptions: list[set[str | int | float]] = field(default_factory=list)
    too_many_keys: bool = False
    too_many_visible: bool = False


@dataclass(slots=True)
class Lack:
    """What a client is to be told: first `leaving`, then `steps`, by id. `waits`: what is not told yet."""

    leaving: list[int]
    steps: list[Step]
    waits: list[Step] = field(default_factory=list)


class View:
    """What one client holds.

    It has been sent what the player sees at `version`, but for what a byte budget keeps back; `told` is the
    version and tick its last update named, which the next one counts from. Until the first update it is
    `fresh`: it holds what it said it holds, which may be anything.

    `sight` is what it is to see; None is all there is. `budget` is there if it has one.
    """

    __slots__ = (
        "_behind",
        "_corrections",
        "_held",
        "_kept_back",
        "_widened",
        "budget",
        "fresh",
        "player",
        "resumed",
        "sight",
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
        self.sight: Sight | None = None
        self.budget: Budget | None = None
        self._widened = False
        self._held: set[int] = set()
        # What the client must be told whatever it believes: masks by id.
        self._corrections: dict[int, int] = {}
        # Of what it holds, what is older than `version`: from when it is.
        self._behind: dict[int, int] = {}
        self._kept_back = False

    @property
    def count(self) -> int:
        """How many entities and other things the client holds."""
        return len(self._held)

    def resume(self, version: int, held: Iterable[int]) -> None:
        """Start from what the client says it holds, as of a version of this generation."""
        self.version = self.told_version = version
        self.resumed = True
        self._held = set(held)

    def see_all(self) -> None:
        """From now on the player sees all there is."""
        self._widened = self.sight is not None
        self.sight = self.budget = None

    def follows(self, version: int) -> bool:
        """Whether it sees all there is, and holds all there was at the version before."""
        return self.sight is None and not self._widened and not self.fresh and self.version == version - 1

    def note(self, flush: Flush) -> None:
        """Take in what a flush means for this client: to be called for every flush, before its update."""
        for tracked, mask in flush.corrections.get(self.player, {}).items():
            self._corrections[tracked.id] = self._corrections.get(tracked.id, 0) | mask

    def lack(self, tracker: Tracker, touched: Mapping[int, Tracked]) -> Lack:
        """Return what the client lacks. `touched`: at least all, by id, that has changed since `version`."""
        seen = tracker.public if self.sight is None else self.sight.visible
        if self.fresh:
            touched = seen
        new: Set[int] = seen.keys() - self._held
        gone = self._held.difference(seen)
        gone.discard(PRIVATE_ID)
        kept = (touched.keys() & seen.keys()) | (self._behind.keys() & seen.keys())
        lack = Lack(list(gone), [])
        private = tracker.private(self.player)
        if private is not None:
            self._add(lack, private)
        elif PRIVATE_ID in self._held:
            lack.leaving.append(PRIVATE_ID)
        for id in new | kept:
            self._add(lack, seen[id])
        lack.leaving.sort()
        lack.steps.sort(key=itemgetter(0))
        return lack

    def _add(self, lack: Lack, tracked: Tracked) -> None:
        id, mine = tracked.id, tracked.owner == self.player
        if id in self._held and tracked.born <= self.version:
            correct = self._corrected(tracked, mine)
            lack.steps.append(Step(id, tracked, False, mine, correct, self._since(tracked)))
            return
        if id in self._held:
            lack.leaving.append(id)
        lack.steps.append(Step(id, tracked, True, mine, 0, 0))

    def _since(self, tracked: Tracked) -> int:
        if self.fresh and self.resumed and self.budget is not None and tracked.scope is Scope.SHARED:
            return -1  # what the budget kept back in the connection before is not known any more
        return self._behind.get(tracked.id, self.version)

    def _corrected(self, tracked: Tracked, mine: bool) -> int:
        mask = self._corrections.get(tracked.id, 0)
        if self.fresh and self.resumed and (mine or tracked.owner_changed > self.version):
            # What the player wrote before it dropped may never have come, and it still believes it.
            mask |= tracked.spec.writable_mask
            if mine and tracked.scope is Scope.PRESENCE:
                mask |= 1 << tracked.spec.by_name["status"].index
        return mask

    def ration(self, lack: Lack, entries: Entries) -> None:
        """Keep back what the budget has no bytes for.

        Only changes and enters of other's entities count: what leaves, is the player's own, has changed
        hands or is corrected is told at once, and so is all of the first update.
        """
        if self.budget is None:
            return
        if self.fresh:
            self.budget.forget()
            return
        metered = [step for step in lack.steps if _is_metered(step)]
        lack.waits = self.budget.choose(metered, lambda step: _size(step, entries))
        waits = {step.id for step in lack.waits}
        lack.steps = [step for step in lack.steps if step.id not in waits]

    @property
    def waits(self) -> bool:
        """Whether something was kept back that could be told now."""
        return self._kept_back and (self.budget is None or self.budget.open)

    def follow(self, flush: Flush, removed: Set[int], added: Set[int], tracker: Tracker) -> None:
        """Note that the client was sent what the flush changed: of public things, these ids."""
        self._held -= removed
        self._held |= added
        (self._held.add if tracker.private(self.player) else self._held.discard)(PRIVATE_ID)
        self._settle(flush.version)

    def take(self, lack: Lack, version: int) -> None:
        """Note that the client was sent what it lacked at `version`."""
        self._held.difference_update(lack.leaving)
        self._held.update(step.id for step in lack.steps if step.enters)
        self._behind = {step.id: step.since for step in lack.waits if not step.enters}
        self._kept_back = bool(lack.waits)
        self._widened = False
        self._settle(version)

    def _settle(self, version: int) -> None:
        self.version = version
        self.fresh = False
        self._corrections = {}

    def name(self, version: int, tick: int) -> None:
        """Note that an update's head has named this version and tick."""
        self.told_version, self.told_tick = version, tick


def _is_metered(step: Step) -> bool:
    tracked = step.tracked
    return (
        tracked.scope is Scope.SHARED
        and tracked.id != SHARED_ID
        and not step.mine
        and not step.correct
        and (step.enters or tracked.owner_changed <= step.since)
    )


def _size(step: Step, entries: Entries) -> int:
    return sum(len(entry) for _, entry in tell(step, entries))
