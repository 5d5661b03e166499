"""What the room and every client agree on. `playhall gen` writes the page's copy of it.

A card is its rank and the letter of its suit: "7H", "10S", "QD".
"""

from typing import Literal, TypedDict

from playhall.room import Call, Entity, Json, Schema, u8, u16, u32, writable

Suit = Literal["C", "D", "H", "S"]
Phase = Literal["waiting", "playing", "over"]
SortBy = Literal["suit", "rank"]
What = Literal["dealt", "played", "named", "drew", "passed", "won"]

SUITS: list[Suit] = ["C", "D", "H", "S"]
RANKS = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"]
WILD = "8"

TICK_RATE = 10
TURN_S = 30.0
NAME_LENGTH = 24
MIN_SEATS = 2
MAX_SEATS = 4


class Happening(TypedDict):
    """The last thing that happened, as everyone may know it: what was drawn is nobody's business."""

    place: int
    what: What
    card: str
    late: bool


class Table(Entity):
    """What everyone sees."""

    phase: Json[Phase] = "waiting"
    turn: u8 = 0
    """The place of whose turn it is."""
    turn_until: u32 = 0
    """The tick by which it must be played."""
    top: str = ""
    """The card to match; empty before the first deal."""
    suit: Json[Suit] = "S"
    """The suit to match: that of the top card, or the one named for an eight."""
    naming: bool = False
    """An eight was played, and its player has yet to name a suit."""
    stock: u8 = 52
    """How many cards there are to draw."""
    winner: Json[int | None] = None
    """The place of who won."""
    last: Json[Happening | None] = None


class Seat(Entity):
    """A place at the table. Its owner plays it: a person, or a bot until a person comes."""

    place: u8
    cards: u8 = 0
    wins: u16 = 0


class Hand(Entity):
    """What one player sees alone, and finds again however the connection, the room or the room host ended."""

    cards: Json[list[str]] = []
    wins: u16 = 0
    name: writable[str] = ""
    sort_by: writable[Json[SortBy]] = "suit"


class Deck(Entity, hidden=True):
    """The cards that nobody holds. Its kind is hidden: no client is ever sent any of it."""

    stock: Json[list[str]] = []
    """To be drawn, from the end."""
    played: Json[list[str]] = []
    """Those under the top card, shuffled into a new stock when that is used up."""


class Play(Call[int]):
    """Play a card of one's hand. The reply: how many are left."""

    card: str


class NameSuit(Call):
    """Name the suit to match, after an eight."""

    suit: Suit


class Draw(Call[str | None]):
    """Draw, where no card of the hand fits. The reply: the card; None where there was none to draw."""


class Resize(Call):
    """Lay the table for so many, between games."""

    seats: Literal[2, 3, 4]


schema = Schema(state=Table, private=Hand, entities=[Seat, Deck], calls=[Play, NameSuit, Draw, Resize])
