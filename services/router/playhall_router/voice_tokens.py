"""Voice tokens for players, from the voice service; and nothing where there is none."""

from __future__ import annotations

import asyncio

import grpc.aio

from playhall.api.voice.v1 import voice_pb2 as pb
from playhall.api.voice.v1 import voice_pb2_grpc as rpc
from playhall.engine import frames
from playhall_common import logs
from playhall_common.auth import channel, service_metadata
from playhall_common.errors import from_rpc

__all__ = ["VoiceTokens"]

DEADLINE_S = 5.0
_REST_S = 60.0

log = logs.get_logger()


class VoiceTokens:
    """The voice service, as a client. After a failure it is left alone for a minute: most games have no
    voice.
    """

    def __init__(self, address: str, secret: str) -> None:
        self._channel = channel(address) if address else None
        self._metadata = service_metadata(secret)
        self._rest_until = 0.0

    async def close(self) -> None:
        """End calls under way."""
        if self._channel is not None:
            await self._channel.close(None)

    async def frame(self, project: str, room_uid: str, player: str) -> bytes | None:
        """The voice frame for a player who joined; None where the game has no voice."""
        now = asyncio.get_running_loop().time()
        if self._channel is None or now < self._rest_until:
            return None
        request = pb.MintRequest(project=project, room_uid=room_uid, player=player)
        try:
            minted: pb.MintResponse = await rpc.VoiceStub(self._channel).Mint(
                request, metadata=self._metadata, timeout=DEADLINE_S
            )
        except grpc.aio.AioRpcError as failure:
            self._rest_until = now + _REST_S
            log.debug("voice_away", error=from_rpc(failure).message)
            return None
        return frames.encode_server(frames.Voice(minted.url, minted.token))
