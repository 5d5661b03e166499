"""Runs what the scheduler says is due, on the loop, with one timer for all rooms.

A pass runs for at most a few milliseconds, or for one tick that takes longer, then lets the loop serve its
sockets before it goes on. One turn of the loop is not enough after a long tick: an RPC takes several turns,
and heartbeats, acknowledgements and frames would fall behind for good. So the next pass waits for a share of
what the last one took, however late its ticks are.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from playhall_roomhost.scheduler import Scheduler, Tick, Timer

__all__ = ["PASS_S", "Ticker", "Turn", "pause_s"]

PASS_S = 0.005
SOCKETS_SHARE = 1 / 8
"""Of the time of a pass, how much the loop has to itself after it."""
SOCKETS_MOST_S = 0.05
# The loop's timers count whole milliseconds.
_GRAIN_S = 0.001
_NEAR_S = 0.010
# To so much are times exact that stand for whole milliseconds, of a machine that has run for years.
_EXACT_MS = 0.001

K = TypeVar("K")


def pause_s(took_s: float) -> float:
    """How long to leave the loop alone after it was busy for so long."""
    pause = min(took_s * SOCKETS_SHARE, SOCKETS_MOST_S)
    # What is below the grain of timers is the one turn that the loop makes anyway.
    return pause if pause >= _GRAIN_S else 0.0


class Turn:
    """The time that a router's batch has before the loop serves others, as a pass of ticks has. `passed` is
    called before each pause."""

    __slots__ = ("_began", "_passed", "ends_at")

    def __init__(self, passed: Callable[[], None]) -> None:
        self._passed = passed
        self._begin()

    def _begin(self) -> None:
        self._began = time.monotonic()
        self.ends_at = self._began + PASS_S
        """When it is over (mono)."""

    async def pause(self) -> float:
        """Let others have their time first; then it begins anew. Returns when (mono)."""
        self._passed()
        await asyncio.sleep(pause_s(time.monotonic() - self._began))
        self._begin()
        return self._began


class Ticker(Generic[K]):
    """Drives one scheduler. `run` is called with what is due and the time (mono), and returns when it was
    done; `passed` is called after each pass."""

    def __init__(
        self,
        scheduler: Scheduler[K],
        run: Callable[[Tick[K] | Timer[K], float], float],
        passed: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._run = run
        self._passed = passed
        self._handle: asyncio.TimerHandle | asyncio.Handle | None = None
        self._armed_for = 0.0
        self._not_before = 0.0
        self._stopped = False

    def arm(self) -> None:
        """Something may be due earlier than before. Call after every change of the scheduler."""
        due = self._scheduler.next_due()
        if due is None or self._stopped:
            return
        at = max(due, self._not_before)
        now = time.monotonic()
        if self._handle is not None:
            # The loop waits for its timers from when its turn began: one that is near would be late by what
            # the turn has taken, unless it is set anew.
            if self._armed_for <= at and at - now > _NEAR_S:
                return
            self._handle.cancel()
        loop = asyncio.get_running_loop()
        self._armed_for = at
        if at > now:
            # The loop's clock is this one in whole milliseconds, rounded down: so it is neither early, which
            # would cost a pass for nothing, nor a millisecond late.
            # What is over one by less than sums of times are exact to, counts as that one.
            wait_ms = math.ceil(at * 1000 - _EXACT_MS) - math.floor(now * 1000)
            self._handle = loop.call_later(wait_ms / 1000, self._pass)
        else:
            self._handle = loop.call_soon(self._pass)

    def stop(self) -> None:
        """No more passes."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()

    def _pass(self) -> None:
        self._handle = None
        take, took, run = self._scheduler.take, self._scheduler.took, self._run
        began = now = time.monotonic()
        over = began + PASS_S
        while now < over and (due := take(now)) is not None:
            before, now = now, run(due, now)
            if isinstance(due, Tick):
                took(due.key, now - before)
        self._not_before = now + pause_s(now - began)
        self._passed()
        self.arm()
