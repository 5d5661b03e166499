"""Owner writes at the room: what is taken, what is asked of room code, and what the owner is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from playhall.engine.frames import Write, WriteEntry, encode_client
from playhall.engine.kinds import spec_of
from playhall.engine.outputs import LogOut, Status
from playhall.engine.specs import MAX_ENTITY
from playhall.engine.updates import Correct
from playhall.engine.writes import MAX_WAITING
from playhall.room import Connection, Entity, Json, Room, Schema, f32, owner_only, u8, writable
from tests.support.rooms import Driver, TestClient


class Cursor(Entity):
    x: writable[f32] = 0
    y: writable[f32] = 0
    color: u8 = 0
    note: writable[str] = ""
    hand: writable[owner_only[u8]] = 0
    pixels: writable[bytes] = b""
    tags: writable[Json[Any]] = None


class Badge(Entity):
    level: u8 = 0


class Trap(Entity, hidden=True):
    armed: bool = False


class Settings(Entity):
    volume: writable[u8] = 5
    coins: u8 = 0


class Table(Room[None, Settings]):
    schema = Schema(private=Settings, entities=[Cursor, Badge, Trap])

    def __init__(self) -> None:
        self.log_of: list[Any] = []

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Cursor(), owner=conn.player, once=True)

    def on_tick(self, dt: float) -> None:
        self.log_of.append(("tick", [cursor.x for cursor in self.entities.all(Cursor)]))

    def on_leave(self, conn: Connection) -> None:
        self.log_of.append(("leave", conn.player, [cursor.x for cursor in self.entities.all(Cursor)]))


class Asked(Table):
    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> Mapping[str, Any] | None:
        self.log_of.append(("write", conn.player, type(entity), dict(values)))
        match values.get("note"):
            case "reject":
                return None
            case "raise":
                raise RuntimeError("no")
            case "clamp":
                return {**values, "x": min(values["x"], 40.0)}
            case "mutate":
                values["x"] = 3.0
            case "part":
                return {"x": values["x"]}
            case "other field":
                return {**values, "color": 1}
            case "wrong type":
                return {"x": "far"}
            case "no mapping":
                return [1]  # type: ignore[return-value]
            case "delete":
                self.entities.delete(entity)
            case "kick":
                self.kick(conn)
            case "hibernate":
                self.request_hibernate()
            case "write another":
                assert isinstance(entity, Cursor)
                entity.y = 9
            case "give away":
                self.entities.set_owner(entity, "bob")
        return values


@pytest.fixture
def driver() -> Driver:
    return Driver(Table)


def joined(driver: Driver, *players: str) -> list[TestClient]:
    clients = [driver.join(player) for player in players]
    driver.tick()
    for client in clients:
        client.replica.updates.clear()
    driver.clear()
    return clients


def cursor_of(driver: Driver, player: str) -> Any:
    return driver.room.entities.first(Cursor, owner=player)


def corrections(client: TestClient) -> list[Correct]:
    return [op for update in client.replica.updates for op in update.operations if isinstance(op, Correct)]


def raw(
    driver: Driver, client: TestClient, seen: int, *entries: tuple[int, type[Entity], dict[str, Any]]
) -> None:
    made = []
    for id, cls, values in entries:
        spec, number = spec_of(cls), driver.schema.classes.index(cls)
        stored = {spec.by_name[n].index: spec.by_name[n].accept(spec.name, id, v) for n, v in values.items()}
        made.append(WriteEntry(id, number, spec, stored))
    driver.receive(client, encode_client(Write(seen, tuple(made))))


def dropped(driver: Driver) -> list[str]:
    return [
        str(log.fields["first"])
        for log in driver.of(LogOut)
        if log.event == "room.writes_dropped" and log.level == "debug"
    ]


@pytest.mark.ledger("OWN-08", "OWN-17")
def test_without_on_write_it_applies_as_sent_as_a_tick_begins_and_costs_the_owner_nothing(
    driver: Driver,
) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, x=5.0, tags={"a": [1]})
    assert cursor.x == 0
    driver.room.log_of.clear()
    driver.tick()
    assert driver.room.log_of == [("tick", [5.0, 0.0])]
    assert (cursor.x, cursor.tags) == (5.0, {"a": [1]})
    assert bob.replica.fields(cursor.id)["x"] == 5.0
    assert corrections(ann) == corrections(bob) == []
    driver.assert_in_sync(ann)


@pytest.mark.ledger("OWN-07", "OWN-15")
@pytest.mark.parametrize(
    ("note", "values", "now"),
    [
        ("", {"x": 50, "y": 2}, {"x": 50, "y": 2}),
        ("clamp", {"x": 400, "y": 2}, {"x": 40, "y": 2}),
        ("mutate", {"x": 400, "y": 2}, {"x": 3, "y": 2}),
        ("part", {"x": 7, "y": 2}, {"x": 7, "y": 0}),
        ("reject", {"x": 7, "y": 2}, {"x": 0, "y": 0}),
        ("write another", {"x": 7}, {"x": 7, "y": 9}),
    ],
)
def test_what_on_write_returns_applies(note: str, values: dict[str, Any], now: dict[str, Any]) -> None:
    driver = Driver(Asked)
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, **values, note=note)
    driver.tick()
    assert driver.room.log_of[-2] == ("write", "ann", Cursor, {**values, "note": note})
    assert {"x": cursor.x, "y": cursor.y} == {"x": 0, "y": 0, **now}
    assert cursor.note == ("" if note in ("reject", "part") else note)
    driver.assert_in_sync(ann)
    driver.assert_in_sync(bob)
    told = corrections(ann)
    assert bool(told) == (note != "")
    assert corrections(bob) == []
    assert driver.errors == []


@pytest.mark.ledger("HOOK-07")
@pytest.mark.parametrize("note", ["raise", "other field", "wrong type", "no mapping"])
def test_what_on_write_raises_or_cannot_return_is_logged_and_rejects_the_write(note: str) -> None:
    driver = Driver(Asked)
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, x=7, note=note)
    driver.write(bob, cursor_of(driver, "bob").id, x=8)
    driver.tick()
    [error] = driver.errors
    about = {name: error.fields[name] for name in ("hook", "player", "kind", "id")}
    assert about == {"hook": "on_write", "player": "ann", "kind": "cursor", "id": cursor.id}
    assert (cursor.x, cursor.note, cursor_of(driver, "bob").x) == (0, "", 8)
    driver.assert_in_sync(ann)
    with pytest.raises(TypeError, match="on_write cannot be async"):

        class Late(Room):
            async def on_write(self, conn, entity, values):  # type: ignore[no-untyped-def,override]
                return values


def test_on_write_may_delete_kick_hibernate_and_give_away() -> None:
    driver = Driver(Asked)
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, note="give away")
    driver.tick()
    assert (cursor.owner, cursor.note) == ("bob", "give away")
    driver.assert_in_sync(ann)
    driver.assert_in_sync(bob)
    driver.write(bob, cursor.id, note="delete")
    driver.tick()
    driver.assert_in_sync(bob)
    mine = cursor_of(driver, "bob")
    driver.write(bob, mine.id, note="kick")
    raw(driver, bob, 99, (mine.id + 50, Cursor, {"x": 1}))
    driver.tick()
    assert bob.closed is not None
    assert driver.errors == []
    cy = driver.join("cy")
    driver.tick()
    own = cursor_of(driver, "cy")
    driver.write(cy, own.id, note="hibernate", x=6)
    driver.tick()
    assert driver.core.status is Status.CLOSED
    assert driver.room.log_of[-1] == ("leave", "cy", [0.0, 6.0])
    assert driver.errors == []


@pytest.mark.ledger("OWN-02", "OWN-09")
def test_what_the_player_may_not_write_is_dropped_and_said_in_the_log() -> None:
    driver = Driver(Asked)
    ann, bob = joined(driver, "ann", "bob")
    hers, his = cursor_of(driver, "ann"), cursor_of(driver, "bob")
    badge, trap = Badge(), Trap()
    driver.room.entities.add(badge, owner="ann")
    driver.room.entities.add(trap)
    driver.tick()
    assert driver.room.entities.all(Badge, owner="ann") == [badge]
    seen, row = (
        ann.replica.version,
        next(id for id, row in bob.replica.entities.items() if row.values[0] == "ann"),
    )
    tries: list[tuple[int, type[Entity], dict[str, Any], str]] = [
        (his.id, Cursor, {"x": 1}, "not the player's"),
        (hers.id, Cursor, {"color": 1}, "color is not writable"),
        (hers.id, Badge, {"level": 1}, "it is a cursor"),
        (badge.id, Badge, {"level": 1}, "level is not writable"),
        (trap.id, Trap, {"armed": True}, "not the player's"),
        (999, Cursor, {"x": 1}, "not there"),
        (0, Cursor, {"x": 1}, "not there"),
        (1, Settings, {"coins": 1}, "coins is not writable"),
        (row + 1, driver.schema.classes[-1], {"status": 1}, "not there"),
        (row, driver.schema.classes[-1], {"name": "x"}, "name is not writable"),
    ]
    for id, cls, values, why in tries:
        driver.clear()
        driver.room.log_of.clear()
        raw(driver, ann, seen, (id, cls, values))
        driver.tick()
        assert len(driver.room.log_of) == 1, "on_write was asked"
        [line] = dropped(driver)
        assert line.startswith(f"entity {id}:")
        assert why in line
    assert (his.x, hers.color, badge.level, trap.armed) == (0, 0, 0, False)
    assert ann.closed is None
    driver.clear()
    raw(driver, ann, seen, *((id, cls, values) for id, cls, values, _ in tries), (hers.id, Cursor, {"x": 4}))
    driver.tick()
    assert hers.x == 4
    assert len(dropped(driver)) == 1


@pytest.mark.ledger("OWN-06", "OWN-15")
def test_room_code_that_writes_an_owners_field_corrects_the_owner_each_time_in_that_ticks_update(
    driver: Driver,
) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    for x in (1.0, 2.0, 3.0):
        cursor.x = x
        driver.tick()
        assert len(ann.replica.updates) == 1
        assert [op.values for op in corrections(ann)] == [{0: x}]
        ann.replica.updates.clear()
    assert corrections(bob) == []
    cursor.color = 9
    driver.tick()
    assert corrections(ann) == []
    assert ann.replica.fields(cursor.id)["color"] == 9


def test_the_owner_is_corrected_exactly_where_the_rooms_value_is_not_what_it_believes(driver: Driver) -> None:
    ann, _ = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, x=5)
    cursor.x = 1  # by a message, before the tick: the write comes after it
    driver.tick()
    assert (cursor.x, corrections(ann)) == (5, [])
    driver.write(ann, cursor.id, x=6, y=6, note="six", pixels=b"abc")
    driver.room.on_tick = lambda dt: meddle(cursor)
    driver.tick()
    [correct] = corrections(ann)
    assert {spec_of(Cursor).fields[index].name for index in correct.values} == {"y", "pixels"}
    driver.assert_in_sync(ann)


def meddle(cursor: Cursor) -> None:
    cursor.x, cursor.x = 7, 6
    cursor.y = 7
    cursor.note += "!"
    cursor.note = "six"
    cursor.patch("pixels", 1, b"X")


@pytest.mark.parametrize("back", [True, False])
def test_a_patch_of_the_rooms_does_not_touch_what_the_owner_holds(driver: Driver, back: bool) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, pixels=bytes(50))
    driver.tick()
    frame = ann.replica.write(cursor.id, pixels=b"\7" * 50)
    cursor.patch("pixels", 3, b"z")
    if back:
        cursor.patch("pixels", 3, b"\0")
    driver.tick()
    assert ann.replica.fields(cursor.id)["pixels"] == (b"\7" * 50 if back else bytes(3) + b"z" + bytes(46))
    driver.receive(ann, encode_client(frame))
    driver.tick()
    driver.assert_in_sync(ann)
    driver.assert_in_sync(bob)


def test_a_write_that_crosses_a_correction_is_dropped_by_field(driver: Driver) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    frame = ann.replica.write(cursor.id, x=5, y=5)
    cursor.x = 1
    driver.tick()
    driver.receive(ann, encode_client(frame))
    driver.tick()
    assert (cursor.x, cursor.y) == (1, 5)
    assert dropped(driver) == [f"entity {cursor.id}: x was written before a correction"]
    driver.assert_in_sync(ann)
    driver.assert_in_sync(bob)
    driver.write(ann, cursor.id, x=6)
    driver.tick()
    assert cursor.x == 6


def test_a_write_to_what_had_the_id_before_is_dropped(driver: Driver) -> None:
    ann, _ = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    late, early = (ann.replica.write(cursor.id, x=x) for x in (5, 6))
    driver.room.entities.delete(cursor)
    again = Cursor()
    driver.room.entities.add(again, owner="ann", id=cursor.id)
    driver.receive(ann, encode_client(early))
    driver.tick()
    driver.receive(ann, encode_client(late))
    driver.tick()
    assert again.x == 0
    driver.assert_in_sync(ann)


@pytest.mark.parametrize("back", [True, False])
def test_a_write_that_crosses_a_change_of_owner_is_dropped(driver: Driver, back: bool) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    late, early = (ann.replica.write(cursor.id, x=x) for x in (5, 6))
    driver.room.entities.set_owner(cursor, "bob")
    if back:
        driver.room.entities.set_owner(cursor, "ann")
    driver.receive(ann, encode_client(early))
    driver.tick()
    assert len(corrections(ann)) == 1
    driver.receive(ann, encode_client(late))
    driver.tick()
    assert cursor.x == 0
    driver.assert_in_sync(ann)
    driver.assert_in_sync(bob)
    driver.write(ann if back else bob, cursor.id, x=7, hand=3)
    driver.tick()
    assert (cursor.x, cursor.hand) == (7, 3)


@pytest.mark.ledger("STATE-17")
def test_a_new_owner_gets_what_is_for_owners_and_the_old_one_keeps_what_it_knew(driver: Driver) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, hand=3)
    driver.tick()
    assert bob.replica.fields(cursor.id)["hand"] == 0
    driver.room.entities.set_owner(cursor, "bob")
    driver.tick()
    assert bob.replica.fields(cursor.id)["hand"] == 3
    cursor.hand = 4
    driver.tick()
    assert (ann.replica.fields(cursor.id)["hand"], bob.replica.fields(cursor.id)["hand"]) == (3, 4)


def test_writes_between_two_ticks_are_one_in_the_order_they_came() -> None:
    driver = Driver(Asked)
    ann, bob = joined(driver, "ann", "bob")
    hers, his = cursor_of(driver, "ann"), cursor_of(driver, "bob")
    driver.write(bob, his.id, x=1)
    driver.write(ann, hers.id, x=2, y=2)
    driver.write(bob, his.id, x=3, y=3)
    driver.write(ann, hers.id, x=4)
    driver.room.log_of.clear()
    driver.tick()
    assert driver.room.log_of[:-1] == [
        ("write", "bob", Cursor, {"x": 3, "y": 3}),
        ("write", "ann", Cursor, {"x": 4, "y": 2}),
    ]


@pytest.mark.ledger("SCHM-22")
def test_a_player_writes_its_private_state() -> None:
    driver = Driver(Asked)
    ann, bob = joined(driver, "ann", "bob")
    driver.write(ann, 1, volume=9)
    driver.tick()
    assert driver.room.log_of[-2] == ("write", "ann", Settings, {"volume": 9})
    assert (driver.room.private("ann").volume, driver.room.private("bob").volume) == (9, 5)
    driver.room.private("ann").volume = 2
    driver.tick()
    assert ann.replica.fields(1)["volume"] == 2
    driver.assert_in_sync(bob)


def test_what_a_client_wrote_before_it_went_is_applied_before_on_leave_but_not_if_room_code_ended_it(
    driver: Driver,
) -> None:
    ann, bob = joined(driver, "ann", "bob")
    driver.write(ann, cursor_of(driver, "ann").id, x=1)
    driver.leave(ann, clean=True)
    assert driver.room.log_of[-1] == ("leave", "ann", [1.0, 0.0])
    driver.write(bob, cursor_of(driver, "bob").id, x=2)
    again = driver.join("bob")
    assert driver.room.log_of[-1] == ("leave", "bob", [1.0, 2.0])
    driver.write(again, cursor_of(driver, "bob").id, x=3)
    driver.room.kick(driver.room.connections["bob"])
    driver.tick()
    assert driver.room.log_of[-2] == ("leave", "bob", [1.0, 2.0])
    assert cursor_of(driver, "bob").x == 2


def test_what_waits_is_applied_before_the_room_hibernates(driver: Driver) -> None:
    (ann,) = joined(driver, "ann")
    driver.write(ann, cursor_of(driver, "ann").id, x=1)
    driver.hibernate()
    assert driver.core.status is Status.CLOSED
    assert cursor_of(driver.wake(), "ann").x == 1


def test_a_write_that_makes_the_entity_too_large_is_dropped_whole_and_corrected(driver: Driver) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    driver.write(ann, cursor.id, pixels=bytes(49_000), note="a" * 9_000)
    driver.tick()
    # One field shrinks as the other grows: what counts is how large it is in the end.
    driver.write(ann, cursor.id, pixels=bytes(45_000), note="a" * 15_000)
    driver.tick()
    assert len(cursor.note) == 15_000
    assert corrections(ann) == []
    raw(driver, ann, ann.replica.version, (cursor.id, Cursor, {"x": 3, "tags": "t" * 16_000}))
    driver.tick()
    assert (cursor.x, cursor.tags) == (0, None)
    assert str(MAX_ENTITY) in dropped(driver)[0]
    assert [set(op.values) for op in corrections(ann)] == [{0, 6}]
    driver.assert_in_sync(bob)


def test_what_is_too_much_is_rejected_with_a_warning(driver: Driver) -> None:
    (ann,) = joined(driver, "ann")
    cursor = cursor_of(driver, "ann")
    for at in range(MAX_WAITING):
        raw(driver, ann, ann.replica.version, (1000 + at, Cursor, {"x": 1}))
    driver.write(ann, cursor.id, x=5)
    driver.write(ann, cursor.id, x=6)
    [warning] = [log for log in driver.of(LogOut) if log.level == "warning"]
    assert (warning.event, warning.fields["player"]) == ("room.writes_dropped", "ann")
    driver.tick()
    assert cursor.x == 0
    driver.assert_in_sync(ann)
    driver.write(ann, cursor.id, x=7)
    driver.tick()
    assert cursor.x == 7
    for at in range(MAX_WAITING + 1):
        raw(driver, ann, ann.replica.version, (1000 + at, Cursor, {"x": 1}))
    assert [log for log in driver.of(LogOut) if log.level == "warning"] == [warning]  # or it fills the log


class TestStatus:
    @pytest.mark.ledger("PRES-03")
    def test_it_is_null_at_first_and_the_players_and_the_rooms_to_set(self) -> None:
        driver = Driver(Asked)
        ann, bob = joined(driver, "ann", "bob")
        row = next(id for id, held in ann.replica.entities.items() if held.values[0] == "ann")
        assert ann.replica.presence()["ann"]["status"] is None
        driver.room.log_of.clear()
        driver.write(ann, row, status={"ready": True})
        assert driver.room.presence["ann"].status is None
        driver.tick()
        assert len(driver.room.log_of) == 1, "on_write is not asked"
        assert driver.room.presence["ann"].status == {"ready": True}
        assert bob.replica.presence()["ann"]["status"] == {"ready": True}
        assert corrections(ann) == []
        driver.room.presence.set("ann", status="x" * 1_022)
        with pytest.raises(ValueError, match="1024"):
            driver.room.presence.set("ann", status="x" * 1_023)
        driver.tick()
        assert len(corrections(ann)) == 1
        assert bob.replica.presence()["ann"]["status"] == "x" * 1_022

    def test_one_that_is_too_large_is_corrected_back(self, driver: Driver) -> None:
        ann, bob = joined(driver, "ann", "bob")
        row = next(id for id, held in ann.replica.entities.items() if held.values[0] == "ann")
        driver.write(ann, row, status="x" * 1_022)
        driver.tick()
        driver.write(ann, row, status="x" * 1_023)
        assert corrections(ann) == []
        driver.tick()
        assert ann.replica.presence()["ann"]["status"] == "x" * 1_022
        driver.assert_in_sync(ann)
        driver.assert_in_sync(bob)

    def test_the_players_own_copy_is_not_set_back_by_what_the_room_took_before(self, driver: Driver) -> None:
        ann, _ = joined(driver, "ann", "bob")
        row = next(id for id, held in ann.replica.entities.items() if held.values[0] == "ann")
        driver.write(ann, row, status=1)
        second = ann.replica.write(row, status=2)
        driver.tick()
        assert ann.replica.presence()["ann"]["status"] == 2
        driver.receive(ann, encode_client(second))
        driver.tick()
        driver.assert_in_sync(ann)


def test_writes_through_columns_correct_the_owner_as_others_do(driver: Driver) -> None:
    ann, bob = joined(driver, "ann", "bob")
    cursor = cursor_of(driver, "ann")
    columns = driver.room.entities.columns(Cursor)
    columns.x += 7
    driver.tick()
    assert [op.values for op in corrections(ann)] == [op.values for op in corrections(bob)] == [{0: 7.0}]
    ann.replica.updates.clear()
    driver.write(ann, cursor.id, x=8)
    driver.tick()
    assert (cursor.x, float(columns.x[0]), corrections(ann)) == (8, 8, [])
    columns.x[0] = 9
    cursor.x = 3
    cursor.x = 9
    driver.tick()
    driver.assert_in_sync(ann)
    driver.write(ann, cursor.id, x=10)
    columns.x[0] = 11
    driver.tick()
    assert cursor.x == 10
    driver.assert_in_sync(ann)
    driver.assert_in_sync(bob)
