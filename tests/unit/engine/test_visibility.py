"""What each connection sees: by interest, by owning it, by its limits; and when room code is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import new_class
from typing import Any

import pytest

from playhall.engine.outputs import FramesOut, LogOut, RecordOut
from playhall.engine.schema import FIRST_PRESENCE_ID
from playhall.engine.updates import Change, Correct, Enter, Leave, Owner
from playhall.room import (
    EVERYWHERE,
    Connection,
    Entity,
    Interest,
    Limit,
    PresenceEntry,
    Room,
    Schema,
    combine,
    f32,
    grid,
    owner_only,
    u8,
    u32,
    writable,
)
from tests.support.rooms import Driver, TestClient


class Dot(Entity):
    x: f32 = 0
    y: f32 = 0
    team: u8 = 0
    hand: owner_only[u8] = 0
    pose: writable[u8] = 0


class Rock(Entity):
    size: u32 = 0


class Trap(Entity, hidden=True):
    x: f32 = 0


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0


SCHEMA = Schema(state=Board, private=Mine, entities=[Dot, Rock, Trap])


class Seat(Connection):
    point: tuple[float, float] | None = (0.0, 0.0)


class Asked(Interest):
    """Shows by team, and notes what it is asked."""

    def __init__(self, limit: Limit | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.limit = limit
        self.refused: set[int] = set()
        self.keys: Callable[[Any], Iterable[Any]] = lambda e: [f"team {e.team}" if isinstance(e, Dot) else 7]
        self.subscribed: dict[str, Iterable[Any]] = {}

    def keys_of(self, room: Any, entity: Any) -> Iterable[Any]:
        assert isinstance(room, Room)
        self.calls.append(("keys_of", entity.id))
        return self.keys(entity)

    def subscriptions_of(self, room: Any, conn: Any) -> Iterable[Any]:
        assert isinstance(room, Room)
        self.calls.append(("subscriptions_of", conn.player))
        return self.subscribed.get(conn.player, ["team 0"])

    def sees(self, room: Any, conn: Any, entity: Any) -> bool:
        assert isinstance(room, Room)
        self.calls.append(("sees", conn.player, entity.id))
        return entity.id not in self.refused


def room_with(what: Interest | None, **members: Any) -> Driver:
    room: Any = new_class(
        "Game",
        (Room[Board, Mine, Seat],),
        exec_body=lambda body: body.update({"schema": SCHEMA, "interest": what, **members}),
    )
    return Driver(room)


def near(margin: float = 0.0, **options: Any) -> Any:
    return grid(cell_size=10, range=50, margin=margin, around=lambda room, conn: conn.point, **options)


def seen(client: TestClient) -> set[int]:
    return {id for id in client.replica.entities if 1 < id < FIRST_PRESENCE_ID}


def told(client: TestClient) -> list[Any]:
    return client.replica.updates[-1].operations


def present(client: TestClient) -> set[str]:
    return set(client.replica.presence())


def move(driver: Driver, client: TestClient, point: tuple[float, float] | None) -> None:
    driver.room.connections[client.player].point = point


# Keys


@pytest.mark.ledger("INT-01")
def test_without_interest_everyone_sees_everything_but_what_is_hidden() -> None:
    driver = room_with(None)
    dots = [driver.room.entities.add(Dot(x=1000 * n)) for n in range(3)]
    trap = driver.room.entities.add(Trap())
    ann, bob = driver.join("ann"), driver.join("bob")
    for client in (ann, bob):
        assert seen(client) == {dot.id for dot in dots}
        assert trap.id not in client.replica.entities


@pytest.mark.ledger("INT-02", "INT-17")
@pytest.mark.parametrize(
    ("key", "subscribed", "shared"),
    [
        ("red", "red", True),
        ("red", "blue", False),
        (3, 3, True),
        (3, 3.0, True),
        (2.5, 2.5, True),
        (3, "3", False),
        (EVERYWHERE, "red", True),
    ],
)
def test_an_entity_is_seen_by_those_that_share_a_key(key: Any, subscribed: Any, shared: bool) -> None:
    interest = Asked()
    interest.keys = lambda entity: ["other", key]
    interest.subscribed = {"ann": [subscribed, "more"]}
    driver = room_with(interest)
    dot = driver.room.entities.add(Dot())
    assert (dot.id in seen(driver.join("ann"))) is shared


def test_an_entity_without_keys_is_seen_by_nobody() -> None:
    interest = Asked()
    interest.keys = lambda entity: []
    driver = room_with(interest)
    driver.room.entities.add(Dot())
    assert seen(driver.join("ann")) == set()


@pytest.mark.ledger("INT-03", "INT-04")
def test_keys_are_asked_of_what_has_changed_and_subscriptions_of_everyone() -> None:
    interest = Asked()
    driver = room_with(interest)
    dots = [driver.room.entities.add(Dot()) for _ in range(3)]
    driver.join("ann")
    driver.join("bob")
    driver.tick()
    interest.calls.clear()
    dots[1].x = 5
    driver.tick()
    keyed = [call for call in interest.calls if call[0] == "keys_of"]
    assert keyed == [("keys_of", dots[1].id)]
    interest.calls.clear()
    driver.tick()
    assert [call for call in interest.calls if call[0] != "sees"] == [
        ("subscriptions_of", "ann"),
        ("subscriptions_of", "bob"),
    ]


@pytest.mark.ledger("INT-05")
def test_what_comes_to_share_a_key_enters_whole_and_what_does_not_any_more_leaves() -> None:
    driver = room_with(Asked())
    dot = driver.room.entities.add(Dot(team=1, x=3))
    ann = driver.join("ann")
    assert seen(ann) == set()
    dot.team = 0
    driver.tick()
    assert [operation.id for operation in told(ann)] == [dot.id]
    assert ann.replica.fields(dot.id) == {"x": 3.0, "y": 0.0, "team": 0, "hand": 0, "pose": 0}
    dot.team = 1
    driver.tick()
    assert told(ann) == [Leave(dot.id)]


@pytest.mark.ledger("INT-06")
def test_sees_is_asked_each_tick_of_each_pair_that_shares_a_key() -> None:
    interest = Asked()
    interest.subscribed = {"bob": ["team 1"]}
    driver = room_with(interest)
    zero, one = (driver.room.entities.add(Dot(team=team)) for team in (0, 1))
    ann, bob = driver.join("ann"), driver.join("bob")
    for _ in range(2):
        interest.calls.clear()
        driver.tick()
        pairs = {call[1:] for call in interest.calls if call[0] == "sees"}
        assert pairs == {("ann", zero.id), ("bob", one.id)}
    interest.refused = {zero.id}
    driver.tick()
    assert told(ann) == [Leave(zero.id)]
    assert seen(bob) == {one.id}


@pytest.mark.ledger("INT-16")
def test_sees_is_asked_of_everything_that_shares_a_key_whatever_the_key() -> None:
    class Merged(Interest):
        grid = near(prefix="g:", kinds=[Dot])

        def keys_of(self, room: Any, entity: Any) -> Iterable[str]:
            return [*self.grid.keys_of(room, entity), "all"]

        def subscriptions_of(self, room: Any, conn: Any) -> Iterable[str]:
            return [*self.grid.subscriptions_of(room, conn), "all"]

        def sees(self, room: Any, conn: Any, entity: Any) -> bool:
            return bool(self.grid.sees(room, conn, entity))

    driver = room_with(Merged())
    rock = driver.room.entities.add(Rock())
    driver.room.entities.add(Dot(x=500))
    close = driver.room.entities.add(Dot(x=40))
    assert seen(driver.join("ann")) == {rock.id, close.id}


def test_an_update_of_what_is_seen_only_has_a_version_and_no_record() -> None:
    interest = Asked()
    driver = room_with(interest)
    dot = driver.room.entities.add(Dot())
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    driver.clear()
    version = driver.core.version
    interest.refused = {dot.id}
    driver.tick()
    assert told(ann) == told(bob) == [Leave(dot.id)]
    assert ann.replica.version == driver.core.version == version + 1
    assert driver.of(RecordOut) == []
    driver.clear()
    driver.tick()
    assert driver.outputs == []
    assert driver.core.version == version + 1


def test_a_join_that_changes_nothing_makes_no_version() -> None:
    class Bare(Room):
        schema = Schema(entities=[Dot])
        interest = Asked()

    driver = Driver(Bare)
    dot = driver.room.entities.add(Dot())
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    version, updates = driver.core.version, len(bob.replica.updates)
    again = driver.rejoin(ann)
    assert again.log == ["welcome", "update"]
    assert seen(again) == {dot.id}
    assert driver.core.version == version
    assert len(bob.replica.updates) == updates


# What is not interest's


@pytest.mark.ledger("INT-21")
def test_interest_is_not_asked_of_state_presence_and_hidden_kinds() -> None:
    interest = Asked()
    interest.keys = lambda entity: [EVERYWHERE]
    driver = room_with(interest)
    trap = driver.room.entities.add(Trap())
    dot = driver.room.entities.add(Dot())
    ann = driver.join("ann")
    trap.x = 7
    other = driver.room.entities.add(Trap())
    bob = driver.join("bob")
    driver.room.state.moves = 1
    driver.room.private("ann").coins = 1
    trap.x = 1
    driver.room.presence.set("bob", name="Bob")
    driver.tick()
    assert {call[-1] for call in interest.calls if call[0] != "subscriptions_of"} == {dot.id}
    assert present(ann) == {"ann", "bob"}
    assert ann.replica.fields(0) == {"moves": 1}
    assert ann.replica.fields(1) == {"coins": 1}
    for client in (ann, bob):
        assert {trap.id, other.id}.isdisjoint(client.replica.entities)


@pytest.mark.ledger("OWN-19", "INT-21")
def test_a_player_sees_what_it_owns() -> None:
    driver = room_with(near())
    dot = driver.room.entities.add(Dot(x=1000, hand=7), owner="ann")
    ann, bob = driver.join("ann"), driver.join("bob")
    assert seen(ann) == {dot.id}
    assert seen(bob) == set()
    driver.room.entities.set_owner(dot, "bob")
    driver.tick()
    assert told(ann) == [Leave(dot.id)]
    assert bob.replica.fields(dot.id)["hand"] == 7
    assert Owner(dot.id, "bob") in told(bob)
    dot.pose = 4
    driver.tick()
    assert Correct(dot.id, {4: 4}) in told(bob)


def test_what_only_owners_are_told_goes_to_the_owner_of_what_all_see() -> None:
    driver = room_with(near())
    dot = driver.room.entities.add(Dot(hand=7), owner="ann")
    clients = [driver.join(name) for name in ("ann", "bob", "cy")]
    assert [client.replica.fields(dot.id)["hand"] for client in clients] == [7, 0, 0]
    dot.x, dot.hand = 5, 8
    driver.tick()
    assert [client.replica.fields(dot.id)["hand"] for client in clients] == [8, 0, 0]
    driver.room.entities.set_owner(dot, "bob")
    driver.tick()
    assert [client.replica.fields(dot.id)["hand"] for client in clients] == [8, 8, 0]


@pytest.mark.ledger("PRES-10", "INT-21")
def test_presence_ignores_interest() -> None:
    interest = Asked()
    interest.keys = lambda entity: []
    driver = room_with(interest)
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    assert present(ann) == present(bob) == {"ann", "bob"}
    driver.leave(bob)
    driver.tick()
    bob = driver.rejoin(bob)
    assert present(bob) == {"ann", "bob"}


@pytest.mark.ledger("PRES-12")
def test_a_room_can_hide_presence_entries() -> None:
    blocked: set[tuple[str, str]] = set()

    def sees_presence(self: Any, viewer: Seat, entry: PresenceEntry) -> bool:
        assert isinstance(viewer, Seat)
        return (viewer.player, entry.player) not in blocked

    driver = room_with(None, sees_presence=sees_presence)
    dot = driver.room.entities.add(Dot())
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    assert present(ann) == present(bob) == {"ann", "bob"}
    blocked |= {("ann", "bob"), ("ann", "ann")}
    driver.tick()
    assert present(ann) == {"ann"}
    assert present(bob) == {"ann", "bob"}
    blocked.clear()
    driver.tick()
    assert present(ann) == {"ann", "bob"}
    blocked.add(("bob", "cy"))
    cy = driver.join("cy")
    assert present(bob) == {"ann", "bob"}
    assert present(cy) == {"ann", "bob", "cy"}
    assert seen(cy) == {dot.id}


# Combining


@pytest.mark.ledger("INT-14", "INT-15")
@pytest.mark.parametrize("prefix", ["", "d:"])
def test_each_part_of_a_combination_keeps_its_own_rule(prefix: str) -> None:
    interest = combine(
        near(kinds=[Dot], prefix=prefix),
        grid(
            cell_size=10,
            radius=1,
            around=lambda room, conn: conn.point,
            kinds=[Rock],
            position=lambda room, e: (e.size, 0),
        ),
        Asked(),
    )
    driver = room_with(interest)
    add = driver.room.entities.add
    close, far, mate = add(Dot(x=50, team=1)), add(Dot(x=50.1, team=1)), add(Dot(x=999))
    # By cells and not by distance: the rock is in the next one, and beyond that is not.
    rock, other = add(Rock(size=19)), add(Rock(size=20))
    ann = driver.join("ann")
    assert seen(ann) == {close.id, mate.id, rock.id}
    assert {far.id, other.id}.isdisjoint(seen(ann))


# Margins


def test_with_a_margin_what_moves_to_and_fro_stays() -> None:
    # Field log F18, 1; decision Q-80.
    driver = room_with(grid(cell_size=10, range=50, margin=1, around=lambda room, conn: conn.point))
    dot = driver.room.entities.add(Dot(x=60))
    ann = driver.join("ann")
    dot.x = 50.5
    driver.tick()
    assert seen(ann) == set()
    updates = len(ann.replica.updates)
    for step in range(600):
        dot.x = 49.9 if step % 2 else 50.1
        driver.tick()
    assert seen(ann) == {dot.id}
    dot.x = 51.5
    driver.tick()
    assert seen(ann) == set()
    moves = [o for update in ann.replica.updates[updates:] for o in update.operations]
    assert [type(o) for o in moves if not isinstance(o, Change)] == [Enter, Leave]


def test_a_margin_is_for_what_the_grid_showed_until_now() -> None:
    team = Asked()
    driver = room_with(combine(near(margin=10, kinds=[Dot]), team))
    dot = driver.room.entities.add(Dot(x=55))
    ann, bob = driver.join("ann"), driver.join("bob")
    assert seen(ann) == {dot.id}, "by its team"
    team.refused = {dot.id}
    driver.tick()
    assert seen(ann) == set(), "the grid has not shown it yet"
    dot.x = 45
    driver.tick()
    assert seen(ann) == {dot.id}
    dot.x = 55
    driver.tick()
    assert seen(ann) == {dot.id}
    move(driver, bob, (1000, 0))
    driver.tick()
    move(driver, bob, (0, 0))
    driver.tick()
    assert seen(ann) == {dot.id}
    assert seen(bob) == set(), "it has been away"
    driver.room.entities.delete(dot)
    again = driver.room.entities.add(Dot(x=55), id=dot.id)
    team.refused = {again.id}
    driver.tick()
    assert seen(ann) == set(), "another entity of the same id"


def test_who_looks_elsewhere_and_back_within_a_tick_is_told_nothing() -> None:
    # Field log F18, 3.
    driver = room_with(combine(near(), near(prefix="b:")))
    driver.room.entities.add(Dot())
    ann = driver.join("ann")
    driver.tick()
    driver.clear()
    move(driver, ann, (1000, 0))
    move(driver, ann, (0, 0))
    driver.tick()
    assert driver.of(FramesOut) == []
    move(driver, ann, (1000, 0))
    driver.tick()
    assert seen(ann) == set()
    move(driver, ann, None)
    driver.tick()
    move(driver, ann, (0, 0))
    driver.tick()
    assert [type(operation) for operation in told(ann)] == [Enter]


@pytest.mark.parametrize("then", ["changes", "is deleted", "is replaced"])
def test_what_leaves_and_comes_back_while_nothing_is_sent_is_shown_once(then: str) -> None:
    # Field log F18, 2.
    driver = room_with(near())
    dot = driver.room.entities.add(Dot(x=10))
    ann = driver.join("ann", credit=1)
    dot.x = 1000
    driver.tick(20)
    dot.x, dot.y, dot.team, dot.pose = 20, 5, 3, 9
    driver.tick(20)
    if then != "changes":
        driver.room.entities.delete(dot)
    if then == "is replaced":
        driver.room.entities.add(Dot(x=30), id=dot.id)
    driver.tick(20)
    assert len(ann.replica.updates) == 1
    driver.drain(ann)
    driver.tick()
    if then == "changes":
        assert told(ann) == [Change(dot.id, {0: 20.0, 1: 5.0, 2: 3, 4: 9})]
    elif then == "is deleted":
        assert told(ann) == [Leave(dot.id)]
    else:
        assert [type(operation) for operation in told(ann)] == [Leave, Enter]
        assert ann.replica.fields(dot.id)["x"] == 30


# Limits


def best(driver_limit: int, **options: Any) -> Limit:
    return Limit(driver_limit, priority=lambda room, conn, entity: entity.x, **options)


@pytest.mark.ledger("INT-18")
def test_a_limit_keeps_the_best_and_lets_go_of_what_is_well_below() -> None:
    interest = Asked(best(10))
    driver = room_with(interest)
    dots = [driver.room.entities.add(Dot(x=100 - n)) for n in range(14)]
    ids = [dot.id for dot in dots]
    ann = driver.join("ann")
    assert seen(ann) == set(ids[:10])
    # The eleventh becomes the tenth: it enters, and what it is before now stays at 110 %.
    dots[10].x = 91.5
    driver.tick()
    assert seen(ann) == set(ids[:11])
    # Twelfth is worse than 110 %.
    dots[11].x = 200
    driver.tick()
    assert seen(ann) == {*ids[:9], ids[10], ids[11]}
    dots[13].x = math.inf
    dots[0].x = -math.inf
    driver.tick()
    assert ids[13] in seen(ann)
    assert ids[0] not in seen(ann)


@pytest.mark.ledger("INT-06")
def test_the_limit_comes_last_and_ties_go_to_the_lower_id() -> None:
    interest = Asked(Limit(3, priority=lambda room, conn, entity: 1))
    driver = room_with(interest)
    dots = [driver.room.entities.add(Dot()) for _ in range(6)]
    mine = driver.room.entities.add(Dot(), owner="ann")
    interest.refused = {dots[0].id}
    driver.tick()
    dots[1].x = 5
    ann = driver.join("ann")
    assert seen(ann) == {*(dot.id for dot in dots[1:4]), mine.id}


def log(driver: Driver, event: str) -> list[dict[str, Any]]:
    return [out.fields for out in driver.of(LogOut) if out.event == event and out.level == "error"]


@pytest.mark.ledger("INT-19")
def test_of_too_many_keys_some_are_left_out_and_the_log_says_so_once() -> None:
    interest = Asked()
    interest.subscribed = {"ann": range(4_097)}
    interest.keys = lambda entity: [int(entity.x)]
    driver = room_with(interest)
    last, beyond = driver.room.entities.add(Dot(x=4_095)), driver.room.entities.add(Dot(x=4_096))
    ann = driver.join("ann")
    driver.tick(3)
    assert seen(ann) == {last.id}
    [line] = log(driver, "room.too_many_keys")
    assert (line["player"], line["limit"]) == ("ann", 4_096)
    interest.subscribed = {"ann": range(1, 4_097)}
    driver.tick()
    assert seen(ann) == {last.id, beyond.id}
    interest.subscribed = {"ann": range(4_097)}
    driver.tick(2)
    assert len(log(driver, "room.too_many_keys")) == 2


@pytest.mark.ledger("INT-20", "OWN-19", "PRES-10")
@pytest.mark.parametrize("interest", [None, "all"])
def test_of_too_many_entities_some_are_left_out_and_the_log_says_so_once(interest: str | None) -> None:
    asked = Asked()
    asked.keys = lambda entity: [EVERYWHERE]
    driver = room_with(None if interest is None else asked)
    rocks = [driver.room.entities.add(Rock()) for _ in range(16_381)]
    mine = driver.room.entities.add(Rock(), owner="ann")
    ann = driver.join("ann")
    driver.tick()
    # With its player's presence they are 16,383.
    assert len(seen(ann)) == 16_382
    more = [driver.room.entities.add(Rock()) for _ in range(2)]
    driver.tick(2)
    assert len(seen(ann)) == 16_383
    assert mine.id in seen(ann)
    [line] = log(driver, "room.too_many_visible")
    assert (line["player"], line["limit"]) == ("ann", 16_384)
    more[1].size = 5
    rocks[0].size = 6
    driver.tick()
    assert ann.replica.fields(rocks[0].id) == {"size": 6}
    for owner in ("ann", None):
        driver.room.entities.set_owner(more[1], owner)
        driver.tick()
        assert (more[1].id in seen(ann), len(seen(ann))) == (owner is not None, 16_383)
    # One more person takes the place of a rock, at once.
    driver.join("bob", credit=1)
    assert present(ann) == {"ann", "bob"}
    assert len(seen(ann)) == 16_382
    driver.room.entities.delete(rocks[1])
    driver.room.entities.delete(rocks[2])
    driver.tick()
    assert seen(ann) == {entity.id for entity in driver.room.entities}
    assert ann.replica.fields(more[1].id) == {"size": 5}
    more[1].size = 7
    driver.tick()
    assert told(ann) == [Change(more[1].id, {0: 7})]
    assert [line["player"] for line in log(driver, "room.too_many_visible")] == ["ann", "bob"]


# What is sent


@pytest.mark.ledger("ENT-16")
def test_those_who_see_the_same_are_sent_one_body() -> None:
    driver = room_with(near())
    here, there = driver.room.entities.add(Dot()), driver.room.entities.add(Dot(x=1000))
    ann, bob, cy, dan = (driver.join(name) for name in ("ann", "bob", "cy", "dan"))
    move(driver, cy, (1000, 0))
    move(driver, dan, (1000, 0))
    driver.tick()
    driver.clear()
    here.y, there.y = 1, 2
    driver.tick()
    frames = driver.groups
    assert sorted(list(frame.links) for frame in frames) == [[ann.link, bob.link], [cy.link, dan.link]]
    assert all(len(frame.heads) == 1 for frame in frames)
    driver.clear()
    here.y = 3
    driver.room.private("bob").coins = 5
    driver.tick()
    assert [list(frame.links) for frame in driver.groups] == [[ann.link, bob.link], [bob.link]]
    assert told(ann) == [Change(here.id, {1: 3.0})]
    assert told(bob) == [Change(here.id, {1: 3.0}), Change(1, {0: 5})]


@pytest.mark.ledger("INT-05")
def test_a_join_asks_the_others_only_about_what_has_changed() -> None:
    interest = Asked()

    def on_join(self: Any, conn: Seat) -> None:
        self.entities.add(Dot(), owner=conn.player)

    driver = room_with(interest, on_join=on_join)
    for _ in range(5):
        driver.room.entities.add(Dot())
    ann = driver.join("ann")
    driver.tick()
    interest.calls.clear()
    bob = driver.join("bob")
    avatar = driver.room.entities.first(Dot, owner="bob")
    assert avatar.id in seen(ann)
    assert [call for call in interest.calls if call[1] == "ann"] == [("sees", "ann", avatar.id)]
    avatar.team = 1
    driver.leave(bob)
    driver.join("cy")
    assert avatar.id not in seen(ann)


@pytest.mark.ledger("OWN-19")
def test_what_a_join_gives_to_others_or_takes_from_them_is_told_at_once() -> None:
    def on_join(self: Any, conn: Seat) -> None:
        if conn.player == "bob":
            self.entities.set_owner(self.given, "ann")
            self.entities.set_owner(self.taken, None)

    driver = room_with(Asked(), on_join=on_join)
    given = driver.room.given = driver.room.entities.add(Dot(team=1))
    taken = driver.room.taken = driver.room.entities.add(Dot(team=1), owner="ann")
    ann = driver.join("ann")
    assert seen(ann) == {taken.id}
    driver.join("bob")
    assert seen(ann) == {given.id}


# Byte budgets


def test_with_a_budget_changes_wait_merge_and_all_arrive() -> None:
    # Decision Q-81.
    # Each change of x takes 6 bytes: tick after tick there are bytes for three or four of ten.
    driver = room_with(Asked(Limit(99, priority=lambda room, conn, entity: -entity.id, bytes_per_second=400)))
    dots = [driver.room.entities.add(Dot()) for _ in range(10)]
    mine = driver.room.entities.add(Dot(), owner="ann")
    ann = driver.join("ann")
    assert seen(ann) == {*(dot.id for dot in dots), mine.id}
    changes: dict[int, int] = dict.fromkeys((dot.id for dot in (*dots, mine)), 0)
    for tick in range(1, 201):
        for dot in (*dots, mine):
            dot.x = tick
        driver.tick()
        for operation in told(ann):
            changes[operation.id] += 1
    counts = [changes[dot.id] for dot in dots]
    assert changes[mine.id] == 200
    # Ten seconds, and a bucket that was full.
    assert 4_000 <= 6 * sum(counts) <= 4_000 + 400 + 6
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] > 0
    # With nothing new it catches up, and then is silent.
    driver.tick(40)
    assert {row["x"] for row in ann.replica.of_kind(Dot).values()} == {200.0}
    driver.clear()
    driver.tick(5)
    assert driver.of(FramesOut) == []


def test_a_budget_holds_back_what_enters_and_never_what_leaves_or_is_owned() -> None:
    interest = Asked(Limit(99, priority=lambda room, conn, entity: 0, bytes_per_second=20))
    driver = room_with(interest)
    ann = driver.join("ann")
    driver.tick()
    dots = [driver.room.entities.add(Dot()) for _ in range(6)]
    driver.tick()
    assert 0 < len(seen(ann)) < 6
    waiting = next(dot for dot in dots if dot.id not in seen(ann))
    driver.room.entities.set_owner(waiting, "ann")
    driver.tick()
    assert waiting.id in seen(ann)
    shown = seen(ann) - {waiting.id}
    for dot in dots:
        driver.room.entities.delete(dot)
    driver.tick()
    assert seen(ann) == set()
    assert {operation.id for operation in told(ann)} >= shown


def test_with_a_budget_a_change_of_hands_is_told_at_once() -> None:
    driver = room_with(Asked(Limit(99, priority=lambda room, conn, entity: 0, bytes_per_second=1)))
    dots = [driver.room.entities.add(Dot()) for _ in range(3)]
    ann = driver.join("ann")
    for dot in dots:
        dot.x = 5
    driver.tick()
    assert len(told(ann)) == 1
    driver.room.entities.set_owner(dots[2], "bob")
    driver.tick()
    assert told(ann) == [Change(dots[2].id, {0: 5.0}), Owner(dots[2].id, "bob")]


def test_what_a_budget_kept_back_is_told_when_the_budget_is_gone() -> None:
    interest = Asked(Limit(99, priority=lambda room, conn, entity: 0, bytes_per_second=1))
    driver = room_with(interest)
    ann = driver.join("ann")
    driver.tick()
    dots = [driver.room.entities.add(Dot()) for _ in range(4)]
    driver.tick(2)
    assert len(seen(ann)) == 1
    interest.limit = None
    driver.tick(2)
    assert seen(ann) == {dot.id for dot in dots}


def test_two_with_budgets_are_told_what_each_lacks() -> None:
    def priority(room: Any, conn: Seat, entity: Dot) -> float:
        return entity.id if conn.player == "ann" else -entity.id

    interest = Asked(Limit(99, priority=priority, bytes_per_second=1))
    driver = room_with(interest)
    dots = [driver.room.entities.add(Dot()) for _ in range(2)]
    ann, bob = driver.join("ann"), driver.join("bob")
    for dot in dots:
        dot.x = 5
    driver.tick()
    assert [told(client)[0].id for client in (ann, bob)] == [dots[1].id, dots[0].id]
    for dot in dots:
        dot.y = 6
    interest.limit = Limit(99, priority=priority, bytes_per_second=10_000)
    driver.tick()
    for client in (ann, bob):
        assert [(row["x"], row["y"]) for row in client.replica.of_kind(Dot).values()] == [(5.0, 6.0)] * 2


def test_a_resume_of_a_view_with_a_budget_brings_all_it_holds_up_to_date() -> None:
    driver = room_with(Asked(Limit(99, priority=lambda room, conn, entity: 0, bytes_per_second=20)))
    dots = [driver.room.entities.add(Dot()) for _ in range(8)]
    ann = driver.join("ann")
    for dot in dots:
        dot.x = 5
    driver.tick()
    assert {row["x"] for row in ann.replica.of_kind(Dot).values()} == {0.0, 5.0}
    driver.leave(ann)
    ann = driver.rejoin(ann)
    assert ann.joined is not None
    assert ann.joined.resumed
    assert {row["x"] for row in ann.replica.of_kind(Dot).values()} == {5.0}
    assert not [operation for operation in told(ann) if isinstance(operation, Enter | Leave)]


# Room code that goes wrong


def failing(hook: str, what: Callable[[], Any]) -> Interest:
    class Wrong(Asked):
        pass

    setattr(Wrong, hook, lambda self, *args: what())
    return Wrong()


def boom() -> Any:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("hook", "what", "says"),
    [
        ("keys_of", boom, "RuntimeError: boom"),
        ("keys_of", lambda: [True], "TypeError: a key is str, int or float, not True"),
        ("keys_of", lambda: [None], "TypeError: a key is str, int or float, not None"),
        ("keys_of", lambda: [math.nan], "ValueError: NaN cannot be a key"),
        ("keys_of", lambda: "red", "TypeError: keys come in a list or the like, not as 'red'"),
        ("keys_of", lambda: None, "TypeError: keys come in a list or the like, not as None"),
        ("subscriptions_of", boom, "RuntimeError: boom"),
        ("subscriptions_of", lambda: [b"red"], "TypeError: a key is str, int or float, not b'red'"),
        ("subscriptions_of", lambda: None, "TypeError: keys come in a list or the like, not as None"),
        ("sees", boom, "RuntimeError: boom"),
        ("sees", lambda: None, "TypeError: sees must return True or False, not None"),
    ],
)
def test_interest_that_raises_stops_the_room_and_says_where(hook: str, what: Any, says: str) -> None:
    driver = room_with(failing(hook, what))
    dot = driver.room.entities.add(Dot())
    driver.join("ann")
    driver.tick()
    [fields] = log(driver, "room.hook_failed")
    expected: dict[str, Any] = {"hook": f"interest.{hook}", "error": says}
    if hook != "subscriptions_of":
        expected |= {"kind": "dot", "id": dot.id}
    if hook != "keys_of":
        expected["player"] = "ann"
    assert fields == expected
    assert driver.stopped is not None
    assert says in driver.stopped.error


@pytest.mark.parametrize("priority", [math.nan, None, "high", True])
def test_a_priority_is_a_number(priority: Any) -> None:
    driver = room_with(Asked(Limit(1, priority=lambda room, conn, entity: priority)))
    driver.room.entities.add(Dot())
    driver.room.entities.add(Dot())
    driver.join("ann")
    assert driver.stopped is not None
    assert driver.stopped.error.startswith("interest.limit.priority raised")


def test_presence_rules_that_raise_stop_the_room() -> None:
    driver = room_with(None, sees_presence=lambda self, viewer, entry: 1 / 0)
    driver.join("ann")
    driver.join("bob")
    assert driver.stopped is not None
    assert driver.stopped.error.startswith("sees_presence raised ZeroDivisionError")


def test_interest_that_changes_the_room_stops_it() -> None:
    interest = Asked()
    driver = room_with(interest)
    dot = driver.room.entities.add(Dot())
    driver.join("ann")

    def write(entity: Any) -> list[str]:
        dot.team += 1
        return ["team 0"]

    interest.keys = write
    dot.x = 1
    driver.tick()
    assert driver.stopped is not None
    assert "are to look, and changed the room" in driver.stopped.error


@pytest.mark.parametrize("asked", ["sees", "presence"])
def test_a_room_that_is_to_hibernate_by_what_looks_does_so_after_the_flush(asked: str) -> None:
    def sees(room: Any) -> bool:
        if room.state.moves == 1:
            room.request_hibernate()
        return True

    class Ends(Asked):
        def sees(self, room: Any, conn: Any, entity: Any) -> bool:
            return sees(room)

    rule = {"sees_presence": lambda self, viewer, entry: sees(self)} if asked == "presence" else {}
    driver = room_with(Asked() if rule else Ends(), **rule)
    driver.room.entities.add(Dot())
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.tick()
    driver.room.state.moves = 1
    driver.tick()
    for client in (ann, bob):
        assert client.replica.of_kind(Board)[0] == {"moves": 1}
        assert client.log[-2:] == ["update", "close"]
    assert driver.stopped is None


def test_who_had_no_credit_is_told_at_a_tick_at_which_nothing_changes() -> None:
    driver = room_with(Asked())
    dot = driver.room.entities.add(Dot())
    ann = driver.join("ann")
    driver.tick()
    driver.core.hold(ann.link, True, driver.now)
    dot.x = 5
    driver.tick()
    driver.core.hold(ann.link, False, driver.now)
    driver.tick()
    assert told(ann) == [Change(dot.id, {0: 5.0})]
