"""A game on its way: whose turn it is, and what moves do to hands, deck and table."""

from collections.abc import Callable

from playhall.room import CallRejected, Room

from .bots import Move, View, choose
from .rules import DECK, fits, fitting, hand_size, is_wild, suit_of
from .shared import TICK_RATE, TURN_S, Deck, Draw, Hand, Happening, NameSuit, Play, Seat, Suit, Table, What

__all__ = ["Game"]


class Game:
    """Works on the room's state, and has none of its own: it may be made anew at any time.

    All moves take a player, and raise CallRejected where the rules say no; nothing is changed then.
    `shuffle` puts cards into an order that nobody knows.
    """

    def __init__(self, room: Room[Table, Hand], shuffle: Callable[[list[str]], None]) -> None:
        self._room = room
        self._shuffle = shuffle

    # What there is

    @property
    def table(self) -> Table:
        return self._room.state

    @property
    def deck(self) -> Deck:
        deck = self._room.entities.first(Deck)
        assert deck is not None  # on_create made it, and nobody deletes it
        return deck

    def seats(self) -> list[Seat]:
        """The seats, by place."""
        return sorted(self._room.entities.all(Seat), key=lambda seat: seat.place)

    def is_turn_of(self, player: str) -> bool:
        """Whether the game waits for a player."""
        return self.table.phase == "playing" and self._turn_seat().owner == player

    def view(self, player: str) -> View:
        """What a player knows."""
        table = self.table
        others = [seat.cards for seat in self.seats() if seat.owner != player]
        return View(self._hand(player).cards, table.top, table.suit, table.naming, others)

    # Games begin and end

    def deal(self) -> None:
        """Begin a game: with the seat after the one that won the last."""
        cards, seats, table = list(DECK), self.seats(), self.table
        self._shuffle(cards)
        for seat in seats:
            self.set_hand(seat, [cards.pop() for _ in range(hand_size(len(seats)))])
        first = 0 if table.winner is None else (table.winner + 1) % len(seats)
        table.top = cards.pop()
        table.suit, table.naming, table.winner = suit_of(table.top), False, None
        self._set_deck(cards, [])
        table.phase = "playing"
        self._tell(first, "dealt")
        self._give_turn(first)

    def clear(self) -> None:
        """Take all cards back. There is no game then."""
        for seat in self.seats():
            self.set_hand(seat, [])
        self._set_deck(list(DECK), [])
        table = self.table
        table.phase, table.top, table.naming, table.winner, table.last = "waiting", "", False, None, None

    def _win(self, seat: Seat) -> None:
        hand = self._hand(self._owner(seat))
        hand.wins += 1
        seat.wins = hand.wins
        self.table.phase, self.table.winner = "over", seat.place

    # Moves

    def do(self, player: str, move: Move) -> None:
        """Make a move."""
        match move:
            case Play(card=card):
                self.play(player, card)
            case NameSuit(suit=suit):
                self.name_suit(player, suit)
            case Draw():
                self.draw(player)

    def play(self, player: str, card: str) -> int:
        """Play a card, and return how many the player has left."""
        seat, hand, table = self._on_turn(player), self._hand(player), self.table
        if card not in hand.cards:
            raise CallRejected("You do not hold that card.")
        if not fits(card, table.top, table.suit):
            raise CallRejected("That card fits neither the suit nor the rank.")
        self.set_hand(seat, [held for held in hand.cards if held != card])
        self._set_deck(self.deck.stock, [*self.deck.played, table.top])
        table.top, table.suit = card, suit_of(card)
        if seat.cards == 0:
            self._tell(seat.place, "won", card)
            self._win(seat)
        else:
            self._tell(seat.place, "played", card)
            table.naming = is_wild(card)
            if not table.naming:
                self._next_turn()
        return seat.cards

    def name_suit(self, player: str, suit: Suit) -> None:
        """Name the suit that the next player has to match."""
        seat = self._on_turn(player, naming=True)
        self.table.suit, self.table.naming = suit, False
        self._tell(seat.place, "named", self.table.top)
        self._next_turn()

    def draw(self, player: str) -> str | None:
        """Draw a card and return it. The turn is over unless it fits; also where there is none to draw."""
        seat, hand, table = self._on_turn(player), self._hand(player), self.table
        if fitting(hand.cards, table.top, table.suit):
            raise CallRejected("You have a card that fits: play it.")
        card = self._take_from_stock()
        if card is not None:
            self.set_hand(seat, [*hand.cards, card])
        self._tell(seat.place, "passed" if card is None else "drew")
        if card is None or not fits(card, table.top, table.suit):
            self._next_turn()
        return card

    # Time

    def restart_clock(self) -> None:
        """Give whose turn it is the whole time again."""
        self.table.turn_until = self._room.tick + round(TURN_S * TICK_RATE)

    def end_late_turn(self) -> None:
        """Play for whose time is up."""
        table = self.table
        if table.phase != "playing" or self._room.tick < table.turn_until:
            return
        player, until = self._owner(self._turn_seat()), table.turn_until
        while self.is_turn_of(player) and table.turn_until == until:
            self.do(player, choose(self.view(player)))
            if table.last is not None:
                table.last = {**table.last, "late": True}

    def _next_turn(self) -> None:
        self._give_turn((self.table.turn + 1) % len(self.seats()))

    def _give_turn(self, place: int) -> None:
        self.table.turn = place
        self.restart_clock()

    # Parts

    def _on_turn(self, player: str, naming: bool = False) -> Seat:
        """The player's seat. Raises CallRejected unless it may play now, or is to name a suit now."""
        if self.table.phase != "playing":
            raise CallRejected("No game is being played.")
        seat = self._turn_seat()
        if seat.owner != player:
            raise CallRejected("It is not your turn.")
        if self.table.naming and not naming:
            raise CallRejected("Name a suit first.")
        if naming and not self.table.naming:
            raise CallRejected("There is no suit to name.")
        return seat

    def _turn_seat(self) -> Seat:
        return self.seats()[self.table.turn]

    def _owner(self, seat: Seat) -> str:
        assert seat.owner is not None  # seats are laid with somebody in them
        return seat.owner

    def _hand(self, player: str) -> Hand:
        return self._room.private(player, create=True)

    def set_hand(self, seat: Seat, cards: list[str]) -> None:
        """Give the owner of a seat these cards, in place of those held. Everyone sees how many."""
        owner = self._owner(seat)
        # Private state outlives a bot by a day: none is made for bots that come and go without cards.
        if cards or self._room.private(owner) is not None:
            self._hand(owner).cards = cards
        seat.cards = len(cards)

    def _set_deck(self, stock: list[str], played: list[str]) -> None:
        deck = self.deck
        deck.stock, deck.played = stock, played
        self.table.stock = len(stock)

    def _take_from_stock(self) -> str | None:
        """Take the next card; from what was played, shuffled, where the stock is used up."""
        stock, played = list(self.deck.stock), list(self.deck.played)
        if not stock:
            stock, played = played, []
            self._shuffle(stock)
        card = stock.pop() if stock else None
        self._set_deck(stock, played)
        return card

    def _tell(self, place: int, what: What, card: str = "") -> None:
        event: Happening = {"place": place, "what": what, "card": card, "late": False}
        self.table.last = event
