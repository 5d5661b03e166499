"""Settings of the router; each is read from `PLAYHALL_ROUTER_<NAME>` unless it says otherwise."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from playhall_common.config import Secret, TrustedConfig, setting

__all__ = ["PREFIX", "RouterConfig"]

PREFIX = "PLAYHALL_ROUTER"


@dataclass(frozen=True, kw_only=True)
class RouterConfig(TrustedConfig):
    """See the module's text."""

    http_address: str = setting(
        "Where HTTP listens: host:port. Several routers may share it.", default="127.0.0.1:7350"
    )
    websocket_address: str = setting(
        "Where WebSockets listen: host:port, one for each router process.", default="127.0.0.1:0"
    )
    data_address: str = setting("gRPC target of data.")
    hosts: list[str] = setting("gRPC targets of the room host supervisors, separated by commas.")
    voice_address: str = setting("gRPC target of voice. Empty: games have no voice.", default="")
    redis_url: str = setting(
        "Valkey or Redis, for hints that routers share. Empty: each router has its own.", default=""
    )
    guest_key: Secret = setting(
        "What guest tokens are signed with, the same on every router. Empty: made from the service secret.",
        default=Secret(""),
    )
    public_websockets: list[str] = setting(
        "WebSocket URLs of all routers, as clients reach them. Empty: this router's own.",
        default_factory=list,
    )
    default_project: str = setting("The project whose site is at /. Empty: no site.", default="")
    site: Path | None = setting(
        "Folder of the default project's site. Not set: the one of its live build.", default=None
    )
    trusted_proxies: int = setting(
        "How many proxies stand before the router: so many entries of X-Forwarded-For are believed.",
        default=0, low=0, high=10,
    )  # fmt: skip
    max_connections: int = setting("Client connections this process takes.", default=10_000, low=1)
    guests_per_minute: int = setting(
        "New guests from one address in a minute; 0: no limit. Loopback has none.", default=600, low=0
    )
    rooms_per_minute: int = setting(
        "Rooms that clients at one address may create in a minute; 0: no limit. Loopback has none.",
        default=120, low=0,
    )  # fmt: skip
    drain_delay_s: float = setting(
        "How long readiness says no before a drain closes connections, in seconds.",
        default=5.0,
        low=0,
        high=60,
    )
    closes_per_s: int = setting("Connections closed a second in a drain.", default=500, low=1)
    inspector: bool = setting(
        "Whether /v1/dev/ shows browsers on this machine all that is in rooms. Only for development.",
        default=False,
    )

    @property
    def guest_secret(self) -> str:
        """The key of guest tokens, given or derived."""
        if self.guest_key:
            return self.guest_key
        return hmac.digest(self.service_secret.encode(), b"playhall guest key v1", hashlib.sha256).hex()

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        for name, address in (
            ("http_address", self.http_address),
            ("websocket_address", self.websocket_address),
        ):
            if ":" not in address or address.startswith("unix:"):
                yield f"{name} {address!r} is not host:port"
        if not self.hosts:
            yield "hosts names no supervisor"
        if self.guest_key and len(self.guest_key) < 16:
            yield "guest_key is shorter than 16 characters"
        for url in self.public_websockets:
            if not url.startswith(("ws://", "wss://")):
                yield f"public_websockets: {url!r} is no ws:// or wss:// URL"
