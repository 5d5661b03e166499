"""Version stamps: what has changed since when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.backend import Tracked, Tracker
from playhall.engine.fields import patched
from playhall.engine.patches import Patches
from playhall.engine.store import EntityStore
from playhall.room import Entity, Json, Schema, u8


class Chunk(Entity):
    blocks: bytes = b""
    hp: u8 = 0
    tags: Json[list[int]] = []  # noqa: RUF012


def tracked_chunk(blocks: bytes = b"") -> tuple[Tracker, Chunk, Tracked]:
    tracker = Tracker()
    chunk = Chunk(blocks=blocks)
    EntityStore(Schema(entities=[Chunk]), tracker).add(chunk, None, None)
    flush = tracker.flush(1)
    return tracker, chunk, flush.added[0]


@pytest.mark.ledger("ENT-08", "ENT-09")
def test_several_writes_are_one_change() -> None:
    tracker, chunk, tracked = tracked_chunk()
    chunk.hp = 1
    chunk.hp = 2
    assert tracker.dirty
    flush = tracker.flush(2)
    assert flush.changed == [tracked]
    assert tracked.changed_since(1) == 0b010
    assert tracked.changed_since(2) == 0
    assert not tracker.dirty


@pytest.mark.ledger("ENT-10")
def test_writing_the_same_value_is_no_change() -> None:
    tracker, chunk, _ = tracked_chunk(b"abc")
    chunk.hp = 0
    chunk.blocks = b"abc"
    chunk.patch("blocks", 1, b"b")
    assert not tracker.dirty


@pytest.mark.ledger("ENT-11")
def test_json_is_compared_by_structure_and_not_watched_inside() -> None:
    tracker, chunk, _ = tracked_chunk()
    chunk.tags = []
    chunk.tags.append(1)
    assert not tracker.dirty
    chunk.tags = [1]
    assert tracker.dirty


@pytest.mark.ledger("ENT-09")
def test_a_whole_write_supersedes_patches_and_a_patch_rides_on_a_whole_write() -> None:
    tracker, chunk, tracked = tracked_chunk(bytes(100))
    chunk.patch("blocks", 7, b"x")
    chunk.blocks = bytes(99) + b"y"
    chunk.patch("blocks", 8, b"z")
    tracker.flush(2)
    assert tracked.patches_since(1, 0b001) == {}


@pytest.mark.ledger("ENT-12")
def test_patches_of_several_flushes_are_known_by_version() -> None:
    tracker, chunk, tracked = tracked_chunk(bytes(100))
    chunk.patch("blocks", 7, b"xy")
    tracker.flush(2)
    chunk.patch("blocks", 50, b"a")
    chunk.patch("blocks", 51, b"b")
    tracker.flush(3)
    assert tracked.patches_since(2, 1) == {0: [(50, 52)]}
    assert tracked.patches_since(1, 1) == {0: [(7, 9), (50, 52)]}
    chunk.blocks = bytes(100)
    tracker.flush(4)
    assert tracked.patches_since(3, 1) == {}
    chunk.patch("blocks", 1, b"q")
    tracker.flush(5)
    assert tracked.patches_since(4, 1) == {0: [(1, 2)]}
    assert tracked.patches_since(3, 1) == {}


def test_only_so_many_patches_are_kept() -> None:
    patches = Patches(0, [])
    for version in range(1, 30):
        patches.add(version, [(version, version + 1)])
    assert len(patches.made) == 16
    assert patches.ranges(13, 1_000) == [(14, 30)]
    assert patches.ranges(12, 1_000) is None


@given(
    st.binary(max_size=30),
    st.lists(
        st.lists(st.tuples(st.integers(0, 60), st.binary(min_size=1, max_size=8)), max_size=4), max_size=25
    ),
    st.integers(0, 25),
)
def test_patches_bring_any_version_they_cover_up_to_date(
    start: bytes, flushes: list[list[tuple[int, bytes]]], since: int
) -> None:
    tracker, chunk, tracked = tracked_chunk(start)
    history = {1: start}
    for version, patches in enumerate(flushes, start=2):
        for offset, data in patches:
            chunk.patch("blocks", offset, data)
        if tracker.dirty:
            tracker.flush(version)
        history[version] = chunk.blocks
    then = min(since + 1, max(history))
    ranges = tracked.patches_since(then, tracked.changed_since(then)).get(0)
    if ranges is not None:
        value = history[then]
        for begin, end in ranges:
            value = patched(value, begin, chunk.blocks[begin:end])
        assert value == chunk.blocks


def test_of_the_most_fields_there_can_be_each_is_told_of() -> None:
    many = {f"n{n}": u8 for n in range(255)}
    make: Any = type(Entity)
    body = {"__annotations__": many, "__module__": __name__, "__qualname__": "Wide", **dict.fromkeys(many, 0)}
    wide: Any = make("Wide", (Entity,), body)
    tracker = Tracker()
    EntityStore(Schema(entities=[wide]), tracker).add(wide(), None, None)
    tracked = tracker.flush(1).added[0]
    for n in (0, 63, 64, 127, 128, 254):
        setattr(tracked.entity, f"n{n}", 1)
    tracker.flush(2)
    mask = sum(1 << n for n in (0, 63, 64, 127, 128, 254))
    assert tracked.changed_since(1) == tracked.twin().changed_since(1) == mask
