"""The rules of the game, as functions of cards alone."""

from collections.abc import Sequence

from .shared import RANKS, SUITS, WILD, Suit

__all__ = ["DECK", "fits", "fitting", "hand_size", "is_wild", "longest_suit", "rank_of", "suit_of"]

#: All 52, in order.
DECK = tuple(rank + suit for suit in SUITS for rank in RANKS)
_SUIT_OF: dict[str, Suit] = {suit: suit for suit in SUITS}


def rank_of(card: str) -> str:
    """The rank of a card."""
    return card[:-1]


def suit_of(card: str) -> Suit:
    """The suit of a card. Raises KeyError for what is no card."""
    return _SUIT_OF[card[-1]]


def is_wild(card: str) -> bool:
    """Whether a card fits on everything, and lets its player name a suit."""
    return rank_of(card) == WILD


def fits(card: str, top: str, suit: Suit) -> bool:
    """Whether a card may be played on `top`, where `suit` is to be matched."""
    return is_wild(card) or suit_of(card) == suit or rank_of(card) == rank_of(top)


def fitting(hand: Sequence[str], top: str, suit: Suit) -> list[str]:
    """The cards of a hand that may be played."""
    return [card for card in hand if fits(card, top, suit)]


def longest_suit(hand: Sequence[str]) -> Suit:
    """The suit a hand has most of, its wild cards aside; of several, the first in the order of `SUITS`."""
    suits = [suit_of(card) for card in hand if not is_wild(card)]
    return max(SUITS, key=suits.count)


def hand_size(players: int) -> int:
    """How many cards each of so many players is dealt."""
    return 7 if players == 2 else 5
