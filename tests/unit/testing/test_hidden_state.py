"""Hidden entities: ordinary room state that no client is sent, unless room code copies it."""

from __future__ import annotations

import pytest

from playhall.client import PlayhallError
from playhall.room import Call, CallRejected, Connection, Entity, Message, Room, Schema
from playhall.testing import RoomHost


class Card(Entity):
    face: str = ""


class Deck(Entity, hidden=True):
    cards: str


class Board(Entity):
    note: str = ""


class Draw(Call[str]):
    pass


class Cheat(Call[None]):
    pass


class Table(Room[Board]):
    schema = Schema(state=Board, entities=[Card, Deck], calls=[Draw, Cheat])

    def on_create(self) -> None:
        self.entities.add(Deck(cards="ABCDEF"))

    def on_message(self, conn: Connection, message: Message) -> None:
        deck = self.entities.all(Deck)[0]
        match message:
            case "deal":
                self.entities.add(Card())
                self.entities.add(Deck(cards="xyz"))
                self.entities.add(Card())
            case "leak":
                self.state.note = deck.cards
                self.presence.set(conn.player, status=deck.cards)
                self.broadcast(deck.cards)
            case "burn":
                deck.cards = deck.cards[1:]
            case _:
                self.entities.delete(deck)

    @Draw.handler
    def draw(self, conn: Connection, ask: Draw) -> str:
        deck = self.entities.all(Deck)[0]
        card, deck.cards = deck.cards[0], deck.cards[1:]
        return card

    @Cheat.handler
    def cheat(self, conn: Connection, ask: Cheat) -> None:
        raise CallRejected(f"the next is {self.entities.all(Deck)[0].cards[0]}")


@pytest.mark.ledger("STATE-11")
async def test_it_is_saved_and_restored_and_hooks_and_calls_read_and_write_it(room_host: RoomHost) -> None:
    t = room_host.room(Table)
    alice = await t.connect("alice")
    drawn = alice.call(Draw())
    await t.tick()
    assert await drawn == "A"
    alice.send("burn")
    await t.tick()
    await t.crash()
    await alice.reconnected()
    assert [deck.cards for deck in t.room.entities.all(Deck)] == ["CDEF"]
    drawn = alice.call(Draw())
    await t.tick()
    assert await drawn == "C"
    await t.hibernate()
    await t.wake()
    assert [deck.cards for deck in t.room.entities.all(Deck)] == ["DEF"]
    alice = await t.connect("alice")
    alice.send("delete")
    await t.tick()
    assert (t.room.entities.all(Deck), t.stored().all(Deck)) == ([], [])
    assert alice.entities.all(Deck) == []


@pytest.mark.ledger("STATE-15")
async def test_what_room_code_copies_is_shown_and_ids_have_gaps(room_host: RoomHost) -> None:
    t = room_host.room(Table)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.send("deal")
    await t.tick()
    ids = sorted(card.id for card in bob.entities.all(Card))
    assert ids[1] - ids[0] == 2  # so the room has made something that is not shown
    assert (bob.state.note, bob.messages, bob.presence["alice"].status) == ("", [], None)
    with pytest.raises(PlayhallError, match="the next is A"):
        await room_host.wait(alice.call(Cheat()))
    alice.send("leak")
    await t.tick()
    assert (bob.state.note, bob.messages, bob.presence["alice"].status) == ("ABCDEF", ["ABCDEF"], "ABCDEF")
    assert await room_host.wait(bob.call(Draw())) == "A"
