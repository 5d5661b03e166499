"""Interest: the rule that says which entities a connection sees.

An entity has keys, a connection subscribes to keys, and it sees the entities that share one with it, as far
as `sees` lets them pass and `limit` has space for them. `Visibility` asks; what is written here is what room
code makes and subclasses. One interest serves all rooms of a class, so what has to be remembered of a
connection is kept with the connection (`Memory`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, TypeAlias

from playhall.engine.kinds import Entity
from playhall.engine.overriding import check_overrides

__all__ = ["EVERYWHERE", "Interest", "Key", "Limit", "Memory", "combine", "memory_of", "parts_of"]

Key: TypeAlias = "str | int | float"
"""What entities have and connections subscribe to. 1 and 1.0 are one key, and "1" is another."""

EVERYWHERE: Final = "*"
"""The key that every connection subscribes to, whatever `subscriptions_of` says."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of what interest shows a connection gets. What its player owns does not count.

    It sees the `max` entities of the highest priority, ties by the lower id; one that it sees already goes
    only when it is ranked worse than 110 % of `max`, so a view may hold so many.

    `priority(room, conn, entity)` gives a number, which may be infinite. It is asked of every entity that
    interest shows, each tick, where there are more than `max` or `bytes_per_second` is given.

    With `bytes_per_second`, changes and entities that are new to a connection are told as bytes allow. What
    waits grows in priority each tick until it is told; its changes merge.
    """

    max: int
    _: KW_ONLY
    priority: Callable[[Any, Any, Any], float]
    bytes_per_second: float | None = None

    def __post_init__(self) -> None:
        if type(self.max) is not int or self.max < 1:
            raise TypeError(f"Limit.max is a number of entities, from 1, not {self.max!r}")
        if not callable(self.priority):
            raise TypeError(
                f"Limit.priority is called with room, conn and entity; {self.priority!r} cannot be"
            )
        rate = self.bytes_per_second
        if rate is not None and not (is_number(rate) and 0 < rate < math.inf):
            raise TypeError(f"Limit.bytes_per_second is a number over 0, not {rate!r}")


_HOOKS = ("keys_of", "subscriptions_of", "sees")


class Interest:
    """Base of interests. Override `keys_of` and `subscriptions_of`, and `sees` where keys are too coarse.

    Each gets the room first. What they raise stops the room, as on_tick does. They are not asked of hidden
    kinds, shared and private state and presence; and a player sees what it owns, whatever they say.
    """

    limit: Limit | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        check_overrides(cls, Interest, _HOOKS)

    def keys_of(self, room: Any, entity: Any) -> Iterable[Key]:
        """Return the keys of an entity. Asked when the entity is new or has changed, at the flush."""
        raise NotImplementedError(f"{type(self).__name__} needs keys_of(room, entity)")

    def subscriptions_of(self, room: Any, conn: Any) -> Iterable[Key]:
        """Return the keys a connection sees. Asked each tick. Those after the first 4,096 are left out."""
        raise NotImplementedError(f"{type(self).__name__} needs subscriptions_of(room, conn)")

    def sees(self, room: Any, conn: Any, entity: Any) -> bool:
        """Return whether a connection sees an entity it shares a key with. Asked each tick."""
        return True


class Memory:
    """What interests keep of one connection, from one look at the room to the next.

    `points`: where grids look from in the look under way. `shown`: what each grid with a margin shows it, by
    id; `before`: what it showed at the look before.
    """

    __slots__ = ("before", "looking", "points", "shown")

    def __init__(self) -> None:
        self.looking = False
        self.points: dict[Interest, tuple[float, ...] | None] = {}
        self.shown: dict[Interest, dict[int, Entity]] = {}
        self.before: dict[Interest, dict[int, Entity]] = {}

    def begin(self, *, whole: bool) -> None:
        """A look begins: at all there is (`whole`), or at some entities."""
        self.looking = True
        self.points = {}
        self.before = self.shown
        if whole:
            self.shown = {}

    def end(self) -> None:
        self.looking = False
        self.points = {}
        self.before = self.shown


def memory_of(conn: Any) -> Memory:
    """Return the memory of a connection."""
    memory: Memory | None = conn._memory
    if memory is None:
        memory = conn._memory = Memory()
    return memory


class _Combined(Interest):
    """Several interests, any of which may show an entity. Visibility takes its parts one by one."""

    def __init__(self, parts: Sequence[Interest], limit: Limit | None) -> None:
        self.parts = tuple(parts)
        self.limit = limit

    def keys_of(self, room: Any, entity: Any) -> Iterator[Key]:
        for part in self.parts:
            yield from part.keys_of(room, entity)

    def subscriptions_of(self, room: Any, conn: Any) -> Iterator[Key]:
        for part in self.parts:
            yield from part.subscriptions_of(room, conn)

    def sees(self, room: Any, conn: Any, entity: Any) -> bool:
        return any(
            not {EVERYWHERE, *part.subscriptions_of(room, conn)}.isdisjoint(part.keys_of(room, entity))
            and part.sees(room, conn, entity)
            for part in self.parts
        )


def combine(*parts: Interest, limit: Limit | None = None) -> Interest:
    """Return an interest that shows an entity where at least one part shares a key and `sees` it.

    Parts cannot have a limit of their own. Grids need no prefixes here: keys that only look the same cost a
    call of `sees`, and no more.
    """
    if not parts:
        raise TypeError("combine needs interests")
    for part in parts:
        if not isinstance(part, Interest):
            raise TypeError(f"combine takes interests, not {part!r}")
        if part.limit is not None:
            raise TypeError("a limit is for the whole: combine(..., limit=Limit(...))")
    if limit is not None and not isinstance(limit, Limit):
        raise TypeError(f"combine(limit=) takes a Limit, not {limit!r}")
    return _Combined([leaf for part in parts for leaf in parts_of(part)], limit)


def parts_of(interest: Interest) -> tuple[Interest, ...]:
    """Return the interests that one is made of: itself, if it is not combined."""
    return interest.parts if isinstance(interest, _Combined) else (interest,)


def is_number(value: object) -> bool:
    """Whether it is an int or a float; a bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
