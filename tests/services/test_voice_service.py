"""The voice service as a real process. Its tokens are read as LiveKit reads them."""

from __future__ import annotations

import time
from typing import Any

import grpc.aio
import jwt
import pytest

from playhall.api.voice.v1 import voice_pb2, voice_pb2_grpc
from playhall.engine.codes import ErrorCode
from playhall_common.auth import bearer_metadata, channel
from playhall_common.errors import ApiError, from_rpc
from tests.support.processes import SERVICE_SECRET, Processes, ServiceProcess

ROOM = "01ARYZ6S410000000000000000"
LIVEKIT_SECRET = "a livekit secret of 32 bytes or more"
LIVEKIT = {
    "livekit_url": "wss://voice.example",
    "livekit_key": "the key",
    "livekit_secret": LIVEKIT_SECRET,
}


async def mint(
    service: ServiceProcess, secret: str = SERVICE_SECRET, **fields: Any
) -> voice_pb2.MintResponse:
    request = {"project": "dots", "room_uid": ROOM, "player": "guest:ann", "name": "Ann"} | fields
    async with channel(service.grpc) as to_voice:
        stub = voice_pb2_grpc.VoiceStub(to_voice)
        try:
            return await stub.Mint(
                voice_pb2.MintRequest(**request), metadata=bearer_metadata(secret), timeout=10
            )
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from None


async def code_of(service: ServiceProcess, **fields: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await mint(service, **fields)
    return caught.value.code


@pytest.mark.asyncio
async def test_a_token_lets_a_player_speak_in_its_room_and_nothing_more(processes: Processes) -> None:
    voice = processes.start("voice", **LIVEKIT)
    before = time.time()
    answer = await mint(voice, ttl_s=600)
    claims = jwt.decode(answer.token, LIVEKIT_SECRET, algorithms=["HS256"])
    assert answer.url == "wss://voice.example"
    assert (claims["iss"], claims["sub"], claims["name"]) == ("the key", "guest:ann", "Ann")
    assert claims["video"] == {
        "roomJoin": True,
        "room": ROOM,
        "canPublish": True,
        "canPublishSources": ["microphone"],
        "canPublishData": False,
        "canSubscribe": True,
        "canUpdateOwnMetadata": False,
    }
    assert before + 599 <= claims["exp"] <= time.time() + 601
    assert abs(answer.expires_at_ms / 1000 - claims["exp"]) < 2


@pytest.mark.asyncio
async def test_a_token_lasts_an_hour_unless_told_and_six_at_most(processes: Processes) -> None:
    voice = processes.start("voice", **LIVEKIT)
    for asked, given in ((0, 3600), (21_600, 21_600)):
        answer = await mint(voice, ttl_s=asked)
        assert abs(answer.expires_at_ms / 1000 - time.time() - given) < 5
    assert await code_of(voice, ttl_s=21_601) is ErrorCode.INVALID
    assert await code_of(voice, player="bot:1") is ErrorCode.INVALID
    assert await code_of(voice, room_uid="main") is ErrorCode.INVALID
    assert await code_of(voice, secret="not the secret") is ErrorCode.UNAUTHENTICATED


@pytest.mark.asyncio
async def test_without_livekit_there_is_no_voice_and_the_service_runs(processes: Processes) -> None:
    voice = processes.start("voice")
    assert await code_of(voice) is ErrorCode.UNAVAILABLE
    assert voice.terminate() == 0
