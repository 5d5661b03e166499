from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator

import pytest

from playhall.testing import Deadlock, StillLoop
from playhall.testing.loop import TURNS


@pytest.fixture
def loop() -> Iterator[StillLoop]:
    loop = StillLoop()
    yield loop
    loop.close()


def test_time_stands_still_while_things_run(loop: StillLoop) -> None:
    async def many_turns() -> float:
        for _ in range(100):
            await asyncio.sleep(0)
        return loop.time()

    assert loop.run(many_turns()) == 0.0


def test_timers_run_when_the_clock_has_been_moved(loop: StillLoop) -> None:
    fired: list[float] = []

    async def test() -> float | None:
        for delay in (3.0, 1.0, 2.0):
            loop.call_later(delay, lambda: fired.append(loop.time()))
        first = await loop.idle()
        loop.move(1.0)
        await loop.idle()
        assert fired == [1.0]
        loop.move_to(5.0)
        loop.move_to(4.0)
        assert await loop.idle() is None
        return first

    assert loop.run(test()) == 1.0
    assert fired == [1.0, 5.0, 5.0]


def test_time_does_not_go_back(loop: StillLoop) -> None:
    with pytest.raises(AssertionError):
        loop.move(-1.0)


def test_waiting_for_what_cannot_come_fails_at_once(loop: StillLoop) -> None:
    async def stuck_on_a_timer() -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(3)

    async def stuck_on_nothing() -> None:
        await asyncio.Event().wait()

    for test in (stuck_on_a_timer, stuck_on_nothing):
        with pytest.raises(Deadlock, match="tick"):
            loop.run(test())
    assert loop.time() == 0.0


def test_a_test_that_will_not_hear_of_it_is_ended_all_the_same(loop: StillLoop) -> None:
    async def deaf() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(Deadlock, match="nothing to run"):
        loop.run(deaf())
    # What it left behind cannot be ended by asking; let it go before the fixture asks again.
    for task in asyncio.all_tasks(loop):
        task.get_coro().close()


def test_a_cancellation_of_the_tests_own_is_no_deadlock(loop: StillLoop) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        loop.run(cancelled())


def test_what_a_test_raises_comes_out(loop: StillLoop) -> None:
    async def fails() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        loop.run(fails())


def test_threads_are_waited_for(loop: StillLoop) -> None:
    released = threading.Event()

    async def test() -> str:
        work = asyncio.ensure_future(asyncio.to_thread(released.wait, 5))
        await asyncio.sleep(0)
        released.set()
        return "done" if await work else "late"

    assert loop.run(test()) == "done"


def test_closing_ends_what_still_runs(loop: StillLoop) -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("background")

    async def test() -> None:
        loop.keep = asyncio.ensure_future(background())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    loop.run(test())
    loop.close()
    loop.close()
    assert ended == ["background"]


def test_what_a_callback_raised_is_raised_where_it_is_asked_for(loop: StillLoop) -> None:
    async def test() -> None:
        loop.call_soon(int, "first")
        loop.call_soon(int, "second")
        await loop.idle()
        loop.raise_what_was_raised()

    with pytest.raises(ValueError, match="first"):
        loop.run(test())
    loop.raise_what_was_raised()


def test_a_deadlock_says_which_await_does_not_end(loop: StillLoop) -> None:
    async def wait_long() -> None:
        await asyncio.sleep(3600)

    async def test() -> None:
        await asyncio.sleep(0)
        await wait_long()  # here

    with pytest.raises(Deadlock, match=r"`await wait_long\(\)  # here` \(test_loop.py, line \d+\) waits"):
        loop.run(test())


def test_what_goes_on_for_ever_in_no_time_is_ended(loop: StillLoop) -> None:
    async def go_round() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    with pytest.raises(Deadlock, match=r"goes on for ever while the clock stands still"):
        loop.run(go_round())


def test_the_loop_may_go_round_often_while_the_clock_moves(loop: StillLoop) -> None:
    async def long() -> float:
        for _ in range(2 * TURNS):
            await asyncio.sleep(0)
            loop.move(0.5)
        return loop.time()

    assert loop.run(long()) == TURNS


def test_the_loop_can_be_a_runners(loop: StillLoop) -> None:
    async def test() -> str:
        return await asyncio.to_thread(lambda: "done")

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        assert runner.run(test()) == "done"
