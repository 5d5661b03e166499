"""Each step of room code's coroutine is entered and left, and can end nothing but itself."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any

import pytest

from playhall.engine.steps import as_coroutine, run_marked


class Pause:
    """Awaits once, and gives what it is sent."""

    def __await__(self) -> Generator[str, None, None]:
        yield "paused"


def run(awaitable: Awaitable[Any]) -> tuple[Generator[Any, Any, Any], list[str]]:
    marks: list[str] = []
    return run_marked(awaitable, lambda: marks.append("in"), lambda: marks.append("out")), marks


def test_every_step_is_marked_and_the_result_comes_out() -> None:
    async def work() -> int:
        await Pause()
        await Pause()
        return 7

    steps, marks = run(work())
    assert next(steps) == "paused"
    assert marks == ["in", "out"]
    assert next(steps) == "paused"
    with pytest.raises(StopIteration) as stopped:
        next(steps)
    assert stopped.value.value == 7
    assert marks == ["in", "out"] * 3


def test_what_is_thrown_in_arrives_and_may_be_caught() -> None:
    async def work() -> str:
        try:
            await Pause()
        except ValueError as error:
            return str(error)
        return "nothing came"

    steps, marks = run(work())
    next(steps)
    with pytest.raises(StopIteration) as stopped:
        steps.throw(ValueError("late"))
    assert stopped.value.value == "late"
    assert marks == ["in", "out"] * 2


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_room_code_cannot_end_the_process(error: type[BaseException]) -> None:
    async def work() -> None:
        raise error

    marks: list[str] = []
    steps = run_marked(work(), lambda: marks.append("in"), lambda: marks.append("out"))
    with pytest.raises(RuntimeError, match=error.__name__):
        as_coroutine(steps).send(None)
    assert marks == ["in", "out"]


def test_an_awaitable_that_only_iterates_can_be_cancelled() -> None:
    class Plain:
        def __await__(self) -> Any:
            return iter(["paused"])

    steps, _ = run(Plain())
    assert next(steps) == "paused"
    with pytest.raises(ValueError, match="stop"):
        steps.throw(ValueError("stop"))
