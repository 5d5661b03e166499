"""Sending on a stream whose peer may be gone."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_statestore.write_session import send


class Peer:
    """A stream's context, of which only `write` is used."""

    def __init__(self, error: Exception | None = None) -> None:
        self.got: list[object] = []
        self._error = error

    async def write(self, message: object) -> None:
        if self._error is not None:
            raise self._error
        self.got.append(message)


def sent(peer: Any) -> None:
    asyncio.run(send(peer, "news"))


def test_what_is_sent_arrives() -> None:
    peer = Peer()
    sent(peer)
    assert peer.got == ["news"]


@pytest.mark.parametrize("error", [grpc.aio.InternalError("execute_batch"), TimeoutError()])
def test_a_peer_that_is_gone_is_no_fault_of_ours(error: Exception) -> None:
    with pytest.raises(ApiError) as raised:
        sent(Peer(error))
    assert raised.value.code is ErrorCode.UNAVAILABLE
