"""`/v1/dev/`: the inspector's page and its JSON, for browsers on this machine alone.

It shows what players must not see, so it is answered only to a peer on loopback that asked for this machine
by name: a page of another site that has its own name point here (DNS rebinding) asks for that name. What
proxies say of whom they ask for (X-Forwarded-For) is not looked at. Nothing can be changed here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from playhall_router.inspector import Inspector
from playhall_router.site import find_file

__all__ = ["InspectorHttp", "is_inspector", "is_local"]

PAGE = Path(__file__).parent / "inspector_page"
MAX_NUMBER = 2**32 - 1
_LOCAL_NAME = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,10}")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def is_inspector(path: str) -> bool:
    """Whether a path is the inspector's, be it served or not: no other site is to read even its errors."""
    return path == "/v1/dev" or path.startswith("/v1/dev/")


def is_local(peer: str, host: str | None) -> bool:
    """Whether a request comes from this machine (`peer`: an IP address) and names it (`host`: its Host)."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback and _LOCAL_NAME.fullmatch(host or "") is not None


class InspectorHttp:
    """See the module's text."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector

    def routes(self) -> list[web.RouteDef]:
        """What is served."""
        return [web.route("*", "/v1/dev", self._enter), web.route("*", "/v1/dev/{path:.*}", self._answer)]

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        _check(request)
        raise web.HTTPPermanentRedirect("/v1/dev/")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        _check(request)
        path = request.match_info["path"]
        parts = path.split("/")
        if path == "rooms":
            return _json(await self._inspector.rooms())
        if parts[0] == "rooms" and len(parts) == 3:
            return _json(await self._room(parts[1], parts[2], request))
        found = await asyncio.to_thread(find_file, PAGE, path)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN, f"there is nothing at {request.path}")
        return web.FileResponse(found.path, headers={**_HEADERS, "Content-Type": found.content_type})

    async def _room(self, project: str, room_id: str, request: web.Request) -> dict[str, Any]:
        if not (ids.is_project_slug(project) and ids.is_room_id(room_id)):
            raise ApiError(ErrorCode.UNKNOWN, "there is no such room")
        return await self._inspector.room(project, room_id, _page(request))


def _check(request: web.Request) -> None:
    # Who asks is who holds the other end of the socket, and no header.
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    if not (isinstance(peer, tuple) and is_local(str(peer[0]), request.headers.get("Host"))):
        text = "the inspector answers browsers on this machine alone, at localhost or 127.0.0.1"
        raise ApiError(ErrorCode.FORBIDDEN, text)
    if request.method not in ("GET", "HEAD"):
        raise web.HTTPMethodNotAllowed(request.method, ("GET", "HEAD"))


def _page(request: web.Request) -> pb.InspectRequest:
    """Which entities: `kind`, `owner` (empty: the room's), `entity`, `offset`, `limit`. E_INVALID."""
    page = pb.InspectRequest()
    if "kind" in request.query:
        page.kind = request.query["kind"]
    if "owner" in request.query:
        page.owner = request.query["owner"]
    for name in ("entity", "offset", "limit"):
        if name in request.query:
            setattr(page, name, _number(name, request.query[name]))
    return page


def _number(name: str, text: str) -> int:
    number = int(text) if _DIGITS.fullmatch(text) else -1
    if not 0 <= number <= MAX_NUMBER:
        raise ApiError(ErrorCode.INVALID, f"{name} must be a whole number from 0 to {MAX_NUMBER}")
    return number


def _json(value: dict[str, Any]) -> web.Response:
    return web.Response(
        status=HTTPStatus.OK,
        body=msgspec.json.encode(value),
        content_type="application/json",
        headers=_HEADERS,
    )
