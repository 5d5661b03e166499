from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.client.backoff import Backoff, reconnect_rule, split_reason
from playhall.engine.codes import CloseCode, Reconnect


def highest(backoff: Backoff, rule: Reconnect = Reconnect.BACKOFF, now: float = 0.0) -> float:
    """The wait of a Backoff whose rng says 1: the whole interval."""
    return backoff.wait(rule, 0.0, now)


@pytest.mark.ledger("RECO-01")
def test_the_interval_doubles_from_a_quarter_second_to_ten_seconds() -> None:
    backoff = Backoff(lambda: 1.0)
    waits = [highest(backoff) for _ in range(9)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]


def test_a_moved_room_is_come_back_to_within_a_quarter_second_once_and_then_backs_off() -> None:
    backoff = Backoff(lambda: 1.0)
    waits = [highest(backoff, Reconnect.NOW) for _ in range(4)]
    assert waits == [0.25, 0.25, 0.5, 1.0]


def test_now_is_now_even_after_many_failures_but_only_once() -> None:
    backoff = Backoff(lambda: 1.0)
    for _ in range(6):
        highest(backoff)
    backoff.connected(100.0)
    assert highest(backoff, Reconnect.NOW, 101.0) == 0.25
    assert highest(backoff, Reconnect.NOW, 101.0) == 10.0


@pytest.mark.parametrize(("connected_s", "wait"), [(9.9, 2.0), (10.0, 0.25)])
def test_it_starts_over_only_after_ten_seconds_of_being_connected(connected_s: float, wait: float) -> None:
    backoff = Backoff(lambda: 1.0)
    for _ in range(3):
        highest(backoff)
    backoff.connected(50.0)
    assert highest(backoff, now=50.0 + connected_s) == wait


def test_a_second_welcome_on_one_connection_does_not_shorten_it() -> None:
    backoff = Backoff(lambda: 1.0)
    highest(backoff)
    backoff.connected(0.0)
    backoff.connected(9.0)
    assert highest(backoff, now=10.0) == 0.25


def test_a_failed_attempt_is_no_time_connected() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [highest(backoff, now=now) for now in (0.0, 20.0, 40.0)] == [0.25, 0.5, 1.0]


@given(st.integers(0, 2**32), st.floats(0, 60))
def test_waits_are_spread_over_the_whole_interval_also_at_the_cap(seed: int, retry_after: float) -> None:
    rng = random.Random(seed)

    def waits() -> Iterator[float]:
        for _ in range(100):
            backoff = Backoff(rng.random)
            for _ in range(6):
                backoff.wait(Reconnect.BACKOFF, 0.0, 0.0)
            yield backoff.wait(Reconnect.BACKOFF, retry_after, 0.0) - retry_after

    drawn = sorted(waits())
    assert -1e-6 <= drawn[0] < 2.5
    assert 7.5 < drawn[-1] <= 10.0 + 1e-6


@pytest.mark.parametrize(
    ("reason", "seconds", "text"),
    [
        ("retry-after=1500;draining", 1.5, "draining"),
        ("retry-after=0;", 0.0, ""),
        ("draining", 0.0, "draining"),
        ("retry-after=;x", 0.0, "retry-after=;x"),
        ("retry-after=-5;x", 0.0, "retry-after=-5;x"),
        ("retry-after=٣;x", 0.0, "retry-after=٣;x"),
        ("say retry-after=5;x", 0.0, "say retry-after=5;x"),
        ("", 0.0, ""),
    ],
)
def test_the_reason_of_a_close(reason: str, seconds: float, text: str) -> None:
    assert split_reason(reason) == (seconds, text)


def test_codes_that_are_not_listed_back_off() -> None:
    assert [reconnect_rule(code) for code in (0, 1000, 1006, 4013, 4014, 4999)] == [Reconnect.BACKOFF] * 6
    assert reconnect_rule(CloseCode.ROOM_MOVED) is Reconnect.NOW
    assert reconnect_rule(CloseCode.REPLACED) is Reconnect.NEVER
