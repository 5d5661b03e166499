"""What each connection sees.

A room that hides nothing asks nothing: its views have no `Sight`, and see all that is public. Otherwise
every joined connection is looked at at each flush:

- At the end of a tick, wholly: its keys are asked for, `sees` of every pair that shares one, the limit last.
- At a join, the joiner wholly, and the others for what has changed. What moves with the others themselves
  (their keys, their limit) is found at the tick: many joins in one tick cost no more than they change.

What an entity's keys are is asked when it has changed, and kept (`Keyed`).

Beside interest a connection sees shared state, presence (as far as `sees_presence` lets it) and what its
player owns. Interest is never asked of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from playhall.engine.budget import Budget
from playhall.engine.interest import EVERYWHERE, Interest, Key, Limit, memory_of, parts_of
from playhall.engine.keyed import Keyed
from playhall.engine.links import Link, LinkState
from playhall.engine.outputs import LogOut, Output
from playhall.engine.presence import PresenceBook, PresenceEntry
from playhall.engine.room import Room
from playhall.engine.schema import SHARED_ID
from playhall.engine.tracking import Flush, Scope, Tracked, Tracker
from playhall.engine.views import Sight

__all__ = ["MAX_KEYS", "MAX_VISIBLE", "Visibility", "VisibilityError"]

MAX_KEYS = 4_096
"""Keys that a connection can subscribe to."""
MAX_VISIBLE = 16_384
"""Entities, presence among them, that a connection can see."""


class VisibilityError(Exception):
    """Room code that says who sees what raised `error`, or did what it must not. It ends the room.

    `hook` names it, `about` says what it was asked of.
    """

    def __init__(self, hook: str, error: BaseException, **about: Any) -> None:
        super().__init__(hook)
        self.hook = hook
        self.error = error
        self.about = about


class _Everyone(Interest):
    """The interest of rooms that have none."""

    def keys_of(self, room: Any, entity: Any) -> Iterable[Key]:
        return (EVERYWHERE,)

    def subscriptions_of(self, room: Any, conn: Any) -> Iterable[Key]:
        return ()


class Visibility:
    """Finds what the connections of one room see."""

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
        self._hides_presence = type(room).sees_presence is not Room.sees_presence
        # None while the room hides nothing.
        self._keyed: Keyed | None = None
        # Of the look under way: what all see, and who is in the room where not all see that.
        self._common: dict[int, Tracked] = {}
        self._entries: list[tuple[Tracked, PresenceEntry]] = []

    def look(self, links: Iterable[Link], flush: Flush | None, *, tick: bool) -> bool:
        """Find what each joined link sees, and put it in its view.

        `flush` is what has just changed, if anything; `tick`: a tick ends. Returns whether there is anything
        to tell beside the flush. Raises VisibilityError.
        """
        if not (self._asks or self._hides_presence or _size(self._tracker.public) > MAX_VISIBLE):
            self._show_all(links)
            return False
        keyed = self._keep_keys(flush)
        self._prepare()
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
                self._keyed.put(tracked, [self._keys_of(part, tracked) for part in self._parts])
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
        elif not tick or not (self._asks or sight.too_many_visible):
            found = self._look_at_presence(link, sight) if tick and self._hides_presence else False
            if flush is None or not self._look_at(link, sight, keyed, flush):
                return found
        self._fill_budget(link, tick=tick)
        return self._look_around(link, sight, keyed)

    def _look_around(self, link: Link, sight: Sight, keyed: Keyed) -> bool:
        """Look at all there is. Returns whether the link sees anything else than before."""
        before = sight.visible
        visible = dict(self._common)
        for tracked, entry in self._entries:
            if self._sees_presence(link, tracked, entry):
                visible[tracked.id] = tracked
        owned = keyed.owned(link.player)
        found = self._find(link, sight, keyed)
        for id in owned:
            found.pop(id, None)
        found = self._limited(link, found, before)
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
        sight.visible, sight.found = visible, set(found)
        return visible.keys() != before.keys()

    def _look_at(self, link: Link, sight: Sight, keyed: Keyed, flush: Flush) -> bool:
        """Look at what has changed. Returns whether that will not do: all there is has to be looked at."""
        visible = sight.visible
        memory = memory_of(link.conn)
        memory.begin(whole=False)
        for tracked in flush.removed:
            if visible.get(tracked.id) is tracked:
                del visible[tracked.id]
                sight.found.discard(tracked.id)
        for tracked in chain(flush.added, flush.changed):
            if tracked.scope in (Scope.PRIVATE, Scope.HIDDEN):
                continue
            seen = self._sees(link, sight, keyed, tracked)
            if not seen:
                visible.pop(tracked.id, None)
                sight.found.discard(tracked.id)
            elif tracked.id not in visible and _size(visible) >= MAX_VISIBLE:
                return True
            else:
                visible[tracked.id] = tracked
        memory.end()
        return False

    def _sees(self, link: Link, sight: Sight, keyed: Keyed, tracked: Tracked) -> bool:
        """Whether a link sees something that has just changed."""
        if tracked.scope is Scope.PRESENCE and self._hides_presence:
            return self._sees_presence(link, tracked, self._presence.get(tracked.owner or ""))
        if not _is_entity(tracked):
            return True
        found = False
        # Every part is asked, since each remembers what it showed.
        for part, hides, subscriptions, keys in zip(
            self._parts, self._hides, sight.subscriptions, keyed.keys(tracked.id), strict=True
        ):
            if not subscriptions.isdisjoint(keys):
                passing = self._passing(part, link, {tracked.id: tracked}) if hides else True
                found = bool(passing) or found
        if tracked.owner == link.player:
            sight.found.discard(tracked.id)
            return True
        return found and self._has_space(sight, tracked)

    def _has_space(self, sight: Sight, tracked: Tracked) -> bool:
        """Whether the limit allows one more of what interest shows, or has done so before."""
        limit = self._interest.limit
        if tracked.id not in sight.visible and limit is not None and len(sight.found) >= limit.max:
            return False
        sight.found.add(tracked.id)
        return True

    def _look_at_presence(self, link: Link, sight: Sight) -> bool:
        """Look at who is in the room. Returns whether the link sees anybody else than before."""
        moved = False
        for tracked, entry in self._entries:
            seen = self._sees_presence(link, tracked, entry)
            if seen and tracked.id not in sight.visible:
                sight.visible[tracked.id], moved = tracked, True
            elif not seen and sight.visible.pop(tracked.id, None) is not None:
                moved = True
        return moved

    def _find(self, link: Link, sight: Sight, keyed: Keyed) -> dict[int, Tracked]:
        """Return what interest shows a link, before the limit."""
        memory = memory_of(link.conn)
        memory.begin(whole=True)
        sight.subscriptions = self._subscriptions_of(link, sight)
        found: dict[int, Tracked] = {}
        for number, part in enumerate(self._parts):
            sharing = keyed.sharing(number, sight.subscriptions[number])
            found.update(self._passing(part, link, sharing) if self._hides[number] else sharing)
        memory.end()
        return found

    def _limited(
        self, link: Link, found: dict[int, Tracked], before: dict[int, Tracked]
    ) -> dict[int, Tracked]:
        """Return what the limit leaves, the best first."""
        limit, budget = self._interest.limit, link.view.budget
        if limit is None or (len(found) <= limit.max and budget is None):
            return found
        priorities = self._priorities(limit, link, found)
        if budget is not None:
            budget.priorities = priorities
        ranked = sorted(found, key=lambda id: (-priorities[id], id))
        stays = islice(ranked, limit.max, limit.max * 11 // 10)
        kept = chain(ranked[: limit.max], (id for id in stays if before.get(id) is found[id]))
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

    # Asking room code

    def _keys_of(self, part: Interest, tracked: Tracked) -> Sequence[Key]:
        try:
            return [_checked(key) for key in _iterable(part.keys_of(self._room, tracked.entity))]
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise _failure("interest.keys_of", error, tracked) from error

    def _subscriptions_of(self, link: Link, sight: Sight) -> list[set[Key]]:
        subscriptions: list[set[Key]] = []
        left, over = MAX_KEYS, False
        for part in self._parts:
            keys: set[Key] = {EVERYWHERE}
            try:
                for key in _iterable(part.subscriptions_of(self._room, link.conn)):
                    if _checked(key) not in keys:
                        if not left:
                            over = True
                            break
                        keys.add(key)
                        left -= 1
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:
                raise VisibilityError("interest.subscriptions_of", error, player=link.player) from error
            subscriptions.append(keys)
        if over and not sight.too_many_keys:
            self._log("room.too_many_keys", link, MAX_KEYS)
        sight.too_many_keys = over
        return subscriptions

    def _passing(self, part: Interest, link: Link, sharing: dict[int, Tracked]) -> dict[int, Tracked]:
        """Return what of that which shares a key a part lets through."""
        room, conn, sees = self._room, link.conn, part.sees
        passing = {}
        tracked: Tracked | None = None
        try:
            for id, tracked in sharing.items():
                if _answer("sees", sees(room, conn, tracked.entity)):
                    passing[id] = tracked
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise _failure("interest.sees", error, tracked, link) from error
        return passing

    def _priorities(self, limit: Limit, link: Link, found: dict[int, Tracked]) -> dict[int, float]:
        room, conn, priority = self._room, link.conn, limit.priority
        priorities = {}
        tracked: Tracked | None = None
        try:
            for id, tracked in found.items():
                priorities[id] = _priority(priority(room, conn, tracked.entity))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise _failure("interest.limit.priority", error, tracked, link) from error
        return priorities

    def _sees_presence(self, link: Link, tracked: Tracked, entry: PresenceEntry) -> bool:
        if entry.player == link.player:
            return True
        try:
            return _answer("sees_presence", self._room.sees_presence(link.conn, entry))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise _failure("sees_presence", error, tracked, link) from error


def _failure(
    hook: str, error: BaseException, tracked: Tracked | None, link: Link | None = None
) -> VisibilityError:
    about: dict[str, Any] = {} if tracked is None else {"kind": tracked.spec.name, "id": tracked.id}
    if link is not None:
        about["player"] = link.player
    return VisibilityError(hook, error, **about)


def _iterable(keys: Any) -> Iterable[Any]:
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise TypeError(f"keys come in a list or the like, not as {keys!r}")
    return keys


def _checked(key: Any) -> Key:
    if isinstance(key, bool) or not isinstance(key, str | int | float):
        raise TypeError(f"a key is str, int or float, not {key!r}")
    if key != key:
        raise ValueError("NaN cannot be a key")
    return key


def _answer(hook: str, answer: object) -> bool:
    if answer is True or answer is False:
        return answer
    raise TypeError(f"{hook} must return True or False, not {answer!r}")


def _priority(priority: Any) -> float:
    if isinstance(priority, bool) or not isinstance(priority, int | float):
        raise TypeError(f"a priority is a number, not {priority!r}")
    if math.isnan(priority):
        raise ValueError("a priority cannot be NaN")
    return priority


def _is_entity(tracked: Tracked) -> bool:
    """Whether interest is asked of it."""
    return tracked.scope is Scope.SHARED and tracked.id != SHARED_ID


def _size(visible: Mapping[int, Tracked]) -> int:
    """How many things count towards what can be seen: shared state does not."""
    return len(visible) - (SHARED_ID in visible)


def _first(things: Mapping[int, Tracked], count: int) -> dict[int, Tracked]:
    """Return those of the lowest ids."""
    return {id: things[id] for id in sorted(things)[: max(count, 0)]}
