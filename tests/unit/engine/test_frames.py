"""The frames of docs/protocol/frames.md: round trips, limits, and what is refused."""

from __future__ import annotations

import dataclasses
import zlib
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine import frames
from playhall.engine.errors import ProtocolError
from playhall.engine.fields import Json, f32, i8, q8, u8, writable
from playhall.engine.frames import (
    Ack,
    Asleep,
    Call,
    Hello,
    InputEntry,
    Inputs,
    Leave,
    Message,
    Peers,
    Ping,
    Pong,
    Reply,
    ReplyError,
    Reset,
    Resume,
    Unreliable,
    UpdatePart,
    Voice,
    Waking,
    Welcome,
    Write,
    WriteEntry,
    decode_client,
    decode_server,
    encode_client,
    encode_payload,
    encode_server,
    resume_of,
)
from playhall.engine.inputs import Input
from playhall.engine.kinds import Entity
from playhall.engine.schema import EMPTY, Schema
from playhall.engine.wire import VARINT32_MAX, VARINT53_MAX, Writer


class Dot(Entity):
    x: writable[f32]
    name: writable[str]
    hp: u8


class Control(Input):
    dx: i8
    aim: f32 = 0
    turn: Annotated[float, q8(0, 360)] = 0
    note: Json[Any] = None


SCHEMA = Schema(entities=[Dot], input=Control)
DOT, PRESENCE = SCHEMA.kinds

HELLO = Hello(1, "dots", "main", "", "token", bytes(range(16)), b"s" * 16, 3, "playhall-py/0.1.0")
WELCOME = Welcome(7, 12, 345, 128, True, False, 20, "ann", "main", "default", "")

CLIENT_FRAMES = [
    HELLO,
    dataclasses.replace(
        HELLO, project="", room="🎲", type="big", token="", attempt=VARINT32_MAX, sdk="x" * 64
    ),
    Resume(0, 0, 0, False, ()),
    Resume(2, VARINT53_MAX, VARINT32_MAX, True, ()),
    Resume(0, 5, 6, False, (2, 3, 300, 2**31, 2**32 - 1)),
    Leave(),
    Ping(0),
    Ping(VARINT32_MAX),
    Message({"type": "move", "x": 1.5}, None),
    Message(b"\0\1", 0),
    Message(None, 99),
    Unreliable([1], VARINT53_MAX - 1),
    Call(1, 4, "buy", {"item": "ring"}),
    Call(VARINT32_MAX, None, "x" * 64, b""),
    Inputs((InputEntry(5, None, {"dx": 1}),)),
    Inputs((InputEntry(9, 0, [1]), InputEntry(8, 300, None), InputEntry(3, None, "x"))),
    Inputs(tuple(InputEntry(100 - n, n, Control(dx=n, aim=0.5, turn=90, note={"n": n})) for n in range(5))),
    Write(0, (WriteEntry(5, 0, DOT, {0: 1.5, 1: "é"}),)),
    Write(
        3,
        (
            WriteEntry(2**31, 1, PRESENCE, {2: PRESENCE.fields[2].type.accept({"s": 1})}),
            WriteEntry(2, 0, DOT, {2: 9}),
        ),
    ),
]

SERVER_FRAMES = [
    WELCOME,
    Welcome(VARINT53_MAX, VARINT32_MAX, VARINT53_MAX, 255, False, True, 120, "é" * 64, "r", "t", "x" * 500),
    Waking(),
    Asleep(7, 12),
    Reset(1, 4008),
    Pong(7, 345, 10),
    Pong(7, None, 0),
    Message({"a": ["🎲"]}),
    Message(b"x" * 100),
    Unreliable("hi"),
    Reply(3, [1, 2]),
    Reply(3, b"\xff"),
    ReplyError(4, 422, "not enough coins"),
    ReplyError(4, 0, ""),
    Ack(100, 99, -300),
    Ack(0, 0, 2**31 - 1),
    Voice("wss://voice", "token"),
    Peers(("ann", "bob"), ()),
    Peers((), ("ann",)),
]


@pytest.mark.parametrize("frame", CLIENT_FRAMES, ids=lambda frame: type(frame).__name__)
def test_client_frames_come_back(frame: Any) -> None:
    assert decode_client(encode_client(frame), SCHEMA) == frame


