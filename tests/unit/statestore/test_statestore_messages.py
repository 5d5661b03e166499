"""Protos to requests: what is refused before the core sees it."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_common.record_runs import pack_durable, pack_record
from playhall_statestore import messages
from playhall_statestore.model import MAX_PART_BYTES, End, Item, Mark, Outcome
from playhall_statestore.requests import Ack, Part
from tests.support.shard_bench import OTHER, ROOM

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


def named(*rooms: tuple[str, int, int]) -> messages.Numbers:
    numbers = messages.Numbers()
    numbers.learn(pb.RoomGrant(room_uid=uid, generation=g, number=number) for uid, g, number in rooms)
    return numbers


def test_a_run_holds_records_of_rooms_that_were_named() -> None:
    numbers = named((ROOM, 7, 1), (OTHER, 8, 2))
    run = pack_record(2, 4, 5, 99, 50, b"abc") + pack_record(1, 0, 1, 98, 10, b"")
    assert numbers.parts(3, run) == [
        Part(3, OTHER, 8, 4, 5, 50, b"abc", True, False, None, 99),
        Part(3, ROOM, 7, 0, 1, 10, b"", True, False, None, 98),
    ]


@pytest.mark.parametrize(
    "run",
    [
        pack_record(9, 0, 1, 0, 0, b""),
        pack_record(1, 0, 1, 0, 1 << 53, b""),
        pack_record(1, 0, 1, 0, 1, b"abc")[:-1],
        b"short",
    ],
)
def test_a_run_is_checked(run: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        named((ROOM, 7, 1)).parts(1, run)
    assert refused.value.code is ErrorCode.INVALID


def test_a_number_names_its_room_until_it_ends_or_names_another() -> None:
    numbers = named((ROOM, 7, 1), (OTHER, 8, 2))
    numbers.learn([pb.RoomGrant(room_uid=ROOM, generation=9, number=1)], ended=[2, 44])
    (part,) = numbers.parts(1, pack_record(1, 0, 1, 0, 0, b""))
    assert (part.uid, part.generation) == (ROOM, 9)
    said = numbers.acks([Ack(ROOM, 7, Outcome.DURABLE, 3), Ack(OTHER, 8, Outcome.DURABLE, 4)], False)
    assert (len(said.acks), said.durable) == (2, b"")


def test_a_stream_names_no_more_rooms_than_there_may_be() -> None:
    numbers = messages.Numbers()
    grants = [pb.RoomGrant(room_uid=ROOM, generation=n, number=n) for n in range(1, messages.MAX_ROOMS + 2)]
    numbers.learn(grants[:-1])
    with pytest.raises(ApiError) as refused:
        numbers.learn(grants[-1:])
    assert refused.value.code is ErrorCode.INVALID


def test_rooms_that_are_durable_are_told_by_number_and_all_else_by_name() -> None:
    numbers = named((ROOM, 7, 1))
    acks = [Ack(ROOM, 7, Outcome.DURABLE, 3), Ack(OTHER, 8, Outcome.DURABLE, 4)]
    said = numbers.acks(acks, False)
    assert (said.durable, [ack.room_uid for ack in said.acks]) == (pack_durable([(1, 3)]), [OTHER])
    fenced = numbers.acks([Ack(ROOM, 7, Outcome.FENCED)], False)
    assert (fenced.durable, fenced.acks[0].outcome) == (b"", pb.RoomAck.OUTCOME_FENCED)
    hello = numbers.acks(acks[:1], True)
    assert (hello.durable, hello.hello, hello.acks[0].version) == (b"", True, 3)
