"""Back-off of rooms that fail (Q-75)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhall_statestore.strikes import LONGEST_MS, Strikes

MINUTE = 60_000


def struck(*times_ms: int) -> Strikes:
    strikes = Strikes()
    for generation, at in enumerate(times_ms, 1):
        strikes = strikes.struck(generation, at)
    return strikes


def test_two_stops_cost_nothing() -> None:
    assert struck(1_000, 2_000).wait_ms(2_000) == 0


def test_third_within_a_minute_waits_a_second_from_it() -> None:
    strikes = struck(1_000, 2_000, 61_000)
    assert strikes.wait_ms(61_000) == 1_000
    assert strikes.wait_ms(61_400) == 600
    assert strikes.wait_ms(62_000) == 0


def test_third_after_more_than_a_minute_is_free() -> None:
    assert struck(1_000, 50_000, 61_001).wait_ms(61_001) == 0


def test_wait_doubles_up_to_a_minute() -> None:
    strikes, now, waits = struck(0, 1, 2), 2, []
    for generation in range(4, 13):
        now += strikes.wait_ms(now) + 10
        strikes = strikes.struck(generation, now)
        waits.append(strikes.wait_ms(now))
    assert waits == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]


def test_a_minute_of_peace_after_the_back_off_forgets() -> None:
    strikes = struck(0, 1, 2)
    later = 2 + 1_000 + MINUTE + 1
    strikes = strikes.struck(4, later)
    assert (strikes.wait_ms(later), strikes.streak) == (0, 1)


def test_a_generation_counts_once() -> None:
    strikes = struck(1_000)
    assert strikes.struck(1, 2_000) == strikes


@given(st.lists(st.integers(0, 10**7), max_size=12), st.integers(0, 10**7))
def test_never_longer_than_a_minute_whatever_the_clock_does(times: list[int], now: int) -> None:
    assert 0 <= struck(*times).wait_ms(now) <= LONGEST_MS
