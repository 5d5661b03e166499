"""Credit: how much may be on the way to a client, and what waits meanwhile."""

from __future__ import annotations

import pytest

from playhall.engine.links import MAX_INBOX_BYTES, Link, Outbox
from playhall.engine.views import View


def link(session: bytes = b"s", attempt: int = 3, connected_at_ms: int = 50) -> Link:
    return Link(1, "ann", None, View("ann", 0, 0), Outbox(10), session, attempt, connected_at_ms)


def test_a_link_is_open_while_less_than_its_credit_is_on_the_way() -> None:
    outbox = Outbox(10)
    outbox.sent(9)
    assert outbox.open
    outbox.sent(5)
    assert not outbox.open
    assert outbox.drained(5, 1.0)
    assert outbox.open


def test_what_waits_goes_out_in_order_as_credit_allows() -> None:
    outbox = Outbox(10)
    outbox.sent(10)
    for body in (b"aaaaaaaaaa", b"bb", b"cc"):
        outbox.hold(b"h", body, 1.0, counted=True)
    assert outbox.waiting_bytes == 17
    assert list(outbox.take()) == []
    outbox.drained(5, 2.0)
    assert not outbox.open, "something waits, and must not be overtaken"
    assert list(outbox.take()) == [(b"h", b"aaaaaaaaaa")]
    outbox.drained(21, 3.0)
    assert list(outbox.take()) == [(b"h", b"bb"), (b"h", b"cc")]
    assert (outbox.waiting_bytes, outbox.open) == (0, True)


def test_state_that_waits_does_not_count_against_messages() -> None:
    outbox = Outbox(1)
    outbox.sent(1)
    outbox.hold(b"", bytes(100), 0.0, counted=False)
    assert outbox.waiting_bytes == 0


def test_drained_counts_wrap_at_32_bits() -> None:
    outbox = Outbox(10)
    outbox.sent(2**32 - 1)
    assert outbox.drained(2**32 - 1, 0.0)
    outbox.sent(5)
    assert outbox.drained(4, 0.0)
    assert not outbox.drained(4, 0.0)


@pytest.mark.parametrize("total", [11, 2**32 - 1])
def test_counts_that_cannot_be_are_ignored(total: int) -> None:
    outbox = Outbox(10)
    outbox.sent(10)
    assert not outbox.drained(total, 0.0)
    assert not outbox.open


def test_a_link_stalls_from_the_first_thing_owed_or_the_last_drained() -> None:
    outbox = Outbox(4)
    outbox.sent(8)
    assert outbox.stalled_since is None
    outbox.owe(5.0)
    outbox.owe(6.0)
    assert outbox.stalled_since == 5.0
    outbox.drained(1, 9.0)
    assert outbox.stalled_since == 9.0
    outbox.settle()
    assert outbox.stalled_since is None


@pytest.mark.parametrize(
    ("session", "attempt", "connected_at_ms", "stays"),
    [
        (b"s", 4, 0, False),
        (b"s", 3, 0, False),
        (b"s", 2, 99, True),
        (b"t", 0, 51, False),
        (b"t", 0, 50, False),
        (b"t", 9, 49, True),
    ],
)
def test_attempts_order_a_session_and_time_orders_sessions(
    session: bytes, attempt: int, connected_at_ms: int, stays: bool
) -> None:
    assert link().supersedes(session, attempt, connected_at_ms) is stays


def test_what_comes_before_the_join_is_done_is_bounded() -> None:
    one = link()
    assert one.keep(bytes(MAX_INBOX_BYTES))
    assert not one.keep(b"x")
