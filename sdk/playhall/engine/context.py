"""What a room asks of the machine that runs it: `RoomContext`, on the parts of a RoomCore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from playhall.engine.bans import Bans
from playhall.engine.botbook import BotBook
from playhall.engine.bots import Bots
from playhall.engine.connection import Connection, JsonOut
from playhall.engine.connections import Connections
from playhall.engine.entities import Entities
from playhall.engine.presence import Presence
from playhall.engine.rewinding import Rewinding
from playhall.engine.runtime import Runtime
from playhall.engine.sending import Sending, encode_message

__all__ = ["Context"]


class Context:
    """What one room's code reaches through its `Room`, which has checked the arguments.

    `hibernate` closes the room; it is called once the hook at hand is done.
    """

    __slots__ = (
        "_bans",
        "_bots",
        "_connections",
        "_hibernate",
        "_runtime",
        "_sending",
        "entities",
        "identity",
        "log",
        "max_players",
        "presence",
        "rewind",
    )

    def __init__(
        self,
        runtime: Runtime,
        connections: Connections,
        bots: BotBook,
        bans: Bans,
        sending: Sending,
        rewinding: Rewinding,
        *,
        max_players: int,
        hibernate: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._connections = connections
        self._bots = bots
        self._bans = bans
        self._sending = sending
        self._hibernate = hibernate
        self.identity = runtime.identity
        self.max_players = max_players
        self.entities = Entities(runtime.store)
        self.presence = Presence(runtime.presence)
        self.log = runtime.log
        self.rewind = rewinding.rewind

    @property
    def tick_number(self) -> int:
        return self._runtime.tick

    @property
    def connections(self) -> Mapping[str, Any]:
        return self._connections.by_player

    @property
    def state(self) -> Any:
        return self._runtime.store.state

    @property
    def bots(self) -> Bots:
        return Bots(self._bots)

    def wall(self) -> float:
        return self._runtime.now.wall

    def private(self, player: str, create: bool) -> Any:
        found = self._runtime.store.private(player)
        if found is not None or not create:
            return found
        made = self._runtime.store.make_private(player)
        here = player in self.connections or player in self._bots
        self._runtime.retention.note(player, None if here else self._runtime.now.wall)
        return made

    def private_players(self) -> list[str]:
        return self._runtime.store.private_players()

    def send(self, conn: Connection, message: JsonOut | bytes, unreliable: bool) -> None:
        frame = encode_message(message, unreliable, compressed=False)
        link = self._connections.of(conn)
        if link is not None:
            self._sending.message([link], frame, unreliable)

    def broadcast(self, message: JsonOut | bytes, unreliable: bool, except_: Connection | None) -> None:
        links = [
            link for link in self._connections.links if link.conn is not None and link.conn is not except_
        ]
        frame = encode_message(message, unreliable, compressed=len(links) > 1)
        self._sending.message(links, frame, unreliable)

    def kick(self, conn: Connection) -> None:
        link = self._connections.of(conn)
        if link is not None:
            self._connections.kick(link)

    def ban(self, player: str) -> None:
        self._bans.add(player)
        self._connections.throw_out(player)

    def unban(self, player: str) -> None:
        self._bans.discard(player)

    def request_hibernate(self) -> None:
        self._runtime.hooks.defer(self._hibernate, nests=True)
