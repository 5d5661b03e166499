"""Answers of data, kept for a moment; and longer while data is away.

A value is fresh for `fresh_s` and may be used for `stale_s` when no better one is to be had. The cache is
bounded: the oldest answers go first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["StaleCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class StaleCache(Generic[K, V]):
    """A bounded map whose values age."""

    def __init__(self, *, fresh_s: float, stale_s: float, max_size: int = 20_000) -> None:
        self._fresh_s = fresh_s
        self._stale_s = stale_s
        self._max = max_size
        self._items: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, key: K, value: V, now: float) -> None:
        """Keep an answer."""
        self._items[key] = (value, now)
        self._items.move_to_end(key)
        while len(self._items) > self._max:
            self._items.popitem(last=False)

    def fresh(self, key: K, now: float) -> V | None:
        """The answer, if it is new enough not to ask."""
        return self._get(key, now, self._fresh_s)

    def stale(self, key: K, now: float) -> V | None:
        """The answer, if it is good enough when nobody can be asked."""
        return self._get(key, now, self._stale_s)

    def drop(self, key: K) -> None:
        """The answer was wrong."""
        self._items.pop(key, None)

    def expire(self, key: K, now: float) -> None:
        """The answer may be out of date: ask anew, but use it when nobody can be asked."""
        item = self._items.get(key)
        if item is not None:
            self._items[key] = (item[0], min(item[1], now - self._fresh_s))

    def _get(self, key: K, now: float, age_s: float) -> V | None:
        item = self._items.get(key)
        return item[0] if item is not None and now - item[1] < age_s else None
