"""Presence: who is in a room, by player.

An entry is there from a player's first connection until 10 s after the last one has ended. `connected`
turns false with the tick after the connection was lost, so a connection that takes over from another one
changes nothing. Entries are told to every client as entities of the built-in last kind; they are not saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, overload

from playhall.engine.backend import Tracked, Tracker
from playhall.engine.connection import JsonIn, JsonOut
from playhall.engine.fields import JSON, JsonValue
from playhall.engine.kinds import is_dead, spec_of, stored_values
from playhall.engine.schema import FIRST_PRESENCE_ID, LAST_ID, PresenceRow
from playhall.engine.store import check_player
from playhall.engine.tracking import Scope

__all__ = [
    "GRACE_S",
    "MAX_NAME",
    "MAX_PRESENCE",
    "MAX_STATUS",
    "Presence",
    "PresenceBook",
    "PresenceEntry",
    "name_in",
]

GRACE_S = 10.0
MAX_PRESENCE = 1_024
MAX_NAME = 64
MAX_STATUS = 1_024

_SPEC = spec_of(PresenceRow)
_STATUS = _SPEC.by_name["status"]
NO_STATUS: JsonValue = JSON.zero

_UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class PresenceEntry:
    """What is known of a player who is in the room. A value: a change makes a new one.

    `status` is JSON of at most 1 KB, None at first. `connected` is False for up to 10 s after the player's
    last connection was lost; then the entry goes.
    """

    player: str
    name: str
    status: JsonIn
    connected: bool


@dataclass(slots=True)
class _Entry:
    tracked: Tracked
    row: PresenceRow
    # When the last connection ended; None while there is one.
    lost_at: float | None = None
    # What that was before the connection there is.
    before: float | None = None

    def public(self) -> PresenceEntry:
        row = self.row
        status: Any = row.status
        return PresenceEntry(row.player, row.name, status, row.connected)


class PresenceBook:
    """The entries of one room, and when they end."""

    __slots__ = ("_entries", "_ids", "_lost", "_next_id", "_number", "_tracker", "just_lost")

    def __init__(self, tracker: Tracker, number: int) -> None:
        self._tracker = tracker
        self._number = number
        self._entries: dict[str, _Entry] = {}
        self._ids: set[int] = set()
        # Who has no connection.
        self._lost: set[str] = set()
        # Lost the last connection since the last tick.
        self.just_lost: list[_Entry] = []
        """What `settle` is to show."""
        self._next_id = FIRST_PRESENCE_ID

    def __contains__(self, player: str) -> bool:
        return player in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._entries))

    def get(self, player: str) -> PresenceEntry:
        """Return a player's entry. Raises KeyError."""
        return self._entries[player].public()

    @property
    def next_deadline(self) -> float | None:
        """When the next entry ends."""
        if not self._lost:
            return None
        lost = (self._entries[player].lost_at for player in self._lost)
        return min(at for at in lost if at is not None) + GRACE_S

    @property
    def has_space(self) -> bool:
        """Whether one more entry fits, be it that somebody who is not connected has to go."""
        return len(self._entries) < MAX_PRESENCE or self.overflow() is not None

    def overflow(self) -> str | None:
        """Return who must go before one more entry fits: of those not connected, who has been so longest."""
        if len(self._entries) < MAX_PRESENCE:
            return None
        lost = [
            (entry.lost_at, player) for player, entry in self._entries.items() if entry.lost_at is not None
        ]
        return min(lost)[1] if lost else None

    def connect(self, player: str, name: str, status: JsonValue = NO_STATUS) -> bool:
        """Note a connection of a player, or a bot. Returns whether that made a new entry."""
        entry = self._entries.get(player)
        if entry is not None:
            entry.before, entry.lost_at = entry.lost_at, None
            entry.row.connected = True
            self._lost.discard(player)
            return False
        row = PresenceRow(player=player, name=name, status=status.value, connected=True)
        tracked = self._tracker.add(row, Scope.PRESENCE, self._free_id(), self._number, player)
        self._ids.add(tracked.id)
        self._entries[player] = _Entry(tracked, row)
        return True

    def lose(self, player: str, mono: float) -> None:
        """Note that a player has no connection any more. Its entry shows it after `settle`."""
        entry = self._entries.get(player)
        if entry is not None and entry.lost_at is None:
            entry.lost_at = mono
            self._lost.add(player)
            self.just_lost.append(entry)

    def refuse(self, player: str, mono: float) -> None:
        """Note that the newest connection of a player was not let in: as if it had not been there."""
        entry = self._entries.get(player)
        if entry is None or entry.before is None:
            self.lose(player, mono)
        else:
            entry.lost_at = entry.before
            self._lost.add(player)
            entry.row.connected = False

    def settle(self) -> None:
        """Show who has lost the connection: a tick begins."""
        for entry in self.just_lost:
            if entry.lost_at is not None and not is_dead(entry.row):
                entry.row.connected = False
        self.just_lost = []

    def expired(self, mono: float) -> list[str]:
        """Return whose grace is over."""
        if not self._lost:
            return []
        return [
            player
            for player, entry in self._entries.items()
            if entry.lost_at is not None and entry.lost_at + GRACE_S <= mono
        ]

    def remove(self, player: str) -> None:
        """End an entry."""
        tracked = self._entries.pop(player).tracked
        self._lost.discard(player)
        self._ids.remove(tracked.id)
        self._tracker.remove(tracked)

    def stored(self, player: str) -> tuple[str, bytes]:
        """Return the name and the status, as JSON text, of a bot's entry, which are saved with it."""
        row = self._entries[player].row
        status: JsonValue = stored_values(row)[_STATUS.index]
        return row.name, status.data

    def tracked(self, player: str) -> Tracked | None:
        """Return what is tracked of a player's entry."""
        entry = self._entries.get(player)
        return None if entry is None else entry.tracked

    def set(self, player: str, name: str, status: JsonOut) -> None:
        """Set a name or a status. Raises KeyError, TypeError or ValueError, and changes nothing then."""
        entry = self._entries[player]
        name = entry.row.name if name is _UNSET else check_name(name)
        if status is not _UNSET:
            check_status(status)
            entry.row.status = status
        entry.row.name = name

    def _free_id(self) -> int:
        while self._next_id in self._ids:
            self._next_id = FIRST_PRESENCE_ID if self._next_id == LAST_ID else self._next_id + 1
        return self._next_id


