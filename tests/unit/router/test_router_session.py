"""A session: what its connection says is carried out, what its room says is handed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall_router.attach import Attachment, Link
from playhall_router.attach_stream import AttachStream
from playhall_router.connection import State
from playhall_router.outbound import HARD_BYTES, STALL_S
from playhall_router.session import Session
from playhall_router.tokens import Identity
from playhall_router.uplink import MAX_BYTES
from playhall_router.wake import Route
from tests.support.link_frames import down_frames, frames_up

ROUTE = Route(7, "host-a", "a:1")
HELLO = frames.Hello(1, "dots", "main", "", "", bytes(16), b"s" * 16, 3, "test 1")
NOTHING = frames.Resume(0, 0, 0, full=False, held=())


@dataclass
class FakeWire:
    """A transport that keeps what goes out, and drains when a test says so."""

    address: str = "203.0.113.9"
    origin: str = ""
    sent: list[bytes] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)
    in_process: int = 0
    in_kernel: int = 0
    asked: int = 0
    """How often for what is in the kernel."""

    def write(self, frame: bytes) -> int:
        self.sent.append(frame)
        return self.in_process

    def close(self, code: int, reason: str) -> None:
        self.closes.append((code, reason))

    def buffered(self) -> int:
        return self.in_process

    def unsent(self) -> int:
        self.asked += 1
        return self.in_kernel


class FakeStream:
    """An attachment without a stream."""

    def __init__(self) -> None:
        self.attachment = Attachment("host-a", 0.0)
        self.broken = False
        self.told = 0
        """How often it was told that a client drained."""

    def drained(self) -> None:
        self.told += 1

    def join(self, *arguments: Any) -> Link:
        return self.attachment.join(*arguments)

    def blame(self, link: Link) -> Link | None:
        return self.attachment.blame(link)

    def leave(self, link: Link, clean: bool) -> None:
        self.attachment.leave(link, clean)


class Stand:
    """The owner of one session."""

    def __init__(self, stream: FakeStream | None = None) -> None:
        self.stream = stream or FakeStream()
        self.wire = FakeWire()
        self.route: Route | None = ROUTE
        self.calls: list[str] = []
        self.session = Session(self, self.wire, "c1", now=0.0, connected_at_ms=5)

    def admit(self, session: Session, hello: frames.Hello) -> None:
        session.connection.authenticated(Identity("ann", b"", ""))
        session.placed_in("room", "default", 0.0)

    def wants(self, session: Session) -> None:
        self.calls.append("wants")
        if self.route is not None:
            session.attach(0.0)

    def stream_for(self, session: Session) -> tuple[AttachStream, Route] | None:
        return (cast(AttachStream, self.stream), self.route) if self.route is not None else None

    def joined(self, session: Session) -> None:
        self.calls.append("joined")

    def slept(self, session: Session, route: Route) -> None:
        self.calls.append("slept")

    def slow(self, session: Session) -> None:
        self.calls.append("slow")

    def gone(self, session: Session) -> None:
        self.calls.append("gone")

    def send(self, *sent: Any, now: float = 0.0) -> None:
        for frame in sent:
            self.session.received(frame if isinstance(frame, bytes) else frames.encode_client(frame), now)

    def hear(self, **fields: Any) -> None:
        link = self.session.link
        assert link is not None
        down = pb.Down(links=[link.number], generation=7, **fields)
        self.stream.attachment.received(pb.AttachResponse(items=[down]), 0.0)

    def hear_frame(self, frame: bytes, *, unreliable: bool = False) -> None:
        link = self.session.link
        assert link is not None
        down = down_frames([link.number], 7, frame, unreliable=unreliable)
        self.stream.attachment.received(pb.AttachResponse(items=[down]), 0.0)

    def ups(self) -> list[pb.Up]:
        batch = self.stream.attachment.batch(0.0)
        return list(batch.items) if batch is not None else []

    def come_in(self) -> None:
        self.send(HELLO, NOTHING)
        self.hear(joined=pb.Joined(room_no=1, version=1, tick=9, tick_rate=20))
        assert self.session.connection.state is State.JOINED


@pytest.fixture
def stand() -> Stand:
    """With its session in the room."""
    stand = Stand()
    welcome = pb.AttachWelcome(host_id="host-a")
    stand.stream.attachment.received(pb.AttachResponse(welcome=welcome), 0.0)
    stand.come_in()
    return stand


def test_a_session_joins_with_what_the_client_said(stand: Stand) -> None:
    (up,) = stand.ups()
    assert (up.join.player, up.join.session, up.join.attempt) == ("ann", b"s" * 16, 3)
    assert (up.join.connected_at_ms, up.join.connection_id, up.join.credit_bytes) == (5, "c1", 32_768)
    assert isinstance(frames.decode_server(stand.wire.sent[0]), frames.Welcome)
    assert stand.calls == ["wants", "wants", "joined"]


def test_frames_pass_both_ways(stand: Stand) -> None:
    stand.ups()
    message = frames.encode_client(frames.Message("up"))
    stand.send(message)
    assert [frame for _, frame in frames_up(stand.ups())] == [message]
    stand.hear_frame(b'\x05\x00"down"')
    assert stand.wire.sent[-1] == b'\x05\x00"down"'


def test_unreliable_frames_are_held_while_something_waits_and_gone_after_a_loss(stand: Stand) -> None:
    stand.wire.in_kernel = 50_000
    stand.hear_frame(b"\x06\x00one", unreliable=True)
    assert stand.calls[-1] == "slow"
    assert len(stand.wire.sent) == 1
    assert stand.session.poll(1.0)
    stand.wire.in_kernel = 0
    stand.session.poll(2.0)
    assert stand.wire.sent[-1] == b"\x06\x00one"
    stand.hear_frame(b"\x05\x00" + bytes(50_000))
    stand.wire.in_kernel = 50_000
    stand.hear_frame(b"\x06\x00two", unreliable=True)
    stand.route = None
    stand.session.lost(3.0)
    stand.wire.in_kernel = 0
    stand.session.poll(4.0)
    assert frames.decode_server(stand.wire.sent[-1]) == frames.Reset(1, CloseCode.ROOM_MOVED)
    assert stand.session.dropped == 1


def test_the_kernel_is_asked_only_when_it_may_hold_too_much(stand: Stand) -> None:
    stand.hear_frame(b"\x06\x00" + bytes(1000), unreliable=True)
    asked = stand.wire.asked
    for _ in range(3):
        stand.hear_frame(b"\x06\x00" + bytes(1000), unreliable=True)
        stand.session.timer(1.0)
    assert stand.wire.asked == asked
    stand.hear_frame(b"\x06\x00" + bytes(1000), unreliable=True)
    stand.hear_frame(b"\x06\x00" + bytes(1000), unreliable=True)
    assert stand.wire.asked == asked + 1


@pytest.mark.ledger("CODE-06")
def test_a_client_over_the_hard_bound_is_closed_and_the_room_told(stand: Stand) -> None:
    stand.ups()
    stand.wire.in_process = HARD_BYTES
    stand.hear_frame(b"\x05\x00the one behind which so much waits")
    assert stand.wire.closes == []
    stand.hear_frame(b"\x05\x00more")
    assert stand.wire.closes[0][0] == CloseCode.LIMIT_EXCEEDED
    assert [up.WhichOneof("control") for up in stand.ups()] == ["leave"]
    assert stand.calls[-1] == "gone"


def test_a_client_that_pings_and_never_reads_is_closed(stand: Stand) -> None:
    stand.wire.in_process = HARD_BYTES + 1
    stand.send(frames.Ping(1))
    assert stand.wire.closes[0][0] == CloseCode.LIMIT_EXCEEDED


def test_a_client_that_drains_nothing_for_fifteen_seconds_is_closed(stand: Stand) -> None:
    stand.wire.in_process = 5000
    stand.hear_frame(b"\x05" + bytes(6000))
    stand.session.timer(0.0)
    stand.send(frames.Ping(1), now=STALL_S - 1)
    stand.session.timer(STALL_S - 0.1)
    assert stand.wire.closes == []
    stand.session.timer(STALL_S)
    assert stand.wire.closes == [(CloseCode.LIMIT_EXCEEDED, "nothing was read for 15 s")]


def test_a_slow_client_gets_its_credit_as_it_reads(stand: Stand) -> None:
    """It has no more credit than is on its way: nothing else would make the router look again."""
    part = b"\x05\x00" + bytes(60_000)
    stand.wire.in_process = len(part)
    stand.hear_frame(part)
    assert "slow" in stand.calls
    reports: list[int] = []
    for left in (45_000, 40_000, 20_000, 0):
        stand.wire.in_process = left
        stand.session.poll(1.0)
        batch = stand.stream.attachment.batch(1.0)
        reports += batch.drained_bytes if batch is not None else []
    assert reports == [len(part) - 40_000, len(part) - 20_000, len(part)]
    assert stand.stream.told == 3


def test_one_who_floods_a_host_that_reads_nothing_is_closed_and_nobody_else(stand: Stand) -> None:
    flooder = Stand(stand.stream)
    flooder.come_in()
    stand.ups()
    small, large = frames.encode_client(frames.Message("hi")), b"\x05" + bytes(65_000)
    for number in range(1, 101):
        stand.send(small, now=number)
        flooder.send(large, now=number)
        assert stand.wire.closes == []
        assert stand.stream.attachment.uplink.size <= MAX_BYTES
    assert flooder.wire.closes == [(CloseCode.LIMIT_EXCEEDED, "the room host does not keep up")]
    queued = []
    while ups := stand.ups():
        queued += [frame for _, frame in frames_up(ups)]
    assert queued == [small] * 100


def test_who_was_in_is_asked_in_before_newcomers(stand: Stand) -> None:
    early, late = Stand().session, Session(Stand(), FakeWire(), "c2", now=9.0, connected_at_ms=9)
    stand.route = None
    stand.session.lost(10.0)
    assert sorted([late, early, stand.session], key=lambda each: each.rank) == [stand.session, early, late]


def test_frames_of_a_lost_room_reach_nobody(stand: Stand) -> None:
    link = stand.session.link
    assert link is not None
    stand.route = None
    stand.session.lost(1.0)
    sent = len(stand.wire.sent)
    down = down_frames([link.number], 7, b"\x05\x00late")
    stand.stream.attachment.received(pb.AttachResponse(items=[down]), 1.0)
    assert len(stand.wire.sent) == sent
    assert [up.WhichOneof("control") for up in stand.ups()] == ["join", "leave"]


def test_a_room_that_sleeps_is_left_and_woken_by_a_message(stand: Stand) -> None:
    stand.hear(asleep=pb.Asleep(version=4))
    assert stand.calls[-1] == "slept"
    assert stand.session.link is None
    stand.route = Route(8, "host-a", "a:1")
    stand.send(frames.Message("wake up"))
    assert stand.session.route == stand.route


def test_a_close_of_the_rooms_is_final(stand: Stand) -> None:
    stand.hear(close=pb.Close(code=4006, reason="out"))
    assert stand.wire.closes == [(4006, "out")]
    assert stand.session.close_code == 4006
    stand.session.disconnected(1.0)
    stand.session.timer(99.0)
    assert stand.calls.count("gone") == 1
