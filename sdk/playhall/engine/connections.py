"""The connections of a room: how they come, replace each other, and go.

A link is JOINING while its on_join is running or waiting, JOINED once that is done, GONE when the room has
forgotten it. What must hold (and goes wrong easily when a client drops in the middle of a slow on_join):

- on_leave runs exactly once for a connection whose on_join took effect, and never for another.
- A connection that goes while JOINING takes its on_join with it: what waits is cancelled, and nothing comes
  of it.
- A refused connection gets no state, and nobody is ever told of a player that was never in.
- People and bots never have more than the seats there are: a person who comes takes the seat of the bot that
  was added last, within the join.
- A player has one connection and one seat. The newer connection wins; which is newer, see `Link.supersedes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from playhall.engine.bans import Bans
from playhall.engine.botbook import BotBook
from playhall.engine.codes import CloseCode
from playhall.engine.connection import Connection
from playhall.engine.fanout import Link, Outbox, View
from playhall.engine.links import LinkState
from playhall.engine.outputs import CloseOut, JoinedOut, JoinRequest
from playhall.engine.presence import name_in
from playhall.engine.room import Room
from playhall.engine.runtime import Runtime
from playhall.engine.schema import PRIVATE_ID, SHARED_ID
from playhall.engine.snapshot import Snapshots

__all__ = ["Connections"]

DEFAULT_TYPE = "default"
# Of a close frame's 123 bytes, some are kept for a retry-after.
MAX_REASON_BYTES = 96


class Connections:
    """The connections of one room."""

    __slots__ = (
        "_bans",
        "_bots",
        "_conns",
        "_joined",
        "_links",
        "_listed",
        "_max_players",
        "_of_player",
        "_room",
        "_runtime",
        "_tick_rate",
        "by_number",
        "by_player",
        "empty_since",
    )

    def __init__(
        self,
        runtime: Runtime,
        room: Room[Any, Any, Any],
        bots: BotBook,
        bans: Bans,
        *,
        max_players: int,
        tick_rate: int,
        joined: Callable[[Link], None],
    ) -> None:
        self._runtime = runtime
        self._room = room
        self._bots = bots
        self._bans = bans
        self._max_players = max_players
        self._tick_rate = tick_rate
        self._joined = joined
        self._links: dict[int, Link] = {}
        self._of_player: dict[str, Link] = {}
        self.by_number: Mapping[int, Link] = self._links
        # The list of them, made again after one has come or gone.
        self._listed: list[Link] | None = None
        self._conns: dict[str, Connection] = {}
        self.by_player: Mapping[str, Connection] = Snapshots(self._conns)
        self.empty_since: float | None = runtime.now.mono

    def __len__(self) -> int:
        """How many connections are in the room or joining it."""
        return len(self._links)

    @property
    def links(self) -> list[Link]:
        """All of them, in the order they came: a list that stays as it is, whoever comes or goes."""
        if self._listed is None:
            self._listed = list(self._links.values())
        return self._listed

    def get(self, number: int) -> Link | None:
        return self._links.get(number)

    def of(self, conn: Connection) -> Link | None:
        """Return the link of a connection, or None if it has gone."""
        link = self._of_player.get(conn.player)
        return link if link is not None and link.conn is conn else None

    def of_player(self, player: str) -> Link | None:
        """Return the link of a player, or None for one who has none."""
        return self._of_player.get(player)

    def join(self, number: int, request: JoinRequest) -> None:
        """A connection wants in. Answered by JoinedOut or CloseOut."""
        refusal = self._refusal(request)
        if refusal is not None:
            self._runtime.emit(CloseOut(number, *refusal))
            return
        link = self._make_link(number, request)
        old = self._of_player.get(request.player)
        if old is not None:
            self._replace(old, link)
        if request.player not in self._runtime.presence:
            self.make_space_in_presence()
        self._admit(link, request)
        self._runtime.run(
            "on_join",
            lambda: self._join(link, request),
            lambda error: self._settle_join(link, error),
            link=number,
        )

    def leave(self, number: int) -> None:
        """A connection is gone."""
        link = self._links.get(number)
        if link is not None:
            self._drop(link)

    def close(self, link: Link, code: CloseCode, reason: str) -> None:
        """End a connection."""
        if link.state is not LinkState.GONE:
            self._runtime.emit(CloseOut(link.number, code, _fitting(reason)))
            self._drop(link)

    def kick(self, link: Link, reason: str = "kicked") -> None:
        """End a connection for room code; one that is joining is refused by it."""
        if link.state is LinkState.JOINING:
            self._refuse(link, reason)
        else:
            self.close(link, CloseCode.KICKED, reason)

    def throw_out(self, player: str) -> None:
        """End a banned player's connection, and the entry in presence as soon as on_leave is done."""
        link = self._of_player.get(player)
        if link is not None:
            self.kick(link, "banned")
        self._runtime.hooks.defer(lambda: self.end_presence(player))

    def make_space_in_presence(self) -> None:
        """Take out of presence, if it is full, whoever has been without a connection longest."""
        evicted = self._runtime.presence.overflow()
        if evicted is not None:
            self.end_presence(evicted)

    def forget_all(self) -> None:
        """Forget every link without a word to it, and without on_leave."""
        for link in self.links:
            self._forget(link)

    def end_presence(self, player: str) -> None:
        """End a player's entry, and let the room clean up."""
        if player in self._runtime.presence:
            self._runtime.presence.remove(player)
            self._runtime.hooks.defer(
                lambda: self._runtime.run("on_player_leave", lambda: self._room.on_player_leave(player))
            )

    def _refusal(self, request: JoinRequest) -> tuple[CloseCode, str] | None:
        identity, schema = self._runtime.identity, self._runtime.schema
        if request.player in self._bans:
            return CloseCode.KICKED, "banned"
        if (request.room_type or DEFAULT_TYPE) != identity.room_type:
            return CloseCode.WRONG_ROOM_TYPE, f"the room is of type {identity.room_type}"
        if request.schema_hash != schema.hash:
            return CloseCode.SCHEMA_MISMATCH, "client and room have different schemas"
        old = self._of_player.get(request.player)
        if old is None:
            return self._no_seat(request)
        if old.supersedes(request.session, request.attempt, request.connected_at_ms):
            return CloseCode.REPLACED, "a newer connection of the player is in the room"
        return None

    def _no_seat(self, request: JoinRequest) -> tuple[CloseCode, str] | None:
        if len(self._of_player) >= self._max_players and not request.was_joined:
            return CloseCode.ROOM_FULL, f"all {self._max_players} seats are taken"
        # Where a bot gives up its seat, its entry goes too.
        has_space = self._runtime.presence.has_space or len(self._bots) > 0
        if request.player not in self._runtime.presence and not has_space:
            return CloseCode.ROOM_FULL, "there are as many players as a room can show"
        return None

    def _make_link(self, number: int, request: JoinRequest) -> Link:
        view = View(request.player, self._runtime.version, self._runtime.tick)
        resume = request.resume
        if (
            resume.generation == self._runtime.generation
            and resume.version <= self._runtime.version
            and not resume.full
        ):
            view.resume(resume.version, (*self._unlisted(request.player), *resume.held))
        return Link(
            number,
            request.player,
            None,
            view,
            Outbox(request.credit_bytes),
            request.session,
            request.attempt,
            request.connected_at_ms,
        )

    def _unlisted(self, player: str) -> list[int]:
        """Return the ids that a resume does not list: whoever was in the room holds them."""
        store = self._runtime.store
        shared = [SHARED_ID] if store.state is not None else []
        return shared + ([PRIVATE_ID] if store.has_private(player) else [])

    def _replace(self, old: Link, new: Link) -> None:
        """One connection of a player takes over from another. Presence does not change by it."""
        new.brought_presence = old.brought_presence and old.state is LinkState.JOINING
        self._runtime.emit(CloseOut(old.number, CloseCode.REPLACED, "the player connected elsewhere"))
        joined = self._forget(old)
        if joined:
            self._run_on_leave(old)

    def _admit(self, link: Link, request: JoinRequest) -> None:
        """The connection has its seat; what it gets from here on follows the welcome."""
        self._links[link.number] = link
        self._listed = None
        self._of_player[link.player] = link
        self.empty_since = None
        if self._runtime.presence.connect(link.player, name_in(request.meta)):
            link.brought_presence = True
        if self._runtime.store.has_private(link.player):
            self._runtime.retention.note(link.player, None)
        view = link.view
        self._runtime.emit(
            JoinedOut(link.number, view.told_version, view.told_tick, self._tick_rate, view.resumed)
        )

    def _join(self, link: Link, request: JoinRequest) -> Any:
        while len(self._bots) and len(self._links) + len(self._bots) > self._max_players:
            self._bots.give_up_seat()
        if link.state is not LinkState.JOINING:
            return None  # the bot's on_player_leave has kicked the player
        conn = self._room._connection_class()
        conn._id, conn._player, conn._meta = request.connection_id, request.player, request.meta
        conn._room_of = self._room
        link.conn = conn
        self._conns[link.player] = conn
        return self._room.on_join(conn)

    def _settle_join(self, link: Link, error: BaseException | None) -> None:
        if link.state is not LinkState.JOINING:
            return
        if error is None:
            link.state = LinkState.JOINED
            self._runtime.hooks.defer(lambda: self._joined(link), nests=True)
        else:
            self._runtime.report("on_join", error)
            self._refuse(link, "the room refused the join")

    def _refuse(self, link: Link, reason: str) -> None:
        """End a connection whose on_join has not taken effect."""
        self._runtime.emit(CloseOut(link.number, CloseCode.KICKED, reason))
        self._forget(link)
        if link.brought_presence:
            # Nobody knows of the player unless on_join took its time; on_player_leave clears what on_join
            # left behind.
            self.end_presence(link.player)
        else:
            self._runtime.presence.refuse(link.player, self._runtime.now.mono)

    def _drop(self, link: Link) -> None:
        """A connection has ended."""
        joined = self._forget(link)
        self._runtime.presence.lose(link.player, self._runtime.now.mono)
        if joined:
            self._run_on_leave(link)

    def _run_on_leave(self, link: Link) -> None:
        self._runtime.hooks.defer(
            lambda: self._runtime.run("on_leave", lambda: self._room.on_leave(link.conn))
        )

    def _forget(self, link: Link) -> bool:
        """Take a link out of everything. Returns whether it had joined."""
        joined = link.state is LinkState.JOINED
        link.state = LinkState.GONE
        del self._links[link.number]
        self._listed = None
        del self._of_player[link.player]
        self._conns.pop(link.player, None)
        if not joined:
            self._runtime.hooks.drop("on_join", link.number)
        if self._runtime.store.has_private(link.player):
            self._runtime.retention.note(link.player, self._runtime.now.wall)
        if not self._links:
            self.empty_since = self._runtime.now.mono
        return joined


def _fitting(reason: str) -> str:
    return reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
