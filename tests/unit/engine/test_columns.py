"""Columns: a kind's fields as arrays, which are one store with the entities' handles."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Annotated, Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.backend import Tracker
from playhall.engine.columns import Columns
from playhall.engine.entities import Entities
from playhall.engine.errors import DeadEntityError, FieldError, FieldTypeError
from playhall.engine.kinds import put, spec_of, stored_values
from playhall.engine.store import EntityStore
from playhall.room import Entity, Json, Schema, f32, f64, i8, i16, i32, q8, q16, u8, u16, u32, writable


class Npc(Entity, max=6):
    x: f32
    name: str = "npc"
    hp: u8 = 100
    vx: f32 = 0
    bag: Json[list[int]] = []  # noqa: RUF012


class Every(Entity):
    flag: bool = False
    a8: u8 = 0
    a16: u16 = 0
    a32: u32 = 0
    b8: i8 = 0
    b16: i16 = 0
    b32: i32 = 0
    f: f32 = 0
    d: f64 = 0
    q: Annotated[float, q8(-1, 1)] = 0
    r: Annotated[float, q16(0, 2000)] = 0
    blob: bytes = b""


class Base(Entity, abstract=True):
    x: f32


class Trap(Base, hidden=True):
    armed: bool = False


class Pilot(Base):
    speed: writable[u8] = 0


class Ghost(Entity):
    alive: bool = True


class Board(Entity):
    moves: u8 = 0


SCHEMA = Schema(state=Board, entities=[Npc, Every, Trap, Pilot, Ghost])


class Place:
    """A store of entities, and what a flush finds there: fields by entity."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self.store = EntityStore(SCHEMA, self.tracker)
        self.entities = Entities(self.store)
        self.version = 0

    def flush(self) -> dict[int, set[str]]:
        self.version += 1
        self.flushed = flush = self.tracker.flush(self.version)
        return {
            tracked.id: {
                field.name
                for field in tracked.spec.fields
                if tracked.changed_since(self.version - 1) >> field.index & 1
            }
            for tracked in flush.changed
        }

    def npcs(self, *xs: float) -> list[Npc]:
        made = [self.entities.add(Npc(x=x)) for x in xs]
        self.flush()
        return made


@pytest.fixture
def place() -> Place:
    return Place()


def test_what_is_written_to_an_array_is_read_from_the_handle_and_the_other_way_round(place: Place) -> None:
    a, b = place.npcs(1, 2)
    b.vx = 0.5
    npcs = place.entities.columns(Npc)
    assert len(npcs) == 2
    npcs.x += npcs.vx * 2
    assert (a.x, b.x) == (1.0, 3.0)
    npcs.hp[npcs.x > 2] = 7
    assert (a.hp, b.hp) == (100, 7)
    a.hp = 9
    assert npcs.hp.tolist() == [9, 7]
    assert npcs.id.tolist() == [a.id, b.id]
    assert npcs.alive.tolist() == [True, True]
    assert (a.name, a.bag) == ("npc", [])
    assert repr(b) == f"Npc(id={b.id}, x=3.0, name='npc', hp=7, vx=0.5, bag=[])"


def test_every_number_has_its_dtype_and_reads_as_plain_python(place: Place) -> None:
    one = place.entities.add(Every(flag=True, b16=-3, f=0.1, q=0.3, blob=b"x"))
    before = list(stored_values(one))
    columns = place.entities.columns(Every)
    names = ["flag", "a8", "a16", "a32", "b8", "b16", "b32", "f", "d", "q", "r"]
    assert [str(getattr(columns, name).dtype) for name in names] == (
        [
            "bool",
            "uint8",
            "uint16",
            "uint32",
            "int8",
            "int16",
            "int32",
            "float32",
            "float64",
            "float64",
            "float64",
        ]
    )
    after = list(stored_values(one))
    assert after == before
    assert [type(value) for value in after] == [type(value) for value in before]
    assert len(stored_values(one)) == len(spec_of(Every).fields)


def test_the_flush_finds_what_arrays_were_written_once(place: Place) -> None:
    a, b, c = place.npcs(1, 2, 3)
    npcs = place.entities.columns(Npc)
    assert not place.tracker.dirty
    npcs.x[1:] += 1
    npcs.hp[2] = 1
    a.vx = 4.0
    assert place.tracker.dirty
    assert place.flush() == {a.id: {"vx"}, b.id: {"x"}, c.id: {"x", "hp"}}
    assert not place.tracker.dirty
    npcs.x = npcs.x
    npcs.x = npcs.x + 0
    assert not place.tracker.dirty
    npcs.x += 1
    npcs.x -= 1
    assert place.flush() == {}


