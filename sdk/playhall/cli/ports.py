"""The addresses `playhall dev` listens on, and those it prints."""

from __future__ import annotations

import errno
import socket

from playhall.cli.errors import StartError

__all__ = ["check_port", "free_ports", "join_host_port", "loopback_name", "other_name", "public_host"]

_ANY_HOST = frozenset({"", "0.0.0.0", "::"})
_LOOPBACK = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}
_LOOPBACK_HOSTS = frozenset({*_LOOPBACK, "::1"})
# Whoever began by `make play` has no playhall on PATH.
_OTHER_PORT = "playhall dev --port 8000, or make play PORT=8000"


def check_port(host: str, wanted: int) -> int:
    """The port, or a free one for 0. Raises StartError where nothing can listen there."""
    try:
        return _bind(host, wanted)
    except socket.gaierror:
        raise StartError(f"--host {host}: there is no such address. 127.0.0.1 is this machine.") from None
    except OSError as error:
        raise StartError(_refusal(error, host, wanted)) from None


def free_ports(host: str, first: int, count: int) -> list[int]:
    """As many different ports; from `first` on where those are free, so that they stay the same."""
    found: list[int] = []
    for wanted in range(first, first + count):
        port = _bind_or_any(host, wanted)
        while port in found:
            port = _bind(host, 0)
        found.append(port)
    return found


def join_host_port(host: str, port: int) -> str:
    """An address as the services take it, and as it stands in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def public_host(host: str) -> str:
    """What browsers are to call the host: where it listens on every address, the one other machines reach."""
    if host not in _ANY_HOST:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: it asks the routing table for our own address.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        found: str = probe.getsockname()[0]
        return found


def other_name(host: str) -> str:
    """Another name for the same host, which to a browser is another site: it keeps another guest there."""
    return "127.0.0.1" if host in _ANY_HOST else _LOOPBACK.get(host, host)


def loopback_name(host: str) -> str | None:
    """What this machine alone calls the host; None where it listens on another address only."""
    if host in _ANY_HOST:
        return "127.0.0.1"
    return host if host in _LOOPBACK_HOSTS else None


def _bind_or_any(host: str, wanted: int) -> int:
    if wanted > 65_535:
        return _bind(host, 0)
    try:
        return _bind(host, wanted)
    except OSError:
        return _bind(host, 0)


def _bind(host: str, port: int) -> int:
    family, kind, proto, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, proto) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        found: int = probe.getsockname()[1]
        return found


def _refusal(error: OSError, host: str, wanted: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {wanted} on {host} is in use. Stop what listens there, or take another: "
            f"{_OTHER_PORT} (0 takes a free one)"
        )
    if error.errno == errno.EACCES:
        return f"port {wanted} is for root only. Take one from 1024 on: {_OTHER_PORT}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: is not an address of this machine. 0.0.0.0 listens on all of them."
    return f"cannot listen on {join_host_port(host, wanted)}: {error.strerror}"
