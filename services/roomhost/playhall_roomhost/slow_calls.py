"""Which hook of a room makes it slow: what takes longer than a tick, so that ticks are skipped.

A sans-IO core; the engine's watch times hooks. One long call is no news; half a second lost within ten
is, and is told once in ten.
"""

from __future__ import annotations

from dataclasses import dataclass

from playhall.engine.running import Watch

__all__ = ["LOST_S", "WINDOW_S", "SlowCalls", "Slowness"]

WINDOW_S = 10.0
LOST_S = 0.5


@dataclass(frozen=True, slots=True)
class Slowness:
    """What to warn of: the hook or call that took the longest, and how many ticks were skipped meanwhile."""

    hook: str
    took_s: float
    tick_s: float
    skipped: int

    def __str__(self) -> str:
        took, tick = round(self.took_s * 1000), round(self.tick_s * 1000)
        return f"{self.hook} takes {took} ms of the {tick} ms of a tick; ticks are skipped"


class SlowCalls:
    """Those of one room, which ticks every `tick_s`. `watch` calls hooks slow that take longer than that."""

    __slots__ = ("_longest", "_lost_s", "_skipped", "_told_at", "_watch", "_window_at", "tick_s")

    def __init__(self, tick_s: float, watch: Watch) -> None:
        self.tick_s = tick_s
        self._watch = watch
        self._window_at = self._told_at = float("-inf")
        self._lost_s = 0.0
        self._skipped = 0
        self._longest = ("", 0.0)

    def skip(self, ticks: int) -> None:
        """So many ticks were given up."""
        self._skipped += ticks

    def ended(self, call: str, began: float, now: float) -> Slowness | None:
        """A call into the core took longer than a tick. Returns what to warn of, if it is time to."""
        took_s = now - began
        if now - self._window_at > WINDOW_S:
            self._window_at, self._lost_s, self._skipped, self._longest = now, 0.0, 0, ("", 0.0)
        self._lost_s += took_s - self.tick_s
        hook, hook_began, hook_s = self._watch.slow
        named = (hook, hook_s) if hook_began >= began and hook_s > took_s / 2 else (call, took_s)
        self._longest = max(self._longest, named, key=lambda each: each[1])
        if self._lost_s < LOST_S or now - self._told_at < WINDOW_S:
            return None
        self._window_at, self._told_at = float("-inf"), now
        hook, longest_s = self._longest
        return Slowness(hook, longest_s, self.tick_s, self._skipped)
