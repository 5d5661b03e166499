"""How long private state is kept: so many seconds of wall-clock time after its player's last connection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

__all__ = ["CHECK_S", "Retention"]

CHECK_S = 30.0


class Retention:
    """When each player with private state was last connected, or in the room as a bot. None is now."""

    __slots__ = ("_kept_s", "_seen", "changed")

    def __init__(self, kept: float | Literal["forever"]) -> None:
        self._kept_s = math.inf if kept == "forever" else float(kept)
        self._seen: dict[str, float | None] = {}
        self.changed: set[str] = set()
        """Of whom there is something to save."""

    def restore(self, player: str, wall: float | None) -> None:
        """Note what was saved."""
        self._seen[player] = wall

    def note(self, player: str, wall: float | None) -> None:
        """Note that a player with private state is in the room (None), or was until now."""
        self._seen[player] = wall
        self.changed.add(player)

    def forget(self, player: str) -> None:
        self._seen.pop(player, None)
        self.changed.discard(player)

    def expired(self, wall: float) -> list[str]:
        """Return whose private state has been kept long enough."""
        return [
            player for player, seen in self._seen.items() if seen is not None and seen + self._kept_s <= wall
        ]

    def take_changed(self) -> Mapping[str, float | None]:
        """Return what has changed since the last call."""
        changed = self._pick(self.changed)
        self.changed = set()
        return changed

    def all(self) -> Mapping[str, float | None]:
        return self._pick(self._seen)

    def _pick(self, players: Iterable[str]) -> dict[str, float | None]:
        return {player: self._seen[player] for player in sorted(players)}
