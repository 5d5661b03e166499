"""What encodes decodes to the same; what decodes encodes to the same; and what is a little off is refused.

Frames are made whole, of random parts, and then damaged: cut at every length, a bit turned, a byte more, a
length or a count that promises more than there is. The decoders may read what came of it or raise
ProtocolError. What they read is written again, and must read as the same.
"""

from __future__ import annotations

import math
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Annotated, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from playhall.engine import frames, jsontext
from playhall.engine.errors import ProtocolError
from playhall.engine.fields import MAX_BYTES
from playhall.engine.frames import MAX_FRAME, decode_client, decode_server, encode_client, encode_server
from playhall.engine.payloads import MAX_PAYLOAD, compress, decode_payload, encode_payload, inflate
from playhall.engine.schema import FIRST_PRESENCE_ID
from playhall.engine.updates import (
    MAX_PART,
    Change,
    Correct,
    Enter,
    Leave,
    Operation,
    Owner,
    Patch,
    Section,
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
from playhall.engine.wire import VARINT32_MAX, VARINT53_MAX, varint
from playhall.room import Entity, Input, Json, Schema, f32, f64, i16, owner_only, q8, q16, u8, u32, writable


class Item(Entity):
    """A field of every type there is."""

    on: bool = False
    count: u32 = 0
    turn: i16 = 0
    x: f32 = 0
    far: f64 = 0
    hue: Annotated[float, q8(-1, 1)] = 0
    fine: Annotated[float, q16(0, 360)] = 0
    name: writable[str] = ""
    chunk: bytes = b""
    tags: Json[Any] = None
    hand: owner_only[u8] = 0


class Board(Entity):
    moves: u32 = 0


class Purse(Entity):
    coins: writable[u32] = 0


class Steer(Input):
    dx: f32
    jump: bool
    note: str


SCHEMA = Schema(state=Board, private=Purse, entities=[Item], input=Steer)
DAMAGED_BYTES = 4
# Updates take long to make up.
FEWER = settings(max_examples=settings().max_examples // 4)
HELD = {0: 1, 1: 2, 2: 0, 3: 0, FIRST_PRESENCE_ID: len(SCHEMA.kinds) - 1}

u16s, u32s, u53s = st.integers(0, 2**16 - 1), st.integers(0, VARINT32_MAX), st.integers(0, VARINT53_MAX)
texts = st.text(max_size=20)
seens = st.none() | st.integers(0, VARINT53_MAX - 1)
sixteen = st.binary(min_size=16, max_size=16)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
contents = json_values | st.binary(max_size=100)
floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
steers = st.builds(Steer, dx=floats32, jump=st.booleans(), note=texts)
helds = st.lists(st.integers(2, VARINT32_MAX), unique=True, max_size=20).map(lambda ids: tuple(sorted(ids)))


@st.composite
def inputs(draw: st.DrawFn) -> frames.Inputs:
    values = draw(st.sampled_from((steers, json_values)))
    ticks = draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5, unique=True))
    lags = st.none() | st.integers(0, VARINT32_MAX - 1)
    return frames.Inputs(
        tuple(frames.InputEntry(tick, draw(lags), draw(values)) for tick in sorted(ticks, reverse=True))
    )


@st.composite
def field_values(draw: st.DrawFn, number: int) -> dict[int, Any]:
    """Stored values of one field at least, by index."""
    fields = SCHEMA.kinds[number].fields
    chosen = draw(st.lists(st.sampled_from(fields), min_size=1, unique_by=lambda field: field.index))
    raw: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(), "u8": st.integers(0, 255), "u32": u32s,
        "i16": st.integers(-(2**15), 2**15 - 1),
        "f32": floats32, "f64": st.floats(allow_nan=False, allow_infinity=False), "q8": st.floats(-1, 1),
        "q16": st.floats(0, 360), "str": texts, "bytes": st.binary(max_size=40), "json": json_values,
    }  # fmt: skip
    return {
        field.index: field.accept("kind", 2, draw(raw[field.type.canonical.partition(":")[0]]))
        for field in sorted(chosen, key=lambda field: field.index)
    }


@st.composite
def writes(draw: st.DrawFn) -> frames.Write:
    numbers = draw(st.lists(st.integers(0, len(SCHEMA.kinds) - 1), min_size=1, max_size=4))
    return frames.Write(
        draw(u32s),
        tuple(
            frames.WriteEntry(draw(u32s), number, SCHEMA.kinds[number], draw(field_values(number)))
            for number in numbers
        ),
    )


