"""The rules of the game."""

import random

from playhall.room import Connection, Message, Room, Wake

from .shared import SIZE, Board, Dot, Mine, schema

#: How long after a start the dots of those who were here are kept, in seconds.
RETURN_S = 15


class Dots(Room[Board, Mine]):
    schema = schema
    tick_rate = 20

    def __init__(self) -> None:
        self.missing_until: float | None = None

    def on_wake(self, wake: Wake) -> None:
        self.missing_until = self.now() + RETURN_S  # after a crash, people are on their way back

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

    def on_tick(self, dt: float) -> None:
        if self.missing_until is not None and self.now() >= self.missing_until:
            self.missing_until = None
            for player in {dot.owner for dot in self.entities.all(Dot)}:
                if player is not None and player not in self.presence:
                    self.on_player_leave(player)  # did not come back: no hook tells of it

    def on_player_leave(self, player: str) -> None:
        for dot in self.entities.all(Dot, owner=player):
            self.entities.delete(dot)
