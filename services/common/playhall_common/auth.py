"""Who is calling: the secret that trusted services share, and host tokens.

A host token lets the processes of one room host act for one project and build, for 15 minutes. data signs
it, statestore and data accept it. It is an HS256 JWT under a key derived from the service secret, so that no
token can be mistaken for, or tried as, the secret itself.

Times are arguments, in seconds since 1970: `exp` is compared with a leeway of 60 s, as on every service.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError

__all__ = [
    "HOST_TOKEN_TTL_S", "HostClaims", "Metadata", "ServicePrincipal", "bearer", "bearer_metadata",
    "channel", "is_service", "service_guard", "service_metadata", "sign_host_token",
    "verify_host_token",
]  # fmt: skip

HOST_TOKEN_TTL_S = 15 * 60
LEEWAY_S = 60
AUDIENCES = ("statestore", "data")

Metadata = tuple[tuple[str, str], ...]

_AUTHORIZATION = "authorization"
_SCHEME = "bearer "

# Messages carry parts of at most 256 KiB; a batch of them stays far below this.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024

# How much may be on its way is fixed at a large batch: what waits beyond that is where it can be dropped or
# merged. By itself gRPC would measure the line with pings, which cost each side a fifth of a message each.
FLOW_OPTIONS = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 256 * 1024))

_CHANNEL_OPTIONS = (
    *FLOW_OPTIONS,
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # gRPC's own first retry comes after a second, its later ones after minutes: a peer that was started
    # again is wanted back within a failover's two seconds.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # One connection for each channel, so that one busy stream does not hold up another channel's.
    ("grpc.use_local_subchannel_pool", 1),
)


def channel(address: str, *, options: Iterable[tuple[str, Any]] = ()) -> grpc.aio.Channel:
    """A channel to another service. The caller closes it, and gives every call a timeout."""
    return grpc.aio.insecure_channel(address, options=[*_CHANNEL_OPTIONS, *options])


def bearer_metadata(token: str) -> Metadata:
    """The metadata of a call made with this token or secret."""
    return ((_AUTHORIZATION, f"Bearer {token}"),)


def service_metadata(secret: str) -> Metadata:
    """The metadata of a call from one trusted service to another."""
    return bearer_metadata(secret)


def bearer(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """The token that came with a call."""
    for key, value in metadata or ():
        if key == _AUTHORIZATION and isinstance(value, str) and value[: len(_SCHEME)].lower() == _SCHEME:
            return value[len(_SCHEME) :].strip()
    return None


def is_service(token: str | None, secret: str) -> bool:
    """Whether a token is the service secret, in a time that does not tell how much of it is right."""
    return token is not None and hmac.compare_digest(token.encode(), secret.encode())


@dataclass(frozen=True, slots=True)
class HostClaims:
    """What a host token says of its bearer."""

    project: str
    build: str
    host_id: str
    expires_at_s: int


def sign_host_token(claims: HostClaims, secret: str) -> str:
    """The token for these claims."""
    import jwt  # only data signs, only statestore and data verify

    payload = {
        "project": claims.project,
        "build": claims.build,
        "host_id": claims.host_id,
        "aud": list(AUDIENCES),
        "exp": claims.expires_at_s,
    }
    return jwt.encode(payload, _host_token_key(secret), algorithm="HS256")


def verify_host_token(token: str, secret: str, *, audience: str, now_s: float) -> HostClaims:
    """The claims of a token that is signed, meant for `audience` and not expired; else E_UNAUTHENTICATED."""
    import jwt

    options: Any = {"require": ["exp", "aud"], "verify_exp": False, "verify_iat": False, "verify_nbf": False}
    try:
        payload = jwt.decode(
            token, _host_token_key(secret), algorithms=["HS256"], audience=audience, options=options
        )
    except jwt.InvalidTokenError as error:
        raise ApiError(ErrorCode.UNAUTHENTICATED, "the host token is not valid") from error
    claims = _claims(payload)
    if claims.expires_at_s + LEEWAY_S < now_s:
        raise ApiError(ErrorCode.UNAUTHENTICATED, "the host token is expired")
    return claims


def _claims(payload: dict[str, Any]) -> HostClaims:
    def text(name: str) -> str:
        value = payload.get(name)
        if not isinstance(value, str) or not value:
            raise ApiError(ErrorCode.UNAUTHENTICATED, f"the host token has no {name}")
        return value

    return HostClaims(text("project"), text("build"), text("host_id"), int(payload["exp"]))


def _host_token_key(secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"playhall host token v1", hashlib.sha256)


@dataclass(frozen=True, slots=True)
class ServicePrincipal:
    """The caller showed the service secret."""


def service_guard(
    secret: str,
) -> Callable[[str, Iterable[tuple[str, str | bytes]]], Awaitable[ServicePrincipal]]:
    """A guard for `Service.guard_with` under which every RPC needs the service secret."""

    async def guard(_method: str, metadata: Iterable[tuple[str, str | bytes]]) -> ServicePrincipal:
        if not is_service(bearer(metadata), secret):
            raise ApiError(ErrorCode.UNAUTHENTICATED, "this call needs the service secret")
        return ServicePrincipal()

    return guard
