"""Records reach the shard once and in order, whatever breaks; see protocols.md, Write."""

from __future__ import annotations

import zlib
from collections import deque
from weakref import WeakKeyDictionary

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.outputs import BaseOut, RecordOut
from playhall_common.record_runs import pack_durable, read_run
from playhall_roomhost.write_stream import (
    MAX_PART_BYTES,
    MAX_ROOM_RECORDS,
    BaseNeeded,
    Deleted,
    Durable,
    Fenced,
    WriteStream,
)

UID = "01M8PKXT20EYZK751SZAHMR6GM"
OTHER = "01M8PKXT20EYZK751SZAHMR6GN"
Names = dict[int, tuple[str, int]]
NAMES: WeakKeyDictionary[WriteStream, Names] = WeakKeyDictionary()
"""What each stream's requests called its rooms."""
DURABLE, FENCED = pb.RoomAck.OUTCOME_DURABLE, pb.RoomAck.OUTCOME_FENCED
NEED_BASE, DELETED = pb.RoomAck.OUTCOME_NEED_BASE, pb.RoomAck.OUTCOME_DELETED


def record(version: int, data: bytes = b"r", alarm_ms: int | None = None) -> RecordOut:
    return RecordOut(version - 1, version, version * 10, data, alarm_ms)


def base(version: int, data: bytes = b"b", alarm_ms: int | None = None) -> BaseOut:
    return BaseOut(version, version * 10, data, alarm_ms)


def ack(
    version: int, outcome: pb.RoomAck.Outcome.ValueType = DURABLE, uid: str = UID, generation: int = 7
) -> pb.RoomAck:
    return pb.RoomAck(room_uid=uid, generation=generation, outcome=outcome, version=version)


def said(*acks: pb.RoomAck, hello: bool = False) -> pb.WriteResponse:
    return pb.WriteResponse(acks=acks, hello=hello)


def parts_of(request: pb.WriteRequest, names: Names) -> list[pb.RecordPart]:
    """All that a request writes, in order; what stands in its run as the part that it stands for."""
    names |= {
        room.number: (room.room_uid, room.generation) for room in (*request.hello.rooms, *request.rooms)
    }
    for number in request.ended:
        del names[number]
    parts = list(request.records)
    for number, prev, version, crc32, tick, data in read_run(request.run):
        uid, generation = names[number]
        parts.append(
            pb.RecordPart(
                room_uid=uid, generation=generation, prev=prev, version=version, tick=tick, data=data,
                last=True, crc32=crc32,
            )
        )  # fmt: skip
    return parts


def drain(stream: WriteStream) -> list[pb.RecordPart]:
    parts = []
    while (request := stream.next_request()) is not None:
        parts += parts_of(request, NAMES.setdefault(stream, {}))
    return parts


def connected(*rooms: str) -> WriteStream:
    """A stream whose hello was answered, and that was granted these rooms since."""
    stream = WriteStream("host")
    stream.connected(0.0)
    hello = stream.next_request()
    assert hello is not None
    assert hello.hello.host_id == "host"
    NAMES[stream] = {}
    stream.received(said(hello=True), 0.0)
    for uid in rooms or (UID,):
        stream.add(uid, 7)
    return stream


def reconnect(stream: WriteStream, *acks: pb.RoomAck) -> pb.WriteRequest:
    stream.disconnected()
    stream.connected(1.0)
    hello = stream.next_request()
    assert hello is not None
    NAMES[stream] = {}
    parts_of(hello, NAMES[stream])
    assert stream.next_request() is None, "nothing goes out before the hello is answered"
    stream.received(said(*acks, hello=True), 1.0)
    return hello


def versions(parts: list[pb.RecordPart]) -> list[int]:
    return [part.version for part in parts if part.last]


def test_hello_names_the_newest_epoch_that_is_known() -> None:
    stream = WriteStream("host")
    assert [stream.learn_epoch(epoch) for epoch in (4, 3, 4, 5)] == [True, False, False, True]
    stream.connected(0.0)
    hello = stream.next_request()
    assert hello is not None
    assert (hello.hello.host_id, hello.hello.map_epoch) == ("host", 5)


