"""Buckets, clocks, caches, windows, the wake queue and the breaker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine.gate import TokenBucket
from playhall_router.breaker import Breaker
from playhall_router.cache import StaleCache
from playhall_router.client_address import client_address
from playhall_router.clock import RoomClock
from playhall_router.limits import steady_rate
from playhall_router.wake_queue import WakeQueue
from playhall_router.windows import Windows


@given(st.lists(st.floats(0, 0.3), max_size=300))
def test_a_bucket_lets_a_second_of_burst_through_and_the_rate_after(gaps: list[float]) -> None:
    bucket = TokenBucket(10, 0.0)
    now, passed = 0.0, 0
    for gap in gaps:
        now += gap
        passed += bucket.take(now)
        assert passed <= 10 + 10 * now + 0.001


def test_a_steady_stream_at_the_rate_always_passes() -> None:
    bucket = TokenBucket(70, 0.0)
    assert all(bucket.take(n / 70) for n in range(2000))


def test_the_rate_follows_the_rooms() -> None:
    bucket = TokenBucket(steady_rate(0), 0.0)
    bucket.change_rate(steady_rate(20))
    assert sum(bucket.take(0.0) for _ in range(100)) == 70


def test_a_clock_runs_on_between_reports() -> None:
    clock = RoomClock(20, 100, 64, 10.0)
    assert clock.read(10.0) == (100, 64)
    assert clock.read(10.5) == (110, 64)
    assert clock.read(9.0) == (100, 64)
    clock.report(105, 0, 10.5)
    assert clock.read(10.525) == (105, 128)


def test_a_clock_of_a_silent_host_stops() -> None:
    clock = RoomClock(20, 0, 0, 0.0)
    assert clock.read(3.0) == clock.read(60.0) == (60, 0)


def test_a_cache_is_fresh_then_stale_then_empty() -> None:
    cache: StaleCache[str, int] = StaleCache(fresh_s=1, stale_s=600, max_size=2)
    cache.put("a", 1, 0.0)
    assert (cache.fresh("a", 0.9), cache.fresh("a", 1.0), cache.stale("a", 599)) == (1, None, 1)
    assert cache.stale("a", 600) is None
    cache.put("b", 2, 1.0)
    cache.put("c", 3, 1.0)
    assert (cache.stale("a", 1.0), len(cache)) == (None, 2)
    cache.drop("b")
    cache.drop("b")
    assert cache.stale("b", 1.0) is None


def test_windows_count_per_key_and_minute() -> None:
    windows = Windows(max_keys=2)
    assert [windows.count("a", 0.0), windows.count("a", 59.0), windows.count("b", 59.0)] == [1, 2, 1]
    assert windows.count("a", 60.0) == 1
    windows.count("b", 60.0)
    windows.count("c", 60.0)
    assert windows.count("a", 60.0) == 1  # forgotten, so that memory is bounded


def test_rooms_with_most_people_are_woken_first_and_few_at_a_time() -> None:
    queue = WakeQueue(2)
    for key, people in (("one", 1), ("nine", 9), ("five", 5), ("also five", 5), ("one", 100)):
        queue.add(key, "demo", people)
    assert queue.take() == ["nine", "five"]
    assert (queue.take(), queue.running, len(queue)) == ([], 2, 2)
    queue.add("nine", "demo", 9)
    queue.done("nine")
    assert queue.take() == ["also five"]
    queue.done("five")
    queue.done("also five")
    queue.add("nine", "demo", 9)
    assert queue.take() == ["nine", "one"]


def test_slow_rooms_of_one_project_leave_wakes_for_others() -> None:
    queue = WakeQueue(4, 2)
    for number in range(32):
        queue.add(f"slow {number}", "slow", 50)
    assert queue.take() == ["slow 0", "slow 1"]
    queue.add("lone", "other", 1)
    assert queue.take() == ["lone"]
    queue.done("slow 0")
    assert queue.take() == ["slow 2"]
    queue.add("third", "third", 1)
    queue.add("late", "other", 9)
    assert queue.take() == ["late"]  # four under way, of whatever project
    queue.done("nobody's")
    queue.done("lone")
    assert (queue.take(), queue.running, len(queue)) == (["third"], 4, 29)


def test_a_breaker_opens_after_failures_in_a_row() -> None:
    breaker = Breaker(failures=2, open_s=5)
    assert not breaker.failed(0.0)
    breaker.worked()
    assert not breaker.failed(0.0)
    assert breaker.failed(1.0)
    assert not breaker.allows(5.9)
    assert breaker.allows(6.0)
    assert breaker.failed(6.0)
    assert not breaker.allows(6.1)


@pytest.mark.parametrize(
    ("forwarded", "proxies", "address"),
    [
        ([], 0, "10.0.0.1"),
        (["203.0.113.9"], 0, "10.0.0.1"),
        (["203.0.113.9"], 1, "203.0.113.9"),
        (["6.6.6.6, 203.0.113.9"], 1, "203.0.113.9"),
        (["6.6.6.6", "203.0.113.9, 10.0.0.7"], 2, "203.0.113.9"),
        ([], 1, "10.0.0.1"),
        (["203.0.113.9"], 2, "10.0.0.1"),
    ],
)
def test_only_trusted_proxies_are_believed(forwarded: list[str], proxies: int, address: str) -> None:
    assert client_address("10.0.0.1", forwarded, proxies) == address
