"""The bounded queue to a room host."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall_router.uplink import Uplink


def up(link: int, size: int = 84) -> pb.Up:
    return pb.Up(link=link, payload=bytes(size))


def links(ups: list[pb.Up]) -> list[int]:
    return [each.link for each in ups]


def test_things_leave_in_order_and_in_batches() -> None:
    uplink = Uplink(1000)
    for link in range(1, 6):
        assert uplink.push(up(link))
    assert (len(uplink), uplink.size) == (5, 500)
    assert links(uplink.take(250)) == [1, 2]
    assert links(uplink.take(10)) == [3]
    assert links(uplink.take()) == [4, 5]
    assert (uplink.take(), len(uplink), uplink.size) == ([], 0, 0)


def test_the_oldest_inputs_give_way() -> None:
    uplink = Uplink(500)
    uplink.push(up(1), is_input=True)
    uplink.push(up(2))
    uplink.push(up(3), is_input=True)
    uplink.push(up(4))
    uplink.push(up(5), is_input=True)
    assert uplink.push(up(6), is_input=True)
    assert uplink.push(up(7))
    assert uplink.dropped == 2
    assert links(uplink.take()) == [2, 4, 5, 6, 7]


def test_without_inputs_to_drop_it_refuses_and_names_the_worst() -> None:
    uplink = Uplink(500)
    for link in (1, 2, 2, 2, 1):
        assert uplink.push(up(link))
    assert not uplink.push(up(1))
    assert uplink.worst() == 2
    uplink.push_control(pb.Up(link=9, leave=pb.Leave()))
    assert links(uplink.take()) == [1, 2, 2, 2, 1, 9]
    assert uplink.worst() == 0


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400), st.booleans()), max_size=60), st.data())
def test_it_never_holds_more_than_its_bound_and_loses_only_inputs(
    pushes: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    uplink = Uplink(1000)
    pushed: list[tuple[pb.Up, bool]] = []
    taken: list[pb.Up] = []
    for link, size, is_input in pushes:
        item = up(link, size)
        if uplink.push(item, is_input=is_input):
            pushed.append((item, is_input))
        assert uplink.size <= 1000
        if data.draw(st.booleans()):
            taken += uplink.take(300)
    while batch := uplink.take(300):
        taken += batch
    kept = {id(item) for item in taken}
    assert [id(item) for item in taken] == [id(item) for item, _ in pushed if id(item) in kept]
    assert all(is_input for item, is_input in pushed if id(item) not in kept)
    assert len(pushed) - len(taken) == uplink.dropped