client_frames: st.SearchStrategy[frames.ClientFrame] = st.one_of(
    st.builds(
        frames.Hello, st.just(1), texts, texts, texts, texts, sixteen, sixteen, u32s, st.text(max_size=16)
    ),
    st.builds(frames.Resume, u32s, st.integers(1, VARINT53_MAX), u32s, st.booleans(), helds),
    st.just(frames.Leave()),
    st.builds(frames.Ping, u32s),
    st.builds(frames.Message, contents, seens),
    st.builds(frames.Unreliable, contents, seens),
    st.builds(frames.Call, u32s, seens, st.text(max_size=16), contents),
    inputs(),
    writes(),
)
bytes1 = st.integers(0, 255)
server_frames: st.SearchStrategy[frames.ServerFrame] = st.one_of(
    st.builds(
        frames.Welcome, u53s, u32s, u53s, bytes1, st.booleans(), st.booleans(), bytes1,
        texts, texts, texts, texts,
    ),
    st.just(frames.Waking()),
    st.builds(frames.Asleep, u53s, u32s),
    st.builds(frames.Reset, st.integers(1, VARINT32_MAX), u16s),
    st.builds(frames.Pong, u32s, st.none() | u53s, bytes1),
    st.builds(frames.Message, contents),
    st.builds(frames.Unreliable, contents),
    st.builds(frames.Reply, u32s, contents),
    st.builds(frames.ReplyError, u32s, u16s, texts),
    st.builds(frames.Ack, u53s, u53s, st.integers(-(2**31), 2**31 - 1)),
    st.builds(frames.Voice, texts, texts),
    st.builds(frames.Peers, st.lists(texts, max_size=5).map(tuple), st.lists(texts, max_size=5).map(tuple)),
)  # fmt: skip


def read_client(data: bytes) -> frames.ClientFrame:
    return decode_client(data, SCHEMA)


def damaged(data: bytes) -> Iterator[bytes]:
    """A frame cut at every length; with a byte more; and with some of its bytes changed in some ways."""
    yield from (data[:size] for size in range(len(data)))
    yield data + b"\0"
    for at in Random(zlib.crc32(data)).sample(range(len(data)), min(len(data), DAMAGED_BYTES)):
        for byte in (0x00, 0x7F, 0x80, 0xFF, data[at] ^ 0x01, data[at] ^ 0x80, (data[at] + 1) & 0xFF):
            yield data[:at] + bytes((byte,)) + data[at + 1 :]
        yield data[:at] + varint(VARINT32_MAX) + data[at + 1 :]
        yield data[:at] + varint(VARINT53_MAX) + data[at + 1 :]
        yield data[:at] + b"\xff" * 40 + data[at + 1 :]


def reads_as_it_writes(read: Callable[[bytes], Any], write: Callable[[Any], bytes], data: bytes) -> None:
    """Read, if it can be; then what was read is written, and read, as the same."""
    try:
        found = read(data)
    except ProtocolError:
        return
    if found is None:  # of a type that is not known here
        return
    again = write(found)
    assert write(read(again)) == again
    assert _is_nan(found) or read(again) == found


def _is_nan(found: object) -> bool:
    """Whether a value is in it that does not equal itself."""
    return "nan" in repr(found)


@given(client_frames)
def test_a_clients_frame_survives_and_its_damage_is_refused(frame: frames.ClientFrame) -> None:
    data = encode_client(frame)
    assert read_client(data) == frame
    for broken in damaged(data):
        reads_as_it_writes(read_client, encode_client, broken)


@given(server_frames)
def test_a_servers_frame_survives_and_its_damage_is_refused(frame: frames.ServerFrame) -> None:
    data = encode_server(frame)
    assert decode_server(data) == frame
    for broken in damaged(data):
        reads_as_it_writes(decode_server, encode_server, broken)


@st.composite
def operations(draw: st.DrawFn) -> list[Operation]:
    """What an update may do, in the order of its sections, to entities that are held then."""
    entered: dict[int, int] = {}
    made: list[Operation] = [Leave(id) for id in draw(st.lists(st.integers(4, 9), unique=True, max_size=3))]
    for id in draw(st.lists(st.integers(10, 13), unique=True, max_size=3)):
        values = [field.type.zero for field in SCHEMA.kinds[0].fields]
        for index, value in draw(field_values(0)).items():
            if not SCHEMA.kinds[0].fields[index].owner_only:
                values[index] = value
        made.append(Enter(id, 0, values, owner_only=False))
        entered[id] = 0
    held = HELD | entered
    ids = st.lists(st.sampled_from(sorted(held)), max_size=3)
    made += [Change(id, draw(field_values(held[id]))) for id in draw(ids)]
    items = sorted(id for id, number in held.items() if number == 0)
    chunk = SCHEMA.kinds[0].by_name["chunk"].index
    for id in draw(st.lists(st.sampled_from(items), max_size=2)):
        made.append(Patch(id, chunk, draw(st.integers(0, 1_000)), draw(st.binary(max_size=30))))
    made += [Owner(id, draw(st.none() | st.text(min_size=1, max_size=8))) for id in draw(ids)]
    made += [Correct(id, draw(field_values(held[id]))) for id in draw(ids)]
    return made


