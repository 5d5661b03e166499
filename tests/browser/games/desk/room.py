"""A desk at which players draw, buy and talk, for tests of the browser client."""

import asyncio
from collections.abc import Mapping
from typing import Any

from playhall.room import CallRejected, Connection, Entity, Message, PresenceEntry, Room

from .shared import Board, Break, Buy, Mine, Pen, Wait, schema

WAIT_S = 8.0
MAX_VOLUME = 10


class Desk(Room[Board, Mine]):
    schema = schema
    tick_rate = 20

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Pen(), owner=conn.player, once=True)

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        if "x" in values:
            values["x"] = min(max(values["x"], 0.0), 100.0)
        if "volume" in values:
            values["volume"] = min(values["volume"], MAX_VOLUME)
        return values

    def on_tick(self, dt: float) -> None:
        for entry in list(self.presence.values()):
            if not self._is_decent(entry):
                self.presence.set(entry.player, status=None)

    def _is_decent(self, entry: PresenceEntry) -> bool:
        return entry.status != "rude"

    @Buy.handler
    def buy(self, conn: Connection, ask: Buy) -> int:
        mine = self.private(conn)
        if mine.coins < ask.count:
            raise CallRejected(f"{mine.coins} coins are not enough for {ask.count} of {ask.item}")
        mine.coins -= ask.count
        self.state.sold += ask.count
        return mine.coins

    @Break.handler
    def break_down(self, conn: Connection, ask: Break) -> None:
        raise RuntimeError("the drawer is stuck")

    @Wait.handler
    async def wait(self, conn: Connection, ask: Wait) -> None:
        await asyncio.sleep(WAIT_S)

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"give": str() as player}:
                for pen in self.entities.all(Pen, owner=conn.player):
                    self.entities.set_owner(pen, player)
            case {"hide": True}:
                for pen in self.entities.all(Pen, owner=conn.player):
                    self.entities.delete(pen)
            case _:
                self.send(conn, {"reliably": message})

    def on_unreliable(self, conn: Connection, message: Message) -> None:
        self.broadcast({"heard": message}, unreliable=True)
