"""Whatever is read as a room's saved state: it is read, or refused as damaged or as of another shape.

The log is the room's own and has a checksum, so what is wrong with it is a fault of ours; but what comes of
that must be a room that does not start and says why, and never a room host that falls over.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.outputs import StoredRoom
from playhall.engine.statelog import DamagedStateError, LayoutError, read
from playhall.room import Bot, Connection, Entity, Json, Room, Schema, f32, owner_only, q8, u8, u32, writable
from tests.support.rooms import Driver


class Item(Entity):
    x: f32 = 0
    hue: Annotated[float, q8(0, 360)] = 0
    name: str = ""
    chunk: bytes = b""
    tags: Json[Any] = None
    hand: owner_only[u8] = 0
    pose: writable[u8] = 0


class Trap(Entity, hidden=True):
    armed: bool = False


class Board(Entity):
    moves: u32 = 0


class Purse(Entity):
    coins: u32 = 0


class Walker(Bot):
    steps: int = 0

    def start(self, room: Any) -> None:
        self.steps = 3


class Game(Room[Board, Purse]):
    """Saves one of everything."""

    schema = Schema(state=Board, private=Purse, entities=[Item, Trap])
    bot_kinds = (Walker,)

    def on_join(self, conn: Connection) -> None:
        self.private(conn).coins = 5


@cache
def saved() -> StoredRoom:
    """A base, and records of all sorts after it."""
    driver = Driver(Game)
    room = driver.room
    driver.join("ann")
    item = room.entities.add(Item(name="é", chunk=bytes(40), tags={"a": [1, None]}), owner="ann")
    other = room.entities.add(Item())
    room.bots.add(Walker())
    driver.tick(2)
    item.patch("chunk", 4, b"xy")
    item.x = 2.5
    room.entities.add(Trap(armed=True))
    driver.tick()
    room.entities.delete(other)
    room.entities.set_owner(item, None)
    room.ban("mallory")
    room.ban("eve")
    driver.tick()
    room.unban("eve")
    room.state.moves += 1
    driver.tick()
    assert driver.errors == []
    return driver.stored


def pieces() -> list[bytes]:
    base = saved().base
    assert base is not None
    assert len(saved().records) >= 4
    return [base, *saved().records]


def stored(parts: list[bytes]) -> StoredRoom:
    return StoredRoom(parts[0], parts[1:])


def starts_or_says_why(parts: list[bytes]) -> None:
    with suppress(DamagedStateError, LayoutError):
        read(stored(parts), Game.schema)
    driver = Driver(Game, stored=stored(parts))
    if driver.stopped is not None:
        assert "the saved state does not fit the room" in driver.stopped.error
        return
    # What was let in is also let out: to somebody who joins, and to the log again.
    driver.join("bob")
    driver.tick(2)
    driver.hibernate()
    assert driver.errors == []


deep = st.sampled_from((200, 1_100, 100_000)).map(lambda depth: msgspec.Raw(b"\x91" * depth + b"\xc0"))
numbers = st.sampled_from((-1, 0, 1, 2, 2**31, 2**32, 2**53, 2**63, 2**64 - 1, -(2**63), 0.5, float("nan")))
odd = st.one_of(
    numbers,
    deep,
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    st.sampled_from(
        ("f32", "q8:0", "q16:7ff8000000000000:7ff8000000000000", "bytes", "item", "x" * 300, "\0")
    ),
    st.binary(max_size=8),
    st.lists(numbers, max_size=3),
    st.dictionaries(st.text(max_size=2), numbers, max_size=2),
)


@st.composite
def twisted(draw: st.DrawFn) -> list[bytes]:
    """The log with a value in it put in the place of another, dropped or doubled."""
    parts = pieces()
    which = draw(st.integers(0, len(parts) - 1))
    root = msgspec.msgpack.decode(parts[which])
    for _ in range(draw(st.integers(1, 2))):
        node = root
        while True:
            at = draw(st.integers(0, len(node) - 1))
            if not (isinstance(node[at], list) and node[at]) or draw(st.integers(0, 4)) == 0:
                break
            node = node[at]
        match draw(st.sampled_from(("put", "put", "put", "drop", "double"))):
            case "put":
                node[at] = draw(odd)
            case "drop" if node is not root:
                del node[at]
            case _:
                node.append(node[at])
    parts[which] = msgspec.msgpack.encode(root)
    return parts


@st.composite
def damaged(draw: st.DrawFn) -> list[bytes]:
    """The log with bytes put over, put in or cut out."""
    parts = pieces()
    which = draw(st.integers(0, len(parts) - 1))
    data = parts[which]
    for _ in range(draw(st.integers(1, 3))):
        at, piece, cut = draw(st.integers(0, len(data))), draw(st.binary(max_size=6)), draw(st.integers(0, 6))
        data = data[:at] + piece + data[at + cut :]
    parts[which] = data
    return parts


def test_the_log_as_it_was_written_starts_a_room() -> None:
    driver = Driver(Game, stored=stored(pieces()))
    assert driver.stopped is None
    assert [item.name for item in driver.room.entities.all(Item)] == ["é"]


@given(damaged())
def test_a_log_with_other_bytes_is_read_or_refused(parts: list[bytes]) -> None:
    starts_or_says_why(parts)


@given(twisted())
def test_a_log_with_other_values_is_read_or_refused(parts: list[bytes]) -> None:
    starts_or_says_why(parts)


@given(st.lists(st.sampled_from(range(5)), min_size=1, max_size=6))
def test_a_log_in_another_order_is_read_or_refused(order: list[int]) -> None:
    starts_or_says_why([pieces()[n] for n in order])


@pytest.mark.parametrize("which", [0, 1, 2, 3, 4])
def test_a_log_cut_anywhere_is_refused(which: int) -> None:
    whole = pieces()
    for size in range(len(whole[which])):
        parts = [*whole[:which], whole[which][:size], *whole[which + 1 :]]
        with pytest.raises(DamagedStateError):
            read(stored(parts), Game.schema)


@given(st.binary(max_size=60), st.lists(st.binary(max_size=30), max_size=3))
def test_what_is_no_log_at_all_is_refused(base: bytes, records: list[bytes]) -> None:
    with pytest.raises((DamagedStateError, LayoutError)):
        read(StoredRoom(base, records), Game.schema)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((5, 0), -1),  # the tick
        ((5, 0), 2**53),
        ((5, 1), 1),  # the next id
        ((5, 1), 2**31 + 1),
        ((0, 4, 0, 0), 1),  # an entity's id
        ((0, 4, 0, 1), -2),  # its kind
        ((1, 4, 0, 0), ""),  # whose private state
        ((2, 3, 0, 0), 2**31),
        ((3, 3, 0, 2), "a\nb"),  # an owner
        ((2, 9, 2, 0, 0), "ann"),  # a bot
        ((3, 6, 0, 1), -4),  # a patch's field
        ((3, 6, 0, 2), -1),  # and where it is written
        ((4, 10, 0, 0), "bot:1"),  # who is banned
        ((0, 8, 0), msgspec.Raw(b"\x91" * 5_000 + b"\xc0")),
    ],
    ids=str,
)
def test_what_no_room_holds_is_refused(path: tuple[int, ...], value: object) -> None:
    parts = pieces()
    root = node = msgspec.msgpack.decode(parts[path[0]])
    for at in path[1:-1]:
        node = node[at]
    node[path[-1]] = value
    parts[path[0]] = msgspec.msgpack.encode(root)
    with pytest.raises(DamagedStateError):
        read(stored(parts), Game.schema)
