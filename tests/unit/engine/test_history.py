"""What a room recorded of its last ticks, and what its code sees when it looks back."""

from __future__ import annotations

from collections.abc import Callable
from types import new_class
from typing import Annotated

import numpy as np
import pytest

from playhall.engine.rewinding import MAX_HISTORY, depth_of
from playhall.room import (
    Connection,
    Entity,
    History,
    Json,
    Message,
    Past,
    Room,
    Schema,
    f32,
    f64,
    i16,
    q16,
    u8,
)
from playhall.testing import RoomHost, TestRoom

KEPT = 7
"""Ticks kept at 20 a second."""


class Fighter(Entity):
    x: f32
    y: f32
    hp: u8 = 100
    ducks: bool = False
    name: str = ""


class Tower(Entity):
    height: f64 = 0


class Base(Entity, abstract=True):
    x: f32 = 0


poses = History(Fighter, "x", "y")
whole = History(Fighter)
towers = History(Tower)


class Arena(Room):
    """`act` is what on_tick does; the first tick is 1."""

    schema = Schema(entities=[Fighter, Tower])
    history = (poses, whole)
    act: Callable[[Arena], object] | None = None

    def on_tick(self, dt: float) -> None:
        if self.act is not None:
            self.act(self)

    def on_message(self, conn: Connection, message: Message) -> None:
        for fighter in self.entities.all(Fighter):
            fighter.x = -1


def moving(room: Arena) -> None:
    for fighter in room.entities.all(Fighter):
        fighter.x = room.tick * 10


async def run(t: TestRoom[Arena, None, None], ticks: int) -> None:
    """Run ticks in which every fighter comes to ten times the tick's number."""
    t.room.act = moving
    await t.tick(ticks)


def xs(past: Past[Fighter]) -> dict[int, float]:
    return {id: pose.x for id, pose in past.items()}


# Declaring


@pytest.mark.ledger("LCI-01", "LCI-02")
def test_a_history_names_bools_and_numbers_or_takes_them_all() -> None:
    class Mixed(Entity):
        a: bool
        b: u8
        c: f64
        d: Annotated[float, q16(0, 1)]
        e: str = ""
        f: bytes = b""
        g: Json[list[int] | None] = None

    assert History(Mixed).fields == ("a", "b", "c", "d")
    assert History(Mixed, "c", "a").fields == ("c", "a")
    assert History(Mixed, "c").kind is Mixed
    for field, type in (("e", "str"), ("f", "bytes"), ("g", "json")):
        with pytest.raises(TypeError, match=f"mixed.{field} is {type}, and only bools and numbers"):
            History(Mixed, "a", field)


def test_a_history_that_makes_no_sense_is_refused() -> None:
    class Name(Entity):
        text: str = ""

    with pytest.raises(TypeError, match="fighter has no field 'yy'; did you mean y"):
        History(Fighter, "x", "yy")
    with pytest.raises(TypeError, match="names x twice"):
        History(Fighter, "x", "x")
    with pytest.raises(TypeError, match="no bool or number"):
        History(Name)
    with pytest.raises(TypeError, match="Base is abstract"):
        History(Base)
    with pytest.raises(TypeError, match="a kind of entity, and not of 'fighter'"):
        History("fighter")  # type: ignore[arg-type]


def test_a_room_class_lists_histories_of_its_schema() -> None:
    with pytest.raises(TypeError, match="must be a tuple of histories"):
        type("Bad", (Room,), {"history": [poses]})
    with pytest.raises(TypeError, match="'x' is no History"):
        type("Bad", (Room,), {"schema": Schema(entities=[Fighter]), "history": ("x",)})
    with pytest.raises(TypeError, match="Fighter is not one of the schema's entities"):
        type("Bad", (Room,), {"schema": Schema(entities=[Tower]), "history": (poses,)})
    with pytest.raises(TypeError, match="lists a history twice"):
        type("Bad", (Room,), {"schema": Schema(entities=[Fighter]), "history": (poses, poses)})


@pytest.mark.ledger("LCI-01", "LCI-09")
async def test_only_a_listed_history_can_be_rewound(room_host: RoomHost) -> None:
    class Still(Room):
        schema = Schema(entities=[Fighter])
        history = (poses,)

    t = room_host.room(Still)
    await t.wake()
    t.room.entities.add(Fighter(x=1, y=2))
    await t.tick()
    assert xs(t.room.rewind(poses, 1)) == {2: 1.0}
    with pytest.raises(ValueError, match=r"Still.history does not list History\(Fighter, 'x', 'y', 'hp'"):
        t.room.rewind(whole, 1)
    with pytest.raises(TypeError, match="rewind takes a History"):
        t.room.rewind(Fighter, 1)  # type: ignore[arg-type]


