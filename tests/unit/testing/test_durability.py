"""What outlives a leave, a drop, a crash and a hibernation; and how room code keeps time over them."""

from __future__ import annotations

import pytest

from playhall.room import Connection, Entity, Message, Room, Schema, Wake, f64, u32
from playhall.testing import RoomHost, TestRoom

DAY_S = 24 * 3600.0


class Board(Entity):
    n: u32 = 0


class Mine(Entity):
    n: u32 = 0


class Avatar(Entity):
    until: str


class Secret(Entity, hidden=True):
    word: str


class Seat(Connection):
    hits: int = 0


class Things(Room[Board, Mine, Seat]):
    """Makes one of everything for a player, and deletes of it what the player's leaving ends."""

    schema = Schema(state=Board, private=Mine, entities=[Avatar, Secret])

    def __init__(self) -> None:
        self.scratch = 0
        self.here_at_wake: list[str] | None = None

    def on_wake(self, wake: Wake) -> None:
        self.here_at_wake = [*self.connections, *self.presence]

    def on_message(self, conn: Seat, message: Message) -> None:
        for until in ("leave", "player leave", "deleted"):
            self.entities.add(Avatar(until=until), owner=conn.player)
        self.entities.add(Secret(word="xyzzy"))
        self.state.n = 7
        self.private(conn).n = 5
        self.presence.set(conn.player, status="here")
        conn.hits = self.scratch = 1

    def on_leave(self, conn: Seat) -> None:
        self._delete("leave", conn.player)

    def on_player_leave(self, player: str) -> None:
        self._delete("player leave", player)

    def _delete(self, until: str, owner: str) -> None:
        for avatar in self.entities.all(Avatar, owner=owner):
            if avatar.until == until:
                self.entities.delete(avatar)


def avatars(t: TestRoom[Things, Board, Mine]) -> set[tuple[str, str | None]]:
    return {(avatar.until, avatar.owner) for avatar in t.room.entities.all(Avatar)}


@pytest.mark.ledger("STATE-19", "STATE-20", "STATE-21", "STATE-22", "STATE-23", "STATE-24", "OWN-05")
@pytest.mark.parametrize(
    ("case", "left"),
    [
        ("leave", {"deleted"}),
        ("drop", {"player leave", "deleted"}),
        ("crash", {"leave", "player leave", "deleted"}),
        ("hibernate", {"deleted"}),
    ],
)
async def test_what_is_left_when_the_player_is_back(room_host: RoomHost, case: str, left: set[str]) -> None:
    t = room_host.room(Things)
    alice = await t.connect("alice")
    alice.send("make")
    await t.tick()
    match case:
        case "leave":
            await alice.leave()
            await t.advance(11)
            alice = await t.connect("alice")
        case "drop":
            await alice.drop()
            await t.advance(5)
            await alice.reconnected()
        case "crash":
            await t.crash()
            await alice.reconnected()
        case _:
            await t.hibernate()
            alice = await t.connect("alice")
    await t.tick()
    assert avatars(t) == {(until, "alice") for until in left}
    assert {(avatar.until, avatar.owner) for avatar in alice.entities.all(Avatar)} == avatars(t)
    assert [secret.word for secret in t.room.entities.all(Secret)] == ["xyzzy"]
    assert (alice.state.n, alice.private.n) == (7, 5)
    assert alice.presence["alice"].status == ("here" if case == "drop" else None)
    assert t.room.connections["alice"].hits == 0
    if case in ("crash", "hibernate"):
        assert t.room.scratch == 0


@pytest.mark.ledger("STATE-27")
async def test_the_avatar_of_a_player_who_does_not_return_after_a_crash_stays(room_host: RoomHost) -> None:
    t = room_host.room(Things)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.send("make")
    await t.tick()
    await alice.drop()
    await t.crash()
    await alice.leave()
    await bob.reconnected()
    await t.advance(60)
    assert t.room.here_at_wake == []
    assert list(t.room.presence) == ["bob"]
    assert ("player leave", "alice") in avatars(t)


class Round(Room[Board]):
    """A round of 60 s of which nothing passes while nobody is there."""

    schema = Schema(state=Board)

    def on_create(self) -> None:
        self.state.n = 60 * self.tick_rate

    def on_tick(self, dt: float) -> None:
        if self.connections and self.state.n:
            self.state.n -= 1
            if self.state.n == 0:
                self.broadcast("end")


