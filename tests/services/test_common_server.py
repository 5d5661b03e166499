"""What surrounds every service: start, errors, callers, logs, metrics, drain. The process is real, a toy."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from playhall.api.voice.v1 import voice_pb2, voice_pb2_grpc
from playhall.engine.codes import ErrorCode
from playhall_common.auth import channel, service_metadata
from playhall_common.errors import ApiError, from_rpc
from tests.support.processes import SERVICE_SECRET, Processes, ServiceProcess
from tests.support.toy_service import STREAMS

TOY = "tests.support.toy_service"
MINT = "/playhall.api.voice.v1.Voice/Mint"


def start(processes: Processes, **settings: object) -> ServiceProcess:
    return processes.start("toy", module=TOY, **settings)


async def mint(toy: ServiceProcess, player: str, secret: str | None = SERVICE_SECRET) -> str:
    """What the toy answers. Raises ApiError."""
    metadata = service_metadata(secret) if secret is not None else ()
    async with channel(toy.grpc) as to_toy:
        stub = voice_pb2_grpc.VoiceStub(to_toy)
        try:
            answer = await stub.Mint(
                voice_pb2.MintRequest(player=player), metadata=metadata, timeout=10, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from None
    return answer.token


async def health(toy: ServiceProcess) -> int:
    async with channel(toy.grpc) as to_toy:
        stub = health_pb2_grpc.HealthStub(to_toy)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
    return int(answer.status)


@pytest.mark.asyncio
async def test_errors_arrive_with_their_code(processes: Processes) -> None:
    toy = start(processes)
    assert await mint(toy, "ann") == "ann"

    with pytest.raises(ApiError) as caught:
        await mint(toy, "refuse")
    assert (caught.value.code, caught.value.message) == (ErrorCode.FENCED, "not you")
    assert caught.value.details == {"generation": "7"}

    with pytest.raises(ApiError) as caught:
        await mint(toy, "upstream")
    assert caught.value.code is ErrorCode.UNAVAILABLE


@pytest.mark.asyncio
async def test_a_fault_is_logged_under_an_id_and_not_told(processes: Processes) -> None:
    toy = start(processes)
    with pytest.raises(ApiError) as caught:
        await mint(toy, "crash")
    assert caught.value.code is ErrorCode.INTERNAL
    assert "hunter2" not in caught.value.message
    line = toy.wait_for_log("rpc_failed")
    assert line["request_id"] == caught.value.details["request_id"]
    assert line["method"] == MINT
    assert "RuntimeError: hunter2" in line["exception"]
    assert (line["service"], line["level"]) == ("toy", "error")
    assert await mint(toy, "ann") == "ann"


@pytest.mark.asyncio
async def test_a_caller_shows_the_secret_but_for_health(processes: Processes) -> None:
    toy = start(processes)
    for wrong in (None, "", SERVICE_SECRET + "x", SERVICE_SECRET[:-1]):
        with pytest.raises(ApiError) as caught:
            await mint(toy, "ann", secret=wrong)
        assert caught.value.code is ErrorCode.UNAUTHENTICATED
    assert await health(toy) == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.asyncio
async def test_what_does_not_decode_is_refused_and_fills_no_log(processes: Processes) -> None:
    toy = start(processes)
    secret = service_metadata(SERVICE_SECRET)
    async with channel(toy.grpc) as to_toy:
        for path, metadata, code in (
            (MINT, (), ErrorCode.UNAUTHENTICATED),
            (MINT, secret, ErrorCode.INVALID),
            ("/grpc.health.v1.Health/Check", (), ErrorCode.INVALID),
        ):
            call: Any = to_toy.unary_unary(path)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"\xff", metadata=metadata, timeout=10)
            assert from_rpc(caught.value).code is code
        watch: Any = to_toy.unary_stream("/grpc.health.v1.Health/Watch")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watch(b"\xff", timeout=10).read()
        assert from_rpc(caught.value).code is ErrorCode.INVALID
        proofs: Any = to_toy.stream_stream(f"/{STREAMS}/Proofread")(metadata=secret, timeout=10)
        await proofs.write(b"\xff")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await proofs.read()
        assert from_rpc(caught.value).code is ErrorCode.INVALID
    assert await mint(toy, "ann") == "ann"
    assert "DecodeError" not in toy.log()
    assert toy.log_lines("rpc_failed") == []


@pytest.mark.asyncio
async def test_a_stream_has_the_same_surroundings(processes: Processes) -> None:
    toy = start(processes)
    metadata = service_metadata(SERVICE_SECRET)
    async with channel(toy.grpc) as to_toy:
        count: Any = to_toy.unary_stream(f"/{STREAMS}/Count")
        numbers = count(b"", metadata=metadata, timeout=10)
        assert [await numbers.read() for _ in range(3)] == [b"0", b"1", b"2"]
        numbers.cancel()
        closed = await asyncio.to_thread(toy.wait_for_log, "stream_closed")
        assert closed["principal"] == "ServicePrincipal()"

        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [number async for number in count(b"refuse", metadata=metadata, timeout=10)]
        assert from_rpc(caught.value).code is ErrorCode.FENCED
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [number async for number in count(b"", timeout=10)]
        assert from_rpc(caught.value).code is ErrorCode.UNAUTHENTICATED

        echo: Any = to_toy.stream_stream(f"/{STREAMS}/Echo")(metadata=metadata, timeout=10)
        await echo.write(b"one")
        assert await echo.read() == b"one"
        await echo.write(b"crash")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo.read()
        assert from_rpc(caught.value).code is ErrorCode.INTERNAL
        assert "no echo" in toy.wait_for_log("rpc_failed")["exception"]


@pytest.mark.asyncio
async def test_metrics_count_calls_by_method_and_code(processes: Processes) -> None:
    toy = start(processes, metrics_address="127.0.0.1:0")
    await mint(toy, "ann")
    with pytest.raises(ApiError):
        await mint(toy, "refuse")
    url = f"http://{toy.addresses['metrics']}/metrics"
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read().decode())
    assert f'playhall_rpc_handled_total{{code="OK",method="{MINT}"}} 1.0' in text
    assert f'playhall_rpc_handled_total{{code="E_FENCED",method="{MINT}"}} 1.0' in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_drain_ends_what_runs_and_exits_0(processes: Processes, number: signal.Signals) -> None:
    toy = start(processes)
    call = asyncio.create_task(mint(toy, "slow"))
    await asyncio.to_thread(toy.wait_for_log, "slow_call_started")
    toy.signal(number)
    await asyncio.to_thread(toy.wait_for_log, "drain_hook")
    toy.signal(number)
    assert await call == "slow"
    assert await asyncio.to_thread(toy.wait) == 0
    assert [line["name"] for line in toy.log_lines("stop_hook")] == ["last given", "first given"]
    assert toy.log_lines("drained")[0]["whole"] is True


@pytest.mark.asyncio
async def test_a_call_that_does_not_end_is_cut_off_at_the_deadline(processes: Processes) -> None:
    toy = start(processes, drain_s=0.2)
    call = asyncio.create_task(mint(toy, "stuck"))
    await asyncio.to_thread(toy.wait_for_log, "slow_call_started")
    toy.signal(signal.SIGTERM)
    with pytest.raises(ApiError) as caught:
        await call
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert await asyncio.to_thread(toy.wait) == 0


def test_a_hook_that_does_not_end_is_cut_off_and_the_exit_says_so(processes: Processes) -> None:
    toy = start(processes, drain_s=0.2, slow_hook="true")
    assert toy.terminate() == 1
    assert toy.log_lines("hook_cut_off")
    assert len(toy.log_lines("stop_hook")) == 2


def test_a_start_that_fails_cleans_up_and_exits_1(processes: Processes) -> None:
    toy, reader = processes.launch("toy", module=TOY, fail_start="true")
    os.close(reader)
    assert toy.wait() == 1
    assert "no luck" in toy.log_lines("start_failed")[0]["exception"]
    assert len(toy.log_lines("stop_hook")) == 2


def test_a_start_can_be_abandoned(processes: Processes) -> None:
    toy, reader = processes.launch("toy", module=TOY, hang_start="true")
    toy.wait_for_log("hanging")
    assert toy.terminate() == 0
    assert os.read(reader, 1) == b""
    os.close(reader)
    assert toy.log_lines("start_abandoned")
    assert len(toy.log_lines("stop_hook")) == 2


def test_an_address_that_is_taken_fails_the_start(processes: Processes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        toy, reader = processes.launch("toy", module=TOY, address=f"127.0.0.1:{taken.getsockname()[1]}")
        os.close(reader)
        assert toy.wait() == 1
    assert "cannot listen on 127.0.0.1" in toy.log_lines("start_failed")[0]["exception"]


def test_two_processes_do_not_share_a_port(processes: Processes) -> None:
    first = start(processes)
    second, reader = processes.launch("toy", module=TOY, address=first.grpc)
    os.close(reader)
    assert second.wait() == 1


@pytest.mark.asyncio
async def test_a_unix_socket_serves(processes: Processes, tmp_path: Path) -> None:
    toy = start(processes, address=f"unix:{tmp_path}/toy.sock")
    assert toy.grpc == f"unix:{tmp_path}/toy.sock"
    assert await mint(toy, "ann") == "ann"


def test_settings_that_cannot_be_end_it_with_2(processes: Processes) -> None:
    toy, reader = processes.launch("toy", module=TOY, adress="127.0.0.1:0", drain_s="soon")
    os.close(reader)
    assert toy.wait() == 2
    assert "PLAYHALL_TOY_ADRESS is not a setting; did you mean PLAYHALL_TOY_ADDRESS?" in toy.log()
    assert "PLAYHALL_TOY_DRAIN_S 'soon': expected a number" in toy.log()
