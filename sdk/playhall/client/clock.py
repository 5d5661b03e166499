"""The client's estimate of the room's tick.

A pong tells the room's tick as of about half a round trip before it came. The sample with the lowest
round trip of the last eight is the best guess there is, for what a queue adds on one way only is an
error. The estimate follows it by running at most 5 % fast or slow, so that nothing drawn by it jumps;
where it is off by over 250 ms (a first sample, a laptop that slept) it does jump.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["TickClock"]

SAMPLES = 8
SLEW = 0.05
JUMP_S = 0.25


@dataclass(frozen=True, slots=True)
class _Sample:
    rtt_s: float
    phase: float  # the room's tick, less the ticks since time 0


class TickClock:
    """Estimates the room's tick from pongs; `welcome` starts it over."""

    def __init__(self) -> None:
        self._rate = 0
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES)
        self._phase = 0.0
        self._target = 0.0
        self._read_at = 0.0
        self.rtt_s = 0.0

    def start(self, tick: float, tick_rate: int, now: float) -> None:
        """The room is at `tick` as far as is known. Samples of before, perhaps of another generation, go."""
        self._rate = tick_rate
        self._samples.clear()
        self._phase = self._target = tick - now * tick_rate
        self._read_at = now

    def pong(self, tick: float | None, sent_at: float, now: float) -> None:
        """A pong to a ping of `sent_at` came; `tick` is None while the room has none."""
        self.rtt_s = now - sent_at
        if tick is None or self._rate == 0:
            return
        self._samples.append(_Sample(self.rtt_s, tick - (sent_at + now) / 2 * self._rate))
        self._target = min(self._samples, key=lambda sample: sample.rtt_s).phase

    def tick(self, now: float) -> float:
        """Return the room's tick at `now`, with its fraction."""
        self._slew(now)
        return self._phase + now * self._rate

    def _slew(self, now: float) -> None:
        elapsed, self._read_at = max(0.0, now - self._read_at), max(now, self._read_at)
        off = self._target - self._phase
        if abs(off) > JUMP_S * self._rate:
            self._phase = self._target
            return
        most = SLEW * self._rate * elapsed
        self._phase += max(-most, min(most, off))
