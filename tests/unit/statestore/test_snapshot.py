"""Rooms as objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall_common.ids import slot_of
from playhall_statestore.model import End, Item, Mark, Room, Saved
from playhall_statestore.snapshot import (
    ObjectName,
    decode,
    encode,
    epoch_marker,
    epoch_of,
    name_of,
    parse_name,
    recovered,
)
from playhall_statestore.volume import DamagedError
from tests.support.shard_bench import OTHER, ROOM

GENERATION = 3 << 32 | 7


def a_room() -> Room:
    saved = Saved(Mark(GENERATION, 9), 90, 1_000)
    return Room(
        ROOM, "demo", generation=GENERATION, held=True, host_id="h1", open_id="o1", base=Mark(GENERATION, 8),
        saved=saved, alarm_ms=12,
    )  # fmt: skip


ITEMS = [
    Item(Mark(GENERATION, 8), True, 80, 900, 1, None, b"base"),
    Item(Mark(GENERATION, 9), False, 90, 1_000, 2, 12, b"\x00\xff"),
]
DATA = encode(a_room(), ITEMS)


def test_what_was_encoded_comes_back() -> None:
    snapshot = decode(DATA, ROOM)
    assert (snapshot.room, snapshot.items) == (a_room(), ITEMS)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_changed_byte_is_found(at: int, change: int) -> None:
    damaged = bytearray(DATA)
    damaged[at] ^= change
    with pytest.raises(DamagedError):
        decode(bytes(damaged), ROOM)


@given(st.integers(0, len(DATA) - 1))
def test_a_part_of_it_is_damaged(size: int) -> None:
    with pytest.raises(DamagedError):
        decode(DATA[:size], ROOM)


def test_another_rooms_object_is_damage() -> None:
    with pytest.raises(DamagedError):
        decode(DATA, OTHER)


def test_names_say_what_is_newest_and_when_the_alarm_is() -> None:
    name = name_of("cluster", a_room())
    assert name == f"cluster/{slot_of(ROOM)}/{ROOM}/{GENERATION}-9-a12"
    assert parse_name(name) == ObjectName(name, Mark(GENERATION, 9), 12)
    quiet = a_room()
    quiet.alarm_ms = None
    found = parse_name(name_of("cluster", quiet))
    assert found is not None
    assert found.alarm_ms is None


def test_what_else_lies_about_is_no_object() -> None:
    assert parse_name("cluster/1/room/notes.txt") is None


def test_markers_of_epochs() -> None:
    assert epoch_of(epoch_marker("cluster", 12)) == 12


def test_a_room_that_was_held_when_its_volume_was_lost_has_crashed() -> None:
    room = recovered(decode(DATA, ROOM))
    assert (room.held, room.end, room.ended_ms, room.evicted) == (False, End.CRASHED, 1_000, True)
