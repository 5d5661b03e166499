"""The rules of the game."""

import random

from playhall.room import Connection, Message, Room

from .shared import SIZE, Board, Dot, Mine, schema


class Dots(Room[Board, Mine]):
    schema = schema
    tick_rate = 20

    def on_join(self, conn: Connection) -> None:
        dot = Dot(x=random.uniform(10, SIZE - 10), y=random.uniform(10, SIZE - 10))
        self.entities.add(dot, owner=conn.player, once=True)  # a crash leaves the old one here

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"type": "move", "x": int() | float() as x, "y": int() | float() as y}:
                for dot in self.entities.all(Dot, owner=conn.player):
                    dot.x, dot.y = min(max(x, 0.0), SIZE), min(max(y, 0.0), SIZE)
                mine = self.private(conn)
                mine.moves += 1
                self.state.moves += 1
            case {"type": "name", "name": str(name)}:
                self.presence.set(conn.player, name=name.strip()[:24])
            case _:
                self.log.info("odd message from %s", conn.player)

    def on_player_leave(self, player: str) -> None:
        for dot in self.entities.all(Dot, owner=player):
            self.entities.delete(dot)
