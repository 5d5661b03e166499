"""Who is banned from a room: saved with it, and refused at the join."""

from __future__ import annotations

from playhall.engine.bots import is_bot
from playhall.engine.statelog import BansChange
from playhall.engine.store import check_player

__all__ = ["MAX_BANNED", "Bans"]

MAX_BANNED = 4_096


class Bans:
    """The banned players of one room, and what of that was not saved yet."""

    __slots__ = ("_players", "_written", "dirty")

    def __init__(self) -> None:
        self._players: set[str] = set()
        self._written: set[str] = set()
        self.dirty = False
        """Whether there is something to save."""

    def __contains__(self, player: object) -> bool:
        return player in self._players

    def restore(self, players: list[str]) -> None:
        """Note what was saved."""
        self._players, self._written = set(players), set(players)

    def add(self, player: str) -> None:
        """Ban a player. Raises TypeError or ValueError where that is none, or one too many."""
        player = check_player(player)
        if is_bot(player):
            raise ValueError(f"{player} is a bot, which is removed by room.bots.remove")
        if player not in self._players and len(self._players) >= MAX_BANNED:
            raise ValueError(f"{MAX_BANNED} players are banned already, the most a room keeps")
        self._players.add(player)
        self.dirty = self._players != self._written

    def discard(self, player: str) -> None:
        """Lift a ban, if there is one. Raises TypeError or ValueError where that is no player."""
        self._players.discard(check_player(player))
        self.dirty = self._players != self._written

    def take_changed(self) -> BansChange | None:
        """Return what has changed since the last call."""
        if not self.dirty:
            return None
        change = BansChange(sorted(self._players - self._written), sorted(self._written - self._players))
        self._written, self.dirty = set(self._players), False
        return change

    def all(self) -> BansChange:
        return BansChange(sorted(self._players), [])
