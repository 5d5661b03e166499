"""A network that is made up: how long frames take from end to end, and which are lost.

`Net` says what the network is like; a `Pipe` is one direction of one connection over it. Both the harness
(under the test's clock) and `simulate=` (in real time) are made of pipes.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeAlias

from playhall.client.transport import STALE_BYTES

__all__ = ["Net", "Pipe"]

# What a TCP sender waits, beyond a round trip, before it sends again what was not acknowledged.
RETRANSMIT_S = 0.2
MAX_RETRANSMITS = 10
# What is overtaken or comes twice comes within a round trip of its time, or within this.
SPREAD_S = 0.05
# Sums of floats: a time this close has come.
CLOSE_ENOUGH_S = 1e-6

Call: TypeAlias = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Net:
    """What the network between a client and its router is like. Raises ValueError for what none can be.

    Frames are of two sorts. Reliable ones, which is all but unreliable messages, come in order and each once,
    as over TCP. Unreliable ones come in order too, but for those that `loss`, `reorder` and `duplicate` pick,
    independently of the reliable ones; one that would wait behind more than 4 KB is dropped.
    """

    rtt: float = 0.0
    """Seconds there and back: every frame takes half of it. To open a connection takes one more."""
    jitter: float = 0.0
    """Each frame takes up to so many seconds longer, evenly spread. It reorders nothing."""
    loss: float = 0.0
    """Of a frame, the chance (below 1) to be lost. A reliable one is sent again, `rtt` + 0.2 s later each
    time, and what was sent after it waits."""
    reorder: float = 0.0
    """Of an unreliable frame, the chance to be held back, for up to max(`rtt`, 0.05 s), where later ones
    overtake it."""
    duplicate: float = 0.0
    """Of an unreliable frame, the chance to come again, up to max(`rtt`, 0.05 s) later."""
    bandwidth: float | None = None
    """Bytes a second, each way: frames leave one after the other. None: no limit."""
    seed: int | None = None
    """What the chances are drawn from. None: the host's seed in tests, another each time in `simulate=`."""

    def __post_init__(self) -> None:
        for name in ("rtt", "jitter"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"Net.{name} is seconds, 0 or more, not {getattr(self, name)!r}")
        for name in ("loss", "reorder", "duplicate"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(
                    f"Net.{name} is a chance, from 0 up to but not 1, not {getattr(self, name)!r}"
                )
        if self.bandwidth is not None and not 0.0 < self.bandwidth < math.inf:
            raise ValueError(f"Net.bandwidth is bytes a second, more than 0, not {self.bandwidth!r}")

    @property
    def has_chance(self) -> bool:
        """Whether anything about it is drawn."""
        return bool(self.jitter or self.loss or self.reorder or self.duplicate)

    def __repr__(self) -> str:
        said = (
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default
        )
        return f"Net({', '.join(said)})"


class Pipe:
    """One direction of a connection over a `Net`, by the clock of the running event loop.

    `net` may be changed at any time, for what is sent from then on. `rng` is where chances are drawn from.
    """

    def __init__(self, net: Net, rng: random.Random) -> None:
        self.net = net
        self.waiting = 0
        """Bytes that have not left yet."""
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._due: list[tuple[float, int, bool, Call]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.Handle | None = None
        self._free_at = -math.inf
        self._reliable_at = -math.inf
        self._unreliable_at = -math.inf
        # While the pipe is cut its clock stands still: all that is in it stays as it is.
        self._cut_at: float | None = None
        self._stood_s = 0.0

    def send(self, size: int, unreliable: bool, arrived: Call, left: Call | None = None) -> None:
        """Send a frame of `size` bytes. `arrived` is called at the other end when it comes, if it does.

        `left` is called once the sender is rid of the bytes: at once where nothing holds them up, also
        when they are dropped.
        """
        now = self._now()
        if unreliable and (self._cut_at is not None or self.waiting > STALE_BYTES):
            _call(left)
            return
        leaves = self._leave(now, size, left)
        if unreliable:
            self._send_unreliable(leaves, arrived)
        else:
            lost = 0
            while lost < MAX_RETRANSMITS and self._happens(self.net.loss):
                lost += 1
            at = leaves + self._way() + lost * (self.net.rtt + RETRANSMIT_S)
            self._reliable_at = max(self._reliable_at, at)
            self._put(self._reliable_at, False, arrived)
        self._arm()

    def cut(self) -> None:
        """Let nothing through, and tell nobody. Unreliable frames that are under way are lost."""
        if self._cut_at is None:
            self._cut_at = self._loop.time()
            self._due = [item for item in self._due if not item[2]]
            heapq.heapify(self._due)
            self._arm()

    def mend(self) -> None:
        """Let through again, from where it was cut. Reliable frames are late by the time between."""
        if self._cut_at is not None:
            self._stood_s += self._loop.time() - self._cut_at
            self._cut_at = None
            self._arm()

    def close(self) -> None:
        """Lose all that is under way."""
        self._due.clear()
        self.waiting = 0
        self._arm()

    def _now(self) -> float:
        return (self._loop.time() if self._cut_at is None else self._cut_at) - self._stood_s

    def _leave(self, now: float, size: int, left: Call | None) -> float:
        """Queue the bytes, and return when they will have left."""
        self._free_at = max(now, self._free_at) + size / (self.net.bandwidth or math.inf)
        if self._free_at <= now and self._cut_at is None:
            _call(left)
            return now
        self.waiting += size

        def leave() -> None:
            self.waiting -= size
            _call(left)

        self._put(self._free_at, False, leave)
        return self._free_at

    def _send_unreliable(self, leaves: float, arrived: Call) -> None:
        if self._happens(self.net.loss):
            return
        at, spread = leaves + self._way(), max(self.net.rtt, SPREAD_S)
        if self._happens(self.net.reorder):
            at += spread * (1.0 - self._rng.random())
        else:
            at = self._unreliable_at = max(self._unreliable_at, at)
        self._put(at, True, arrived)
        if self._happens(self.net.duplicate):
            self._put(at + spread * self._rng.random(), True, arrived)

    def _way(self) -> float:
        return self.net.rtt / 2 + (self.net.jitter and self.net.jitter * self._rng.random())

    def _happens(self, chance: float) -> bool:
        return chance > 0.0 and self._rng.random() < chance

    def _put(self, at: float, unreliable: bool, call: Call) -> None:
        heapq.heappush(self._due, (at, next(self._numbers), unreliable, call))

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._due or self._cut_at is not None:
            return
        at = self._due[0][0]
        if self._is_due(at):
            self._timer = self._loop.call_soon(self._run)
        else:
            self._timer = self._loop.call_at(at + self._stood_s, self._run)

    def _is_due(self, at: float) -> bool:
        return at <= self._now() + CLOSE_ENOUGH_S

    def _run(self) -> None:
        self._timer = None
        try:
            while self._due and self._cut_at is None and self._is_due(self._due[0][0]):
                heapq.heappop(self._due)[3]()
        finally:
            self._arm()


def _call(call: Call | None) -> None:
    if call is not None:
        call()
