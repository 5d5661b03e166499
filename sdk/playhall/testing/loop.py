"""An event loop whose clock stands still until the test moves it.

The loop never waits. When nothing is ready to run, then nothing will be until the clock moves, and only
the test can move it. So at that point either someone asked to be told (`idle`: the harness, which then
moves the clock to the next timer), or the test itself is waiting for what cannot come, and fails at
once.

The one thing that does take real time is a thread that `run_in_executor` or `asyncio.to_thread` started:
for those the loop waits as any other does.
"""

from __future__ import annotations

import asyncio
import linecache
import os
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from typing_extensions import TypeVarTuple, Unpack

__all__ = ["Deadlock", "StillLoop"]

# What goes wrong is shown at the line of the test; pytest --full-trace shows the rest.
__tracebackhide__ = True

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# How often a test may catch the cancellation that tells of a deadlock, before the loop gives up.
PATIENCE = 3
# How often the loop may go round with nothing left to wait for, before it takes what runs for endless.
TURNS = 20_000
THREAD_S = 30.0


class Deadlock(AssertionError):  # noqa: N818 - named for the reader of a failed test
    """The test awaits something that nothing will bring until the test itself moves the clock.

    Or something goes on for ever in no time, such as a client that answers each message with one that the
    room answers.
    """


class StillLoop(asyncio.SelectorEventLoop):
    """The loop of tests that use `room_host`: asyncio's, with a clock that is 0 at first and stands still.

    The harness moves it. Timers, `asyncio.sleep` and `asyncio.timeout` follow it; threads are really waited
    for.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._main: asyncio.Task[Any] | None = None
        self._waiting: deque[asyncio.Future[float | None]] = deque()
        self._threads = 0
        self._turns = 0
        self._deadlocks = 0
        self._verdict = ""
        self._raised: list[BaseException] = []
        super().__init__(_Selector(self))

    def time(self) -> float:
        """The seconds that the test has let pass."""
        return self._now

    def move(self, seconds: float) -> None:
        """Move the clock. Timers that are due by then run next, and see the new time.

        For the harness itself.
        """
        assert seconds >= 0, "time does not go back"
        self._now += seconds
        self._turns = 0

    def move_to(self, time: float) -> None:
        """Move the clock to `time`, unless it is there already. For the harness itself."""
        if time > self._now:
            self._now = time
            self._turns = 0

    def idle(self) -> asyncio.Future[float | None]:
        """Return a future that is set when nothing is ready to run; to when the next timer is due, if any.

        For the harness itself.
        """
        waiter: asyncio.Future[float | None] = self.create_future()
        self._waiting.append(waiter)
        return waiter

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a test or a fixture to its end. Raises Deadlock if it waits for what cannot come.

        For the harness itself.
        """
        self._deadlocks = self._turns = 0
        self._verdict = ""
        self._main = main = self.create_task(coroutine)
        try:
            return self.run_until_complete(main)
        except asyncio.CancelledError as error:
            if not self._deadlocks:
                raise
            raise Deadlock(self._verdict).with_traceback(error.__traceback__) from None
        finally:
            self._main = None

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As in any loop; what runs in a thread is really waited for. For the harness itself."""
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Log, as any loop does, and note what a callback raised, or a task that nobody awaits.

        For the harness itself.
        """
        super().default_exception_handler(context)
        error = context.get("exception")
        was_task = isinstance(context.get("future"), asyncio.Task)
        if error is not None and (was_task or context.keys() & {"handle", "listener"}):
            self._raised.append(error)

    def raise_what_was_raised(self) -> None:
        """Raise the first of what callbacks have raised, which is only logged otherwise; forget the rest.

        For the harness itself.
        """
        if self._raised:
            first = self._raised[0]
            self._raised.clear()
            raise first

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """As in any loop. For the harness itself."""
        self._threads += 1  # the one that waits for the others
        try:
            await super().shutdown_default_executor(*arguments)
        finally:
            self._threads -= 1

    def _thread_ended(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1

    def close(self) -> None:
        """Cancel what still runs, let it end, and close. For the harness itself."""
        if self.is_closed():
            return
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.run_until_complete(self.shutdown_asyncgens())
        self.run_until_complete(self.shutdown_default_executor())
        super().close()

    def wait_for_threads(self) -> float:
        """How many seconds the selector may really wait. For the harness itself."""
        return THREAD_S if self._threads else 0.0

    def turned(self) -> None:
        """The loop has gone round, and has more to run at once. For the harness itself."""
        self._turns += 1
        if self._turns > TURNS:
            self._turns = 0
            why = "goes on for ever while the clock stands still: something runs again and again"
            self._end_test(f"{why}, and waits for no tick and no timer", f"the loop {why}")

    def _running(self) -> str:
        names = [f"{task.get_name()} ({_what(task)})" for task in asyncio.all_tasks(self)]
        return ", ".join(sorted(names)) or "nothing that is known"

    def nothing_ready(self, next_timer_s: float | None) -> None:
        """Nothing can run now; the next timer is due in so many seconds, if there is one.

        For the harness itself.
        """
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None if next_timer_s is None else self._now + next_timer_s)
                return
        self._end_test(
            "waits for what cannot come before the test moves the clock: call tick() or advance() first",
            "the loop has nothing to run and no clock to wait for",
        )

    def _end_test(self, of_test: str, of_loop: str) -> None:
        """Cancel the test, which then fails at its line; raise Deadlock where there is none to cancel."""
        self._deadlocks += 1
        if self._main is None or self._main.done() or self._deadlocks > PATIENCE:
            raise Deadlock(f"{of_loop}; waiting: {self._running()}")
        self._verdict = self._verdict or f"{_where(self._main)} {of_test}"
        self._main.cancel("nothing will happen until the clock moves")


def _what(task: asyncio.Task[Any]) -> str:
    """The coroutine that a task runs."""
    coro = task.get_coro()
    return getattr(coro, "__qualname__", repr(coro))


def _where(task: asyncio.Task[Any]) -> str:
    """Say which await of a test or fixture does not end."""
    frames = task.get_stack(limit=1)
    if not frames:
        return "this"
    file, line = frames[0].f_code.co_filename, frames[0].f_lineno
    text = linecache.getline(file, line).strip()
    return f"`{text}` ({os.path.basename(file)}, line {line})"


class _Selector(selectors.BaseSelector):
    """The system's selector, asked but not waited for."""

    def __init__(self, loop: StillLoop) -> None:
        self._loop = loop
        self._selector = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        got = self._selector.select(0 if timeout == 0 else self._loop.wait_for_threads())
        if timeout == 0:
            self._loop.turned()
        elif not got:
            self._loop.nothing_ready(timeout)
        return got

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.modify(fileobj, events, data)

    def close(self) -> None:
        self._selector.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._selector.get_map()