@pytest.mark.parametrize("frame", SERVER_FRAMES, ids=lambda frame: type(frame).__name__)
def test_server_frames_come_back(frame: Any) -> None:
    assert decode_server(encode_server(frame)) == frame


def test_an_update_is_handed_on_unread() -> None:
    part = UpdatePart(b"\x04\x01\x01\x01")
    assert decode_server(encode_server(part)) == part
    with pytest.raises(ProtocolError, match="61441"):
        decode_server(b"\x04" + bytes(61_440))


def test_a_payload_is_encoded_once_for_all() -> None:
    payload = encode_payload({"text": "a" * 5_000}, compressed=True)
    data = encode_server(Message(payload))
    assert len(data) < 100
    assert decode_server(data) == Message({"text": "a" * 5_000})


OPEN_CLIENT = [frame for frame in CLIENT_FRAMES if isinstance(frame, Hello | Resume | Leave | Ping)]
OPEN_SERVER = [
    frame for frame in SERVER_FRAMES if not isinstance(frame, Message | Unreliable | Reply | ReplyError)
]


@pytest.mark.parametrize("frame", OPEN_CLIENT, ids=lambda frame: type(frame).__name__)
def test_open_client_frames_may_grow(frame: Any) -> None:
    assert decode_client(encode_client(frame) + b"more") == frame


@pytest.mark.parametrize("frame", OPEN_SERVER, ids=lambda frame: type(frame).__name__)
def test_open_server_frames_may_grow(frame: Any) -> None:
    assert decode_server(encode_server(frame) + b"more") == frame


@pytest.mark.parametrize("frame", [f for f in CLIENT_FRAMES if isinstance(f, Inputs | Write)])
def test_other_frames_may_not(frame: Any) -> None:
    with pytest.raises(ProtocolError, match="surplus"):
        decode_client(encode_client(frame) + b"\0", SCHEMA)


