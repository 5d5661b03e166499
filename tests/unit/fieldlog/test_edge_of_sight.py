"""Field log F18: what goes out of sight and comes back, at the very edge, in the dark, or in two views."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from playhall.room import Connection, Entity, Room, Schema, combine, f32, grid, u8
from playhall.testing import RoomHost, TestClient


class Npc(Entity):
    x: f32
    y: f32 = 0
    a: u8 = 0
    b: u8 = 0
    c: u8 = 0
    name: str = ""
    data: bytes = b""


class Camera(Entity):
    x: f32 = 0
    y: f32 = 0


class Eye(Entity):
    x: f32 = 0
    y: f32 = 0


class Field(Room):
    schema = Schema(entities=[Npc, Camera, Eye])
    interest = grid(cell_size=25, range=50, margin=1, around=Camera)

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Camera(), owner=conn.player, once=True)


class Exact(Field):
    interest = grid(cell_size=25, range=50, around=Camera)


class TwoViews(Field):
    """Each player looks from two places."""

    interest = combine(
        grid(cell_size=25, range=50, margin=1, around=Camera, kinds=[Npc]),
        grid(cell_size=25, range=50, margin=1, around=Eye, kinds=[Npc], prefix="e"),
    )

    def on_join(self, conn: Connection) -> None:
        super().on_join(conn)
        self.entities.add(Eye(), owner=conn.player, once=True)


def story(client: TestClient[Any, Any]) -> list[str]:
    """What a client is told of npcs coming and going, from now on."""
    told: list[str] = []
    client.entities.on_enter(Npc, lambda npc: told.append("enter"))
    client.entities.on_leave(Npc, lambda npc: told.append("leave"))
    return told


@pytest.mark.parametrize(("room_class", "most"), [(Field, 1), (TwoViews, 1), (Exact, 600)])
async def test_f18_back_and_forth_over_the_edge(
    room_host: RoomHost, room_class: type[Field], most: int
) -> None:
    """With a margin it comes in once and stays. Without one the grid is exact: it says so, each time."""
    t = room_host.room(room_class)
    alice = await t.connect("alice")
    told = story(alice)
    npc = t.room.entities.add(Npc(x=50.1))
    for n in range(600):
        npc.x = 50.1 if n % 2 else 49.9
        await t.tick()
    assert told.count("enter") <= most
    assert len(told) == (1 if most == 1 else 600)
    npc.x = 51.1
    await t.tick()
    assert told[-1] == "leave"
    assert alice.entities.all(Npc) == []


@pytest.mark.parametrize("how", ["back", "changed", "deleted", "another", "moves in the dark"])
async def test_f18_what_happens_while_nothing_gets_through(room_host: RoomHost, how: str) -> None:
    t = room_host.room(Field)
    alice = await t.connect("alice")
    told = story(alice)
    npc = t.room.entities.add(Npc(x=10, data=b"abc"))
    await t.tick()
    alice.cut()
    await t.advance(1)
    npc.x = 500
    await t.advance(1)
    match how:
        case "back":
            npc.x = 20
        case "changed":
            npc.x, npc.a, npc.b, npc.c, npc.name = 20, 1, 2, 3, "new"
            npc.patch("data", 1, b"XY")
        case "deleted":
            t.room.entities.delete(npc)
        case "another":
            t.room.entities.delete(npc)
            npc = t.room.entities.add(Npc(x=20, name="another"), id=npc.id)
        case _:
            npc.a = 9
            await t.tick()
            npc.x = 20
    await t.advance(1)
    alice.mend()
    await t.advance(1)
    assert alice.events == ["waking"]
    found = alice.entities.all(Npc)
    if how == "deleted":
        assert found == []
        assert told == ["enter", "leave"]
        return
    [one] = found
    assert (one.id, one.x, one.a, one.b, one.c, one.name, one.data) == (
        npc.id, npc.x, npc.a, npc.b, npc.c, npc.name, npc.data,
    )  # fmt: skip
    # However many times it came and went in the dark, each leave is of an enter, and it is there once.
    assert told[0] == told[-1] == "enter"
    assert all(a != b for a, b in itertools.pairwise(told))


@pytest.mark.parametrize("how", ["back", "deleted", "another"])
async def test_f18_what_happens_while_a_client_is_away(room_host: RoomHost, how: str) -> None:
    """The same for one that loses its connection, and resumes from what it held."""
    t = room_host.room(Field)
    alice = await t.connect("alice")
    told = story(alice)
    npc = t.room.entities.add(Npc(x=10, name="old"))
    await t.tick()
    await alice.drop()
    npc.x = 500
    await t.tick()
    match how:
        case "back":
            npc.x, npc.name = 20, "new"
        case "deleted":
            t.room.entities.delete(npc)
        case _:
            t.room.entities.delete(npc)
            npc = t.room.entities.add(Npc(x=20, name="new"), id=npc.id)
    await alice.reconnected()
    await t.tick()
    assert [(one.id, one.x, one.name) for one in alice.entities.all(Npc)] == (
        [] if how == "deleted" else [(npc.id, 20, "new")]
    )
    assert (
        told
        == {"back": ["enter"], "deleted": ["enter", "leave"], "another": ["enter", "leave", "enter"]}[how]
    )


async def test_f18_two_views_of_one_client(room_host: RoomHost) -> None:
    """Both show it: it comes once. A jump away and back within a tick is none. Out of one view, it stays."""
    t = room_host.room(TwoViews)
    alice = await t.connect("alice")
    told = story(alice)
    npc = t.room.entities.add(Npc(x=10))
    await t.tick(3)
    assert told == ["enter"]
    npc.x = 1_000
    npc.x = 10
    await t.tick()
    camera = t.room.entities.first(Camera, owner="alice")
    eye = t.room.entities.first(Eye, owner="alice")
    assert camera is not None
    assert eye is not None
    camera.x = 1_000
    await t.tick()
    camera.x = 10
    await t.tick()
    eye.x = -500
    await t.tick()
    assert told == ["enter"]
    camera.x = 500
    await t.tick()
    assert told == ["enter", "leave"]
    eye.x = camera.x = 0
    await t.tick()
    assert told == ["enter", "leave", "enter"]
    assert [one.x for one in alice.entities.all(Npc)] == [10]
