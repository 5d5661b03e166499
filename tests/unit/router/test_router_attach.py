"""Links, batches up, and what a room host may say (docs/protocol and roomhost.proto)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine import frames
from playhall.engine.backend import Lane
from playhall.engine.codes import CloseCode
from playhall.engine.packing import Group, pack_down, pack_up, read_down
from playhall_router.attach import CREDIT_BESIDE, CREDIT_STEP, Attachment, Ended, JoinRequest, Link
from playhall_router.clock import RoomClock
from playhall_router.connection import Welcome
from playhall_router.wake import Route
from tests.support.link_frames import down_frames

ROUTE = Route(7, "host-a", "a:1")
MESSAGE = b"\x05\x00hi"
LONG = b"\x05\x00" + bytes(CREDIT_STEP - 2)


@dataclass
class FakeClient:
    """A connection that keeps what it is told."""

    got: list[tuple[bytes, bool]] = field(default_factory=list)
    welcomes: list[Welcome] = field(default_factory=list)
    clock: RoomClock | None = None
    closes: list[tuple[int, str, int]] = field(default_factory=list)
    slept: list[int] = field(default_factory=list)
    drained_bytes: int = 0

    def __post_init__(self) -> None:
        self.lane = Lane(self.write, self.offer, lambda: None, self.look)

    def write(self, frame: bytes) -> int:
        self.got.append((frame, False))
        return 0

    def offer(self, frame: bytes, unreliable: bool, now: float) -> None:
        self.got.append((frame, unreliable))
        self.lane.given += len(frame)

    def joined(self, welcome: Welcome, clock: RoomClock, now: float) -> None:
        self.welcomes.append(welcome)
        self.clock = clock

    def asleep(self, version: int, now: float) -> None:
        self.slept.append(version)

    def closed(self, code: int, reason: str, retry_after_ms: int, now: float) -> None:
        self.closes.append((code, reason, retry_after_ms))

    def look(self, now: float) -> None:
        self.lane.drained = self.drained_bytes


def request(room_uid: str = "room") -> JoinRequest:
    return JoinRequest(
        room_uid=room_uid, room_type="default", player="ann", meta=b"{}", schema_hash=bytes(16),
        session=bytes(16), attempt=2, connected_at_ms=5, was_joined=True, resume=b"resume",
        connection_id="c1", credit_bytes=32_768,
    )  # fmt: skip


@pytest.fixture
def attachment() -> Attachment:
    made = Attachment("host-a", 0.0)
    made.received(pb.AttachResponse(welcome=pb.AttachWelcome(host_id="host-a")), 0.0)
    return made


def join(attachment: Attachment, route: Route = ROUTE, room_uid: str = "room") -> tuple[FakeClient, Link]:
    client = FakeClient()
    return client, attachment.join(client, route, request(room_uid))


def hear(attachment: Attachment, *items: pb.Down, now: float = 1.0, **fields: Any) -> list[Ended]:
    return attachment.received(pb.AttachResponse(items=items, **fields), now)


def test_a_join_says_everything(attachment: Attachment) -> None:
    _, link = join(attachment)
    batch = attachment.batch(0.0)
    assert batch is not None
    (up,) = batch.items
    said = up.join
    assert (up.link, said.room_uid, said.generation, said.player) == (link.number, "room", 7, "ann")
    assert (said.meta, said.resume, said.was_joined, said.attempt) == (b"{}", b"resume", True, 2)
    assert (said.credit_bytes, said.connection_id, said.connected_at_ms) == (32_768, "c1", 5)


def test_what_goes_up_keeps_its_order_and_link_numbers_are_never_used_again(attachment: Attachment) -> None:
    _, first = join(attachment)
    assert first.forward(b"\x05one")
    attachment.leave(first, clean=True)
    _, second = join(attachment)
    batch = attachment.batch(0.0)
    assert batch is not None
    assert second.number > first.number
    assert [up.WhichOneof("control") or up.frames for up in batch.items] == [
        "join",
        pack_up(first.number, b"\x05one"),
        "leave",
        "join",
    ]
    assert attachment.batch(0.0) is None


def test_a_shared_frame_reaches_its_links_and_no_other(attachment: Attachment) -> None:
    ann, a = join(attachment)
    bob, b = join(attachment)
    cat, _ = join(attachment)
    hear(attachment, down_frames([a.number, b.number], 7, b"body", heads=[b"\x04\x01"]))
    hear(
        attachment,
        down_frames([a.number, b.number], 7, b"x", heads=[b"\x04\x02", b"\x04\x03"]),
    )
    hear(attachment, down_frames([b.number], 7, b"\x06\x00hi", unreliable=True))
    assert ann.got == [(b"\x04\x01body", False), (b"\x04\x02x", False)]
    assert bob.got == [(b"\x04\x01body", False), (b"\x04\x03x", False), (b"\x06\x00hi", True)]
    assert cat.got == []


@pytest.mark.ledger("RTR-10")
def test_peers_of_a_room_reach_its_clients_as_type_9(attachment: Attachment) -> None:
    ann, link = join(attachment)
    peers = frames.encode_server(frames.Peers(hears=("bob",), heard_by=()))
    hear(attachment, down_frames([link.number], 7, peers))
    assert ann.got == [(peers, False)]
    assert peers[0] == 9


def test_only_the_attached_generation_is_heard(attachment: Attachment) -> None:
    ann, link = join(attachment)
    for generation in (6, 8, 0):
        hear(attachment, down_frames([link.number], generation, MESSAGE))
        hear(attachment, pb.Down(links=[link.number], generation=generation, close=pb.Close(code=4006)))
        hear(attachment, pb.Down(links=[link.number], generation=generation, joined=pb.Joined(tick_rate=20)))
    assert (ann.got, ann.closes, ann.welcomes) == ([], [], [])
    attachment.leave(link, clean=False)
    hear(attachment, down_frames([link.number, 999], 7, MESSAGE))
    assert ann.got == []
    assert attachment.dropped_frames == 11


@pytest.mark.parametrize(
    "frame",
    [
        b"", b"\x02welcome", b"\x11reset", b"\x01", b"\x14", b"\x07voice", b"\xff",
        b"\x04" + bytes(61_440), b"\x05" + bytes(65_600),
    ],
    ids=lambda frame: repr(frame[:8]),
)  # fmt: skip
def test_what_no_room_may_send_closes_that_connection_alone(attachment: Attachment, frame: bytes) -> None:
    ann, a = join(attachment)
    bob, b = join(attachment)
    hear(attachment, down_frames([a.number], 7, frame))
    hear(attachment, down_frames([b.number], 7, MESSAGE))
    assert ann.closes[0][0] == CloseCode.ROOM_STOPPED
    assert (ann.got, bob.got) == ([], [(MESSAGE, False)])


def test_heads_that_do_not_match_their_links_reach_nobody(attachment: Attachment) -> None:
    ann, a = join(attachment)
    with pytest.raises(ValueError):
        hear(attachment, down_frames([a.number], 7, b"x", heads=[b"\x05", b"\x05"]))
    assert ann.got == []


def test_joined_becomes_a_welcome_and_a_clock(attachment: Attachment) -> None:
    ann, link = join(attachment)
    joined = pb.Joined(room_no=3, version=9, tick=40, fraction=128, tick_rate=20, resumed=True)
    hear(attachment, pb.Down(links=[link.number], generation=7, joined=joined))
    assert ann.welcomes == [Welcome(7, 9, 40, 128, 20, True)]
    assert ann.clock is not None
    hear(attachment, now=2.0, clocks=[pb.RoomClock(room_no=3, tick=100, fraction=0)])
    assert ann.clock.read(2.1) == (102, 0)


@pytest.mark.parametrize(("tick_rate", "tick"), [(0, 0), (300, 0), (20, 1 << 60)])
def test_a_time_that_makes_no_sense_closes(attachment: Attachment, tick_rate: int, tick: int) -> None:
    ann, link = join(attachment)
    joined = pb.Joined(tick_rate=tick_rate, tick=tick)
    hear(attachment, pb.Down(links=[link.number], generation=7, joined=joined))
    assert ann.welcomes == []
    assert ann.closes[0][0] == CloseCode.ROOM_STOPPED


@pytest.mark.ledger("RTR-08", "CODE-04")
def test_a_rooms_close_keeps_its_code_if_it_is_one(attachment: Attachment) -> None:
    ann, a = join(attachment)
    bob, b = join(attachment)
    hear(
        attachment,
        pb.Down(links=[a.number], generation=7, close=pb.Close(code=4003, reason="full", retry_after_ms=5)),
    )
    hear(attachment, pb.Down(links=[b.number], generation=7, close=pb.Close(code=1000)))
    assert ann.closes == [(4003, "full", 5)]
    assert bob.closes[0][0] == CloseCode.ROOM_STOPPED
    assert len(attachment) == 0


def test_sleep_ends_the_link(attachment: Attachment) -> None:
    ann, link = join(attachment)
    hear(attachment, pb.Down(links=[link.number], generation=7, asleep=pb.Asleep(version=12)))
    assert ann.slept == [12]
    assert link.ended


def test_an_end_is_handed_on_with_its_generation(attachment: Attachment) -> None:
    ended = pb.RoomEnded(room_uid="room", reason=pb.RoomEnded.REASON_STOPPED, code=4007)
    assert hear(attachment, pb.Down(generation=7, ended=ended)) == [
        Ended("room", 7, pb.RoomEnded.REASON_STOPPED, 4007)
    ]


def test_another_host_at_the_address_is_refused() -> None:
    attachment = Attachment("host-a", 0.0)
    with pytest.raises(ValueError):
        attachment.received(pb.AttachResponse(welcome=pb.AttachWelcome(host_id="host-b")), 0.0)
    with pytest.raises(ValueError):
        Attachment("host-a", 0.0).received(pb.AttachResponse(heartbeat=True), 0.0)


def test_silence_of_three_seconds_is_a_loss(attachment: Attachment) -> None:
    assert not attachment.silent(2.9)
    assert attachment.silent(3.0)
    hear(attachment, heartbeat=True, now=2.9)
    assert not attachment.silent(5.8)


def test_credit_is_told_when_there_is_much(attachment: Attachment) -> None:
    ann, link = join(attachment)
    attachment.batch(0.0)
    hear(attachment, down_frames([link.number], 7, MESSAGE))
    assert not attachment.owes_credit
    hear(attachment, down_frames([link.number], 7, LONG))
    ann.drained_bytes = CREDIT_STEP - 1
    assert attachment.owes_credit
    assert attachment.batch(0.0) is None
    link.forward(b"\x05up")
    batch = attachment.batch(0.0)
    assert batch is not None
    assert not batch.drained_links
    assert attachment.owes_credit  # until all that is much has drained
    ann.drained_bytes += 1
    batch = attachment.batch(0.0)
    assert batch is not None
    assert (list(batch.drained_links), list(batch.drained_bytes)) == ([link.number], [CREDIT_STEP])
    assert not attachment.owes_credit


def test_a_beat_reports_little_credit_too(attachment: Attachment) -> None:
    ann, link = join(attachment)
    attachment.batch(0.0)
    hear(attachment, down_frames([link.number], 7, MESSAGE))
    ann.drained_bytes = 1
    batch = attachment.batch(0.0, all_credit=True)
    assert batch is not None
    assert list(batch.drained_bytes) == [1]


def test_credit_of_many_goes_after_their_frames(attachment: Attachment) -> None:
    everybody = [join(attachment) for _ in range(CREDIT_BESIDE + 1)]
    attachment.batch(0.0)
    for client, link in everybody:
        hear(attachment, down_frames([link.number], 7, MESSAGE))
        client.drained_bytes = 1
    everybody[0][1].forward(b"\x05up")
    frames, credit = attachment.batch(0.0, all_credit=True), attachment.batch(0.0)
    assert frames is not None
    assert credit is not None
    assert frames.items
    assert not frames.drained_links
    assert not credit.items
    assert list(credit.drained_links) == [link.number for _, link in everybody]
    assert attachment.batch(0.0) is None


def test_what_drains_later_is_reported_without_anything_more_coming_down(attachment: Attachment) -> None:
    """What is on the way to a slow client may be all its credit: then the room sends nothing more."""
    ann, link = join(attachment)
    attachment.batch(0.0)
    hear(attachment, down_frames([link.number], 7, b"\x05" + bytes(49_999)))
    reports: list[int] = []
    for drained in (16_500, 33_000, 50_000):
        ann.drained_bytes = drained
        batch = attachment.batch(0.0)
        assert batch is not None
        reports += batch.drained_bytes
    assert reports == [16_500, 33_000, 50_000]
    assert not attachment.owes_credit


def test_a_full_queue_blames_who_filled_it_and_is_free_of_theirs(attachment: Attachment) -> None:
    _, little = join(attachment)
    _, much = join(attachment)
    large = b"\x05" + bytes(65_000)
    while much.forward(large):
        pass
    assert not little.forward(large)
    assert attachment.blame(little) is much
    assert little.forward(large)
    assert attachment.uplink.size < 2 * len(large)


def test_who_filled_the_queue_and_left_is_blamed_no_more(attachment: Attachment) -> None:
    _, little = join(attachment)
    _, much = join(attachment)
    large = b"\x05" + bytes(65_000)
    while much.forward(large):
        pass
    attachment.leave(much, clean=True)
    assert attachment.blame(little) is None
    assert little.forward(large)


def group(generation: int, links: list[int], heads: list[bytes], body: bytes, unreliable: bool) -> pb.Down:
    heads = heads * len(links) if len(heads) == 1 or not links else heads[:1]
    return pb.Down(frames=pack_down(generation, Group(links, heads or [b""], body, unreliable)))


generations = st.integers(6, 8)
numbers = st.lists(st.integers(0, 4), max_size=4)
downs = st.builds(
    pb.Down,
    links=numbers,
    generation=generations,
    joined=st.builds(pb.Joined, tick=st.integers(0, (1 << 64) - 1), tick_rate=st.integers(0, 400)),
) | st.builds(
    group,
    generations,
    numbers,
    st.lists(st.binary(max_size=4), max_size=2),
    st.binary(max_size=20),
    st.booleans(),
)


@settings(max_examples=50)
@given(
    st.lists(downs, max_size=6),
    st.lists(st.builds(pb.RoomClock, tick=st.integers(0, (1 << 64) - 1)), max_size=3),
)
def test_nothing_a_host_says_raises_or_reaches_another_generation(
    said: list[pb.Down], clocks: list[pb.RoomClock]
) -> None:
    attachment = Attachment("host-a", 0.0)
    attachment.received(pb.AttachResponse(welcome=pb.AttachWelcome(host_id="host-a")), 0.0)
    clients = [join(attachment, Route(generation, "host-a", "a:1"))[0] for generation in (7, 8)]
    for down in said:
        before = [len(client.got) for client in clients]
        attachment.received(pb.AttachResponse(items=[down], clocks=clocks), 0.0)
        meant = {generation for generation, _ in read_down(down.frames)}
        for client, count, generation in zip(clients, before, (7, 8), strict=True):
            assert len(client.got) == count or generation in meant


def test_what_is_no_run_of_frames_ends_the_stream_and_what_came_before_has_arrived(
    attachment: Attachment,
) -> None:
    ann, link = join(attachment)
    run = down_frames([link.number], 7, MESSAGE).frames
    for broken in (run[:-1], run + run[:4], run + b"\x00", run[:4] + b"\x04" + run[5:]):
        with pytest.raises(ValueError):
            hear(attachment, pb.Down(frames=broken))
    assert ann.got == [(MESSAGE, False)] * 2
