"""Both ends of Attach, told anything at all: a router by a room host, which runs tenants' code, and a room
host by a router.

The router's end is its real sessions on transports that keep what goes out. Whatever a host says, a client
gets only frames that a room may send, from the generation it is in, and a close only with a code that exists;
a client goes on being served; and the router never raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine import frames
from playhall.engine.outputs import JoinRequest
from playhall.engine.packing import Group, pack_down, pack_up, read_down, read_up
from playhall.engine.wire import VARINT53_MAX
from playhall_roomhost.join import read_join
from playhall_router.attach import Attachment, Link
from playhall_router.attach_stream import AttachStream
from playhall_router.connection import State
from playhall_router.limits import ROOM_FRAMES
from playhall_router.session import Session
from playhall_router.tokens import Identity
from playhall_router.wake import Route

GENERATION = 7
HELLO = frames.Hello(1, "dots", "main", "", "", bytes(16), b"s" * 16, 3, "test 1")
NOTHING = frames.Resume(0, 0, 0, full=False, held=())
CLIENTS = 3


@dataclass
class Wire:
    """A transport that keeps what goes out, and drains at once."""

    address: str = "203.0.113.9"
    origin: str = ""
    sent: list[bytes] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)

    def write(self, frame: bytes) -> int:
        self.sent.append(frame)
        return 0

    def close(self, code: int, reason: str) -> None:
        self.closes.append((code, reason))

    def buffered(self) -> int:
        return 0

    def unsent(self) -> int:
        return 0


class Stream:
    """An attachment without a stream."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self.broken = False

    def drained(self) -> None:
        """Nothing waits for that here."""

    def join(self, *arguments: Any) -> Link:
        return self.attachment.join(*arguments)

    def blame(self, link: Link) -> Link | None:
        return self.attachment.blame(link)

    def leave(self, link: Link, clean: bool) -> None:
        self.attachment.leave(link, clean)


class Stand:
    """A router with some clients who ask to be let in, each to a generation of its own but the first two."""

    def __init__(self) -> None:
        self.attachment = Attachment("host-a", 0.0)
        self.stream = Stream(self.attachment)
        self.wires: list[Wire] = []
        self.sessions: list[Session] = []
        for n in range(CLIENTS):
            self.generation = GENERATION + n // 2
            self.wires.append(Wire())
            self.sessions.append(Session(self, self.wires[-1], f"c{n}", now=0.0, connected_at_ms=5))
            for frame in (HELLO, NOTHING):
                self.sessions[-1].received(frames.encode_client(frame), 0.0)
        self.attachment.received(pb.AttachResponse(welcome=pb.AttachWelcome(host_id="host-a")), 0.0)

    def admit(self, session: Session, hello: frames.Hello) -> None:
        session.connection.authenticated(Identity("ann", b"", ""))
        session.placed_in("room", "default", 0.0)

    def wants(self, session: Session) -> None:
        session.attach(0.0)

    def stream_for(self, session: Session) -> tuple[AttachStream, Route] | None:
        return cast(AttachStream, self.stream), Route(self.generation, "host-a", "a:1")

    def joined(self, session: Session) -> None:
        """What a router counts."""

    def slept(self, session: Session, route: Route) -> None:
        """What a router looks after."""

    def slow(self, session: Session) -> None:
        """Nothing is slow here."""

    def gone(self, session: Session) -> None:
        """What a router counts."""

    def let_in(self) -> None:
        for link in list(self.attachment.links):
            joined = pb.Joined(room_no=1, version=1, tick=5, tick_rate=20)
            down = pb.Down(links=[link.number], generation=link.generation, joined=joined)
            self.attachment.received(pb.AttachResponse(items=[down]), 0.0)


u32s = st.sampled_from((0, 1, 2, 3, 4, 255, 256, 2**31, 2**32 - 1)) | st.integers(0, 2**32 - 1)
u64s = st.sampled_from((0, 5, VARINT53_MAX - 3, VARINT53_MAX, 2**53, 2**63, 2**64 - 1))
generations = st.sampled_from((GENERATION, GENERATION, GENERATION + 1, 0, 2**64 - 1))
links = st.lists(st.integers(0, CLIENTS + 1) | u32s, max_size=5)
bodies = st.one_of(
    st.binary(max_size=20),
    st.builds(
        lambda kind, rest: bytes((kind,)) + rest, st.sampled_from(sorted(ROOM_FRAMES)), st.binary(max_size=20)
    ),
    st.builds(lambda kind, size: bytes((kind,)) * size, st.integers(0, 24), st.sampled_from((1_025, 70_000))),
)


@st.composite
def downs(draw: st.DrawFn) -> pb.Down:
    down = pb.Down(links=draw(links), generation=draw(generations))
    match draw(st.integers(0, 5)):
        case 0:
            down.joined.CopyFrom(
                pb.Joined(
                    room_no=draw(u32s),
                    version=draw(u32s),
                    tick=draw(u64s),
                    fraction=draw(u32s),
                    tick_rate=draw(u32s),
                    resumed=draw(st.booleans()),
                )
            )
        case 1:
            reason = draw(st.text(max_size=200))
            down.close.CopyFrom(pb.Close(code=draw(u32s), reason=reason, retry_after_ms=draw(u32s)))
        case 2:
            down.asleep.CopyFrom(pb.Asleep(version=draw(u32s)))
        case 3:
            down.ended.CopyFrom(pb.RoomEnded(room_uid=draw(st.text(max_size=4)), code=draw(u32s)))
        case _:
            down.frames = b"".join(draw(st.lists(packed_groups(), max_size=3)))
    return down


