"""Field log F12, F16 and F17: lengths, ranges, and numbers that are none, on every way into a room.

What the documented limits are is in docs/protocol/values.md.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

from playhall.client import PlayhallError
from playhall.engine.errors import ProtocolError
from playhall.engine.frames import Write, WriteEntry, decode_client, encode_client
from playhall.engine.kinds import spec_of
from playhall.room import (
    Call,
    Connection,
    Entity,
    FieldError,
    FieldTypeError,
    Json,
    JsonOut,
    Message,
    Room,
    Schema,
    f32,
    f64,
    grid,
    i8,
    i16,
    u8,
    u16,
    u32,
    writable,
)
from playhall.testing import RoomHost, TestRoom
from tests.support.rooms import Driver

MAX_TEXT = 16_384
MAX_BYTES = 49_152
LENGTHS = (0, 1, 31, 32, 127, 128, 254, 255, 256, 16_383, 16_384, 16_385, 65_535, 65_536)


class Note(Entity):
    text: str = ""
    canary: u32 = 0xC0FFEE
    data: bytes = b""
    canary2: u32 = 0xBEEF
    json: Json[Any] = None
    canary3: u32 = 0xF00D


class Numbers(Entity):
    a: u8 = 0
    b: i8 = 0
    c: u16 = 0
    d: u32 = 0
    e: i16 = 0
    x: writable[f32] = 0
    y: writable[f64] = 0


class Board(Entity):
    beats: u32 = 0
    x: f64 = 0


class Echo(Call[str]):
    text: str


class Put(Call[int]):
    field: str
    value: u8


class Aim(Call[float]):
    x: float


class Notes(Room[Board]):
    schema = Schema(state=Board, entities=[Note, Numbers], calls=[Echo, Put, Aim])

    def __init__(self) -> None:
        self.heard: list[Message] = []

    def on_create(self) -> None:
        self.entities.add(Note(), id=2)
        self.entities.add(Numbers(), id=3)

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Numbers(), owner=conn.player, once=True)

    def on_message(self, conn: Connection, message: Message) -> None:
        self.heard.append(message)
        match message:
            case {"set": str() as field, "value": value}:
                numbers = self.entities.get(Numbers, 3)
                assert numbers is not None
                self.state.beats += 1
                setattr(numbers, field, value)
            case _:
                self.send(conn, message)

    def on_request(self, message: Message) -> JsonOut:
        match message:
            case {"set": str() as field, "value": value}:
                setattr(self.entities.get(Numbers, 3), field, value)
                return True
        return message if not isinstance(message, bytes) else None

    @Echo.handler
    def echo(self, conn: Connection, ask: Echo) -> str:
        return ask.text

    @Put.handler
    def put(self, conn: Connection, ask: Put) -> int:
        setattr(self.entities.get(Numbers, 3), ask.field, ask.value)
        return ask.value

    @Aim.handler
    def aim(self, conn: Connection, ask: Aim) -> float:
        self.state.x = ask.x
        return ask.x


def texts() -> list[str]:
    """Of every length in ASCII and in characters of four bytes, filled up to the length."""
    out = []
    for length in LENGTHS:
        out.append("x" * length)
        out.append("🦊" * (length // 4) + "abc"[: length % 4])
    return out


def test_the_texts_are_those_of_the_log() -> None:
    [text] = [text for text in texts() if len(text.encode()) == 255 and text[0] == "🦊"]
    assert text == "🦊" * 63 + "abc"
    assert (len(text), len(text.encode("utf-16-le")) // 2) == (66, 129)


def held(room_or_client: Any) -> tuple[Any, ...]:
    note = room_or_client.entities.get(Note, 2)
    return note.text, note.canary, note.data, note.canary2, note.json, note.canary3


async def test_f12_string_lengths(room_host: RoomHost) -> None:
    """Text, bytes and a JSON key of each length: the same for who is there, who comes, and after a wake."""
    t = room_host.room(Notes)
    alice = await t.connect("alice")
    for text in texts():
        note: Any = t.room.entities.get(Note, 2)
        length = len(text.encode())
        before = held(t.room)
        if length > MAX_TEXT:
            with pytest.raises(FieldError, match="note 2") as refused:
                note.text = text
            assert (refused.value.kind, refused.value.id, refused.value.field) == ("note", 2, "text")
        else:
            note.text = text
        if length > MAX_BYTES:
            with pytest.raises(FieldError):
                note.data = text.encode()
        else:
            note.data = text.encode()
        key = {text: text[:1]}
        if len(json.dumps(key, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_TEXT:
            with pytest.raises(FieldError):
                note.json = key
        else:
            note.json = key
        await t.tick()
        now = held(t.room)
        assert now[1::2] == (0xC0FFEE, 0xBEEF, 0xF00D)
        assert now[0] == (text if length <= MAX_TEXT else before[0])
        assert held(alice) == now
        if length in (0, 255, 256, MAX_TEXT):
            bob = await t.connect("bob")
            assert held(bob) == now
            await t.hibernate()
            alice = await t.connect("alice")
            assert held(alice) == held(t.room) == now


async def test_f12_patches_of_every_length(room_host: RoomHost) -> None:
    t = room_host.room(Notes)
    alice = await t.connect("alice")
    note: Any = t.room.entities.get(Note, 2)
    for length in LENGTHS:
        before = note.data
        data = bytes(n % 251 for n in range(length))
        if length > MAX_BYTES:
            with pytest.raises(FieldError):
                note.patch("data", 0, data)
            assert note.data == before
        else:
            note.patch("data", 0, data)
            assert note.data == data + before[length:]
        await t.tick()
        assert held(alice) == held(t.room)
    with pytest.raises(FieldError):
        note.patch("data", MAX_BYTES, b"x")


async def test_f12_messages_calls_and_requests_of_every_length(room_host: RoomHost) -> None:
    t = room_host.room(Notes)
    alice = await t.connect("alice")
    for text in texts():
        if len(text.encode()) + 2 > 65_536:
            with pytest.raises(ValueError, match=r"65,?536"):
                alice.send(text)
            with pytest.raises(ValueError, match=r"65,?536"):
                alice.call(Echo(text=text))
            continue
        alice.send(text)
        alice.send({text: text[:9]} if len(text.encode()) < 65_000 else text)
        alice.send(text.encode())
        answer = alice.call(Echo(text=text)) if len(text.encode()) < 65_500 else None
        await t.tick()
        assert alice.messages[-3] == text
        assert alice.messages[-1] == text.encode()
        if len(text.encode()) < 65_000:
            assert alice.messages[-2] == {text: text[:9]}
        if answer is not None:
            assert await answer == text
        assert await t.request(text) == text


async def test_f12_names(room_host: RoomHost) -> None:
    """One rule: names are kept as they are, not normalised; too long, or no text, is refused."""
    t = room_host.room(Notes)
    watcher = await t.connect("watcher")
    odd = ["\u200b", "ann\u200f", "caf\u00e9", "cafe\u0301", "\u0430nn", "x" * 64, "🦊" * 64]
    for number, name in enumerate(odd):
        player = await t.connect(f"p{number}", meta={"name": name})
        await t.tick()
        assert watcher.presence[f"p{number}"].name == name
        t.room.presence.set("watcher", name=name)
        await t.tick()
        assert player.presence["watcher"].name == watcher.presence["watcher"].name == name
    # Different texts are different players, however alike they look.
    looks = ["é", "e\u0301", "ann\u200b", "ann", "\u0430nn"]
    for player_id in looks:
        await t.connect(player_id)
    assert set(looks) <= set(t.room.presence)
    # What does not fit in a token's meta is as if there were none, and in room code an error.
    for number, name in enumerate(["x" * 65, "x" * 1_000_000]):
        await t.connect(f"long{number}", meta={"name": name})
        assert t.room.presence[f"long{number}"].name == ""
        with pytest.raises(ValueError, match="64"):
            t.room.presence.set("watcher", name=name)
    for value in ("\ud800", "a\udfff"):
        with pytest.raises(ValueError, match=r"surrogate|UTF-8"):
            t.room.presence.set("watcher", name=value)
        with pytest.raises(FieldError):
            setattr(t.room.entities.get(Note, 2), "text", value)  # noqa: B010 - of any kind
        with pytest.raises(ValueError, match=r"surrogate|UTF-8"):
            watcher.send({"name": value})
        with pytest.raises(ValueError, match=r"surrogate|UTF-8"):
            watcher.presence.set_status(value)


REFUSED: list[tuple[str, Any]] = [
    *[("a", value) for value in (-1, -2, 256, 300)],
    ("b", -129), ("b", 128), ("c", 65_536), ("d", 4_294_967_296), ("e", 32_768),
    ("a", 1.5), ("a", "7"), ("a", True), ("a", None), ("d", 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), REFUSED)
async def test_f16_what_does_not_fit_is_refused(room_host: RoomHost, field: str, value: Any) -> None:
    """By room code, message, call and request; and the rest of that tick still goes out."""
    t = room_host.room(Notes)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    numbers: Any = t.room.entities.get(Numbers, 3)
    numbers.a, numbers.c = 255, 65_535
    kept = numbers.a, numbers.b, numbers.c, numbers.d, numbers.e
    with pytest.raises(FieldTypeError if not isinstance(value, int) or value is True else FieldError):
        setattr(numbers, field, value)
    alice.send({"set": field, "value": value})
    call = alice.call(Put(field=field, value=value)) if value in (-1, 256, 1.5, "7") else None
    note: Any = t.room.entities.get(Note, 2)
    note.text = "of the same tick"
    await t.tick()
    [error] = t.errors
    assert f"numbers 3: {field}: " in error
    if call is not None:
        with pytest.raises(PlayhallError, match="put was not understood") as failed:
            await call
        assert failed.value.code == 422
    with pytest.raises(PlayhallError) as failed:
        await t.request({"set": field, "value": value})
    assert failed.value.code == 422
    assert t.errors
    await t.tick()
    sides: list[Any] = [t.room, alice, bob]
    for side in sides:
        one = side.entities.get(Numbers, 3)
        assert (one.a, one.b, one.c, one.d, one.e) == kept
        assert side.entities.get(Note, 2).text == "of the same tick"
    # What the message had done before the line that raised is in, and saved.
    assert alice.state.beats == t.room.state.beats == 1
    await t.hibernate()
    alice = await t.connect("alice")
    saved: Any = alice.entities.get(Numbers, 3)
    assert (saved.a, saved.b, saved.c, saved.d, saved.e) == kept


NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", [*NOT_FINITE, 3.5e38])
def test_f17_owner_writes_that_are_no_numbers(value: float) -> None:
    """As bytes of a client that holds itself to nothing: a protocol error, and nothing is written."""
    driver = Driver(Notes)
    ann, bob = driver.join("ann"), driver.join("bob")
    mine = driver.room.entities.first(Numbers, owner="ann")
    spec = spec_of(Numbers)
    stored = struct.unpack("<f", struct.pack("<f", value))[0] if value != 3.5e38 else math.inf
    for name in ("x", "y"):
        index = spec.by_name[name].index
        entry = WriteEntry(mine.id, Notes.schema.kinds.index(spec), spec, {index: stored})
        frame = encode_client(Write(ann.replica.version, (entry,)))
        with pytest.raises(ProtocolError, match="from a client"):
            decode_client(frame, Notes.schema)
        driver.receive(ann, frame)
        driver.tick()
        assert (ann.closed and ann.closed.code) == 4000
        assert (mine.x, mine.y) == (0, 0)
        ann = driver.join("ann")
    assert bob.closed is None
    driver.assert_in_sync(bob)


async def test_f17_the_client_refuses_what_is_not_finite(room_host: RoomHost) -> None:
    t = room_host.room(Notes)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    [mine] = alice.mine(Numbers)
    for value in (*NOT_FINITE, 3.5e38):
        with pytest.raises(FieldError):
            mine.x = value
    for value in NOT_FINITE:
        with pytest.raises(FieldError):
            mine.y = value
        for send in (alice.send, alice.presence.set_status, t.room.broadcast):
            with pytest.raises(ValueError, match=r"finite|NaN|JSON"):
                send({"x": [value]})
        with pytest.raises(ValueError, match=r"finite|NaN|JSON"):
            alice.call(Aim(x=value))
        with pytest.raises(ValueError, match=r"finite|NaN|JSON"):
            await t.request({"x": value})
        with pytest.raises(FieldError):
            setattr(t.room.entities.get(Note, 2), "json", value)  # noqa: B010 - of any kind
    await t.tick(2)
    assert (mine.x, mine.y) == (0, 0)
    assert bob.status == "open"


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e309", "-1e309", '{"x":1e309}', "[NaN]"])
def test_f17_json_text_that_is_no_number(text: str) -> None:
    driver = Driver(Notes)
    ann, bob = driver.join("ann"), driver.join("bob")
    driver.receive(ann, encode_client_json(text))
    assert (ann.closed and ann.closed.code) == 4000
    assert driver.room.heard == []
    driver.send(bob, "fine")
    assert driver.room.heard == ["fine"]


def encode_client_json(text: str) -> bytes:
    """A message frame with JSON text of any kind in it: type, seen, format."""
    return b"\x05\x00\x00" + text.encode()


async def test_f17_tiny_and_negative_zero_are_kept_everywhere(room_host: RoomHost) -> None:
    t = room_host.room(Notes)
    alice = await t.connect("alice")
    [mine] = alice.mine(Numbers)
    mine.x, mine.y = -0.0, 5e-324
    await t.tick(2)
    theirs = t.room.entities.first(Numbers, owner="alice")
    assert theirs is not None
    assert (repr(theirs.x), theirs.y) == ("-0.0", 5e-324)
    assert repr(await alice_call(t, alice, -0.0)) == "-0.0"
    assert repr(t.room.state.x) == repr(alice.state.x) == "-0.0"
    assert await alice_call(t, alice, 5e-324) == 5e-324
    alice.send([-0.0, 5e-324])
    await t.tick()
    assert repr(alice.messages[-1]) == "[-0.0, 5e-324]"
    await t.hibernate()
    alice = await t.connect("alice")
    assert alice.state.x == 5e-324
    # Each switch is a change, and both sides hold the same bits.
    changes = 0

    def changed(entity: Numbers, names: frozenset[str]) -> None:
        nonlocal changes
        changes += names == {"x"}

    alice.entities.on_change(Numbers, changed)
    numbers: Any = t.room.entities.get(Numbers, 3)
    for n in range(20):
        numbers.x = 0.0 if n % 2 else -0.0
        await t.tick()
        one = alice.entities.get(Numbers, 3)
        assert one is not None
        assert struct.pack("<f", one.x) == struct.pack("<f", numbers.x)
    assert changes == 20


async def alice_call(t: TestRoom[Any, Any, Any], alice: Any, x: float) -> float:
    answer = alice.call(Aim(x=x))
    await t.tick()
    found: float = await answer
    return found


class Arena(Room[Board]):
    schema = Schema(state=Board, entities=[Numbers])
    interest = grid(cell_size=10, range=20, around=Numbers)

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Numbers(), owner=conn.player, once=True)


async def test_f17_what_room_code_itself_makes_of_it_harms_nobody(room_host: RoomHost) -> None:
    """Room code may store NaN and infinities: saved, synced as bits, sent once, seen by nobody's grid."""
    t = room_host.room(Arena)
    alice, bob = await t.connect("alice"), await t.connect("bob")
    [theirs] = t.room.entities.all(Numbers, owner="alice")
    updates = 0

    def counts(entity: Numbers, names: frozenset[str]) -> None:
        nonlocal updates
        updates += 1

    alice.entities.on_change(Numbers, counts)
    for value in NOT_FINITE:
        theirs.y = value
        await t.tick(3)
        [mine] = alice.mine(Numbers)
        assert struct.pack("<d", mine.y) == struct.pack("<d", theirs.y)
        assert bob.entities.get(Numbers, theirs.id) is None
        assert all(math.isfinite(each.y) for each in bob.entities.all(Numbers))
    assert updates == 3
    with pytest.raises(FieldError):
        theirs.x = 3.5e38
    theirs.x = math.inf
    await t.crash()
    await alice.reconnected()
    [mine] = alice.mine(Numbers)
    assert mine.y == -math.inf
    assert bob.status == "open"


def test_f17_what_is_shown_of_it_is_strict_json() -> None:
    driver = Driver(Notes)
    driver.join("ann")
    for value in (*NOT_FINITE, -0.0):
        driver.room.entities.first(Numbers, owner="ann").y = driver.room.state.x = value
        driver.tick()
        shown = json.dumps([driver.core.inspect(), driver.core.summary()], allow_nan=False)
        assert json.loads(shown, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
