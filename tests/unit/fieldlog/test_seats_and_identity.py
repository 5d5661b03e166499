"""Field log F4 and F5: one user in two tabs, and a user beside its own corpse."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.client import PlayhallError
from playhall.engine.frames import Message as MessageFrame
from playhall.engine.frames import encode_client
from playhall.room import Connection, Entity, Message, Room, Schema, u32, writable
from playhall.testing import RoomHost, TestRoom
from tests.support.rooms import Driver

REPLACED = 4012


class Pawn(Entity):
    moves: u32 = 0
    pose: writable[u32] = 0


class Lobby(Room):
    schema = Schema(entities=[Pawn])

    def __init__(self) -> None:
        self.hooks: list[tuple[str, str]] = []

    def on_join(self, conn: Connection) -> None:
        self.hooks.append(("join", conn.player))
        self.entities.add(Pawn(), owner=conn.player, once=True)

    def on_leave(self, conn: Connection) -> None:
        self.hooks.append(("leave", conn.player))

    def on_player_leave(self, player: str) -> None:
        self.hooks.append(("gone", player))
        for pawn in self.entities.all(Pawn, owner=player):
            self.entities.delete(pawn)

    def on_message(self, conn: Connection, message: Message) -> None:
        for pawn in self.entities.all(Pawn, owner=conn.player):
            pawn.moves += 1
        self.broadcast({"from": conn.player, "is": message})


class Others:
    """What others see of one player, at every update of theirs."""

    def __init__(self, watcher: Any, player: str) -> None:
        self.seen: list[str] = []
        watcher.presence.on_join(lambda entry: self._note("join", entry))
        watcher.presence.on_leave(lambda entry: self._note("leave", entry))
        watcher.presence.on_change(lambda entry, names: self._note("change", entry))
        self.counts: set[tuple[int, int]] = set()
        self._watcher, self._player = watcher, player
        watcher.on("tick", lambda tick: self._count())

    def _note(self, what: str, entry: Any) -> None:
        if entry.player == self._player:
            self.seen.append(what)

    def _count(self) -> None:
        members = sum(player == self._player for player in self._watcher.presence)
        self.counts.add((members, len(self._watcher.entities.all(Pawn, owner=self._player))))


async def two_tabs(host: RoomHost, t: TestRoom[Lobby, None, None]) -> None:
    """The newer one stays and the older one stops for good, for three minutes."""
    watcher = await t.connect("watcher")
    others = Others(watcher, "ann")
    first = await t.connect("ann")
    second = await t.connect("ann")
    await t.advance(180)
    assert (first.status, first.closed_with) == ("closed", REPLACED)
    assert first.events == ["closed"]
    assert (second.status, second.events) == ("open", [])
    assert others.seen.count("join") <= 2
    assert others.seen.count("leave") <= 1
    assert others.counts <= {(0, 0), (1, 1)}
    hooks = [what for what, player in t.room.hooks if player == "ann"]
    assert hooks == ["join", "leave", "join"]
    # The user acts: the tab that lost comes back, and it is the other's turn.
    third = await t.connect("ann")
    await t.advance(30)
    assert (second.status, second.closed_with, third.status) == ("closed", REPLACED, "open")


async def test_f04_two_tabs_of_one_user(room_host: RoomHost) -> None:
    await two_tabs(room_host, room_host.room(Lobby))


async def test_f04_two_tabs_take_one_seat(room_host: RoomHost) -> None:
    """A full room lets a player's second connection in, for it takes the seat of the first."""
    t = room_host.room(Lobby, max_players=2)
    await two_tabs(room_host, t)
    with pytest.raises(PlayhallError, match=r"4003|seats|seat"):
        await t.connect("bob")


