"""A histogram of many times is served as one of prometheus_client's."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram

from playhall_common.metrics import REGISTRY, Timings

BOUNDS = (0.001, 0.005, 0.05, 1)
TIMES = (0.0, 0.001, 0.0011, 0.02, 0.05, 3.0, 3.0)


def test_it_looks_as_the_real_one() -> None:
    real = Histogram(
        "playhall_test_seconds", "Times.", ["kind"], buckets=BOUNDS, registry=CollectorRegistry()
    )
    ours = Timings("playhall_test_seconds", "Times.", ["kind"], BOUNDS)
    try:
        for seconds in TIMES:
            real.labels("a").observe(seconds)
        for seconds in TIMES[:-2]:
            ours.labels("a").observe(seconds)
        ours.labels("a").observe(3.0, 2)
        (expected,), (got,) = list(real.collect()), list(ours.collect())
        assert (got.name, got.documentation, got.type) == (
            expected.name,
            expected.documentation,
            expected.type,
        )
        named = {(s.name, tuple(s.labels.items())): s.value for s in expected.samples}
        assert {(s.name, tuple(s.labels.items())): s.value for s in got.samples} == named
    finally:
        REGISTRY.unregister(ours)