@st.composite
def packed_groups(draw: st.DrawFn) -> bytes:
    numbers = draw(links)
    heads = draw(st.lists(st.binary(max_size=20), min_size=len(numbers), max_size=len(numbers)))
    if not numbers or draw(st.booleans()):
        heads = [draw(st.binary(max_size=255))]
    return pack_down(draw(generations), Group(numbers, heads, draw(bodies), draw(st.booleans())))


clocks = st.builds(pb.RoomClock, room_no=u32s, tick=u64s, fraction=u32s)
responses = st.builds(
    pb.AttachResponse, items=st.lists(downs(), max_size=4), clocks=st.lists(clocks, max_size=3)
)


@given(st.lists(responses, max_size=6), st.booleans())
def test_a_router_gives_clients_only_what_a_room_may_send(
    said: list[pb.AttachResponse], let_in: bool
) -> None:
    stand = Stand()
    if let_in:
        stand.let_in()
    for now, response in enumerate(said, start=1):
        before = [len(wire.sent) for wire in stand.wires]
        stand.attachment.received(response, float(now))
        meant = {(number, down.generation) for down in response.items for number in down.links}
        for down in response.items:
            meant |= {
                (number, generation) for generation, group in read_down(down.frames) for number in group.links
            }
        for n, (wire, session) in enumerate(zip(stand.wires, stand.sessions, strict=True)):
            if (n + 1, GENERATION + n // 2) not in meant:
                assert len(wire.sent) == before[n], "somebody got what was meant for another"
            session.received(frames.encode_client(frames.Ping(3)), float(now) + 0.5)
            session.timer(float(now) + 0.5)
        stand.attachment.batch(float(now))
    for wire, session in zip(stand.wires, stand.sessions, strict=True):
        check_sent(wire)
        if session.connection.state is not State.CLOSED:
            session.received(frames.encode_client(frames.Ping(3)), 9.0)
            assert frames.decode_server(wire.sent[-1]) is not None
            session.received(frames.encode_client(frames.Leave()), 9.0)
        assert len(wire.closes) == 1


def check_sent(wire: Wire) -> None:
    own = {frames.WELCOME, frames.WAKING, frames.PONG, frames.RESET, frames.ASLEEP}
    assert {frame[0] for frame in wire.sent} <= ROOM_FRAMES.keys() | own
    for frame in wire.sent:
        assert len(frame) <= ROOM_FRAMES.get(frame[0], 16_384)
        if frame[0] in own:
            assert frames.decode_server(frame) is not None
    for code, reason in wire.closes:
        assert code == 1000 or 4000 <= code < 5000
        assert len(reason.encode()) <= 123


@given(st.binary(max_size=200), responses, st.integers(0, 60), st.binary(max_size=4))
def test_a_router_takes_any_bytes_that_are_a_response(
    anything: bytes, response: pb.AttachResponse, at: int, over: bytes
) -> None:
    whole = response.SerializeToString()
    for data in (anything, whole[:at], whole[:at] + over + whole[at + len(over) :]):
        try:
            broken = pb.AttachResponse.FromString(data)
        except DecodeError:
            continue
        stand = Stand()
        stand.let_in()
        with suppress(ValueError):
            stand.attachment.received(broken, 1.0)
        for wire in stand.wires:
            check_sent(wire)


@given(packed_groups(), st.binary(max_size=200), st.integers(0, 200), st.integers(0, 255), st.integers(0, 99))
def test_any_bytes_are_a_run_of_frames_or_end_the_stream(
    run: bytes, anything: bytes, at: int, over: int, cut: int
) -> None:
    """Both what a host sends, and what a router does."""
    flipped = bytearray(run)
    if at < len(run):
        flipped[at] = over
    for broken in (anything, bytes(flipped), run + anything, run[: len(run) - cut]):
        stand = Stand()
        stand.let_in()
        with suppress(ValueError):
            stand.attachment.received(pb.AttachResponse(items=[pb.Down(frames=broken)]), 1.0)
        for wire in stand.wires:
            check_sent(wire)
        with suppress(ValueError):
            assert b"".join(pack_up(link, frame) for link, frame in read_up(broken)) == broken


@given(st.binary(max_size=300))
def test_a_host_reads_the_resume_and_meta_of_any_join(data: bytes) -> None:
    for join in joins(data):
        request = read_join(join)
        assert request is None or isinstance(request, JoinRequest)


def joins(data: bytes) -> Iterator[pb.Join]:
    yield pb.Join(resume=data)
    yield pb.Join(meta=data)
    yield pb.Join(meta=b"[" * len(data) + data)
    yield pb.Join(meta=b"[" * 10_000 + b"]" * 10_000)
    yield pb.Join(meta=b'"\xed\xa0\x80"')
    yield pb.Join(player="a\nb", session=data, schema_hash=data, connected_at_ms=-1)


def test_the_last_tick_there_is_does_not_go_on() -> None:
    stand = Stand()
    stand.let_in()
    clock = pb.RoomClock(room_no=1, tick=VARINT53_MAX, fraction=255)
    stand.attachment.received(pb.AttachResponse(clocks=[clock]), 1.0)
    stand.sessions[0].received(frames.encode_client(frames.Ping(3)), 3.0)
    pong = frames.decode_server(stand.wires[0].sent[-1])
    assert isinstance(pong, frames.Pong)
    assert pong.tick == VARINT53_MAX
