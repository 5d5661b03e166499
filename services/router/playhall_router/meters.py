"""What the router measures."""

from __future__ import annotations

from playhall_common.metrics import Counter, Gauge, Histogram

__all__ = [
    "closed",
    "connections",
    "frames_refused",
    "inputs_dropped",
    "opened",
    "rooms",
    "slow",
    "streams",
    "unreliable_dropped",
    "uplink_bytes",
    "wake_seconds",
    "wakes_running",
    "wakes_waiting",
]

connections = Gauge("playhall_router_connections", "Client connections.")
slow = Gauge("playhall_router_slow_connections", "Connections with bytes waiting in this process.")
rooms = Gauge("playhall_router_rooms", "Rooms with connections here.")
streams = Gauge("playhall_router_attach_streams", "Attach streams that are up.")
uplink_bytes = Gauge("playhall_router_uplink_bytes", "Bytes that wait for room hosts.")
wakes_waiting = Gauge("playhall_router_wakes_waiting", "Rooms that wait to be woken.")
wakes_running = Gauge("playhall_router_wakes_running", "Rooms that are being woken.")
opened = Counter("playhall_router_connections_opened", "Client connections accepted.")
closed = Counter(
    "playhall_router_connections_closed", "Connections over, by close code; 0: the client went.", ["code"]
)
unreliable_dropped = Counter(
    "playhall_router_unreliable_dropped", "Unreliable messages dropped for slow clients."
)
inputs_dropped = Counter("playhall_router_inputs_dropped", "Inputs dropped for slow room hosts.")
frames_refused = Counter("playhall_router_frames_refused", "Frames of room hosts that went to nobody.")
wake_seconds = Histogram(
    "playhall_router_wake_seconds",
    "Time from a wake's begin to its end, by what came of it.",
    ["outcome"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
