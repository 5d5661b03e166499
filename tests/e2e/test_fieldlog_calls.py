"""Field log F16: counters that wrap, and a saved number that was tampered with."""

from __future__ import annotations

import asyncio

import pytest

from playhall.engine.outputs import StoredRoom, WakeInfo
from playhall.room import Call, Connection, Entity, Room, Schema, u8
from playhall.testing import RoomHost
from tests.support.rooms import Driver

CALLS = 70_000
AT_ONCE = 32


class Double(Call[int]):
    n: int


class Level(Entity):
    before: str = "<<<"
    level: u8 = 7
    after: str = ">>>"


class Desk(Room[Level]):
    schema = Schema(state=Level, calls=[Double])

    @Double.handler
    def double(self, conn: Connection, ask: Double) -> int:
        return 2 * ask.n


@pytest.mark.timeout(300)
async def test_f16_many_calls_on_one_connection(room_host: RoomHost) -> None:
    """Reply n belongs to call n, past 255 and past 65,535; in the time it takes at 120 a second."""
    t = room_host.room(Desk)
    alice = await t.connect("alice")
    for first in range(0, CALLS, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, CALLS))
        asked = [alice.call(Double(n=n)) for n in numbers]
        await t.advance(AT_ONCE / 120)
        assert await asyncio.gather(*asked) == [2 * n for n in numbers]
    assert alice.events == ["waking"]


def test_f16_a_saved_number_that_no_number_of_its_type_could_be() -> None:
    """-2 put where a u8 is saved is the u8 254 and no more: the room wakes, and the player gets in."""
    driver = Driver(Desk)
    driver.join("ann")
    driver.room.state.level = 77
    driver.tick()
    driver.hibernate()
    base = driver.stored.base
    assert base is not None
    saved = b"\x03<<<" + bytes([77]) + b"\x03>>>"
    assert base.count(saved) == 1
    tampered = base.replace(saved, b"\x03<<<" + (-2).to_bytes(1, "little", signed=True) + b"\x03>>>")
    woken = Driver(Desk, stored=StoredRoom(tampered), wake=WakeInfo("connect"), generation=2)
    ann = woken.join("ann")
    assert (woken.room.state.level, ann.closed) == (254, None)
    woken.assert_in_sync(ann)
