"""The fixed timestep: exact multiples, no drift, no bunches, the earliest deadline first."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall_roomhost.scheduler import GRID_S, MAX_REPLAYED, Scheduler, Tick, Timer


def run_until(scheduler: Scheduler[str], end: float) -> list[tuple[float, Tick[str] | Timer[str]]]:
    """Take everything at exactly the moment it is due."""
    taken = []
    while (due := scheduler.next_due()) is not None and due < end:
        found = scheduler.take(due)
        assert found is not None
        taken.append((due, found))
    return taken


def ticking(*keys: str, rate: int = 20, now: float = 100.0) -> Scheduler[str]:
    scheduler: Scheduler[str] = Scheduler()
    for key in keys:
        scheduler.add(key)
        scheduler.start(key, rate, now)
    return scheduler


@pytest.mark.ledger("TERM-16")
@given(rate=st.integers(1, 120), now=st.floats(0, 1e6))
def test_ticks_are_exact_multiples_from_the_start(rate: int, now: float) -> None:
    scheduler = ticking("a", rate=rate, now=now)
    times = [at for at, _ in run_until(scheduler, now + 3.0)]
    assert abs(len(times) - 3 * rate) <= 1
    assert all(times[k] == times[0] + k / rate for k in range(len(times)))
    assert now <= times[0] <= now + 1 / rate + 1e-6


def test_rooms_that_start_together_are_spread_over_a_grid() -> None:
    scheduler = ticking(*(str(n) for n in range(100)))
    firsts = sorted(at for at, _ in run_until(scheduler, 100.05))
    assert len(firsts) == 100
    instants = Counter(firsts)
    gaps = [b - a for a, b in pairwise(sorted(instants))]
    assert gaps == pytest.approx([GRID_S], abs=0.001)
    assert all(round(at * 1_000, 6).is_integer() for at in instants)
    assert max(instants.values()) - min(instants.values()) <= 2


def test_when_rooms_tick_next_is_known_also_while_some_are_late() -> None:
    scheduler = ticking("a", "b", rate=4)
    (first, _), (second, _) = run_until(scheduler, 100.25)
    assert scheduler.next_ticks_in(100.25) == pytest.approx(first + 0.25 - 100.25)
    late = first + 0.25 + 0.01
    assert scheduler.next_ticks_in(late) == 0.0
    assert scheduler.take(late) is not None
    assert scheduler.next_ticks_in(late) == pytest.approx(second + 0.25 - late)


def test_without_rooms_that_tick_none_tick_next() -> None:
    scheduler = ticking("a")
    scheduler.remove("a")
    assert scheduler.next_ticks_in(100.0) == 0.0


def test_few_rooms_that_start_together_do_not_tick_together() -> None:
    scheduler = ticking("a", "b", "c", "d", "e", rate=4)
    assert len({at for at, _ in run_until(scheduler, 100.25)}) == 5


@given(
    starts=st.lists(st.floats(0, 2), min_size=2, max_size=40), rate=st.sampled_from([1, 7, 20, 30, 60, 120])
)
def test_a_room_that_starts_later_ticks_as_often(starts: list[float], rate: int) -> None:
    scheduler: Scheduler[str] = Scheduler()
    ran: dict[str, list[float]] = {}
    for n, start in enumerate(sorted(starts)):
        run = run_until(scheduler, start)
        for at, due in run:
            ran[due.key].append(at)
        ran[str(n)] = []
        scheduler.add(str(n))
        scheduler.start(str(n), rate, start)
    for at, due in run_until(scheduler, 5.0):
        ran[due.key].append(at)
    for start, times in zip(sorted(starts), ran.values(), strict=True):
        assert start - 1e-9 <= times[0] <= start + 1 / rate + 1e-9
        assert times == pytest.approx([times[0] + k / rate for k in range(len(times))])
        assert abs(len(times) - (5.0 - start) * rate) <= 1 + 1e-6


def test_a_late_tick_does_not_move_those_after_it() -> None:
    scheduler = ticking("a")
    first = scheduler.next_due()
    assert first is not None
    late = scheduler.take(first + 0.03)
    assert isinstance(late, Tick)
    assert late.late_s == pytest.approx(0.03)
    assert scheduler.next_due() == first + 1 / 20


def test_after_a_stall_few_ticks_are_made_up_for_and_the_rest_are_skipped() -> None:
    scheduler = ticking("a")
    first = scheduler.next_due()
    assert first is not None
    now = first + 10.5 / 20  # ticks 0 to 10 are due
    taken = []
    while (due := scheduler.take(now)) is not None:
        assert isinstance(due, Tick)
        taken.append(due)
    assert len(taken) == MAX_REPLAYED + 1
    assert [tick.skipped for tick in taken] == [8, 0, 0]
    assert scheduler.next_due() == first + 11 / 20


@given(st.lists(st.floats(0, 0.4), min_size=1, max_size=40))
def test_ticks_run_and_skipped_add_up_whatever_the_stalls(stalls: list[float]) -> None:
    scheduler = ticking("a")
    first = scheduler.next_due()
    assert first is not None
    now, ran, skipped = first, 0, 0
    for stall in stalls:
        now += stall
        in_a_row = 0
        while (due := scheduler.take(now)) is not None:
            assert isinstance(due, Tick)
            ran, skipped, in_a_row = ran + 1, skipped + due.skipped, in_a_row + 1
        assert in_a_row <= MAX_REPLAYED + 1
    assert abs(ran + skipped - (math.floor((now - first) * 20) + 1)) <= 1


def test_the_longest_due_goes_first() -> None:
    scheduler = ticking("a", "b", "c")
    order = [due.key for _, due in run_until(scheduler, 100.049)]
    late = ticking("a", "b", "c")
    taken = []
    while (due := late.take(100.049)) is not None:
        taken.append(due.key)
    assert taken == order


def simulate(costs: dict[str, float], seconds: float) -> dict[str, int]:
    """How many ticks of each room run, where a tick takes so long and one follows the other."""
    scheduler = ticking(*costs)
    ran = dict.fromkeys(costs, 0)
    now = 100.0
    while now < 100.0 + seconds:
        due = scheduler.take(now)
        if due is None:
            now = scheduler.next_due() or math.inf
            continue
        now += costs[due.key]
        scheduler.took(due.key, costs[due.key])
        ran[due.key] += 1
    return ran


def test_slow_rooms_share_what_quick_ones_leave() -> None:
    slow = {f"slow {n}": 0.12 for n in range(4)}
    ran = simulate({**slow, "quick": 0.001}, 60.0)
    assert ran["quick"] > 0.8 * 60 * 20
    of_slow = [ran[key] for key in slow]
    assert sum(of_slow) * 0.12 > 0.9 * 60
    assert max(of_slow) - min(of_slow) <= 2


def test_a_slow_room_is_not_kept_waiting_by_too_many_quick_ones() -> None:
    quick = {f"quick {n}": 0.002 for n in range(40)}
    ran = simulate({**quick, "slow": 0.12}, 60.0)
    assert ran["slow"] > 30


def test_what_waits_to_run_may_be_stopped_moved_or_removed() -> None:
    scheduler = ticking("a", "b", "c")
    scheduler.set_timer("a", 99.999)
    scheduler.set_timer("b", 100.002)
    assert scheduler.take(100.1) == Timer("a")
    for key in ("a", "b", "c"):
        scheduler.stop(key)
    scheduler.set_timer("b", 105.0)
    scheduler.remove("c")
    assert run_until(scheduler, 110.0) == [(105.0, Timer("b"))]


def test_a_timer_comes_once_and_can_be_moved() -> None:
    scheduler: Scheduler[str] = Scheduler()
    scheduler.add("a")
    scheduler.set_timer("a", 5.0)
    scheduler.set_timer("a", 9.0)
    assert scheduler.take(8.9) is None
    scheduler.set_timer("a", 7.0)
    assert scheduler.next_due() == 7.0
    assert scheduler.take(7.0) == Timer("a")
    assert scheduler.next_due() is None
    scheduler.set_timer("a", 8.0)
    scheduler.set_timer("a", None)
    assert scheduler.next_due() is None


def test_a_timer_that_is_put_off_at_every_tick_fills_nothing() -> None:
    scheduler = ticking("a")
    scheduler.set_timer("a", 130.0)
    for at, _ in run_until(scheduler, 110.0):
        scheduler.set_timer("a", at + 30.0)
    timers = [at for at, due in run_until(scheduler, 145.0) if isinstance(due, Timer)]
    assert len(timers) == 1
    assert timers[0] == pytest.approx(140.0, abs=0.06)


def test_a_stopped_room_keeps_its_timer_and_a_removed_one_nothing() -> None:
    scheduler = ticking("a", "b")
    scheduler.set_timer("a", 101.0)
    scheduler.stop("a")
    scheduler.remove("b")
    scheduler.remove("b")
    assert run_until(scheduler, 110.0) == [(101.0, Timer("a"))]


def test_the_fraction_grows_from_tick_to_tick() -> None:
    scheduler = ticking("a")
    first = scheduler.next_due()
    assert first is not None
    scheduler.take(first)
    assert scheduler.fraction("a", first) == pytest.approx(0.0, abs=1e-6)
    assert scheduler.fraction("a", first + 0.025) == pytest.approx(0.5, abs=1e-6)
    assert scheduler.fraction("a", first + 9) == 1.0
    assert scheduler.fraction("nobody", first) == 0.0
