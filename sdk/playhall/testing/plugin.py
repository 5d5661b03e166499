"""The pytest plugin: the fixture `room_host`, and the coroutine tests and fixtures that use it.

They need no mark and no setting, and run on a loop of their own under a clock that only the test moves. A
test that another async plugin has taken (pytest-asyncio by mark or in its auto mode, anyio by mark) is left
to that plugin, and so is every test that does not use `room_host`.

A test fails, too, if room code raised something that the test has neither been told of nor looked for in
`t.errors`, and if a coroutine was never awaited. `--playhall-seed` is what the chances of networks are drawn
from.
"""

from __future__ import annotations

import argparse
import inspect
import random
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import Any

import pytest

from playhall.testing.forgotten import forgotten_awaits
from playhall.testing.host import DEFAULT_SEED, RoomHost
from playhall.testing.loop import StillLoop

__all__ = [
    "playhall_loop",
    "pytest_addoption",
    "pytest_fixture_setup",
    "pytest_pyfunc_call",
    "pytest_runtest_makereport",
    "room_host",
]


RANDOM = "random"


def _seed(said: str) -> int | str:
    if said == RANDOM or said.isdecimal():
        return said if said == RANDOM else int(said)
    raise argparse.ArgumentTypeError(f"a number or '{RANDOM}', not {said!r}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("playhall").addoption(
        "--playhall-seed",
        type=_seed,
        default=DEFAULT_SEED,
        metavar="N",
        help="what the networks of room_host draw delays and losses from: a number, or 'random' for another"
        " one in each test, which is shown when the test fails (default: %(default)s)",
    )


@pytest.fixture
def playhall_loop() -> Generator[StillLoop, None, None]:
    """The loop that the test's coroutines run on."""
    loop = StillLoop()
    yield loop
    loop.close()


@pytest.fixture
def room_host(playhall_loop: StillLoop, pytestconfig: pytest.Config) -> Generator[RoomHost, None, None]:
    """Rooms in process, with real clients and a clock that only the test moves."""
    seed = pytestconfig.getoption("--playhall-seed")
    host = RoomHost(playhall_loop, seed=random.SystemRandom().getrandbits(32) if seed == RANDOM else seed)
    yield host
    playhall_loop.run(host.close())
    _fail_on_errors(host)


def _fail_on_errors(host: RoomHost) -> None:
    told = ""
    try:
        host.check_errors()
    except AssertionError as error:
        told = str(error)
    if told:
        pytest.fail(told, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that forgot an await: what it meant to do has not happened."""
    if "room_host" not in getattr(item, "fixturenames", ()):
        return (yield)
    with forgotten_awaits() as forgotten:
        yield
    if forgotten:
        pytest.fail("\n".join(forgotten), pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on the loop of its `room_host`."""
    if not _is_ours(pyfuncitem) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    loop, host = pyfuncitem.funcargs["playhall_loop"], pyfuncitem.funcargs["room_host"]
    assert isinstance(loop, StillLoop)
    assert isinstance(host, RoomHost)
    names = inspect.signature(pyfuncitem.obj).parameters
    loop.run(pyfuncitem.obj(**{name: value for name, value in pyfuncitem.funcargs.items() if name in names}))
    _fail_on_errors(host)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show, with a test that failed, the seed of what its networks drew."""
    report = yield
    host = getattr(item, "funcargs", {}).get("room_host")
    if report.failed and isinstance(host, RoomHost) and host.has_chance:
        text = f"this network again: --playhall-seed={host.seed}"
        report.sections.append(("playhall", text))
    return report


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
    if inspect.ismethod(func) and isinstance(request.instance, type(func.__self__)):
        # pytest gives a fixture that is a method the instance of the test; what stands for it has none.
        func = func.__func__.__get__(request.instance)

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