def test_a_record_goes_out_at_once_and_is_forgotten_when_it_is_durable() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    stream.record(UID, 7, record(2, b"abc", alarm_ms=5), 0.0)
    first, second = drain(stream)
    assert first.base
    assert (second.prev, second.version, second.tick, second.data) == (1, 2, 20, b"abc")
    assert (second.last, second.crc32, second.alarm_ms) == (True, zlib.crc32(b"abc"), 5)
    stream.received(said(ack(2)), 0.0)
    assert stream.take_events() == [Durable(UID, 7, 2)]
    assert stream.queued_bytes == 0


def test_rooms_have_numbers_for_as_long_as_they_are_there() -> None:
    stream = connected(UID, OTHER)
    for uid in (UID, OTHER):
        stream.base(uid, 7, base(1), 0.0)
        stream.record(uid, 7, record(2), 0.0)
    request = stream.next_request()
    assert request is not None
    numbers = {room.room_uid: room.number for room in request.rooms}
    assert set(numbers) == {UID, OTHER}
    drain(stream)
    stream.received(pb.WriteResponse(durable=pack_durable([(numbers[OTHER], 2), (99, 5)]) + b"odd"), 0.0)
    assert stream.take_events() == [Durable(OTHER, 7, 2)]
    stream.remove(OTHER, 7)
    stream.add(OTHER, 8)
    stream.base(OTHER, 8, base(1), 0.0)
    request = stream.next_request()
    assert request is not None
    assert list(request.ended) == [numbers[OTHER]]
    assert [room.generation for room in request.rooms] == [8]
    assert request.rooms[0].number not in numbers.values()
    stream.received(pb.WriteResponse(durable=pack_durable([(numbers[OTHER], 3)])), 0.0)
    assert stream.take_events() == []


def test_what_one_room_writes_leaves_in_its_order() -> None:
    stream = connected(UID, OTHER)
    stream.base(UID, 7, base(1), 0.0)
    stream.base(OTHER, 7, base(1), 0.0)
    drain(stream)
    stream.record(UID, 7, record(2), 0.0)
    stream.record(UID, 7, record(3, alarm_ms=9), 0.0)
    stream.record(UID, 7, record(4), 0.0)
    stream.record(OTHER, 7, record(2), 0.0)
    parts = drain(stream)
    assert [part.version for part in parts if part.room_uid == UID] == [2, 3, 4]
    assert [part.version for part in parts if part.room_uid == OTHER] == [2]


def test_after_a_break_what_is_not_durable_goes_out_again_in_order() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    for version in range(2, 6):
        stream.record(UID, 7, record(version), 0.0)
    drain(stream)
    hello = reconnect(stream, ack(3))
    assert [(room.room_uid, room.generation) for room in hello.hello.rooms] == [(UID, 7)]
    assert versions(drain(stream)) == [4, 5]
    assert stream.take_events() == [Durable(UID, 7, 3)]


def test_a_base_is_kept_until_it_is_certain_that_it_was_written() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    stream.record(UID, 7, record(2), 0.0)
    drain(stream)
    stream.received(said(ack(2)), 0.0)
    stream.record(UID, 7, record(3), 0.0)
    assert len(drain(stream)) == 1
    stream.base(UID, 7, base(3), 0.0)
    drain(stream)
    stream.received(said(ack(3)), 0.0)  # the record's
    reconnect(stream, ack(3))
    (again,) = drain(stream)
    assert (again.base, again.version) == (True, 3)
    stream.received(said(ack(3)), 0.0)
    assert stream.queued_bytes == 0


def test_large_items_go_in_parts_and_rooms_take_turns() -> None:
    stream = connected(UID, OTHER)
    data = bytes(range(256)) * 4096  # 1 MiB
    stream.base(UID, 7, base(1, data), 0.0)
    stream.base(OTHER, 7, base(1, b"small"), 0.0)
    parts = drain(stream)
    assert [part.room_uid for part in parts[:2]] == [UID, OTHER]
    mine = [part for part in parts if part.room_uid == UID]
    assert max(len(part.data) for part in mine) == MAX_PART_BYTES
    assert b"".join(part.data for part in mine) == data
    assert [part.last for part in mine] == [False] * 3 + [True]
    assert mine[-1].crc32 == zlib.crc32(data)


def test_a_part_that_broke_off_starts_again() -> None:
    stream = connected()
    stream.base(UID, 7, base(1, bytes(3 * MAX_PART_BYTES)), 0.0)
    assert stream.next_request() is not None
    reconnect(stream, ack(0))
    assert len(drain(stream)) == 3