def written(found: list[Operation]) -> bytes:
    """The body of an update of one part."""
    builder = UpdateBuilder()
    held = dict(HELD)
    for operation in found:
        match operation:
            case Leave(id):
                builder.add(Section.LEAVE, encode_leave(id))
            case Enter(id, number, values, owner_only):
                held[id] = number
                entry = encode_enter(id, number, SCHEMA.kinds[number], values, owner_only=owner_only)
                builder.add(Section.ENTER, entry)
            case Change(id, fields) | Correct(id, fields):
                spec = SCHEMA.kinds[held[id]]
                values = [fields.get(field.index, field.type.zero) for field in spec.fields]
                mask = sum(1 << index for index in fields)
                if isinstance(operation, Change):
                    builder.add(Section.CHANGE, encode_change(id, spec, values, mask))
                else:
                    builder.add(Section.CORRECT, encode_correct(id, spec, values, mask))
            case Patch(id, index, offset, data):
                builder.add(Section.PATCH, encode_patch(id, index, offset, data))
            case Owner(id, owner):
                builder.add(Section.OWNER, encode_owner(id, owner))
    [body] = builder.bodies()
    return body


def read_body(body: bytes) -> list[Operation]:
    return decode_part(body, SCHEMA.kinds, HELD)


@FEWER
@given(operations())
def test_an_update_survives_and_its_damage_is_refused(found: list[Operation]) -> None:
    body = written(found)
    assert read_body(body) == found
    for broken in damaged(body):
        reads_as_it_writes(read_body, written, broken)


@FEWER
@given(operations(), st.permutations(range(6)), st.integers(0, 2**32 - 1), u53s, st.booleans())
def test_sections_in_another_order_are_refused(
    found: list[Operation], order: list[int], dv: int, dt: int, full: bool
) -> None:
    by_section: list[list[Operation]] = [
        [operation for operation in found if isinstance(operation, kind)]
        for kind in (Leave, Enter, Change, Patch, Owner, Correct)
    ]
    present = [n for n in order if by_section[n]]
    # Whatever is said of what enters here is said of what is held already.
    held = HELD | {operation.id: 0 for operation in by_section[1]}
    body = b"".join(written_section(by_section[n], held) for n in present)
    if present == sorted(present):
        assert decode_part(body, SCHEMA.kinds, held) == found
    else:
        with pytest.raises(ProtocolError):
            decode_part(body, SCHEMA.kinds, held)
    reader = UpdateReader(SCHEMA.kinds)
    reader.welcome(1, 1, resumed=True)
    reader.held = dict(held)
    for deflated in (False, True):
        packed = deflate(body) if deflated else body
        try:
            reader.part(encode_head(dv, dt, last=True, full=full, deflated=deflated) + packed)
        except ProtocolError:
            continue


def written_section(found: list[Operation], held: dict[int, int]) -> bytes:
    entered: list[Operation] = [
        Enter(id, 0, [field.type.zero for field in SCHEMA.kinds[0].fields], owner_only=False)
        for id in sorted({operation.id for operation in found} - HELD.keys())
        if not isinstance(found[0], Leave | Enter)
    ]
    whole = written(entered + found)
    return whole[len(written(entered)) :] if entered else whole


# Payloads


@given(json_values)
def test_json_survives(value: Any) -> None:
    assert jsontext.same(jsontext.decode(jsontext.encode(value)), value)


json_text = st.text(alphabet='[]{}":,0123456789eE+-.truefalsn \\u\ud800\0é', max_size=40)


@given(json_text.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=40))
@example(b"1e400")
@example(b"-" + b"9" * 400)
@example(b"1" + b"0" * 400 + b".0")
@example(b'{"":' * 511 + b"[]" + b"}" * 511)
def test_json_that_decodes_is_json_that_encodes(data: bytes) -> None:
    try:
        value = jsontext.decode(data)
    except ValueError:
        return
    assert jsontext.same(jsontext.decode(jsontext.encode(value)), value)


@given(st.integers(0, 7), st.binary(max_size=200), st.booleans())
def test_a_payload_of_any_format_is_read_or_refused(format: int, data: bytes, from_client: bool) -> None:
    def read(data: bytes) -> Any:
        return (decode_payload(data[0], data[1:], from_client=from_client),)

    def write(found: tuple[Any]) -> bytes:
        payload = encode_payload(found[0])
        return bytes((payload.format,)) + payload.data

    reads_as_it_writes(read, write, bytes((format,)) + data)


