"""Addresses in settings: `host:port`, `[v6]:port`, and for gRPC `unix:path`."""

from __future__ import annotations

__all__ = ["UNIX", "is_unix", "join_host_port", "split_host_port"]

UNIX = "unix:"


def is_unix(address: str) -> bool:
    """Whether this names a Unix socket."""
    return address.startswith(UNIX)


def split_host_port(address: str) -> tuple[str, int]:
    """Host and port; brackets of an IPv6 host are taken off. Raises ValueError with what was expected."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{address!r} is not host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{address!r}: an IPv6 host stands in brackets, [::1]:7350")
    if not host:
        raise ValueError(f"{address!r} has no host; 0.0.0.0 is every interface")
    return host, int(port)


def join_host_port(host: str, port: int) -> str:
    """The inverse of `split_host_port`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
