"""Runs what the scheduler says is due, on the loop, with one timer for all rooms.

A pass runs for at most a few milliseconds, then lets the loop serve its sockets before it goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from playhall_roomhost.scheduler import Scheduler, Tick, Timer

__all__ = ["Ticker"]

PASS_S = 0.005
# The loop's timers count whole milliseconds.
_GRAIN_S = 0.001

K = TypeVar("K")


class Ticker(Generic[K]):
    """Drives one scheduler. `run` is called with what is due, `passed` after each pass."""

    def __init__(
        self, scheduler: Scheduler[K], run: Callable[[Tick[K] | Timer[K]], None], passed: Callable[[], None]
    ) -> None:
        self._scheduler = scheduler
        self._run = run
        self._passed = passed
        self._handle: asyncio.TimerHandle | asyncio.Handle | None = None
        self._armed_for = 0.0
        self._stopped = False

    def arm(self) -> None:
        """Something may be due earlier than before. Call after every change of the scheduler."""
        due = self._scheduler.next_due()
        if due is None or self._stopped or (self._handle is not None and self._armed_for <= due):
            return
        if self._handle is not None:
            self._handle.cancel()
        loop = asyncio.get_running_loop()
        self._armed_for = due
        wait_s = due - time.monotonic()
        if wait_s > 0:
            self._handle = loop.call_later(max(wait_s, _GRAIN_S), self._pass)
        else:
            self._handle = loop.call_soon(self._pass)

    def stop(self) -> None:
        """No more passes."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()

    def _pass(self) -> None:
        self._handle = None
        began = now = time.monotonic()
        while now - began < PASS_S and (due := self._scheduler.take(now)) is not None:
            self._run(due)
            now = time.monotonic()
        self._passed()
        self.arm()
