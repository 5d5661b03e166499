"""What RPCs end with when their servicer raises."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_common.interceptor import ErrorInterceptor


class Context:
    """Remembers the status that the RPC ended with."""

    def __init__(self) -> None:
        self.status: Any = None

    async def abort_with_status(self, status: Any) -> None:
        self.status = status
        raise grpc.aio.AbortError


def answered(error: Exception) -> grpc.StatusCode:
    """Call a method that raises; gives the status."""

    async def fail(request: object, context: object) -> None:
        raise error

    async def continuation(details: object) -> Any:
        return grpc.unary_unary_rpc_method_handler(fail)

    async def call() -> grpc.StatusCode:
        details: Any = SimpleNamespace(method="/playhall.api.test.v1.Test/Fail", invocation_metadata=())
        handler: Any = await ErrorInterceptor().intercept_service(continuation, details)
        context = Context()
        with pytest.raises(grpc.aio.AbortError):
            await handler.unary_unary(object(), context)
        code: grpc.StatusCode = context.status.code
        return code

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ApiError(ErrorCode.EXISTS, "taken"), grpc.StatusCode.ALREADY_EXISTS),
        (ValueError("a fault"), grpc.StatusCode.INTERNAL),
        (grpc.aio.InternalError("execute_batch failed"), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_whatever_a_servicer_raises_has_a_status(error: Exception, status: grpc.StatusCode) -> None:
    assert answered(error) is status
