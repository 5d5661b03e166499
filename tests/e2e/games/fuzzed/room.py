"""A room that uses everything, and raises nothing: what is in the log of an error is not its own."""

from collections.abc import Mapping
from typing import Any

from playhall.room import Bot, Connection, Entity, Message, Room, Wake, grid

from .shared import Add, Board, Echo, Mine, Pawn, Vault, schema

SECRET = "the vault's secret"


class Walker(Bot):
    """Walks around its pawn's place."""

    steps: int = 0

    def start(self, room: "Fuzzed") -> None:
        room.entities.add(Pawn(label="bot"), owner=self.player, once=True)

    def tick(self, room: "Fuzzed") -> None:
        self.steps += 1
        pawn = room.entities.first(Pawn, owner=self.player)
        if pawn is not None:
            pawn.x = self.steps % 7
            pawn.patch("chunk", self.steps % 100, b"step")


class Fuzzed(Room[Board, Mine]):
    schema = schema
    tick_rate = 20
    bot_kinds = (Walker,)
    interest = grid(cell_size=10, range=50, around=Pawn)

    def on_create(self) -> None:
        self.entities.add(Vault(secret=SECRET))
        self.bots.add(Walker(), name="walker", status={"mood": "calm"})

    def on_wake(self, wake: Wake) -> None:
        self.state.wakes += 1

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Pawn(hand=7), owner=conn.player, once=True)
        self.private(conn).coins += 1
        self.send(conn, {"hello": conn.player})

    def on_player_leave(self, player: str) -> None:
        for pawn in self.entities.all(Pawn, owner=player):
            self.entities.delete(pawn)

    def on_message(self, conn: Connection, message: Message) -> None:
        self.state.messages += 1
        match message:
            case {"type": "look", "ask": int() as ask}:
                pawns = self.entities.all(Pawn)
                seen = {str(pawn.id): [pawn.owner, pawn.pose, pawn.label] for pawn in pawns}
                self.send(conn, {"answer": ask, "pawns": seen, "wakes": self.state.wakes})
            case bytes() | str():
                self.send(conn, message)

    def on_unreliable(self, conn: Connection, message: Message) -> None:
        self.send(conn, message, unreliable=True)

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        self.state.writes += 1
        return None if values.get("pose") == 255 else values

    @Add.handler
    def add(self, conn: Connection, ask: Add) -> int:
        self.state.calls += 1
        return (ask.a + ask.b) % 1_000_000

    @Echo.handler
    async def echo(self, conn: Connection, ask: Echo) -> bytes:
        return ask.text.encode()
