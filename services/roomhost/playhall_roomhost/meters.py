"""Metrics of a room host process. Its supervisor adds up those of all its processes and serves them."""

from __future__ import annotations

from playhall_common.metrics import Counter, Gauge, Timings

__all__ = [
    "LATE_S",
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

rooms = Gauge("playhall_roomhost_rooms", "Rooms, by where they are in their life.", ["status"])
connections = Gauge("playhall_roomhost_connections", "Connections that rooms know.")
tick_seconds = Timings(
    "playhall_roomhost_tick_seconds", "How long a tick of a room takes.", ["room_type"], _TICK_BUCKETS
)
tick_late = Timings(
    "playhall_roomhost_tick_late_seconds", "How late ticks start.", ["room_type"], _LATE_BUCKETS
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
