"""The bounded queue to a room host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine import frames
from playhall.engine.packing import read_up
from playhall_router.uplink import Uplink

MESSAGE = bytes((frames.MESSAGE,)) + bytes(91)
INPUT = bytes((frames.INPUTS,)) + bytes(91)
LEAVE = pb.Up(link=9, leave=pb.Leave())


def links(ups: list[pb.Up]) -> list[int]:
    """Of each thing, in order."""
    return [link for up in ups for link in ([at for at, _ in read_up(up.frames)] if up.frames else [up.link])]


def test_things_leave_in_order_and_in_batches() -> None:
    uplink = Uplink(1000, 250)
    for link in range(1, 6):
        assert uplink.push(link, MESSAGE)
    assert (len(uplink), uplink.size) == (5, 500)
    assert links(uplink.take()) == [1, 2]
    assert links(uplink.take()) == [3, 4]
    assert links(uplink.take()) == [5]
    assert (uplink.take(), len(uplink), uplink.size) == ([], 0, 0)


def test_frames_and_controls_keep_their_order() -> None:
    uplink = Uplink(1000)
    uplink.push(1, MESSAGE)
    uplink.push_control(LEAVE)
    uplink.push(2, MESSAGE)
    uplink.push(3, MESSAGE)
    ups = uplink.take()
    assert links(ups) == [1, 9, 2, 3]
    assert len(ups) == 3


def test_it_wakes_its_stream_once_a_batch() -> None:
    calls: list[int] = []
    uplink = Uplink(on_first=lambda: calls.append(len(uplink)))
    uplink.push(1, MESSAGE)
    uplink.push(1, MESSAGE)
    uplink.push_control(LEAVE)
    assert len(calls) == 1
    uplink.take()
    uplink.push_control(LEAVE)
    assert len(calls) == 2


def test_the_oldest_inputs_give_way() -> None:
    uplink = Uplink(500)
    for link, frame in ((1, INPUT), (2, MESSAGE), (3, INPUT), (4, MESSAGE), (5, INPUT)):
        uplink.push(link, frame)
    assert uplink.push(6, INPUT)
    assert uplink.push(7, MESSAGE)
    assert uplink.dropped == 2
    assert links(uplink.take()) == [2, 4, 5, 6, 7]


def test_runs_of_which_nothing_is_left_are_gone() -> None:
    uplink = Uplink(500, 200)
    for link in range(1, 6):
        uplink.push(link, INPUT)
    for link in range(6, 10):
        uplink.push(link, MESSAGE)
    batches = []
    while ups := uplink.take():
        batches += [links([up]) for up in ups]
    assert batches == [[5, 6], [7, 8], [9]]


def test_without_inputs_to_drop_it_refuses_and_drops_the_worst() -> None:
    uplink = Uplink(500)
    for link in (1, 2, 2, 2, 1):
        assert uplink.push(link, MESSAGE)
    assert not uplink.push(1, MESSAGE)
    assert not uplink.push(1, INPUT)
    assert uplink.drop_worst() == 2
    assert (len(uplink), uplink.size) == (2, 200)
    uplink.push_control(LEAVE)
    assert uplink.push(1, INPUT)
    assert links(uplink.take()) == [1, 1, 9, 1]
    assert uplink.drop_worst() == 0


def test_what_is_no_frame_is_neither_dropped_nor_the_worst() -> None:
    uplink = Uplink(500, 200)
    for _ in range(8):
        uplink.push_control(LEAVE)
    uplink.push(1, MESSAGE)
    assert [uplink.drop_worst(), uplink.drop_worst()] == [1, 0]
    assert uplink.push(2, MESSAGE)
    assert links(uplink.take()) == [9] * 8 + [2]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400), st.booleans()), max_size=60), st.data())
def test_it_never_holds_more_than_its_bound_and_loses_only_inputs(
    pushes: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    uplink = Uplink(1000, 300)
    pushed: list[tuple[int, bytes]] = []
    taken: list[tuple[int, bytes]] = []
    for serial, (link, size, is_input) in enumerate(pushes):
        frame = bytes((frames.INPUTS if is_input else frames.MESSAGE, serial)) + bytes(size)
        if uplink.push(link, frame):
            pushed.append((link, frame))
        assert uplink.size <= 1000
        if data.draw(st.booleans()):
            taken += [found for up in uplink.take() for found in read_up(up.frames)]
    while batch := uplink.take():
        taken += [found for up in batch for found in read_up(up.frames)]
    kept = set(taken)
    assert taken == [each for each in pushed if each in kept]
    assert all(frame[0] == frames.INPUTS for link, frame in pushed if (link, frame) not in kept)
    assert len(pushed) - len(taken) == uplink.dropped
