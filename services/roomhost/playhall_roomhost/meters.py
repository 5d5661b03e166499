"""Metrics of a room host process. Its supervisor adds up those of all its processes and serves them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from playhall_common.metrics import REGISTRY, Counter, Gauge

__all__ = [
    "LATE_S",
    "Timing",
    "Timings",
    "connections",
    "durable_lag",
    "frames_dropped",
    "rooms",
    "rooms_stopped",
    "stream_bytes",
    "tick_late",
    "tick_seconds",
    "ticks_late",
    "ticks_skipped",
    "unacked_bytes",
]  # fmt: skip

_TICK_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1)
_LATE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
LATE_S = 0.05


class Timing:
    """The times of one label: how many up to each bound, and their sum."""

    __slots__ = ("_bounds", "counts", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds


class Timings:
    """A histogram for what happens thousands of times a second, on one thread.

    It is served as one of prometheus_client's, which takes locks and 1.5 us for each time.
    """

    def __init__(self, name: str, text: str, label: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._label = label
        self._bounds = bounds
        self._timings: dict[str, Timing] = {}
        REGISTRY.register(self)

    def labels(self, value: str) -> Timing:
        """The times of this label value."""
        timing = self._timings.get(value)
        if timing is None:
            timing = self._timings[value] = Timing(self._bounds)
        return timing

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """As prometheus_client wants it."""
        family = HistogramMetricFamily(self._name, self._text, labels=[self._label])
        names = [floatToGoString(bound) for bound in (*self._bounds, math.inf)]  # type: ignore[no-untyped-call]
        for value, timing in list(self._timings.items()):
            buckets = list(zip(names, map(float, accumulate(timing.counts)), strict=True))
            family.add_metric([value], buckets, timing.seconds)
        yield family


rooms = Gauge("playhall_roomhost_rooms", "Rooms, by where they are in their life.", ["status"])
connections = Gauge("playhall_roomhost_connections", "Connections that rooms know.")
tick_seconds = Timings(
    "playhall_roomhost_tick_seconds", "How long a tick of a room takes.", "room_type", _TICK_BUCKETS
)
tick_late = Timings(
    "playhall_roomhost_tick_late_seconds", "How late ticks start.", "room_type", _LATE_BUCKETS
)
ticks_late = Counter("playhall_roomhost_ticks_late", "Ticks that started over 50 ms late.", ["room_type"])
ticks_skipped = Counter(
    "playhall_roomhost_ticks_skipped", "Ticks given up because they were too late.", ["room_type"]
)
rooms_stopped = Counter("playhall_roomhost_rooms_stopped", "Rooms that ended by an error.", ["room_type"])
frames_dropped = Counter(
    "playhall_roomhost_frames_dropped", "Unreliable frames dropped because a router is slow."
)
durable_lag = Gauge("playhall_roomhost_durable_lag_seconds", "Age of the oldest record that is not durable.")
unacked_bytes = Gauge("playhall_roomhost_unacked_bytes", "Records and bases that are not durable.")
stream_bytes = Gauge("playhall_roomhost_stream_bytes", "What waits to go to routers.")
