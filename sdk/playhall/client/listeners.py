"""The game's callbacks: who wants to hear of what.

What one of them raises harms nobody: the event loop's exception handler hears of it, which logs it, or fails
the test where the loop is that of `playhall.testing`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Generic

from typing_extensions import ParamSpec

from playhall.engine.kinds import Entity

__all__ = ["EntityListeners", "Listeners", "Remove"]

P = ParamSpec("P")

#: Takes a listener off again; harmless when called twice.
Remove = Callable[[], None]


def _checked(listener: Callable[..., object]) -> Callable[..., object]:
    if inspect.iscoroutinefunction(listener):
        raise TypeError("a listener cannot be async: it runs while the update it tells of is at hand")
    return listener


def _call(listener: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        listener(*args, **kwargs)
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a listener raised: {listener!r}", "exception": error, "listener": listener}
        )


class Listeners(Generic[P]):
    """The listeners of one event, called in the order they were added."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, object]] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def add(self, listener: Callable[P, object]) -> Remove:
        _checked(listener)
        # A list of one's own, so that the same function added twice is taken off once.
        self._listeners = [*self._listeners, listener]
        removed = False

        def remove() -> None:
            nonlocal removed
            if not removed:
                removed = True
                at = self._listeners.index(listener)
                self._listeners = [*self._listeners[:at], *self._listeners[at + 1 :]]

        return remove

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all of them; one that is added meanwhile waits for the next time."""
        for listener in self._listeners:
            _call(listener, *args, **kwargs)


class EntityListeners:
    """The listeners of one event of entities, each for a kind or for all kinds under a base."""

    def __init__(self) -> None:
        self._listeners: list[tuple[type[Entity], Callable[..., object]]] = []
        self._of_class: dict[type[Entity], tuple[Callable[..., object], ...]] = {}

    def add(self, kind: type[Entity], listener: Callable[..., object]) -> Remove:
        _checked(listener)
        entry = (kind, listener)
        self._listeners.append(entry)
        self._of_class.clear()

        def remove() -> None:
            for at, other in enumerate(self._listeners):
                if other is entry:
                    del self._listeners[at]
                    self._of_class.clear()
                    return

        return remove

    def call(self, entity: Entity, *args: Any) -> None:
        cls = type(entity)
        listeners = self._of_class.get(cls)
        if listeners is None:
            listeners = tuple(listener for kind, listener in self._listeners if issubclass(cls, kind))
            self._of_class[cls] = listeners
        for listener in listeners:
            _call(listener, entity, *args)
