"""Rays and circles through the past."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.room import Entity, History, Hit, Past, Room, Schema, f32, i16
from playhall.testing import RoomHost, TestRoom
from tests.support.rooms import Driver


class Ball(Entity):
    x: f32
    y: f32
    z: f32 = 0


class Chip(Entity):
    x: i16 = 0
    y: i16 = 0


class Angle(Entity):
    angle: f32 = 0
    y: f32 = 0


flat, solid, chips, angles = History(Ball, "x", "y"), History(Ball), History(Chip), History(Angle)


class Field(Room):
    schema = Schema(entities=[Ball, Chip, Angle])
    history = (flat, solid, chips, angles)


async def field(room_host: RoomHost, *places: tuple[float, ...]) -> TestRoom[Field, None, None]:
    """A room with balls at these places, of ids from 2 on, after its first tick."""
    t = room_host.room(Field)
    await t.wake()
    for place in places:
        t.room.entities.add(Ball(**dict(zip("xyz", place, strict=False))))
    await t.tick()
    return t


def found(hit: Hit[Any] | None) -> tuple[int, float] | None:
    return None if hit is None else (hit.id, hit.distance)


async def test_a_ray_meets_the_nearest_where_it_enters_its_circle(room_host: RoomHost) -> None:
    t = await field(room_host, (10, 0), (5, 0.5), (-5, 0), (20, 3))
    past = t.room.rewind(flat, 1)
    assert found(past.ray((0, 0), (1, 0))) == (2, 10)
    assert found(past.ray((0, 0), (1, 0), radius=0.5)) == (3, 5)
    assert found(past.ray((0, 0), (1, 0), radius=1, skip={3})) == (2, 9)
    assert found(past.ray((0, 0), (-2, 0), radius=1)) == (4, 4)
    assert found(past.ray((0, 0), (0, 1), radius=1)) is None
    hit = past.ray((0, 0), (1, 0))
    assert hit is not None
    pose, id, distance = hit
    assert (pose.x, pose.y, pose.id, id, distance) == (10, 0, 2, 2, 10)


async def test_a_ray_goes_as_far_as_its_reach(room_host: RoomHost) -> None:
    t = await field(room_host, (10, 0))
    past = t.room.rewind(flat, 1)
    assert found(past.ray((0, 0), (1, 0), radius=1, reach=9)) == (2, 9)
    assert past.ray((0, 0), (1, 0), radius=1, reach=8.999) is None
    assert past.ray((0, 0), (1e-30, 0), reach=0) is None
    assert found(past.ray((10, 0), (1, 0), reach=0)) == (2, 0)


async def test_one_that_a_ray_starts_in_is_met_at_once(room_host: RoomHost) -> None:
    t = await field(room_host, (0.5, 0), (-0.5, 0), (-1.5, 0))
    past = t.room.rewind(flat, 1)
    assert found(past.ray((0, 0), (1, 0), radius=1, skip=())) == (2, 0)
    assert found(past.ray((0, 0), (1, 0), radius=1, skip=[2])) == (3, 0)
    assert past.ray((0, 0), (1, 0), radius=1, skip=(2, 3)) is None


async def test_of_two_as_near_the_lower_id_is_met(room_host: RoomHost) -> None:
    t = await field(room_host)
    for id in (9, 7, 8):
        t.room.entities.add(Ball(x=5, y=0), id=id)
    await t.tick()
    past = t.room.rewind(flat, 2)
    assert found(past.ray((0, 0), (1, 0))) == (7, 5)
    assert [hit.id for hit in past.near((5, 0), 0)] == [7, 8, 9]


async def test_a_ray_is_cast_at_blended_places(room_host: RoomHost) -> None:
    t = await field(room_host, (10, 0))
    t.room.entities.all(Ball)[0].y = 2
    await t.tick()
    assert found(t.room.rewind(flat, 1.5).ray((0, 1), (1, 0))) == (2, 10)
    assert t.room.rewind(flat, 1.25).ray((0, 1), (1, 0)) is None
    assert found(t.room.rewind(flat, 3).ray((0, 2), (1, 0))) == (2, 10)


async def test_in_three_dimensions_entities_are_spheres(room_host: RoomHost) -> None:
    t = await field(room_host, (0, 0, 10), (0, 0.5, 5))
    past = t.room.rewind(solid, 1)
    assert found(past.ray((0, 0, 0), (0, 0, 3))) == (2, 10)
    assert found(past.ray((0, 0, 0), (0, 0, 3), radius=0.5)) == (3, 5)
    assert found(past.ray((0, 0), (0, 1), radius=0.1)) == (2, 0)
    assert [(hit.id, hit.distance) for hit in past.near((0, 0, 10), 8)] == [(2, 0), (3, math.sqrt(25.25))]
    assert [(hit.id, hit.distance) for hit in past.near((0, 0), 8)] == [(2, 0), (3, 0.5)]


async def test_near_gives_what_is_in_a_circle_the_nearest_first(room_host: RoomHost) -> None:
    t = await field(room_host, (3, 4), (1, 0), (5, 0.1), (0, -2))
    past = t.room.rewind(flat, 1)
    assert [(hit.id, hit.distance) for hit in past.near((0, 0), 5)] == [(3, 1), (5, 2), (2, 5)]
    assert [hit.id for hit in past.near((0, 0), 5, skip={3})] == [5, 2]
    assert past.near((0, 0), 0.5) == []
    assert past.near((0, 0), math.inf)[-1].id == 4


async def test_whole_numbers_place_entities_too(room_host: RoomHost) -> None:
    t = await field(room_host)
    chip = t.room.entities.add(Chip(x=-7, y=300))
    await t.tick()
    assert found(t.room.rewind(chips, 2).ray((-7, 0), (0, 1))) == (chip.id, 300)


async def test_what_is_nowhere_is_met_by_nothing(room_host: RoomHost) -> None:
    t = await field(room_host, (math.nan, 0), (math.inf, 0), (5, 0))
    past = t.room.rewind(flat, 1)
    assert found(past.ray((0, 0), (1, 0), radius=1)) == (4, 4)
    assert [hit.id for hit in past.near((0, 0), 1e9)] == [4]


async def test_a_client_cannot_stop_a_room_by_a_direction_of_no_length(room_host: RoomHost) -> None:
    t = await field(room_host, (0, 0), (5, 0))
    past = t.room.rewind(flat, 1)
    assert past.ray((0, 0), (0, 0), radius=9) is None
    assert past.ray((0, 0), (-0.0, 0.0), radius=9) is None
    assert found(past.ray((1, 0), (5e-324, 0))) == (3, 4)
    assert found(past.ray((1, 0), (1.7e308, 0))) == (3, 4)
    assert found(past.ray((1, 0), (1.7e308, 1.7e308), radius=4)) == (2, 0)


async def test_vectors_may_be_lists_arrays_and_of_numpys_numbers(room_host: RoomHost) -> None:
    t = await field(room_host, (5, 0))
    past = t.room.rewind(flat, 1)
    assert found(past.ray([0, 0], np.array([1.0, 0.0]).tolist())) == (2, 5)
    number: Any = np.float32(0)
    assert found(past.ray((number, number), (number + 1, number), radius=number + 1)) == (2, 4)
    assert found(past.near((2**70, 0), 2**71)[0]) == (2, 2.0**70)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"origin": (0, math.nan)}, ValueError, "origin must be finite"),
        ({"direction": (math.inf, 0)}, ValueError, "direction must be finite"),
        ({"origin": (0, 0, 0)}, ValueError, "origin has 3 coordinates and direction 2"),
        ({"origin": (0,)}, ValueError, r"origin is \(x, y\) or \(x, y, z\), and has not 1 coordinates"),
        ({"origin": (0, "1")}, TypeError, "origin is .* in numbers"),
        ({"origin": 5}, TypeError, "origin is .* in numbers"),
        ({"origin": None}, TypeError, "origin is .* in numbers"),
        ({"radius": -1}, ValueError, "radius must be 0 or more, not -1"),
        ({"radius": math.nan}, ValueError, "radius must be 0 or more"),
        ({"radius": True}, TypeError, "radius must be a number, not bool"),
        ({"reach": -0.5}, ValueError, "reach must be 0 or more"),
        ({"reach": math.nan}, ValueError, "reach must be 0 or more"),
        ({"reach": "far"}, TypeError, "reach must be a number, not str"),
        ({"skip": 2}, TypeError, "skip is a set of ids, or the like, and not 2"),
    ],
)
async def test_a_ray_that_makes_no_sense_is_refused(
    room_host: RoomHost, change: dict[str, Any], error: type[Exception], text: str
) -> None:
    t = await field(room_host, (5, 0))
    past = t.room.rewind(solid, 1)
    ray: dict[str, Any] = {"origin": (0, 0), "direction": (1, 0), **change}
    with pytest.raises(error, match=text):
        past.ray(**ray)


async def test_what_has_no_place_has_no_rays(room_host: RoomHost) -> None:
    t = await field(room_host)
    with pytest.raises(TypeError, match="origin has 2 coordinates, and x is not recorded, but angle, y"):
        t.room.rewind(angles, 1).ray((0, 0), (1, 0))
    with pytest.raises(TypeError, match="point has 3 coordinates, and z is not recorded, but x, y"):
        t.room.rewind(flat, 1).near((0, 0, 0), 1)
    with pytest.raises(ValueError, match="radius must be 0 or more"):
        t.room.rewind(flat, 1).near((0, 0), -1)
    with pytest.raises(TypeError, match="skip is a set"):
        t.room.rewind(flat, 1).near((0, 0), 1, skip=3)  # type: ignore[arg-type]


@pytest.mark.ledger("LCI-18")
async def test_what_was_hit_may_have_left_since(room_host: RoomHost) -> None:
    t = await field(room_host, (5, 0))
    t.room.entities.delete(t.room.entities.all(Ball)[0])
    await t.tick()
    hit = t.room.rewind(flat, 1).ray((0, 0), (1, 0))
    assert hit is not None
    assert t.room.entities.get(Ball, hit.id) is None


async def test_it_reaches_all_of_many(room_host: RoomHost) -> None:
    """More than the native loops take at a time."""
    t = await field(room_host, *((i, 0) for i in range(600)))
    past = t.room.rewind(flat, 1)
    for i in (0, 255, 256, 511, 512, 599):
        assert found(past.ray((i, 5), (0, -1))) == (i + 2, 5)
        assert [hit.id for hit in past.near((i, 0), 0.5)] == [i + 2]
    assert found(past.ray((-1, 0), (1, 0), skip=range(500))) == (500, 499)
    assert len(past.near((0, 0), 600)) == 600


coordinates = st.floats(-100, 100, width=32)


@settings(max_examples=25)
@given(
    places=st.lists(st.tuples(coordinates, coordinates), max_size=20),
    origin=st.tuples(coordinates, coordinates),
    angle=st.floats(0, 2 * math.pi),
    radius=st.floats(0.01, 50),
    reach=st.floats(0, 200),
)
def test_a_ray_stops_at_the_edge_of_the_first_circle(
    places: list[tuple[float, float]],
    origin: tuple[float, float],
    angle: float,
    radius: float,
    reach: float,
) -> None:
    past = past_of(places)
    ux, uy = math.cos(angle), math.sin(angle)
    hit = past.ray(origin, (ux, uy), radius=radius, reach=reach)
    stop = reach if hit is None else hit.distance
    # On the way there it is in no circle, and there it is on the edge of the one it met.
    for part in (0.0, 0.3, 0.6, 0.9, 0.99):
        x, y = origin[0] + part * stop * ux, origin[1] + part * stop * uy
        if hit is None or hit.distance > 0:
            assert all(math.hypot(px - x, py - y) >= radius - 1e-4 for px, py in places)
    if hit is not None:
        x, y = origin[0] + stop * ux, origin[1] + stop * uy
        away = math.hypot(hit.pose.x - x, hit.pose.y - y)
        assert away <= radius + 1e-4
        assert stop == 0 or away >= radius - 1e-4
        assert stop <= reach


def past_of(places: list[tuple[float, float]]) -> Past[Ball]:
    driver = Driver(Field)
    room: Field = driver.room
    for x, y in places:
        room.entities.add(Ball(x=x, y=y))
    driver.tick()
    return room.rewind(flat, 1)
