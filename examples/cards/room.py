"""The room: who may do what, and when. How the game goes is in game.py, who sits where in seating.py."""

from collections.abc import Mapping
from random import SystemRandom
from typing import Any

from playhall.room import CallRejected, Connection, Entity, Room, Wake

from .bots import Rival
from .game import Game
from .seating import Seating
from .shared import NAME_LENGTH, TICK_RATE, Deck, Draw, Hand, NameSuit, Play, Resize, Table, schema

#: How long after a start the seats of those who were here are kept.
RETURN_S = 15

_chance = SystemRandom()


class Cards(Room[Table, Hand]):
    schema = schema
    tick_rate = TICK_RATE
    max_players = 16  # at most four of them play, the others watch
    bot_kinds = (Rival,)

    def __init__(self) -> None:
        self.game = Game(self, self.shuffle)
        self.seating = Seating(self, self.game)
        self._patient_until = 0

    def shuffle(self, cards: list[str]) -> None:
        """Shuffle by the system's chance, which nobody can foretell from cards already seen."""
        _chance.shuffle(cards)

    def on_create(self) -> None:
        self.entities.add(Deck())
        self.seating.lay()
        self.game.clear()

    def on_wake(self, wake: Wake) -> None:
        self._patient_until = self.tick + RETURN_S * TICK_RATE  # people are on their way back

    def on_join(self, conn: Connection) -> None:
        hand = self.private(conn)
        if hand.name:
            self.presence.set(conn.player, name=hand.name)
        self.seating.admit(conn.player)
        if len(self.connections) == 1:
            self.game.restart_clock()  # it stood still while nobody was here

    def on_player_leave(self, player: str) -> None:
        self.seating.replace(player)

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        if "name" in values:
            values["name"] = values["name"].strip()[:NAME_LENGTH].rstrip()
            self.presence.set(conn.player, name=values["name"])
        if values.get("sort_by", "suit") not in ("suit", "rank"):
            del values["sort_by"]
        return values

    def on_tick(self, dt: float) -> None:
        if not self.connections:
            return  # bots play with people, and not without
        if self.tick >= self._patient_until:
            self.seating.replace_missing()
        if self.state.phase == "playing":
            self.game.end_late_turn()
        elif self._all_ready():
            for player in self.seating.people():
                self.presence.set(player, status={"ready": False})  # a rematch is asked for anew
            self.game.deal()

    def _all_ready(self) -> bool:
        """Whether everyone at the table wants to begin. Bots always do."""
        people = self.seating.people()
        return bool(people) and all(self._is_ready(player) for player in people)

    def _is_ready(self, player: str) -> bool:
        status = self.presence[player].status if player in self.presence else None
        return isinstance(status, dict) and status.get("ready") is True

    @Play.handler
    def play(self, conn: Connection, ask: Play) -> int:
        return self.game.play(conn.player, ask.card)

    @NameSuit.handler
    def name_suit(self, conn: Connection, ask: NameSuit) -> None:
        self.game.name_suit(conn.player, ask.suit)

    @Draw.handler
    def draw(self, conn: Connection, ask: Draw) -> str | None:
        return self.game.draw(conn.player)

    @Resize.handler
    def resize(self, conn: Connection, ask: Resize) -> None:
        if self.state.phase == "playing":
            raise CallRejected("Finish this game first.")
        if self.seating.seat_of(conn.player) is None:
            raise CallRejected("Only who sits at the table can change it.")
        self.seating.resize(ask.seats)
