"""A room that moves its entities by columns, as its clients and its store see it."""

from __future__ import annotations

from typing import Annotated

import pytest

from playhall.client import PlayhallError
from playhall.room import (
    Connection,
    Entity,
    Interest,
    Message,
    Room,
    Schema,
    Wake,
    f32,
    grid,
    q16,
    u8,
    writable,
)
from playhall.testing import RoomHost, RoomStoppedError


class Npc(Entity):
    x: f32 = 0
    vx: f32 = 0
    angle: Annotated[float, q16(0, 360)] = 0
    hp: u8 = 100


class Pilot(Entity):
    thrust: writable[u8] = 0
    fuel: u8 = 100


class Swarm(Room):
    schema = Schema(entities=[Npc, Pilot])

    def on_create(self) -> None:
        for i in range(3):
            self.entities.add(Npc(vx=i))
        self.entities.columns(Npc).x = [10, 20, 30]

    def on_wake(self, wake: Wake) -> None:
        npcs = self.entities.columns(Npc)
        npcs.hp -= 1

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Pilot(), owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Message) -> None:
        npcs = self.entities.columns(Npc)
        match message:
            case "shift":
                npcs.x += 1
            case "turn":
                npcs.angle[1] = 400
            case "brake":
                self.entities.columns(Pilot).thrust = 3
            case "replace":
                self.entities.delete(self.entities.all(Npc)[0])
                self.entities.add(Npc(x=-1))
            case _:
                npcs.angle = 400

    def on_tick(self, dt: float) -> None:
        npcs = self.entities.columns(Npc)
        npcs.x += npcs.vx * dt


async def test_clients_see_what_columns_write_in_a_tick(room_host: RoomHost) -> None:
    t = room_host.room(Swarm)
    ann = await t.connect("ann")
    bob = await t.connect("bob")
    await t.tick(20)
    for client in (ann, bob):
        assert [npc.x for npc in client.entities.all(Npc)] == pytest.approx([10, 21, 32], abs=1e-4)
        assert [npc.x for npc in client.entities.all(Npc)] == [npc.x for npc in t.room.entities.all(Npc)]
    ann.send("replace")
    await t.tick()
    npcs = t.room.entities.columns(Npc)
    assert sorted(npc.id for npc in bob.entities.all(Npc)) == sorted(npcs.id[npcs.alive].tolist())
    assert {npc.id: npc.x for npc in bob.entities.all(Npc)} == {
        npc.id: npc.x for npc in t.room.entities.all(Npc)
    }


async def test_a_join_between_ticks_tells_everyone_what_columns_wrote(room_host: RoomHost) -> None:
    t = room_host.room(Swarm)
    ann = await t.connect("ann")
    ann.send("shift")
    await t.advance(0.001)
    before = [npc.x for npc in ann.entities.all(Npc)]
    bob = await t.connect("bob")
    for client in (ann, bob):
        assert [npc.x for npc in client.entities.all(Npc)] == [x + 1 for x in before]


async def test_what_columns_wrote_is_there_after_a_crash_and_after_hibernation(room_host: RoomHost) -> None:
    t = room_host.room(Swarm)
    ann = await t.connect("ann")
    await t.tick()
    xs = [npc.x for npc in t.room.entities.all(Npc)]
    await t.crash()
    await t.wake()
    assert [npc.x for npc in t.room.entities.all(Npc)] == xs
    assert [npc.hp for npc in t.room.entities.all(Npc)] == [99, 99, 99]
    await ann.leave()
    await t.hibernate()
    stored = [each for each in t.stored().entities if each.kind == "npc"]
    assert [each.fields["hp"] for each in stored] == [99, 99, 99]
    await t.wake()
    assert t.room.entities.columns(Npc).hp.tolist() == [98, 98, 98]


async def test_an_owner_is_corrected_in_what_a_column_wrote(room_host: RoomHost) -> None:
    t = room_host.room(Swarm)
    ann = await t.connect("ann")
    mine = ann.entities.all(Pilot)[0]
    mine.thrust = 200
    await t.tick()
    assert t.room.entities.columns(Pilot).thrust.tolist() == [200]
    ann.send("brake")
    await t.tick()
    assert mine.thrust == 3


async def test_a_quantised_column_out_of_bounds_stops_the_room_with_a_line_that_says_so(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Swarm)
    ann = await t.connect("ann")
    ann.send("turn")
    with pytest.raises(RoomStoppedError, match=r"npc 3: angle: 400\.0 is outside q16, 0\.0 to 360\.0"):
        await t.tick()
    assert any("hook='columns'" in line and "npc 3: angle" in line for line in t.log), t.log
    assert "Written through entities.columns()" in t.errors[-1]


async def test_an_assignment_that_does_not_fit_raises_at_its_line_and_stops_nothing(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Swarm)
    ann = await t.connect("ann")
    ann.send("odd")
    await t.tick()
    assert "npcs.angle = 400" in t.errors[-1]
    assert "npc 2: angle: 400.0 is outside q16" in t.errors[-1]
    assert t.status == "active"


class Field(Room):
    schema = Schema(entities=[Npc, Pilot])
    interest = grid(
        cell_size=10,
        range=10,
        around=lambda room, conn: (0.0, 0.0),
        position=lambda room, npc: (npc.x, 0.0),
        kinds=[Npc],
    )

    def on_create(self) -> None:
        for x in (0, 5, 100):
            self.entities.add(Npc(x=x))


async def test_interest_follows_columns(room_host: RoomHost) -> None:
    t = room_host.room(Field)
    ann = await t.connect("ann")
    assert {npc.x for npc in ann.entities.all(Npc)} == {0, 5}
    npcs = t.room.entities.columns(Npc)
    npcs.x = [100, 6, 7]
    await t.tick()
    assert {npc.x for npc in ann.entities.all(Npc)} == {6, 7}


class Meddler(Interest):
    def keys_of(self, room: Swarm, entity: Entity) -> list[str]:
        return ["all"]

    def subscriptions_of(self, room: Swarm, conn: Connection) -> list[str]:
        room.entities.columns(Npc).angle[:] = 400
        return ["all"]


class Meddled(Swarm):
    interest = Meddler()


async def test_interest_that_writes_columns_ends_the_room(room_host: RoomHost) -> None:
    t = room_host.room(Meddled)
    with pytest.raises(PlayhallError):
        await t.connect("ann")
    assert "are to look, and changed the room" in t.errors[-1]
