from typing import Any

import pytest

from playhall.client import JsonOut
from playhall.testing import RoomHost, TestRoom

from .bots import PACK_SIZE, Pack
from .room import JOIN_GLOW, Swarm
from .shared import LEAST_GLOW, MAP_CELLS, SIGHT, SIZE, WORTHS, Fish, Light, Mine, Sea


class Pond(Swarm):
    """A sea for tests: few fish, and no bots."""

    fish_count = 40
    pack_count = 0
    return_s = 3


class Guarded(Pond):
    pack_count = 2


PondRoom = TestRoom[Pond, Sea, Mine]


def put(t: TestRoom[Any, Any, Any], player: str, x: float, y: float, glow: int | None = None) -> Light:
    """Put a player's light somewhere; return it as the room has it."""
    light: Light | None = t.room.entities.first(Light, owner=player)
    assert light is not None
    light.x, light.y = x, y
    if glow is not None:
        light.glow = glow
    return light


def banish(t: TestRoom[Any, Any, Any]) -> None:
    """Put all fish into a corner."""
    fish = t.room.entities.columns(Fish)
    fish.x[:], fish.y[:] = 60, 60


async def test_near_is_seen_and_far_is_not(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    mine, other = put(t, "alice", 800, 800), put(t, "bob", 800 + SIGHT - 60, 800)
    banish(t)
    await t.tick()
    alice.expect_sees(other)
    assert alice.entities.count(Fish) == 0
    other.x = SIZE
    await t.tick()
    alice.expect_not_sees(other)
    fish = t.room.entities.columns(Fish)
    fish.x[:], fish.y[:] = 800, 640
    await t.tick()
    assert alice.entities.count(Fish) == len(fish) == Pond.fish_count
    assert bob.entities.count(Fish) == 0
    assert mine.glow == JOIN_GLOW


async def test_who_comes_begins_near_who_is_there(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    await t.connect("alice")
    put(t, "alice", 5, 5)
    await t.tick()
    bob = await t.connect("bob")
    [hers] = bob.entities.all(Light, owner="alice")
    bob.expect_sees(hers)


async def test_a_light_swims_where_it_is_steered_and_stays_in_the_sea(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    light = put(t, "alice", 800, 800)
    put(t, "bob", 700, 800)
    alice.send({"x": 1, "y": 0, "dash": False})
    await t.tick(20)
    assert 860 < light.x < 920
    assert light.y == pytest.approx(800, abs=0.1)
    seen = bob.entities.get(Light, light.id)
    assert seen is not None
    assert (seen.x, seen.vx) == (light.x, 0)  # how fast it is, its owner knows
    light.x = SIZE - 10
    await t.tick(10)
    assert light.x == SIZE
    alice.send({"x": 0, "y": 0, "dash": False})
    await t.tick(40)
    assert light.vx == 0


async def test_a_dash_is_faster_and_takes_glow_while_there_is_some(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice = await t.connect("alice")
    light = put(t, "alice", 300, 800, LEAST_GLOW + 3)
    banish(t)
    alice.send({"x": 1, "y": 0, "dash": True})
    await t.tick(10)
    assert light.vx > 140
    await t.tick(10)
    assert (light.glow, light.is_dashing) == (LEAST_GLOW, False)
    assert light.vx < 120


async def test_fish_within_reach_are_caught_and_begin_anew_elsewhere(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice = await t.connect("alice")
    light = put(t, "alice", 800, 800, 100)
    banish(t)
    fish = t.room.entities.columns(Fish)
    fish.x[:5], fish.y[:5] = 805, 800
    fish.x[5], fish.y[5] = 800, 760
    worth = sum(WORTHS[species] for species in fish.species[:5])
    await t.tick()
    assert light.glow == 100 + worth
    assert alice.private.caught == 5
    assert alice.private.best == 100 + worth
    assert (abs(fish.x[:5] - 805) + abs(fish.y[:5] - 800)).min() > 1
    assert abs(fish.x[5] - 800) < 10


async def test_a_brighter_light_takes_glow_from_what_it_touches(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    await t.connect("alice")
    await t.connect("bob")
    bright, dim = put(t, "alice", 800, 800, 300), put(t, "bob", 815, 800, 30)
    banish(t)
    await t.tick(8)
    assert (bright.glow, dim.glow) == (308, 22)
    await t.tick(4)
    assert (bright.glow, dim.glow) == (310, LEAST_GLOW)


async def test_once_a_second_all_learn_who_is_brightest_and_glow_fades(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    put(t, "alice", 400, 400, 50)
    light = put(t, "bob", 1200, 1200, 1_020)
    banish(t)
    await t.tick(20)
    assert [leader["glow"] for leader in alice.state.leaders] == [light.glow, t.room.state.leaders[1]["glow"]]
    assert 995 <= light.glow <= 1_002
    assert (alice.private.rank, bob.private.rank, alice.state.lights) == (2, 1, 2)
    assert len(alice.state.map) == MAP_CELLS * MAP_CELLS
    assert max(alice.state.map) > 0


async def test_bots_lead_packs_that_hunt(room_host: RoomHost) -> None:
    t = room_host.room(Guarded)
    await t.connect("alice")
    packs = [bot for bot in t.room.bots if isinstance(bot, Pack)]
    assert len(packs) == 2
    lights = {light.id: (light.x, light.y) for light in t.room.entities.all(Light, owner=packs[0].player)}
    assert len(lights) == PACK_SIZE
    await t.tick(20)
    for light in t.room.entities.all(Light, owner=packs[0].player):
        assert (light.x, light.y) != lights[light.id]
        assert light.hue == packs[0].hue
    assert t.errors == []


async def test_a_night_and_a_crash_leave_each_pack_its_lights(room_host: RoomHost) -> None:
    t = room_host.room(Guarded)
    alice = await t.connect("alice")
    put(t, "alice", 500, 600, 77)
    await t.tick()
    await t.crash()
    await alice.reconnected()
    [light] = alice.entities.mine(Light)
    assert light.glow >= 77
    await alice.leave()
    await t.hibernate()
    await t.connect("bob")
    assert t.room.entities.count(Light) == 2 * PACK_SIZE + 1
    assert t.room.entities.count(Fish) == Pond.fish_count
    assert len({light.name for light in t.room.entities.all(Light)}) == 2 * PACK_SIZE + 1


async def test_a_pack_makes_way_for_a_person_and_comes_back(room_host: RoomHost) -> None:
    t = room_host.room(Guarded, max_players=2)
    alice, _ = await t.connect("alice"), await t.connect("bob")
    assert len(t.room.bots) == 0
    assert t.room.entities.count(Light) == 2
    await alice.leave()
    await t.advance(11)
    assert len(t.room.bots) == 1
    assert t.room.entities.count(Light) == 1 + PACK_SIZE


async def test_the_light_of_who_does_not_come_back_goes(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    bob.cut()
    await t.crash()
    await alice.reconnected()
    assert t.room.entities.count(Light) == 2
    await t.advance(Pond.return_s)
    assert [light.owner for light in t.room.entities.all(Light)] == ["alice"]


async def test_who_leaves_stops_and_is_gone_after_ten_seconds(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice, _ = await t.connect("alice"), await t.connect("bob")
    light = put(t, "alice", 800, 800)
    alice.send({"x": 1, "y": 0, "dash": False})
    await t.tick(5)
    await alice.drop()
    assert light.aim_x == 0
    await alice.reconnected()
    await alice.leave()
    await t.advance(11)
    assert t.room.entities.count(Light) == 1


async def test_a_name_is_trimmed_and_shown_to_everyone(room_host: RoomHost) -> None:
    t: PondRoom = room_host.room(Pond)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    alice.send({"name": "  Ada, Countess of Lovelace "})
    await t.tick()
    assert bob.presence["alice"].name == "Ada, Countess of Lov"
    assert alice.entities.mine(Light)[0].name == "Ada, Countess of Lov"


@pytest.mark.parametrize(
    "message",
    [
        None,
        "hello",
        {"x": 2, "y": 0, "dash": False},
        {"x": 0, "y": -(2**53) + 1, "dash": False},
        {"x": 0.5, "y": 0.5},
        {"name": 7},
        b"\x00",
    ],
)
async def test_what_makes_no_sense_changes_nothing(room_host: RoomHost, message: "JsonOut | bytes") -> None:
    t: PondRoom = room_host.room(Pond)
    alice = await t.connect("alice")
    light = put(t, "alice", 800, 800)
    alice.send(message)
    await t.tick(3)
    assert (alice.status, t.errors) == ("open", [])
    assert (light.vx, light.vy) == (0, 0)


async def test_a_whole_sea_begins_with_all_its_fish_and_lights(room_host: RoomHost) -> None:
    t = room_host.room(Swarm)
    alice = await t.connect("alice")
    assert t.room.entities.count(Fish) == 5_000
    assert t.room.entities.count(Light) == 201
    assert 50 < alice.entities.count(Fish) < 1_500
