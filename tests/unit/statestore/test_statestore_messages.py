"""Protos to requests: what is refused before the core sees it."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_statestore import messages
from playhall_statestore.model import MAX_PART_BYTES, End, Item, Mark
from tests.support.shard_bench import ROOM

OPEN: dict[str, Any] = {
    "project": "demo", "room_uid": ROOM, "host_id": "h1", "host_address": "h1:1", "open_id": "o1",
}  # fmt: skip
CLOSE: dict[str, Any] = {
    "project": "demo", "room_uid": ROOM, "generation": 5, "version": 2, "kind": pb.END_HIBERNATED,
    "alarm_ms": -1, "host_id": "h1",
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"project": "Demo"},
        {"room_uid": ""},
        {"room_uid": ROOM.lower()},
        {"room_uid": "../" + ROOM[3:]},
        {"host_id": ""},
        {"host_id": "h" * 257},
        {"host_address": ""},
        {"open_id": ""},
        {"deploy_seq": 1 << 53},
    ],
)
def test_an_open_is_checked(wrong: dict[str, Any]) -> None:
    messages.open_room(1, pb.OpenRequest(**OPEN))
    with pytest.raises(ApiError) as refused:
        messages.open_room(1, pb.OpenRequest(**OPEN | wrong))
    assert refused.value.code is ErrorCode.INVALID


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": pb.END_UNSPECIFIED},
        {"kind": pb.END_NEVER},
        {"kind": pb.END_CRASHED},
        {"kind": 99},
        {"generation": 1 << 60},
        {"alarm_ms": 1 << 60},
        {"tick": 1 << 60},
    ],
)
def test_a_close_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        messages.close_room(1, pb.CloseRequest(**CLOSE | wrong))
    assert refused.value.code is ErrorCode.INVALID


def test_an_alarm_below_zero_is_none() -> None:
    assert messages.close_room(1, pb.CloseRequest(**CLOSE)).alarm_ms is None
    assert messages.close_room(1, pb.CloseRequest(**CLOSE | {"alarm_ms": 0})).alarm_ms == 0
    assert messages.close_room(1, pb.CloseRequest(**CLOSE)).kind is End.HIBERNATED


def test_an_alarm_that_is_not_said_is_unchanged() -> None:
    said = pb.RecordPart(room_uid=ROOM, version=1, alarm_ms=-1)
    request = pb.WriteRequest(records=[pb.RecordPart(room_uid=ROOM, version=1), said])
    assert [part.alarm_ms for part in messages.parts(1, request)] == [None, -1]


def item(size: int, *, base: bool = False) -> Item:
    return Item(Mark(1, 1), base, 0, 0, 0, None, bytes(size))


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([1, 1], [(1, True, False), (1, True, True)]),
        ([0], [(0, True, True)]),
        ([MAX_PART_BYTES], [(MAX_PART_BYTES, True, True)]),
        ([MAX_PART_BYTES + 1, 2], [(MAX_PART_BYTES, False, False), (1, True, False), (2, True, True)]),
    ],
)
def test_state_goes_in_parts_of_256_kib(sizes: list[int], pieces: list[tuple[int, bool, bool]]) -> None:
    parts = [part.state for part in messages.state_parts([item(size) for size in sizes])]
    assert [(len(part.data), part.last, part.end) for part in parts] == pieces


def test_state_says_what_is_base_and_what_is_record() -> None:
    parts = messages.state_parts([item(1, base=True), item(1)])
    assert [part.state.kind for part in parts] == [pb.StatePart.KIND_BASE, pb.StatePart.KIND_RECORD]
