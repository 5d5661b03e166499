"""`Net` and `Pipe`: when frames come out of a network that is made up, and which do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.client import Net
from playhall.client.net import Pipe
from playhall.testing import StillLoop


class Bench:
    """A pipe, and what came out of it: what, and when."""

    def __init__(self, loop: StillLoop, net: Net, seed: int = 1) -> None:
        self.loop = loop
        self.pipe = Pipe(net, random.Random(seed))
        self.came: list[tuple[Any, float]] = []
        self.left: list[tuple[Any, float]] = []

    def send(self, what: object, size: int = 10, *, unreliable: bool = False) -> None:
        def note(log: list[tuple[Any, float]]) -> None:
            log.append((what, round(self.loop.time(), 6)))

        self.pipe.send(size, unreliable, partial(note, self.came), partial(note, self.left))

    async def until(self, time: float) -> None:
        while (at := await self.loop.idle()) is not None and at <= time:
            self.loop.move_to(at)
        self.loop.move_to(time)
        await self.loop.idle()

    @property
    def order(self) -> list[Any]:
        return [what for what, _ in self.came]


def run(test: Callable[[StillLoop], Coroutine[Any, Any, None]]) -> None:
    loop = StillLoop()
    try:
        loop.run(test(loop))
    finally:
        loop.close()


@pytest.fixture
def loop() -> Iterator[StillLoop]:
    loop = StillLoop()
    yield loop
    loop.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rtt": -0.1},
        {"rtt": float("nan")},
        {"jitter": float("inf")},
        {"loss": 1.0},
        {"reorder": -1.0},
        {"duplicate": 2.0},
        {"bandwidth": 0.0},
    ],
)
def test_what_no_network_can_be_is_refused_by_name(wrong: dict[str, float]) -> None:
    [name] = wrong
    with pytest.raises(ValueError, match=f"Net.{name} is"):
        Net(**wrong)  # type: ignore[arg-type]


def test_a_network_shows_what_is_special_about_it() -> None:
    assert repr(Net(rtt=0.1, loss=0.5)) == "Net(rtt=0.1, loss=0.5)"
    assert Net(rtt=0.1) == Net(rtt=0.1)


def test_without_a_net_frames_come_at_once_and_leave_before_that(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net())
        bench.send("a")
        bench.send("b", unreliable=True)
        assert (bench.order, [what for what, _ in bench.left]) == ([], ["a", "b"])
        await loop.idle()
        assert bench.came == [("a", 0.0), ("b", 0.0)]

    loop.run(test())


def test_a_frame_takes_half_the_round_trip_and_up_to_the_jitter(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(rtt=0.2, jitter=0.5))
        for n in range(50):
            bench.send(n)
            await bench.until(loop.time() + 10.0)
        took = [at - 10.0 * n for n, (_, at) in enumerate(bench.came)]
        assert min(took) < 0.12
        assert 0.55 < max(took) <= 0.6
        assert all(each >= 0.1 for each in took)

    loop.run(test())


def test_bytes_leave_one_after_the_other(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(rtt=1.0, bandwidth=1000.0))
        bench.send("a", 500)
        bench.send("b", 1000)
        assert bench.pipe.waiting == 1500
        await bench.until(0.5)
        assert bench.pipe.waiting == 1000
        await bench.until(5.0)
        assert bench.left == [("a", 0.5), ("b", 1.5)]
        assert bench.came == [("a", 1.0), ("b", 2.0)]
        bench.send("c", 100)
        await bench.until(10.0)
        assert (bench.left[-1], bench.came[-1]) == (("c", 5.1), ("c", 5.6))

    loop.run(test())


def test_a_lost_reliable_frame_comes_later_and_what_follows_waits_for_it(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(rtt=0.1, loss=0.5))
        for n in range(40):
            bench.send(n)
        await bench.until(60.0)
        assert bench.order == list(range(40))
        times = [at for _, at in bench.came]
        assert times == sorted(times)
        # Each time it is sent again costs a round trip and 0.2 s.
        assert {round((at - 0.05) / 0.3, 3) % 1 for at in times} == {0.0}
        assert times[0] < times[-1]

    loop.run(test())


def test_of_unreliable_frames_so_many_are_lost(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(loss=0.25))
        for n in range(1000):
            bench.send(n, unreliable=True)
            await loop.idle()
        assert 700 < len(bench.came) < 800
        assert bench.order == sorted(bench.order, key=int)
        assert len(bench.left) == 1000

    loop.run(test())


def test_some_are_overtaken_and_some_come_twice(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(reorder=0.2, duplicate=0.2))
        for n in range(200):
            bench.send(n, unreliable=True)
            await bench.until(loop.time() + 0.01)
        await bench.until(loop.time() + 1.0)
        came = bench.order
        assert set(came) == set(range(200))
        assert 220 < len(came) < 260
        firsts = list(dict.fromkeys(came))
        assert firsts != sorted(firsts, key=int)
        late = [at - int(str(n)) * 0.01 for n, at in bench.came]
        assert max(late) <= 0.1
        bench.came.clear()
        for n in range(50):
            bench.send(n)
        await bench.until(loop.time() + 1.0)
        assert bench.order == list(range(50))

    loop.run(test())


def test_an_unreliable_frame_does_not_queue(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(bandwidth=1000.0))
        bench.send("big", 4097)
        bench.send("stale", unreliable=True)
        assert bench.left == [("stale", 0.0)]
        await bench.until(5.0)
        bench.send("fresh", unreliable=True)
        await bench.until(10.0)
        assert bench.order == ["big", "fresh"]

    loop.run(test())


def test_what_is_in_a_pipe_that_is_cut_stays_there_until_it_is_mended(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(rtt=1.0))
        bench.send("before")
        bench.send("lost", unreliable=True)
        await bench.until(0.25)
        bench.pipe.cut()
        bench.pipe.cut()
        bench.send("meanwhile", 7)
        bench.send("lost too", unreliable=True)
        assert bench.pipe.waiting == 7
        await bench.until(100.0)
        assert bench.came == []
        bench.pipe.mend()
        bench.pipe.mend()
        await bench.until(200.0)
        assert bench.came == [("before", 100.25), ("meanwhile", 100.5)]
        assert (bench.pipe.waiting, bench.left[-1]) == (0, ("meanwhile", 100.0))

    loop.run(test())


def test_closing_loses_what_is_under_way(loop: StillLoop) -> None:
    async def test() -> None:
        bench = Bench(loop, Net(rtt=1.0))
        bench.send("a")
        bench.pipe.close()
        await bench.until(10.0)
        assert bench.came == []

    loop.run(test())


def test_what_a_receiver_raises_keeps_nothing_else_back(loop: StillLoop) -> None:
    async def test() -> None:
        problems: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, problem: problems.append(problem))
        bench = Bench(loop, Net())

        def fail() -> None:
            raise KeyError("mine")

        bench.pipe.send(1, False, fail)
        bench.send("next")
        await loop.idle()
        assert bench.order == ["next"]
        assert isinstance(problems[0]["exception"], KeyError)

    loop.run(test())


NETS = st.builds(
    Net,
    rtt=st.sampled_from([0.0, 0.1, 2.0]),
    jitter=st.sampled_from([0.0, 0.05]),
    loss=st.sampled_from([0.0, 0.3]),
    reorder=st.sampled_from([0.0, 0.5]),
    duplicate=st.sampled_from([0.0, 0.5]),
    bandwidth=st.sampled_from([None, 100.0]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 300), st.booleans()),
        st.tuples(st.just("wait"), st.floats(0, 3), st.none()),
        st.tuples(st.sampled_from(["cut", "mend"]), st.none(), st.none()),
    ),
    max_size=30,
)


async def play(bench: Bench, steps: list[tuple[str, Any, Any]]) -> list[tuple[Any, float]]:
    for n, (step, amount, unreliable) in enumerate(steps):
        match step:
            case "send":
                bench.send((n, unreliable), amount, unreliable=unreliable)
            case "wait":
                await bench.until(bench.loop.time() + amount)
            case "cut":
                bench.pipe.cut()
            case _:
                bench.pipe.mend()
    bench.pipe.mend()
    await bench.until(bench.loop.time() + 1e4)
    return bench.came


@given(NETS, STEPS, st.integers(0, 3))
def test_whatever_happens_reliable_frames_come_once_and_in_order(
    net: Net, steps: list[tuple[str, Any, Any]], seed: int
) -> None:
    async def test(loop: StillLoop) -> None:
        bench = Bench(loop, net, seed)
        came = await play(bench, steps)
        sent = [(n, unreliable) for n, (step, _, unreliable) in enumerate(steps) if step == "send"]
        assert [what for what, _ in came if what[1] is False] == [each for each in sent if not each[1]]
        assert {what for what, _ in came} <= set(sent)
        assert sorted(what for what, _ in bench.left) == sorted(sent)
        assert bench.pipe.waiting == 0

    run(test)


@given(NETS, STEPS)
def test_the_same_seed_is_the_same_schedule(net: Net, steps: list[tuple[str, Any, Any]]) -> None:
    seen: list[list[tuple[Any, float]]] = []

    async def test(loop: StillLoop) -> None:
        seen.append(await play(Bench(loop, net, 7), steps))

    run(test)
    run(test)
    assert seen[0] == seen[1]