@pytest.mark.parametrize(
    ("field", "value"), [(name, 1) for name in ("a8", "a16", "a32", "b8", "b16", "b32", "f", "d", "q", "r")]
)
def test_a_handle_that_writes_what_an_array_wrote_before_takes_nothing_from_it(
    place: Place, field: str, value: float
) -> None:
    every = place.entities.add(Every())
    place.flush()
    getattr(place.entities.columns(Every), field)[:] = value
    setattr(every, field, getattr(every, field))
    assert place.flush() == {every.id: {field}}


def test_changes_are_those_of_bits(place: Place) -> None:
    a, b = place.npcs(0, math.nan)
    npcs = place.entities.columns(Npc)
    npcs.x[1] = np.nan
    assert not place.tracker.dirty
    npcs.x[0] = -0.0
    assert place.flush() == {a.id: {"x"}}
    assert math.copysign(1, a.x) == -1
    assert math.isnan(b.x)


def test_assigning_copies_and_holds_values_against_the_field(place: Place) -> None:
    a, b = place.npcs(1, 2)
    npcs = place.entities.columns(Npc)
    given = np.array([0.1, 0.2])
    npcs.x = given
    given[0] = 9
    npcs.hp = [1, 2]
    npcs.vx = 3
    assert (a.x, b.hp, b.vx) == (float(np.float32(0.1)), 2, 3.0)
    npcs.x = [np.inf, np.nan]
    with pytest.raises(ValueError, match=r"npc\.hp: takes one value, or one for each of 2 rows, .* \(3,\)"):
        npcs.hp = [1, 2, 3]
    with pytest.raises(ValueError, match="shape"):
        npcs.hp = [[1, 2]]
    for name, value, message in [
        ("hp", [1, 256], f"npc {b.id}: hp: 256 is outside u8, 0 to 255"),
        ("hp", -1, f"npc {a.id}: hp: -1 is outside u8"),
        ("hp", np.array([2**63, 0], np.uint64), "outside u8"),
        ("x", [0, 1e39], f"npc {b.id}: x: 1e.39 is outside f32"),
    ]:
        with pytest.raises(FieldError, match=message):
            setattr(npcs, name, value)
    for name, value in [("hp", 1.0), ("hp", [True, False]), ("x", [True, True]), ("x", ["a", "b"])]:
        with pytest.raises(FieldTypeError, match=f"{name}: must be "):
            setattr(npcs, name, value)
    assert (a.hp, b.hp) == (1, 2)


def test_a_flag_takes_bools_only(place: Place) -> None:
    one = place.entities.add(Every())
    columns = place.entities.columns(Every)
    columns.flag = True
    assert one.flag is True
    with pytest.raises(FieldTypeError, match="flag: must be bool, not int64"):
        columns.flag = 1


