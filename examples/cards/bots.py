"""The players that fill empty seats. They know what a person in their seat would, and no more."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhall.room import Bot

from .rules import fitting, is_wild, longest_suit, suit_of
from .shared import TICK_RATE, Draw, NameSuit, Play, Suit

if TYPE_CHECKING:
    from .room import Cards

__all__ = ["BOT_NAMES", "Move", "Rival", "View", "choose"]

BOT_NAMES = ("Basil", "Clover", "Fennel", "Juniper", "Saffron", "Tansy")
#: An opponent with so few cards is about to win.
CLOSE = 2

#: A bot does what a person's page can: it makes calls.
Move = Play | NameSuit | Draw


@dataclass(frozen=True)
class View:
    """What a player knows: the own hand, the table, and how many cards the others hold."""

    hand: Sequence[str]
    top: str
    suit: Suit
    naming: bool
    others: Sequence[int]


def choose(view: View) -> Move:
    """A fair move. Eights are kept, until somebody is about to win."""
    if view.naming:
        return NameSuit(suit=longest_suit(view.hand))
    cards = fitting(view.hand, view.top, view.suit)
    if not cards:
        return Draw()
    hurry = min(view.others, default=CLOSE + 1) <= CLOSE
    suits = [suit_of(card) for card in view.hand]
    return Play(card=max(cards, key=lambda card: (is_wild(card) == hurry, suits.count(suit_of(card)))))


class Rival(Bot):
    """Plays a seat until a person takes it. Its fields are saved: a wake finds it in mid thought."""

    pace_s: float = 1.2
    """How long it thinks, about."""
    stands_in_for: str = ""
    """Who left this seat, and may have it back; empty for nobody."""
    move_at: int = 0
    """The tick at which it has thought enough; 0 while it is not its turn."""

    def tick(self, room: Cards) -> None:
        if not room.game.is_turn_of(self.player) or not room.connections:
            self.move_at = 0
        elif self.move_at == 0:
            self.move_at = room.tick + max(1, round(self.pace_s * random.uniform(0.7, 1.4) * TICK_RATE))
        elif room.tick >= self.move_at:
            self.move_at = 0
            room.game.do(self.player, choose(room.game.view(self.player)))
