"""Metrics for Prometheus: the process's registry, and /metrics.

Names start with `playhall_` and use base units. No label may have values that grow with players or rooms.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from playhall_common.address import join_host_port, split_host_port

__all__ = ["REGISTRY", "Counter", "Gauge", "Histogram", "Timing", "Timings", "serve"]

# One more series for each one, of a time that nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Timing:
    """How many times were up to each bound and over the one before, and their sum."""

    __slots__ = ("_bounds", "counts", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Something took so long, or so many things did."""
        self.counts[bisect_left(self._bounds, seconds)] += times
        self.seconds += seconds * times


class Timings:
    """A histogram for what happens thousands of times a second, on one thread. It is served as those of
    prometheus_client are, which take locks, and 1.5 us each time."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = bounds
        self._timings: dict[tuple[str, ...], Timing] = {}
        REGISTRY.register(self)

    def labels(self, *values: str) -> Timing:
        """The times of these values of the labels."""
        timing = self._timings.get(values)
        if timing is None:
            timing = self._timings[values] = Timing(self._bounds)
        return timing

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """As prometheus_client wants it."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [floatToGoString(bound) for bound in (*self._bounds, math.inf)]  # type: ignore[no-untyped-call]
        for values, timing in list(self._timings.items()):
            buckets = list(zip(names, map(float, accumulate(timing.counts)), strict=True))
            family.add_metric(values, buckets, timing.seconds)
        yield family


def serve(address: str) -> str:
    """Serve /metrics on host:port and give the address that was bound.

    A daemon thread answers until the process ends, so that a drain can be watched to its end. Raises OSError
    where the address cannot be bound.
    """
    from prometheus_client import start_http_server  # its HTTP server is needed by those who ask only

    host, port = split_host_port(address)
    server, _ = start_http_server(port, host)
    return join_host_port(host, server.server_port)
