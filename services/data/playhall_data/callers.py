"""Who calls, and what for: the admin key, a project's API key, or a trusted service.

| service | callers |
|---|---|
| Projects, Keys | the admin key; trusted services |
| Builds | the same, and a project's API key for that project |
| Registry | trusted services |
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from playhall.engine.codes import ErrorCode
from playhall_common.auth import ServicePrincipal, bearer, is_service
from playhall_common.errors import ApiError
from playhall_common.interceptor import principal
from playhall_data import keys
from playhall_data.database import Database

__all__ = ["AdminPrincipal", "Callers", "ProjectPrincipal", "check_project"]

_REGISTRY = "/playhall.api.data.v1.Registry/"
_BUILDS = "/playhall.api.data.v1.Builds/"


@dataclass(frozen=True, slots=True)
class AdminPrincipal:
    """The caller showed the operator's key: every project."""


@dataclass(frozen=True, slots=True)
class ProjectPrincipal:
    """The caller showed an API key."""

    project: str
    key_id: str


class Callers:
    """Knows callers by what they show. `guard` goes around every RPC."""

    def __init__(self, database: Database, *, service_secret: str, admin_key: str | None) -> None:
        self._database = database
        self._service_secret = service_secret
        self._admin_key = admin_key

    async def guard(self, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> object:
        """The principal of a call. Raises E_UNAUTHENTICATED, and E_FORBIDDEN for a key of a lesser kind."""
        token = bearer(metadata)
        if token is None:
            raise ApiError(ErrorCode.UNAUTHENTICATED, "this call needs `authorization: Bearer <key>`")
        if is_service(token, self._service_secret):
            return ServicePrincipal()
        caller = await self.identify(token)
        if method.startswith(_REGISTRY):
            raise ApiError(ErrorCode.FORBIDDEN, "this call is for Playhall's own services")
        if isinstance(caller, ProjectPrincipal) and not method.startswith(_BUILDS):
            raise ApiError(ErrorCode.FORBIDDEN, "this call needs the operator's key")
        return caller

    async def identify(self, secret: str) -> AdminPrincipal | ProjectPrincipal:
        """Whose key this is. Raises E_UNAUTHENTICATED."""
        if self._admin_key is not None and hmac.compare_digest(secret.encode(), self._admin_key.encode()):
            return AdminPrincipal()
        async with self._database.read() as connection:
            key = await keys.check(connection, secret)
        return ProjectPrincipal(key.project, key.key_id)


def check_project(project: str) -> None:
    """Refuse a project's key that is used for another project: E_FORBIDDEN."""
    caller = principal()
    if isinstance(caller, ProjectPrincipal) and caller.project != project:
        raise ApiError(ErrorCode.FORBIDDEN, f"this key is not of project {project!r}")
