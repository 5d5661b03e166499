"""An Attach stream: links, batches, bounds."""

from __future__ import annotations

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.packing import Group, pack_group, read_down, route
from playhall_roomhost.attach import (
    BATCH_BYTES,
    MAX_BROKEN_BYTES,
    MAX_PENDING_BYTES,
    AttachStream,
    Clock,
    link_number,
    stream_of,
)

MIB = 1024 * 1024


def frame(
    *links: int,
    body: bytes = b"body",
    heads: list[bytes] | None = None,
    unreliable: bool = False,
    generation: int = 7,
) -> bytes:
    group = pack_group([link_number(3, link) for link in links], heads or [b"h"], body, unreliable=unreliable)
    ((number, run),) = route(group, generation)
    assert number == 3
    return run


def groups(batch: pb.AttachResponse) -> list[tuple[int, Group]]:
    return [found for down in batch.items for found in read_down(down.frames)]


def clock(room: str) -> Clock:
    return {"a": Clock(40, 128)}[room]


def stream() -> AttachStream[str]:
    return AttachStream(3, "r1")


def test_a_link_has_one_number_in_all_rooms() -> None:
    assert stream_of(link_number(3, 9)) == 3
    group = pack_group([link_number(3, 1), link_number(4, 1), link_number(3, 2)], [b"h"], b"body")
    runs = {number: list(read_down(run)) for number, run in route(group, 7)}
    assert runs == {
        3: [(7, Group((1, 2), [b"h"], b"body", False))],
        4: [(7, Group((1,), [b"h"], b"body", False))],
    }


def test_links_are_admitted_once_and_forgotten_with_their_room() -> None:
    s = stream()
    assert s.admit(1, "a")
    assert not s.admit(1, "b")
    assert s.admit(2, "b")
    assert s.release(2) == "b"
    assert s.release(2) is None
    s.forget("a")
    assert not s.links


def test_what_rooms_say_leaves_in_order_in_one_batch() -> None:
    s = stream()
    s.frames(7, frame(1, 2))
    s.frames(8, frame(3, generation=8))
    s.say(pb.Down(links=[1], generation=7, close=pb.Close(code=4000)))
    s.frames(7, frame(4))
    batch = s.take(clock)
    assert batch is not None
    first, second, third = batch.items
    assert list(read_down(first.frames)) == [
        (7, Group((1, 2), [b"h"], b"body", False)),
        (8, Group((3,), [b"h"], b"body", False)),
    ]
    assert second.close.code == 4000
    assert list(read_down(third.frames)) == [(7, Group((4,), [b"h"], b"body", False))]
    assert not batch.heartbeat
    assert s.take(clock) is None
    assert s.pending_bytes == 0


def test_batches_are_cut_and_lose_nothing() -> None:
    s = stream()
    for n in range(30):
        s.frames(7, frame(1, body=bytes((n,)) * 100_000))
    taken = []
    while (batch := s.take(clock)) is not None:
        assert sum(len(down.frames) for down in batch.items) <= BATCH_BYTES
        taken += [group.body[0] for _, group in groups(batch)]
    assert taken == list(range(30))
    assert s.pending_bytes == 0


def test_a_slow_stream_drops_unreliable_frames_then_counts_as_broken() -> None:
    s = stream()
    while s.pending_bytes <= MAX_PENDING_BYTES:
        assert not s.stalled
        s.frames(7, frame(1, body=bytes(MIB)))
    assert s.stalled
    waiting = s.pending_bytes
    s.frames(7, frame(1, unreliable=True))
    assert (s.pending_bytes, s.dropped) == (waiting, 1)
    while s.pending_bytes <= MAX_BROKEN_BYTES:
        assert not s.broken
        s.frames(7, frame(1, body=bytes(MIB)))
    assert s.broken


def test_what_waits_of_a_lost_generation_never_leaves() -> None:
    s = stream()
    s.frames(7, frame(1))
    s.frames(8, frame(2, generation=8))
    s.discard(7)
    batch = s.take(clock)
    assert batch is not None
    assert [generation for generation, _ in groups(batch)] == [8]


def test_clocks_and_beats_go_with_a_batch_or_alone() -> None:
    s = stream()
    number = s.room_number("a")
    assert s.room_number("a") == number
    s.room_number("gone")
    s.forget("gone")
    s.beat()
    batch = s.take(clock)
    assert batch is not None
    assert batch.heartbeat
    assert [(c.room_no, c.tick, c.fraction) for c in batch.clocks] == [(number, 40, 128)]
    assert s.take(clock) is None
