"""What is told of a room whose code takes longer than its ticks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from playhall.engine.running import Watch
from playhall.engine.watch import HOOK_BYTES
from playhall_roomhost.slow_calls import WINDOW_S, SlowCalls, Slowness


def watch_by(clock: Callable[[], float]) -> Watch:
    return Watch(memoryview(bytearray(HOOK_BYTES)), 0.05, clock)


@pytest.fixture
def slow_calls() -> SlowCalls:
    return SlowCalls(0.05, watch_by(lambda: 0.0))


def told(slow_calls: SlowCalls, took_s: float, seconds: float) -> list[tuple[float, Slowness]]:
    """What is told, and when, of a room whose calls follow each other."""
    found, now = [], 0.0
    while now < seconds:
        slow_calls.skip(1)
        slowness = slow_calls.ended("tick", now, now + took_s)
        now += took_s
        if slowness is not None:
            found.append((now, slowness))
    return found


def test_a_slow_room_is_told_of_soon_and_then_once_in_ten_seconds(slow_calls: SlowCalls) -> None:
    found = told(slow_calls, 0.12, 60.0)
    assert found[0][0] < 2.0
    assert len(found) == pytest.approx(60 / WINDOW_S, abs=1)
    first = found[0][1]
    assert (first.hook, first.skipped) == ("tick", 7)
    assert str(first) == "tick takes 120 ms of the 50 ms of a tick; ticks are skipped"


def test_a_little_over_or_once_is_not_told(slow_calls: SlowCalls) -> None:
    assert told(slow_calls, 0.051, 60.0) == []
    assert slow_calls.ended("tick", 100.0, 100.4) is None
    assert slow_calls.ended("tick", 200.0, 200.4) is None
    assert slow_calls.ended("frame", 300.0, 300.6) is not None


def test_the_hook_that_took_the_time_is_named() -> None:
    times = iter([10.0, 10.6, 20.0, 20.06])
    watch = watch_by(lambda: next(times))
    slow_calls = SlowCalls(0.05, watch)
    watch.enter("call dig")
    watch.leave()
    slowness = slow_calls.ended("frame", 10.0, 10.7)
    assert slowness is not None
    assert slowness.hook == "call dig"
    assert slowness.took_s == pytest.approx(0.6)
    # A hook of another call is not this one's, and one that took a small part of it is not to blame.
    watch.enter("on_tick")
    watch.leave()
    for began in (15.0, 20.0):
        slowness = slow_calls.ended("tick", began, began + 0.8)
    assert slowness is not None
    assert slowness.hook == "tick"
