"""Entities: handles whose writes are checked, told to their home once, and otherwise leave no trace."""

from __future__ import annotations

# ruff: noqa: RUF012 (a default is copied for each entity, whatever it is)
import copy
import math
import pickle
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from playhall.engine.errors import DeadEntityError, FieldError, FieldTypeError, ReadOnlyError
from playhall.engine.fields import Json, f32, f64, owner_only, q16, u8, writable
from playhall.engine.kinds import (
    Entity,
    Home,
    adopt,
    bury,
    is_dead,
    local,
    put,
    restore,
    set_owner,
    spec_of,
    stored_values,
)
from playhall.engine.specs import MAX_ENTITY


class Dot(Entity):
    x: f32
    y: f64 = 0
    hp: u8 = 100
    name: str
    blob: bytes
    bag: Json[Any]
    scores: Json[dict[str, int]] = {}
    alive: bool = True
    turn: Annotated[float, q16(0, 360)]
    volume: writable[u8] = 7
    coins: owner_only[u8]
    cooldown: float = local(0.0)
    cache: list[int] = local(factory=list)

    def heal(self, by: int) -> None:
        self.hp = min(255, self.hp + by)


def dot(**given: Any) -> Dot:
    """A dot with zeros for what checkers ask for."""
    make: Any = Dot
    made: Dot = make(**given)
    return made


def zeros(kind: type[Entity]) -> list[Any]:
    return [field.type.zero for field in spec_of(kind).fields]