@pytest.mark.ledger("HIB-24")
async def test_a_round_that_freezes_while_the_room_is_empty(room_host: RoomHost) -> None:
    t = room_host.room(Round)
    alice = await t.connect("alice")
    await t.advance(50)
    assert alice.messages == []
    await alice.leave()
    await t.advance(31)
    assert t.status == "hibernated"
    back = await t.connect("alice")
    await t.advance(5)
    assert back.messages == []
    await t.advance(6)
    assert back.messages == ["end"]


class Oven(Room[Board]):
    """Something is done at a tick, and time that the room was away counts."""

    schema = Schema(state=Board)

    def on_create(self) -> None:
        self.state.n = 100 * self.tick_rate

    def on_wake(self, wake: Wake) -> None:
        self.state.n = max(self.tick, self.state.n - round(wake.elapsed * self.tick_rate))


@pytest.mark.ledger("HIB-25")
async def test_a_deadline_that_catches_up_in_on_wake(room_host: RoomHost) -> None:
    t = room_host.room(Oven)
    await t.connect("alice")
    await t.advance(1)
    for away, left in ((50.0, 49), (40.0, 9), (3600.0, 0)):
        await t.hibernate()
        await t.advance(away)
        await t.wake()
        assert t.room.state.n - t.room.tick == left * t.room.tick_rate


class Field(Entity):
    wheat: f64 = 0
    since: f64 = 0
    days: u32 = 0

    def at(self, now: float) -> float:
        """How much has grown: the same sum in the room and on a client."""
        return self.wheat + (now - self.since) * 0.5


class Farm(Room[Field]):
    schema = Schema(state=Field)

    def on_create(self) -> None:
        self.state.since = self.now()

    def on_wake(self, wake: Wake) -> None:
        self.state.days += int(self.now() // DAY_S) - int(wake.saved_at // DAY_S)


@pytest.mark.ledger("HIB-26")
async def test_progress_goes_on_offline_by_the_wall_clock_and_writes_nothing(room_host: RoomHost) -> None:
    t = room_host.room(Farm)
    alice = await t.connect("alice")
    await t.tick()
    seen, started = alice.last_update, t.room.state.since
    await t.advance(10)
    assert alice.last_update is seen
    now = room_host.now().wall
    assert alice.state.at(now) == t.room.state.at(t.room.now()) == pytest.approx((now - started) * 0.5)
    await t.hibernate()
    await t.advance(2 * DAY_S)
    back = await t.connect("alice")
    now = room_host.now().wall
    assert back.state.at(now) == t.room.state.at(t.room.now()) == pytest.approx((now - started) * 0.5)
    assert (now - started) * 0.5 > DAY_S
    assert back.state.days == 2


@pytest.mark.ledger("STATE-07")
async def test_private_state_expires_a_day_after_its_player_left_and_the_room_does_not(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Things)
    alice = await t.connect("alice")
    alice.send("make")
    await t.tick()
    await t.hibernate()
    await t.advance(6.9 * DAY_S)
    back = await t.connect("alice")
    assert (back.state.n, back.private.n, t.room.state.n) == (7, 0, 7)
    assert len(t.room.entities.all(Secret)) == 1


async def test_which_entity_is_a_players_first_does_not_change_by_a_crash_or_a_hibernation(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Things)
    await t.connect("ann")
    entities = t.room.entities
    older = entities.add(Avatar(until=""), owner="bob")
    entities.add(Avatar(until=""), owner="ann")
    chosen = entities.add(Avatar(until=""), owner="ann", id=500)
    entities.delete(chosen)
    entities.add(Avatar(until=""), owner="ann", id=77)
    entities.set_owner(older, "ann")

    def order() -> tuple[list[int], list[int]]:
        entities = t.room.entities
        first = entities.first(Avatar, owner="ann")
        assert first is not None
        return [each.id for each in entities.all(Avatar)], [first.id, *(each.id for each in entities)]

    before = order()
    await t.tick()
    await t.crash()
    await t.tick(30)
    after_crash = order()
    await t.hibernate()
    await t.wake()
    assert before == after_crash == order()
