"""What each connection sees.

A room that hides nothing asks nothing: its views have no `Sight`, and see all that is public. Otherwise
every joined connection is looked at at each flush:

- At the end of a tick, wholly: its keys are asked for, `sees` of every pair that shares one, the limit last.
- At a join, the joiner wholly, and the others for what has changed. What moves with the others themselves
  (their keys, their limit) is found at the tick: many joins in one tick cost no more than they change.

What an entity's keys are is asked when it has changed, and kept (`Keyed`). Where interest is range grids in
which room code has no part, the native engine asks nothing and looks at the tables (`grid_look`).

Beside interest a connection sees shared state, presence (as far as `sees_presence` lets it) and what its
player owns. Interest is never asked of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import Any

from playhall.engine.asking import (
    VisibilityError,
    ask_keys,
    ask_passing,
    ask_presence,
    ask_priorities,
    ask_subscriptions,
)
from playhall.engine.backend import Flush, Tracked, Tracker
from playhall.engine.budget import Budget
from playhall.engine.fanout import Link, Look, Sight, grid_look
from playhall.engine.grids import RangeGrid, declared_grid
from playhall.engine.interest import EVERYWHERE, Interest, Key, memory_of, parts_of
from playhall.engine.keyed import Keyed
from playhall.engine.links import LinkState
from playhall.engine.outputs import LogOut, Output
from playhall.engine.presence import PresenceBook, PresenceEntry
from playhall.engine.room import Room
from playhall.engine.schema import SHARED_ID, Schema
from playhall.engine.tracking import Scope

__all__ = ["MAX_KEYS", "MAX_VISIBLE", "Visibility", "VisibilityError"]

MAX_KEYS = 4_096
"""Keys that a connection can subscribe to."""
MAX_VISIBLE = 16_384
"""Entities, presence among them, that a connection can see."""


class _Everyone(Interest):
    """The interest of rooms that have none."""

    def keys_of(self, room: Any, entity: Any) -> Iterable[Key]:
        return (EVERYWHERE,)

    def subscriptions_of(self, room: Any, conn: Any) -> Iterable[Key]:
        return ()


class Visibility:
    """Finds what the connections of one room see."""

    __slots__ = (
        "_asks",
        "_common",
        "_declared",
        "_emit",
        "_entries",
        "_exact",
        "_hides",
        "_hides_presence",
        "_interest",
        "_keyed",
        "_parts",
        "_presence",
        "_room",
        "_same",
        "_tracker",
    )

    def __init__(
        self,
        room: Room[Any, Any, Any],
        tracker: Tracker,
        presence: PresenceBook,
        emit: Callable[[Output], None],
    ) -> None:
        interest = type(room).interest
        self._room = room
        self._tracker = tracker
        self._presence = presence
        self._emit = emit
        self._asks = interest is not None
        self._interest = interest or _Everyone()
        self._parts = parts_of(self._interest)
        self._hides = [type(part).sees is not Interest.sees for part in self._parts]
        # What these show depends on nothing but distances, also where keys are as they were at the last tick.
        self._exact = [
            part if isinstance(part, RangeGrid) and part.most_keys <= MAX_KEYS else None
            for part in self._parts
        ]
        self._hides_presence = type(room).sees_presence is not Room.sees_presence
        # None while the room hides nothing.
        self._keyed: Keyed | None = None
        # Of the look under way: whether who is there sees the same as before; what all see; and who is in the
        # room where not all see that.
        self._same = False
        self._common: dict[int, Tracked] = {}
        self._entries: list[tuple[Tracked, PresenceEntry]] = []
        self._declared = self._declared_look()

    @property
    def is_open(self) -> bool:
        """Whether everyone sees all there is, and did so before: there is nothing to look for."""
        return (
            not (self._asks or self._hides_presence)
            and self._keyed is None
            and (len(self._tracker.public) <= MAX_VISIBLE or _size(self._tracker.public) <= MAX_VISIBLE)
        )

    def look(self, links: Iterable[Link], flush: Flush | None, *, tick: bool) -> bool:
        """Find what each joined link sees, and put it in its view.

        `flush` is what has just changed, if anything; `tick`: a tick ends. Returns whether there is anything
        to tell beside the flush. Raises VisibilityError.
        """
        if not (self._asks or self._hides_presence or _size(self._tracker.public) > MAX_VISIBLE):
            self._show_all(links)
            return False
        if self._declared is not None:
            if self._interest.limit is None:
                return self._declared.look(list(links), flush, tick=tick)
            self._declared, tick = None, True  # a limit has come, and what was found is not known here
        keyed = self._keep_keys(flush)
        self._prepare()
        self._same = not (self._asks or self._hides_presence or _moves(flush))
        found = False
        for link in links:
            if link.state is LinkState.JOINED:
                moved = self._look_for(link, keyed, flush, tick)
                # Who has just come is told in any case, and that is no news for the others.
                found = found or (moved and not link.view.fresh) or link.view.waits
        if self._tracker.dirty:
            error = RuntimeError("interest, priorities and sees_presence are to look, and changed the room")
            raise VisibilityError("interest", error)
        return found

    def _declared_look(self) -> Look | None:
        """Return what looks where nothing has to be asked, if that is so and this engine has it."""
        schema: Schema[Any, Any] = self._room.schema
        grids = [declared_grid(part, schema) for part in self._parts]
        declared = [found for found in grids if found is not None]
        keys = sum(part.most_keys for part in self._parts if isinstance(part, RangeGrid))
        if len(declared) < len(grids) or keys > MAX_KEYS or self._hides_presence:
            return None
        return grid_look(
            self._tracker,
            declared,
            schema.state_number,
            MAX_VISIBLE,
            lambda link: self._log("room.too_many_visible", link, MAX_VISIBLE),
        )

    def _show_all(self, links: Iterable[Link]) -> None:
        if self._keyed is not None:
            self._keyed = None
            for link in links:
                link.view.see_all()

    def _keep_keys(self, flush: Flush | None) -> Keyed:
        """Ask for the keys of what has changed."""
        changed: Iterable[Tracked] = ()
        if self._keyed is None:
            self._keyed = Keyed(len(self._parts))
            changed = list(self._tracker.public.values())
        elif flush is not None:
            for tracked in flush.removed:
                if _is_entity(tracked):
                    self._keyed.drop(tracked.id)
            changed = chain(flush.added, flush.changed)
        for tracked in changed:
            if _is_entity(tracked):
                self._keyed.put(tracked, [ask_keys(self._room, part, tracked) for part in self._parts])
        return self._keyed

    def _prepare(self) -> None:
        public = self._tracker.public
        self._common = {SHARED_ID: public[SHARED_ID]} if SHARED_ID in public else {}
        self._entries = []
        for player in self._presence:
            tracked = self._presence.tracked(player)
            if tracked is None:
                continue
            if self._hides_presence:
                self._entries.append((tracked, self._presence.get(player)))
            else:
                self._common[tracked.id] = tracked

    # One link

    def _look_for(self, link: Link, keyed: Keyed, flush: Flush | None, tick: bool) -> bool:
        """Look at what a link sees, as far as is needed. Returns whether that is not what it was."""
        sight = link.view.sight
        if sight is None:
            link.view.sight = sight = Sight()
        elif self._same:
            return False
        elif not tick or not (self._asks or sight.too_many_visible):
            found = self._look_at_presence(link, sight) if tick and self._hides_presence else False
            if flush is None or not self._look_at(link, sight, keyed, flush):
                return found
        self._fill_budget(link, tick=tick)
        return self._look_around(link, sight, keyed)

    def _look_around(self, link: Link, sight: Sight, keyed: Keyed) -> bool:
        """Look at all there is. Returns whether the link sees anything else than before."""
        visible = dict(self._common)
        for tracked, entry in self._entries:
            if ask_presence(self._room, link, tracked, entry):
                visible[tracked.id] = tracked
        owned = keyed.owned(link.player)
        found = self._find(link, sight, keyed)
        for id in owned:
            found.pop(id, None)
        found = self._limited(link, sight, found)
        space = MAX_VISIBLE - _size(visible)
        over = len(owned) + len(found) > space
        if over:
            owned = _first(owned, space)
            found = _first(found, space - len(owned))
        if over and not sight.too_many_visible:
            self._log("room.too_many_visible", link, MAX_VISIBLE)
        sight.too_many_visible = over
        visible.update(owned)
        visible.update(found)
        sight.found = set(found)
        return sight.replace(visible)

    def _look_at(self, link: Link, sight: Sight, keyed: Keyed, flush: Flush) -> bool:
        """Look at what has changed. Returns whether that will not do: all there is has to be looked at."""
        memory = memory_of(link.conn)
        memory.begin(whole=False)
        for tracked in flush.removed:
            if sight.hide(tracked):
                sight.found.discard(tracked.id)
        for tracked in chain(flush.added, flush.changed):
            if tracked.scope in (Scope.PRIVATE, Scope.HIDDEN):
                continue
            seen = self._sees(link, sight, keyed, tracked)
            if not seen:
                sight.hide(tracked)
                sight.found.discard(tracked.id)
            elif not sight.sees(tracked) and sight.size >= MAX_VISIBLE:
                return True
            else:
                sight.show(tracked)
        memory.end()
        return False

    def _sees(self, link: Link, sight: Sight, keyed: Keyed, tracked: Tracked) -> bool:
        """Whether a link sees something that has just changed."""
        if tracked.scope is Scope.PRESENCE and self._hides_presence:
            return ask_presence(self._room, link, tracked, self._presence.get(tracked.owner or ""))
        if not _is_entity(tracked):
            return True
        found = False
        # Every part is asked, since each remembers what it showed.
        for part, exact, hides, subscriptions, keys in zip(
            self._parts, self._exact, self._hides, sight.subscriptions, keyed.keys(tracked.id), strict=True
        ):
            if exact.takes(tracked.entity) if exact else not subscriptions.isdisjoint(keys):
                passing = ask_passing(self._room, part, link, {tracked.id: tracked}) if hides else True
                found = bool(passing) or found
        if tracked.owner == link.player:
            sight.found.discard(tracked.id)
            return True
        return found and self._has_space(sight, tracked)

    def _has_space(self, sight: Sight, tracked: Tracked) -> bool:
        """Whether the limit allows one more of what interest shows, or has done so before."""
        limit = self._interest.limit
        if not sight.sees(tracked) and limit is not None and len(sight.found) >= limit.max:
            return False
        sight.found.add(tracked.id)
        return True

    def _look_at_presence(self, link: Link, sight: Sight) -> bool:
        """Look at who is in the room. Returns whether the link sees anybody else than before."""
        moved = False
        for tracked, entry in self._entries:
            seen = ask_presence(self._room, link, tracked, entry)
            if seen and not sight.sees(tracked):
                sight.show(tracked)
                moved = True
            elif not seen and sight.hide(tracked):
                moved = True
        return moved

    def _find(self, link: Link, sight: Sight, keyed: Keyed) -> dict[int, Tracked]:
        """Return what interest shows a link, before the limit."""
        memory = memory_of(link.conn)
        memory.begin(whole=True)
        self._subscribe(link, sight)
        found: dict[int, Tracked] = {}
        for number, part in enumerate(self._parts):
            sharing = keyed.sharing(number, sight.subscriptions[number])
            found.update(ask_passing(self._room, part, link, sharing) if self._hides[number] else sharing)
        memory.end()
        return found

    def _limited(self, link: Link, sight: Sight, found: dict[int, Tracked]) -> dict[int, Tracked]:
        """Return what the limit leaves, the best first."""
        limit, budget = self._interest.limit, link.view.budget
        if limit is None or (len(found) <= limit.max and budget is None):
            return found
        priorities = ask_priorities(self._room, limit, link, found)
        if budget is not None:
            budget.priorities = priorities
        ranked = sorted(found, key=lambda id: (-priorities[id], id))
        stays = islice(ranked, limit.max, limit.max * 11 // 10)
        kept = chain(ranked[: limit.max], (id for id in stays if sight.sees(found[id])))
        return {id: found[id] for id in kept}

    def _fill_budget(self, link: Link, *, tick: bool) -> None:
        view, limit = link.view, self._interest.limit
        if limit is None or limit.bytes_per_second is None:
            view.budget = None
            return
        if view.budget is None:
            view.budget = Budget()
        view.budget.fill(limit.bytes_per_second, 1 / self._room.tick_rate if tick else 0.0)

    def _log(self, event: str, link: Link, limit: int) -> None:
        self._emit(LogOut("error", event, {"player": link.player, "id": link.conn.id, "limit": limit}))

    def _subscribe(self, link: Link, sight: Sight) -> None:
        """Ask for the keys of a link."""
        left, over = MAX_KEYS, False
        sight.subscriptions = []
        for part in self._parts:
            keys, more = ask_subscriptions(self._room, part, link, left)
            sight.subscriptions.append(keys)
            left, over = left + 1 - len(keys), over or more
        if over and not sight.too_many_keys:
            self._log("room.too_many_keys", link, MAX_KEYS)
        sight.too_many_keys = over


def _moves(flush: Flush | None) -> bool:
    """Whether a flush has changed more than fields: what there is, or whose."""
    return flush is not None and (
        bool(flush.added or flush.removed)
        or any(tracked.owner_changed == flush.version for tracked in flush.changed)
    )


def _is_entity(tracked: Tracked) -> bool:
    """Whether interest is asked of it."""
    return tracked.scope is Scope.SHARED and tracked.id != SHARED_ID


def _size(visible: Mapping[int, Tracked]) -> int:
    """How many things count towards what can be seen: shared state does not."""
    return len(visible) - (SHARED_ID in visible)


def _first(things: Mapping[int, Tracked], count: int) -> dict[int, Tracked]:
    """Return those of the lowest ids."""
    return {id: things[id] for id in sorted(things)[: max(count, 0)]}
