"""A mapping that may change while room code iterates over it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TypeVar

__all__ = ["Snapshots"]

K = TypeVar("K")
V = TypeVar("V")


class Snapshots(Mapping[K, V]):
    """A dict, to be read only. Each iteration is over what is in it as it begins.

    So `for conn in room.connections.values(): room.kick(conn)` meets them all.
    """

    __slots__ = ("_live",)

    def __init__(self, live: dict[K, V]) -> None:
        self._live = live

    def __getitem__(self, key: K) -> V:
        return self._live[key]

    def __contains__(self, key: object) -> bool:
        return key in self._live

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._live))

    def keys(self) -> KeysView[K]:
        return dict(self._live).keys()

    def values(self) -> ValuesView[V]:
        return dict(self._live).values()

    def items(self) -> ItemsView[K, V]:
        return dict(self._live).items()

    def __repr__(self) -> str:
        return repr(self._live)
