"""Running an author's awaitable so that each of its steps is seen as the room's.

A coroutine runs in many short steps, between which other rooms have their turn. The supervisor must know
whose code blocks the loop, so each step is entered and left like any call into the room.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

__all__ = ["as_coroutine", "run_marked"]


@types.coroutine
def run_marked(
    awaitable: Awaitable[Any], enter: Callable[[], None], leave: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """Await `awaitable`, with `enter` before each of its steps and `leave` after it."""
    steps = awaitable.__await__()
    thrown: BaseException | None = None
    while True:
        enter()
        try:
            yielded = next(steps) if thrown is None else _throw(steps, thrown)
        except StopIteration as stop:
            return stop.value
        finally:
            leave()
        thrown = None
        try:
            yield yielded  # asyncio sends nothing back but exceptions
        except GeneratorExit:
            if isinstance(steps, Generator):
                steps.close()
            raise
        except BaseException as error:
            thrown = error


async def as_coroutine(awaitable: Awaitable[Any]) -> Any:
    """Return what a task can be made of: any awaitable is none. Tracebacks start here, in the SDK.

    SystemExit and KeyboardInterrupt, with which asyncio would let one task end the process, come out as
    RuntimeError.
    """
    try:
        return await awaitable
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"room code raised {type(error).__name__}") from error


def _throw(steps: Iterator[Any], error: BaseException) -> Any:
    throw = getattr(steps, "throw", None)
    if throw is None:
        raise error
    return throw(error)
