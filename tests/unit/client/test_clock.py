from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.client.clock import TickClock


def started(tick: float = 100.0, rate: int = 20, now: float = 0.0) -> TickClock:
    clock = TickClock()
    clock.start(tick, rate, now)
    return clock


def test_between_pongs_it_runs_at_the_rooms_rate() -> None:
    clock = started()
    assert [clock.tick(now) for now in (0.0, 0.5, 2.0)] == [100.0, 110.0, 140.0]


def test_a_pong_tells_the_tick_of_half_a_round_trip_ago_so_asymmetry_is_half_an_error() -> None:
    # The way there takes 0.3 s and the way back 0.1 s: at 0.3 s the room was at tick 200.
    clock = started(0.0)
    clock.pong(200.0, sent_at=0.0, now=0.4)
    at_04_really = 200.0 + 0.1 * 20
    assert clock.tick(0.4) == pytest.approx(at_04_really + (0.3 - 0.1) / 2 * 20)
    assert clock.rtt_s == 0.4


def test_it_slews_at_most_a_twentieth_of_its_speed() -> None:
    clock = started(100.0)
    clock.pong(104.0, sent_at=0.0, now=0.0)  # 0.2 s ahead of what was thought: four seconds to make up
    assert clock.tick(0.0) == 100.0
    assert clock.tick(1.0) == pytest.approx(121.0)
    assert clock.tick(4.0) == pytest.approx(184.0)
    assert clock.tick(5.0) == pytest.approx(204.0)


@pytest.mark.parametrize("off", [-6.0, 6.0])
def test_it_jumps_where_it_is_over_a_quarter_second_off(off: float) -> None:
    clock = started(100.0)
    clock.pong(100.0 + off, sent_at=0.0, now=0.0)
    assert clock.tick(0.0) == 100.0 + off


def test_the_sample_of_the_lowest_round_trip_of_the_last_eight_counts() -> None:
    clock = started(0.0)
    clock.pong(0.0, sent_at=0.0, now=0.0)
    for n in range(7):
        clock.pong(1.0 + 20 * n, sent_at=float(n), now=n + 0.05)  # slower, and a tick off
    assert clock.tick(8.0) == pytest.approx(160.0)
    clock.pong(141.0, sent_at=7.0, now=7.05)  # the exact one is forgotten now
    assert clock.tick(100.0) > 2000.4


def test_a_pong_of_a_sleeping_room_measures_the_round_trip_alone() -> None:
    clock = started()
    clock.pong(None, sent_at=1.0, now=1.25)
    assert (clock.rtt_s, clock.tick(2.0)) == (0.25, 140.0)


def test_another_generation_starts_over() -> None:
    clock = started(1000.0)
    clock.pong(1000.0, sent_at=0.0, now=0.0)
    clock.start(7.0, 10, now=50.0)
    assert clock.tick(51.0) == 17.0


@given(
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 0.2), st.floats(-3.0, 3.0)), min_size=1, max_size=40
    )
)
def test_short_of_a_jump_it_never_goes_back(pongs: list[tuple[float, float, float]]) -> None:
    clock, now, last = started(0.0), 0.0, 0.0
    for wait, rtt, error in pongs:
        now += wait
        clock.pong(now * 20 + error / 2, sent_at=max(0.0, now - rtt), now=now)
        tick = clock.tick(now)
        assert tick >= last or last - tick > 0.25 * 20 * 0.5
        last = tick
