"""A service that misbehaves on request: `python -m tests.support.toy_service`.

With it what surrounds every service is tested. It answers voice.v1's Mint, because that is the smallest
contract there is; `player` says what happens.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from playhall.api.voice.v1 import voice_pb2, voice_pb2_grpc
from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.auth import channel, service_guard
from playhall_common.config import TrustedConfig, load_or_exit, setting
from playhall_common.errors import ApiError
from playhall_common.interceptor import principal
from playhall_common.server import Service, run

log = logs.get_logger()


@dataclass(frozen=True, kw_only=True)
class ToyConfig(TrustedConfig):
    slow_hook: bool = setting("Never end the drain hook.", default=False)
    fail_start: bool = setting("Raise while it is set up.", default=False)
    hang_start: bool = setting("Never end being set up.", default=False)


class Toy(voice_pb2_grpc.VoiceServicer):
    def __init__(self, release: asyncio.Event) -> None:
        self._release = release

    async def Mint(  # noqa: N802
        self, request: voice_pb2.MintRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> voice_pb2.MintResponse:
        match request.player:
            case "refuse":
                raise ApiError(ErrorCode.FENCED, "not you", generation=7)
            case "crash":
                raise RuntimeError("hunter2 is the password")
            case "upstream":
                async with channel("127.0.0.1:1") as nobody:
                    await voice_pb2_grpc.VoiceStub(nobody).Mint(request, timeout=5)
            case "slow":
                log.info("slow_call_started")
                await self._release.wait()
            case "stuck":
                log.info("slow_call_started")
                await asyncio.Event().wait()
        return voice_pb2.MintResponse(token=request.player)


STREAMS = "tests.toy.Streams"


async def count(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[bytes]:
    """Counts for ever, or up to a fault."""
    try:
        for number in itertools.count():
            yield str(number).encode()
            if request == b"refuse":
                raise ApiError(ErrorCode.FENCED, "not you")
    finally:
        log.info("stream_closed", principal=repr(principal()))


async def echo(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """Writes back what it reads; `crash` is a fault."""
    async for request in requests:
        if request == b"crash":
            raise RuntimeError("no echo")
        await context.write(request)


def streams() -> grpc.GenericRpcHandler:
    """Both ways to answer with a stream: a generator, and writes."""
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Echo": grpc.stream_stream_rpc_method_handler(echo),
        "Proofread": grpc.stream_stream_rpc_method_handler(
            echo, voice_pb2.MintRequest.FromString, voice_pb2.MintRequest.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler(STREAMS, methods)


def main() -> None:
    config = load_or_exit(ToyConfig, "PLAYHALL_TOY")
    release = asyncio.Event()

    async def let_go() -> None:
        log.info("drain_hook")
        if config.slow_hook:
            await asyncio.Event().wait()
        release.set()

    async def stop(name: str) -> None:
        log.info("stop_hook", name=name)

    async def set_up(service: Service) -> None:
        service.guard_with(service_guard(config.service_secret))
        service.on_drain(let_go)
        service.on_stop(lambda: stop("first given"))
        service.on_stop(lambda: stop("last given"))
        if config.fail_start:
            raise RuntimeError("no luck")
        if config.hang_start:
            log.info("hanging")
            await asyncio.Event().wait()
        voice_pb2_grpc.add_VoiceServicer_to_server(Toy(release), service.grpc)
        service.grpc.add_generic_rpc_handlers((streams(),))

    run("toy", set_up, config)


if __name__ == "__main__":
    main()
