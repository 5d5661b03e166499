"""RoomCore: hooks and their order, joins and leaves, messages, errors, credit, hibernation and wakes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from playhall.engine.frames import ReplyError, Resume, Unreliable, encode_client
from playhall.engine.hooks import MAX_AWAITS_OF_LINK
from playhall.engine.links import MAX_WAITING_BYTES
from playhall.engine.outputs import (
    AwaitOut,
    BaseOut,
    CancelOut,
    FramesOut,
    HibernateOut,
    JoinedOut,
    JoinRequest,
    LogOut,
    ReadyOut,
    RecordOut,
    Status,
    WakeInfo,
)
from playhall.engine.updates import Owner
from playhall.room import CloseCode, Connection, Entity, Room, Schema, Wake, u8, u32
from tests.support.rooms import Driver, Gate, TestClient


class Dot(Entity):
    x: u32 = 0


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0


SCHEMA = Schema(state=Board, private=Mine, entities=[Dot])


class Game(Room[Board, Mine]):
    """Notes its hooks, and does in each what the test put into `acts`."""

    schema = SCHEMA

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.acts: dict[str, Any] = {}

    def note(self, hook: str, *args: Any) -> Any:
        self.calls.append((hook, *args))
        act = self.acts.get(hook)
        if isinstance(act, BaseException):
            raise act
        if isinstance(act, Gate):
            return act
        return act(*args) if act is not None else None

    def on_create(self) -> Any:
        return self.note("create")

    def on_wake(self, wake: Wake) -> Any:
        return self.note("wake", wake)

    def on_join(self, conn: Connection) -> Any:
        return self.note("join", conn)

    def on_message(self, conn: Connection, message: Any) -> Any:
        return self.note("message", conn, message)

    def on_tick(self, dt: float) -> Any:
        return self.note("tick", dt)

    def on_leave(self, conn: Connection) -> Any:
        return self.note("leave", conn)

    def on_player_leave(self, player: str) -> Any:
        return self.note("player_leave", player)

    def on_hibernate(self) -> Any:
        return self.note("hibernate")

    def names(self) -> list[str]:
        return [call[0] for call in self.calls if call[0] != "tick"]


@pytest.fixture
def driver() -> Driver:
    return Driver(Game)


def code_of(client: TestClient) -> int | None:
    return None if client.closed is None else client.closed.code


# Start


@pytest.mark.ledger("HOOK-01")
def test_a_new_room_runs_on_create_and_is_saved_at_once(driver: Driver) -> None:
    assert driver.room.names() == ["create"]
    assert [type(output) for output in driver.outputs] == [BaseOut, ReadyOut]
    assert driver.core.status is Status.ACTIVE
    woken = driver.wake()
    assert woken.room.names() == ["wake"]


@pytest.mark.ledger("HOOK-02", "RST-10")
def test_a_wake_runs_on_wake_with_how_long_it_was(driver: Driver) -> None:
    driver.join("ann")
    driver.tick()
    woken = driver.wake(away=12.5)
    assert woken.room.calls == [("wake", Wake(12.5, driver.now.wall, "crash"))]
    assert woken.room.now() == driver.now.wall + 12.5
    early = Driver(Game, stored=driver.stored, wake=WakeInfo("crash", -3.0, 0.0))
    assert early.room.calls[0][1].elapsed == 0.0


@pytest.mark.parametrize("hook", ["on_create", "on_wake"])
@pytest.mark.ledger("HOOK-01", "HOOK-02", "HOOK-13")
def test_async_start_hooks_are_awaited_and_have_60_s(driver: Driver, hook: str) -> None:
    gate = Gate()
    slow = type("Slow", (Game,), {hook: lambda self, *args: gate})
    stored = driver.stored if hook == "on_wake" else None
    started = Driver(slow, stored=stored)
    assert not started.ready
    assert started.of(AwaitOut)[0].timeout_s == 60.0
    gate.open = True
    started.go_on_all()
    assert started.ready
    late = Driver(slow, stored=stored)
    gate.open = False
    late.advance(59.9)
    assert late.stopped is None
    late.advance(0.2)
    assert late.stopped is not None
    assert (late.stopped.code, late.core.status) == (CloseCode.ROOM_STOPPED, Status.STOPPED)
    assert "took over 60 s" in late.stopped.error
    assert late.of(CancelOut)


@pytest.mark.ledger("HOOK-01", "HOOK-02")
@pytest.mark.parametrize("hook", ["__new__", "__init__", "on_create", "on_wake"])
def test_raising_at_the_start_stops_the_room(driver: Driver, hook: str) -> None:
    def fail(self: Any, *args: Any) -> None:
        raise LookupError("no map")

    broken = type("Broken", (Game,), {hook: fail})
    started = Driver(broken, stored=driver.stored if hook == "on_wake" else None)
    assert started.stopped is not None
    assert "LookupError: no map" in started.stopped.error
    assert started.errors[0].traceback is not None
    assert not started.ready
    assert started.of(BaseOut) == []


@pytest.mark.ledger("MIG-03")
def test_a_change_of_shape_stops_the_start_and_names_the_field(driver: Driver) -> None:
    class Board(Entity):
        moves: u8 = 0

    class Other(Room[Board, Mine]):
        schema = Schema(state=Board, private=Mine, entities=[Dot])

    started = Driver(Other, stored=driver.stored)
    assert started.stopped is not None
    assert "board.moves was saved as u32 and is u8 now" in started.stopped.error
    assert started.of(BaseOut) == []


# Ticks and flushes


def test_a_tick_counts_then_runs_on_tick_then_sends(driver: Driver) -> None:
    seen: list[int] = []

    def act(dt: float) -> None:
        seen.append(driver.room.tick)
        driver.room.state.moves += 1

    ann = driver.join("ann")
    driver.room.acts["tick"] = act
    driver.tick(3)
    assert seen == [1, 2, 3]
    assert driver.room.calls[-1] == ("tick", 1 / 20)
    assert (ann.replica.tick, ann.replica.fields(0)) == (3, {"moves": 3})


@pytest.mark.ledger("CODE-08", "RST-07", "RECO-09")
def test_raising_in_on_tick_stops_the_room_and_keeps_all_before(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.room.state.moves = 7
    driver.tick()

    def fail(dt: float) -> None:
        driver.room.state.moves = 8
        raise ZeroDivisionError

    driver.room.acts["tick"] = fail
    driver.clear()
    driver.tick()
    assert code_of(ann) == 4007
    assert driver.stopped is not None
    assert driver.errors[0].fields["hook"] == "on_tick"
    assert "ZeroDivisionError" in (driver.errors[0].traceback or "")
    assert driver.of(RecordOut) == []
    assert "leave" not in driver.room.names()
    woken = driver.wake()
    assert (woken.room.state.moves, woken.room.tick) == (7, 2)


def test_on_tick_that_returns_something_to_await_stops_the_room(driver: Driver) -> None:
    driver.room.acts["tick"] = Gate()
    driver.tick()
    assert driver.stopped is not None
    assert "on_tick must return nothing" in driver.stopped.error


def test_messages_that_find_too_many_hooks_waiting_are_dropped_with_one_warning(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    gate = driver.room.acts["message"] = Gate()
    for _ in range(3 * MAX_AWAITS_OF_LINK):
        driver.send(ann, "slow")
    driver.send(bob, "slow")
    heard = [call[1].player for call in driver.room.calls if call[0] == "message"]
    assert heard == ["ann"] * MAX_AWAITS_OF_LINK + ["bob"]
    [warning] = [log for log in driver.of(LogOut) if log.event == "room.message_dropped"]
    assert warning.fields["player"] == "ann"
    gate.open = True
    driver.go_on_all()
    driver.send(ann, "again")
    assert len([name for name in driver.room.names() if name == "message"]) == MAX_AWAITS_OF_LINK + 2


@pytest.mark.ledger("ENT-17", "RST-04")
def test_what_handlers_write_rides_on_the_next_tick(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.room.acts["message"] = lambda conn, message: setattr(driver.room.state, "moves", message)
    driver.clear()
    driver.send(ann, 5)
    assert driver.outputs == []
    driver.tick()
    assert [type(output) for output in driver.outputs] == [RecordOut, FramesOut]
    assert ann.replica.fields(0) == {"moves": 5}


@pytest.mark.ledger("ENT-18", "ENT-17", "RST-04")
def test_a_join_sends_its_state_at_once_and_everyone_what_has_changed(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.room.state.moves = 3
    driver.clear()
    bob = driver.join("bob")
    assert driver.core.tick_number == 0
    for client in (ann, bob):
        assert client.replica.fields(0) == {"moves": 3}
        driver.assert_in_sync(client)
    assert len(driver.of(RecordOut)) == 1


@pytest.mark.ledger("ENT-19")
def test_messages_come_before_the_update_with_the_same_handlers_writes(driver: Driver) -> None:
    ann = driver.join("ann")

    def act(conn: Connection, message: Any) -> None:
        driver.room.state.moves += 1
        driver.room.send(conn, "sent after the write")

    driver.room.acts["message"] = act
    driver.send(ann, 1)
    driver.tick()
    assert ann.log == ["welcome", "update", "message", "update"]


def test_an_update_tells_owners_in_the_order_of_rows_those_of_new_entities_among_them(driver: Driver) -> None:
    ann = driver.join("ann")
    entities = driver.room.entities
    free, kept = entities.add(Dot()), entities.add(Dot(), owner="ann")
    driver.tick()
    entities.delete(free)
    driver.tick()
    driver.room.state.moves = 1  # its row is free when another flush begins
    driver.tick()
    entities.set_owner(kept, None)
    new = [entities.add(Dot(), owner="bob") for _ in range(2)]
    driver.tick()
    told = ann.replica.updates[-1].operations
    assert [op.id for op in told if isinstance(op, Owner)] == [new[0].id, kept.id, new[1].id]


def test_versions_count_flushes_and_quiet_ticks_send_nothing(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.tick()
    driver.clear()
    version = driver.core.version
    driver.tick(10)
    assert (driver.core.version, driver.outputs) == (version, [])
    driver.room.state.moves = 1
    driver.tick()
    assert driver.core.version == version + 1
    assert (ann.replica.version, ann.replica.tick) == (version + 1, 12)


@pytest.mark.ledger("TERM-18")
def test_a_base_is_written_every_30_s_if_there_were_records(driver: Driver) -> None:
    driver.room.state.moves = 1
    ann = driver.join("ann")
    driver.tick()
    driver.clear()
    driver.advance(29)
    assert driver.of(BaseOut) == []
    driver.advance(2)
    [base] = driver.outputs
    assert isinstance(base, BaseOut), "who plays notices nothing"
    assert (driver.is_active, code_of(ann)) == (True, None)
    driver.advance(60)
    assert len(driver.of(BaseOut)) == 1
    assert driver.wake().room.state.moves == 1


@pytest.mark.ledger("ENT-06")
def test_an_id_that_came_and_went_within_one_tick_is_not_given_again_after_a_crash(driver: Driver) -> None:
    gone = driver.room.entities.add(Dot())
    told = gone.id
    driver.room.entities.delete(gone)
    driver.tick()
    assert len(driver.of(RecordOut)) == 1
    driver.tick()
    assert len(driver.of(RecordOut)) == 1
    woken = driver.wake()
    woken.tick()
    assert woken.of(RecordOut) == woken.of(BaseOut) == []
    assert woken.room.entities.add(Dot()).id == told + 1


def test_the_state_store_may_ask_for_a_base(driver: Driver) -> None:
    driver.room.state.moves = 1
    driver.tick()
    driver.records.clear()
    driver.room.state.moves = 2
    driver.core.need_base(driver.now)
    driver.pump()
    assert isinstance(driver.outputs[-1], BaseOut)
    assert driver.wake().room.state.moves == 2
    driver.hibernate()
    driver.clear()
    driver.core.need_base(driver.now)
    driver.pump()
    assert driver.outputs == []


def test_a_base_may_be_asked_for_once_more_at_the_end() -> None:
    driver = Driver(Game, auto_durable=False)
    driver.hibernate()
    driver.clear()
    driver.core.need_base(driver.now)
    driver.pump()
    [base] = driver.of(BaseOut)
    driver.core.durable(base.version, driver.now)
    assert driver.core.status is Status.CLOSED


def test_a_large_room_is_warned_of_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhall.engine.journal.WARN_SIZE", 1_000)
    for _ in range(200):
        driver.room.entities.add(Dot())
    driver.tick()
    driver.room.state.moves = 1
    driver.tick()
    [warning] = [log for log in driver.of(LogOut) if log.level == "warning"]
    assert warning.event == "room.large"
    assert warning.fields["size"] > 1_000
    assert warning.fields["limit"] == 32 * 1024 * 1024


@pytest.mark.ledger("RST-13")
def test_a_room_over_its_size_stops(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = driver.join("ann")
    monkeypatch.setattr("playhall.engine.journal.MAX_SIZE", 1_000)
    for _ in range(200):
        driver.room.entities.add(Dot())
    driver.tick()
    assert driver.stopped is not None
    assert "over the limit of 1,000" in driver.stopped.error
    assert code_of(ann) == 4007


# Joins


@pytest.mark.ledger("HOOK-04", "HOOK-17", "RTR-13")
def test_on_join_sees_the_joiner_and_on_leave_no_longer(driver: Driver) -> None:
    counts: list[Any] = []
    driver.room.acts["join"] = lambda conn: counts.append(dict(driver.room.connections))
    driver.room.acts["leave"] = lambda conn: counts.append(dict(driver.room.connections))
    ann = driver.join("ann", meta={"vip": True})
    [conn] = driver.room.connections.values()
    assert (conn.id, conn.player, conn.meta, conn.client_tick) == ("c1", "ann", {"vip": True}, None)
    driver.leave(ann)
    assert counts == [{"ann": conn}, {}]
    driver.leave(ann)
    assert driver.room.names() == ["create", "join", "leave"]


@pytest.mark.ledger("CODE-04", "CODE-05", "CODE-14", "SCHM-17")
def test_the_order_of_checks() -> None:
    driver = Driver(Game, max_players=1)
    driver.join("ann")
    other = SCHEMA.hash[:-1] + bytes([SCHEMA.hash[-1] ^ 1])
    assert code_of(driver.join("bob", schema_hash=other, room_type="duel")) == 4015
    assert code_of(driver.join("bob", schema_hash=other)) == 4004
    assert code_of(driver.join("bob")) == 4003
    assert driver.of(JoinedOut) == [driver.clients[1].joined]
    assert driver.room.names() == ["create", "join"]


def test_seats_are_by_player_and_who_was_joined_keeps_one() -> None:
    driver = Driver(Game, max_players=2)
    driver.join("ann")
    bob = driver.join("bob")
    assert code_of(driver.join("ann", connected_at_ms=99)) is None
    assert code_of(driver.join("cy")) == 4003
    assert code_of(driver.join("dee", was_joined=True)) is None
    driver.leave(bob)
    assert code_of(driver.join("cy")) == 4003
    driver.leave(driver.clients[5])
    assert code_of(driver.join("cy")) is None


def test_f2_the_last_seat() -> None:
    class Slow(Game):
        max_players = 8

        def on_join(self, conn: Connection) -> Any:
            return self.acts.get("join")

    driver = Driver(Slow)
    gate = driver.room.acts["join"] = Gate()
    clients = [driver.join(f"p{n}") for n in range(200)]
    refused = [client for client in clients if client.closed is not None]
    assert len(refused) == 192
    assert {code_of(client) for client in refused} == {4003}
    gate.open = True
    driver.go_on_all()
    inside = [client for client in clients if client.replica.updates]
    assert len(inside) == 8
    for round_ in range(50):
        for client in inside[:4]:
            driver.leave(client)
        new = [driver.join(f"r{round_}-{n}") for n in range(4)]
        driver.go_on_all()
        driver.advance(10)
        assert driver.core.connection_count == 8
        inside = inside[4:] + new
    assert code_of(driver.rejoin(refused[0])) == 4003


@pytest.mark.ledger("CODE-07", "HOOK-04")
@pytest.mark.parametrize("later", [False, True])
def test_raising_in_on_join_closes_that_connection_alone(driver: Driver, later: bool) -> None:
    ann = driver.join("ann")

    async def refuse(conn: Connection) -> None:
        driver.room.send(conn, "sorry")
        raise PermissionError("banned")

    def refuse_at_once(conn: Connection) -> None:
        driver.room.send(conn, "sorry")
        raise PermissionError("banned")

    driver.room.acts["join"] = refuse if later else refuse_at_once
    bob = driver.join("bob")
    driver.go_on_all()
    driver.tick()
    assert bob.log == ["welcome", "message", "close"]
    assert code_of(bob) == 4006
    assert driver.errors[-1].fields["hook"] == "on_join"
    assert code_of(ann) is None
    assert "leave" not in driver.room.names()
    assert list(driver.room.connections) == ["ann"]


@pytest.mark.ledger("HOOK-05", "STATE-08", "HOOK-13")
def test_a_slow_join_waits_for_its_state_and_nobody_else_does(driver: Driver) -> None:
    ann = driver.join("ann")
    gate = driver.room.acts["join"] = Gate()
    driver.room.private("bob", create=True).coins = 4
    bob = driver.join("bob")
    driver.room.state.moves = 1
    driver.tick(3)
    assert ann.replica.fields(0) == {"moves": 1}
    assert bob.log == ["welcome"]
    driver.room.broadcast("hi")
    driver.pump()
    assert bob.log == ["welcome", "message"]
    gate.open = True
    driver.go_on_all()
    assert bob.log == ["welcome", "message", "update"]
    assert bob.replica.fields(1) == {"coins": 4}
    driver.assert_in_sync(bob)


@pytest.mark.ledger("STATE-08")
def test_a_join_finds_private_state_as_it_was_left_and_its_first_update_has_what_it_wrote(
    driver: Driver,
) -> None:
    bob = driver.join("bob")
    driver.room.private("bob").coins = 4
    driver.leave(bob)
    driver.tick()
    woken = driver.wake()
    gate, found = Gate(), []

    def join(conn: Connection) -> Any:
        mine = woken.room.private(conn)
        found.append(mine.coins)
        mine.coins += 1
        return gate

    woken.room.acts["join"] = join
    again = woken.rejoin(bob)
    woken.tick()
    assert (found, again.log) == ([4], ["welcome"])
    gate.open = True
    woken.go_on_all()
    assert again.log == ["welcome", "update"]
    assert again.replica.fields(1) == {"coins": 5}


def test_a_join_that_never_settles_ends_after_10_s(driver: Driver) -> None:
    driver.room.acts["join"] = Gate()
    bob = driver.join("bob")
    driver.advance(9.9)
    assert code_of(bob) is None
    driver.advance(0.2)
    assert code_of(bob) == 4006
    assert driver.of(CancelOut)
    assert driver.waiting == {}


def test_frames_sent_while_the_join_waits_come_after_it_in_order(driver: Driver) -> None:
    gate = driver.room.acts["join"] = Gate()
    ann = driver.join("ann")
    for n in range(3):
        driver.send(ann, n)
    assert "message" not in driver.room.names()
    gate.open = True
    driver.go_on_all()
    assert [call[2] for call in driver.room.calls if call[0] == "message"] == [0, 1, 2]
    bob_gate = driver.room.acts["join"] = Gate()
    bob = driver.join("bob")
    driver.receive(bob, bytes(60_000))
    driver.receive(bob, bytes(60_000))
    assert code_of(bob) == 4005
    assert not bob_gate.open


def test_f1_leave_during_a_join() -> None:
    rng = random.Random(7)
    driver = Driver(Game)
    gates = [Gate() for _ in range(100)]
    failing = set(rng.sample(range(100), 20))

    async def join(conn: Connection) -> None:
        n = int(conn.player)
        await gates[n]
        if n in failing:
            raise ValueError
        driver.room.entities.add(Dot(), owner=conn.player)

    driver.room.acts["join"] = join
    driver.room.acts["player_leave"] = lambda player: [
        driver.room.entities.delete(dot) for dot in driver.room.entities.all(Dot, owner=player)
    ]
    clients = [driver.join(str(n)) for n in range(64)]
    driver.go_on_all()
    steps = [("leave", n) for n in range(64)] + [("settle", n) for n in range(64)]
    rng.shuffle(steps)
    for step, n in steps:
        if step == "leave":
            driver.leave(clients[n], clean=bool(n % 2))
        else:
            gates[n].open = True
            driver.go_on_all()
    driver.tick()
    driver.advance(12)
    driver.tick()
    assert (len(driver.room.connections), len(driver.room.presence), len(driver.room.entities)) == (0, 0, 0)
    took_effect = {client.player for client in clients if client.replica.updates}
    left = [call[1].player for call in driver.room.calls if call[0] == "leave"]
    assert sorted(left) == sorted(took_effect)
    assert not any(client.replica.updates for client in clients if code_of(client) == 4006)
    assert driver.waiting == {}


# One player, two connections


@pytest.mark.ledger("RECO-07", "CODE-13")
def test_a_newer_connection_replaces_the_older(driver: Driver) -> None:
    old = driver.join("ann", connected_at_ms=100)
    new = driver.join("ann", connected_at_ms=200)
    assert code_of(old) == 4012
    assert new.log == ["welcome", "update"]
    assert driver.room.names() == ["create", "join", "leave", "join"]
    assert driver.room.connections["ann"].id == "c2"
    late = driver.join("ann", connected_at_ms=150)
    assert (code_of(late), late.joined) == (4012, None)
    assert driver.room.connections["ann"].id == "c2"


def test_within_a_session_attempts_decide_whatever_the_clocks_say(driver: Driver) -> None:
    new = driver.join("ann", session=b"s", attempt=5, connected_at_ms=100)
    stale = driver.join("ann", session=b"s", attempt=4, connected_at_ms=900)
    assert code_of(stale) == 4012
    newer = driver.join("ann", session=b"s", attempt=6, connected_at_ms=1)
    assert (code_of(new), code_of(newer)) == (4012, None)


def test_a_replacement_cancels_a_join_that_waits(driver: Driver) -> None:
    driver.room.acts["join"] = Gate()
    old = driver.join("ann")
    del driver.room.acts["join"]
    new = driver.join("ann", connected_at_ms=99)
    assert code_of(old) == 4012
    assert driver.waiting == {}
    assert new.log == ["welcome", "update"]
    assert driver.room.names() == ["create", "join", "join"]
    driver.receive(old, b"late")
    driver.leave(old)
    assert driver.room.names() == ["create", "join", "join"]


# Messages


@pytest.mark.ledger("MSG-01", "MSG-03", "MSG-06", "MSG-08", "HOOK-06")
def test_messages_both_ways(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.send(ann, {"a": [1, None]}, seen=7)
    driver.send(ann, b"\x00\xff")
    conn = driver.room.connections["ann"]
    assert driver.room.calls[-2:] == [("message", conn, {"a": [1, None]}), ("message", conn, b"\x00\xff")]
    assert conn.client_tick is None
    driver.send(ann, 1, seen=0)
    assert conn.client_tick == 0
    driver.room.send(conn, {"to": "ann"})
    driver.room.send(conn, b"\x01", unreliable=True)
    driver.room.broadcast([1], except_=conn)
    driver.room.broadcast("all", unreliable=True)
    driver.pump()
    assert (ann.messages, ann.unreliable) == ([{"to": "ann"}], [b"\x01", "all"])
    assert (bob.messages, bob.unreliable) == ([[1]], ["all"])


@pytest.mark.ledger("MSG-06")
def test_unreliable_messages_have_a_hook_of_their_own() -> None:
    class Both(Game):
        def on_unreliable(self, conn: Connection, message: Any) -> None:
            self.note("unreliable", message)

    driver = Driver(Both)
    ann = driver.join("ann")
    driver.send_unreliable(ann, 1)
    driver.send(ann, 2)
    assert driver.room.names()[-2:] == ["unreliable", "message"]
    plain = Driver(Game)
    plain.send_unreliable(plain.join("ann"), 1)
    assert plain.room.names()[-1] == "message"


@pytest.mark.parametrize("end", [KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_the_caller_in_on_message_is_not_the_rooms(driver: Driver, end: BaseException) -> None:
    ann = driver.join("ann")
    driver.room.acts["message"] = end
    with pytest.raises(type(end)):
        driver.send(ann, "end")
    driver.room.acts["message"] = lambda conn, message: driver.room.kick(conn)
    driver.send(ann, "kick me")
    assert code_of(ann) == 4006
    assert driver.room.names()[-1] == "leave"


@pytest.mark.ledger("HOOK-06")
@pytest.mark.parametrize("later", [False, True])
def test_what_on_message_raises_is_logged_and_only_that_message_is_lost(driver: Driver, later: bool) -> None:
    ann = driver.join("ann")

    async def fail_later(conn: Connection, message: Any) -> None:
        raise KeyError(message)

    driver.room.acts["message"] = fail_later if later else KeyError("x")
    driver.send(ann, "boom")
    driver.go_on_all()
    del driver.room.acts["message"]
    driver.send(ann, "fine")
    assert [call[2] for call in driver.room.calls if call[0] == "message"] == ["boom", "fine"]
    assert driver.errors[0].fields["hook"] == "on_message"
    assert driver.is_active
    assert code_of(ann) is None


@pytest.mark.ledger("MSG-01", "MSG-03")
@pytest.mark.parametrize(
    "message", ["x" * 65_535, bytes(65_537), {"a": float("nan")}, {1: 2}, object(), [2**53]]
)
def test_what_cannot_be_sent_raises_in_the_hook(driver: Driver, message: Any) -> None:
    ann = driver.join("ann")
    [conn] = driver.room.connections.values()
    with pytest.raises(ValueError):
        driver.room.send(conn, message)
    with pytest.raises(ValueError):
        driver.room.broadcast(message)
    driver.room.send(conn, bytes(65_536))
    driver.pump()
    assert len(ann.messages) == 1


@pytest.mark.ledger("HOOK-13")
def test_so_many_async_handlers_may_wait(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.room.acts["message"] = Gate()
    for n in range(40):
        driver.send(ann, n)
    assert len(driver.waiting) == 32
    driver.send(bob, 1)
    assert len(driver.waiting) == 33
    driver.advance(10)
    assert driver.waiting == {}


@pytest.mark.ledger("CODE-01")
@pytest.mark.parametrize(
    "frame", [b"", b"\x63", b"\x05\x00\x00{", encode_client(Unreliable(1)) + b"x", b"\x04\x01\x01\x00"]
)
def test_a_frame_that_does_not_decode_closes_that_link_alone(driver: Driver, frame: bytes) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.receive(ann, frame)
    assert code_of(ann) == 4000
    assert code_of(bob) is None
    assert driver.room.names()[-1] == "leave"
    driver.tick()
    driver.assert_in_sync(bob)


def test_a_call_is_answered_that_there_is_none_of_that_name(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.call(ann, 12, "buy")
    assert ann.replies == [ReplyError(12, 404, "no such call: buy")]


@pytest.mark.ledger("CODE-07")
def test_kick(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")

    def act(conn: Connection, message: Any) -> None:
        driver.room.send(conn, "bye")
        driver.room.kick(conn)
        driver.room.kick(conn)
        driver.room.send(conn, "never")
        assert "ann" not in driver.room.connections
        driver.room.calls.append(("handler is done",))

    driver.room.acts["message"] = act
    driver.send(ann, 1)
    assert ann.log[-2:] == ["message", "close"]
    assert code_of(ann) == 4006
    assert driver.room.names()[-2:] == ["handler is done", "leave"]
    assert code_of(bob) is None


def test_what_leave_hooks_raise_is_only_logged(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.room.acts |= {"leave": ValueError("a"), "player_leave": ValueError("b")}
    driver.leave(ann)
    driver.advance(11)
    assert [log.fields["hook"] for log in driver.errors] == ["on_leave", "on_player_leave"]
    assert driver.is_active


# Credit


def test_a_client_that_reads_nothing_for_15_s_is_closed(driver: Driver) -> None:
    ann, bob = driver.join("ann", credit=1), driver.join("bob")
    driver.tick(20)
    driver.advance(20)
    assert code_of(ann) == 4005
    assert code_of(bob) is None
    quiet = driver.join("cy", credit=1)
    driver.drain(quiet)
    driver.advance(60)
    assert code_of(quiet) is None, "nothing is owed"


def test_any_progress_keeps_a_slow_client(driver: Driver) -> None:
    ann = driver.join("ann", credit=1)
    for n in range(10):
        driver.room.state.moves += 1
        driver.tick()
        driver.advance(10)
        driver.drain(ann, n + 1)
    assert code_of(ann) is None
    driver.advance(16)
    assert code_of(ann) == 4005


@pytest.mark.ledger("MSG-05")
def test_reliable_messages_wait_for_credit_and_unreliable_ones_are_dropped(driver: Driver) -> None:
    ann = driver.join("ann", credit=1)
    for n in range(3):
        driver.room.broadcast(n)
        driver.room.broadcast(n, unreliable=True)
    driver.room.state.moves = 1
    driver.tick()
    assert (ann.messages, ann.unreliable) == ([], [])
    for _ in range(5):
        driver.drain(ann)
        driver.tick()
    assert (ann.messages, ann.unreliable) == ([0, 1, 2], [])
    assert ann.log == ["welcome", "update", "message", "message", "message", "update"]
    driver.assert_in_sync(ann)


@pytest.mark.ledger("MSG-05")
def test_what_waits_for_credit_is_bounded(driver: Driver) -> None:
    ann, bob = driver.join("ann", credit=1), driver.join("bob")
    [to_ann, to_bob] = driver.room.connections.values()
    for _ in range(MAX_WAITING_BYTES // 65_000 + 1):
        for conn in (to_ann, to_bob):
            driver.room.send(conn, bytes(65_000))
    driver.pump()
    assert code_of(ann) == 4005
    assert code_of(bob) is None


# Private state


@pytest.mark.ledger("STATE-03", "STATE-04", "STATE-22")
def test_private_state_by_player(driver: Driver) -> None:
    room = driver.room
    assert room.private("ann") is None
    assert room.private_players() == []
    ann = driver.join("ann")
    mine = room.private("ann")
    mine.coins = 5
    assert room.private(room.connections["ann"]) is mine
    assert room.private("bob", create=True).coins == 0
    assert room.private_players() == ["ann", "bob"]
    driver.leave(ann)
    driver.tick()
    woken = driver.wake()
    again = woken.join("ann")
    assert again.replica.fields(1) == {"coins": 5}


@pytest.mark.ledger("STATE-05", "STATE-06")
def test_private_state_is_kept_24_h_of_wall_time_from_the_last_connection(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    driver.leave(ann)
    driver.tick()
    driver.hibernate()
    day = 24 * 3600.0
    assert driver.wake(away=day - 60).room.private_players() == ["ann", "bob"]
    assert driver.wake(away=day).room.private_players() == []
    assert code_of(bob) == 4008


@pytest.mark.ledger("STATE-06")
def test_private_state_expires_in_a_running_room_too() -> None:
    class Short(Game):
        private_retention = 40.0

    driver = Driver(Short)
    ann, cy = driver.join("ann"), driver.join("cy")
    driver.join("bob")
    driver.leave(ann)
    driver.advance(25)
    driver.leave(cy)
    driver.advance(14)
    assert driver.room.private_players() == ["ann", "cy", "bob"]
    driver.advance(30)
    assert driver.room.private_players() == ["cy", "bob"]
    driver.advance(26)  # by a look at most 30 s after the 65th
    assert driver.room.private_players() == ["bob"]
    driver.tick()
    assert driver.wake().room.private_players() == ["bob"]


def test_retention_of_who_was_connected_at_a_crash_counts_from_the_crash() -> None:
    class Short(Game):
        private_retention = 40.0

    driver = Driver(Short)
    driver.join("ann")
    driver.advance(300)
    driver.tick()
    assert driver.wake(away=39).room.private_players() == ["ann"]
    assert driver.wake(away=41).room.private_players() == []


@pytest.mark.ledger("STATE-05")
def test_private_state_may_be_kept_for_ever() -> None:
    class Forever(Game):
        private_retention = "forever"

    driver = Driver(Forever)
    driver.leave(driver.join("ann"))
    driver.hibernate()
    assert driver.wake(away=1e9).room.private_players() == ["ann"]


# Hibernation


@pytest.mark.ledger("HOOK-11")
def test_a_room_hibernates_30_s_after_the_last_connection_is_gone(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.advance(100)
    assert driver.is_active
    driver.leave(ann)
    driver.advance(29)
    driver.tick()
    assert driver.is_active
    driver.clear()
    driver.advance(1)
    assert driver.core.status is Status.CLOSED
    assert [type(output) for output in driver.outputs][-2:] == [BaseOut, HibernateOut]
    assert driver.room.names()[-1] == "hibernate"
    driver.tick()
    assert driver.core.tick_number == 1
    assert driver.wake().room.tick == 1


def test_a_room_that_nobody_joins_hibernates_too(driver: Driver) -> None:
    driver.advance(30)
    assert driver.core.status is Status.CLOSED


def test_a_room_stays_while_its_shard_is_not_heard_or_a_hook_waits(driver: Driver) -> None:
    driver.core.shard_heard = False
    driver.advance(60)
    assert driver.is_active
    driver.core.shard_heard = True
    driver.advance(1.5)
    assert driver.core.status is Status.CLOSED


@pytest.mark.ledger("HOOK-10", "HOOK-11", "STATE-19", "STATE-20", "STATE-21")
def test_hibernating_runs_the_leave_hooks_then_on_hibernate_then_saves(driver: Driver) -> None:
    room = driver.room
    kept = room.entities.add(Dot(x=1))
    by_leave, by_player = room.entities.add(Dot(), owner="ann"), room.entities.add(Dot(), owner="ann")
    room.acts["leave"] = lambda conn: room.entities.delete(by_leave)
    room.acts["player_leave"] = lambda player: room.entities.delete(by_player) if player == "ann" else None
    room.acts["hibernate"] = lambda: setattr(room.state, "moves", 99)
    driver.leave(driver.join("bob"))
    ann = driver.join("ann")
    room.calls.clear()
    driver.hibernate()
    assert code_of(ann) == 4008
    assert room.names() == ["leave", "player_leave", "player_leave", "hibernate"]
    assert driver.core.status is Status.CLOSED
    woken = driver.wake()
    assert woken.room.calls[0][1].reason == "connect"
    assert [dot.id for dot in woken.room.entities] == [kept.id]
    assert woken.room.state.moves == 99


@pytest.mark.ledger("STATE-19", "STATE-20", "STATE-21", "STATE-27", "RST-10")
def test_a_crash_keeps_entities_and_runs_no_leave_hook(driver: Driver) -> None:
    room = driver.room
    room.acts["join"] = lambda conn: room.entities.add(Dot(), owner=conn.player, once=True)
    driver.join("ann")
    driver.tick()
    woken = driver.wake()
    assert woken.room.names() == ["wake"]
    woken.room.acts["join"] = lambda conn: woken.room.entities.add(Dot(), owner=conn.player, once=True)
    woken.join("ann")
    assert [(dot.id, dot.owner) for dot in woken.room.entities] == [(2, "ann")]


@pytest.mark.ledger("HIB-02", "RECO-10", "CODE-12")
def test_a_room_may_ask_to_hibernate(driver: Driver) -> None:
    ann = driver.join("ann")

    def act(dt: float) -> None:
        driver.room.request_hibernate()
        driver.room.state.moves = 5

    driver.room.acts["tick"] = act
    driver.tick()
    assert code_of(ann) == 4011
    assert driver.room.names()[-3:] == ["leave", "player_leave", "hibernate"]
    assert driver.wake().room.state.moves == 5


def is_closed(driver: Driver) -> bool:
    assert driver.core.status in (Status.ACTIVE, Status.CLOSED)
    return driver.core.status is Status.CLOSED


@pytest.mark.parametrize("ask", ["room", "shell"])
def test_a_room_that_is_to_close_goes_on_until_its_shard_is_heard(driver: Driver, ask: str) -> None:
    ann = driver.join("ann")
    driver.core.shard_heard = False
    if ask == "room":
        driver.room.request_hibernate()
    else:
        driver.hibernate()
        driver.hibernate()
    for _ in range(3):
        driver.tick()
    assert not is_closed(driver)
    assert code_of(ann) is None
    ticks = driver.core.tick_number
    driver.core.shard_heard = True
    driver.tick()
    assert is_closed(driver)
    assert (code_of(ann), driver.core.tick_number) == (4011 if ask == "room" else 4008, ticks)


def test_a_wish_to_close_lapses_after_a_minute_without_the_shard(driver: Driver) -> None:
    driver.join("ann")
    driver.core.shard_heard = False
    driver.hibernate()
    driver.move(59)
    driver.tick()
    assert not [log for log in driver.of(LogOut) if log.event == "room.hibernate_given_up"]
    driver.move(1)
    driver.tick()
    assert [log.event for log in driver.of(LogOut)] == ["room.hibernate_given_up"]
    driver.core.shard_heard = True
    driver.tick()
    assert not is_closed(driver)
    driver.hibernate()
    assert is_closed(driver)


def test_a_room_that_waited_to_move_hibernates_where_all_have_left(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.core.shard_heard = False
    driver.hibernate(move=True)
    driver.leave(ann)
    driver.core.shard_heard = True
    driver.tick()
    assert driver.room.names()[-3:] == ["leave", "player_leave", "hibernate"]
    assert [out.moved for out in driver.of(HibernateOut)] == [False]


def test_a_room_that_asks_while_it_starts_hibernates_once_it_has() -> None:
    class Brief(Game):
        def on_create(self) -> None:
            self.request_hibernate()

    driver = Driver(Brief)
    assert driver.ready
    assert driver.core.status is Status.CLOSED


def test_joins_in_closing_are_not_taken(driver: Driver) -> None:
    driver.room.acts["hibernate"] = Gate()
    driver.hibernate()
    assert driver.core.status is Status.CLOSING
    request = JoinRequest(
        "ann", None, SCHEMA.hash, b"s", 0, 0, False, Resume(0, 0, 0, full=False, held=()), "c", "", 100
    )
    driver.clear()
    assert driver.core.join(77, request, driver.now) is False
    assert driver.core.take_outputs() == []
    driver.tick()
    assert driver.core.tick_number == 0


@pytest.mark.ledger("HOOK-13")
def test_hibernation_waits_for_leave_hooks_and_for_the_state_store() -> None:
    driver = Driver(Game, auto_durable=False)
    driver.join("ann")
    leaving, hibernating = Gate(), Gate()
    driver.room.acts |= {"leave": leaving, "hibernate": hibernating}
    driver.hibernate()
    assert "hibernate" not in driver.room.names()
    leaving.open = True
    driver.go_on_all()
    assert driver.room.names()[-1] == "hibernate"
    assert not isinstance(driver.outputs[-1], BaseOut)
    hibernating.open = True
    driver.go_on_all()
    assert isinstance(driver.outputs[-1], BaseOut)
    assert driver.core.status is Status.CLOSING
    driver.core.durable(driver.core.version - 1, driver.now)
    assert driver.core.status is Status.CLOSING
    driver.core.durable(driver.core.version, driver.now)
    driver.pump()
    assert driver.of(HibernateOut) == [HibernateOut(driver.core.version, 0)]


@pytest.mark.ledger("HOOK-11")
@pytest.mark.parametrize("late", [False, True])
def test_on_hibernate_that_raises_or_takes_over_10_s_stops_the_room(driver: Driver, late: bool) -> None:
    driver.room.acts["hibernate"] = Gate() if late else ValueError("no")
    driver.hibernate()
    driver.advance(10)
    assert driver.stopped is not None
    assert driver.of(HibernateOut) == []


def test_a_move_keeps_connections_and_runs_no_leave_hook(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.hibernate(move=True)
    assert driver.core.status is Status.CLOSED
    assert code_of(ann) is None
    assert [out.moved for out in driver.of(HibernateOut)] == [True]
    assert driver.room.names() == ["create", "join", "hibernate"]
    assert driver.core.connection_count == 0


@pytest.mark.ledger("STATE-23", "STATE-26")
def test_scratch_space_is_made_anew_after_a_wake(driver: Driver) -> None:
    driver.room.acts["x"] = 1
    driver.tick()
    other = Driver(Game)
    assert (driver.room.acts, other.room.acts) == ({"x": 1}, {})
    assert driver.wake().room.acts == {}
    driver.hibernate()
    assert driver.wake().room.acts == {}


@pytest.mark.ledger("ENT-05", "ENT-06", "OWN-05")
def test_ids_owners_and_the_next_id_survive_a_wake(driver: Driver) -> None:
    driver.room.entities.add(Dot(x=4), owner="ann", id=30)
    driver.room.entities.delete(driver.room.entities.add(Dot()))
    driver.tick()
    woken = driver.wake()
    assert [(dot.id, dot.owner, dot.x) for dot in woken.room.entities] == [(30, "ann", 4)]
    assert woken.core.version == 0
    assert woken.room.entities.add(Dot()).id >= 31
    woken.tick()
    assert isinstance(woken.outputs[-1], BaseOut), "the first write of a generation is a base"


@pytest.mark.ledger("RECO-08")
def test_after_a_crash_clients_join_anew_with_a_full_state(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.room.state.moves = 4
    driver.tick()
    woken = driver.wake()
    again = woken.rejoin(ann)
    assert again.joined is not None
    assert not again.joined.resumed
    assert again.replica.updates[-1].full
    assert woken.room.names() == ["wake", "join"]
    woken.assert_in_sync(again)


def test_the_same_calls_give_the_same_outputs() -> None:
    def run() -> list[Any]:
        driver = Driver(Game)
        ann, bob = driver.join("ann"), driver.join("bob")
        for n in range(10):
            driver.room.entities.add(Dot(x=n), owner="ann")
            driver.send(ann, n)
            driver.tick()
        driver.leave(bob)
        driver.advance(15)
        driver.hibernate()
        return driver.outputs

    assert run() == run()
