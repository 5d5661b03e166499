"""`playhall.testing`: what a test may ask of a room, and that a room under test is a real one."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from playhall.client import PlayhallError
from playhall.room import Connection, Entity, Json, JsonOut, Message, Room, Schema, Wake, u32
from playhall.testing import Deadlock, Net, RoomHost, RoomStoppedError, StillLoop


class Board(Entity):
    n: u32 = 0


class Mine(Entity):
    n: u32 = 0


class Piece(Entity):
    at: u32
    tags: Json[list[str]] = []  # noqa: RUF012


class Secret(Entity, hidden=True):
    word: str


class Everything(Room[Board, Mine]):
    schema = Schema(state=Board, private=Mine, entities=[Piece, Secret])
    max_players = 3

    def __init__(self) -> None:
        self.ran: list[str] = []

    def on_create(self) -> None:
        self.ran.append("create")
        self.entities.add(Secret(word="xyzzy"))

    def on_wake(self, wake: Wake) -> None:
        self.ran.append(f"wake {wake.reason} {wake.elapsed:g}")

    def on_join(self, conn: Connection) -> None:
        self.ran.append(f"join {conn.player}")
        if conn.meta == "banned":
            raise PermissionError("go away")
        self.entities.add(Piece(at=0), owner=conn.player, once=True)

    def on_leave(self, conn: Connection) -> None:
        self.ran.append(f"leave {conn.player}")

    def on_message(self, conn: Connection, message: Message) -> None:
        match message:
            case "count":
                self.state.n += 1
                self.private(conn).n += 1
            case "time":
                self.send(conn, self.now())
            case "tag":
                self.entities.all(Piece)[0].tags.append("in place")
            case "fail":
                raise ValueError("a bug in a hook that stops nothing")
            case "log":
                self.log.info("odd message from %s", conn.player)
                try:
                    _ = 1 / 0
                except ZeroDivisionError:
                    self.log.exception("caught")
            case "all":
                self.broadcast({"type": "all", "from": conn.player, "list": [1]})

    def on_request(self, message: Message) -> JsonOut:
        return {"pieces": self.entities.count(Piece)}

    def on_tick(self, dt: float) -> None:
        if self.state.n == 13:
            raise RuntimeError("unlucky")


class SlowJoin(Room):
    schema = Schema()

    async def on_join(self, conn: Connection) -> None:
        await asyncio.sleep(3)
        self.send(conn, "at last")


class Slow(Room[Board]):
    schema = Schema(state=Board)

    async def on_message(self, conn: Connection, message: Message) -> None:
        self.send(conn, "started")
        await asyncio.sleep(1)
        self.state.n += 1
        self.send(conn, self.now())

    async def on_hibernate(self) -> None:
        await asyncio.sleep(5)

    async def on_wake(self, wake: Wake) -> None:
        await asyncio.sleep(2)


@pytest.mark.ledger("TEST-01")
async def test_a_host_holds_rooms_with_clients_of_their_own_under_one_clock(room_host: RoomHost) -> None:
    one, two = room_host.room(Everything), room_host.room(Everything, id="two")
    alice, bob = await one.connect("alice"), await two.connect("bob")
    alice.send("count")
    await one.tick(4)
    assert (alice.state.n, bob.state.n) == (1, 0)
    assert (one.room.tick, two.room.tick) == (4, 4)
    assert (alice.room, bob.room) == ("main", "two")


@pytest.mark.ledger("TEST-07")
async def test_the_rooms_time_is_the_tests(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    alice.send("time")
    await t.advance(2.5)
    alice.send("time")
    await t.tick()
    [first, second] = alice.messages
    assert isinstance(first, float)
    assert isinstance(second, float)
    assert second - first == pytest.approx(2.5)
    assert t.room.tick == 51


@pytest.mark.ledger("TEST-07")
async def test_timers_of_asyncio_follow_the_tests_clock_too(room_host: RoomHost) -> None:
    t = room_host.room(Slow)
    alice = await t.connect("alice")
    alice.send("go")
    await t.tick(19)
    assert (alice.state.n, alice.messages) == (0, ["started"])
    await t.tick(2)
    assert alice.state.n == 1
    assert alice.messages[-1] == pytest.approx(t.room.now() - 0.05)


@pytest.mark.ledger("TEST-05")
async def test_a_room_that_stops_fails_the_tick_that_stopped_it(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    for _ in range(13):
        alice.send("count")
    with pytest.raises(RoomStoppedError, match="unlucky"):
        await t.tick()
    assert (t.status, alice.status, alice.closed_with) == ("hibernated", "closed", 4007)
    await t.tick()
    bob = await t.connect("bob")
    for _ in range(13):
        bob.send("count")
    with pytest.raises(RoomStoppedError, match="unlucky"):
        await t.advance(1)


async def test_a_room_that_stops_while_a_client_connects_fails_the_connect(room_host: RoomHost) -> None:
    class Unlucky(Room):
        def on_tick(self, dt: float) -> None:
            raise RuntimeError("unlucky")

    t = room_host.room(Unlucky)
    with pytest.raises(RoomStoppedError, match="unlucky"):
        await t.connect("alice", net=Net(rtt=0.2))
    assert t.status == "hibernated"
    await t.connect("bob")


@pytest.mark.ledger("RECO-09")
async def test_a_stopped_room_wakes_from_what_was_before_the_tick_that_raised(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    for _ in range(12):
        alice.send("count")
    await t.tick()
    alice.send("count")
    with pytest.raises(RoomStoppedError):
        await t.tick()
    assert alice.events == ["waking", "closed"]
    back = await t.connect("alice")
    assert back.state.n == 12


async def test_errors_that_stop_nothing_are_kept_for_the_test(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    alice.send("fail")
    await t.tick()
    [error] = t.errors
    assert "a bug in a hook that stops nothing" in error
    assert "on_message" in error
    assert alice.status == "open"
    assert t.log == [
        "room.hook_failed hook='on_message' error='ValueError: a bug in a hook that stops nothing'"
    ]
    room_host.check_errors()


async def test_errors_that_nobody_looked_at_are_told_of_once(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    _ = t.errors
    alice.send("fail")
    await t.tick()
    with pytest.raises(AssertionError, match="a bug in a hook that stops nothing"):
        room_host.check_errors()
    room_host.check_errors()


async def test_what_a_listener_asserts_fails_the_test_where_it_waits(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")

    def look(board: Board, changed: frozenset[str]) -> None:
        assert board.n == 2, "the board is not at two"

    alice.entities.on_change(Board, look)
    alice.send("count")
    with pytest.raises(AssertionError, match="the board is not at two"):
        await t.tick()
    alice.send("count")
    await t.tick()


async def test_a_stop_that_nothing_has_raised_yet_is_told_of(room_host: RoomHost) -> None:
    t, other = room_host.room(Everything), room_host.room(Everything, id="other")
    alice = await t.connect("alice")
    for _ in range(13):
        alice.send("count")
    await other.tick()
    assert t.status == "hibernated"
    with pytest.raises(AssertionError, match="unlucky"):
        room_host.check_errors()
    await t.tick()


async def test_what_connect_and_tick_have_raised_is_told_of(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    with pytest.raises(PlayhallError):
        await t.connect("mallory", meta="banned")
    alice = await t.connect("alice")
    for _ in range(13):
        alice.send("count")
    with pytest.raises(RoomStoppedError, match=r"(?s)Traceback.*in on_tick.*unlucky"):
        await t.tick()
    room_host.check_errors()
    assert len(t.errors) == 2


async def test_the_log_has_the_lines_of_room_code(
    room_host: RoomHost, caplog: pytest.LogCaptureFixture
) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    alice.send("log")
    await t.tick()
    assert t.log == ["odd message from alice", "caught"]
    assert t.errors == []
    [shown] = caplog.messages  # from warnings on, as pytest has it
    assert shown.startswith("caught\n")
    assert "ZeroDivisionError" in shown


async def test_a_room_may_have_fewer_seats_than_its_class_says(room_host: RoomHost) -> None:
    t = room_host.room(Everything, max_players=1)
    await t.connect("a")
    with pytest.raises(PlayhallError) as full:
        await t.connect("b")
    assert full.value.code == 4003
    with pytest.raises(ValueError, match="max_players"):
        room_host.room(Everything, id="none", max_players=0)


async def test_connect_waits_for_an_on_join_that_waits(room_host: RoomHost) -> None:
    t = room_host.room(SlowJoin)
    alice = await t.connect("alice")
    assert room_host.now().mono == pytest.approx(3)
    assert (alice.messages, t.room.tick) == (["at last"], 60)


async def test_wait_moves_the_clock_for_anything(room_host: RoomHost) -> None:
    t = room_host.room(Slow)
    alice = await t.connect("alice")
    alice.send("go")
    assert await room_host.wait(asyncio.sleep(1.5, "slept")) == "slept"
    assert (room_host.now().mono, alice.state.n) == (1.5, 1)
    with pytest.raises(TimeoutError, match="5 s"):
        await room_host.wait(asyncio.Event().wait(), timeout=5)


class Echoing(Room):
    schema = Schema()

    def on_message(self, conn: Connection, message: Message) -> None:
        self.send(conn, message)


class Background(Room):
    """Starts a task that fails, and does not look at it again."""

    schema = Schema()

    def on_message(self, conn: Connection, message: Message) -> None:
        asyncio.get_running_loop().create_task(self.work())

    async def work(self) -> None:
        raise LookupError("in the background")


async def test_a_task_that_fails_unseen_fails_the_test(room_host: RoomHost) -> None:
    t = room_host.room(Background)
    alice = await t.connect("alice")
    alice.send("work")
    with pytest.raises(LookupError, match="in the background"):
        await t.tick()
    alice.send("work")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(LookupError, match="in the background"):
        room_host.check_errors()


class Timers(Room[Board]):
    schema = Schema(state=Board)

    def __init__(self) -> None:
        self.thread = threading.Timer(60, self.ring)
        self.thread.daemon = True

    def on_message(self, conn: Connection, message: Message) -> None:
        asyncio.get_running_loop().call_later(10, self.ring)
        if message == "thread":
            self.thread.start()

    def ring(self) -> None:
        self.state.n += 1


@pytest.mark.ledger("HOOK-23", "TEST-07")
async def test_timers_do_not_survive_hibernation_and_pythons_own_do_not_follow_the_clock(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Timers)
    alice = await t.connect("alice")
    alice.send("thread")
    started = time.monotonic()
    await t.advance(100)
    assert t.room.thread.is_alive()
    assert time.monotonic() - started < 60
    t.room.thread.cancel()
    assert t.room.state.n == 1  # asyncio's did: its clock is the test's

    alice.send("start")
    await t.tick()
    gone = t.room
    await t.hibernate()
    await t.wake()
    await t.advance(20)
    assert t.room is not gone
    assert (t.room.state.n, t.stored().state) == (1, {"n": 1})


@pytest.mark.ledger("TEST-06")
async def test_connect_raises_the_code_the_room_refuses_with(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    with pytest.raises(PlayhallError) as refused:
        await t.connect("mallory", meta="banned")
    assert refused.value.code == 4006
    for player in ("a", "b", "c"):
        await t.connect(player)
    with pytest.raises(PlayhallError) as full:
        await t.connect("d")
    assert full.value.code == 4003


@pytest.mark.ledger("TEST-06")
async def test_reconnected_is_done_at_once_when_the_client_is_back(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    await t.crash()
    at = room_host.now()
    await alice.reconnected()
    assert room_host.now() == at
    await alice.drop()
    assert (alice.status, alice.closed_with) == ("reconnecting", 1006)
    await alice.reconnected()
    assert (alice.status, alice.closed_with) == ("open", None)
    assert room_host.now().mono - at.mono == pytest.approx(0.25)
    await t.advance(1)
    await alice.reconnected()
    assert alice.events[-4:] == ["waking", "restored", "disconnected", "restored"]


@pytest.mark.ledger("RECO-07")
async def test_reconnected_fails_for_a_client_that_does_not_come_back(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    await t.connect("alice")
    assert alice.closed_with == 4012
    with pytest.raises(AssertionError, match="does not come back"):
        await alice.reconnected()


@pytest.mark.ledger("RECO-08")
async def test_a_crash_wakes_the_room_and_joins_its_clients_without_anyone_having_left(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Everything)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    before = alice.generation
    alice.send("count")
    await t.tick()
    await t.crash()
    assert t.room.ran == ["wake crash 0", "join alice", "join bob"]
    assert bob.events == ["disconnected", "restored"]
    assert (alice.state.n, bob.state.n, alice.private.n) == (1, 1, 1)
    assert alice.generation != before
    assert sorted(piece.owner or "" for piece in bob.entities.all(Piece)) == ["alice", "bob"]


async def test_a_room_that_crashed_with_nobody_in_it_waits_for_the_next(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    await alice.leave()
    await t.crash()
    assert t.status == "hibernated"
    await t.advance(7)
    await t.wake()
    assert t.room.ran == ["wake crash 7"]


@pytest.mark.ledger("RECO-10")
async def test_hibernate_ends_connections_for_good_and_keeps_the_state(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    alice.send("count")
    await t.tick()
    room = t.room
    await t.hibernate()
    assert room.ran == ["create", "join alice", "leave alice"]
    assert (t.status, alice.status, alice.closed_with) == ("hibernated", "closed", 4011)
    await t.advance(600)
    assert (t.status, alice.status) == ("hibernated", "closed")
    with pytest.raises(RuntimeError, match="not running"):
        _ = t.room
    back = await t.connect("alice")
    assert (back.state.n, back.private.n) == (1, 1)
    assert t.room.ran == ["wake connect 600", "join alice"]


async def test_hibernate_and_wake_take_the_time_their_hooks_need(room_host: RoomHost) -> None:
    t = room_host.room(Slow)
    await t.connect("alice")
    at = room_host.now().mono
    await t.hibernate()
    assert room_host.now().mono - at == pytest.approx(5)
    await t.wake()
    assert room_host.now().mono - at == pytest.approx(7)
    assert t.status == "active"


async def test_a_room_hibernates_by_itself_thirty_seconds_after_the_last_has_left(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    await alice.leave()
    await t.advance(29.9)
    assert t.status == "active"
    await t.advance(0.2)
    assert t.status == "hibernated"
    await t.tick(3)


@pytest.mark.ledger("TEST-20")
async def test_stored_shows_what_clients_never_see(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    with pytest.raises(LookupError):
        t.stored()
    alice = await t.connect("alice")
    alice.send("count")
    await t.tick()
    assert alice.entities.all(Secret) == []
    assert alice.entities.count(Entity) == 1
    stored = t.stored()
    [secret] = stored.all(Secret)
    assert (secret.fields, secret.owner) == ({"word": "xyzzy"}, None)
    assert (stored.state, stored.private) == ({"n": 1}, {"alice": {"n": 1}})
    [piece] = stored.all(Piece)
    assert (piece.owner, piece.fields) == ("alice", {"at": 0, "tags": []})


async def test_expectations(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    bob.send("all")
    await t.tick()
    alice.expect_message({"type": "all", "from": "bob"})
    alice.expect_message({"list": [1]})
    with pytest.raises(AssertionError):
        alice.expect_message({"type": "all", "from": "alice"})
    with pytest.raises(AssertionError):
        alice.expect_message("all")
    [secret], [piece] = t.room.entities.all(Secret), t.room.entities.all(Piece, owner="bob")
    alice.expect_sees(piece)
    alice.expect_not_sees(secret)
    with pytest.raises(AssertionError):
        alice.expect_sees(secret)
    with pytest.raises(AssertionError):
        alice.expect_not_sees(piece)


async def test_last_update_tells_what_changed(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    t.room.entities.all(Piece)[0].at = 9
    await t.tick()
    assert alice.last_update is not None
    assert alice.last_update.changes.changed == [(alice.entities.all(Piece)[0], frozenset({"at"}))]
    assert alice.last_update.tick == t.room.tick


async def test_json_that_was_changed_in_place_is_reported(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice = await t.connect("alice")
    alice.send("tag")
    with pytest.raises(AssertionError, match=r"piece \d+ of alice: tags was changed in place"):
        await t.tick()


@pytest.mark.ledger("PRES-05")
async def test_others_see_a_drop_as_a_drop(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    seen: list[tuple[str, bool]] = []
    bob.presence.on_change(lambda entry, _: seen.append((entry.player, entry.connected)))
    await alice.drop()
    await t.tick()
    await alice.reconnected()
    await t.tick()
    assert seen == [("alice", False), ("alice", True)]


@pytest.mark.ledger("RECO-03")
async def test_a_client_that_was_dropped_resumes(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    kept = {piece.owner: piece for piece in alice.entities.all(Piece)}
    generation = alice.generation
    await alice.drop()
    t.room.entities.all(Piece, owner="bob")[0].at = 4
    carol = await t.connect("carol")
    await alice.reconnected()
    assert alice.generation == generation
    assert {piece.owner: piece.at for piece in alice.entities.all(Piece)} == {
        "alice": 0,
        "bob": 4,
        "carol": 0,
    }
    assert all(alice.entities.first(Piece, owner=owner) is piece for owner, piece in kept.items())
    assert len(bob.entities.all(Piece)) == len(carol.entities.all(Piece)) == 3


@pytest.mark.ledger("TEST-03")
async def test_what_a_room_under_test_offers(room_host: RoomHost) -> None:
    t = room_host.room(Everything)
    assert (t.host, t.status) == (room_host, "hibernated")
    with pytest.raises(RuntimeError, match="wake it"):
        _ = t.room
    await t.wake()
    assert (t.status, isinstance(t.room, Everything)) == ("active", True)
    first = t.room

    await t.connect("alice", meta={"name": "Alice"})
    conn = t.room.connections["alice"]
    assert (conn.player, conn.meta) == ("alice", {"name": "Alice"})
    assert await t.request("how many") == {"pieces": 1}

    t.room.state.n = 4
    await t.tick()
    assert t.stored().state == {"n": 4}
    await t.hibernate()
    assert t.status == "hibernated"
    assert await t.request("how many") == {"pieces": 1}
    assert (t.status, t.room is first, t.room.state.n) == ("active", False, 4)


async def test_a_room_is_made_from_its_class(room_host: RoomHost) -> None:
    with pytest.raises(TypeError, match="from its class"):
        room_host.room(Everything())


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e12])
async def test_the_clock_moves_by_a_time_alone(room_host: RoomHost, seconds: float) -> None:
    t = room_host.room(Everything)
    await t.connect("alice")
    with pytest.raises(ValueError, match="the clock moves by"):
        await t.advance(seconds)
    with pytest.raises(ValueError, match="the clock moves by"):
        await room_host.advance(seconds)
    with pytest.raises(ValueError, match="not taken back: -1"):
        await t.tick(-1)
    await t.tick(0)
    await t.advance(0)
    assert t.room.tick == 0


@pytest.mark.parametrize("player", ["", "x" * 129, "new\nline", None, 7])
async def test_a_player_of_a_test_is_one_that_could_be(room_host: RoomHost, player: Any) -> None:
    t = room_host.room(Everything)
    with pytest.raises((ValueError, TypeError), match="a player"):
        await t.connect(player)
    assert t.errors == []


def test_two_who_answer_each_other_for_ever_fail_the_test() -> None:
    loop = StillLoop()

    async def test() -> None:
        alice = await RoomHost(loop).room(Echoing).connect("alice")
        stop = alice.on("message", lambda message: alice.send(message))
        alice.send("again")
        try:
            await RoomHost(loop).settle()  # here
        finally:
            stop()

    with pytest.raises(Deadlock, match="goes on for ever while the clock stands still"):
        loop.run(test())
    loop.close()


async def test_two_rooms_cannot_have_one_id(room_host: RoomHost) -> None:
    room_host.room(Everything)
    with pytest.raises(ValueError, match="main"):
        room_host.room(Everything)


@pytest.mark.asyncio
async def test_on_another_plugins_loop_it_says_what_to_do(room_host: RoomHost) -> None:
    with pytest.raises(RuntimeError, match="mark off"):
        await room_host.room(Everything).connect("alice")