def test_what_has_no_column_says_what_has(place: Place) -> None:
    place.npcs(1)
    npcs = place.entities.columns(Npc)
    with pytest.raises(
        AttributeError, match=r"npc has no field 'y'; it has columns for id, alive, x, hp, vx"
    ):
        _ = npcs.y
    with pytest.raises(
        AttributeError, match=r"npc\.name is str, and only bools and numbers have columns; it"
    ):
        _ = npcs.name
    with pytest.raises(AttributeError, match="npc has no field 'y'"):
        npcs.y = 3
    for name in ("id", "alive"):
        with pytest.raises(AttributeError, match=f"{name} is read-only"):
            setattr(npcs, name, [1])
        with pytest.raises(ValueError, match="read-only"):
            getattr(npcs, name)[0] = 0


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Base, "Base is abstract: each kind under it has columns of its own"),
        (Board, "Board is not one of the schema's entities"),
        (Ghost, r"ghost\.alive: columns name what rows hold an entity so; rename the field"),
        ("npc", "a kind is named by its class, and not by 'npc'"),
    ],
)
def test_what_has_no_columns(place: Place, kind: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        place.entities.columns(kind)


def test_rows_are_used_again_and_the_free_ones_hold_nothing(place: Place) -> None:
    a, b, c = place.npcs(1, 2, 3)
    npcs = place.entities.columns(Npc)
    npcs.x[1] = 50
    place.entities.delete(b)
    assert (npcs.id.tolist(), npcs.alive.tolist()) == ([a.id, 0, c.id], [True, False, True])
    assert (npcs.x.tolist(), npcs.hp.tolist()) == ([1, 0, 3], [100, 0, 100])
    with pytest.raises(DeadEntityError):
        _ = b.x
    npcs.x += 10
    npcs.hp[1] = 5
    assert place.flush() == {a.id: {"x"}, c.id: {"x"}}
    assert npcs.x.tolist() == [11, 0, 13]
    place.entities.add(Npc(x=9))
    place.flush()
    assert place.entities.columns(Npc).id.tolist()[1] == 0, "it rests until the flush after the one that told"
    npcs.x[1] = 77
    d = place.entities.add(Npc(x=4, vx=1), id=b.id)
    assert npcs.id.tolist() == [a.id, b.id, c.id]
    assert (d.x, npcs.x.tolist()) == (4, [11, 4, 13])
    npcs.x[1] = 5
    assert d.x == 5
    assert place.flush() == {}, "it is new, and told of as a whole"
    assert not place.tracker.dirty


def test_what_was_deleted_keeps_its_last_values_for_who_is_told_of_it(place: Place) -> None:
    a, b = place.npcs(1, 2)
    npcs = place.entities.columns(Npc)
    npcs.x += 5
    place.entities.delete(a)
    place.entities.add(Npc(x=9))
    place.flush()
    [gone] = place.flushed.removed
    assert (gone.id, gone.values[0], b.x) == (a.id, 6, 7)


def test_a_free_row_alone_is_no_change(place: Place) -> None:
    a, b = place.npcs(1, 2)
    npcs = place.entities.columns(Npc)
    place.entities.delete(a)
    place.flush()
    npcs.x[0] = 9
    assert not place.tracker.dirty
    assert npcs.x.tolist() == [0, 2]
    assert b.x == 2


def test_arrays_end_at_the_rows_there_were_and_never_move(place: Place) -> None:
    [a] = place.npcs(1)
    old = place.entities.columns(Npc)
    xs = old.x
    assert place.entities.columns(Npc) is old
    b = place.entities.add(Npc(x=2))
    new = place.entities.columns(Npc)
    assert (len(old), len(new), old.x.shape, new.x.tolist()) == (1, 2, (1,), [1, 2])
    xs += 1
    assert (a.x, b.x) == (2, 2)
    with pytest.raises(ValueError, match="each of 1 rows"):
        old.x = [1, 2]


def test_arrays_outlive_the_room() -> None:
    place = Place()
    place.npcs(1, 2)
    xs = place.entities.columns(Npc).x
    del place
    xs += 1
    assert xs.tolist() == [2, 3]


def test_a_kind_is_full_at_its_max_and_has_memory_for_that(place: Place) -> None:
    npcs = place.npcs(*range(6))
    columns = place.entities.columns(Npc)
    with pytest.raises(ValueError, match="there are 6 npc already"):
        place.entities.add(Npc(x=0))
    place.entities.delete(npcs[3])
    place.flush()
    place.flush()
    place.entities.add(Npc(x=33))
    assert place.entities.columns(Npc) is columns
    assert columns.x.tolist() == [0, 1, 2, 33, 4, 5]


def test_there_are_rows_for_the_most_entities_while_those_removed_rest(place: Place) -> None:
    columns = place.entities.columns(Npc)
    for round in range(4):
        npcs = [place.entities.add(Npc(x=n)) for n in range(6)]
        columns = place.entities.columns(Npc)
        assert columns.x[columns.alive].tolist() == list(range(6)), round
        place.flush()
        for npc in npcs:
            place.entities.delete(npc)
    assert len(columns) == 18


def test_the_row_of_what_was_never_told_is_free_at_once(place: Place) -> None:
    for _ in range(50):
        place.entities.delete(place.entities.add(Npc(x=1)))
    assert len(place.entities.columns(Npc)) == 1


def test_a_room_saved_with_more_than_there_may_be_now_keeps_them(place: Place) -> None:
    for id in range(2, 12):
        place.store.restore(Npc, id, None, [float(id), "", 1, 0.0, stored_values(Npc(x=1))[4]])
    assert place.entities.columns(Npc).id.tolist() == list(range(2, 12))


def test_hidden_kinds_have_columns(place: Place) -> None:
    trap = place.entities.add(Trap(x=1))
    place.flush()
    place.entities.columns(Trap).armed = True
    assert trap.armed
    assert place.flush() == {trap.id: {"armed"}}


def test_what_owners_write_is_corrected_when_a_column_writes_it(place: Place) -> None:
    mine = place.entities.add(Pilot(x=0), owner="ann")
    free = place.entities.add(Pilot(x=0))
    place.flush()
    pilots = place.entities.columns(Pilot)
    pilots.speed += 1
    pilots.x += 1
    place.flush()
    [(tracked, mask)] = place.flushed.corrections["ann"].items()
    assert (tracked.id, mask) == (mine.id, 1 << spec_of(Pilot).by_name["speed"].index)
    assert free.speed == 1


def test_a_handles_write_is_the_handles_alone(place: Place) -> None:
    """What an owner wrote goes through the handle; the arrays must not make it the room's."""
    mine = place.entities.add(Pilot(x=0), owner="ann")
    place.flush()
    place.entities.columns(Pilot)
    put(mine, spec_of(Pilot).by_name["speed"].index, 5)
    assert place.entities.columns(Pilot).speed.tolist() == [5]
    assert place.flush() == {}


def test_quantised_values_go_to_their_steps_at_the_flush(place: Place) -> None:
    one = place.entities.add(Every(r=100))
    place.flush()
    columns = place.entities.columns(Every)
    columns.r += 0.001
    columns.q -= 1e-9
    assert place.flush() == {}
    columns.r[0] = 1234.5678
    assert place.flush() == {one.id: {"r"}}
    assert one.r == Every(r=1234.5678).r
    with pytest.raises(FieldError, match=f"every {one.id}: r: 2000.5 is outside q16"):
        columns.r = 2000.5


@pytest.mark.parametrize("value", [2000.1, -0.1, math.nan, math.inf])
def test_a_quantised_value_out_of_bounds_is_found_at_the_flush(place: Place, value: float) -> None:
    place.entities.add(Every())
    two = place.entities.add(Every())
    place.flush()
    columns = place.entities.columns(Every)
    columns.a8 += 1
    columns.r[1] = value
    assert place.tracker.dirty
    with pytest.raises(FieldError, match=f"every {two.id}: r: .* is outside q16") as caught:
        place.flush()
    assert "columns()" in caught.value.__notes__[0]


bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(0.001, 1e6)).map(lambda b: (b[0], b[0] + b[1]))


