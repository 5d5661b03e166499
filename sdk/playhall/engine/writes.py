"""Owner writes: what players write to the fields that are theirs, on its way into the room's state.

A client shows its write at once, so it and the room differ until the write is here, and may go on to differ:
room code may reject it or write the field itself. Two rules make them agree in the end, whatever crosses what
on the way (docs/protocol/flow.md, Owner writes; and the state machine of the tests):

- At each flush the owner is corrected in the fields that are not as it believes. It believes the value of the
  flush before, or what it wrote since: `Tracked.believed`. So a rejected write is corrected though the room
  has not changed, and one that is taken costs nothing.
- A write made before the client had applied a correction is dropped, and needs no correction: the client
  applies that one after it sent the write. `seen` of the frame tells. The same holds for a birth (an id may
  be taken again) and for a change of owner, which corrects both players.

Writes wait for the next tick, merged by connection, entity and field. So `on_write` is asked once a tick,
however a client's frames bunch up, and on_tick finds what players wrote.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from playhall.engine.backend import Tracked
from playhall.engine.errors import FieldError
from playhall.engine.frames import Write
from playhall.engine.kinds import is_dead, write_stored
from playhall.engine.links import Link, LinkState
from playhall.engine.presence import MAX_STATUS
from playhall.engine.room import Room
from playhall.engine.runtime import Runtime
from playhall.engine.schema import FIRST_PRESENCE_ID, PRIVATE_ID
from playhall.engine.tracking import Scope

__all__ = ["MAX_WAITING", "OwnerWrites"]

# Entities one connection may have writes waiting for.
MAX_WAITING = 4_096


@dataclass(slots=True)
class _Waiting:
    """What one connection wrote to one entity: by field the stored value, and `seen` of its frame."""

    link: Link
    id: int
    number: int
    values: dict[int, tuple[Any, int]] = field(default_factory=dict)


class OwnerWrites:
    """The owner writes of one room that wait for the next tick."""

    __slots__ = ("_asks", "_dropped", "_room", "_runtime", "waiting")

    def __init__(self, runtime: Runtime, room: Room[Any, Any, Any]) -> None:
        self._runtime = runtime
        self._room = room
        self._asks = type(room).on_write is not Room.on_write
        # By link, then by id and number of kind, in the order in which each first came. Taken from the
        # front, at which a dict is slow.
        self.waiting: OrderedDict[int, OrderedDict[tuple[int, int], _Waiting]] = OrderedDict()
        """What waits for the next tick."""
        # By player, since the last report: how many fields were dropped, and the first of them.
        self._dropped: dict[str, tuple[int, str]] = {}

    def receive(self, link: Link, frame: Write) -> None:
        """Keep what a client wrote."""
        of_link = self.waiting.setdefault(link.number, OrderedDict())
        for entry in frame.entries:
            key = (entry.id, entry.number)
            waiting = of_link.get(key)
            values = {index: (stored, frame.seen) for index, stored in entry.values.items()}
            if waiting is not None:
                waiting.values.update(values)
            elif len(of_link) < MAX_WAITING:
                of_link[key] = _Waiting(link, entry.id, entry.number, values)
            else:
                self._overflow(_Waiting(link, entry.id, entry.number, values))

    def apply(self) -> None:
        """Let all that waits take effect: a tick begins, or the room closes."""
        while self.waiting:
            self._apply_all(next(iter(self.waiting)))
        self._report()

    def apply_of(self, link: Link) -> None:
        """Let what waits of one connection take effect: it is gone, or another takes over."""
        self._apply_all(link.number)
        self._report()

    def _apply_all(self, link: int) -> None:
        of_link = self.waiting.get(link)
        # One by one, since on_write may end connections, and close the room, which comes back here.
        while of_link:
            self._apply(of_link.popitem(last=False)[1])
        self.waiting.pop(link, None)

    def _overflow(self, waiting: _Waiting) -> None:
        """Reject what is too much. Its owner is corrected."""
        found = self._accepted(waiting)
        if found is not None:
            tracked, values = found
            for index, stored in values.items():
                tracked.owner_wrote(index, stored)
        reason = f"over {MAX_WAITING} entities written between two ticks"
        self._runtime.warn_of(waiting.link, "room.writes_dropped", reason)

    def _apply(self, waiting: _Waiting) -> None:
        if waiting.link.state is not LinkState.JOINED:
            return  # room code has ended the connection
        found = self._accepted(waiting)
        if found is None:
            return
        tracked, values = found
        for index, stored in values.items():
            tracked.owner_wrote(index, stored)
        if tracked.scope is Scope.PRESENCE:
            self._write(waiting, tracked, self._fitting_status(waiting, values))
        elif self._asks:
            self._ask(waiting, tracked, values)
        else:
            self._write(waiting, tracked, values)

    def _write(self, waiting: _Waiting, tracked: Tracked, values: dict[int, Any]) -> None:
        try:
            write_stored(tracked.entity, values)
        except FieldError as error:
            self._drop(waiting, len(values), error.reason)

    def _accepted(self, waiting: _Waiting) -> tuple[Tracked, dict[int, Any]] | None:
        """Return what was written to, and what of it the player may write, if anything."""
        tracked = self._find(waiting.link.player, waiting.id)
        problem = _refusal(waiting, tracked)
        if tracked is None or problem:
            self._drop(waiting, len(waiting.values), problem)
            return None
        values = {}
        since = max(tracked.born, tracked.owner_changed)
        for index, (stored, seen) in waiting.values.items():
            if not tracked.owner_mask >> index & 1:
                self._drop(waiting, 1, f"{tracked.spec.fields[index].name} is not writable")
            elif seen < max(since, tracked.corrected_at.get(index, 0)):
                self._drop(waiting, 1, f"{tracked.spec.fields[index].name} was written before a correction")
            else:
                values[index] = stored
        return (tracked, values) if values else None

    def _find(self, player: str, id: int) -> Tracked | None:
        if id == PRIVATE_ID:
            return self._runtime.tracker.private(player)
        if id >= FIRST_PRESENCE_ID:
            own = self._runtime.presence.tracked(player)
            return own if own is not None and own.id == id else None
        return self._runtime.store.tracked_of(id)

    def _fitting_status(self, waiting: _Waiting, values: dict[int, Any]) -> dict[int, Any]:
        fitting = {index: stored for index, stored in values.items() if len(stored.data) <= MAX_STATUS}
        if len(fitting) < len(values):
            self._drop(waiting, 1, f"a status has at most {MAX_STATUS} bytes of JSON")
        return fitting

    def _ask(self, waiting: _Waiting, tracked: Tracked, values: dict[int, Any]) -> None:
        """Write what room code makes of it; nothing where it rejects it, or raises."""
        link, entity, spec = waiting.link, tracked.entity, tracked.spec
        written = {spec.fields[index].name: spec.fields[index].type.load(values[index]) for index in values}
        names = frozenset(written)

        def call() -> None:
            taken = {}
            for name, value in _answer(self._room.on_write(link.conn, entity, written), names).items():
                found = spec.by_name[name]
                taken[found.index] = found.accept(spec.name, tracked.id, value)
            # Here, since what the hook asked for may close the room once it is done.
            if not is_dead(entity):
                self._write(waiting, tracked, taken)

        def done(error: BaseException | None) -> None:
            self._runtime.report("on_write", error, player=link.player, kind=spec.name, id=tracked.id)

        self._runtime.run("on_write", call, done)

    def _drop(self, waiting: _Waiting, fields: int, reason: str) -> None:
        count, first = self._dropped.get(waiting.link.player, (0, f"entity {waiting.id}: {reason}"))
        self._dropped[waiting.link.player] = (count + fields, first)

    def _report(self) -> None:
        """Log what was dropped: one line for each player, who may send what it likes."""
        for player, (count, first) in self._dropped.items():
            self._runtime.debug("room.writes_dropped", player=player, fields=count, first=first)
        self._dropped.clear()


def _refusal(waiting: _Waiting, tracked: Tracked | None) -> str:
    """Return why the player may write nothing of this; empty: it may."""
    if tracked is None or tracked.born < 0:
        return "it is not there"
    if tracked.number != waiting.number:
        return f"it is a {tracked.spec.name}"
    if tracked.owner != waiting.link.player:
        return "it is not the player's"
    return "it has just changed hands" if tracked.owner_dirty else ""


def _answer(answer: object, written: frozenset[str]) -> Mapping[str, Any]:
    """Return what on_write returned, if that can be. Raises TypeError."""
    if answer is None:
        return {}
    if inspect.iscoroutine(answer):
        answer.close()
    if not isinstance(answer, Mapping):
        raise TypeError(f"on_write must return a mapping or None, not {type(answer).__name__}")
    others = sorted(map(repr, answer.keys() - written))
    if others:
        raise TypeError(f"on_write returned {', '.join(others)}, and what was written is {sorted(written)}")
    return answer