@pytest.mark.parametrize("frame", CLIENT_FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_client_frame_that_is_cut_off_is_refused(frame: Any) -> None:
    data = encode_client(frame)
    for size in range(len(data)):
        try:
            found = decode_client(data[:size], SCHEMA)
        except ProtocolError:
            continue
        assert found != frame  # a payload is all that is left, so a shorter one may be a message too


def test_unknown_types() -> None:
    for type_ in (0, 2, 3, 4, 7, 8, 9, 11, 13, 16, 17, 19, 21, 255):
        with pytest.raises(ProtocolError, match=f"no frame {type_}"):
            decode_client(bytes([type_, 0]))
    for type_ in (0, 1, 8, 10, 12, 14, 15, 18, 20, 21, 255):
        assert decode_server(bytes([type_, 0])) is None
    assert decode_server(b"\xff" + bytes(70_000)) is None
    for decode in (decode_client, decode_server):
        with pytest.raises(ProtocolError):
            decode(b"")


def test_another_version_is_refused_whatever_follows() -> None:
    for version in (0, 2, 65_535):
        with pytest.raises(ProtocolError, match=f"version {version} is not spoken"):
            decode_client(b"\x01" + version.to_bytes(2, "little"))


@pytest.mark.parametrize(
    ("frame", "limit"),
    [
        (dataclasses.replace(HELLO, token="x" * 16_384), 16_384),
        (Call(1, None, "x" * 65, None), 64),
    ],
)
def test_a_frame_over_its_limit_is_not_made(frame: Any, limit: int) -> None:
    with pytest.raises(ValueError, match=str(limit)):
        encode_client(frame)


@pytest.mark.parametrize(
    ("type_", "limit"),
    [(1, 16_384), (5, 65_600), (10, 65_600), (12, 65_600), (14, 65_600), (15, 1_024), (18, 49_152)],
)
def test_a_frame_over_its_limit_is_refused_unread(type_: int, limit: int) -> None:
    with pytest.raises(ProtocolError, match=f"{limit + 1} bytes, over {limit}"):
        decode_client(bytes([type_]) + bytes(limit))


def test_the_largest_message_fits_its_frame() -> None:
    frame = Message(bytes(65_536), VARINT53_MAX - 1)
    assert decode_client(encode_client(frame)) == frame
    with pytest.raises(ValueError, match="65537"):
        encode_client(Message(bytes(65_537)))


def hello_with(**changes: Any) -> bytes:
    return encode_client(dataclasses.replace(HELLO, **changes))


def test_a_hello_has_its_sizes() -> None:
    with pytest.raises(ProtocolError, match="at most 64"):
        decode_client(hello_with(sdk="x" * 65))
    for changes in ({"schema": b"x" * 15}, {"session": b"x" * 17}):
        with pytest.raises(ValueError, match="16 bytes"):
            hello_with(**changes)


def resume(*numbers: int, flags: int = 0) -> bytes:
    """A resume of reset 0, generation 5, version 6 and whatever varints follow its flags."""
    out = Writer()
    out.u8(18)
    out.varint32(0)
    out.varint53(5)
    out.varint32(6)
    out.u8(flags)
    for number in numbers:
        out.varint32(number)
    return out.finish()


def test_the_ids_of_a_resume_ascend_from_2() -> None:
    assert decode_client(resume(2, 2, 1)) == Resume(0, 5, 6, False, (2, 3))
    for numbers in ((2, 2, 0), (1, 0), (1, 1), (2, VARINT32_MAX, 1), (3, 2, 1), (VARINT32_MAX,)):
        with pytest.raises(ProtocolError):
            decode_client(resume(*numbers))


def test_what_is_held_of_no_generation_is_nothing() -> None:
    for frame in (Resume(0, 0, 1, False, ()), Resume(0, 0, 0, False, (2,))):
        with pytest.raises(ProtocolError, match="of no generation"):
            decode_client(encode_client(frame))


def test_flags_of_a_resume_that_are_not_known_are_ignored() -> None:
    assert decode_client(resume(0, flags=0xFE)) == Resume(0, 5, 6, False, ())
    assert decode_client(resume(0, flags=0xFF)) == Resume(0, 5, 6, True, ())


def test_a_resume_asks_for_everything_when_the_ids_are_too_many() -> None:
    near = resume_of(1, 5, 6, range(2, 40_002))
    assert (near.full, len(near.held)) == (False, 40_000)
    far = resume_of(1, 5, 6, range(2, 2 + 300 * 40_000, 300))
    assert far == Resume(1, 5, 6, True, ())
    assert resume_of(1, 5, 6, [9, 2]).held == (2, 9)
    for frame in (near, far):
        assert decode_client(encode_client(frame)) == frame


def test_a_payload_from_a_client_is_never_compressed() -> None:
    with pytest.raises(ProtocolError, match="format"):
        decode_client(b"\x05\x00\x02" + zlib.compress(b"{}", wbits=-15))


@pytest.mark.parametrize(
    "data",
    [
        "0500" + "00" + "7b",  # {
        "0500" + "04" + "7b7d",  # an unknown bit in the format
        "05" + "8000" + "00" + "7b7d",  # seen is not in its shortest form
        "0a01" + "00" + "01ff" + "00" + "7b7d",  # a call's name is not UTF-8
    ],
)
def test_messages_that_are_none(data: str) -> None:
    with pytest.raises(ProtocolError):
        decode_client(bytes.fromhex(data))


def test_errors_of_calls() -> None:
    long = ReplyError(1, 422, "é" * 4_096)
    assert decode_server(encode_server(long)) == ReplyError(1, 422, "é" * 2_048)
    odd = ReplyError(1, 422, "x" + "é" * 4_096)
    assert decode_server(encode_server(odd)) == ReplyError(1, 422, "x" + "é" * 2_047)
    assert decode_server(encode_server(ReplyError(1, 422, "\ud800"))) == ReplyError(1, 422, "?")
    for data in ("0b01" + "05" + "a601", "0b01" + "04" + "a6", "0b01" + "04" + "a601" + "ff", "0b01" + "08"):
        with pytest.raises(ProtocolError):
            decode_server(bytes.fromhex(data))
    with pytest.raises(ProtocolError, match="4097"):
        decode_server(bytes.fromhex("0b0104a601") + b"x" * 4_097)


@pytest.mark.parametrize(
    "data",
    [
        "0c00" + "00",  # no inputs
        "0c00" + "06" + "0100026e756c6c" * 6,  # six
        "0c02" + "01" + "0100" + "046e756c6c",  # an unknown flag
        "0c00" + "02" + "0100" + "046e756c6c" + "0000" + "046e756c6c",  # the same tick twice
        "0c00" + "02" + "0100" + "046e756c6c" + "0200" + "046e756c6c",  # below tick 0
        "0c00" + "01" + "0100" + "0161",  # not JSON
    ],
)
def test_inputs_that_are_none(data: str) -> None:
    with pytest.raises(ProtocolError):
        decode_client(bytes.fromhex(data), SCHEMA)


def test_compact_inputs_need_a_schema_that_has_them() -> None:
    data = encode_client(Inputs((InputEntry(5, None, Control(dx=1)),)))
    with pytest.raises(ProtocolError, match="the schema has none"):
        decode_client(data, EMPTY)
    nan = data.replace(b"\0\0\0\0", bytes.fromhex("0000c07f"))
    with pytest.raises(ProtocolError, match="from a client"):
        decode_client(nan, SCHEMA)


def test_inputs_are_one_to_five_and_of_one_form() -> None:
    for entries in ((), tuple(InputEntry(9 - n, None, n) for n in range(6))):
        with pytest.raises(ValueError, match="1 to 5"):
            encode_client(Inputs(entries))
    mixed = Inputs((InputEntry(2, None, Control(dx=1)), InputEntry(1, None, {"dx": 1})))
    with pytest.raises(ValueError, match="all compact"):
        encode_client(mixed)


@pytest.mark.parametrize(
    "data",
    [
        "0e00",  # no entries
        "0e01" + "05" + "02" + "01" + "00000000",  # no such kind
        "0e01" + "05" + "00" + "00",  # an empty mask
        "0e01" + "05" + "00" + "08" + "00",  # a field the kind has not
        "0e01" + "05" + "00" + "01" + "0000c07f",  # NaN
        "0e01" + "05" + "00" + "02" + "01ff",  # not UTF-8
        "0eff7f" + "05" + "00" + "04" + "00",  # more entries than bytes
    ],
)
def test_writes_that_are_none(data: str) -> None:
    with pytest.raises(ProtocolError):
        decode_client(bytes.fromhex(data), SCHEMA)


def test_a_write_has_an_entry() -> None:
    with pytest.raises(ValueError, match="at least one"):
        encode_client(Write(0, ()))


def test_resets_count_from_1() -> None:
    with pytest.raises(ProtocolError, match="from 1"):
        decode_server(bytes.fromhex("1100a80f"))


CLIENT_BYTES = [encode_client(frame) for frame in CLIENT_FRAMES]  # type: ignore[arg-type]
SERVER_BYTES = [encode_server(frame) for frame in SERVER_FRAMES]  # type: ignore[arg-type]


@st.composite
def damaged(draw: st.DrawFn, whole: list[bytes]) -> bytes:
    """A frame with some bytes changed, dropped or added."""
    data = bytearray(draw(st.sampled_from(whole)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(data)


@given(st.binary(max_size=80) | damaged(CLIENT_BYTES))
def test_a_server_takes_garbage_for_a_frame_or_a_protocol_error(data: bytes) -> None:
    try:
        frame = decode_client(data, SCHEMA)
    except ProtocolError:
        return
    assert decode_client(encode_client(frame), SCHEMA) == frame


@given(st.binary(max_size=80) | damaged(SERVER_BYTES))
def test_a_client_takes_garbage_for_a_frame_or_a_protocol_error(data: bytes) -> None:
    try:
        frame = decode_server(data)
    except ProtocolError:
        return
    if frame is not None:
        assert decode_server(encode_server(frame)) == frame


def test_every_frame_has_its_number_once() -> None:
    numbers = {encode_client(f)[0] for f in CLIENT_FRAMES} | {encode_server(f)[0] for f in SERVER_FRAMES}  # type: ignore[arg-type]
    assert numbers == set(range(1, 21)) - {4, 8}
    assert frames.VERSION == 1
