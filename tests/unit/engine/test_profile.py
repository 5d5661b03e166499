"""The profile of a room: whose time is whose, second by second, and no more kept than is said."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any

import pytest

from playhall.engine.profile import KEPT_S, MAX_DRAWN, MAX_ROWS, MAX_SAMPLES, OTHER, Profile, Times


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def profile(clock: Clock) -> Profile:
    return Profile(clock)


def take(profile: Profile, clock: Clock, name: str, seconds: float) -> None:
    with profile.timing(name):
        clock.now += seconds


def second(profile: Profile, clock: Clock) -> dict[str, Times]:
    """The rows of the second that runs, once it is over."""
    clock.now = float(int(clock.now) + 1)
    [(ago, rows)] = profile.seconds()
    assert ago == 1
    return rows


def test_percentiles_are_of_one_second(profile: Profile, clock: Clock) -> None:
    for n in range(1, 101):
        take(profile, clock, "on_message", n / 1_000_000)
    times = second(profile, clock)["on_message"]
    assert times.count == 100
    assert times.p50 == pytest.approx(50e-6)
    assert times.p95 == pytest.approx(95e-6)
    assert times.max == pytest.approx(100e-6)


def test_what_is_timed_within_counts_for_itself_and_a_tick_is_the_whole(
    profile: Profile, clock: Clock
) -> None:
    with profile.timing("tick"):
        clock.now += 0.001
        with profile.timing("on_tick"):
            clock.now += 0.002
            take(profile, clock, "on_leave", 0.004)
        take(profile, clock, "flush", 0.008)
    rows = second(profile, clock)
    own = {name: round(times.max, 6) for name, times in rows.items()}
    assert own == {"tick": 0.015, "on_tick": 0.002, "on_leave": 0.004, "flush": 0.008}


def test_what_raises_is_timed_too(profile: Profile, clock: Clock) -> None:
    def fail() -> None:
        with profile.timing("on_join"):
            clock.now += 0.25
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    take(profile, clock, "on_message", 0.125)
    assert {name: times.max for name, times in second(profile, clock).items()} == {
        "on_join": 0.25,
        "on_message": 0.125,
    }


def test_of_an_async_hook_each_step_counts_and_no_waiting(profile: Profile, clock: Clock) -> None:
    class Pause:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def hook() -> str:
        clock.now += 0.125
        await Pause()
        clock.now += 0.0625
        return "done"

    steps = iterate(profile.stepped("on_join", hook()))
    next(steps)
    clock.now += 0.5
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == "done"
    times = second(profile, clock)["on_join"]
    assert (times.count, times.max, times.p50) == (2, 0.125, 0.0625)


def iterate(awaitable: Awaitable[Any]) -> Generator[Any, Any, Any]:
    return awaitable.__await__()


def test_more_samples_than_are_kept_leave_the_count_and_the_maximum_exact(
    profile: Profile, clock: Clock
) -> None:
    count = 4 * MAX_SAMPLES
    for n in range(count):
        take(profile, clock, "on_message", 2e-6 if n % 10 else 4e-6)
    take(profile, clock, "on_message", 1e-3)
    times = second(profile, clock)["on_message"]
    assert times.count == count + 1
    assert times.max == pytest.approx(1e-3)
    assert times.p50 == pytest.approx(2e-6)
    assert times.p95 == pytest.approx(4e-6)


def test_the_last_minute_is_kept_and_quiet_seconds_are_left_out(profile: Profile, clock: Clock) -> None:
    for n in range(KEPT_S + 40):
        if n % 2:
            take(profile, clock, "tick", 0.25)
        clock.now = float(int(clock.now) + 1)
    ago = [ago for ago, _ in profile.seconds()]
    assert ago == list(range(KEPT_S - 1, 0, -2))


def test_the_second_that_runs_is_not_told(profile: Profile, clock: Clock) -> None:
    take(profile, clock, "tick", 0.25)
    assert profile.seconds() == []


def test_rows_are_bounded(profile: Profile, clock: Clock) -> None:
    for n in range(MAX_ROWS + 10):
        take(profile, clock, f"call {n}", 1e-6)
    rows = second(profile, clock)
    assert len(rows) == MAX_ROWS + 1
    assert rows[OTHER].count == 10


def test_a_minute_is_all_its_seconds_together(profile: Profile, clock: Clock) -> None:
    for n in range(1, 41):
        take(profile, clock, "on_tick", n / 1_000_000)
        if n % 10 == 0:
            clock.now = float(int(clock.now) + 1)
    covered, rows = profile.over(KEPT_S)
    times = rows["on_tick"]
    assert covered == 4
    assert times.count == 40
    assert times.total == pytest.approx(820e-6)
    assert (times.p50, times.p95, times.max) == pytest.approx((20e-6, 38e-6, 40e-6))
    assert profile.over(1)[1]["on_tick"].count == 10


def test_in_a_minute_busy_seconds_weigh_more(profile: Profile, clock: Clock) -> None:
    for _ in range(20 * MAX_DRAWN):
        take(profile, clock, "on_message", 1e-6)
    clock.now = float(int(clock.now) + 1)
    for _ in range(MAX_DRAWN):
        take(profile, clock, "on_message", 1e-3)
    clock.now = float(int(clock.now) + 1)
    _, rows = profile.over(KEPT_S)
    assert rows["on_message"].p50 == pytest.approx(1e-6)
    assert rows["on_message"].p95 == pytest.approx(1e-6)
    assert rows["on_message"].max == pytest.approx(1e-3)


def test_a_profile_that_has_just_begun_covers_nothing(profile: Profile, clock: Clock) -> None:
    take(profile, clock, "tick", 0.25)
    assert profile.over(KEPT_S) == (0, {})
