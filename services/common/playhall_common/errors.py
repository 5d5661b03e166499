"""Errors that cross services.

    ApiError(code, message, **details)

A servicer raises ApiError; `playhall_common.server` aborts the RPC with a google.rpc.Status whose ErrorInfo
holds the code (reason), `playhall` (domain) and the details (metadata). On the other side `from_rpc` gives
the same ApiError back. The text is for people; code that decides reads the code.
"""

from __future__ import annotations

from typing import NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from playhall.engine.codes import ERRORS, ErrorCode

__all__ = ["DOMAIN", "ApiError", "abort", "from_rpc", "to_status"]

DOMAIN = "playhall"
MAX_CHARS = 300

# What a failed RPC without our details means: it failed on the way, or in a peer that is no Playhall service.
_WITHOUT_DETAILS = {
    grpc.StatusCode.UNAVAILABLE: ErrorCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: ErrorCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED: ErrorCode.UNAVAILABLE,
    grpc.StatusCode.UNAUTHENTICATED: ErrorCode.UNAUTHENTICATED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ErrorCode.LIMIT,
    grpc.StatusCode.INVALID_ARGUMENT: ErrorCode.INVALID,
}


class ApiError(Exception):
    """A request that failed. `details` are short facts for programs, text by name.

    What is longer than MAX_CHARS is cut: messages repeat what callers sent, and an error whose trailers pass
    gRPC's limit would arrive as another error.
    """

    def __init__(self, code: ErrorCode, message: str = "", **details: object) -> None:
        self.code = code
        self.message = _short(message or ERRORS[code].help)
        self.details = {name: _short(str(value)) for name, value in details.items()}
        super().__init__(f"{code}: {self.message}")


def to_status(error: ApiError) -> status_pb2.Status:
    """The google.rpc.Status of an error."""
    info = error_details_pb2.ErrorInfo(reason=error.code, domain=DOMAIN, metadata=error.details)
    status = status_pb2.Status(
        code=getattr(grpc.StatusCode, ERRORS[error.code].grpc).value[0], message=error.message
    )
    status.details.add().Pack(info)
    return status


async def abort(context: grpc.aio.ServicerContext[object, object], error: ApiError) -> NoReturn:
    """End the RPC with this error."""
    await context.abort_with_status(rpc_status.to_status(to_status(error)))
    raise AssertionError("abort_with_status returned")


def from_rpc(failure: grpc.aio.AioRpcError) -> ApiError:
    """The error a failed call was ended with; one by its gRPC status where the peer gave no code of ours."""
    error = _from_details(failure)
    if error is not None:
        return error
    code = _WITHOUT_DETAILS.get(failure.code(), ErrorCode.INTERNAL)
    return ApiError(code, failure.details() or "", grpc=failure.code().name)


def _from_details(failure: grpc.aio.AioRpcError) -> ApiError | None:
    for key, value in failure.trailing_metadata() or ():
        if key != rpc_status.GRPC_DETAILS_METADATA_KEY:
            continue
        try:
            return _from_status(status_pb2.Status.FromString(value))
        except DecodeError:
            # From a room host, whose word is not trusted; what it meant does not matter.
            return None
    return None


def _from_status(status: status_pb2.Status) -> ApiError | None:
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN and info.reason in ERRORS:
            return _rebuild(info, status.message)
    return None


def _rebuild(info: error_details_pb2.ErrorInfo, message: str) -> ApiError:
    error = ApiError(ErrorCode(info.reason), message)
    error.details = dict(info.metadata)
    return error


def _short(text: str) -> str:
    # Surrogates, which no wire carries, become question marks.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."
