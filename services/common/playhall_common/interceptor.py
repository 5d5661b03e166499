"""What surrounds every RPC that a service answers: the caller's identity, errors with codes, and metrics.

A `Guard` is given the method's full name and the call's metadata; it gives a principal, which `principal()`
returns while that RPC runs, or raises ApiError. Health checks are not guarded.

What does not decode is E_INVALID; the request of a unary RPC is decoded only once its caller is known.
Whatever else a servicer raises becomes E_INTERNAL with a request id: the log has the traceback under it, the
caller gets the id and nothing of the inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from playhall.engine.codes import ErrorCode
from playhall_common import logs, metrics
from playhall_common.errors import ApiError, abort, from_rpc

__all__ = ["ErrorInterceptor", "Guard", "principal"]

Guard = Callable[[str, tuple[tuple[str, str | bytes], ...]], Awaitable[object]]

_HEALTH = "/grpc.health.v1.Health/"

_principal: ContextVar[object] = ContextVar("playhall_principal", default=None)
_handled = metrics.Counter("playhall_rpc_handled", "RPCs answered, by method and code.", ["method", "code"])
_seconds = metrics.Histogram(
    "playhall_rpc_seconds",
    "Time that a unary RPC took that ended well.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
)

log = logs.get_logger()


def principal() -> object:
    """What the guard gave for the RPC that runs now; None where there is no guard."""
    return _principal.get()


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """See the module's text."""

    def __init__(self) -> None:
        self.guard: Guard | None = None
        """None: nobody is asked who they are. Set before the server starts."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None:
            return None
        return _wrap(handler, method, None if method.startswith(_HEALTH) else self.guard)


def _wrap(handler: Any, method: str, guard: Guard | None) -> Any:
    kind = (
        ("stream" if handler.request_streaming else "unary")
        + "_"
        + ("stream" if handler.response_streaming else "unary")
    )
    behaviour = getattr(handler, kind)
    decode = _checked(handler.request_deserializer)
    # gRPC decodes a unary request before anything of ours runs, and logs a traceback where that fails.
    decode_request: Callable[[Any], Any] = _as_it_is if handler.request_streaming else decode
    if inspect.isasyncgenfunction(behaviour):

        async def generate(request: Any, context: Any) -> AsyncIterator[Any]:
            async with (
                _guarded(method, guard, context),
                contextlib.aclosing(behaviour(decode_request(request), context)) as responses,
            ):
                async for response in responses:
                    yield response

        wrapped: Callable[[Any, Any], Any] = generate
    else:

        async def answer(request: Any, context: Any) -> Any:
            began = time.perf_counter()
            async with _guarded(method, guard, context):
                response = await behaviour(decode_request(request), context)
            if kind == "unary_unary":
                _seconds.labels(method).observe(time.perf_counter() - began)
            return response

        wrapped = answer
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    return make(wrapped, decode if handler.request_streaming else None, handler.response_serializer)


def _checked(decode: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """`decode`, but for what it raises on what is no message."""
    if decode is None:
        return _as_it_is

    def checked(data: bytes) -> Any:
        try:
            return decode(data)
        except DecodeError:
            raise ApiError(ErrorCode.INVALID, "the request is no message of this method's") from None

    return checked


def _as_it_is(request: Any) -> Any:
    return request


@contextlib.asynccontextmanager
async def _guarded(method: str, guard: Guard | None, context: Any) -> AsyncIterator[None]:
    error: ApiError | None = None
    code = "OK"
    try:
        if guard is not None:
            _principal.set(await guard(method, tuple(context.invocation_metadata() or ())))
        yield
    except (asyncio.CancelledError, GeneratorExit, grpc.aio.AbortError):
        code = "ENDED"
        raise
    except Exception as raised:
        error = _coded(method, raised)
        code = error.code
    finally:
        _handled.labels(method, code).inc()
    if error is not None:
        await abort(context, error)


def _coded(method: str, raised: Exception) -> ApiError:
    if isinstance(raised, ApiError):
        return raised
    if isinstance(raised, grpc.aio.AioRpcError):
        upstream = from_rpc(raised)
        if upstream.code is ErrorCode.UNAVAILABLE:
            return upstream
    if isinstance(raised, grpc.aio.InternalError):
        # gRPC's word for a write to a peer that is gone, where it notices that before it cancels the RPC.
        return ApiError(ErrorCode.UNAVAILABLE, "the caller is gone")
    request_id = secrets.token_hex(8)
    log.error("rpc_failed", method=method, request_id=request_id, exc_info=raised)
    return ApiError(ErrorCode.INTERNAL, f"a fault in Playhall; request {request_id}", request_id=request_id)
