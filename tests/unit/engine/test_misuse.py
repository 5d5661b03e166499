"""Room code that misuses what it is given: the exception names what it is about, at the line that did it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from playhall.room import Connection, DeadEntityError, Entity, FieldError, Message, Room, Schema, f32, u8
from playhall.testing import RoomHost, RoomStoppedError

Case = tuple[Callable[[Any], object], type[Exception], str]


class Board(Entity):
    moves: u8 = 0


class Mine(Entity):
    coins: u8 = 0


class Npc(Entity, max=3):
    x: f32 = 0
    hits: u8 = 0
    on: bool = False
    name: str = ""
    blob: bytes = b""


class Trap(Entity, hidden=True):
    armed: bool = False


class Stranger(Entity):
    x: f32 = 0


class Game(Room[Board, Mine]):
    """Runs `case` in a hook, where all that it needs is at hand."""

    schema = Schema(state=Board, private=Mine, entities=[Npc, Trap])
    case: Callable[[Any], object] | None = None
    in_tick: Callable[[Any], object] | None = None

    def on_create(self) -> None:
        self.npc = self.entities.add(Npc())
        self.dead = self.entities.add(Npc())
        self.entities.delete(self.dead)

    def on_join(self, conn: Connection) -> None:
        self.conn = conn

    def on_message(self, conn: Connection, message: Message) -> None:
        assert self.case is not None
        self.case(self)

    def on_tick(self, dt: float) -> None:
        if self.in_tick is not None:
            self.in_tick(self)


class Other(Room):
    schema = Schema(entities=[Npc])

    def on_join(self, conn: Connection) -> None:
        self.conn = conn


NOT_A_CONNECTION = r"takes a connection, one of self\.connections\.values\(\), not "
NOT_A_PLAYER = "a player is named by its id, a str, not "

CASES: list[Case] = [
    (lambda r: r.entities.add(Npc), TypeError, "takes an entity, not the class Npc"),
    (lambda r: r.entities.add("npc", once=True), TypeError, "takes an entity, not 'npc'"),
    (lambda r: r.entities.add(r.npc), ValueError, r"Npc\(id=2, .* was added before; make a new one"),
    (lambda r: r.entities.add(r.dead), ValueError, "<Npc 3, deleted> was added before"),
    (lambda r: r.entities.add(Stranger()), TypeError, "Stranger is not one of the schema's entities"),
    (lambda r: r.entities.add(Board()), TypeError, "Board is not one of the schema's entities"),
    (lambda r: r.entities.add(Npc(), owner=r.conn), TypeError, NOT_A_PLAYER + "Connection"),
    (lambda r: r.entities.add(Npc(), id="5"), TypeError, "an id is an int, not str"),
    (lambda r: r.entities.add(Npc(), id=True), TypeError, "an id is an int, not bool"),
    (lambda r: r.entities.add(Npc(), id=2), ValueError, r"id 2 is taken by Npc\(id=2"),
    (lambda r: r.entities.add(Trap(), owner="ann"), TypeError, "trap: a hidden entity belongs to the room"),
    (
        lambda r: [r.entities.add(Npc()) for _ in range(3)],
        ValueError,
        "there are 3 npc already, the most of this kind",
    ),
    (lambda r: r.entities.delete(r.npc.id), TypeError, "takes an entity, not 2"),
    (lambda r: r.entities.delete(r.dead), DeadEntityError, "<Npc 3, deleted> is not one of the room's"),
    (
        lambda r: r.entities.delete(r.state),
        DeadEntityError,
        r"Board\(id=0, moves=0\) is not one of the room's",
    ),
    (lambda r: r.entities.set_owner(r.npc, r.conn), TypeError, NOT_A_PLAYER + "Connection"),
    (lambda r: r.entities.set_owner(r.dead, "ann"), DeadEntityError, "<Npc 3, deleted>"),
    (lambda r: r.entities.set_owner(None, "ann"), TypeError, "takes an entity, not None"),
    (lambda r: r.entities.get("5"), TypeError, "an id is an int, not str"),
    (lambda r: r.entities.get(Npc), TypeError, "an id is an int, not NoneType"),
    (lambda r: r.entities.get(5, Npc), TypeError, "get takes an id, or a kind and an id"),
    (lambda r: r.entities.get(Stranger, 2), TypeError, "Stranger is not one of the schema's entities"),
    (lambda r: r.entities.all("npc"), TypeError, "a kind is named by its class, and not by 'npc'"),
    (lambda r: r.entities.first(Stranger), TypeError, "Stranger is not one of the schema's entities"),
    (lambda r: r.entities.count(int), TypeError, "int is not one of the schema's entities"),
    (lambda r: r.entities.all(Npc, owner=r.conn), TypeError, NOT_A_PLAYER + "Connection"),
    (lambda r: r.private(3), TypeError, NOT_A_PLAYER + "int"),
    (lambda r: r.private("", create=True), ValueError, "a player's id has 1 to 128 bytes, not 0"),
    (lambda r: r.send("ann", 1), TypeError, NOT_A_CONNECTION + "'ann'"),
    (lambda r: r.kick(None), TypeError, NOT_A_CONNECTION + "NoneType"),
    (lambda r: r.broadcast(1, except_=[r.conn]), TypeError, NOT_A_CONNECTION + "list"),
    (lambda r: r.send(r.conn, {1: 2}), ValueError, "a key of an object must be str, not int"),
    (lambda r: r.send(r.conn, r.npc), ValueError, "Npc is not JSON"),
    (lambda r: r.broadcast(float("nan")), ValueError, "nan is not JSON"),
    (
        lambda r: r.broadcast(b"x" * 65_537),
        ValueError,
        "65537 bytes, and a message or call has at most 65536",
    ),
    (lambda r: r.ban(r.conn), TypeError, NOT_A_PLAYER + "Connection"),
    (lambda r: r.unban(3), TypeError, NOT_A_PLAYER + "int"),
    (lambda r: r.ban("\ud800"), ValueError, "a player's id is Unicode, and .* has half a surrogate pair"),
    (lambda r: r.bots.add("bot"), TypeError, "a bot is an instance of a Bot, not str"),
    (lambda r: r.bots.remove("bot:2"), TypeError, "takes a bot, not 'bot:2'"),
    (lambda r: r.presence.set("ghost", name="x"), KeyError, "ghost is not in the room"),
    (lambda r: r.presence.set(r.conn, name="x"), TypeError, NOT_A_PLAYER + "Connection"),
    (lambda r: r.presence.set("ann", name=3), TypeError, "a name must be str, not int"),
    (lambda r: setattr(r.npc, "x", "far"), FieldError, "npc 2: x: must be float, not str"),
    (lambda r: setattr(r.state, "moves", 256), FieldError, "board 0: moves: 256 is outside u8, 0 to 255"),
    (lambda r: setattr(r.private(r.conn), "coins", -1), FieldError, "mine 1 of ann: coins: -1 is outside u8"),
    (lambda r: setattr(r.npc, "nam", "x"), AttributeError, "'Npc' object has no attribute 'nam'"),
    (lambda r: r.npc.patch("blob", "0", b"x"), FieldError, "npc 2: blob: a patch's offset must be int"),
    (lambda r: r.npc.patch("name", 0, b"x"), TypeError, "npc 2: name: it is no bytes field"),
    (lambda r: r.dead.x, DeadEntityError, "npc 3 was deleted"),
    (lambda r: setattr(r.dead, "x", 1), DeadEntityError, "npc 3 was deleted"),
    (lambda r: setattr(r, "tick", 1), AttributeError, "tick"),
    (lambda r: setattr(r.npc, "__class__", Trap), AttributeError, "__class__"),
    (lambda r: setattr(Npc(), "__class__", Stranger), AttributeError, "__class__"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[2][:40])
async def test_misuse_raises_what_says_it(room_host: RoomHost, case: Case) -> None:
    t = room_host.room(Game)
    ann = await t.connect("ann")
    call, error, text = case

    def misuse(room: Any) -> None:
        with pytest.raises(error, match=text):
            call(room)

    t.room.case = misuse
    ann.send("go")
    await t.tick()
    assert t.errors == []
    assert t.status == "active"
    assert t.room.npc.x == 0


async def test_what_belongs_to_another_room_is_refused(room_host: RoomHost) -> None:
    t, other = room_host.room(Game), room_host.room(Other, id="other")
    await t.connect("ann")
    await other.connect("bob")
    theirs = other.room.entities.add(Npc())
    room: Any = t.room
    misuses: list[Callable[[], object]] = [
        lambda: room.send(other.room.conn, 1),
        lambda: room.kick(other.room.conn),
        lambda: room.private(other.room.conn),
        lambda: room.broadcast(1, except_=other.room.conn),
    ]
    for misuse in misuses:
        with pytest.raises(ValueError, match="of bob> is not a connection of this room"):
            misuse()
    with pytest.raises(DeadEntityError, match="is not one of the room's entities"):
        room.entities.delete(theirs)
    with pytest.raises(ValueError, match="was added before"):
        room.entities.add(theirs)
    assert theirs not in room.entities
    assert room.private_players() == ["ann"]
    with pytest.raises(TypeError, match="the room's schema has no private state"):
        other.room.private(other.room.conn)


async def test_a_connection_that_has_gone_takes_what_is_sent_and_nothing_comes_of_it(
    room_host: RoomHost,
) -> None:
    t = room_host.room(Game)
    ann = await t.connect("ann")
    gone = t.room.conn
    t.room.private(gone).coins = 3
    await ann.leave()
    await t.tick()
    t.room.send(gone, 1)
    t.room.kick(gone)
    t.room.broadcast(1, except_=gone)
    assert t.room.private(gone).coins == 3


async def test_the_log_names_the_hook_and_its_traceback_ends_at_the_line(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    ann = await t.connect("ann")

    def misuse(room: Game) -> None:
        room.npc.x = "far"  # type: ignore[assignment]

    t.room.case = misuse
    ann.send("go")
    await t.tick()
    [line] = [line for line in t.log if line.startswith("room.hook_failed")]
    assert "hook='on_message'" in line
    assert "npc 2: x: must be float, not str" in line
    [trace] = t.errors
    lines = trace.splitlines()
    assert "in on_message" in lines[1]
    assert [line.strip() for line in lines if "in misuse" in line or "room.npc.x" in line][-1].startswith(
        "room.npc"
    )
    assert "/playhall/engine/" not in trace

    t.room.in_tick = misuse
    with pytest.raises(RoomStoppedError, match="npc 2: x: must be float, not str"):
        await t.tick()
    assert any("hook='on_tick'" in line for line in t.log)


class Slow(Room):
    schema = Schema(entities=[Npc])

    async def on_message(self, conn: Connection, message: Message) -> None:
        npc = self.entities.add(Npc())
        await asyncio.sleep(0.01)
        npc.x = "far"  # type: ignore[assignment]


async def test_a_traceback_of_an_async_hook_is_of_room_code_too(room_host: RoomHost) -> None:
    t = room_host.room(Slow)
    ann = await t.connect("ann")
    ann.send("go")
    await t.advance(0.1)
    [trace] = t.errors
    assert re.findall(r"line \d+, in (.*)", trace) == ["on_message"]


async def test_text_that_is_no_plain_str_names_a_player_and_is_saved(room_host: RoomHost) -> None:
    class Name(str):
        """As those of NumPy, which msgspec does not write."""

    t = room_host.room(Game)
    await t.connect("ann")
    room = t.room
    owned = room.entities.add(Npc(), owner=Name("ann"))
    room.entities.set_owner(room.npc, Name("bob"))
    room.private(Name("cid"), create=True)
    room.ban(Name("dan"))
    await t.tick(2)
    assert [npc.id for npc in room.entities.all(Npc, owner="ann")] == [owned.id]
    await t.hibernate()
    await t.wake()
    assert [npc.owner for npc in t.room.entities.all(Npc)] == ["bob", "ann"]
    assert t.room.private_players() == ["ann", "cid"]
    assert t.errors == []


async def test_scalars_of_numpy_are_values_and_arrays_are_not(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    await t.wake()
    npc: Any = t.room.npc
    npc.on, npc.hits, npc.x, npc.name = np.bool_(True), np.uint8(7), np.float64(0.5), np.str_("é")
    npc.patch("blob", np.int64(1), b"x")
    assert (npc.on, npc.hits, npc.x, npc.name, npc.blob) == (True, 7, 0.5, "é", b"\0x")
    assert [type(npc.on), type(npc.hits), type(npc.x), type(npc.name)] == [bool, int, float, str]
    for field in ("on", "hits", "x", "name", "blob"):
        with pytest.raises(FieldError, match=f"npc 2: {field}: must be .*, not ndarray"):
            setattr(npc, field, np.zeros(1))
    with pytest.raises(FieldError, match="npc 2: on: must be bool, not uint8"):
        npc.on = np.uint8(1)
    with pytest.raises(FieldError, match="npc 2: hits: 256 is outside u8"):
        npc.hits = np.int64(256)