def test_a_base_takes_the_place_of_what_was_not_sent_and_keeps_its_alarm() -> None:
    stream = WriteStream("host")
    stream.add(UID, 7)
    stream.base(UID, 7, base(1), 0.0)
    stream.record(UID, 7, record(2, alarm_ms=99), 0.0)
    stream.base(UID, 7, base(2), 0.0)
    stream.connected(0.0)
    stream.next_request()
    stream.received(said(ack(0), hello=True), 0.0)
    (part,) = drain(stream)
    assert (part.base, part.version, part.alarm_ms) == (True, 2, 99)


def test_a_gap_asks_for_a_base_once_and_drops_records_until_it_comes() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    drain(stream)
    stream.received(said(ack(1)), 0.0)
    stream.record(UID, 7, record(2), 0.0)
    drain(stream)
    stream.received(said(ack(0, NEED_BASE)), 0.0)
    stream.next_request()
    assert stream.take_events() == [Durable(UID, 7, 1), BaseNeeded(UID, 7)]
    stream.record(UID, 7, record(3, alarm_ms=4), 0.0)
    stream.received(said(ack(0, NEED_BASE)), 0.0)
    assert drain(stream) == []
    assert stream.take_events() == []
    stream.base(UID, 7, base(3), 0.0)
    (part,) = drain(stream)
    assert (part.base, part.alarm_ms) == (True, 4)


@pytest.mark.parametrize("stands_at", [0, 3])
def test_a_shard_that_lost_what_it_had_is_given_a_base(stands_at: int) -> None:
    stream = connected()
    stream.base(UID, 7, base(4), 0.0)
    drain(stream)
    stream.received(said(ack(4)), 0.0)
    reconnect(stream, ack(stands_at))
    stream.next_request()
    assert BaseNeeded(UID, 7) in stream.take_events()


def test_what_waits_is_bounded_and_comes_back_as_a_base() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    drain(stream)
    stream.received(said(ack(1)), 0.0)
    stream.disconnected()
    for version in range(2, MAX_ROOM_RECORDS + 10):
        stream.record(UID, 7, record(version), 0.0)
    assert stream.queued_bytes == 0
    reconnect(stream, ack(1))
    assert drain(stream) == []
    assert stream.take_events() == [Durable(UID, 7, 1), BaseNeeded(UID, 7)]


@pytest.mark.parametrize(("outcome", "event"), [(FENCED, Fenced), (DELETED, Deleted)])
def test_a_room_that_is_not_ours_sends_nothing_more(
    outcome: pb.RoomAck.Outcome.ValueType, event: type
) -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    stream.received(said(ack(0, outcome)), 0.0)
    assert stream.take_events() == [event(UID, 7)]
    stream.record(UID, 7, record(2), 0.0)
    assert drain(stream) == []
    assert stream.queued_bytes == 0


def test_acks_of_another_generation_mean_nothing() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    drain(stream)
    stream.received(said(ack(1, generation=6), ack(0, FENCED, generation=6)), 0.0)
    assert stream.take_events() == []
    stream.remove(UID, 6)
    assert stream.queued_bytes > 0


def test_heartbeats_name_the_ticks_that_no_record_told() -> None:
    stream = connected()
    stream.base(UID, 7, base(1), 0.0)
    drain(stream)
    stream.received(said(ack(1)), 0.0)

    def told(tick: int) -> list[int]:
        beat = stream.heartbeat([(UID, 7, tick)])
        assert beat is not None
        assert beat.heartbeat
        return [room.tick for room in beat.ticks]

    assert told(10) == []  # the base said so
    assert told(30) == [30]
    assert told(30) == []
    assert WriteStream("host").heartbeat([]) is None


def test_the_late_answer_of_a_stream_that_is_gone_verifies_nothing() -> None:
    """A process that was away says hello anew: what the shard said before may be untrue by now."""
    stream = WriteStream("host")
    stream.add(UID, 7)
    stream.connected(0.0)
    stream.next_request()
    stream.disconnected()
    stream.received(said(ack(3), hello=True), 9.0)
    assert not stream.answered
    stream.connected(9.0)
    assert not stream.answered
    stream.next_request()
    stream.received(said(ack(0, FENCED), hello=True), 9.1)
    assert stream.answered