# Rewinding


@pytest.mark.ledger("HOOK-16", "LCI-03", "LCI-04", "CLK-05")
async def test_a_whole_tick_is_as_its_update_had_it(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    alice = await t.connect("alice")
    fighter = t.room.entities.add(Fighter(x=0.1, y=2, hp=50, name="Bo"))
    sent = {}
    for _ in range(KEPT):
        await run(t, 1)
        seen = alice.entities.get(Fighter, fighter.id)
        assert seen is not None
        sent[t.room.tick] = (seen.x, seen.y, seen.hp, seen.ducks)
        alice.send("back")  # a hook between two ticks changes what is, and not what was
        await t.advance(0.01)
        fighter.hp += 1
    for tick, told in sent.items():
        past = t.room.rewind(whole, tick)
        pose = past[fighter.id]
        assert (pose.x, pose.y, pose.hp, pose.ducks) == told
        assert past.tick == tick


async def test_a_pose_is_frozen_and_says_what_it_lacks(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    t.room.entities.add(Fighter(x=1, y=2, name="Bo"), owner="bo")
    await t.tick()
    pose = t.room.rewind(poses, 1)[2]
    assert (pose.id, pose.kind, repr(pose)) == (2, "fighter", "<FighterPose id=2, x=1.0, y=2.0>")
    assert pose == t.room.rewind(poses, 1)[2] != t.room.rewind(whole, 1)[2]
    assert len({pose, t.room.rewind(poses, 1)[2]}) == 1
    with pytest.raises(AttributeError, match="fighter 2: 'hp' was not recorded; the pose has id, x, y"):
        _ = pose.hp
    with pytest.raises(AttributeError, match="fighter 2: 'owner' was not recorded"):
        _ = pose.owner
    with pytest.raises(AttributeError, match="a pose is of the past"):
        pose.x = 3
    with pytest.raises(AttributeError, match="a pose is of the past"):
        del pose.x
    with pytest.raises(AttributeError, match="a pose is of the past"):
        pose.hp = 3


async def test_a_past_is_a_mapping_by_id_in_their_order(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    for id in (30, 10, 20):
        t.room.entities.add(Fighter(x=id, y=0), id=id)
    await t.tick()
    past = t.room.rewind(poses, 1)
    assert list(past) == [10, 20, 30]
    assert (len(past), 20 in past, 21 in past) == (3, True, False)
    assert past.get(21) is None
    with pytest.raises(KeyError, match="21"):
        past[21]
    assert past[np.int64(20)].x == 20  # type: ignore[index]  # an id out of a column
    assert repr(past) == "<Past of Fighter at tick 1, 3 entities>"


async def test_between_two_ticks_floats_blend_and_whole_numbers_are_the_earlier_ones(
    room_host: RoomHost,
) -> None:
    class Mixed(Entity):
        a: f32
        b: f64
        c: Annotated[float, q16(0, 65535)]
        d: i16
        e: bool

    mixed = History(Mixed)

    class Lab(Room):
        schema = Schema(entities=[Mixed])
        history = (mixed,)

    t = room_host.room(Lab)
    await t.wake()
    entity = t.room.entities.add(Mixed(a=0.1, b=1, c=10, d=10, e=False))
    await t.tick()
    entity.a, entity.b, entity.c, entity.d, entity.e = 0.3, 2, 11, 20, True
    await t.tick()
    pose = t.room.rewind(mixed, 1.25)[entity.id]
    a, b = np.float32(0.1), np.float32(0.3)
    assert pose.a == np.float32(float(a) + (float(b) - float(a)) * 0.25)
    assert (pose.b, pose.c, pose.d, pose.e) == (1.25, 10.25, 10, False)
    assert type(pose.d) is int


async def test_there_is_nothing_between_infinite_places(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    fighter = t.room.entities.add(Fighter(x=float("inf"), y=1))
    await t.tick()
    fighter.y = float("inf")
    await t.tick()
    pose = t.room.rewind(poses, 1.5)[fighter.id]
    assert (pose.x, pose.y) == (float("inf"), float("inf"))


@pytest.mark.ledger("LCI-05")
async def test_who_was_added_later_or_deleted_by_then_is_left_out(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    first = t.room.entities.add(Fighter(x=1, y=0)).id
    await t.tick()
    second = t.room.entities.add(Fighter(x=2, y=0)).id
    await t.tick()
    t.room.entities.delete(t.room.entities.all(Fighter)[0])
    await t.tick()
    there = {tick: set(t.room.rewind(poses, tick)) for tick in (1, 1.5, 1.99, 2, 2.5, 3)}
    assert there == {
        1: {first},
        1.5: {first},
        1.99: {first},
        2: {first, second},
        2.5: {first, second},
        3: {second},
    }
    assert t.room.rewind(poses, 2.5)[first].x == 1


@pytest.mark.ledger("LCI-06")
async def test_an_id_that_was_used_again_is_whoever_had_it(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    old = t.room.entities.add(Fighter(x=1, y=0), id=9)
    await t.tick()

    def replace(room: Arena) -> None:
        room.act = None
        room.entities.delete(old)
        room.entities.add(Fighter(x=5, y=0), id=9)

    t.room.act = replace
    await t.tick()
    assert [t.room.rewind(poses, tick)[9].x for tick in (1, 1.5, 2)] == [1, 1, 5]


async def test_a_row_that_was_used_again_is_whoever_had_it(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    alice = await t.connect("alice")
    old = t.room.entities.add(Fighter(x=1, y=0))
    await t.tick()
    t.room.entities.delete(old)
    for player in ("bob", "carol"):  # who joins makes a flush, after two of which the row is free
        await t.connect(player)
    new = t.room.entities.add(Fighter(x=5, y=0))
    await t.tick()
    past = [xs(t.room.rewind(poses, t.room.tick - 1 + part)) for part in (0, 0.5, 1)]
    assert past == [{old.id: 1}, {old.id: 1}, {new.id: 5}]
    assert set(alice.entities.all(Fighter)) != set()


@pytest.mark.ledger("LCI-07", "LCI-12")
@pytest.mark.parametrize(("rate", "depth"), [(1, 3), (10, 5), (20, 7), (60, 17), (120, 32)])
async def test_an_older_tick_is_the_oldest_that_is_kept(room_host: RoomHost, rate: int, depth: int) -> None:
    class Paced(Arena):
        tick_rate = rate

    t = room_host.room(Paced)
    await t.wake()
    fighter = t.room.entities.add(Fighter(x=0, y=0))
    t.room.act = moving
    await t.tick(depth + 3)
    newest = t.room.tick
    oldest = newest - depth + 1
    assert depth_of(rate) == depth
    assert t.room.rewind(poses, oldest + 1)[fighter.id].x == 10 * (oldest + 1)
    for asked in (oldest, oldest - 0.5, oldest - 1, 0, -1e300):
        past = t.room.rewind(poses, asked)
        assert (past[fighter.id].x, past.tick) == (10 * oldest, oldest)


@pytest.mark.ledger("LCI-08")
async def test_a_tick_that_is_not_recorded_yet_is_the_present(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    fighter = t.room.entities.add(Fighter(x=1, y=0))
    await t.tick()
    seen = []

    def look(room: Arena) -> None:
        fighter.x = 7
        added = room.entities.add(Fighter(x=8, y=0))
        for tick in (room.tick - 1, room.tick, room.tick + 5, 1e300):
            past = room.rewind(poses, tick)
            seen.append((past.tick, xs(past)))
        room.entities.delete(added)

    t.room.act = look
    await t.tick()
    present = (2.0, {fighter.id: 7, fighter.id + 1: 8})
    assert seen == [(1.0, {fighter.id: 1}), present, present, present]


async def test_a_past_does_not_change_however_long_it_is_kept(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    fighter = t.room.entities.add(Fighter(x=1, y=0))
    await t.tick()
    kept = [t.room.rewind(poses, 1), t.room.rewind(poses, 2)]
    fighter.x = 5
    kept.append(t.room.rewind(poses, 1.5))
    columns = [past.columns for past in kept]
    t.room.entities.delete(fighter)
    await t.tick(3 * KEPT)
    await t.hibernate()
    for past, column, x in zip(kept, columns, (1, 1, 3), strict=True):
        assert xs(past) == {2: x}
        assert column.x.tolist() == [x]
        hit = past.ray((0, 0), (1, 0))
        assert hit is not None
        assert hit.distance == x


@pytest.mark.ledger("LCI-15")
async def test_histories_are_empty_after_a_wake(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    t.room.entities.add(Fighter(x=0, y=0))
    await run(t, 5)
    await t.hibernate()
    await t.wake()
    [fighter] = t.room.entities.all(Fighter)
    tick = t.room.tick
    for asked in (tick - 2, tick, tick + 1):
        past = t.room.rewind(poses, asked)
        assert (past[fighter.id].x, past.tick) == (50, tick)
    fighter.x = 7
    assert t.room.rewind(poses, 1)[fighter.id].x == 7
    await t.tick()
    fighter.x = 8
    assert t.room.rewind(poses, 1)[fighter.id].x == 7


@pytest.mark.parametrize("tick", [float("nan"), float("inf"), -float("inf"), 10**400])
async def test_a_tick_is_finite(room_host: RoomHost, tick: float) -> None:
    t = room_host.room(Arena)
    await t.wake()
    with pytest.raises(ValueError, match="a tick is finite"):
        t.room.rewind(poses, tick)


async def test_a_tick_is_a_number(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    for tick in (True, "1", None):
        with pytest.raises(TypeError, match="a tick is a number"):
            t.room.rewind(poses, tick)  # type: ignore[arg-type]
    assert t.room.rewind(poses, np.float32(3)).tick == 0  # type: ignore[arg-type]


async def test_columns_of_the_past(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    first = t.room.entities.add(Fighter(x=0, y=5, ducks=True))
    await run(t, 2)
    second = t.room.entities.add(Fighter(x=0, y=6, hp=7))
    await run(t, 1)
    t.room.entities.delete(first)
    past = t.room.rewind(whole, 2.5).columns
    assert (past.id.tolist(), past.x.tolist(), past.ducks.tolist()) == ([first.id], [25], [True])
    now = t.room.rewind(whole, 3).columns
    assert (now.id.tolist(), now.y.tolist(), now.hp.tolist()) == ([first.id, second.id], [5, 6], [100, 7])
    assert [now.id.dtype, now.x.dtype, now.hp.dtype, now.ducks.dtype] == ["i8", "f4", "u1", "?"]
    assert len(now) == 2
    now.x[:] = 3
    assert now.x.tolist() == [30, 30]
    with pytest.raises(AttributeError, match="'name' was not recorded; there are columns of id, x, y, hp, d"):
        _ = now.name


async def test_what_columns_wrote_is_recorded(room_host: RoomHost) -> None:
    t = room_host.room(Arena)
    await t.wake()
    for _ in range(3):
        t.room.entities.add(Fighter(x=0, y=0))
    fighters = t.room.entities.columns(Fighter)
    fighters.x = [1, 2, 3]
    await t.tick()
    fighters.x += 1
    await t.tick()
    assert list(xs(t.room.rewind(poses, 1.5)).values()) == [1.5, 2.5, 3.5]


# The budget


@pytest.mark.ledger("LCI-13", "LCI-14")
async def test_over_8_mb_new_entities_go_unrecorded_until_the_deleted_are_forgotten(
    room_host: RoomHost, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"n{number}" for number in range(60)]
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(names, u8)}
    crowd_class: type[Entity] = new_class(
        "Crowd", (Entity,), exec_body=lambda namespace: namespace.update(body)
    )
    crowd, kept = History(crowd_class), 32

    class Packed(Room):
        schema = Schema(entities=[crowd_class, Fighter])
        tick_rate = 120
        history = (poses, crowd)

    share = 8 * 60 * kept + 128
    most = MAX_HISTORY // share
    assert (MAX_HISTORY, most) == (8 * 1024 * 1024, 541)
    t = room_host.room(Packed)
    await t.wake()
    # These take some of the room too, so that one fewer of the others fits.
    fighters = [t.room.entities.add(Fighter(x=1, y=1)).id for _ in range(20)]
    crowds = [t.room.entities.add(crowd_class()) for _ in range(most)]
    await t.tick(2)
    assert list(t.room.rewind(poses, 2)) == fighters
    assert list(t.room.rewind(crowd, 2)) == [each.id for each in crowds[:-1]]
    assert [line.message for line in caplog.records if line.levelname == "ERROR"] == [
        f"room.history_full kind='crowd' unrecorded=1 max_bytes={MAX_HISTORY}"
    ]
    late, gone = crowds[-1].id, crowds[0].id
    t.room.entities.delete(crowds[0])
    await t.tick(kept - 1)
    assert t.room.tick == kept + 1
    assert gone in t.room.rewind(crowd, 2)
    assert not {late, gone} & set(t.room.rewind(crowd, t.room.tick))
    await t.tick()
    assert gone not in t.room.rewind(crowd, 2)
    assert late in t.room.rewind(crowd, t.room.tick)
    assert len(t.room.rewind(crowd, t.room.tick)) == most - 1
    assert len([line for line in caplog.records if line.levelname == "ERROR"]) == 1