def test_f04_devices_whose_clocks_differ() -> None:
    """Newer is what routers let in later; the devices' clocks are nowhere asked."""
    driver = Driver(Lobby)
    phone = driver.join("ann", connected_at_ms=1_000)
    desk = driver.join("ann", connected_at_ms=2_000)
    assert (phone.closed and phone.closed.code, desk.closed) == (REPLACED, None)
    # One that was let in earlier but came later, by a slow router, does not throw the newer one out.
    late = driver.join("ann", connected_at_ms=1_500)
    assert (late.closed and late.closed.code, desk.closed) == (REPLACED, None)
    driver.tick(5)
    assert len(driver.room.connections) == 1
    assert driver.room.hooks == [("join", "ann"), ("leave", "ann"), ("join", "ann")]


async def test_f05_a_link_that_died_silently(room_host: RoomHost) -> None:
    t = room_host.room(Lobby)
    watcher, ann = await t.connect("watcher"), await t.connect("ann")
    others = Others(watcher, "ann")
    ann.send("before")
    await t.tick()
    pawn = t.room.entities.first(Pawn, owner="ann")
    assert pawn is not None
    messages = len(watcher.messages)
    ann.cut()
    ann.send("lost in the dead link")
    await t.advance(3)
    # The Wi-Fi changes: the old link stays dead, and the client comes from another port.
    await ann.drop()
    ann.mend()
    await ann.reconnected()
    await t.advance(20)
    assert ann.status == "open"
    assert ann.closed_with is None
    assert others.counts == {(1, 1)}
    assert "join" not in others.seen
    assert "leave" not in others.seen
    assert t.room.entities.all(Pawn) == [t.room.entities.first(Pawn, owner="watcher"), pawn]
    # Sequence and what it owns go on.
    ann.send("after")
    [mine] = ann.mine(Pawn)
    mine.pose = 7
    await t.tick(2)
    assert (pawn.moves, pawn.pose, mine.moves) == (2, 7, 2)
    assert [each["is"] for each in watcher.messages[messages:] if isinstance(each, dict)] == ["after"]


def test_f05_a_connection_that_nobody_saw_die() -> None:
    """The new link is there before the room has heard of the old one's end: at no time are there two."""
    driver = Driver(Lobby)
    watcher = driver.join("watcher")
    old = driver.join("ann", session=b"tab")
    pawn = driver.room.entities.first(Pawn, owner="ann")
    driver.advance(3)
    new = driver.rejoin(old, session=b"tab", attempt=1)
    assert new.log == ["welcome", "update"]
    assert [row["player"] for row in watcher.replica.presence().values()].count("ann") == 1
    driver.tick()
    assert driver.room.entities.all(Pawn, owner="ann") == [pawn]
    driver.assert_in_sync(watcher)
    driver.assert_in_sync(new)
    # Late packets of the old link, and its end, change nothing.
    driver.receive(old, encode_client(MessageFrame("late")))
    driver.write(old, pawn.id, pose=9)
    driver.leave(old)
    driver.leave(old, clean=True)
    driver.advance(12)
    driver.tick()
    assert (pawn.pose, list(driver.room.connections)) == (0, ["watcher", "ann"])
    assert driver.room.presence["ann"].connected
    assert ("gone", "ann") not in driver.room.hooks


async def test_f05_a_clean_leave_in_the_window(room_host: RoomHost) -> None:
    """The seat is free at once; the entry says so, and ends as after any leave (PRES-04): 10 s later."""
    t = room_host.room(Lobby, max_players=2)
    watcher, ann = await t.connect("watcher"), await t.connect("ann")
    await ann.drop()
    await t.tick()
    assert not watcher.presence["ann"].connected
    await ann.reconnected()
    await t.tick()
    assert watcher.presence["ann"].connected
    await ann.leave()
    await t.tick()
    assert t.room.hooks[-1] == ("leave", "ann")
    assert list(t.room.connections) == ["watcher"]
    assert not watcher.presence["ann"].connected
    bob = await t.connect("bob")
    await t.advance(10.1)
    assert "ann" not in watcher.presence
    assert watcher.entities.all(Pawn, owner="ann") == []
    assert t.room.hooks[-2:] == [("join", "bob"), ("gone", "ann")]
    assert bob.status == "open"
