"""Views: what one client holds, and how it is brought up to date.

A join, a resume, a merge after updates were left out, and a move of what it sees are one thing: the client
holds certain ids, as of a certain version, and the difference to what it sees now follows from that and from
the version stamps (protocols, Resume). So what left its sight and came back while it was told nothing has
not left at all, and what is deleted needs no list.

Where a connection has a byte budget, some of what it holds may be older than the version of the rest; its
view remembers of when each such thing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field

from playhall.engine.backend import Flush, Tracked, Tracker
from playhall.engine.budget import Budget
from playhall.engine.catchup import Step, place, tell
from playhall.engine.entries import Entries
from playhall.engine.schema import PRIVATE_ID, SHARED_ID
from playhall.engine.tracking import Scope

__all__ = ["Lack", "Sight", "View", "place_of", "ration"]


class Sight:
    """What one connection sees, where not everyone sees everything: all but its player's private state.

    `found`: the ids among it that interest shows. `subscriptions`: its keys, for each part of the interest.
    """

    __slots__ = ("_visible", "found", "subscriptions", "too_many_keys", "too_many_visible")

    def __init__(self) -> None:
        self._visible: dict[int, Tracked] = {}
        self.found: set[int] = set()
        self.subscriptions: list[set[str | int | float]] = []
        self.too_many_keys = False
        self.too_many_visible = False

    @property
    def size(self) -> int:
        """How many things it sees. Shared state does not count."""
        return len(self._visible) - (SHARED_ID in self._visible)

    @property
    def visible(self) -> Mapping[int, Tracked]:
        """All of it, by id."""
        return self._visible

    def sees(self, tracked: Tracked) -> bool:
        return self._visible.get(tracked.id) is tracked

    def show(self, tracked: Tracked) -> None:
        self._visible[tracked.id] = tracked

    def hide(self, tracked: Tracked) -> bool:
        """Returns whether it was seen. Another thing of the same id stays."""
        if self._visible.get(tracked.id) is not tracked:
            return False
        del self._visible[tracked.id]
        return True

    def replace(self, visible: dict[int, Tracked]) -> bool:
        """See these from now on, by id, and nothing else. Returns whether that is not what it was."""
        before, self._visible = self._visible, visible
        return visible.keys() != before.keys()


@dataclass(slots=True)
class Lack:
    """What a client is to be told: `leaving`, by id, then `steps`, by `place`. `waits`: not told yet."""

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

    def keeps_up(self, version: int) -> bool:
        """Whether it has a sight, and holds all that it saw at the version before."""
        is_one_behind = not self.fresh and self.version == version - 1
        return self.sight is not None and is_one_behind and self.budget is None and not self._behind

    def note(self, flush: Flush) -> None:
        """Take in what a flush means for this client: to be called for every flush, before its update."""
        for tracked, mask in flush.corrections.get(self.player, {}).items():
            self._corrections[tracked.id] = self._corrections.get(tracked.id, 0) | mask

    def lack(self, tracker: Tracker, changes: Callable[[int], Mapping[int, Tracked]]) -> Lack:
        """Return what the client lacks. `changes` gives all public things, by id, changed since a version."""
        seen = self._seen(tracker)
        touched = seen if self.fresh else changes(self.version)
        new: Set[int] = seen.keys() - self._held
        gone = self._held.difference(seen)
        gone.discard(PRIVATE_ID)
        kept = (touched.keys() & seen.keys()) | (self._behind.keys() & seen.keys())
        lack = Lack(list(gone), [])
        self._add_private(lack, tracker)
        for id in new | kept:
            self._add(lack, seen[id])
        lack.leaving.sort()
        lack.steps.sort(key=place_of)
        return lack

    def own(self, tracker: Tracker, among: Iterable[Tracked]) -> Lack:
        """Return what the client lacks of its private state, and of these things, as far as it sees them."""
        lack = Lack([], [])
        seen = self._seen(tracker)
        for tracked in among:
            if seen.get(tracked.id) is tracked:
                self._add(lack, tracked)
        self._add_private(lack, tracker)
        lack.steps.sort(key=place_of)
        return lack

    def _seen(self, tracker: Tracker) -> Mapping[int, Tracked]:
        return tracker.public if self.sight is None else self.sight.visible

    def _add_private(self, lack: Lack, tracker: Tracker) -> None:
        private = tracker.private(self.player)
        if private is not None:
            self._add(lack, private)
        elif PRIVATE_ID in self._held:
            lack.leaving.append(PRIVATE_ID)

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
        """Keep back what the budget has no bytes for."""
        if self.budget is not None:
            ration(self.budget, lack, entries, fresh=self.fresh)

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


def ration(budget: Budget, lack: Lack, entries: Entries, *, fresh: bool) -> None:
    """Keep back, of what a client lacks, what the budget has no bytes for.

    Only changes and enters of other's entities count: what leaves, is the player's own, has changed hands or
    is corrected is told at once, and so is all of the first update (`fresh`).
    """
    if fresh:
        budget.forget()
        return
    metered = [step for step in lack.steps if _is_metered(step)]
    lack.waits = budget.choose(metered, lambda step: _size(step, entries))
    waits = {step.id for step in lack.waits}
    lack.steps = [step for step in lack.steps if step.id not in waits]


def place_of(step: Step) -> tuple[int, int]:
    return place(step.tracked)


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
