"""What is saved comes back, also to a room whose schema has grown; and nothing else does."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.backend import Tracker
from playhall.engine.kinds import Entity, stored_values
from playhall.engine.outputs import StoredRoom
from playhall.engine.statelog import (
    BansChange,
    BotsChange,
    DamagedStateError,
    LayoutError,
    SavedBot,
    SavedRoom,
    Totals,
    read,
    write_base,
    write_record,
)
from playhall.engine.store import EntityStore
from playhall.room import Json, Schema, f32, f64, i8, i16, i32, owner_only, q8, q16, u8, u16, u32, writable


class Everything(Entity):
    yes: bool = False
    a: u8 = 0
    b: u16 = 0
    c: u32 = 0
    d: i8 = 0
    e: i16 = 0
    f: i32 = 0
    g: f32 = 0
    h: f64 = 0
    i: Annotated[float, q8(-1, 1)] = 0
    j: Annotated[float, q16(0, 2000)] = 0
    text: str = ""
    data: bytes = b""
    doc: Json[Any] = None
    secret: owner_only[writable[str]] = ""


class Ghost(Entity, hidden=True):
    name: str = ""


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: u32 = 0


SCHEMA = Schema(state=Board, private=Mine, entities=[Everything, Ghost])


class Book:
    """A store and what was written of it."""

    def __init__(self, schema: Schema[Any, Any] = SCHEMA) -> None:
        self.schema = schema
        self.tracker = Tracker()
        self.store = EntityStore(schema, self.tracker)
        self.store.make_state()
        self.version = 0
        self.records: list[bytes] = []
        self.base: bytes | None = None
        self.next_id = 0

    def write_base(self, tick: int = 0, seen: dict[str, float | None] | None = None) -> None:
        self.version += 1
        self.tracker.flush(self.version)
        self.next_id = self.store.next_id
        self.base = write_base(
            self.schema, Totals(tick, self.store.next_id, seen or {}), self.store.tracked()
        )
        self.records = []

    def write_record(self, tick: int = 0, seen: dict[str, float | None] | None = None) -> bytes | None:
        self.version += 1
        flush = self.tracker.flush(self.version)
        next_id = self.store.next_id
        record = write_record(flush, Totals(tick, next_id, seen or {}, next_id != self.next_id))
        self.next_id = next_id
        if record is not None:
            self.records.append(record)
        return record

    def read(self, schema: Schema[Any, Any] | None = None) -> SavedRoom:
        return read(StoredRoom(self.base, self.records), schema or self.schema)

    def assert_same(self) -> None:
        saved = self.read()
        assert saved.next_id == self.store.next_id
        assert {e.id: (e.cls, e.owner, e.values) for e in saved.entities} == {
            e.id: (type(e), e.owner, list(stored_values(e))) for e in self.store
        }
        state = self.store.state
        assert state is not None
        assert saved.state == list(stored_values(state))
        privates: dict[str, list[Any]] = {}
        for player in self.store.private_players():
            private = self.store.private(player)
            assert private is not None
            privates[player] = list(stored_values(private))
        assert {p.player: p.values for p in saved.privates} == privates


@pytest.mark.ledger("ENT-06", "STATE-18", "OWN-05")
def test_everything_comes_back_from_a_base() -> None:
    book = Book()
    full = Everything(
        yes=True, a=255, b=65_535, c=2**32 - 1, d=-128, e=-32_768, f=-(2**31), g=0.1, h=0.1, i=0.3, j=1234.5,
        text="héllo 🎈", data=bytes(range(256)), doc={"k": [1, None, "x"]}, secret="s",
    )  # fmt: skip
    book.store.add(full, "ann", 77)
    book.store.add(Ghost(name="boo"), None, None)
    assert isinstance(book.store.state, Board)
    book.store.state.moves = 9
    book.store.make_private("ann")
    book.write_base(tick=55, seen={"ann": 12.5, "bob": None})
    book.assert_same()
    saved = book.read()
    assert (saved.tick, saved.next_id) == (55, 79)
    assert [(p.player, p.seen) for p in saved.privates] == [("ann", 12.5)]


@pytest.mark.ledger("RST-03")
def test_records_hold_what_changed() -> None:
    book = Book()
    one, two = Everything(data=bytes(1000)), Everything()
    book.store.add(one, "ann", None)
    book.store.add(two, None, None)
    mine = book.store.make_private("ann")
    book.write_base(seen={"ann": None})
    one.a = 5
    one.patch("data", 500, b"xyz")
    record = book.write_record(tick=7)
    assert record is not None
    assert len(record) < 60
    book.assert_same()
    assert book.read().tick == 7
    book.store.delete(two)
    book.store.add(Ghost(name="new"), None, two.id)
    book.store.set_owner(one, "bob")
    assert isinstance(mine, Mine)
    mine.coins = 3
    book.write_record(seen={"ann": 99.0})
    book.assert_same()
    assert book.read().privates[0].seen == 99.0
    book.store.drop_private("ann")
    book.write_record()
    book.assert_same()
    assert book.write_record() is None


def test_large_records_are_written_in_the_shortest_form() -> None:
    fields: dict[str, Any] = {f"n{n}": 0.0 for n in range(62)}
    body: dict[str, Any] = {"__annotations__": dict.fromkeys(fields, f32), "__module__": __name__, **fields}
    body["__annotations__"] |= {"name": str, "data": bytes}
    make: Any = type(Entity)
    wide = make("Wide", (Entity,), body | {"name": "", "data": b""})
    book = Book(Schema(state=Board, private=Mine, entities=[wide]))
    rows = [wide(data=bytes(1000)) for _ in range(16)]
    for n, row in enumerate(rows):
        book.store.add(row, None, 250 + n)
    book.write_base()

    def write(names: list[str], *, changes: int, patches: int) -> None:
        for row in rows[:changes]:
            for field in fields:
                setattr(row, field, getattr(row, field) + 1)
        for row, name in zip(rows, names, strict=False):
            row.name = name
        for row in rows[16 - patches :]:
            row.patch("data", 10, b"%d" % book.version)
        record = book.write_record()
        assert record is not None
        decoded = msgspec.msgpack.decode(record)
        assert msgspec.msgpack.encode(decoded) == record
        assert [len(part) for part in decoded[5:8]] == [changes, patches, 0]
        book.assert_same()

    write([], changes=16, patches=0)
    write([], changes=15, patches=1)  # the array of changes has a shorter head than that of 16
    write(["much longer than was thought " * 500] * 3, changes=15, patches=16)
    book.store.delete(rows[0])
    rows[0] = wide()
    book.store.add(rows[0], None, None)
    write([], changes=0, patches=15)


@pytest.mark.ledger("ENT-06")
def test_an_id_that_came_and_went_within_one_flush_is_not_given_again() -> None:
    book = Book()
    book.write_base()
    gone = Everything()
    book.store.add(gone, None, None)
    book.store.delete(gone)
    assert book.write_record() is not None
    book.assert_same()
    assert book.write_record() is None


values = st.integers(0, 255)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(2, 6), values), max_size=30))
def test_any_history_comes_back(steps: list[tuple[int, int, int]]) -> None:
    book = Book()
    book.write_base()
    for action, id, value in steps:
        entity = book.store.get(id)
        match action:
            case 0 if entity is None:
                book.store.add(Everything(a=value) if value % 2 else Ghost(), None, id)
            case 1 if entity is not None:
                book.store.delete(entity)
            case 2 if isinstance(entity, Everything):
                entity.a = value
            case 3 if isinstance(entity, Everything):
                entity.patch("data", value, bytes([value]))
            case 4 if isinstance(entity, Everything):
                book.store.set_owner(entity, ["ann", None][value % 2])
            case 5:
                book.write_record()
            case 6 if isinstance(entity, Everything):
                entity.data = bytes(value)
            case _:
                pass
    book.write_record()
    book.assert_same()


def grown() -> Schema[Any, Any]:
    class Everything(Entity):
        added: u8 = 42
        text: str = ""
        a: writable[u8] = 0
        tail: Json[list[int]] = [1]  # noqa: RUF012

    class New(Entity):
        pass

    class Board(Entity):
        moves: u32 = 0
        name: str = "fresh"

    return Schema(state=Board, private=Mine, entities=[New, Everything])


def plain() -> Schema[Any, Any]:
    class Everything(Entity):
        a: u8 = 0
        text: str = ""

    return Schema(state=Board, private=Mine, entities=[Everything])


@pytest.mark.ledger("MIG-01")
def test_fields_and_kinds_may_be_added_and_reordered() -> None:
    before, after = plain(), grown()
    book = Book(before)
    cls: Any = before.entities[0]
    book.store.add(cls(a=7, text="kept"), "ann", None)
    assert isinstance(book.store.state, Board)
    book.store.state.moves = 3
    book.write_base()
    entity: Any = next(iter(book.store))
    entity.a = 8
    book.write_record()
    saved = book.read(after)
    [back] = saved.entities
    assert (back.cls, back.id, back.owner) == (after.entities[1], 2, "ann")
    fields = dict(zip(("added", "text", "a", "tail"), back.values, strict=True))
    assert (fields["added"], fields["text"], fields["a"], fields["tail"].value) == (42, "kept", 8, [1])
    assert saved.state == [3, "fresh"]


@pytest.mark.ledger("MIG-03", "MIG-01")
@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: _schema(a=u16, text=str), "everything.a was saved as u8 and is u16 now"),
        (lambda: _schema(b=u8, text=str), "everything.a was saved as u8 and is gone"),
        (lambda: Schema(state=Board, private=Mine, entities=[Ghost]), "kind everything was saved"),
        (lambda: Schema(private=Mine, entities=plain().entities), "kind board was saved"),
        (
            lambda: Schema(private=Mine, entities=[*plain().entities, Board]),
            "board was saved as shared state",
        ),
    ],
)
def test_another_shape_is_refused_and_named(declare: Any, message: str) -> None:
    book = Book(plain())
    cls: Any = book.schema.entities[0]
    book.store.add(cls(), None, None)
    book.write_base()
    with pytest.raises(LayoutError, match=message):
        book.read(declare())


def _schema(**fields: Any) -> Schema[Any, Any]:
    # What a class body would say, with the fields of the test.
    namespace: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": "Everything",
        "__annotations__": fields,
    }
    meta: Any = type(Entity)
    cls = meta("Everything", (Entity,), namespace)
    return Schema(state=Board, private=Mine, entities=[cls])


def test_a_new_range_of_a_quantised_field_is_another_type() -> None:
    book = Book(_schema(x=Annotated[float, q8(0, 1)]))
    book.write_base()
    book.read(_schema(x=Annotated[float, q8(0, 1)]))
    with pytest.raises(LayoutError, match=r"everything\.x"):
        book.read(_schema(x=Annotated[float, q8(0, 2)]))


def test_fields_that_would_make_an_entity_too_large_are_refused() -> None:
    book = Book(_schema(data=bytes))
    cls: Any = book.schema.entities[0]
    book.store.add(cls(data=bytes(49_152)), None, None)
    book.write_base()

    class Everything(Entity):
        data: bytes
        more: str = "x" * 13_000

    with pytest.raises(LayoutError, match="over 61376"):
        book.read(Schema(state=Board, private=Mine, entities=[Everything]))


def test_damage_is_told_from_state() -> None:
    book = Book()
    book.store.add(Everything(text="x"), None, None)
    book.write_base()
    assert book.base is not None
    for base in (b"", book.base[:-3], b"\xc1", msgspec.msgpack.encode([2, [], 0, 2, [], [], []])):
        with pytest.raises(DamagedStateError):
            read(StoredRoom(base, []), SCHEMA)
    with pytest.raises(DamagedStateError):
        read(StoredRoom(book.base, [b"\x00"]), SCHEMA)
    with pytest.raises(DamagedStateError, match="no base"):
        read(StoredRoom(None, [b"x"]), SCHEMA)
    unknown = msgspec.msgpack.encode([0, 2, [99], [], [], [], [], [], []])
    with pytest.raises(DamagedStateError):
        read(StoredRoom(book.base, [unknown]), SCHEMA)


def test_bots_and_bans_come_back_in_their_order() -> None:
    book = Book()
    first, second = (SavedBot(f"bot:{n}", "racer", "", b"null", b"{}") for n in (1, 2))
    changed = SavedBot("bot:1", "racer", "Rival", b"[1]", b'{"pace":2}')
    totals = Totals(0, 2, {}, bots=BotsChange(3, [], [first, second]), bans=BansChange(["ann", "bob"], []))
    base = write_base(SCHEMA, totals, [])
    later = [
        Totals(1, 2, {}, bots=BotsChange(3, [], [changed]), bans=BansChange(["cy"], ["ann"])),
        Totals(2, 2, {}, bots=BotsChange(5, ["bot:2"], [SavedBot("bot:4", "pest", "", b"null", b"{}")])),
        Totals(3, 2, {}),
    ]
    records = [write_record(book.tracker.flush(version), each) for version, each in enumerate(later, 1)]
    assert records[2] is None
    saved = read(StoredRoom(base, [record for record in records if record is not None]), SCHEMA)
    assert [(bot.player, bot.name, bot.data) for bot in saved.bots] == [
        ("bot:1", "Rival", b'{"pace":2}'), ("bot:4", "", b"{}"),
    ]  # fmt: skip
    assert (saved.next_bot, saved.banned) == (5, ["bob", "cy"])


def test_what_was_saved_before_there_were_bots_and_bans_can_be_read() -> None:
    book = Book()
    book.write_base()
    assert book.base is not None
    record = write_record(book.tracker.flush(2), Totals(7, 9, {}, next_id_moved=True))
    assert record is not None
    older = [msgspec.msgpack.encode(msgspec.msgpack.decode(data)[:-2]) for data in (book.base, record)]
    saved = read(StoredRoom(older[0], older[1:]), SCHEMA)
    assert (saved.tick, saved.next_id, saved.bots, saved.next_bot, saved.banned) == (7, 9, [], 1, [])
