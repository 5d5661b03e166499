"""Running room code: what it raises, what it leaves to be awaited, and for how long."""

from __future__ import annotations

from asyncio import CancelledError
from functools import partial
from typing import Any

import pytest

from playhall.engine.hooks import MAX_AWAITS_OF_LINK, Hooks
from playhall.engine.outputs import AwaitOut, CancelOut
from playhall.engine.running import Watch
from playhall.engine.watch import HOOK_BYTES


class Outcome:
    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.ends: list[BaseException | None] = []
        self.hooks = Hooks(self.outputs.append)

    def run(self, call: Any, *, mono: float = 0.0, link: int | None = None, name: str = "hook") -> None:
        self.hooks.run(name, call, self.ends.append, mono=mono, timeout_s=10.0, link=link)


@pytest.fixture
def outcome() -> Outcome:
    return Outcome()


async def wait() -> None:
    """Something to await, which no test runs."""


def test_a_hook_that_is_done_when_it_returns(outcome: Outcome) -> None:
    outcome.run(lambda: None)
    assert outcome.ends == [None]
    assert outcome.outputs == []
    assert outcome.hooks.next_deadline is None


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), RecursionError(), CancelledError()])
def test_what_a_hook_raises_is_its_end(outcome: Outcome, error: BaseException) -> None:
    def fail() -> None:
        raise error

    outcome.run(fail)
    assert outcome.ends == [error]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_the_caller_is_not_the_hooks(outcome: Outcome, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        outcome.run(fail)
    assert outcome.ends == []


def test_hooks_say_which_runs_and_when_it_returns() -> None:
    page = bytearray(HOOK_BYTES)
    times = iter([1.0, 1.25, 2.0, 4.5, 5.0, 5.5])
    watch = Watch(memoryview(page), 2.0, lambda: next(times))
    hooks = Hooks(lambda output: None, watch=watch)
    heard: list[str] = []

    def note(when: str) -> None:
        heard.append(f"{when} {page.split(bytes(1))[0].decode()}")

    def fail() -> None:
        note("in")
        raise ValueError

    for name in ("on_tick", "call dig", f"call {'x' * 80}"):
        hooks.run(name, fail, lambda error: note("after"), mono=0.0, timeout_s=10.0)
    assert heard == ["in on_tick", "after ", "in call dig", "after ", f"in call {'x' * 59}", "after "]
    assert watch.slow == ("call dig", 2.0, 2.5)


def test_an_awaitable_is_handed_out_and_settles_once(outcome: Outcome) -> None:
    awaitable = wait()
    outcome.run(lambda: awaitable)
    assert outcome.outputs == [AwaitOut(1, awaitable, 10.0, "hook")]
    assert (outcome.ends, len(outcome.hooks), outcome.hooks.next_deadline) == ([], 1, 10.0)
    outcome.hooks.settle(1, None)
    outcome.hooks.settle(1, ValueError())
    assert outcome.ends == [None]
    awaitable.close()


def test_an_awaitable_that_takes_too_long_ends_in_a_timeout(outcome: Outcome) -> None:
    awaitable = wait()
    outcome.run(lambda: awaitable, mono=5.0)
    outcome.hooks.expire(14.9)
    assert outcome.ends == []
    outcome.hooks.expire(15.0)
    assert outcome.outputs[-1] == CancelOut(1)
    assert isinstance(outcome.ends[0], TimeoutError)
    outcome.hooks.settle(1, None)
    assert len(outcome.ends) == 1
    awaitable.close()


def test_what_is_dropped_is_cancelled_and_never_ends(outcome: Outcome) -> None:
    awaitables = [wait(), wait()]
    outcome.run(lambda: awaitables[0], link=7, name="on_join")
    outcome.run(lambda: awaitables[1], link=7, name="on_message")
    outcome.hooks.drop("on_join", 7)
    assert outcome.outputs[-1] == CancelOut(1)
    outcome.hooks.settle(1, None)
    assert outcome.ends == []
    outcome.hooks.settle(2, None)
    assert outcome.ends == [None]
    for awaitable in awaitables:
        awaitable.close()


def test_a_connection_may_have_so_many_hooks_waiting(outcome: Outcome) -> None:
    awaitables = [wait() for _ in range(MAX_AWAITS_OF_LINK)]
    for awaitable in awaitables:
        assert outcome.hooks.has_room(1)
        outcome.run(lambda awaitable=awaitable: awaitable, link=1)
    assert not outcome.hooks.has_room(1)
    assert outcome.hooks.has_room(2)
    outcome.hooks.settle(1, None)
    assert outcome.hooks.has_room(1)
    for awaitable in awaitables:
        awaitable.close()


def test_what_is_deferred_runs_after_the_outermost_hook(outcome: Outcome) -> None:
    order: list[str] = []

    def inner() -> None:
        outcome.hooks.defer(lambda: order.append("deferred"))
        order.append("inner")

    def outer() -> None:
        outcome.run(inner)
        order.append("outer")

    outcome.run(outer)
    assert order == ["inner", "outer", "deferred"]
    outcome.hooks.defer(lambda: order.append("at once"))
    assert order[-1] == "at once"


def test_what_is_deferred_may_be_any_number_of_hooks(outcome: Outcome) -> None:
    count = 2_000
    ran: list[int] = []

    def leave(number: int) -> None:
        outcome.run(lambda: ran.append(number))

    def kick_all() -> None:
        for number in range(count):
            outcome.hooks.defer(partial(leave, number))

    outcome.run(kick_all)
    assert ran == list(range(count))


@pytest.mark.parametrize(("nests", "expected"), [(True, [1, "more", 2]), (False, [1, 2, "more"])])
def test_what_deferred_work_defers_runs_within_it_if_it_nests(
    outcome: Outcome, nests: bool, expected: list[Any]
) -> None:
    order: list[Any] = []

    def work() -> None:
        order.append(1)
        outcome.hooks.defer(lambda: order.append("more"))
        order.append(2)

    outcome.hooks.defer(work, nests=nests)
    assert order == expected


def test_what_is_deferred_while_held_waits_for_the_end(outcome: Outcome) -> None:
    order: list[str] = []
    with outcome.hooks.holding():
        outcome.run(lambda: outcome.hooks.defer(lambda: order.append("deferred")))
        order.append("held")
    assert order == ["held", "deferred"]


def test_after_stop_nothing_runs(outcome: Outcome) -> None:
    awaitable = wait()
    outcome.run(lambda: awaitable)
    ran: list[int] = []

    def stop() -> None:
        outcome.hooks.defer(lambda: ran.append(1))
        outcome.hooks.stop()

    outcome.run(stop)
    assert (ran, len(outcome.hooks)) == ([], 0)
    assert outcome.outputs[-1] == CancelOut(1)
    awaitable.close()
