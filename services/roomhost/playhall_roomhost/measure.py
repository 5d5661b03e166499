"""Metrics across processes: each reports its own, the supervisor serves their sums.

Counters and histograms of a process that ended stay in the sums; gauges go with it. Of a gauge in seconds,
an age, the largest is served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from playhall_common.metrics import REGISTRY
from playhall_roomhost.messages import Family, Sample

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["Sums", "families"]

PREFIX = "playhall_roomhost_"
MAX_FAMILIES = 100
MAX_SAMPLES = 10_000
_TYPES = frozenset({"counter", "gauge", "histogram"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")

Key = tuple[str, tuple[tuple[str, str], ...]]


def families() -> list[Family]:
    """The room host's metrics in this process."""
    return [
        Family(
            metric.name, metric.documentation, metric.type,
            [
                Sample(sample.name, dict(sample.labels), sample.value)
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ],
        )
        for metric in REGISTRY.collect()
        if metric.name.startswith(PREFIX)
    ]  # fmt: skip


class Sums:
    """A collector for prometheus_client."""

    def __init__(self) -> None:
        self._live: dict[str, list[Family]] = {}
        self._ended: dict[Key, float] = {}
        self._kinds: dict[str, tuple[str, str]] = {}

    def update(self, process: str, reported: Iterable[Family]) -> None:
        """What a process reports now. It may report anything; what is no metric of ours is left out."""
        kept = [family for family in reported if family.name.startswith(PREFIX)][:MAX_FAMILIES]
        self._live[process] = [family for family in kept if _is_served(family)]
        for family in self._live[process]:
            if len(self._kinds) < MAX_FAMILIES:
                self._kinds.setdefault(family.name, (family.type, family.help))

    def end(self, process: str) -> None:
        """The process is gone."""
        for family in self._live.pop(process, ()):
            if family.type in ("counter", "histogram") and len(self._ended) < MAX_SAMPLES:
                for sample in family.samples:
                    key = _key(sample)
                    self._ended[key] = self._ended.get(key, 0.0) + sample.value

    def collect(self) -> Iterator[Metric]:
        """The sums as prometheus_client wants them."""
        from prometheus_client import Metric

        values = dict(self._ended)
        for reported in self._live.values():
            for family in reported:
                worst = family.type == "gauge" and family.name.endswith("_seconds")
                for sample in family.samples:
                    key = _key(sample)
                    before = values.get(key, 0.0)
                    values[key] = max(before, sample.value) if worst else before + sample.value
        for name, (kind, text) in self._kinds.items():
            metric = Metric(name, text, kind)
            for (sample_name, labels), value in values.items():
                if _belongs(sample_name, name):
                    metric.add_sample(sample_name, dict(labels), value)
            yield metric


def _is_served(family: Family) -> bool:
    """Whether prometheus_client takes it; it raises when asked for what it does not."""
    if len(family.samples) > MAX_SAMPLES or family.type not in _TYPES:
        return False
    names = [family.name, *(sample.name for sample in family.samples)]
    return all(map(_NAME.fullmatch, names)) and all(
        _NAME.fullmatch(label) for sample in family.samples for label in sample.labels
    )


def _key(sample: Sample) -> Key:
    return sample.name, tuple(sorted(sample.labels.items()))


def _belongs(sample_name: str, family: str) -> bool:
    return sample_name in (family, *(family + suffix for suffix in ("_total", "_bucket", "_count", "_sum")))
