"""Who plays which seat. Somebody always does: a bot where no person is."""

import random

from playhall.room import CallRejected, Room, is_bot

from .bots import BOT_NAMES, Rival
from .game import Game
from .shared import MAX_SEATS, Hand, Seat, Table

__all__ = ["Seating"]


class Seating:
    """Works on the room's seats and bots, and has no state of its own."""

    def __init__(self, room: Room[Table, Hand], game: Game) -> None:
        self._room = room
        self._game = game

    def seat_of(self, player: str) -> Seat | None:
        """The seat a player has."""
        return self._room.entities.first(Seat, owner=player)

    def people(self) -> list[str]:
        """The people who have seats, by place; also those who may be on their way back."""
        owners = [seat.owner for seat in self._game.seats()]
        return [owner for owner in owners if owner is not None and not is_bot(owner)]

    def lay(self) -> None:
        """Lay a new table, with bots all around it."""
        for place in range(min(MAX_SEATS, self._room.max_players)):
            self._add_seat(place)

    def resize(self, count: int) -> None:
        """Have so many seats: bots go, or come where nobody waits for a seat.

        Raises CallRejected; nothing is changed then.
        """
        if len(self.people()) > count:
            raise CallRejected("There are more people at the table than that.")
        if count > self._room.max_players:
            raise CallRejected("The room has fewer seats than that.")
        self._game.clear()
        seats = self._game.seats()
        for seat in reversed(seats):
            if len(seats) > count and seat.owner is not None and is_bot(seat.owner):
                seats.remove(seat)
                self._remove_seat(seat, seat.owner)
        for place, seat in enumerate(seats):
            seat.place = place
        for place in range(len(seats), count):
            self._add_seat(place)

    def admit(self, player: str) -> None:
        """Give a person who came a seat, with the hand that goes with it; or let it watch where none is free.

        Who was here before gets the old seat back, from the bot that stands in there.
        """
        if self.seat_of(player) is not None:
            return
        bots = self._bots()

        def rank(seat: Seat) -> int:
            bot = bots.get(seat.owner or "")
            if bot is None or bot.stands_in_for == player:
                return 0
            return 2 if bot.stands_in_for else 1

        free = [seat for seat in self._game.seats() if seat.owner is None or is_bot(seat.owner)]
        seat = min(free, key=rank, default=None)
        if seat is None:
            return
        bot = bots.get(seat.owner or "")
        self._hand_over(seat, player)
        if bot is not None:
            self._room.bots.remove(bot)

    def replace(self, player: str) -> None:
        """Find somebody for the seat of a player who left: who watches comes first, else it is a bot."""
        seat, room = self.seat_of(player), self._room
        if seat is None:
            return
        heir = self._watching()
        if heir is None:
            hand = room.private(player)
            known_as = "" if hand is None else hand.name
            try:
                heir = self._add_bot("" if is_bot(player) else player, known_as).player
            except ValueError:
                return  # all seats are taken: by the person for whom this bot goes, and admit() is next
        self._hand_over(seat, heir)

    def replace_missing(self) -> None:
        """Replace the people who are not here any more, not even for the seconds in which they may return.

        After a crash that is who did not come back: no hook tells of them.
        """
        for player in self.people():
            if player not in self._room.presence:
                self.replace(player)

    def _watching(self) -> str | None:
        """Who has watched for longest."""
        return next((player for player in self._room.connections if self.seat_of(player) is None), None)

    def _bots(self) -> dict[str, Rival]:
        return {bot.player: bot for bot in self._room.bots if isinstance(bot, Rival)}

    def _hand_over(self, seat: Seat, heir: str) -> None:
        """Give a seat and its hand to another player."""
        before = None if seat.owner is None else self._room.private(seat.owner)
        cards: list[str] = []
        if before is not None:
            cards, before.cards = before.cards, cards
        self._room.entities.set_owner(seat, heir)
        self._game.set_hand(seat, cards)
        seat.wins = self._wins_of(heir)
        if self._game.is_turn_of(heir):
            self._game.restart_clock()

    def _add_seat(self, place: int) -> None:
        owner = self._watching() or self._add_bot().player
        self._room.entities.add(Seat(place=place, wins=self._wins_of(owner)), owner=owner)

    def _wins_of(self, player: str) -> int:
        hand = self._room.private(player)
        return 0 if hand is None else hand.wins

    def _remove_seat(self, seat: Seat, owner: str) -> None:
        bot = self._bots().get(owner)
        self._room.entities.delete(seat)
        if bot is not None:
            self._room.bots.remove(bot)

    def _add_bot(self, stands_in_for: str = "", known_as: str = "") -> Rival:
        taken = {entry.name for entry in self._room.presence.values()}
        name = next((name for name in BOT_NAMES if name not in taken), BOT_NAMES[0])
        bot = Rival(pace_s=random.uniform(0.9, 1.6), stands_in_for=stands_in_for)
        return self._room.bots.add(bot, name=name, status={"ready": True, "for": known_as})