class Recorder(Home):
    """A home that notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_write(self, entity: Entity, index: int, stored: Any) -> None:
        field = spec_of(entity).fields[index]
        self.heard.append((field.name, field.type.load(stored)))

    def on_patch(self, entity: Entity, index: int, offset: int, data: bytes, stored: bytes) -> None:
        self.heard.append((spec_of(entity).fields[index].name, offset, data, stored))


def housed(**given: Any) -> tuple[Dot, Recorder]:
    entity, home = dot(**given), Recorder()
    adopt(entity, home, 5, "ann")
    return entity, home


@pytest.mark.ledger("SCHM-21", "SCHM-12")
def test_what_is_not_given_has_its_default_or_its_zero() -> None:
    entity = dot()
    assert (entity.x, entity.y, entity.hp, entity.name, entity.blob) == (0.0, 0.0, 100, "", b"")
    assert (entity.bag, entity.scores, entity.alive, entity.turn) == (None, {}, True, 0.0)
    assert (entity.volume, entity.coins, entity.cooldown, entity.cache) == (7, 0, 0.0, [])
    assert (entity.kind, entity.owner) == ("dot", None)


def test_every_entity_has_its_own_defaults() -> None:
    one, other = dot(), dot()
    one.scores["a"] = 1
    one.cache.append(1)
    one.cooldown = 2.0
    assert (other.scores, other.cache, other.cooldown) == ({}, [], 0.0)
    assert dot().scores == {}


@pytest.mark.ledger("SCHM-07")
def test_a_write_is_rounded_as_it_will_be_sent() -> None:
    entity, home = housed(x=0.1)
    assert entity.x == 0.10000000149011612
    entity.x = 0.2
    assert home.heard == [("x", entity.x)]
    assert entity.x == 0.20000000298023224
    entity.turn = 90
    assert entity.turn != 90
    assert math.isclose(entity.turn, 90, abs_tol=0.003)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("hp", 256, FieldError),
        ("hp", -1, FieldError),
        ("hp", True, FieldTypeError),
        ("hp", 1.5, FieldTypeError),
        ("hp", None, FieldTypeError),
        ("x", 1e300, FieldError),
        ("x", "1", FieldTypeError),
        ("turn", 361, FieldError),
        ("name", "x" * 16_385, FieldError),
        ("name", "\udcff", FieldError),
        ("name", b"x", FieldTypeError),
        ("blob", bytes(49_153), FieldError),
        ("blob", "x", FieldTypeError),
        ("bag", math.nan, FieldError),
        ("bag", 2**53, FieldError),
        ("bag", {1: 2}, FieldTypeError),
        ("bag", object(), FieldTypeError),
        ("alive", 1, FieldTypeError),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    name: str, value: Any, error: type[FieldError]
) -> None:
    entity, home = housed(name="a", blob=b"b", bag=[1])
    before = list(stored_values(entity))
    with pytest.raises(error) as caught:
        setattr(entity, name, value)
    assert type(caught.value) is error
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError) is (error is FieldTypeError)
    assert (caught.value.kind, caught.value.id, caught.value.field) == ("dot", 5, name)
    assert str(caught.value).startswith(f"dot 5 of ann: {name}: ")
    assert list(stored_values(entity)) == before
    assert home.heard == []
    with pytest.raises(error, match=rf"dot \(not added\): {name}: "):
        dot(**{name: value})


@pytest.mark.ledger("ENT-10")
def test_the_current_value_is_no_write() -> None:
    entity, home = housed(x=0.1, y=math.nan, name="a", blob=b"b", bag={"a": 1, "b": [2]}, turn=90)
    entity.x = 0.1
    entity.y = math.nan
    entity.hp = 100
    entity.name = "a"
    entity.blob = bytearray(b"b")  # type: ignore[assignment]
    entity.bag = {"b": [2], "a": 1}
    entity.alive = True
    entity.turn = 90
    entity.turn = entity.turn
    entity.patch("blob", 0, b"b")
    assert home.heard == []
    entity.y = 0.0
    entity.y = -0.0
    assert [math.copysign(1, value) for _, value in home.heard] == [1, -1]


@pytest.mark.ledger("ENT-11")
def test_json_is_seen_when_it_is_assigned() -> None:
    entity, home = housed(bag=[1])
    entity.bag.append(2)
    assert home.heard == []
    entity.bag = [1]
    assert home.heard == []  # what others hold is [1] still
    assert entity.bag == [1, 2]
    changed = entity.bag
    entity.bag = changed
    assert home.heard == [("bag", [1, 2])]
    entity.bag = [True, 2]
    assert home.heard[1:] == [("bag", [True, 2])]


def test_writes_before_it_is_added_are_told_to_nobody() -> None:
    entity = dot(x=1)
    entity.x = 2
    entity.heal(3)
    home = Recorder()
    adopt(entity, home, 9, None)
    assert (entity.id, entity.owner, entity.x, entity.hp, home.heard) == (9, None, 2, 103, [])


def test_an_entity_is_added_once_and_has_no_id_before() -> None:
    entity = dot()
    with pytest.raises(DeadEntityError, match="no id before it is added"):
        _ = entity.id
    adopt(entity, Recorder(), 5, None)
    with pytest.raises(ValueError, match="added before"):
        adopt(entity, Recorder(), 6, None)
    assert entity.id == 5


@pytest.mark.ledger("ENT-13")
def test_a_patch_grows_the_field_and_fills_the_gap() -> None:
    entity, home = housed()
    assert entity.blob == b""
    entity.patch("blob", 3, b"ab")
    entity.patch("blob", 0, memoryview(b"xy"))  # type: ignore[arg-type]
    assert entity.blob == b"xy\0ab"
    assert home.heard == [("blob", 3, b"ab", b"\0\0\0ab"), ("blob", 0, b"xy", b"xy\0ab")]


@pytest.mark.ledger("ENT-14")
def test_a_patch_makes_another_bytes_object() -> None:
    entity, _ = housed(blob=b"abc")
    held = entity.blob
    entity.patch("blob", 2, b"XYZ")
    assert (held, entity.blob) == (b"abc", b"abXYZ")


def test_a_patch_that_does_not_fit_changes_nothing() -> None:
    entity, home = housed(blob=b"abc")
    entity.patch("blob", 49_151, b"")
    home.heard.clear()
    for offset, data in (
        (49_152, b"x"),
        (49_150, b"xyz"),
        (-1, b"x"),
        (2.0, b"x"),
        (True, b"x"),
        (10**9, b""),
    ):
        with pytest.raises(FieldError, match="dot 5 of ann: blob: "):
            entity.patch("blob", offset, data)  # type: ignore[arg-type]
    for bad in ("ab", 3, None):
        with pytest.raises(TypeError, match="a patch must be bytes"):
            entity.patch("blob", 0, bad)  # type: ignore[arg-type]
    for name in ("name", "nothing", "cooldown"):
        with pytest.raises(TypeError, match=rf"dot 5 of ann: {name}: it is no bytes field"):
            entity.patch(name, 0, b"x")
    assert (home.heard, len(entity.blob)) == ([], 49_151)


class Big(Entity):
    a: bytes
    b: str
    c: Json[Any]
    d: u8 = 1


def big(**given: Any) -> Big:
    make: Any = Big
    made: Big = make(**given)
    return made


# a: 3 bytes of length and 49,152; b: 2 of length and the rest but c (1 + 4, null) and d (1).
FITS = MAX_ENTITY - (3 + 49_152) - (2 + 5 + 1)


@pytest.mark.ledger("SCHM-13")
def test_an_entity_of_61376_bytes_fits_and_one_of_61377_does_not() -> None:
    entity = big(a=bytes(49_152), b="x" * FITS)
    assert spec_of(entity).size(stored_values(entity)) == MAX_ENTITY == 61_376
    home = Recorder()
    adopt(entity, home, 7, None)
    writes: list[Callable[[], None]] = [
        lambda: setattr(entity, "b", "x" * (FITS + 1)),
        lambda: setattr(entity, "c", "abc"),
    ]
    for write in writes:
        with pytest.raises(
            FieldError, match=r"big 7: [bc]: the entity would have 61377 bytes, and at most 61376"
        ):
            write()
    assert (home.heard, len(entity.b), entity.c) == ([], FITS, None)
    with pytest.raises(FieldError, match=r"big \(not added\): a: .*61376"):
        big(a=bytes(49_152), b="x" * FITS, c="abc")
    entity.b = ""
    entity.c = "abc"  # there is space again


@pytest.mark.ledger("SCHM-13")
def test_the_size_is_kept_through_every_way_of_writing() -> None:
    entity = restore(Big, Recorder(), 7, None, zeros(Big))
    put(entity, 0, bytes(40_000))
    put(entity, 1, "x" * FITS)
    entity.patch("a", 49_151, b"x")
    entity.patch("a", 0, b"y")
    with pytest.raises(FieldError, match="61377"):
        entity.b += "y"
    put(entity, 1, "")
    entity.b = "y" * FITS


def test_a_home_can_refuse_before_anything_is_in_place() -> None:
    class Sealed(Home):
        def on_write(self, entity: Entity, index: int, stored: Any) -> None:
            raise ReadOnlyError(spec_of(entity).fields[index].name)

    entity = dot(name="a", blob=b"b")
    adopt(entity, Sealed(), 5, None)
    writes: list[Callable[[], None]] = [
        lambda: setattr(entity, "name", "bb"),
        lambda: entity.patch("blob", 0, b"xx"),
    ]
    for write in writes:
        with pytest.raises(ReadOnlyError):
            write()
    assert (entity.name, entity.blob) == ("a", b"b")


def test_a_home_can_take_over_the_write_itself() -> None:
    class Mine(Recorder):
        def write(self, entity: Entity, index: int, value: object) -> None:
            if entity.owner != "ann":
                raise ReadOnlyError("not yours")
            super().write(entity, index, value)

    home = Mine()
    entity = restore(Dot, home, 5, "bob", [f.fresh_default() for f in spec_of(Dot).fields])
    with pytest.raises(ReadOnlyError):
        entity.hp = 100  # also the current value
    set_owner(entity, "ann")
    entity.hp = 1
    assert (entity.owner, home.heard) == ("ann", [("hp", 1)])


def test_the_dead_can_be_neither_read_nor_written() -> None:
    entity, home = housed(name="a")
    assert not is_dead(entity)
    bury(entity)
    assert is_dead(entity)
    for name in ("x", "hp", "name", "blob", "bag", "alive", "turn"):
        with pytest.raises(DeadEntityError, match="dot 5 was deleted"):
            getattr(entity, name)
        with pytest.raises(DeadEntityError, match="dot 5 was deleted"):
            setattr(entity, name, None)
    with pytest.raises(DeadEntityError):
        entity.patch("blob", 0, b"x")
    with pytest.raises(DeadEntityError):
        entity.heal(1)
    assert (entity.id, entity.owner, entity.kind, repr(entity)) == (5, "ann", "dot", "<Dot 5, deleted>")
    assert home.heard == []


def test_a_misspelt_attribute_raises() -> None:
    entity = dot()
    with pytest.raises(AttributeError):
        entity.hpp = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = entity.hpp  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="dot has no field hpp, z; did you mean hp"):
        dot(z=1, hpp=2)
    with pytest.raises(TypeError, match="dot has no field id; id and owner are for "):
        dot(id=1)
    with pytest.raises(TypeError, match=r"dot: fields are given by name, as in Dot\(x=\.\.\.\)"):
        Dot(1)  # type: ignore[call-arg]
    assert not hasattr(entity, "__dict__")


@pytest.mark.parametrize("name", ["id", "owner", "kind", "patch"])
def test_what_every_entity_has_cannot_be_set(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(dot(), name, 1)


def test_a_field_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match=r"dot\.hp is a field"):
        del dot().hp


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_handle_has_no_copies(copied: Callable[[object], object]) -> None:
    for value in (dot(), [housed()[0]]):
        if copied is copy.copy and isinstance(value, list):
            continue
        with pytest.raises(TypeError, match="handle"):
            copied(value)


def test_handles_are_compared_by_identity() -> None:
    one, other = dot(), dot()
    assert one == one
    assert one != other
    assert {one: 1, other: 2}[one] == 1


def test_repr_shows_what_there_is() -> None:
    class Small(Entity):
        x: f32 = 1
        bag: Json[list[int]] = [1]

    entity = Small()
    assert repr(entity) == "Small(x=1.0, bag=[1])"
    adopt(entity, Recorder(), 5, "ann")
    assert repr(entity) == "Small(id=5, owner='ann', x=1.0, bag=[1])"


def test_restored_entities_have_their_values_and_fresh_locals() -> None:
    values = zeros(Dot)
    entity = restore(Dot, Recorder(), 12, None, values)
    assert (entity.id, entity.hp, entity.name, entity.bag, entity.cache) == (12, 0, "", None, [])
    put(entity, spec_of(Dot).by_name["hp"].index, 9)
    assert entity.hp == 9


def test_super_finds_a_field_where_the_kind_has_it() -> None:
    class Placed(Entity, abstract=True):
        x: f32 = 1.0
        y: f32 = 2.0

    class Named(Entity, abstract=True):
        name: str = "nobody"
        notes: Json[Any] = None

    class Walker(Placed, Named):
        @property
        def label(self) -> tuple[str, Any]:
            return super().name, super().notes

    walker, base = Walker(name="ann", notes=[1]), vars(Named)["name"]
    assert walker.label == ("ann", [1])
    base.__set__(walker, "bob")
    assert (walker.x, walker.y, walker.label) == (1.0, 2.0, ("bob", [1]))
    with pytest.raises(AttributeError, match="cannot be deleted"):
        base.__delete__(walker)
    assert vars(Placed)["x"].__get__(None, Placed) is vars(Placed)["x"]
