"""`room.presence` of a client: who is in the room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from playhall.client.core import ClientCore
from playhall.client.listeners import Listeners, Remove
from playhall.client.replica import Changes
from playhall.engine.connection import JsonIn, JsonOut
from playhall.engine.presence import PresenceEntry
from playhall.engine.schema import PresenceRow

__all__ = ["ClientPresence", "PresenceEntry"]


class ClientPresence(Mapping[str, PresenceEntry]):
    """Who is in the room, by player: the player too, and who lost the connection less than 10 s ago.

    An entry is a value: a change makes a new one. Each `on_...` returns a function that takes the
    callback off.
    """

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._entries: dict[str, PresenceEntry] = {}
        self._join = Listeners[[PresenceEntry]]()
        self._change = Listeners[[PresenceEntry, frozenset[str]]]()
        self._leave = Listeners[[PresenceEntry]]()

    def __getitem__(self, player: str) -> PresenceEntry:
        return self._entries[player]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def set_status(self, status: JsonOut) -> None:
        """Set the player's own status: anything JSON encodes, at most 1 KB of it. It shows here at once.

        Others are told once a tick of the room; the room may overrule it, which is an `on_change`. One
        that was not sent yet is lost when the connection is. Raises ValueError for one over 1 KB, TypeError
        or ValueError for what is not JSON, PlayhallError before the client is connected, and once it is
        closed.
        """
        row = self._core.set_status(status)
        self._entries = self._entries | {row.player: _entry(row)}

    def on_join(self, callback: Callable[[PresenceEntry], object], /) -> Remove:
        """Call back for each player who comes."""
        return self._join.add(callback)

    def on_change(self, callback: Callable[[PresenceEntry, frozenset[str]], object], /) -> Remove:
        """Call back for each change of an entry, with what changed: "name", "status", "connected"."""
        return self._change.add(callback)

    def on_leave(self, callback: Callable[[PresenceEntry], object], /) -> Remove:
        """Call back for each player who is gone."""
        return self._leave.add(callback)

    def apply(self, changes: Changes) -> Callable[[], None]:
        """Take over what an update says of presence; return what runs the callbacks. For the client itself.

        A player whose entry is sent anew, by another generation, has neither left nor come.
        """
        before = self._entries
        left = {row.player for row in changes.left if isinstance(row, PresenceRow)}
        rows = [row for row in changes.entered if isinstance(row, PresenceRow)]
        rows += [row for row, _ in changes.changed if isinstance(row, PresenceRow)]
        if not left and not rows:
            return lambda: None
        now = {row.player: _entry(row) for row in rows}
        self._entries = {p: entry for p, entry in before.items() if p not in left} | now

        def tell() -> None:
            for player, entry in now.items():
                old = before.get(player)
                if old is None:
                    self._join.call(entry)
                elif entry != old:
                    names = ("name", "status", "connected")
                    changed = frozenset(name for name in names if getattr(entry, name) != getattr(old, name))
                    self._change.call(entry, changed)
            for player in left - now.keys():
                self._leave.call(before[player])

        return tell


def _entry(row: PresenceRow) -> PresenceEntry:
    return PresenceEntry(row.player, row.name, cast(JsonIn, row.status), row.connected)
