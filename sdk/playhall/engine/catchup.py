"""One update that brings one client up to date, put together as it is sent.

A client that has just come, or was left out of updates, may lack all of a room's state. Parts for which it
has no credit yet are not encoded. They are kept as twins of what they tell of (`Tracked.twin`), which hold a
few references for each entity, and which all clients that wait share; they become bytes as the client reads.
So a client that joins a large room and reads nothing costs next to nothing (protocols, B12).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from playhall.engine.backend import Tracked
from playhall.engine.entries import Entries, Entry
from playhall.engine.tracking import Scope
from playhall.engine.updates import MAX_BODY, Section, UpdateBuilder, encode_leave

__all__ = ["CatchUp", "Step", "place", "tell", "tell_owner"]

# Bytes of entries of one body, less than the most so that what stands before each section fits too.
BODY_BYTES = MAX_BODY - 64


class Step(NamedTuple):
    """What the client is to be told of one thing: that it is there, or what has changed of it `since` a
    version (-1: all of it).

    `correct`: the fields that it must take whatever it believes. `mine`: the player owns it.
    """

    id: int
    tracked: Tracked
    enters: bool
    mine: bool
    correct: int
    since: int


def place(tracked: Tracked) -> tuple[int, int]:
    """Where it stands among others in an update: by number of kind, then by row."""
    return tracked.number, tracked.row


class CatchUp:
    """What one client lacks, as it is at the flush that this was made at.

    Until `keep` it must be used before the next flush.
    """

    def __init__(self, leaving: Iterable[int], steps: Iterable[Step], entries: Entries) -> None:
        self._leaving = leaving
        self._steps = deque(steps)
        self._entries: Entries | None = entries

    def keep(self) -> None:
        """Go on at any time from now: whatever changes meanwhile changes nothing of it."""
        self._entries = None
        self._steps = deque(step._replace(tracked=step.tracked.twin()) for step in self._steps)

    def bodies(self) -> Iterator[bytes]:
        """Give the bodies of the update's parts, in order; none where there is nothing to tell."""
        builder, size = UpdateBuilder(), 0
        for found in self._groups():
            more = sum(len(entry) for _, entry in found)
            if size and size + more > BODY_BYTES:
                yield from builder.bodies()
                builder, size = UpdateBuilder(), 0
            for section, entry in found:
                builder.add(section, entry)
            size += more
        if builder:
            yield from builder.bodies()

    def _groups(self) -> Iterator[list[Entry]]:
        """Give the entries of each thing: what leaves before all that may take its id."""
        for id in self._leaving:
            yield [(Section.LEAVE, encode_leave(id))]
        while self._steps:
            yield self._tell(self._steps.popleft())

    def _tell(self, step: Step) -> list[Entry]:
        # What was encoded for all is not kept while a client reads: it may be as large as the state.
        return tell(step, self._entries or Entries())


def tell(step: Step, entries: Entries) -> list[Entry]:
    """Return all that a step tells."""
    tracked = step.tracked
    as_owner = tracked.scope is Scope.PRIVATE or (step.mine and tracked.scope is not Scope.PRESENCE)
    if step.enters:
        return entries.enter(tracked, as_owner)
    found = entries.change(tracked, step.since, as_owner) if tracked.changed > step.since else []
    return found + entries.correct(tracked, step.correct, mine=step.mine) if step.correct else found


def tell_owner(step: Step, entries: Entries) -> list[Entry]:
    """Return what a step tells beyond what it would tell of the same thing to anybody."""
    tracked = step.tracked
    found: list[Entry] = []
    if step.mine and tracked.scope is not Scope.PRESENCE:
        if step.enters:
            found = entries.secrets(tracked)
        elif tracked.changed > step.since:
            found = entries.change_for_owner(tracked, step.since)
    return found + entries.correct(tracked, step.correct, mine=step.mine) if step.correct else found
