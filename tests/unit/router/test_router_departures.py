"""When batches leave for a room host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall_router.departures import (
    AHEAD_S,
    GATHER_MANY_S,
    GATHER_S,
    LATE_S,
    MOST_S,
    Departures,
)


def busy(at: float = 100.0) -> Departures:
    """A stream on which many frames left a tick's time ago, and again now."""
    departures = Departures()
    departures.left(400, at - 0.05)
    departures.left(400, at)
    return departures


def test_what_comes_alone_leaves_at_once() -> None:
    departures = Departures()
    assert departures.next(100.0) <= 100.0
    departures.left(1, 100.0)
    assert departures.next(107.0) <= 107.0


def test_few_frames_gather_briefly_and_wait_for_no_tick() -> None:
    departures = Departures()
    departures.left(3, 100.0)
    departures.told(0.04, 100.0)
    assert departures.next(100.001) == pytest.approx(100.0 + GATHER_S)


def test_many_frames_leave_just_before_the_next_ticks() -> None:
    departures = busy()
    departures.told(0.04, 100.005)
    assert departures.next(100.006) == pytest.approx(100.045 - AHEAD_S)


def test_many_frames_do_not_wait_for_a_tick_that_is_far_or_unknown() -> None:
    departures = busy()
    assert departures.next(100.001) == pytest.approx(100.0 + GATHER_MANY_S)
    departures.told(0.9, 100.001)
    assert departures.next(100.002) == pytest.approx(100.0 + GATHER_MANY_S)
    departures.told(0.04, 100.001)
    departures.told(0.0, 100.002)
    assert departures.next(100.002) == pytest.approx(100.0 + GATHER_MANY_S)


def test_what_comes_too_late_for_the_ticks_waits_to_hear_of_the_next() -> None:
    departures = busy(100.0)
    departures.told(AHEAD_S, 100.0)
    assert departures.next(100.001) == pytest.approx(100.0 + AHEAD_S + LATE_S)
    departures.told(0.045, 100.008)
    assert departures.next(100.008) == pytest.approx(100.053 - AHEAD_S)


def test_a_process_that_says_nothing_more_is_waited_for_briefly() -> None:
    departures = busy(100.0)
    departures.told(0.045, 100.0)
    departures.told(0.002, 100.043)
    assert departures.next(100.043) == pytest.approx(100.045 + LATE_S)
    assert departures.next(100.071) == pytest.approx(100.0 + GATHER_MANY_S)


@pytest.mark.parametrize(("rate", "took_s"), [(120, 0.005), (60, 0.014)])
def test_a_process_whose_ticks_leave_no_time_between_them_is_not_waited_for(rate: int, took_s: float) -> None:
    """It says after each pass when the next ticks are: too soon to be met, and never anything else."""
    departures = busy(100.0)
    left_at, leaves_at = 100.0, departures.next(100.0)
    longest_s = 0.0
    for tick in range(1, rate):
        said_at = 100.0 + tick / rate + took_s
        while leaves_at < said_at:
            longest_s, left_at = max(longest_s, leaves_at - left_at), leaves_at
            departures.left(400, left_at)
            leaves_at = departures.next(left_at)
        departures.told(100.0 + (tick + 1) / rate - said_at, said_at)
        leaves_at = max(said_at, departures.next(said_at))
    assert longest_s <= GATHER_MANY_S + AHEAD_S


def test_ticks_one_upon_the_other_still_leave_time_to_gather() -> None:
    departures = busy(100.0)
    departures.told(AHEAD_S + 0.001, 100.0)
    assert departures.next(100.0) == pytest.approx(100.0 + GATHER_S)


def test_a_stream_that_falls_quiet_waits_for_no_tick_any_more() -> None:
    departures = busy(100.0)
    departures.left(5, 100.05)
    departures.told(0.04, 100.06)
    assert departures.next(100.06) == pytest.approx(100.05 + GATHER_S)


@given(st.lists(st.tuples(st.floats(0, 0.02), st.floats(0, 10)), min_size=1, max_size=200))
def test_nothing_waits_long_whatever_a_process_says(said: list[tuple[float, float]]) -> None:
    departures = busy(100.0)
    now = left_at = 100.0
    for passed, ticks_in_s in said:
        now += passed
        departures.told(ticks_in_s, now)
        assert departures.next(now) <= left_at + MOST_S
        if departures.next(now) <= now:
            departures.left(400, now)
            left_at = now
