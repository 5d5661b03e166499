"""RoomCore.inspect: all that is in a room, and nothing changed by looking."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import pytest

from playhall.engine.core import RoomCore
from playhall.engine.frames import Call as CallFrame
from playhall.engine.frames import Reply, encode_client, encode_payload, encode_server
from playhall.engine.inspecting import MAX_PAGE, Page
from playhall.engine.outputs import RoomIdentity
from playhall.engine.recording import MAX_BYTES, MAX_LINES, MAX_MESSAGES, Recorder
from playhall.room import (
    Bot,
    Call,
    CallRejected,
    Connection,
    Entity,
    Json,
    Room,
    Schema,
    f64,
    owner_only,
    u8,
    u32,
    writable,
)
from tests.support.rooms import START, Driver, TestClient


class Board(Entity):
    moves: u32 = 0
    best: f64 = math.nan


class Purse(Entity):
    coins: u32 = 9


class Pawn(Entity):
    x: writable[u8] = 0
    plan: owner_only[str] = ""
    tags: Json[list[str]] = []  # noqa: RUF012 - copied for each entity


class Card(Entity, hidden=True):
    face: str = "ace"
    art: bytes = b""


class Buy(Call[int]):
    price: int


class Robot(Bot):
    pace: int = 2

    def tick(self, room: Any) -> None:
        room.clock.now += 0.001


class Ticking:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


class Hall(Room[Board, Purse]):
    schema = Schema(state=Board, private=Purse, entities=[Pawn, Card], calls=[Buy])
    bot_kinds = (Robot,)
    clock: ClassVar[Ticking]

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Pawn(), owner=conn.player)

    def on_message(self, conn: Connection, message: Any) -> None:
        self.clock.now += 0.002
        self.broadcast({"echo": message})

    def on_write(self, conn: Connection, entity: Entity, values: dict[str, Any]) -> dict[str, Any] | None:
        self.clock.now += 0.004
        return values

    def on_tick(self, dt: float) -> None:
        self.clock.now += 0.008

    def on_request(self, message: Any) -> Any:
        if message == "no":
            raise CallRejected("not now")
        return {"got": message}

    @Buy.handler
    def buy(self, conn: Connection, ask: Buy) -> int:
        self.clock.now += 0.016
        if ask.price > 5:
            raise CallRejected("not enough coins")
        return 1


@pytest.fixture
def hall() -> Driver:
    clock = Hall.clock = Ticking()
    return Driver(Hall, clock=clock)


def look(driver: Driver, page: Page | None = None) -> dict[str, Any]:
    """What is shown, by way of strict JSON."""
    shown = driver.core.inspect() if page is None else driver.core.inspect(page)
    read: dict[str, Any] = json.loads(json.dumps(shown, allow_nan=False))
    return read


def call(driver: Driver, client: TestClient, number: int, **arguments: Any) -> None:
    driver.receive(client, encode_client(CallFrame(number, None, "buy", arguments)))
    driver.tick()


def test_who_and_what_is_in_the_room(hall: Driver) -> None:
    hall.join("ann", meta={"name": "Ann"})
    hall.tick(2)
    room = look(hall)
    assert (room["project"], room["id"], room["type"], room["status"]) == (
        "games", "lobby", "default", "active",
    )  # fmt: skip
    assert (room["tick"], room["tick_rate"], room["generation"]) == (2, 20, 1)
    assert room["version"] == hall.core.version == room["durable"]
    [ann] = room["connections"]
    assert (ann["id"], ann["player"], ann["joined"], ann["meta"]) == ("c1", "ann", True, {"name": "Ann"})
    assert ann["version"] == room["version"]
    assert ann["sees"] == 4  # shared and private state, a pawn, and a presence entry
    assert ann["credit"] > 0
    assert room["presence"] == [{"player": "ann", "name": "Ann", "status": None, "connected": True}]
    assert room["state"] == {"moves": 0, "best": "NaN"}
    assert room["private"] == {"total": 1, "items": [{"player": "ann", "fields": {"coins": 9}}]}


def test_one_who_joins_and_one_who_reads_nothing_are_shown_as_such(hall: Driver) -> None:
    hall.join("ann", credit=1)
    hall.room.broadcast("something to wait")
    hall.tick()
    [ann] = look(hall)["connections"]
    assert ann["credit"] < 0
    assert ann["waiting_bytes"] > 0
    assert ann["stalled_s"] == pytest.approx(0.05)


@pytest.mark.ledger("STATE-13")
def test_hidden_entities_are_shown_and_marked(hall: Driver) -> None:
    hall.join("ann")
    hall.room.entities.add(Card(face="queen", art=bytes(100)))
    hall.tick()
    items = look(hall)["entities"]["items"]
    assert [(item["kind"], item["owner"], item["hidden"]) for item in items] == [
        ("pawn", "ann", False),
        ("card", None, True),
    ]
    assert items[1]["fields"] == {"face": "queen", "art": {"bytes": 100, "hex": "00" * 32}}
    kinds = {kind["name"]: kind for kind in look(hall)["kinds"]}
    assert (kinds["card"]["hidden"], kinds["card"]["count"]) == (True, 1)
    pawn = {field["name"]: (field["writable"], field["owner_only"]) for field in kinds["pawn"]["fields"]}
    assert pawn == {"x": (True, False), "plan": (False, True), "tags": (False, False)}


def test_entities_come_by_kind_owner_and_id_a_page_at_a_time(hall: Driver) -> None:
    hall.join("ann")
    cards = [hall.room.entities.add(Card(face=str(n))) for n in range(7)]

    def ids(page: Page) -> list[int]:
        return [item["id"] for item in look(hall, page)["entities"]["items"]]

    numbers = [card.id for card in cards]
    assert ids(Page(kind="card")) == numbers
    assert ids(Page(owner="ann")) == [2]
    assert ids(Page(owner="ann", kind="card")) == []
    assert ids(Page(owner="")) == numbers
    assert ids(Page(id=numbers[3])) == [numbers[3]]
    assert ids(Page(id=9_999)) == []
    assert ids(Page(kind="no such kind")) == []
    assert ids(Page(kind="card", offset=2, limit=3)) == numbers[2:5]
    first = look(hall, Page(kind="card", limit=5))["entities"]
    assert (first["total"], first["next_offset"]) == (7, 5)
    assert look(hall, Page(kind="card", offset=5, limit=5))["entities"]["next_offset"] is None


def test_a_page_is_bounded_however_large_the_room(hall: Driver) -> None:
    for _ in range(MAX_PAGE + 10):
        hall.room.entities.add(Card(face="\0" * 16_000))
    entities = look(hall, Page(limit=100_000))["entities"]
    assert entities["total"] == MAX_PAGE + 10
    assert 0 < len(entities["items"]) < MAX_PAGE
    assert entities["next_offset"] == len(entities["items"])
    assert len(json.dumps(entities)) < 1_000_000


def test_looking_changes_nothing(hall: Driver) -> None:
    client = hall.join("ann")
    hall.send(client, {"n": 1})
    hall.tick()
    hall.room.state.moves = 5
    before = (hall.core.version, hall.core.next_timer(), hall.room.private_players(), hall.core.dirty)
    assert look(hall) == look(hall)
    assert hall.core.take_outputs() == []
    after = (hall.core.version, hall.core.next_timer(), hall.room.private_players(), hall.core.dirty)
    assert before == after
    hall.tick()
    assert hall.core.version == before[0] + 1
    hall.assert_in_sync(client)


def test_a_room_that_has_not_started_and_one_that_stopped_can_be_looked_at(hall: Driver) -> None:
    core = RoomCore(Hall, identity=RoomIdentity("games", "new", "uid-9"), generation=1, clock=hall.room.clock)
    assert core.inspect()["status"] == "starting"
    hall.join("ann")
    hall.core.hibernate(START._replace(mono=START.mono + 1))
    hall.pump()
    assert look(hall)["status"] == "closed"


def test_bots_and_bans(hall: Driver) -> None:
    hall.room.bots.add(Robot(pace=3), name="Robbie")
    hall.room.ban("mallory")
    hall.tick()
    room = look(hall)
    assert room["bots"] == [
        {"player": "bot:1", "kind": "robot", "name": "Robbie", "status": None, "fields": {"pace": 3}}
    ]
    assert room["bans"] == {"total": 1, "items": ["mallory"]}


def test_messages_calls_and_writes_in_both_directions(hall: Driver) -> None:
    ann, bob = hall.join("ann"), hall.join("bob")
    hall.tick()
    hall.send(ann, {"say": "<b>"})
    hall.send_unreliable(bob, "psst")
    hall.write(ann, 2, x=7)
    call(hall, ann, 1, price=3)
    call(hall, ann, 2, price=30)
    lines = [
        (line["direction"], line["player"], line["others"], line["kind"], line.get("content"))
        for line in look(hall)["messages"]
    ]
    assert lines == [
        ("in", "ann", 0, "message", {"say": "<b>"}),
        ("out", "ann", 1, "message", {"echo": {"say": "<b>"}}),
        ("in", "bob", 0, "unreliable", "psst"),
        ("out", "ann", 1, "message", {"echo": "psst"}),
        ("in", "ann", 0, "write", [{"id": 2, "kind": "pawn", "fields": {"x": 7}}]),
        ("in", "ann", 0, "call", {"price": 3}),
        ("in", "ann", 0, "call", {"price": 30}),
    ]


def test_a_call_has_its_reply_and_how_long_it_took(hall: Driver) -> None:
    ann = hall.join("ann")
    call(hall, ann, 1, price=3)
    call(hall, ann, 2, price=30)
    taken, refused = look(hall)["messages"]
    assert (taken["name"], taken["call"], refused["name"], refused["call"]) == ("buy", 1, "buy", 2)
    assert taken["bytes"] > 10
    assert taken["reply"]["content"] == 1
    assert taken["reply"]["took_ms"] == pytest.approx(16)
    assert "error" not in taken["reply"]
    assert refused["reply"]["error"]["code"] == 422
    assert refused["reply"]["error"]["text"].endswith("not enough coins")
    assert refused["at"] <= refused["reply"]["at"] <= hall.now.wall


def test_a_call_that_waits_has_no_reply_yet() -> None:
    clock = Ticking()
    recorder = Recorder(Hall.schema, clock)
    recorder.received("ann", encode_client(CallFrame(1, None, "buy", {"price": 1})), 10.0, 3)
    [waiting] = recorder.messages()
    assert waiting["reply"] is None
    clock.now += 0.25
    reply = encode_server(Reply(1, encode_payload("ok")))
    recorder.sent(["ann"], reply, 10.25, 8)
    [answered] = recorder.messages()
    assert {**answered, "reply": None} == waiting
    assert answered["reply"] == {
        "at": 10.25, "tick": 8, "bytes": len(reply), "took_ms": 250, "content": "ok",
    }  # fmt: skip


@pytest.mark.ledger("DEV-01")
def test_what_is_sent_all_the_time_pushes_out_no_calls_and_no_writes(hall: Driver) -> None:
    ann = hall.join("ann")
    hall.tick()
    hall.write(ann, 2, x=7)
    call(hall, ann, 1, price=3)
    for n in range(MAX_MESSAGES):
        hall.send(ann, n)
    for number in range(2, MAX_MESSAGES + 2):
        call(hall, ann, number, price=1)
    kept = look(hall)["messages"]
    of = {kind: [line for line in kept if line["kind"] == kind] for kind in ("message", "call", "write")}
    assert len(of["message"]) == len(of["call"]) == MAX_MESSAGES
    assert of["write"][0]["content"][0]["fields"] == {"x": 7}
    assert [line["call"] for line in of["call"]] == list(range(2, MAX_MESSAGES + 2))
    assert all(line["reply"]["content"] == 1 for line in of["call"])
    numbers = [line["number"] for line in kept]
    assert numbers == sorted(numbers)


def test_a_reply_whose_call_is_kept_no_more_stands_alone() -> None:
    clock = Ticking()
    recorder = Recorder(Hall.schema, clock)
    frame = encode_client(CallFrame(7, None, "buy", {"price": 1}))
    for player in ("ann", *(f"p{n}" for n in range(MAX_MESSAGES))):
        recorder.received(player, frame, 0.0, 0)
    recorder.sent(["ann"], encode_server(Reply(7, encode_payload(5))), 0.0, 0)
    *calls, alone = recorder.messages()
    assert (alone["kind"], alone["player"], alone["call"], alone["content"]) == ("reply", "ann", 7, 5)
    assert len(calls) == MAX_MESSAGES - 1
    assert all(line["reply"] is None for line in calls)


def test_requests_of_a_backend_and_their_answers(hall: Driver) -> None:
    for token, message in ((7, {"n": 1}), (8, "no")):
        assert hall.core.request(token, message, hall.now)
        hall.pump()
    asked, refused = look(hall)["messages"]
    assert (asked["direction"], asked["player"], asked["kind"], asked["content"], asked["bytes"]) == (
        "in", "", "request", {"n": 1}, 7,
    )  # fmt: skip
    assert (asked["call"], asked["reply"]["content"]) == (7, {"got": {"n": 1}})
    assert refused["reply"]["error"]["code"] == 422
    assert refused["reply"]["error"]["text"].endswith("not now")


@pytest.mark.ledger("DEV-01")
def test_the_last_200_messages_are_kept(hall: Driver) -> None:
    ann = hall.join("ann")
    for n in range(200):
        hall.send(ann, n)
    messages = look(hall)["messages"]
    assert len(messages) == 200
    assert messages[-1]["content"] == {"echo": 199}
    assert [line["number"] for line in messages] == list(range(201, 401))


def test_large_messages_are_kept_within_bytes_and_shown_cut(hall: Driver) -> None:
    ann = hall.join("ann")
    for _ in range(40):
        hall.send(ann, "x" * 60_000)
    messages = look(hall)["messages"]
    assert sum(line["bytes"] for line in messages) <= MAX_BYTES
    assert messages[0]["content"]["size"] > 60_000
    assert len(json.dumps(messages)) < 60_000


def test_the_last_lines_of_the_log(hall: Driver) -> None:
    for n in range(MAX_LINES + 5):
        hall.room.log.info("line %d", n)
        hall.pump()
    lines = look(hall)["log"]
    assert len(lines) == MAX_LINES
    assert (lines[-1]["message"], lines[-1]["level"], lines[-1]["event"]) == (
        f"line {MAX_LINES + 4}", "info", "room.log",
    )  # fmt: skip


@pytest.mark.ledger("BOT-11")
def test_the_profile_has_a_row_for_each_hook_and_each_part_of_a_tick(hall: Driver) -> None:
    ann = hall.join("ann")
    hall.room.bots.add(Robot(), name="Robbie")
    hall.tick()
    hall.send(ann, "hello")
    hall.write(ann, 2, x=7)
    call(hall, ann, 1, price=3)
    hall.room.clock.now += 1
    [second] = look(hall)["profile"]
    rows = {name: times["max_us"] for name, times in second["rows"].items()}
    assert second["ago_s"] == 1
    expected = {
        "on_message": 2_000, "on_write": 4_000, "on_tick": 8_000, "bots": 1_000, "call buy": 16_000,
        "owner writes": 0, "flush": 0, "on_join": 0, "tick": 13_000,
    }  # fmt: skip
    assert {name: rows[name] for name in expected} == pytest.approx(expected)
    assert second["rows"]["on_tick"]["count"] == second["rows"]["tick"]["count"] == 2
    assert look(hall)["last_tick"]["max_us"] == pytest.approx(13_000)
    # Hooks that the room leaves as they are, and its making, are not its author's.
    assert rows.keys() <= expected.keys() | {"interest"}
    minute = look(hall)["minute"]
    assert minute["seconds"] == 1
    assert minute["rows"].keys() == rows.keys()
    assert minute["rows"]["on_tick"]["total_us"] == pytest.approx(16_000)


def run_for(hall: Driver, seconds: int, *, ticks: int) -> None:
    """Let seconds pass that have so many ticks each."""
    for _ in range(seconds):
        begun = float(int(hall.room.clock.now))
        for n in range(ticks):
            hall.room.clock.now = max(hall.room.clock.now, begun + n / ticks)
            hall.tick()
        hall.room.clock.now = begun + 1


def test_a_room_that_keeps_its_tick_rate_is_not_slow(hall: Driver) -> None:
    assert (look(hall)["ticks_per_s"], look(hall)["slow"]) == (None, None)
    run_for(hall, 7, ticks=20)
    assert (look(hall)["ticks_per_s"], look(hall)["slow"]) == (20, None)


def test_a_room_that_does_not_keep_it_says_what_takes_the_time() -> None:
    class Slow(Hall):
        def on_tick(self, dt: float) -> None:
            self.clock.now += 0.133

    Hall.clock = Ticking()
    hall = Driver(Slow, clock=Hall.clock)
    run_for(hall, 7, ticks=7)
    room = look(hall)
    assert room["ticks_per_s"] == 7
    assert room["slow"] == {"row": "on_tick", "takes_us": pytest.approx(133_000)}
    assert hall.core.summary()["slow"]["row"] == "on_tick"


def test_a_room_that_others_hold_up_has_no_row_to_blame(hall: Driver) -> None:
    run_for(hall, 7, ticks=7)
    assert look(hall)["slow"] == {"row": None, "takes_us": pytest.approx(8_000)}


def test_what_a_wake_reads_is_told_as_base_and_records(hall: Driver) -> None:
    hall.tick()
    based = look(hall)
    assert (based["base_bytes"] > 0, based["record_bytes"]) == (True, 0)
    hall.room.state.moves += 1
    hall.tick()
    assert look(hall)["base_bytes"] == based["base_bytes"]
    assert look(hall)["record_bytes"] > 0


def test_without_a_clock_nothing_is_recorded(hall: Driver) -> None:
    plain = Driver(Hall)
    plain.send(plain.join("ann"), "hello")
    plain.tick()
    room = look(plain)
    assert (room["messages"], room["log"], room["profile"], room["last_tick"]) == ([], [], [], None)
    assert (room["minute"], room["ticks_per_s"], room["slow"]) == ({"seconds": 0, "rows": {}}, None, None)
    assert room["entity_count"] == 1
