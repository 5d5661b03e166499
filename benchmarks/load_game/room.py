"""Its room: a message moves the sender's entity, and "dump" tells everything there is, to compare with."""

from playhall.room import Connection, Message, Room

from .shared import Board, Mover, schema


class Load(Room[Board]):
    schema = schema
    tick_rate = 20
    max_players = 200

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Mover(x=0, y=0), owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case {"x": int() | float() as x, "y": int() | float() as y}:
                mover = self.entities.first(Mover, owner=conn.player)
                if mover is not None:
                    mover.x, mover.y = x, y
                    self.state.moves += 1
            case "dump":
                movers = {str(e.id): [e.x, e.y] for e in self.entities.all(Mover)}
                self.send(conn, {"moves": self.state.moves, "movers": movers})
