"""voice.v1 to the domain and back."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from playhall.api.voice.v1 import voice_pb2, voice_pb2_grpc
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_voice.tokens import DEFAULT_TTL_S, LiveKit, Speaker, mint

if TYPE_CHECKING:
    import grpc.aio


class VoiceServicer(voice_pb2_grpc.VoiceServicer):
    """Answers for one LiveKit server, or says that there is none."""

    def __init__(self, livekit: LiveKit | None) -> None:
        self._livekit = livekit

    async def Mint(  # gRPC's name
        self, request: voice_pb2.MintRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> voice_pb2.MintResponse:
        if self._livekit is None:
            raise ApiError(
                ErrorCode.UNAVAILABLE, "no voice server is configured: set PLAYHALL_VOICE_LIVEKIT_URL"
            )
        speaker = Speaker(
            request.project, request.room_uid, request.player, request.name, request.ttl_s or DEFAULT_TTL_S
        )
        # A thread, because the first call imports LiveKit's package, which would hold up health checks.
        token = await asyncio.to_thread(mint, self._livekit, speaker)
        expires_at_ms = int((time.time() + speaker.ttl_s) * 1000)
        return voice_pb2.MintResponse(url=self._livekit.url, token=token, expires_at_ms=expires_at_ms)