class Presence(Mapping[str, PresenceEntry]):
    """`room.presence`: who is in the room, by player; also who lost the connection less than 10 s ago."""

    def __init__(self, book: PresenceBook) -> None:
        self._book = book

    def __getitem__(self, player: str) -> PresenceEntry:
        return self._book.get(player)

    def __iter__(self) -> Iterator[str]:
        return iter(self._book)

    def __len__(self) -> int:
        return len(self._book)

    @overload
    def set(self, player: str, /, *, name: str) -> None: ...
    @overload
    def set(self, player: str, /, *, status: JsonOut) -> None: ...
    @overload
    def set(self, player: str, /, *, name: str, status: JsonOut) -> None: ...
    def set(self, player: str, /, *, name: str = _UNSET, status: JsonOut = _UNSET) -> None:
        """Set a player's name (at most 64 characters) or status (at most 1 KB of JSON).

        Raises KeyError where the player has no entry, TypeError or ValueError for a value that does not
        fit; nothing is changed then.
        """
        if check_player(player) not in self:
            raise KeyError(f"{player} is not in the room")
        self._book.set(player, name, status)


def check_name(name: object) -> str:
    """Return a name if it can be one: at most 64 characters. Raises TypeError or ValueError."""
    if not isinstance(name, str):
        raise TypeError(f"a name must be str, not {type(name).__name__}")
    if len(name) > MAX_NAME:
        raise ValueError(f"a name has at most {MAX_NAME} characters, not {len(name)}")
    name.encode()
    return name


def check_status(status: object) -> JsonValue:
    """Return a status as it is stored. Raises TypeError or ValueError where it is not JSON, or over 1 KB."""
    stored: JsonValue = _STATUS.accept(_SPEC.name, None, status)
    if len(stored.data) > MAX_STATUS:
        raise ValueError(f"a status has at most {MAX_STATUS} bytes of JSON, not {len(stored.data)}")
    return stored


def name_in(meta: object) -> str:
    """Return the name that a token's meta gives: its `name`, if that can be one, else empty."""
    if not isinstance(meta, dict):
        return ""
    try:
        return check_name(meta.get("name"))
    except (TypeError, ValueError):
        return ""
