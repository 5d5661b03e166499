"""Metrics for Prometheus: the process's registry, and /metrics.

Names start with `playhall_` and use base units. No label may have values that grow with players or rooms.
"""

from __future__ import annotations

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, disable_created_metrics

from playhall_common.address import join_host_port, split_host_port

__all__ = ["REGISTRY", "Counter", "Gauge", "Histogram", "serve"]

# One more series for each one, of a time that nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


def serve(address: str) -> str:
    """Serve /metrics on host:port and give the address that was bound.

    A daemon thread answers until the process ends, so that a drain can be watched to its end. Raises OSError
    where the address cannot be bound.
    """
    from prometheus_client import start_http_server  # its HTTP server is needed by those who ask only

    host, port = split_host_port(address)
    server, _ = start_http_server(port, host)
    return join_host_port(host, server.server_port)