@given(bounds, st.sampled_from([q8, q16]), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_column_quantises_as_a_single_write_does(
    bounds: tuple[float, float], make: Any, parts: list[float]
) -> None:
    lo, hi = bounds

    class Dial(Entity, max=20):
        at: Annotated[float, make(lo, hi)]

    tracker = Tracker()
    entities = Entities(EntityStore(Schema(entities=[Dial]), tracker))
    dials = [entities.add(Dial(at=lo)) for _ in parts]
    values = [min(hi, lo + (hi - lo) * part) for part in parts]
    entities.columns(Dial).at = values
    tracker.flush(1)
    for dial, value in zip(dials, values, strict=True):
        assert dial.at == Dial(at=value).at
    assert not tracker.dirty


def test_columns_are_there_before_the_first_entity(place: Place) -> None:
    npcs = place.entities.columns(Npc)
    assert (len(npcs), npcs.x.tolist()) == (0, [])
    npcs.x = 300.0
    npcs.hp = 300
    a = place.entities.add(Npc(x=1))
    assert place.entities.columns(Npc).hp.tolist() == [100]
    assert a.hp == 100


def test_a_patch_and_json_go_on_beside_columns(place: Place) -> None:
    one = place.entities.add(Every(blob=b"abc"))
    place.flush()
    place.entities.columns(Every)
    one.patch("blob", 1, b"x")
    assert one.blob == b"axc"
    assert place.flush() == {one.id: {"blob"}}
    [npc] = place.npcs(1)
    place.entities.columns(Npc)
    npc.bag = [1]
    assert place.flush() == {npc.id: {"bag"}}


def test_memory_is_committed_as_it_is_touched() -> None:
    class Grain(Entity, max=20_000_000):
        x: f64 = 0
        y: f64 = 0

    entities = Entities(EntityStore(Schema(entities=[Grain]), Tracker()))
    for _ in range(1_000):
        entities.add(Grain())
    before = psutil.Process().memory_info().rss
    entities.columns(Grain).x += 1
    assert psutil.Process().memory_info().rss - before < 16 * 2**20


def in_a_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    ).stdout.strip()


def test_numpy_is_imported_by_the_first_columns_alone() -> None:
    loaded = in_a_new_process(
        "import sys, playhall.room, playhall.client\n"
        "from playhall.engine.core import RoomCore\n"
        "print('numpy' in sys.modules)"
    )
    assert loaded == "False"


def test_without_numpy_columns_say_what_to_install(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "playhall.engine.rows", raising=False)
    monkeypatch.setitem(sys.modules, "numpy", None)
    [a] = place.npcs(1)
    with pytest.raises(ImportError, match="columns are NumPy arrays: install numpy"):
        place.entities.columns(Npc)
    a.x = 2
    assert place.flush() == {a.id: {"x"}}


def test_columns_is_what_is_returned(place: Place) -> None:
    assert isinstance(place.entities.columns(Npc), Columns)
