"""Ids: how they are made, and what is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall_common import ids

TIMES = st.integers(0, (1 << 48) - 1)
RANDOM = st.binary(min_size=10, max_size=10)


def test_a_ulid_is_written_as_its_specification_says() -> None:
    assert ids.ulid(1469918176385, lambda n: bytes(n)) == "01ARYZ6S410000000000000000"
    assert ids.ulid((1 << 48) - 1, lambda n: b"\xff" * n) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


@given(TIMES, TIMES, RANDOM, RANDOM)
def test_ulids_sort_by_time(first: int, second: int, one: bytes, other: bytes) -> None:
    a, b = ids.ulid(first, lambda _: one), ids.ulid(second, lambda _: other)
    assert ids.is_ulid(a)
    assert (a < b) == ((first, one) < (second, other))


@pytest.mark.parametrize("time_ms", [-1, 1 << 48])
def test_a_time_that_does_not_fit_is_refused(time_ms: int) -> None:
    with pytest.raises(ValueError):
        ids.ulid(time_ms, lambda n: bytes(n))


@pytest.mark.parametrize(
    "text", ["", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01aryz6s410000000000000000", "01ARYZ6S41000000000000000U"]
)
def test_what_is_no_ulid(text: str) -> None:
    assert not ids.is_ulid(text)


def test_slots_are_fixed_for_ever() -> None:
    # Shards hold state by slot: a change of these numbers loses rooms.
    assert ids.slot_of("01ARYZ6S410000000000000000") == 955
    assert ids.slot_of("7ZZZZZZZZZZZZZZZZZZZZZZZZZ") == 71


def test_rooms_spread_evenly_over_slots() -> None:
    counts = [0] * ids.SLOTS
    for number in range(ids.SLOTS * 32):
        counts[ids.slot_of(ids.ulid(number, lambda n: bytes(n)))] += 1
    assert min(counts) >= 16
    assert max(counts) <= 64


@pytest.mark.parametrize("slug", ["abc", "a" * 40, "a-b-c", "dots2"])
def test_a_slug(slug: str) -> None:
    assert ids.is_project_slug(slug)


@pytest.mark.parametrize(
    "slug", ["", "ab", "a" * 41, "1ab", "-ab", "ab-", "a--b", "Abc", "a_b", "äbc", "abc\n", "abc ", "a.b"]
)
def test_no_slug(slug: str) -> None:
    assert not ids.is_project_slug(slug)


@pytest.mark.ledger("TERM-08")
@pytest.mark.parametrize("room_id", ["a", "-", "_", "A" * 64, "Room_7-b"])
def test_a_room_id(room_id: str) -> None:
    assert ids.is_room_id(room_id)


@pytest.mark.ledger("TERM-08")
@pytest.mark.parametrize("room_id", ["", "A" * 65, "a b", "a/b", "a.b", "ä", "a\n", "\N{GRINNING FACE}"])
def test_no_room_id(room_id: str) -> None:
    assert not ids.is_room_id(room_id)


@pytest.mark.parametrize("player", ["a", "guest:1", "ä" * 64, "x" * 128, "robot:1", "a b"])
def test_a_player_id(player: str) -> None:
    assert ids.is_player_id(player)


@pytest.mark.parametrize(
    "player", ["", "ä" * 65, "x" * 129, "bot:1", "bot:", "\ud800", "a\0", "a\nb", "\x7f", "\x9f"]
)
def test_no_player_id(player: str) -> None:
    assert not ids.is_player_id(player)


@pytest.mark.parametrize(("text", "good"), [("default", True), ("a" * 64, True), ("", False), ("1a", False)])
def test_room_types(text: str, good: bool) -> None:
    assert ids.is_room_type(text) is good
