"""The game as its players see it: real clients, and a clock that only the tests move."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.client import PlayhallError, RoomClient
from playhall.client.transport import Receiver, Transport
from playhall.room import Call, CloseCode, is_bot
from playhall.testing import RoomHost, StillLoop, TestClient, TestRoom

from .bots import View, choose
from .room import Cards
from .rules import DECK, fits
from .shared import TURN_S, Deck, Draw, Hand, NameSuit, Play, Resize, Seat, Table, schema

Player = TestClient[Table, Hand]
GameRoom = TestRoom[Cards, Table, Hand]


def stacked(*hands: Sequence[str], top: str, draws: Sequence[str] = ()) -> type[Cards]:
    """A room whose deck lies so that these hands are dealt, by place, and these cards drawn next."""
    known = [*(card for hand in hands for card in hand), top, *draws]
    order = [*(card for card in reversed(DECK) if card not in known), *reversed(known)]

    class Stacked(Cards):
        def shuffle(self, cards: list[str]) -> None:
            cards.sort(key=order.index)

    return Stacked


ANN = ["2H", "8C", "KS", "3C", "4C", "5C", "6C"]
BOB = ["9H", "2D", "8D", "3S", "4S", "5S", "6S"]
Duel = stacked(ANN, BOB, top="QH", draws=["7D", "JC", "10D"])


async def ready(t: GameRoom, *players: Player) -> None:
    """Say that all are ready, and have the room deal."""
    for player in players:
        player.presence.set_status({"ready": True})
    await t.tick(2)


async def duel(host: RoomHost, room: type[Cards] = Duel) -> tuple[GameRoom, Player, Player]:
    """Ann and Bob at a table for two, with cards; it is Ann's turn."""
    t: GameRoom = host.room(room)
    ann, bob = await t.connect("ann"), await t.connect("bob")
    await host.wait(ann.call(Resize(seats=2)))
    await ready(t, ann, bob)
    assert ann.state.phase == "playing"
    return t, ann, bob


def seat_of(player: Player) -> Seat:
    [seat] = player.entities.mine(Seat)
    return seat


def counts(player: Player) -> list[int]:
    """How many cards each seat has, by place, as a player sees it."""
    return [seat.cards for seat in sorted(player.entities.all(Seat), key=lambda seat: seat.place)]


def assert_all_cards_are_there(room: Cards) -> None:
    """Each of the 52 is in one place, and everyone is told the right counts."""
    [deck] = room.entities.all(Deck)
    held: list[str] = []
    for seat in room.game.seats():
        hand = room.private(seat.owner or "")
        cards = [] if hand is None else hand.cards
        assert len(cards) == seat.cards
        held += cards
    top = [room.state.top] if room.state.top else []
    assert sorted([*deck.stock, *deck.played, *top, *held]) == sorted(DECK)
    assert room.state.stock == len(deck.stock)
    everywhere = [len(hand.cards) for player in room.private_players() if (hand := room.private(player))]
    assert sum(everywhere) == len(held)


# What is whose


