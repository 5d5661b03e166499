"""Asking room code who sees what: answers are checked, and what it raises says what it was asked of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from playhall.engine.backend import Tracked
from playhall.engine.interest import EVERYWHERE, Interest, Key, Limit
from playhall.engine.links import Link
from playhall.engine.presence import PresenceEntry
from playhall.engine.room import Room

__all__ = [
    "VisibilityError",
    "ask_keys",
    "ask_passing",
    "ask_presence",
    "ask_priorities",
    "ask_subscriptions",
]

AnyRoom = Room[Any, Any, Any]

MAX_GIVEN = 65_536
"""Keys that room code may give at once, those it repeats too."""


class VisibilityError(Exception):
    """Room code that says who sees what raised `error`, or did what it must not. It ends the room.

    `hook` names it, `about` says what it was asked of.
    """

    def __init__(self, hook: str, error: BaseException, **about: Any) -> None:
        super().__init__(hook)
        self.hook = hook
        self.error = error
        self.about = about


class _Asking:
    """While room code of a hook runs. Set `tracked` to what it is asked of."""

    __slots__ = ("_hook", "_link", "tracked")

    def __init__(self, hook: str, link: Link | None = None, tracked: Tracked | None = None) -> None:
        self._hook = hook
        self._link = link
        self.tracked = tracked

    def __enter__(self) -> _Asking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, KeyboardInterrupt | GeneratorExit):
            return  # the latter end whoever runs the room, and are not the hook's
        about: dict[str, Any] = {}
        if self.tracked is not None:
            about |= {"kind": self.tracked.spec.name, "id": self.tracked.id}
        if self._link is not None:
            about["player"] = self._link.player
        raise VisibilityError(self._hook, error, **about) from error


def ask_keys(room: AnyRoom, part: Interest, tracked: Tracked) -> list[Key]:
    """Return the keys of an entity. Raises VisibilityError, as all of these do."""
    with _Asking("interest.keys_of", tracked=tracked):
        return [_key(key) for key in _iterable(part.keys_of(room, tracked.entity))]


def ask_subscriptions(room: AnyRoom, part: Interest, link: Link, most: int) -> tuple[set[Key], bool]:
    """Return EVERYWHERE and up to `most` keys that a link subscribes to; and whether there are more."""
    keys: set[Key] = {EVERYWHERE}
    with _Asking("interest.subscriptions_of", link):
        for key in _iterable(part.subscriptions_of(room, link.conn)):
            if _key(key) not in keys:
                if len(keys) > most:
                    return keys, True
                keys.add(key)
    return keys, False


def ask_passing(
    room: AnyRoom, part: Interest, link: Link, sharing: Mapping[int, Tracked]
) -> dict[int, Tracked]:
    """Return what of that which shares a key with a link `sees` lets through."""
    conn, sees = link.conn, part.sees
    passing = {}
    with _Asking("interest.sees", link) as asking:
        for id, tracked in sharing.items():
            asking.tracked = tracked
            if _answer("sees", sees(room, conn, tracked.entity)):
                passing[id] = tracked
    return passing


def ask_priorities(room: AnyRoom, limit: Limit, link: Link, found: Mapping[int, Tracked]) -> dict[int, float]:
    """Return the priority of each thing found, by id."""
    conn, priority = link.conn, limit.priority
    priorities = {}
    with _Asking("interest.limit.priority", link) as asking:
        for id, tracked in found.items():
            asking.tracked = tracked
            priorities[id] = _priority(priority(room, conn, tracked.entity))
    return priorities


def ask_presence(room: AnyRoom, link: Link, tracked: Tracked, entry: PresenceEntry) -> bool:
    """Return whether a link sees a presence entry. It always sees its own player's."""
    if entry.player == link.player:
        return True
    with _Asking("sees_presence", link, tracked):
        return _answer("sees_presence", room.sees_presence(link.conn, entry))


def _iterable(keys: Any) -> Iterable[Any]:
    """Give the keys, up to MAX_GIVEN of them: a generator may never end."""
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise TypeError(f"keys come in a list or the like, not as {keys!r}")
    for count, key in enumerate(keys):
        if count == MAX_GIVEN:
            raise ValueError(f"over {MAX_GIVEN} keys, and so many no rule needs")
        yield key


def _key(key: Any) -> Key:
    if isinstance(key, bool) or not isinstance(key, str | int | float):
        raise TypeError(f"a key is str, int or float, not {key!r}")
    if key != key:
        raise ValueError("NaN cannot be a key")
    return str.__str__(key) if isinstance(key, str) else key


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
