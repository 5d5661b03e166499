import pytest
from hypothesis import given
from hypothesis import strategies as st

from .bots import View, choose
from .rules import DECK, fits, fitting, hand_size, longest_suit, suit_of
from .shared import SUITS, Draw, NameSuit, Play

cards = st.sampled_from(DECK)
hands = st.lists(cards, unique=True)


def test_a_deck_has_each_card_once() -> None:
    assert len(set(DECK)) == len(DECK) == 52


@pytest.mark.parametrize(
    ("card", "yes"),
    [("2H", True), ("KS", True), ("8C", True), ("8H", True), ("2S", False), ("10C", False)],
    ids=["suit", "rank", "eight", "eight of the suit", "neither", "neither, of two digits"],
)
def test_what_fits_on_the_king_of_hearts(card: str, yes: bool) -> None:
    assert fits(card, "KH", "H") == yes


def test_on_an_eight_the_named_suit_counts() -> None:
    assert fits("2C", "8H", "C")
    assert not fits("2H", "8H", "C")


@given(hand=hands, top=cards, suit=st.sampled_from(SUITS))
def test_a_choice_is_one_the_rules_allow(hand: list[str], top: str, suit: str) -> None:
    view = View(hand, top, suit_of("2" + suit), naming=False, others=[5, 5])
    match choose(view):
        case Play(card=card):
            assert card in hand
            assert fits(card, top, view.suit)
        case Draw():
            assert fitting(hand, top, view.suit) == []
        case NameSuit():
            pytest.fail("no suit is to be named")


def test_eights_are_kept_until_somebody_is_about_to_win() -> None:
    hand = ["8C", "2H", "3S"]
    assert choose(View(hand, "KH", "H", naming=False, others=[5, 4])) == Play(card="2H")
    assert choose(View(hand, "KH", "H", naming=False, others=[5, 1])) == Play(card="8C")
    assert choose(View(hand, "KC", "C", naming=False, others=[5, 4])) == Play(card="8C")


def test_the_suit_that_is_named_is_the_longest() -> None:
    assert choose(View(["8C", "8D", "2S", "3S", "4H"], "8H", "H", naming=True, others=[3])) == NameSuit(
        suit="S"
    )
    assert longest_suit(["8H"]) == "C"


def test_two_players_get_more_cards_each() -> None:
    assert [hand_size(players) for players in (2, 3, 4)] == [7, 5, 5]
