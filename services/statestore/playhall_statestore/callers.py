"""Who calls: a trusted service, or a process that runs room code and may act for its own project only."""

from __future__ import annotations

import time
from dataclasses import dataclass

from playhall.engine.codes import ErrorCode
from playhall_common.auth import bearer, is_service, verify_host_token
from playhall_common.errors import ApiError
from playhall_common.interceptor import principal

__all__ = ["Caller", "Callers", "caller"]

_AUDIENCE = "statestore"
_TRUSTED_ONLY = frozenset({"Watch"})


@dataclass(frozen=True, slots=True)
class Caller:
    """`project` None: trusted, for every project and host."""

    project: str | None = None
    host_id: str = ""

    def check(self, project: str, host_id: str | None = None) -> None:
        """Refuse what is another project's or another host's: E_FORBIDDEN."""
        if self.project is None:
            return
        if project != self.project:
            raise ApiError(ErrorCode.FORBIDDEN, "the host token is for another project")
        if host_id is not None and host_id != self.host_id:
            raise ApiError(ErrorCode.FORBIDDEN, "the host token is for another host")


class Callers:
    """Makes callers of tokens."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def guard(self, method: str, metadata: tuple[tuple[str, str | bytes], ...]) -> Caller:
        """For the interceptor. Raises E_UNAUTHENTICATED."""
        token = bearer(metadata)
        if is_service(token, self._secret):
            return Caller()
        if token is None or method.rpartition("/")[2] in _TRUSTED_ONLY:
            raise ApiError(ErrorCode.UNAUTHENTICATED, "this call needs the service secret")
        return self.host(token)

    def host(self, token: str) -> Caller:
        """The bearer of a host token. Raises E_UNAUTHENTICATED."""
        claims = verify_host_token(token, self._secret, audience=_AUDIENCE, now_s=time.time())
        return Caller(claims.project, claims.host_id)


def caller() -> Caller:
    """Who made the RPC that runs now."""
    who = principal()
    assert isinstance(who, Caller), "the guard lets nobody else in"
    return who