def test_the_shard_is_heard_while_it_answers() -> None:
    stream = WriteStream("host")
    stream.connected(0.0)
    assert stream.heard_until <= 0.0
    stream.next_request()
    stream.received(said(hello=True), 1.0)
    assert stream.heard_until > 3.9
    assert stream.heard_until <= 4.0
    stream.received(said(), 5.0)
    assert stream.heard_until > 5.0
    stream.disconnected()
    assert stream.heard_until <= 5.0


def test_a_newer_token_goes_with_the_next_request() -> None:
    stream = connected()
    stream.refresh_token("new")
    request = stream.next_request()
    assert request is not None
    assert request.host_token == "new"
    assert stream.next_request() is None


class Replay(RuleBasedStateMachine):
    """A room that flushes, a stream that breaks at any moment, a shard that commits when it likes.

    The shard goes by its rules: it takes `prev == last` or a base, acknowledges after the commit, and
    keeps what was committed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stream = WriteStream("host")
        self.stream.add(UID, 7)
        self.version = 0
        self.names: Names = {}
        self.on_wire: deque[pb.WriteRequest] = deque()
        self.answers: deque[pb.WriteResponse] = deque()
        self.up = False
        self.queued: list[tuple[int, bool]] = []
        self.last = 0  # what the shard has queued or committed
        self.committed = 0
        self.has_base = False
        self.durable = 0

    def _events(self) -> None:
        for event in self.stream.take_events():
            if isinstance(event, Durable):
                assert event.version > self.durable
                self.durable = event.version
            elif isinstance(event, BaseNeeded) and self.version:
                self.stream.base(UID, 7, base(self.version), 0.0)

    @rule(with_base=st.booleans())
    def flush(self, with_base: bool) -> None:
        self.version += 1
        if self.version == 1:
            self.stream.base(UID, 7, base(1), 0.0)
            return
        self.stream.record(UID, 7, record(self.version), 0.0)
        if with_base:
            self.stream.base(UID, 7, base(self.version), 0.0)

    @precondition(lambda self: not self.up)
    @rule()
    def connect(self) -> None:
        self.up = True
        self.stream.connected(0.0)

    @precondition(lambda self: self.up)
    @rule()
    def break_off(self) -> None:
        """What is on the way is lost, and so is what the shard had queued but not committed."""
        self.up = False
        self.names.clear()
        self.on_wire.clear()
        self.answers.clear()
        self.queued.clear()
        self.last = self.committed
        self.stream.disconnected()

    @precondition(lambda self: self.up)
    @rule()
    def send(self) -> None:
        request = self.stream.next_request()
        self._events()
        if request is not None:
            self.on_wire.append(request)

    @precondition(lambda self: self.on_wire)
    @rule()
    def receive(self) -> None:
        request = self.on_wire.popleft()
        if request.HasField("hello"):
            self.answers.append(said(ack(self.committed), hello=True))
        for part in parts_of(request, self.names):
            if part.base:
                assert part.version >= self.last, "a base never goes back"
                self.queued.append((part.version, True))
                self.last = part.version
            elif part.version <= self.last:
                self.queued.append((self.last, False))
            elif part.prev == self.last and (self.has_base or any(is_base for _, is_base in self.queued)):
                self.queued.append((part.version, False))
                self.last = part.version
            else:
                self.answers.append(said(ack(self.committed, NEED_BASE)))

    @precondition(lambda self: self.queued)
    @rule()
    def commit(self) -> None:
        self.committed = self.last
        self.has_base = self.has_base or any(is_base for _, is_base in self.queued)
        self.queued.clear()
        ((number, _),) = self.names.items()
        self.answers.append(pb.WriteResponse(durable=pack_durable([(number, self.committed)])))

    @precondition(lambda self: self.answers)
    @rule()
    def answer(self) -> None:
        self.stream.received(self.answers.popleft(), 0.0)
        self._events()

    @invariant()
    def nothing_counts_as_durable_that_was_not_committed(self) -> None:
        assert self.durable <= self.committed <= self.version

    def teardown(self) -> None:
        """Left alone, everything becomes durable."""
        if not self.up:
            self.connect()
        for _ in range(200):
            self.send()
            while self.on_wire:
                self.receive()
            if self.queued:
                self.commit()
            while self.answers:
                self.answer()
        assert self.durable == self.version


TestReplay = Replay.TestCase
TestReplay.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
