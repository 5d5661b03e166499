"""The pytest plugin: the fixture `room_host`, and the coroutine tests and fixtures that use it.

They need no mark and no setting, and run on a loop of their own under a clock that only the test moves. A
test that another async plugin has taken (pytest-asyncio by mark or in its auto mode, anyio by mark) is left
to that plugin, and so is every test that does not use `room_host`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import Any

import pytest

from playhall.testing.host import RoomHost
from playhall.testing.loop import StillLoop

__all__ = ["playhall_loop", "pytest_fixture_setup", "pytest_pyfunc_call", "room_host"]


@pytest.fixture
def playhall_loop() -> Generator[StillLoop, None, None]:
    """The loop that the test's coroutines run on."""
    loop = StillLoop()
    yield loop
    loop.close()


@pytest.fixture
def room_host(playhall_loop: StillLoop) -> Generator[RoomHost, None, None]:
    """Rooms in process, with real clients and a clock that only the test moves."""
    host = RoomHost(playhall_loop)
    yield host
    playhall_loop.run(host.close())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on the loop of its `room_host`."""
    if not _is_ours(pyfuncitem) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    loop = pyfuncitem.funcargs["playhall_loop"]
    assert isinstance(loop, StillLoop)
    names = inspect.signature(pyfuncitem.obj).parameters
    loop.run(pyfuncitem.obj(**{name: value for name, value in pyfuncitem.funcargs.items() if name in names}))
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Let an async fixture of such a test run on the same loop, seen by pytest as a plain one."""
    func = fixturedef.func
    plain = _plain(func, request) if _is_ours(request.node) else None
    if plain is None:
        return (yield)
    fixturedef.func = plain  # type: ignore[misc]
    try:
        return (yield)
    finally:
        fixturedef.func = func  # type: ignore[misc]


def _is_ours(item: object) -> bool:
    """Whether the test uses room_host, and no other async plugin has taken it."""
    names = getattr(item, "fixturenames", ())
    taken = "anyio_backend" in names or type(item).__module__.startswith("pytest_asyncio")
    return "room_host" in names and not taken


def _plain(func: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any] | None:
    """Return a fixture function that does the same as an async one, or None if it is not async."""

    def loop() -> StillLoop:
        found: StillLoop = request.getfixturevalue("playhall_loop")
        return found

    if inspect.isasyncgenfunction(func):

        @wraps(func)
        def with_teardown(**arguments: Any) -> Generator[Any, None, None]:
            generator: AsyncGenerator[Any, None] = func(**arguments)
            yield loop().run(anext(generator))
            loop().run(_finish(generator))

        return with_teardown
    if inspect.iscoroutinefunction(func):

        @wraps(func)
        def without_teardown(**arguments: Any) -> Any:
            return loop().run(func(**arguments))

        return without_teardown
    return None


async def _finish(generator: AsyncGenerator[Any, None]) -> None:
    try:
        await anext(generator)
    except StopAsyncIteration:
        return
    await generator.aclose()
    raise RuntimeError("an async fixture yields once")
