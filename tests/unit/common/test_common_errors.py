"""Errors: what crosses from one service to another."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from grpc_status import rpc_status

from playhall.engine.codes import ERRORS, ErrorCode
from playhall_common.errors import ApiError, from_rpc, to_status


def crossed(error: ApiError) -> ApiError:
    """The error on the other side."""
    sent = rpc_status.to_status(to_status(error))
    trailing = grpc.aio.Metadata(*sent.trailing_metadata)
    return from_rpc(grpc.aio.AioRpcError(sent.code, grpc.aio.Metadata(), trailing, sent.details))


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_crosses(code: ErrorCode) -> None:
    there = crossed(ApiError(code, "because", room="r1", count=3))
    assert (there.code, there.message) == (code, "because")
    assert there.details == {"room": "r1", "count": "3"}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_the_grpc_status_is_that_of_the_table(code: ErrorCode) -> None:
    sent = rpc_status.to_status(to_status(ApiError(code)))
    assert sent.code.name == ERRORS[code].grpc


def test_without_a_message_the_table_says_what_it_is() -> None:
    assert crossed(ApiError(ErrorCode.BUSY)).message == ERRORS[ErrorCode.BUSY].help


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (grpc.StatusCode.UNAVAILABLE, ErrorCode.UNAVAILABLE),
        (grpc.StatusCode.DEADLINE_EXCEEDED, ErrorCode.UNAVAILABLE),
        (grpc.StatusCode.CANCELLED, ErrorCode.UNAVAILABLE),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ErrorCode.LIMIT),
        (grpc.StatusCode.UNIMPLEMENTED, ErrorCode.INTERNAL),
        (grpc.StatusCode.UNKNOWN, ErrorCode.INTERNAL),
    ],
)
def test_a_failure_on_the_way_has_a_code_too(status: grpc.StatusCode, code: ErrorCode) -> None:
    failure = grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata(), "gone")
    error = from_rpc(failure)
    assert (error.code, error.message, error.details) == (code, "gone", {"grpc": status.name})


def test_what_is_long_is_cut_so_that_it_arrives() -> None:
    there = crossed(ApiError(ErrorCode.INVALID, "\N{GRINNING FACE}" * 10_000, field="f" * 10_000))
    assert there.message == "\N{GRINNING FACE}" * 297 + "..."
    assert len(there.details["field"]) == 300


def test_what_is_no_unicode_crosses_too() -> None:
    assert crossed(ApiError(ErrorCode.INVALID, "a\ud800b")).message == "a?b"


@pytest.mark.parametrize("value", [b"\xff", b"\x1a\x03\x12\x01\xff"])
def test_details_that_are_no_protobuf_are_passed_over(value: bytes) -> None:
    trailing = grpc.aio.Metadata((rpc_status.GRPC_DETAILS_METADATA_KEY, value))
    failure = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailing, "gone")
    assert from_rpc(failure).code is ErrorCode.UNAVAILABLE


def test_details_of_strangers_are_not_ours() -> None:
    status = to_status(ApiError(ErrorCode.FENCED))
    status.details[0].value = status.details[0].value.replace(b"playhall", b"stranger")
    sent = rpc_status.to_status(status)
    failure = grpc.aio.AioRpcError(
        sent.code, grpc.aio.Metadata(), grpc.aio.Metadata(*sent.trailing_metadata), "no"
    )
    assert from_rpc(failure).code is ErrorCode.INTERNAL
