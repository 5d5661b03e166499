"""The state store's metrics."""

from __future__ import annotations

from playhall_common.metrics import Counter, Gauge, Histogram, Timings

__all__ = [
    "APPEND_SECONDS", "COMMITS", "COMMIT_SECONDS", "EVICTIONS", "OBJECT_WRITES", "QUEUE_BYTES", "ROOMS",
    "WAL_BYTES",
]  # fmt: skip

_FAST = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5)

APPEND_SECONDS = Timings(
    "playhall_statestore_append_seconds", "From a record's arrival until it is durable.", [], _FAST
).labels()
COMMIT_SECONDS = Histogram("playhall_statestore_commit_seconds", "One commit.", buckets=_FAST)
COMMITS = Counter("playhall_statestore_commits", "Commits, by result.", ["result"])
WAL_BYTES = Gauge("playhall_statestore_wal_bytes", "Size of the write-ahead log.")
QUEUE_BYTES = Gauge("playhall_statestore_queue_bytes", "Bytes read but not committed.")
ROOMS = Gauge("playhall_statestore_rooms", "Rooms the shard knows, by state.", ["state"])
OBJECT_WRITES = Counter("playhall_statestore_object_writes", "Objects written, by result.", ["result"])
EVICTIONS = Counter("playhall_statestore_evictions", "Rooms that left the volume for their object.")
