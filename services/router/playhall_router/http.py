"""HTTP: the site, endpoint discovery, health, the inspector. Several router processes may share the port."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from playhall.engine.codes import ERRORS, ErrorCode
from playhall_common import ids, logs
from playhall_common.address import join_host_port, split_host_port
from playhall_common.errors import ApiError
from playhall_router.config import RouterConfig
from playhall_router.inspector_http import InspectorHttp, is_inspector
from playhall_router.origins import is_allowed
from playhall_router.registry import Registry
from playhall_router.site import SiteFile, find_file

__all__ = ["HttpServer"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_MAX_BODY = 64 * 1024
_SHUTDOWN_S = 2.0
_ENDPOINTS_AGE_S = 5

log = logs.get_logger()


class HttpServer:
    """See the module's text. `is_ready` says whether clients should be sent here. Without an `inspector`
    there is none.
    """

    def __init__(
        self,
        config: RouterConfig,
        registry: Registry,
        *,
        is_ready: Callable[[], bool],
        inspector: InspectorHttp | None = None,
    ) -> None:
        self._config = config
        self._registry = registry
        self._is_ready = is_ready
        self._inspector = inspector
        self._websockets = list(config.public_websockets)
        self._runner: web.AppRunner | None = None

    async def start(self, *, own_websocket: str) -> str:
        """Listen; gives the address. Raises OSError where it is taken."""
        if not self._websockets:
            self._websockets = [f"ws://{own_websocket}/v1/connect"]
        app = web.Application(client_max_size=_MAX_BODY, middlewares=[_problems])
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/v1/projects/{project}/endpoints", self._endpoints),
                web.options("/v1/projects/{project}/endpoints", self._preflight),
                *(self._inspector.routes() if self._inspector is not None else ()),
                web.route("*", "/v1/{rest:.*}", self._no_api),
                web.get("/{path:.*}", self._site),
            ]
        )
        _log_no_nonsense()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        host, port = split_host_port(self._config.http_address)
        site = web.TCPSite(self._runner, host, port, reuse_port=True, backlog=1024)
        await site.start()
        return join_host_port(host, self._runner.addresses[0][1])

    async def close(self) -> None:
        """Answer what was asked, and stop."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _ready(self, request: web.Request) -> web.Response:
        if not self._is_ready():
            raise ApiError(ErrorCode.UNAVAILABLE, "this router is starting or draining")
        return web.json_response({"status": "ready"})

    async def _endpoints(self, request: web.Request) -> web.Response:
        project = request.match_info["project"]
        if not ids.is_project_slug(project):
            raise ApiError(ErrorCode.UNKNOWN, "there is no such project")
        access = await self._registry.access(project)
        answer = web.json_response({"websocket": self._websockets, "webtransport": []})
        answer.headers["Cache-Control"] = f"max-age={_ENDPOINTS_AGE_S}"
        _allow_origin(request, answer, access.allowed_origins)
        return answer

    async def _preflight(self, request: web.Request) -> web.Response:
        access = await self._registry.access(request.match_info["project"])
        answer = web.Response(status=HTTPStatus.NO_CONTENT)
        answer.headers["Access-Control-Allow-Methods"] = "GET"
        answer.headers["Access-Control-Max-Age"] = "600"
        _allow_origin(request, answer, access.allowed_origins)
        return answer

    async def _no_api(self, request: web.Request) -> web.Response:
        raise ApiError(ErrorCode.UNKNOWN, f"there is nothing at {request.path}")

    async def _site(self, request: web.Request) -> web.StreamResponse:
        root = await self._site_root()
        # The raw path: a decoded one could hold a slash that was none.
        path = urlsplit(request.raw_path).path
        found = await asyncio.to_thread(find_file, root, path)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN, f"there is nothing at {unquote(path)}")
        return _file(request, found)

    async def _site_root(self) -> Path:
        if self._config.site is not None:
            return self._config.site
        if not self._config.default_project:
            raise ApiError(ErrorCode.UNKNOWN, "this router serves no site")
        build = await self._registry.live_build(self._config.default_project)
        if not build.site:
            raise ApiError(ErrorCode.UNKNOWN, "the live build has no site")
        site = urlsplit(build.site)
        return Path(unquote(site.path)) if site.scheme == "file" else Path(build.site)


def _file(request: web.Request, found: SiteFile) -> web.StreamResponse:
    headers = {
        "Content-Type": found.content_type,
        "ETag": found.etag,
        # Asked for each time, but sent again only when it changed: a new build is seen at the next load.
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if request.headers.get("If-None-Match") == found.etag:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.FileResponse(found.path, headers=headers)


def _allow_origin(request: web.Request, answer: web.Response, allowed: frozenset[str]) -> None:
    """Let pages of the project's origins read the answer; those of any, where the project names none."""
    origin = request.headers.get("Origin", "")
    answer.headers["Vary"] = "Origin"
    if not allowed:
        answer.headers["Access-Control-Allow-Origin"] = "*"
    elif is_allowed(origin, allowed):
        answer.headers["Access-Control-Allow-Origin"] = origin


def _log_no_nonsense() -> None:
    """Who sends what is no HTTP is answered 400; a traceback for each would let anybody fill the log."""
    logging.getLogger("aiohttp.server").addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


@web.middleware
async def _problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as problem details (RFC 9457), with our code."""
    try:
        return await handler(request)
    except ApiError as error:
        return _problem(request, ERRORS[error.code].http, error.code, error.message)
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        code = ErrorCode.INVALID if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else ErrorCode.INTERNAL
        return _problem(request, error.status, code, error.reason)


def _problem(request: web.Request, status: int, code: ErrorCode, message: str) -> web.Response:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": message,
    }
    answer = web.Response(
        status=status, body=json.dumps(body).encode(), content_type="application/problem+json"
    )
    if not is_inspector(request.path):
        answer.headers["Access-Control-Allow-Origin"] = "*"
    return answer