@given(
    st.binary(min_size=1, max_size=64), st.integers(0, 2_000), st.integers(0, 2_000), st.binary(max_size=4)
)
def test_what_is_deflated_inflates_and_its_damage_does_not_hang(
    piece: bytes, times: int, at: int, over: bytes
) -> None:
    data = piece * times
    packed = compress(data)
    if packed is not None:
        assert inflate(packed, len(data)) == data
    packed = deflate(data)
    for broken in (packed[:at], packed[:at] + over + packed[at + len(over) :], packed + over):
        try:
            found = inflate(broken, len(data))
        except ProtocolError:
            continue
        assert len(found) <= len(data)


def deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


def bomb(megabytes: int) -> bytes:
    stream = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    return b"".join(stream.compress(zeros) for _ in range(megabytes)) + stream.flush()


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Fails where more is allocated in the block, at any one time, than that."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < limit, f"{peak} bytes at once"


BOMB = bomb(59)
"""As much as a frame's bytes can be made to say, a thousandfold."""


@pytest.mark.parametrize(
    "frame",
    [
        bytes((5, 2)) + BOMB,
        bytes((6, 3)) + BOMB,
        bytes((11, 0, 2)) + BOMB,
        bytes((4, 3, 1, 1)) + BOMB,
    ],
    ids=["message", "unreliable", "reply", "update"],
)
def test_a_bomb_takes_no_more_memory_than_what_is_allowed(frame: bytes) -> None:
    assert 50_000 < len(frame) < MAX_PART
    reader = UpdateReader(SCHEMA.kinds)
    reader.welcome(1, 1, resumed=False)
    with memory_below(3 * (MAX_FRAME + MAX_PAYLOAD)), pytest.raises(ProtocolError, match="inflates to over"):
        reader.part(frame) if frame[0] == 4 else decode_server(frame)


@pytest.mark.parametrize("count", [2**14, 60_000, 2**32 - 1])
@pytest.mark.parametrize(
    "head",
    [
        bytes((18, 0, 1, 0, 0)),
        bytes((14, 0)),
        bytes((9,)),
        bytes((9, 0)),
        bytes((4, 1, 1, 1, 1)),
        bytes((4, 1, 1, 1, 2)),
    ],
    ids=lambda head: head.hex(),
)
def test_a_count_allocates_no_more_than_there_is_to_count(head: bytes, count: int) -> None:
    reader = UpdateReader(SCHEMA.kinds)
    reader.welcome(1, 1, resumed=False)
    read = {4: reader.part, 9: decode_server}.get(head[0], read_client)
    for body in (b"", b"\0" * 1_000, b"\x02" * 1_000):
        with memory_below(1 << 20), pytest.raises(ProtocolError):
            read(head + varint(count) + body)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":['], ids=["lists", "objects", "both"])
@pytest.mark.parametrize("depth", [513, 10_000, 60_000])
def test_json_of_any_depth_is_refused_everywhere(opening: bytes, depth: int) -> None:
    text = (opening * depth)[:65_000]
    for frame in (bytes((5, 0, 0)) + text, bytes((10, 1, 0, 1)) + b"a\0" + text):
        with pytest.raises(ProtocolError):
            read_client(frame)
    with pytest.raises(ProtocolError):
        read_client(bytes((12, 0, 1, 1, 0)) + varint(len(text)) + text)
    with pytest.raises(ProtocolError):
        read_client(bytes((14, 0, 1, 2, 0)) + b"\x80\x04" + varint(len(text)) + text)
    with pytest.raises(ProtocolError):
        decode_server(bytes((5, 0)) + text)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_that_is_none_comes_from_a_client(value: float) -> None:
    entry = frames.WriteEntry(2, 0, SCHEMA.kinds[0], {SCHEMA.kinds[0].by_name["far"].index: value})
    with pytest.raises(ProtocolError):
        read_client(encode_client(frames.Write(1, (entry,))))


def test_an_update_that_never_ends_is_refused() -> None:
    reader = UpdateReader(SCHEMA.kinds)
    reader.welcome(1, 1, resumed=False)
    index = SCHEMA.kinds[0].by_name["chunk"].index
    builder = UpdateBuilder()
    builder.add(Section.PATCH, encode_patch(2, index, 0, bytes(MAX_BYTES)))
    [plain] = builder.bodies()
    first = encode_head(1, 0, last=False, deflated=True) + deflate(plain)
    later = encode_head(0, 0, last=False, deflated=True) + deflate(plain)
    reader.held = dict(HELD)
    with pytest.raises(ProtocolError, match="never ends"):
        all(reader.part(later if n else first) is None for n in range(2_000))
