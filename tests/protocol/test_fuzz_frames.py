"""Whatever bytes come: decoders raise ProtocolError and nothing else, and a room closes whoever sent them.

Bytes are drawn three ways: at random; at random behind a frame's type; and from the vectors and a corpus of
frames that could hurt, mutated. `HYPOTHESIS_PROFILE=explore` looks for more of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.codes import CloseCode
from playhall.engine.errors import ProtocolError
from playhall.engine.frames import Resume, decode_client, decode_server, encode_client
from playhall.engine.schema import FIRST_PRESENCE_ID
from playhall.engine.updates import UPDATE, Leave, UpdateReader
from playhall.engine.wire import Writer
from playhall.room import (
    Connection,
    Entity,
    Input,
    Json,
    Room,
    Schema,
    f32,
    owner_only,
    q8,
    u8,
    u32,
    writable,
)
from tests.support.rooms import Driver, Held, Replica, TestClient
from tests.support.vectors import load


class Dot(Entity):
    x: f32 = 0
    hue: Annotated[float, q8(0, 360)] = 0
    name: str
    chunk: bytes = b""
    tags: Json[list[int]] = []  # noqa: RUF012
    hand: owner_only[u8] = 0
    pose: writable[u8] = 0


class Board(Entity):
    moves: u32


class Purse(Entity):
    coins: u32


class Steer(Input):
    dx: f32
    note: str


class Echo(Room[Board, Purse]):
    """Sends everything back, so that what was let in is also let out."""

    schema = Schema(state=Board, private=Purse, entities=[Dot], input=Steer)

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Dot(name=conn.player), owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Any) -> None:
        self.send(conn, message)
        self.state.moves += 1

    def on_unreliable(self, conn: Connection, message: Any) -> None:
        self.send(conn, message, unreliable=True)


SCHEMA = Echo.schema


def deflated(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


def part(flags: int, body: bytes) -> bytes:
    return bytes((4, flags, 1, 1)) + body


def varint(value: int) -> bytes:
    out = Writer()
    out.varint53(value)
    return out.finish()


def text(data: bytes) -> bytes:
    """A message of JSON."""
    return bytes((5, 0, 0)) + data


CORPUS = [
    b"",
    b"\x00",
    b"\xff" * 70_000,
    text(b"[" * 60_000),
    text(b"[" * 513 + b"]" * 513),
    text(b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
    text(b'"\\ud800"'),
    text(b'{"\\udfff":1}'),
    text(b'"\xed\xa0\x80"'),
    text(b"NaN"),
    text(b"[Infinity]"),
    text(b"1e999"),
    text(b"-1e999"),
    text(b"9" * 5_000),
    text(b"0." + b"1" * 60_000),
    text(b"9007199254740993"),
    text(b'{"a":1,"a":2}'),
    text(b"\x00"),
    text(b"\xef\xbb\xbf1"),
    text(b""),
    bytes((5, 0, 1)) + b"\xff" * 65_536,
    bytes((5, 0, 1)) + b"\xff" * 65_537,
    bytes((5, 0, 2)) + deflated(b" " * 10_000_000),
    bytes((5, 2)) + deflated(b" " * 10_000_000),
    bytes((11, 0, 3)) + deflated(bytes(10_000_000)),
    bytes((5, 3)) + deflated(bytes(2_000))[:-1],
    bytes((5, 3)) + deflated(bytes(2_000)) + b"more",
    part(3, deflated(bytes(10_000_000))),
    part(1, b"\x01" + varint(2**32 - 1)),
    part(1, b"\x01" + varint(2**53 - 1)),
    part(1, b"\x02\x01" + varint(2**32 - 1) + varint(2**32 - 1)),
    part(1, b"\x04\x01\x00\x03" + varint(2**32 - 1) + varint(2**32 - 1)),
    part(8, b""),
    bytes((4, 1)) + b"\xff" * 9,
    bytes((18,)) + varint(2**32 - 1) * 5,
    bytes((18, 0, 1, 0, 0)) + varint(2**32 - 1),
    bytes((18, 0, 1, 0, 0, 2)) + varint(2**32 - 1) * 2,
    bytes((12, 0, 5)) + b"\x00" * 15,
    bytes((12, 1, 1, 0, 0)) + b"\x00\x00\xc0\x7f" + b"\x00",
    bytes((14,)) + varint(2**32 - 1),
    bytes((14, 1, 0, 0)) + b"\xff" * 40,
    bytes((10,)) + varint(2**32 - 1) + varint(2**53 - 1) + b"\x40" + b"a" * 64 + b"\x00{}",
    bytes((9,)) + varint(2**32 - 1),
    encode_client(Resume(0, 2**53 - 1, 2**32 - 1, False, tuple(range(2, 10_002)))),
    encode_client(Resume(2**32 - 1, 1, 1, True, (2, 2**32 - 1))),
]


def seeds() -> list[bytes]:
    """The vectors' frames, valid and refused, and the corpus."""
    found = [vector["hex"] for vector in load("frames.json")["vectors"]]
    found += [part for vector in load("updates.json")["vectors"] for part in vector["parts"]]
    return [bytes.fromhex(digits) for digits in found] + CORPUS


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A seed with a piece put in, put over, or cut out, one to three times."""
    frame = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 3))):
        at, piece = draw(st.integers(0, min(len(frame), 64))), draw(st.binary(max_size=8))
        inserted, cut = draw(st.booleans()), draw(st.integers(0, 8))
        frame = frame[:at] + piece + frame[at + (0 if inserted else cut) :]
    return frame


SEEDS = seeds()
frames_of_a_type = st.builds(
    lambda type, body: bytes((type,)) + body, st.integers(0, 24), st.binary(max_size=200)
)
anything = st.one_of(st.binary(max_size=200), frames_of_a_type, mutants())


def refuses_or_reads(read: Callable[[bytes], object], data: bytes) -> None:
    """Any other error fails the test."""
    with suppress(ProtocolError):
        read(data)


@given(anything)
def test_decoders_raise_nothing_but_protocol_errors(data: bytes) -> None:
    refuses_or_reads(decode_client, data)
    refuses_or_reads(lambda data: decode_client(data, SCHEMA), data)
    refuses_or_reads(decode_server, data)
    for resumed in (False, True):
        refuses_or_reads(reader(resumed).part, data)


@given(st.lists(anything, max_size=6))
def test_an_update_reader_goes_on_after_what_it_refused(parts: list[bytes]) -> None:
    updates = reader(resumed=True)
    for data in parts:
        refuses_or_reads(updates.part, data)
    updates.welcome(1, 1, resumed=False)
    update = updates.part(bytes((UPDATE, 5, 1, 1)))
    assert update is not None
    assert (update.version, update.tick, updates.held) == (2, 2, {})


@given(st.lists(anything, min_size=1, max_size=4))
def test_a_room_closes_who_sends_nonsense_and_serves_the_others(sent: list[bytes]) -> None:
    driver = Driver(Echo)
    mallory, ann = driver.join("mallory"), driver.join("ann")
    for data in sent:
        driver.receive(mallory, data)
    assert mallory.closed is None or mallory.closed.code in (CloseCode.PROTOCOL, CloseCode.LIMIT_EXCEEDED)
    assert driver.errors == []
    goes_on(driver, ann)


@pytest.mark.parametrize("data", CORPUS, ids=lambda data: data[:12].hex())
def test_a_room_takes_or_refuses_the_corpus(data: bytes) -> None:
    refuses_or_reads(decode_server, data)
    refuses_or_reads(reader(resumed=True).part, data)
    driver = Driver(Echo)
    mallory, ann = driver.join("mallory"), driver.join("ann")
    driver.receive(mallory, data)
    try:
        decode_client(data, SCHEMA)
    except ProtocolError:
        assert mallory.closed is not None
        assert mallory.closed.code == CloseCode.PROTOCOL
    else:
        assert mallory.closed is None
    assert driver.errors == []
    goes_on(driver, ann)


@given(
    st.integers(0, 2**53 - 1),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.lists(st.one_of(st.integers(2, 9), st.integers(2, 2**32 - 1)), unique=True, max_size=20),
    st.booleans(),
)
def test_a_resume_that_lies_harms_whoever_sends_it_alone(
    generation: int, version: int, full: bool, held: list[int], now: bool
) -> None:
    driver = Driver(Echo)
    ann = driver.join("ann")
    driver.tick(3)
    if now:
        generation = driver.core.generation
    if not generation:
        version, held = 0, []
    resume = Resume(0, generation, version, full, tuple(sorted(held)))
    liar = driver.join("liar", replica=Liar(SCHEMA, "liar"), resume=resume)
    driver.tick(3)
    assert liar.joined is not None
    assert liar.closed is None
    assert driver.errors == []
    if not liar.joined.resumed:
        driver.assert_in_sync(liar)
    goes_on(driver, ann)


def test_ten_thousand_ids_held_are_answered_with_as_many_leaves() -> None:
    driver = Driver(Echo)
    ann = driver.join("ann")
    driver.tick()
    held = tuple(range(1_000, 11_000))
    resume = Resume(0, driver.core.generation, driver.core.version, False, held)
    liar = driver.join(
        "liar", replica=Liar(SCHEMA, "liar", {0: Held(1, [0]), 1: Held(2, [0])}), resume=resume
    )
    driver.tick()
    assert liar.joined is not None
    assert liar.joined.resumed
    operations = [operation for update in liar.replica.updates for operation in update.operations]
    assert {operation.id for operation in operations if isinstance(operation, Leave)} == set(held)
    goes_on(driver, ann)


class Liar(Replica):
    """Holds something else than it says, so that updates may make no sense to it."""

    def part(self, frame: bytes) -> None:
        with suppress(ProtocolError):
            super().part(frame)


def reader(resumed: bool) -> UpdateReader:
    """One that holds an entity of every kind."""
    updates = UpdateReader(SCHEMA.kinds)
    updates.welcome(1, 1, resumed=resumed)
    if resumed:
        updates.held = {0: 1, 1: 2, 2: 0, 3: 0, FIRST_PRESENCE_ID: len(SCHEMA.kinds) - 1}
    return updates


def goes_on(driver: Driver, client: TestClient) -> None:
    """The room runs, and serves this client."""
    heard = len(client.messages)
    driver.send(client, {"still": "here"})
    driver.tick(2)
    assert driver.is_active
    assert client.closed is None
    assert client.messages[heard:] == [{"still": "here"}]
    driver.assert_in_sync(client)
