"""Presence: who is in a room, what others see of it, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.engine.backend import Tracker
from playhall.engine.presence import PresenceBook, name_in
from playhall.engine.schema import FIRST_PRESENCE_ID
from playhall.engine.updates import Change
from playhall.room import Connection, Entity, PresenceEntry, Room, Schema
from tests.support.rooms import Driver, Gate


class Lounge(Room):
    max_players = 1_024

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_join(self, conn: Connection) -> Any:
        self.calls.append(("join", conn.player, dict(self.presence)[conn.player]))
        if conn.meta == "kick":
            self.kick(conn)
        elif conn.meta == "refuse":
            raise ValueError("not you")
        elif isinstance(conn.meta, list):
            return conn.meta[0]
        return None

    def on_leave(self, conn: Connection) -> None:
        self.calls.append(("leave", conn.player, self.presence[conn.player]))

    def on_player_leave(self, player: str) -> None:
        self.calls.append(("player_leave", player, player in self.presence))


@pytest.fixture
def driver() -> Driver:
    return Driver(Lounge)


@pytest.mark.ledger("PRES-01", "PRES-02", "RTR-13")
def test_an_entry_for_each_player_with_the_name_of_its_token(driver: Driver) -> None:
    ann = driver.join("ann", meta={"name": "Ann 🎈"})
    driver.join("bob", meta={"name": "x" * 65})
    driver.join("cy", meta={"name": 7})
    driver.tick()
    assert {p: e.name for p, e in driver.room.presence.items()} == {"ann": "Ann 🎈", "bob": "", "cy": ""}
    assert driver.room.presence["ann"] == PresenceEntry("ann", "Ann 🎈", None, True)
    assert ann.replica.presence()["ann"] == {
        "player": "ann", "name": "Ann 🎈", "status": None, "connected": True,
    }  # fmt: skip
    assert len(driver.room.presence) == 3
    assert list(driver.room.presence) == ["ann", "bob", "cy"]


@pytest.mark.parametrize("meta", [None, [], {"name": "\ud800"}, {"name": None}, "name"])
def test_what_cannot_be_a_name_is_none(meta: Any) -> None:
    assert name_in(meta) == ""


@pytest.mark.ledger("PRES-04", "HOOK-10", "HOOK-18")
def test_an_entry_ends_10_s_after_the_last_connection(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.leave(bob)
    assert driver.room.calls[-1] == ("leave", "bob", PresenceEntry("bob", "", None, True))
    assert ann.replica.presence()["bob"]["connected"] is True
    driver.tick()
    assert driver.room.presence["bob"].connected is False
    assert ann.replica.presence()["bob"]["connected"] is False
    driver.advance(9.9)
    assert "bob" in driver.room.presence
    driver.advance(0.2)
    assert driver.room.calls[-1] == ("player_leave", "bob", False)
    driver.tick()
    assert "bob" not in ann.replica.presence()


@pytest.mark.ledger("PRES-05", "STATE-24")
def test_a_reconnect_within_the_grace_keeps_entry_and_status(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.room.presence.set("bob", status={"mood": "happy"})
    driver.leave(bob, clean=True)
    driver.tick()
    entry = next(id for id, held in ann.replica.entities.items() if held.values[0] == "bob")
    driver.advance(9)
    driver.rejoin(bob)
    driver.tick()
    assert ann.replica.presence()["bob"] == {
        "player": "bob", "name": "", "status": {"mood": "happy"}, "connected": True,
    }  # fmt: skip
    assert entry in ann.replica.entities
    assert all(not update.full for update in ann.replica.updates[1:])
    driver.advance(5)
    assert not any(call[0] == "player_leave" for call in driver.room.calls)


@pytest.mark.ledger("PRES-06")
def test_a_second_tab_does_not_change_the_entry(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    updates = len(ann.replica.updates)
    driver.join("bob", connected_at_ms=10_000)
    driver.tick(3)
    driver.advance(11)
    assert bob.closed is not None
    assert bob.closed.code == 4012
    assert len(ann.replica.updates) == updates
    assert driver.room.presence["bob"].connected


@pytest.mark.ledger("PRES-09")
def test_room_code_sets_name_and_status(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.room.presence.set("ann", name="Queen", status=[1, 2])
    driver.tick()
    assert bob.replica.presence()["ann"]["name"] == "Queen"
    assert ann.replica.presence()["ann"]["status"] == [1, 2]
    with pytest.raises(KeyError):
        driver.room.presence.set("nobody", name="x")


@pytest.mark.ledger("PRES-09")
@pytest.mark.parametrize(
    "values",
    [
        {"name": "x" * 65},
        {"name": 7},
        {"name": "\ud800"},
        {"status": "x" * 1_023},
        {"status": float("nan")},
        {"status": {1, 2}},
        {"name": "good", "status": "x" * 1_023},
        {"name": "x" * 65, "status": "good"},
    ],
)
def test_what_does_not_fit_raises_and_changes_nothing(driver: Driver, values: Any) -> None:
    driver.join("ann")
    driver.room.presence.set("ann", name="n", status="x" * 1_022)
    with pytest.raises((ValueError, TypeError)):
        driver.room.presence.set("ann", **values)
    assert driver.room.presence["ann"] == PresenceEntry("ann", "n", "x" * 1_022, True)


def test_a_status_set_by_the_room_corrects_what_the_player_shows_itself(driver: Driver) -> None:
    ann = driver.join("ann")
    driver.tick()
    [row] = [id for id, held in ann.replica.entities.items() if held.values[0] == "ann"]
    driver.write(ann, row, status="mine")
    driver.tick()
    driver.room.presence.set("ann", status=None)
    driver.tick()
    assert ann.replica.presence()["ann"]["status"] is None


@pytest.mark.parametrize("meta", ["kick", "refuse"])
def test_who_is_refused_in_on_join_is_never_shown(driver: Driver, meta: str) -> None:
    ann = driver.join("ann")
    updates = len(ann.replica.updates)
    bob = driver.join("bob", meta=meta)
    driver.tick(2)
    driver.advance(11)
    assert bob.closed is not None
    assert bob.closed.code == 4006
    assert bob.replica.updates == []
    assert len(ann.replica.updates) == updates
    assert "bob" not in driver.room.presence
    # What on_join left behind can be cleared; on_leave does not run for a join that never took effect.
    assert [call[0] for call in driver.room.calls if call[1] == "bob"] == ["join", "player_leave"]


def test_who_is_refused_on_a_reconnect_stays_until_the_grace_is_over(driver: Driver) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.leave(bob)
    driver.join("bob", meta="refuse")
    driver.tick()
    assert ann.replica.presence()["bob"]["connected"] is False
    driver.advance(10)
    assert "bob" not in driver.room.presence


@pytest.mark.ledger("STATE-24")
def test_presence_is_empty_after_a_wake(driver: Driver) -> None:
    driver.join("ann")
    driver.room.presence.set("ann", status="here")
    driver.tick()
    woken = driver.wake()
    assert len(woken.room.presence) == 0
    woken.join("ann")
    assert woken.room.presence["ann"].status is None


@pytest.mark.ledger("PRES-15")
def test_entries_are_no_entities_and_take_none_of_their_ids() -> None:
    class Chair(Entity):
        pass

    class Den(Lounge):
        schema = Schema(entities=[Chair])

    driver = Driver(Den)
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    entities = driver.room.entities
    assert list(entities) == []
    assert [entities.add(Chair()).id for _ in range(2)] == [2, 3]
    entries = [id for id in ann.replica.entities if id >= FIRST_PRESENCE_ID]
    assert len(entries) == 2
    assert [entities.get(id) for id in entries] == [None, None]
    with pytest.raises(ValueError, match="an id is from"):
        entities.add(Chair(), id=entries[0])
    entities.add(Chair(), id=FIRST_PRESENCE_ID - 1)
    driver.tick()
    for client in (ann, bob):
        assert [id for id in client.replica.entities if id >= FIRST_PRESENCE_ID] == entries
        driver.assert_in_sync(client)


@pytest.mark.ledger("PRES-11")
def test_over_the_cap_whoever_has_been_away_longest_goes() -> None:
    book = PresenceBook(Tracker(), 0)
    for n in range(1_024):
        book.connect(f"p{n}", "")
    assert not book.has_space
    book.lose("p9", 50.0)
    book.lose("p5", 40.0)
    book.lose("p5", 60.0)
    assert book.overflow() == "p5"
    book.remove("p5")
    assert book.overflow() is None
    assert book.has_space


@pytest.mark.ledger("PRES-11")
def test_a_join_over_the_cap_evicts(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhall.engine.presence.MAX_PRESENCE", 3)
    clients = [driver.join(f"p{n}") for n in range(3)]
    driver.leave(clients[1])
    late = driver.join("late")
    assert late.joined is not None
    assert list(driver.room.presence) == ["p0", "p2", "late"]
    assert ("player_leave", "p1", False) in driver.room.calls
    later = driver.join("later")
    assert later.closed is not None
    assert later.closed.code == 4003


@pytest.mark.ledger("PRES-13")
@pytest.mark.parametrize("meta", ["kick", "refuse"])
def test_a_reconnect_that_on_join_does_not_let_in_shows_nothing(driver: Driver, meta: str) -> None:
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.leave(bob)
    driver.tick()
    assert ann.replica.presence()["bob"]["connected"] is False
    entry = next(id for id, held in ann.replica.entities.items() if held.values[0] == "bob")
    updates = len(ann.replica.updates)
    driver.advance(6)
    again = driver.rejoin(bob, meta=meta)
    assert again.closed is not None
    assert driver.room.presence["bob"].connected is False
    driver.join("cy")  # whose state goes out before the next tick
    driver.tick()
    told = [operation for update in ann.replica.updates[updates:] for operation in update.operations]
    shown = [operation for operation in told if operation.id == entry]
    assert all(operation == Change(entry, {3: False}) for operation in shown)  # connected, which it is not
    assert ann.replica.presence()["bob"]["connected"] is False
    driver.advance(5)  # the grace goes on from when bob was lost
    assert "bob" not in driver.room.presence


def test_a_slow_join_is_shown_and_its_drop_leaves_after_the_grace(driver: Driver) -> None:
    ann = driver.join("ann")
    bob = driver.join("bob", meta=[Gate()])
    driver.tick()
    assert ann.replica.presence()["bob"]["connected"] is True
    driver.leave(bob)
    driver.tick()
    assert ann.replica.presence()["bob"]["connected"] is False
    driver.advance(11)
    assert [call[0] for call in driver.room.calls if call[1] == "bob"] == ["join", "player_leave"]
