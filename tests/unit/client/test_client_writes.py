"""What a client writes: what it may, how it shows, when it is sent, and what becomes of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from playhall.client import Entity, FieldError, Json, PlayhallError, Schema, f32, outputs, u8, writable
from playhall.client.entities import ClientEntities
from playhall.client.presence import ClientPresence
from playhall.engine import frames
from playhall.engine.schema import PresenceRow
from tests.support.scripted_server import Server

TICK = 1 / 20


class Cursor(Entity):
    x: writable[u8] = 0
    y: writable[u8] = 0
    color: u8 = 0
    pixels: writable[bytes] = b""
    tags: writable[Json[Any]] = None
    angle: writable[f32] = 0


class Board(Entity):
    moves: u8 = 0


class Mine(Entity):
    volume: writable[u8] = 5
    coins: u8 = 0


SCHEMA = Schema(state=Board, private=Mine, entities=[Cursor, Mine])
MINE, HIS, ROW = 2, 3, 2**31


class Game:
    """A connected client that owns one cursor, and all that its callbacks heard."""

    def __init__(self) -> None:
        self.server = Server(SCHEMA)
        self.core = self.server.core
        self.entities = ClientEntities(self.core)
        self.presence = ClientPresence(self.core)
        self.heard: list[Any] = []
        self.woken = 0
        self.core.replica.writes.on_unsent = self.wake
        server = self.server
        server.start()
        server.opened()
        server.welcome()
        self.whole_state()
        server.frames.clear()
        self.entities.on_change(Entity, lambda e, names: self.heard.append(("change", e.id, *sorted(names))))
        self.entities.on_correct(
            Entity, lambda e, names: self.heard.append(("correct", e.id, *sorted(names)))
        )
        self.entities.on_owner(Entity, lambda e: self.heard.append(("owner", e.id, e.owner)))
        self.presence.on_change(lambda entry, names: self.heard.append((entry.player, *sorted(names))))

    def whole_state(self) -> None:
        server = self.server
        server.enter(0, Board())
        server.enter(1, Mine(), number=3, owned=True)
        server.enter(MINE, Cursor(), owned=True)
        server.enter(HIS, Cursor())
        server.enter(ROW, PresenceRow(player="alice", name="", connected=True))
        server.enter(ROW + 1, PresenceRow(player="bob", name="", connected=True))
        server.own(MINE, "alice")
        server.own(HIS, "bob")
        server.update(0, 0, full=True)
        self.dispatch()

    def wake(self) -> None:
        self.woken += 1

    def dispatch(self) -> None:
        for event in self.server.happened():
            if isinstance(event, outputs.Updated):
                tell = self.presence.apply(event.changes)
                self.entities.tell(event.changes)
                tell()

    def update(self) -> list[Any]:
        self.heard.clear()
        self.server.update()
        self.dispatch()
        return self.heard

    @property
    def mine(self) -> Cursor:
        found = self.entities.get(Cursor, MINE)
        assert found is not None
        return found

    @property
    def his(self) -> Cursor:
        found = self.entities.get(Cursor, HIS)
        assert found is not None
        return found

    @property
    def private(self) -> Mine:
        found = self.core.replica.get(1)
        assert isinstance(found, Mine)
        return found

    def sent(self) -> list[tuple[int, dict[int, dict[str, Any]]]]:
        """The write frames since the last time: `seen`, and by id the fields."""
        found = []
        for frame in self.server.taken(frames.Write):
            entries = {}
            for entry in frame.entries:
                specs = entry.spec.fields
                entries[entry.id] = {specs[i].name: specs[i].type.load(v) for i, v in entry.values.items()}
                assert entry.number == (4 if entry.id >= ROW else 3 if entry.id == 1 else 0)
            found.append((frame.seen, entries))
        return found


@pytest.fixture
def game() -> Game:
    return Game()


@pytest.mark.ledger("OWN-11", "CENT-04")
def test_an_allowed_write_shows_at_once_and_any_other_is_a_type_error_that_says_why(game: Game) -> None:
    game.mine.x = 5
    game.private.volume = 9
    assert (game.mine.x, game.private.volume, game.heard) == (5, 9, [])
    state = game.core.replica.get(0)
    for entity, field, why in (
        (game.mine, "color", "cursor 2: color .* not writable"),
        (game.his, "x", "cursor 3: x .* 'bob''s"),
        (game.private, "coins", "mine 1: coins .* not writable"),
        (state, "moves", "board 0: moves .* shared state"),
    ):
        with pytest.raises(TypeError, match=why):
            setattr(entity, field, 1)
    with pytest.raises(TypeError, match="cursor 3: pixels"):
        game.his.patch("pixels", 0, b"x")
    game.server.own(MINE, None)
    gone = game.his
    game.server.leave(HIS)
    game.update()
    with pytest.raises(TypeError, match="the room's"):
        game.mine.x = 6
    with pytest.raises(TypeError, match=r"cursor 3: x .* left"):
        gone.x = 6
    assert (game.mine.x, gone.x) == (5, 0)


def test_a_value_that_does_not_fit_is_refused_at_the_line(game: Game) -> None:
    with pytest.raises(FieldError, match="cursor 2 of alice: x"):
        game.mine.x = 256
    with pytest.raises(TypeError, match="cursor 2 of alice: x"):
        game.mine.x = "far"  # type: ignore[assignment]
    game.server.wait(1.0)
    assert (game.mine.x, game.sent()) == (0, [])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_float_that_is_no_number_is_refused_at_the_line(game: Game, value: float) -> None:
    """A room would take it for a client that breaks the protocol, and close it for good."""
    with pytest.raises(FieldError, match="cursor 2: angle: a client cannot write"):
        game.mine.angle = value
    assert game.mine.angle == 0
    assert game.woken == 0


@pytest.mark.ledger("OWN-12")
def test_writes_of_a_turn_are_one_frame_and_frames_are_a_tick_apart_with_the_last_value_of_each_field(
    game: Game,
) -> None:
    game.mine.x, game.mine.y, game.mine.x = 1, 2, 3
    game.private.volume = 7
    game.mine.tags = {"a": 1}
    assert game.woken == 1
    game.server.drain()
    assert game.server.frames == []
    game.server.wait(0)
    assert game.sent() == [(1, {MINE: {"x": 3, "y": 2, "tags": {"a": 1}}, 1: {"volume": 7}})]
    started = game.server.now
    for value in range(10, 20):
        game.mine.x = value
        game.server.wait(TICK / 4)
        if game.server.now < started + TICK * 0.99:
            assert game.server.frames == []
    assert [entries[MINE]["x"] for _, entries in game.sent()] == [13, 17]
    game.server.wait(1.0)
    assert [entries[MINE]["x"] for _, entries in game.sent()] == [19]
    assert game.core.stats.sent["write"] > 0
    game.mine.x = 19
    game.server.wait(1.0)
    assert game.sent() == []


def test_a_patch_shows_and_sends_the_field(game: Game) -> None:
    game.mine.pixels = b"abc"
    game.mine.patch("pixels", 5, b"z")
    game.server.wait(0)
    assert game.sent() == [(1, {MINE: {"pixels": b"abc\0\0z"}})]


def test_what_does_not_fit_a_frame_waits_a_tick(game: Game) -> None:
    for id in range(10, 14):
        game.server.enter(id, Cursor())
        game.server.own(id, "alice")
    game.update()
    game.server.frames.clear()
    for cursor in game.entities.mine(Cursor):
        cursor.pixels = bytes(30_000)
    game.server.wait(0)
    assert [list(entries) for _, entries in game.sent()] == [[MINE, 10]]
    game.server.wait(TICK)
    assert [list(entries) for _, entries in game.sent()] == [[11, 12]]
    game.mine.x = 1
    game.server.wait(TICK)
    assert [list(entries) for _, entries in game.sent()] == [[13, MINE]]


def test_while_the_transport_is_clogged_newer_values_replace_what_is_unsent(game: Game) -> None:
    game.mine.x = 1
    game.core.timer(game.server.now, clogged=True)
    game.server.drain()
    game.mine.x = 2
    game.core.timer(game.server.now + TICK)
    game.server.drain()
    assert game.sent() == [(1, {MINE: {"x": 2}})]


@pytest.mark.ledger("OWN-14")
def test_the_owner_keeps_its_own_value_and_ignores_ordinary_changes(game: Game) -> None:
    game.mine.x, game.mine.pixels = 5, b"abc"
    game.private.volume = 6
    game.server.change(MINE, Cursor(x=9, color=9), "x", "color")
    game.server.change(1, Mine(volume=9, coins=9), "volume", "coins")
    game.server.change(HIS, Cursor(x=9), "x")
    game.server.patch(MINE, 3, 0, b"z")
    assert game.update() == [("change", MINE, "color"), ("change", 1, "coins"), ("change", HIS, "x")]
    assert (game.mine.x, game.mine.pixels, game.private.volume, game.his.x) == (5, b"abc", 6, 9)


@pytest.mark.ledger("OWN-16")
def test_a_correction_overwrites_drops_unsent_writes_to_its_fields_and_is_told_after_the_change(
    game: Game,
) -> None:
    game.mine.x, game.mine.y = 5, 6
    game.server.change(MINE, Cursor(x=4), "x", correct=True)
    assert game.update() == [("change", MINE, "x"), ("correct", MINE, "x")]
    assert (game.mine.x, game.mine.y) == (4, 6)
    game.server.wait(1.0)
    assert game.sent() == [(2, {MINE: {"y": 6}})]


@pytest.mark.ledger("OWN-20")
def test_an_entity_handed_over_is_writable_once_that_is_applied_and_no_more_once_it_is_lost(
    game: Game,
) -> None:
    written: list[int] = []

    def write(cursor: Cursor) -> None:
        if cursor.owner == "alice":
            cursor.x = 7
            written.append(cursor.id)

    game.entities.on_owner(Cursor, write)
    with pytest.raises(TypeError):
        game.his.x = 7
    game.server.own(HIS, "alice")
    game.server.change(HIS, Cursor(x=3), "x", "y", correct=True)
    assert game.update() == [("change", HIS, "x"), ("owner", HIS, "alice")]
    assert (written, game.his.x) == ([HIS], 7)
    game.mine.x = 8
    game.mine.pixels = b"x"
    game.server.own(MINE, "bob")
    game.server.change(MINE, Cursor(), "x", "y", correct=True)
    assert game.update() == [("change", MINE, "x"), ("correct", MINE, "x"), ("owner", MINE, "bob")]
    game.server.wait(1.0)
    assert game.sent() == [(3, {HIS: {"x": 7}})]


def test_what_takes_the_place_of_an_entity_is_not_written_in_its_stead(game: Game) -> None:
    game.mine.x = 8
    game.server.leave(MINE)
    game.server.enter(MINE, Cursor(x=1), owned=True)
    game.server.own(MINE, "alice")
    game.update()
    game.server.wait(1.0)
    assert (game.mine.x, game.sent()) == (1, [])


def test_a_full_state_drops_what_is_unsent(game: Game) -> None:
    game.mine.x, game.private.volume = 8, 9
    game.server.enter(0, Board())
    game.server.enter(1, Mine(), number=3, owned=True)
    game.server.update(full=True)
    game.server.wait(1.0)
    assert (game.entities.get(MINE), game.private.volume, game.sent()) == (None, 5, [])


@pytest.mark.ledger("OWN-18")
@pytest.mark.parametrize("how", ["drop", "reset", "generation"])
def test_what_is_unsent_is_dropped_with_the_room_and_the_state_brings_the_rooms_values(
    game: Game, how: str
) -> None:
    game.mine.x = 8
    game.presence.set_status("lost")
    if how == "drop":
        game.server.closed(1006)
        game.server.wait(0.25)
        game.server.opened()
    else:
        game.server.say(frames.Reset(1, 4008))
    game.mine.y = 9  # while it is away
    game.server.frames.clear()
    resumed = how != "generation"
    if resumed:
        game.server.welcome(resumed=True)
        game.server.change(MINE, Cursor(), "x", "y", "pixels", "tags", correct=True)
        game.server.change(ROW, PresenceRow(player="alice", name="", connected=True), "status", correct=True)
        game.update()
    else:
        game.server.generation += 1
        game.server.welcome()
        game.whole_state()
    assert (game.mine.x, game.mine.y, game.presence["alice"].status) == (0, 0, None)
    game.server.wait(1.0)
    assert game.sent() == []
    game.mine.x = 10
    game.server.wait(0)
    assert [entries for _, entries in game.sent()] == [{MINE: {"x": 10}}]


def test_a_write_to_a_sleeping_room_is_sent_and_lost_as_it_wakes(game: Game) -> None:
    game.server.say(frames.Asleep(game.server.generation, 1))
    game.mine.x = 8
    game.server.wait(0)
    assert len(game.sent()) == 1
    game.mine.x = 9
    game.server.generation += 1
    game.server.welcome()
    game.server.wait(1.0)
    assert game.sent() == []
    game.whole_state()
    game.server.wait(1.0)
    assert (game.mine.x, game.sent()) == (0, [])


def test_who_leaves_sends_what_is_unsent_first_and_then_writes_no_more(game: Game) -> None:
    game.mine.x = 8
    game.core.leave()
    game.server.drain()
    kinds = [type(frame) for frame in game.server.frames]
    assert kinds == [frames.Write, frames.Leave]
    with pytest.raises(TypeError, match=r"cursor 2: x .* closed"):
        game.mine.x = 9
    assert game.core.next_timer() is None


def test_frames_stay_within_what_a_router_takes(game: Game) -> None:
    start = game.server.now
    while game.server.now < start + 5.0:
        for cursor in game.entities.mine(Cursor):
            cursor.x = (cursor.x + 1) % 256
        game.presence.set_status(game.mine.x)
        game.server.wait(0.001)
    assert 98 <= len(game.server.taken(frames.Write)) <= 101


class TestStatus:
    @pytest.mark.ledger("PRES-07")
    def test_it_shows_at_once_is_sent_with_the_other_writes_and_has_a_limit(self, game: Game) -> None:
        game.presence.set_status({"ready": True})
        assert game.presence["alice"].status == {"ready": True}
        game.presence.set_status("x" * 1_022)
        game.mine.x = 3
        with pytest.raises(ValueError, match="1024"):
            game.presence.set_status("x" * 1_023)
        with pytest.raises((ValueError, TypeError)):
            game.presence.set_status({1, 2})  # type: ignore[arg-type]
        game.server.wait(0)
        assert game.sent() == [(1, {ROW: {"status": "x" * 1_022}, MINE: {"x": 3}})]
        game.presence.set_status(None)
        game.server.closed(1006)
        assert game.presence["alice"].status is None
        game.server.wait(0.25)
        game.server.opened()
        game.server.frames.clear()
        game.server.welcome(resumed=True)
        row = PresenceRow(player="alice", name="", connected=True, status=1)
        game.server.change(ROW, row, "status", correct=True)
        game.update()
        game.server.wait(1.0)
        assert (game.presence["alice"].status, game.sent()) == (1, [])

    def test_what_the_room_took_before_does_not_set_it_back_but_a_correction_does(self, game: Game) -> None:
        game.presence.set_status(2)
        row = PresenceRow(player="alice", name="Al", connected=True, status=1)
        game.server.change(ROW, row, "status", "name")
        assert game.update() == [("alice", "name")]
        assert game.presence["alice"].status == 2
        game.server.change(ROW + 1, PresenceRow(player="bob", name="", connected=True, status=1), "status")
        assert game.update() == [("bob", "status")]
        game.server.change(ROW, row, "status", correct=True)
        assert game.update() == [("alice", "status")]
        game.server.wait(1.0)
        assert (game.presence["alice"].status, game.sent()) == (1, [])

    def test_there_is_none_to_set_once_the_client_is_closed(self, game: Game) -> None:
        game.core.leave()
        with pytest.raises(PlayhallError, match="closed"):
            game.presence.set_status("late")
        assert game.presence["alice"].status is None

    def test_there_is_none_to_set_before_the_client_is_in_the_room(self) -> None:
        server = Server(SCHEMA)
        with pytest.raises(PlayhallError):
            ClientPresence(server.core).set_status("early")
