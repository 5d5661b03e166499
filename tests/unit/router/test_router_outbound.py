"""What waits to go out to one client (docs/protocol/transports.md; Q-33)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.backend import Lane
from playhall_router.outbound import HARD_BYTES, STALL_S, UNSENT_BYTES, Backlog, Outbound, Verdict

CLEAR = Backlog(0, 0)
BUSY = Backlog(1, 0)


class Metered(Outbound):
    """A way out whose credit is told at once."""

    def __init__(self) -> None:
        self.lane = Lane(lambda frame: 0, lambda *_: None, lambda: None, lambda now: None)
        super().__init__(self.lane, 0.0)

    def credit(self) -> int | None:
        """All that has drained, if that is more than was told."""
        if not self.creditable:
            return None
        self.lane.reported = self.lane.drained
        return self.lane.drained


def new() -> Metered:
    return Metered()


def test_reliable_frames_go_until_the_hard_bound() -> None:
    outbound = new()
    assert outbound.offer(bytes(100), False, BUSY, 0.0) is Verdict.SEND
    assert outbound.offer(bytes(100), False, Backlog(HARD_BYTES - 100, 0), 0.0) is Verdict.SEND
    assert outbound.offer(bytes(101), False, Backlog(HARD_BYTES - 100, 0), 0.0) is Verdict.CLOSE


def test_unreliable_frames_go_only_while_nothing_waits() -> None:
    outbound = new()
    assert outbound.offer(b"1", True, Backlog(0, UNSENT_BYTES), 0.0) is Verdict.SEND
    assert outbound.offer(b"2", True, BUSY, 0.0) is Verdict.HOLD
    assert outbound.offer(b"3", True, Backlog(0, UNSENT_BYTES + 1), 0.0) is Verdict.HOLD
    assert outbound.offer(b"4", True, CLEAR, 0.0) is Verdict.HOLD  # behind those held
    assert outbound.release(BUSY) == []
    assert outbound.release(CLEAR) == [b"2", b"3", b"4"]
    assert outbound.offer(b"5", True, CLEAR, 0.0) is Verdict.SEND


def test_the_oldest_unreliable_frames_are_dropped() -> None:
    outbound = new()
    for number in range(40):
        outbound.offer(bytes([number]), True, BUSY, 0.0)
    assert outbound.release(CLEAR) == [bytes([number]) for number in range(24, 40)]
    assert outbound.dropped == 24
    outbound.offer(bytes(30_000), True, BUSY, 0.0)
    assert (outbound.release(CLEAR), outbound.dropped) == ([], 25)


def test_credit_is_what_has_left() -> None:
    outbound = new()
    outbound.offer(bytes(1000), False, CLEAR, 0.0)
    assert outbound.credit() is None
    outbound.drain(Backlog(600, 0), 0.1)
    assert outbound.credit() == 400
    outbound.drain(Backlog(900, 0), 0.2)  # the router's own frames wait too: credit never shrinks
    assert outbound.credit() is None
    outbound.drain(Backlog(0, 300), 0.3)  # little in the kernel is on its way
    assert (outbound.creditable, outbound.credit()) == (600, 1000)
    assert not outbound.waiting


def test_a_client_that_does_not_read_has_its_bytes_counted_in_the_kernel() -> None:
    outbound = new()
    outbound.offer(bytes(50_000), False, CLEAR, 0.0)
    outbound.drain(Backlog(0, 20_000), 0.1)
    assert outbound.credit() == 30_000


def test_dropped_frames_are_credit_too() -> None:
    outbound = new()
    for _ in range(20):
        outbound.offer(bytes(1000), True, BUSY, 0.0)
    outbound.drain(CLEAR, 0.1)
    assert outbound.credit() == 4000  # sixteen are held


def test_credit_starts_anew_with_each_join_and_held_frames_are_gone() -> None:
    outbound = new()
    outbound.offer(bytes(1000), False, CLEAR, 0.0)
    outbound.offer(b"old", True, BUSY, 0.0)
    outbound.drain(CLEAR, 0.0)
    outbound.restart(1.0)
    assert outbound.release(CLEAR) == []
    outbound.offer(bytes(10), False, CLEAR, 0.0)
    outbound.drain(CLEAR, 1.0)
    assert outbound.credit() == 10


def test_fifteen_seconds_without_progress_is_a_stall() -> None:
    outbound = new()
    outbound.offer(bytes(1000), False, CLEAR, 0.0)
    outbound.drain(Backlog(900, 0), 5.0)
    assert not outbound.stalled(5.0 + STALL_S - 0.1)
    outbound.drain(Backlog(900, 0), 19.0)
    assert outbound.stalled(5.0 + STALL_S)
    outbound.drain(CLEAR, 20.0)
    assert not outbound.stalled(100.0)


def test_a_client_with_nothing_to_read_was_not_slow_to_read_it() -> None:
    outbound = new()
    outbound.offer(bytes(1000), False, CLEAR, 0.0)
    outbound.drain(CLEAR, 0.1)
    outbound.offer(bytes(1000), False, CLEAR, 60.0)
    outbound.drain(Backlog(1000, 0), 60.1)
    assert not outbound.stalled(60.1)
    assert outbound.stalled(60.0 + STALL_S)


@given(
    st.lists(
        st.tuples(st.integers(1, 5000), st.booleans(), st.integers(0, 9000), st.integers(0, 9000)),
        max_size=50,
    )
)
def test_credit_only_grows_and_ends_at_what_was_given(steps: list[tuple[int, bool, int, int]]) -> None:
    outbound = new()
    reported = given_bytes = 0
    for size, unreliable, buffered, unsent in steps:
        backlog = Backlog(buffered, unsent)
        outbound.offer(bytes(size), unreliable, backlog, 0.0)
        given_bytes += size
        outbound.drain(backlog, 0.0)
        credit = outbound.credit()
        if credit is not None:
            assert reported < credit <= given_bytes
            reported = credit
    outbound.release(CLEAR)
    outbound.drain(CLEAR, 0.0)
    assert (outbound.credit() or reported) == given_bytes
