"""Bans: who is thrown out, refused, never shown again, and let in when it is lifted."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.engine.bans import MAX_BANNED, Bans
from playhall.engine.frames import Reply
from playhall.engine.statelog import read
from playhall.room import Bot, Call, Connection, Room, Schema
from tests.support.rooms import Driver, Gate


class Ask(Call[str]):
    do: str
    player: str = "bob"


class Pub(Room):
    schema = Schema(calls=[Ask])
    bot_kinds = (type("Regular", (Bot,), {}),)

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_join(self, conn: Connection) -> Any:
        self.calls.append(("join", conn.player))
        if conn.meta == "ban":
            self.ban(conn.player)
        elif isinstance(conn.meta, list):
            return conn.meta[0]
        return None

    def on_message(self, conn: Connection, message: Any) -> None:
        self.ban(message)
        self.calls.append(("banned", message in self.connections, message in self.presence))

    @Ask.handler
    def ask(self, conn: Connection, ask: Ask) -> str:
        getattr(self, ask.do)(ask.player)
        return "done"

    def on_leave(self, conn: Connection) -> None:
        self.calls.append(("leave", conn.player, conn.player in self.presence))

    def on_player_leave(self, player: str) -> None:
        self.calls.append(("player_leave", player, player in self.presence))


@pytest.fixture
def driver() -> Driver:
    return Driver(Pub)


@pytest.mark.ledger("HOOK-21", "PRES-13")
def test_a_ban_closes_the_connection_ends_presence_and_refuses_from_then_on(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    driver.room.calls.clear()
    driver.send(ann, "bob")
    assert (bob.closed.code, bob.closed.reason) == (4006, "banned")  # type: ignore[union-attr]
    # on_leave still finds the entry, and then it is gone at once.
    assert driver.room.calls == [
        ("banned", False, True), ("leave", "bob", True), ("player_leave", "bob", False),
    ]  # fmt: skip
    driver.tick()
    assert set(ann.replica.presence()) == {"ann"}
    again = driver.join("bob")
    assert (again.joined, again.closed.code, again.closed.reason) == (None, 4006, "banned")  # type: ignore[union-attr]
    driver.tick()
    assert [update for update in ann.replica.updates if "bob" in repr(update.operations)][1:] == []
    assert (driver.is_active, driver.errors) == (True, [])


@pytest.mark.ledger("PRES-13")
def test_who_is_banned_within_its_on_join_is_never_shown(driver: Driver) -> None:
    ann = driver.join("ann")
    bob = driver.join("bob", meta="ban")
    assert bob.closed.code == 4006  # type: ignore[union-attr]
    driver.tick()
    assert "bob" not in repr(ann.replica.updates)
    assert driver.room.calls[-1] == ("player_leave", "bob", False)
    assert ("leave", "bob", True) not in driver.room.calls


def test_a_ban_ends_a_join_that_waits_and_an_entry_in_its_grace(driver: Driver) -> None:
    slow, gone = driver.join("slow", meta=[Gate()]), driver.join("gone")
    driver.leave(gone)
    for player in ("slow", "gone", "never"):
        driver.room.ban(player)
    driver.pump()
    assert (slow.closed.code, driver.waiting) == (4006, {})  # type: ignore[union-attr]
    assert len(driver.room.presence) == 0
    left = [call[1] for call in driver.room.calls if call[0] == "player_leave"]
    assert left == ["slow", "gone"]


@pytest.mark.ledger("HOOK-21")
def test_bans_are_saved_until_they_are_lifted(driver: Driver) -> None:
    room = driver.room
    room.ban("bob")
    room.ban("cy")
    assert driver.core.dirty
    driver.tick()
    assert not driver.core.dirty
    room.ban("bob")  # again
    assert not driver.core.dirty
    room.unban("cy")
    room.unban("nobody")
    assert driver.core.dirty
    driver.tick()
    assert read(driver.stored, Pub.schema).banned == ["bob"]
    again = driver.wake()
    assert again.join("bob").closed.code == 4006
    assert again.join("cy").joined is not None
    again.room.unban("bob")
    assert again.join("bob").joined is not None
    again.hibernate()
    assert again.wake().join("bob").joined is not None


@pytest.mark.ledger("HOOK-21")
@pytest.mark.parametrize(("do", "waits"), [("ban", True), ("unban", True), ("kick_nobody", False)])
def test_the_reply_of_a_call_that_bans_waits_until_that_is_saved(do: str, waits: bool) -> None:
    class Careful(Pub):
        def kick_nobody(self, player: str) -> None: ...

    driver = Driver(Careful, auto_durable=False)
    ann = driver.join("ann")
    if do == "unban":
        driver.room.ban("bob")
    driver.tick()
    driver.core.durable(driver.core.version, driver.now)
    driver.call(ann, 1, "ask", {"do": do})
    assert ann.replies == ([] if waits else [Reply(1, "done")])
    driver.tick()
    assert ann.replies == ([] if waits else [Reply(1, "done")])
    driver.core.durable(driver.core.version, driver.now)
    driver.pump()
    assert ann.replies == [Reply(1, "done")]


def test_who_cannot_be_banned(driver: Driver) -> None:
    driver.room.bots.add(Pub.bot_kinds[0]())
    with pytest.raises(ValueError, match=r"bot:1 is a bot, which is removed by room\.bots\.remove"):
        driver.room.ban("bot:1")
    with pytest.raises(TypeError, match="a player is named by its id"):
        driver.room.ban(driver.join("ann"))
    with pytest.raises(ValueError, match="a player's id has 1 to 128 bytes"):
        driver.room.unban("")


def test_a_room_keeps_so_many_bans() -> None:
    bans = Bans()
    bans.restore([f"p{n}" for n in range(MAX_BANNED)])
    bans.add("p0")
    with pytest.raises(ValueError, match="4096 players are banned already"):
        bans.add("one more")
    bans.discard("p0")
    bans.add("one more")
    change = bans.take_changed()
    assert change is not None
    assert (change.added, change.lifted) == (["one more"], ["p0"])
    assert bans.take_changed() is None