async def test_a_deal_gives_each_player_a_hand_that_only_they_see(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    assert ann.private.cards == ANN
    assert bob.private.cards == BOB
    assert (ann.state.top, ann.state.suit) == ("QH", "H")
    assert counts(ann) == counts(bob) == [7, 7]
    assert ann.entities.all(Deck) == []
    assert_all_cards_are_there(t.room)


class Tap:
    """Keeps all that a connection brings."""

    def __init__(self, receiver: Receiver, heard: list[bytes]) -> None:
        self._receiver = receiver
        self._heard = heard

    def received(self, data: bytes) -> None:
        self._heard.append(data)
        self._receiver.received(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._receiver, name)


async def test_nothing_of_the_deck_or_of_others_hands_is_sent(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Duel)
    heard: list[bytes] = []

    def dial(receiver: Receiver) -> Awaitable[Transport]:
        return t.dial(Tap(receiver, heard), "ann")

    ann = RoomClient("http://playhall.test", project="test", room=t.id, schema=schema, dial=dial)
    await room_host.wait(ann.ready)
    bob = await t.connect("bob")
    await room_host.wait(bob.call(Resize(seats=2)))
    ann.presence.set_status({"ready": True})
    await ready(t, bob)
    await room_host.wait(ann.call(Play(card="2H")))
    await room_host.wait(bob.call(Play(card="2D")))
    sent = b"".join(heard)
    shown = [card for card in DECK if f'"{card}"'.encode() in sent]
    assert sorted(shown) == sorted([*ANN, "2D"])  # in hands and in what happened, all cards are JSON text
    await ann.leave()


# Moves


async def test_a_card_that_fits_is_played_and_the_reply_says_what_is_left(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    assert await room_host.wait(ann.call(Play(card="2H"))) == 6
    # The reply came with what it changed, for the caller and in the store.
    assert ann.private.cards == ANN[1:]
    stored = t.stored()
    assert stored.private["ann"]["cards"] == ANN[1:]
    assert stored.state is not None
    assert stored.state["top"] == "2H"
    await t.tick()
    assert bob.state.top == "2H"
    assert counts(bob) == [6, 7]
    assert bob.state.turn == seat_of(bob).place
    assert_all_cards_are_there(t.room)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (Play(card="3C"), "fits neither"),
        (Play(card="9H"), "do not hold"),
        (Play(card="joker"), "do not hold"),
        (Draw(), "a card that fits"),
        (NameSuit(suit="C"), "no suit to name"),
        (Resize(seats=3), "Finish this game"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_the_rules_forbid_is_rejected_and_no_error(
    room_host: RoomHost, ask: Call[Any], why: str
) -> None:
    t, ann, _ = await duel(room_host)
    version_before, logged = t.stored(), list(t.log)
    with pytest.raises(PlayhallError, match=why) as refused:
        await ann.call(ask)
    assert refused.value.code == 422
    await t.tick()
    assert (t.errors, t.log, ann.private.cards, t.stored()) == ([], logged, ANN, version_before)


async def test_nobody_plays_out_of_turn(room_host: RoomHost) -> None:
    t, _, bob = await duel(room_host)
    with pytest.raises(PlayhallError, match="not your turn"):
        await bob.call(Play(card="9H"))
    assert (t.errors, bob.private.cards) == ([], BOB)


async def test_before_the_deal_there_is_nothing_to_play(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    with pytest.raises(PlayhallError, match="No game"):
        await ann.call(Draw())


async def test_who_plays_an_eight_names_the_suit(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    await room_host.wait(ann.call(Play(card="8C")))
    assert ann.state.naming
    for early in (ann.call(Play(card="2H")), bob.call(Play(card="9H"))):
        with pytest.raises(PlayhallError):
            await early
    await room_host.wait(ann.call(NameSuit(suit="S")))
    assert (ann.state.top, ann.state.suit, ann.state.naming) == ("8C", "S", False)
    with pytest.raises(PlayhallError, match="fits neither"):
        await bob.call(Play(card="9H"))
    assert await room_host.wait(bob.call(Play(card="3S"))) == 6
    assert t.errors == []


async def test_a_drawn_card_that_does_not_fit_ends_the_turn_and_stays_secret(room_host: RoomHost) -> None:
    room = stacked(["2C", "3C", "4C", "5C", "6C", "7C", "9C"], BOB, top="QH", draws=["7D", "JH"])
    t, ann, bob = await duel(room_host, room)
    assert await room_host.wait(ann.call(Draw())) == "7D"
    assert ann.private.cards[-1] == "7D"
    await t.tick()
    assert counts(bob) == [8, 7]
    assert bob.state.last == {"place": 0, "what": "drew", "card": "", "late": False}
    assert bob.state.turn == 1


async def test_a_drawn_card_that_fits_may_be_played(room_host: RoomHost) -> None:
    room = stacked(["2C", "3C", "4C", "5C", "6C", "7C", "9C"], BOB, top="QH", draws=["JH"])
    t, ann, _ = await duel(room_host, room)
    assert await room_host.wait(ann.call(Draw())) == "JH"
    assert ann.state.turn == 0
    assert await room_host.wait(ann.call(Play(card="JH"))) == 7
    assert_all_cards_are_there(t.room)


async def test_what_was_played_becomes_the_stock_when_that_is_used_up(room_host: RoomHost) -> None:
    t, ann, _ = await duel(room_host)
    await room_host.wait(ann.call(Play(card="2H")))
    [deck] = t.room.entities.all(Deck)
    taken = t.room.private("bob", create=True)
    # Bob holds all that was in the stock, but for what fits.
    taken.cards, deck.stock = [*taken.cards, *deck.stock], []
    seat = t.room.game.seats()[1]
    unfit = [card for card in taken.cards if not fits(card, "2H", "H")]
    deck.played = [*deck.played, *(card for card in taken.cards if card not in unfit)]
    t.room.game.set_hand(seat, unfit)
    t.room.state.stock = 0
    assert_all_cards_are_there(t.room)
    drawn = t.room.game.draw("bob")
    assert drawn is not None
    assert deck.played == []
    assert_all_cards_are_there(t.room)
    await t.tick()


async def test_with_no_card_to_draw_the_turn_passes(room_host: RoomHost) -> None:
    t, ann, _ = await duel(room_host)
    room = t.room
    [deck] = room.entities.all(Deck)
    room.game.set_hand(room.game.seats()[0], ["3C"])
    deck.stock, deck.played, room.state.stock = [], [], 0
    assert await room_host.wait(ann.call(Draw())) is None
    assert (ann.state.turn, ann.private.cards) == (1, ["3C"])


# Turns have an end


async def test_a_turn_that_takes_too_long_is_played_by_the_room(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    await t.advance(TURN_S - 0.5)
    assert (ann.state.turn, ann.state.top) == (0, "QH")
    await t.advance(1)
    assert ann.state.top == "2H"
    assert ann.state.last is not None
    assert ann.state.last["late"]
    assert (bob.state.turn, counts(bob)) == (1, [6, 7])


async def test_a_suit_that_nobody_names_is_named_by_the_room(room_host: RoomHost) -> None:
    t, ann, _ = await duel(room_host)
    await room_host.wait(ann.call(Play(card="8C")))
    await t.advance(TURN_S)
    assert (ann.state.suit, ann.state.naming, ann.state.turn) == ("C", False, 1)


# Ready, win, again


async def test_it_begins_when_everyone_at_the_table_is_ready(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann, bob = await t.connect("ann"), await t.connect("bob")
    await ready(t, ann)
    assert ann.state.phase == "waiting"
    bob.presence.set_status({"ready": "very"})
    await t.tick(2)
    assert ann.state.phase == "waiting"
    await ready(t, bob)
    assert (ann.state.phase, counts(bob)) == ("playing", [5, 5, 5, 5])
    assert bob.presence["bob"].status == {"ready": False}
    assert_all_cards_are_there(t.room)


async def test_who_has_no_cards_wins_and_all_may_play_again(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    room = t.room
    [deck] = room.entities.all(Deck)
    room.game.set_hand(room.game.seats()[0], ["2H"])
    deck.played = ANN[1:]
    assert await room_host.wait(ann.call(Play(card="2H"))) == 0
    await t.tick()
    assert (bob.state.phase, bob.state.winner) == ("over", 0)
    assert (ann.private.wins, seat_of(ann).wins) == (1, 1)
    with pytest.raises(PlayhallError, match="No game"):
        await bob.call(Draw())
    await t.tick(5)
    assert bob.state.phase == "over"
    await ready(t, ann, bob)
    assert (bob.state.phase, bob.state.winner, bob.state.turn) == ("playing", None, 1)
    assert_all_cards_are_there(room)


async def play_on(host: RoomHost, t: GameRoom, player: Player) -> None:
    """Have a person play, by what their client knows, until the game is over."""
    assert player.state.phase == "playing"
    for _ in range(3_000):
        if player.state.winner is not None:
            return
        if player.state.turn == seat_of(player).place:
            state, place = player.state, seat_of(player).place
            others = [seat.cards for seat in player.entities.all(Seat) if seat.place != place]
            view = View(player.private.cards, state.top, state.suit, state.naming, others)
            move: Call[Any] = choose(view)
            await host.wait(player.call(move))
        await t.tick()
        assert_all_cards_are_there(t.room)


async def test_a_person_and_three_bots_play_to_the_end_and_again(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    winners: list[int | None] = []
    for _ in range(2):
        await ready(t, ann)
        await play_on(room_host, t, ann)
        assert ann.state.phase == "over"
        winners.append(ann.state.winner)
        assert counts(ann).count(0) == 1
    assert sum(seat.wins for seat in ann.entities.all(Seat)) == len(winners) == 2
    assert t.errors == []


# Bots


async def test_bots_fill_the_table_and_make_room_for_people(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    assert [is_bot(seat.owner or "") for seat in t.room.game.seats()] == [False, True, True, True]
    assert len({entry.name for entry in ann.presence.values() if is_bot(entry.player)}) == 3
    bob = await t.connect("bob")
    await t.tick()
    assert len(t.room.bots) == 2
    assert seat_of(bob).place == 1
    assert len(ann.entities.all(Seat)) == 4


async def test_who_comes_late_takes_over_the_hand_of_a_bot(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    await ready(t, ann)
    before = t.room.private(t.room.game.seats()[1].owner or "")
    assert before is not None
    cards = list(before.cards)
    bob = await t.connect("bob")
    assert (bob.private.cards, seat_of(bob).place) == (cards, 1)
    assert bob.state.phase == "playing"
    assert_all_cards_are_there(t.room)


async def test_bots_take_their_time_and_rest_while_nobody_is_there(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    await ready(t, ann)
    await room_host.wait(ann.call(choose(t.room.game.view("ann"))))
    if ann.state.naming:
        await room_host.wait(ann.call(NameSuit(suit="C")))
    turn = ann.state.turn
    if turn == 0:  # drew a card that fits
        await t.advance(TURN_S)
        turn = 1
    await t.tick(3)
    assert ann.state.turn == turn
    await t.advance(3)
    assert ann.state.turn != turn
    await ann.leave()
    state = t.room.state
    seen = (state.turn, state.top, state.stock)
    await t.advance(9)
    assert (state.turn, state.top, state.stock) == seen


async def test_in_a_small_room_the_last_bot_gives_its_seat_and_its_cards(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Duel, max_players=2)
    ann = await t.connect("ann")
    await ready(t, ann)
    assert counts(ann) == [7, 7]
    bob = await t.connect("bob")
    assert (ann.private.cards, bob.private.cards) == (BOB, ANN)  # the seat at place 1 was free first
    assert len(t.room.bots) == 0
    assert_all_cards_are_there(t.room)
    with pytest.raises(PlayhallError) as full:
        await t.connect("cid")
    assert full.value.code == CloseCode.ROOM_FULL
    await bob.leave()
    await t.advance(11)
    assert len(t.room.bots) == 1
    assert_all_cards_are_there(t.room)


async def test_who_is_alone_in_a_room_for_one_is_not_dealt_for_ever(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards, max_players=1)
    ann = await t.connect("ann")
    await ready(t, ann)
    await t.advance(2 * TURN_S)
    assert_all_cards_are_there(t.room)


async def test_a_table_is_for_two_to_four(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    await room_host.wait(ann.call(Resize(seats=2)))
    assert (counts(ann), len(t.room.bots)) == ([0, 0], 1)
    await room_host.wait(ann.call(Resize(seats=4)))
    assert (counts(ann), len(t.room.bots)) == ([0] * 4, 3)
    assert t.room.private_players() == ["ann"]  # what bots leave behind would stay for a day
    await t.connect("bob")
    await t.connect("cid")
    with pytest.raises(PlayhallError, match="more people"):
        await ann.call(Resize(seats=2))
    with pytest.raises(PlayhallError, match=r"(?i)invalid"):
        await ann.call(Resize(seats=5))  # type: ignore[arg-type]
    assert t.errors == []


# Coming and going


async def test_who_is_back_at_once_has_lost_nothing(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    await ann.drop()
    await t.tick()
    assert not bob.presence["ann"].connected
    await ann.reconnected()
    assert (ann.private.cards, seat_of(ann).place) == (ANN, 0)
    await t.tick()
    assert bob.presence["ann"].connected


async def test_a_bot_stands_in_and_gives_the_seat_back(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    ann.private.name = "Ann"
    await t.tick()
    await ann.leave()
    await t.advance(11)
    [bot] = [entry for entry in bob.presence.values() if is_bot(entry.player)]
    assert bot.status == {"ready": True, "for": "Ann"}
    assert_all_cards_are_there(t.room)
    cards = t.room.private(bot.player)
    assert cards is not None
    held = list(cards.cards)
    back = await t.connect("ann")
    assert (back.private.cards, back.presence["ann"].name) == (held, "Ann")
    assert seat_of(back).place == 0
    assert len(t.room.bots) == 0
    assert_all_cards_are_there(t.room)


async def test_who_watches_sees_the_table_and_gets_the_next_seat(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    eve = await t.connect("eve")
    assert (eve.private.cards, eve.entities.mine(Seat)) == ([], [])
    assert (eve.state.top, counts(eve)) == ("QH", [7, 7])
    for ask in (Play(card="2H"), Draw()):
        with pytest.raises(PlayhallError, match="not your turn"):
            await eve.call(ask)
    await ann.leave()
    await t.advance(11)
    assert eve.private.cards == ANN
    assert seat_of(eve).place == 0
    assert len(t.room.bots) == 0
    again = await t.connect("ann")
    assert again.entities.mine(Seat) == []
    assert bob.private.cards == BOB
    assert_all_cards_are_there(t.room)


async def test_a_seat_that_is_added_goes_to_who_watches(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    await room_host.wait(ann.call(Resize(seats=2)))
    others = [await t.connect(f"p{number}") for number in range(1, t.room.max_players)]
    await room_host.wait(ann.call(Resize(seats=4)))  # the room is full: there is no place for a bot
    await t.tick()
    assert [len(other.entities.mine(Seat)) for other in others] == [1, 1, 1, *[0] * 12]
    assert t.errors == []


async def test_a_crash_in_mid_game_loses_nothing(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    await room_host.wait(ann.call(Play(card="2H")))
    stored = t.stored()
    await t.crash()
    await ann.reconnected()
    await bob.reconnected()
    assert (ann.private.cards, bob.private.cards) == (ANN[1:], BOB)
    assert (bob.state.top, bob.state.turn, bob.state.phase) == ("2H", 1, "playing")
    assert t.stored().all(Deck) == stored.all(Deck)
    assert_all_cards_are_there(t.room)
    assert await room_host.wait(bob.call(Play(card="9H"))) == 6


async def test_who_does_not_come_back_after_a_crash_is_replaced(room_host: RoomHost) -> None:
    t, ann, bob = await duel(room_host)
    ann.cut()
    await t.crash()
    await bob.reconnected()
    assert seat_of(bob).place == 1
    await t.advance(40)
    assert len(t.room.bots) == 1
    assert t.room.seating.people() == ["bob"]
    assert_all_cards_are_there(t.room)


async def test_a_game_goes_on_after_the_room_has_hibernated(room_host: RoomHost) -> None:
    t, ann, _ = await duel(room_host)
    await room_host.wait(ann.call(Play(card="2H")))
    await t.hibernate()
    back = await t.connect("bob")
    assert (back.private.cards, back.state.top, back.state.turn) == (BOB, "2H", 1)
    again = await t.connect("ann")
    assert (again.private.cards, seat_of(again).place) == (ANN[1:], 0)
    assert len(t.room.bots) == 0
    assert_all_cards_are_there(t.room)


# What players write themselves


async def test_a_name_is_trimmed_shown_and_kept(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann, bob = await t.connect("ann"), await t.connect("bob")
    ann.private.name = "  Ann of Green Gables, Avonlea "
    await t.tick(2)
    assert bob.presence["ann"].name == "Ann of Green Gables, Avo"
    assert ann.private.name == "Ann of Green Gables, Avo"
    ann.expect_corrected(ann.private, "name")
    await t.hibernate()
    back = await t.connect("ann")
    assert back.presence["ann"].name == back.private.name == "Ann of Green Gables, Avo"


async def test_only_a_known_order_is_kept_for_a_hand(room_host: RoomHost) -> None:
    t: GameRoom = room_host.room(Cards)
    ann = await t.connect("ann")
    ann.private.sort_by = "rank"
    await t.tick()
    assert t.room.private("ann", create=True).sort_by == "rank"
    ann.private.sort_by = "colour"  # type: ignore[assignment]
    await t.tick(2)
    assert ann.private.sort_by == "rank"
    ann.expect_corrected(ann.private, "sort_by")


# Cards are neither made nor lost

MOVES = st.one_of(
    st.builds(Play, card=st.sampled_from([*DECK, "", "H", "joker"])),
    st.builds(Draw),
    st.builds(NameSuit, suit=st.sampled_from(["C", "D", "H", "S"])),
    st.builds(Resize, seats=st.sampled_from([2, 3, 4])),
    st.just("choose"),
)
HAPPENINGS = st.one_of(
    st.tuples(st.sampled_from(["ann", "bob", "turn"]), MOVES),
    st.tuples(st.just("time"), st.integers(1, 320)),
    st.sampled_from([("leave", "bob"), ("join", "bob"), ("crash", ""), ("ready", "")]),
)


@settings(max_examples=40)
@given(happenings=st.lists(HAPPENINGS, min_size=5, max_size=60))
def test_whatever_is_played_each_card_is_in_one_place(happenings: list[tuple[str, Any]]) -> None:
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        runner.run(play_out(happenings))


async def play_out(happenings: list[tuple[str, Any]]) -> None:
    async with RoomHost() as host:
        t: GameRoom = host.room(Cards)
        players = {"ann": await t.connect("ann"), "bob": await t.connect("bob")}
        await ready(t, *players.values())
        for who, what in happenings:
            if who == "time":
                await t.tick(what)
            elif who == "leave" and what in players:
                await players.pop(what).leave()
            elif who == "join" and what not in players:
                players[what] = await t.connect(what)
            elif who == "crash":
                await t.crash()
                for player in players.values():
                    await player.reconnected()
            elif who == "ready":
                await ready(t, *players.values())
            elif isinstance(what, Call) or what == "choose":
                await ask(host, t, players, who, what)
            assert_all_cards_are_there(t.room)
        assert t.errors == []


async def ask(host: RoomHost, t: GameRoom, players: dict[str, Player], who: str, what: Any) -> None:
    """Have a player make a move, legal or not; a refusal is an answer too."""
    if who == "turn":
        who = t.room.game.seats()[t.room.state.turn].owner or ""
    if who not in players:
        return
    move: Call[Any] = choose(t.room.game.view(who)) if what == "choose" else what
    answer = players[who].call(move)
    [outcome] = await host.wait(asyncio.gather(answer, return_exceptions=True))
    assert not isinstance(outcome, PlayhallError) or outcome.code == 422
