"""State updates: what is put into parts comes out whole, and nothing else does."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.errors import ProtocolError
from playhall.engine.fields import Json, f32, owner_only, u8, writable
from playhall.engine.kinds import Entity
from playhall.engine.payloads import compress
from playhall.engine.schema import Schema
from playhall.engine.specs import MAX_ENTITY
from playhall.engine.updates import (
    MAX_BODY,
    MAX_PART,
    Change,
    Correct,
    Enter,
    Leave,
    Operation,
    Owner,
    Patch,
    Section,
    Update,
    UpdateBuilder,
    UpdateReader,
    decode_part,
    encode_change,
    encode_correct,
    encode_enter,
    encode_head,
    encode_leave,
    encode_owner,
    encode_patch,
)


class Dot(Entity):
    x: f32
    name: writable[str]
    coins: owner_only[u8]
    bag: Json[Any]


class Chunk(Entity):
    blocks: bytes
    more: str


SCHEMA = Schema(entities=[Dot, Chunk])
KINDS = SCHEMA.kinds
DOT, CHUNK = KINDS[:2]


def dot(x: float = 0.0, name: str = "", coins: int = 0, bag: Any = None) -> list[Any]:
    """The stored values of a dot."""
    return [field.type.accept(value) for field, value in zip(DOT.fields, (x, name, coins, bag), strict=True)]


def body(*entries: tuple[Section, bytes]) -> bytes:
    builder = UpdateBuilder()
    for section, entry in entries:
        builder.add(section, entry)
    [only] = builder.bodies()
    return only


def reader(version: int = 10, tick: int = 100, held: dict[int, int] | None = None) -> UpdateReader:
    made = UpdateReader(KINDS)
    made.welcome(version, tick, resumed=bool(held))
    made.held.update(held or {})
    return made


def frames_of(bodies: Sequence[bytes], dv: int = 1, dt: int = 1, full: bool = False) -> list[bytes]:
    last = len(bodies) - 1
    return [
        encode_head(dv * (n == 0), dt * (n == 0), last=n == last, full=full and n == 0) + part
        for n, part in enumerate(bodies)
    ]


@pytest.mark.ledger("SCHM-21")
def test_one_update_with_everything() -> None:
    entries = [
        (Section.LEAVE, encode_leave(7)),
        (Section.LEAVE, encode_leave(1_000)),
        (Section.ENTER, encode_enter(300, 0, DOT, dot(1.5, "é", 9, [1]), owner_only=False)),
        (Section.ENTER, encode_enter(301, 0, DOT, dot(1.5, "é", 9, [1]), owner_only=True)),
        (Section.CHANGE, encode_change(5, DOT, dot(2.5, "b"), 0b0011)),
        (Section.PATCH, encode_patch(6, 0, 1_000, b"xy")),
        (Section.OWNER, encode_owner(300, "ann")),
        (Section.OWNER, encode_owner(5, None)),
        (Section.CORRECT, encode_correct(5, DOT, dot(bag={"a": 1}), 0b1000)),
    ]
    source = reader(held={5: 0, 6: 1, 7: 0})
    [frame] = frames_of([body(*entries)], dv=2, dt=3)
    assert source.part(frame) == Update(
        12,
        103,
        False,
        [
            Leave(7),
            Leave(1_000),
            Enter(300, 0, dot(1.5, "é", 0, [1]), False),
            Enter(301, 0, dot(1.5, "é", 9, [1]), True),
            Change(5, {0: 2.5, 1: "b"}),
            Patch(6, 0, 1_000, b"xy"),
            Owner(300, "ann"),
            Owner(5, None),
            Correct(5, {3: dot(bag={"a": 1})[3]}),
        ],
    )
    assert source.held == {5: 0, 6: 1, 300: 0, 301: 0}
    assert (source.version, source.tick) == (12, 103)


def test_the_head_of_a_common_update_has_four_bytes() -> None:
    assert encode_head(1, 1, last=True).hex() == "04010101"
    assert encode_head(2**32 - 1, 2**53 - 1, last=False, full=True, deflated=True)[:2].hex() == "0406"
    assert len(encode_head(2**32 - 1, 2**53 - 1, last=True)) == MAX_PART - MAX_BODY


def test_a_patch_costs_three_bytes_more_than_its_offset_and_data() -> None:
    assert len(encode_patch(6, 0, 40_000, b"x")) == 1 + 1 + 3 + 2


@given(st.lists(st.integers(0, 3_000), max_size=60), st.integers(100, 4_000))
def test_parts_hold_what_fits_and_lose_nothing(sizes: list[int], limit: int) -> None:
    builder = UpdateBuilder(limit)
    assert not builder
    for n, size in enumerate(sizes):
        builder.add(Section.LEAVE, encode_leave(n))
        values = [bytes(size), ""]
        builder.extend(Section.ENTER, [encode_enter(1_000 + n, 1, CHUNK, values, owner_only=True)])
        builder.add(Section.OWNER, encode_owner(1_000 + n, "ann"))
    bodies = builder.bodies()
    for part in bodies:
        assert len(part) <= max(limit, 3_000 + 16)
    update = None
    source = reader()
    for frame in frames_of(bodies, full=True):
        assert update is None
        update = source.part(frame)
    assert update is not None
    expected: list[Operation] = [Leave(n) for n in range(len(sizes))]
    expected += [Enter(1_000 + n, 1, [bytes(size), ""], True) for n, size in enumerate(sizes)]
    expected += [Owner(1_000 + n, "ann") for n in range(len(sizes))]
    assert update.operations == expected
    assert source.held == {1_000 + n: 1 for n in range(len(sizes))}


def test_bodies_are_filled() -> None:
    builder = UpdateBuilder(100)
    builder.extend(Section.LEAVE, [encode_leave(200)] * 100)  # two bytes each
    assert [len(part) for part in builder.bodies()] == [100, 100, 6]


def test_nothing_is_one_empty_part() -> None:
    assert UpdateBuilder().bodies() == [b""]
    update = reader(held={5: 0}).part(encode_head(0, 0, last=True, full=True))
    assert update == Update(10, 100, True, [])


@pytest.mark.ledger("SCHM-13")
def test_the_largest_entity_fits_one_part() -> None:
    values = [bytes(49_152), "x" * (MAX_ENTITY - (3 + 49_152) - 2)]
    assert CHUNK.size(values) == MAX_ENTITY
    builder = UpdateBuilder()
    builder.add(Section.ENTER, encode_enter(2**31 - 1, 1, CHUNK, values, owner_only=True))
    [only] = builder.bodies()
    frame = encode_head(2**32 - 11, 2**53 - 101, last=True) + only
    assert len(frame) <= MAX_PART
    update = reader().part(frame)
    assert update is not None
    assert update.operations == [Enter(2**31 - 1, 1, values, True)]


def test_a_limit_is_that_of_a_body() -> None:
    for limit in (0, MAX_BODY + 1):
        with pytest.raises(ValueError, match=str(limit)):
            UpdateBuilder(limit)


def test_an_update_takes_effect_with_its_last_part() -> None:
    first = body((Section.ENTER, encode_enter(300, 1, CHUNK, [b"", ""], owner_only=True)))
    second = body((Section.PATCH, encode_patch(300, 0, 0, b"x")))
    source = reader(held={5: 0})
    frames = frames_of([first, second], full=True)
    assert source.part(frames[0]) is None
    assert (source.held, source.version) == ({5: 0}, 10)
    update = source.part(frames[1])
    assert update is not None
    assert [type(operation) for operation in update.operations] == [Enter, Patch]
    assert (source.held, source.version) == ({300: 1}, 11)


def test_a_welcome_forgets_what_was_not_finished() -> None:
    source = reader(held={5: 0})
    source.part(frames_of([b"", b""])[0])
    source.welcome(50, 500, resumed=True)
    update = source.part(encode_head(1, 2, last=True) + body((Section.LEAVE, encode_leave(5))))
    assert update == Update(51, 502, False, [Leave(5)])


def test_an_entity_that_leaves_and_enters_is_another_one() -> None:
    source = reader(held={5: 0})
    data = body(
        (Section.LEAVE, encode_leave(5)),
        (Section.ENTER, encode_enter(5, 1, CHUNK, [b"", ""], owner_only=True)),
        (Section.PATCH, encode_patch(5, 0, 0, b"x")),
    )
    assert source.part(encode_head(1, 0, last=True) + data) is not None
    assert source.held == {5: 1}


def test_only_the_first_update_after_a_welcome_may_stand_still() -> None:
    source = reader()
    assert source.part(encode_head(0, 0, last=True)) is not None
    with pytest.raises(ProtocolError, match="goes nowhere"):
        source.part(encode_head(0, 1, last=True))


def test_versions_and_ticks_end() -> None:
    for dv, dt in ((2**32 - 10, 0), (1, 2**53 - 100)):
        with pytest.raises(ProtocolError, match="too large"):
            reader().part(encode_head(dv, dt, last=True))
    assert reader().part(encode_head(2**32 - 11, 2**53 - 101, last=True)) is not None


@pytest.mark.parametrize("head", [(1, 0, False), (0, 1, False), (0, 0, True)])
def test_later_parts_move_nothing(head: tuple[int, int, bool]) -> None:
    source = reader()
    source.part(encode_head(1, 1, last=False))
    dv, dt, full = head
    with pytest.raises(ProtocolError, match="a later part"):
        source.part(encode_head(dv, dt, last=True, full=full))


def test_bodies_may_be_compressed_but_not_beyond_a_part() -> None:
    data = body(*[(Section.LEAVE, encode_leave(7))] * 2_000)
    packed = compress(data)
    assert packed is not None
    update = reader().part(encode_head(1, 1, last=True, deflated=True) + packed)
    assert update is not None
    assert update.operations == [Leave(7)] * 2_000
    bomb = zlib.compressobj(9, wbits=-15)
    head = encode_head(1, 1, last=True, deflated=True)
    too_much = bomb.compress(bytes(MAX_PART)) + bomb.flush()
    with pytest.raises(ProtocolError, match=f"over {MAX_PART - len(head)} bytes"):
        reader().part(head + too_much)


@pytest.mark.parametrize(
    "data",
    [
        "00",  # no section 0
        "07" + "01" + "05",  # nor 7
        "01" + "00",  # an empty section
        "02" + "01" + "0500" + "00000000" + "00" + "00" + "01" + "05",  # sections descend; and JSON is empty
        "01" + "01" + "05" + "01" + "01" + "05",  # a section twice
        "01" + "ff7f" + "05",  # more entries than bytes
        "02" + "01" + "09" + "06",  # no kind has number 3
        "03" + "01" + "09" + "01" + "00000000",  # not held
        "03" + "01" + "05" + "10" + "00",  # a field the kind has not
        "03" + "01" + "05" + "00",  # an empty mask
        "04" + "01" + "05" + "00" + "00" + "00",  # a field that is not bytes
        "04" + "01" + "06" + "02" + "00" + "00",  # no such field
        "04" + "01" + "06" + "00" + "80800b" + "0101",  # a patch beyond a field's end: 180,224
        "05" + "01" + "09" + "00",  # an owner of what is not held
        "06" + "01" + "09" + "01" + "00000000",  # nor can that be corrected
        "01" + "01",  # cut off
        "ff",
    ],
)
def test_bodies_that_are_none(data: str) -> None:
    with pytest.raises(ProtocolError):
        decode_part(bytes.fromhex(data), KINDS, {5: 0, 6: 1})


def test_what_has_left_is_not_held() -> None:
    data = body((Section.LEAVE, encode_leave(5)), (Section.OWNER, encode_owner(5, "ann")))
    with pytest.raises(ProtocolError, match="5 is not held"):
        decode_part(data, KINDS, {5: 0})
    with pytest.raises(ProtocolError, match="5 is not held"):
        reader(held={5: 0}).part(
            encode_head(1, 1, last=True, full=True) + body((Section.OWNER, encode_owner(5, "a")))
        )


def test_a_part_has_known_flags_and_its_size() -> None:
    for frame in (b"\x04\x08\x01\x01", b"\x05\x01\x01\x01", b"\x04\x01\x01", b"", b"\x04" + bytes(MAX_PART)):
        with pytest.raises(ProtocolError):
            reader().part(frame)


VALID = body(
    (Section.LEAVE, encode_leave(7)),
    (Section.ENTER, encode_enter(300, 0, DOT, dot(1.5, "é", 9, [1]), owner_only=False)),
    (Section.CHANGE, encode_change(5, DOT, dot(2.5, "b"), 0b0011)),
    (Section.PATCH, encode_patch(6, 0, 1_000, b"xy")),
    (Section.OWNER, encode_owner(300, "ann")),
)


@given(st.binary(max_size=60), st.integers(0, len(VALID)), st.integers(0, 4))
def test_garbage_gives_operations_or_protocol_errors(data: bytes, at: int, gone: int) -> None:
    held = {5: 0, 6: 1, 7: 0}
    for damaged in (data, VALID[:at] + data[:4] + VALID[at + gone :]):
        try:
            decode_part(damaged, KINDS, held)
        except ProtocolError:
            continue
    assert held == {5: 0, 6: 1, 7: 0}


def test_every_cut_of_a_body_is_a_protocol_error_or_ends_a_section() -> None:
    whole = len(decode_part(VALID, KINDS, {5: 0, 6: 1}))
    for size in range(len(VALID)):
        try:
            assert len(decode_part(VALID[:size], KINDS, {5: 0, 6: 1})) < whole
        except ProtocolError:
            continue
