"""Interests as room code makes them: their keys, whom a grid shows, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from playhall.room import (
    EVERYWHERE,
    Connection,
    Entity,
    Interest,
    Json,
    Limit,
    Room,
    Schema,
    combine,
    f32,
    f64,
    grid,
    i32,
)


class Dot(Entity):
    x: f64 = 0
    y: f64 = 0
    z: f64 = 0


class Chunk(Entity):
    cx: i32 = 0
    cy: i32 = 0


class Flag(Entity):
    x: f32 = 0


class Tag(Entity):
    x: Json[str] = ""
    y: Json[str] = ""


ROOM: Any = SimpleNamespace()
HERE: Any = Connection()


def at(*point: float) -> Any:
    """`around` that is always the same."""
    return lambda room, conn: point


def keys(interest: Interest, entity: Entity) -> list[Any]:
    return list(interest.keys_of(ROOM, entity))


def subscriptions(interest: Interest, conn: Any = HERE) -> list[Any]:
    return list(interest.subscriptions_of(ROOM, conn))


def sees(interest: Interest, entity: Entity) -> bool:
    return interest.sees(ROOM, HERE, entity)


def square(x: int, y: int, radius: int) -> set[str]:
    return {f"{x + dx},{y + dy}" for dx in range(-radius, radius + 1) for dy in range(-radius, radius + 1)}


# Keys


@pytest.mark.ledger("INT-08")
def test_the_key_of_an_entity_is_its_cell() -> None:
    plain = grid(cell_size=10, radius=1, around=at(0, 0))
    assert keys(plain, Dot(x=35, y=-0.5)) == ["3,-1"]
    assert keys(plain, Dot(x=30, y=-10)) == ["3,-1"]
    assert keys(plain, Dot(x=29.999, y=-10.001)) == ["2,-2"]
    deep = grid(cell_size=10, radius=1, around=at(0, 0, 0), dims="xyz", prefix="p:")
    assert keys(deep, Dot(x=35, y=-0.5, z=4)) == ["p:3,-1,0"]
    assert keys(deep, Flag()) == ["p:*"]
    assert "p:*" in subscriptions(deep)
    assert EVERYWHERE == "*"


@pytest.mark.ledger("INT-07")
def test_dims_choose_the_axes() -> None:
    flat = grid(cell_size=10, radius=0, around=at(5, 15), dims="xz")
    assert keys(flat, Dot(x=35, y=99, z=-4)) == ["3,-1"]
    assert set(subscriptions(flat)) == {"*", "0,1"}
    # Where two axes are asked for, a point may have all three.
    assert set(subscriptions(grid(cell_size=10, radius=0, around=at(5, 99, 15), dims="xz"))) == {"*", "0,1"}


@pytest.mark.ledger("INT-09")
def test_what_has_no_position_is_keyed_everywhere() -> None:
    plain = grid(cell_size=10, range=5, around=at(0, 0))
    assert keys(plain, Chunk()) == [EVERYWHERE]
    assert keys(plain, Flag()) == [EVERYWHERE]
    assert EVERYWHERE in subscriptions(plain)
    assert sees(plain, Chunk())
    placed = grid(cell_size=10, range=5, around=at(0, 0), position=lambda room, e: None)
    assert keys(placed, Dot()) == [EVERYWHERE]


@pytest.mark.parametrize("where", [math.nan, math.inf, -math.inf])
def test_what_is_nowhere_has_no_key(where: float) -> None:
    # Decision Q-36.
    plain = grid(cell_size=10, range=1e9, around=at(0, 0))
    assert keys(plain, Dot(x=where)) == []
    assert keys(plain, Dot(y=where)) == []
    assert not sees(plain, Dot(x=where))
    assert subscriptions(grid(cell_size=10, range=5, around=at(0, where))) == [EVERYWHERE]
    assert not sees(grid(cell_size=10, range=5, around=at(0, where)), Dot())


def test_a_cell_that_no_number_names_is_nowhere_too() -> None:
    tiny = grid(cell_size=1e-300, radius=0, around=at(1e300, 0))
    assert keys(tiny, Dot(x=1e300)) == []
    assert subscriptions(tiny) == [EVERYWHERE]


def test_a_position_places_entities_and_the_one_looked_from() -> None:
    me = Chunk(cx=3, cy=-1)
    chunks = grid(
        cell_size=32,
        radius=0,
        around=lambda room, conn: me,
        position=lambda room, e: (e.cx * 32, e.cy * 32) if isinstance(e, Chunk) else None,
    )
    assert keys(chunks, me) == ["3,-1"]
    assert set(subscriptions(chunks)) == {"*", "3,-1"}


@pytest.mark.ledger("INT-10")
def test_around_may_return_an_entity_a_point_or_nothing() -> None:
    def position(room: Any, entity: Any) -> tuple[float, float] | None:
        return (entity.cx * 32, entity.cy * 32) if isinstance(entity, Chunk) else None

    def near(found: Any) -> Interest:
        return grid(cell_size=32, radius=0, around=lambda room, conn: found, position=position)

    assert set(subscriptions(near(Chunk(cx=2)))) == {"*", "2,0"}
    # The position is for chunks, and gives a dot none.
    assert subscriptions(near(Dot(x=64))) == ["*"]
    assert set(subscriptions(near((64, 0)))) == {"*", "2,0"}
    assert subscriptions(near(None)) == ["*"]


@pytest.mark.ledger("INT-11")
def test_kinds_leave_other_kinds_alone() -> None:
    dots = grid(cell_size=10, range=5, around=at(0, 0), kinds=[Dot])
    assert keys(dots, Chunk()) == []
    assert sees(dots, Chunk())
    assert keys(dots, Dot()) == ["0,0"]
    assert not sees(dots, Dot(x=6))
    assert sees(grid(cell_size=10, range=5, around=at(0, 0), kinds=[Chunk]), Dot(x=6))


# Range and radius


@pytest.mark.ledger("INT-12")
@pytest.mark.parametrize("centre", [(0.0, 0.0), (7.3, -4.9), (1e6 + 0.1, -1e6 - 0.7)])
def test_a_range_is_a_circle_and_exact(centre: tuple[float, float]) -> None:
    near = grid(cell_size=10, range=25, around=at(*centre))
    found = subscriptions(near)
    assert len(found) == len(set(found))
    for dx, dy in ((25, 0), (0, -25), (-25, 0), (15, 20), (-20, 15), (7, 24)):
        dot = Dot(x=centre[0] + dx, y=centre[1] + dy, z=1e9)
        if math.dist(centre, (dot.x, dot.y)) <= 25:
            assert sees(near, dot)
            assert keys(near, dot)[0] in found
        beyond = Dot(x=centre[0] + dx * 1.0001, y=centre[1] + dy * 1.0001)
        assert not sees(near, beyond)


def test_with_a_margin_too_it_enters_at_the_range() -> None:
    near = grid(cell_size=10, range=25, margin=5, around=at(0, 0))
    assert sees(near, Dot(x=25))


@pytest.mark.ledger("INT-12")
def test_a_range_subscribes_to_the_cells_the_circle_overlaps() -> None:
    def overlaps(x: int, y: int) -> bool:
        nearest = [max(cell * 10 - at, at - cell * 10 - 10, 0) for cell, at in ((x, 3.0), (y, 4.0))]
        return math.hypot(*nearest) <= 25

    found = set(subscriptions(grid(cell_size=10, range=25, around=at(3, 4))))
    assert found == {"*"} | {f"{x},{y}" for x in range(-9, 9) for y in range(-9, 9) if overlaps(x, y)}
    assert "-3,-3" not in found


@pytest.mark.ledger("INT-12")
def test_a_range_in_three_dimensions_is_a_sphere() -> None:
    near = grid(cell_size=10, range=10, around=at(0, 0, 0), dims="xyz")
    assert sees(near, Dot(x=0, y=6, z=8))
    assert not sees(near, Dot(x=1, y=6, z=8))
    found = subscriptions(near)
    assert "0,0,1" in found
    # Both of these touch the sphere's box; the corner does not touch the sphere.
    assert "1,0,0" in found
    assert "1,1,1" not in found


@pytest.mark.ledger("INT-13")
def test_a_radius_is_a_square_of_cells_without_sees() -> None:
    flat = grid(cell_size=10, radius=2, around=at(35, -5))
    assert set(subscriptions(flat)) == {"*"} | square(3, -1, 2)
    assert len(subscriptions(flat)) == 26
    assert type(flat).sees is Interest.sees
    deep = grid(cell_size=10, radius=1, around=at(0, 0, 0), dims="xyz")
    assert len(subscriptions(deep)) == 28


def test_the_cells_in_the_middle_come_first() -> None:
    # So that of too many the farthest are left out.
    wide = iter(grid(cell_size=1, range=1e6, around=at(0.5, 0.5)).subscriptions_of(ROOM, HERE))
    assert [next(wide) for _ in range(4)] == ["*", "0,0", "0,1", "0,-1"]


# Combining


class Level(Interest):
    def keys_of(self, room: Any, entity: Any) -> Iterable[int]:
        return [1] if isinstance(entity, Flag) else []

    def subscriptions_of(self, room: Any, conn: Any) -> Iterable[float]:
        return [1.0]


def test_a_combined_interest_answers_as_its_parts_do() -> None:
    near = grid(cell_size=10, range=5, around=at(0, 0), kinds=[Dot])
    far = grid(cell_size=10, range=50, around=at(0, 0), kinds=[Chunk], position=lambda room, e: (e.cx, e.cy))
    both = combine(near, combine(far, Level()))
    assert keys(both, Dot(x=12)) == ["1,0"]
    assert keys(both, Chunk(cx=12)) == ["1,0"]
    assert keys(both, Flag()) == [1]
    # All share a key with the far grid, whose `sees` is not for dots.
    assert sees(both, Chunk(cx=12))
    assert not sees(both, Dot(x=12))
    assert not sees(both, Dot(x=8))
    assert sees(both, Flag())


# What is refused


def nothing(room: Any, conn: Any) -> None:
    return None


@pytest.mark.ledger("INT-07")
@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({}, TypeError, "either a range"),
        ({"range": 1, "radius": 1}, TypeError, "either a range"),
        ({"radius": 1, "margin": 2}, TypeError, "a margin goes with a range"),
        ({"range": 1, "cell_size": 0}, ValueError, "cell_size cannot be 0"),
        ({"range": 1, "cell_size": "big"}, TypeError, "cell_size is a number"),
        ({"range": -1}, ValueError, "range cannot be -1"),
        ({"range": math.inf}, ValueError, "range cannot be inf"),
        ({"range": True}, TypeError, "range is a number"),
        ({"range": 1, "margin": math.nan}, ValueError, "margin cannot be nan"),
        ({"radius": 1.5}, TypeError, "radius is a number of cells"),
        ({"radius": -1}, TypeError, "radius is a number of cells"),
        ({"radius": 1, "dims": "yz"}, ValueError, "dims is"),
        ({"radius": 1, "prefix": 3}, TypeError, "prefix is text"),
        ({"radius": 1, "around": None}, TypeError, "around is a kind"),
        ({"radius": 1, "around": str}, TypeError, "around is a kind"),
        ({"radius": 1, "position": 3}, TypeError, "position is a function"),
        ({"radius": 1, "kinds": [str]}, TypeError, "kinds are classes of entities"),
    ],
)
def test_a_grid_says_what_is_wrong_with_it(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    make: Any = grid
    with pytest.raises(error, match=says):
        make(**{"cell_size": 10, "around": nothing, **options})


@pytest.mark.parametrize(
    ("point", "error"),
    [
        ((1,), ValueError),
        ((1, 2, 3, 4), ValueError),
        ("12", TypeError),
        (5, TypeError),
        ((1, "2"), TypeError),
        ((1, True), TypeError),
    ],
)
def test_a_point_is_two_or_three_numbers(point: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="around"):
        subscriptions(grid(cell_size=10, radius=1, around=lambda room, conn: point))
    with pytest.raises(error, match="position"):
        keys(grid(cell_size=10, radius=1, around=nothing, position=lambda room, e: point), Dot())


def test_fields_that_are_no_numbers_are_no_position() -> None:
    with pytest.raises(TypeError, match="tag: a position is made of numbers"):
        keys(grid(cell_size=10, radius=1, around=nothing), Tag())


def test_what_goes_wrong_within_a_position_is_not_taken_for_none() -> None:
    class Wrong(Entity):
        y: f32 = 0

        @property
        def x(self) -> float:
            missing: Any = None
            found: float = missing.position
            return found

    with pytest.raises(AttributeError, match="position"):
        keys(grid(cell_size=10, radius=1, around=nothing), Wrong())


def test_parts_of_a_combination_are_interests_without_a_limit() -> None:
    make: Any = combine
    limit = Limit(3, priority=lambda room, conn, entity: 0)
    with pytest.raises(TypeError, match="needs interests"):
        make()
    with pytest.raises(TypeError, match="takes interests"):
        make("near")
    with pytest.raises(TypeError, match="takes a Limit"):
        make(Level(), limit=3)
    with pytest.raises(TypeError, match="for the whole"):
        make(combine(Level(), limit=limit))


@pytest.mark.parametrize(
    "given",
    [
        {"max": 0},
        {"max": True},
        {"max": 1.5},
        {"priority": None},
        {"bytes_per_second": 0},
        {"bytes_per_second": math.inf},
        {"bytes_per_second": True},
    ],
)
def test_a_limit_says_what_is_wrong_with_it(given: dict[str, Any]) -> None:
    make: Any = Limit
    with pytest.raises(TypeError, match=f"Limit.{next(iter(given))}"):
        make(**{"max": 3, "priority": nothing, **given})


@pytest.mark.parametrize("interest", [Level, "near", grid])
def test_a_rooms_interest_is_an_interest(interest: Any) -> None:
    with pytest.raises(TypeError, match=r"Wrong.interest must be an Interest"):
        type("Wrong", (Room,), {"schema": Schema(), "interest": interest})


def test_the_limit_of_a_rooms_interest_is_a_limit() -> None:
    class Bad(Level):
        limit: Any = 5

    with pytest.raises(TypeError, match="its limit must be a Limit"):
        type("Wrong", (Room,), {"schema": Schema(), "interest": Bad()})


def test_sees_presence_cannot_be_async() -> None:
    async def sees_presence(self: Any, viewer: Any, entry: Any) -> bool:
        return True

    with pytest.raises(TypeError, match="sees_presence cannot be async"):
        type("Wrong", (Room,), {"schema": Schema(), "sees_presence": sees_presence})
