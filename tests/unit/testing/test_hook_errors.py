"""What each hook's exception does, and to whom: one table, as the ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from playhall.client import PlayhallError
from playhall.room import (
    Bot,
    Call,
    CallRejected,
    Connection,
    Entity,
    JsonOut,
    Message,
    Room,
    Schema,
    Wake,
    u32,
    writable,
)
from playhall.testing import RoomHost, RoomStoppedError, TestRoom


class Board(Entity):
    n: u32 = 0


class Mine(Entity):
    n: writable[u32] = 0


class Ask(Call[int]):
    pass


class Pest(Bot):
    def start(self, room: Faulty) -> None:
        room.may_fail("start")

    def tick(self, room: Faulty) -> None:
        room.may_fail("tick")


class Faulty(Room[Board, Mine]):
    """Every hook raises while it is named in `failing`."""

    schema = Schema(state=Board, private=Mine, calls=[Ask])
    bot_kinds = (Pest,)
    failing: ClassVar[set[str]] = set()

    def may_fail(self, hook: str) -> None:
        if hook in self.failing:
            raise ZeroDivisionError(hook)

    def on_create(self) -> None:
        self.may_fail("on_create")

    def on_wake(self, wake: Wake) -> None:
        self.may_fail("on_wake")

    def on_join(self, conn: Connection) -> None:
        self.state.n += 1
        self.may_fail("on_join")

    def on_message(self, conn: Connection, message: Message) -> None:
        self.may_fail("on_message")
        if message == "bot":
            self.bots.add(Pest())
        self.state.n += 1

    def on_unreliable(self, conn: Connection, message: Message) -> None:
        self.may_fail("on_unreliable")

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        self.may_fail("on_write")
        return values

    def on_tick(self, dt: float) -> None:
        self.may_fail("on_tick")

    def on_leave(self, conn: Connection) -> None:
        self.may_fail("on_leave")

    def on_player_leave(self, player: str) -> None:
        self.may_fail("on_player_leave")

    def on_hibernate(self) -> None:
        self.may_fail("on_hibernate")

    def on_request(self, message: Message) -> JsonOut:
        self.may_fail("on_request")
        return "well"

    @Ask.handler
    def ask(self, conn: Connection, ask: Ask) -> int:
        self.may_fail("ask")
        if "rejected" in self.failing:
            raise CallRejected("not now")
        return 7


@pytest.fixture(autouse=True)
def fail(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    failing: set[str] = set()
    monkeypatch.setattr(Faulty, "failing", failing)
    return failing


Tested = TestRoom[Faulty, Board, Mine]


def said(t: Tested) -> list[str]:
    """The last lines of the tracebacks so far."""
    return [error.strip().splitlines()[-1] for error in t.errors]


@pytest.mark.ledger("CODE-08", "HOOK-01", "HOOK-02", "HOOK-11")
@pytest.mark.parametrize("hook", ["on_create", "on_wake", "on_tick", "on_hibernate"])
async def test_stops_the_room(room_host: RoomHost, fail: set[str], hook: str) -> None:
    t = room_host.room(Faulty)
    if hook in ("on_wake", "on_tick", "on_hibernate"):
        alice = await t.connect("alice")
        alice.send("count")
        await t.tick()
    if hook == "on_wake":
        await t.hibernate()
    fail.add(hook)
    if hook == "on_hibernate":
        with pytest.raises(RoomStoppedError, match=hook):
            await t.hibernate()
    elif hook == "on_tick":
        with pytest.raises(RoomStoppedError, match=hook):
            await t.tick()
        assert (alice.status, alice.closed_with) == ("closed", 4007)
    else:
        with pytest.raises(PlayhallError) as stopped:
            await t.connect("alice")
        assert stopped.value.code == 4007
    assert (t.status, said(t)) == ("hibernated", [f"ZeroDivisionError: {hook}"])
    fail.clear()
    back = await t.connect("alice")
    assert back.state.n == (1 if hook == "on_create" else 3)


@pytest.mark.ledger("CODE-07", "HOOK-04")
async def test_closes_the_connection(room_host: RoomHost, fail: set[str]) -> None:
    t = room_host.room(Faulty)
    alice = await t.connect("alice")
    fail.add("on_join")
    with pytest.raises(PlayhallError) as refused:
        await t.connect("bob")
    assert (refused.value.code, alice.status, t.status) == (4006, "open", "active")
    assert said(t) == ["ZeroDivisionError: on_join"]


@pytest.mark.ledger("HOOK-06", "HOOK-07")
async def test_drops_the_message_or_the_write(room_host: RoomHost, fail: set[str]) -> None:
    t = room_host.room(Faulty)
    alice = await t.connect("alice")
    fail |= {"on_message", "on_unreliable", "on_write"}
    alice.send("one")
    alice.send("two", unreliable=True)
    alice.private.n = 9
    await t.tick(3)
    assert (t.room.state.n, alice.state.n, alice.private.n) == (1, 1, 0)
    assert sorted(said(t)) == [f"ZeroDivisionError: {hook}" for hook in sorted(fail)]
    fail.clear()
    alice.send("three")
    alice.private.n = 8
    await t.tick(3)
    assert (alice.state.n, t.room.private("alice", create=True).n) == (2, 8)


@pytest.mark.ledger("HOOK-12")
async def test_is_the_answer(room_host: RoomHost, fail: set[str]) -> None:
    t = room_host.room(Faulty)
    alice = await t.connect("alice")
    fail |= {"ask", "on_request"}
    with pytest.raises(PlayhallError) as called:
        await room_host.wait(alice.call(Ask()))
    assert called.value.code == 422
    with pytest.raises(PlayhallError) as requested:
        await t.request({"op": "?"})
    assert requested.value.code == 422
    assert said(t) == ["ZeroDivisionError: ask", "ZeroDivisionError: on_request"]
    fail.clear()
    fail.add("rejected")
    with pytest.raises(PlayhallError, match="not now"):
        await room_host.wait(alice.call(Ask()))
    assert len(said(t)) == 2  # an expected no is not logged
    fail.clear()
    assert (await room_host.wait(alice.call(Ask())), await t.request({"op": "?"})) == (7, "well")
    assert (t.status, alice.status) == ("active", "open")


@pytest.mark.ledger("HOOK-10")
async def test_is_only_logged(room_host: RoomHost, fail: set[str]) -> None:
    t = room_host.room(Faulty)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    fail |= {"on_leave", "on_player_leave"}
    await bob.leave()
    await t.advance(11)
    assert said(t) == ["ZeroDivisionError: on_leave", "ZeroDivisionError: on_player_leave"]
    assert (t.status, alice.status, set(alice.presence)) == ("active", "open", {"alice"})


@pytest.mark.ledger("BOT-09")
@pytest.mark.parametrize("method", ["start", "tick"])
async def test_removes_the_bot(room_host: RoomHost, fail: set[str], method: str) -> None:
    t = room_host.room(Faulty)
    alice = await t.connect("alice")
    fail.add(method)
    alice.send("bot")
    await t.tick(2)
    assert said(t) == [f"ZeroDivisionError: {method}"]
    assert (len(t.room.bots), set(alice.presence), alice.state.n, t.status) == (0, {"alice"}, 2, "active")
