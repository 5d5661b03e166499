"""`python -m playhall_voice`: wiring."""

from __future__ import annotations

from typing import NoReturn

from playhall.api.voice.v1 import voice_pb2_grpc
from playhall_common.auth import service_guard
from playhall_common.config import load_or_exit
from playhall_common.server import Service, run
from playhall_voice.config import PREFIX, VoiceConfig
from playhall_voice.servicer import VoiceServicer
from playhall_voice.tokens import LiveKit


def main() -> NoReturn:
    config = load_or_exit(VoiceConfig, PREFIX)
    livekit = None
    if config.livekit_url and config.livekit_key and config.livekit_secret:
        livekit = LiveKit(config.livekit_url, config.livekit_key, config.livekit_secret)

    async def set_up(service: Service) -> None:
        service.guard_with(service_guard(config.service_secret))
        voice_pb2_grpc.add_VoiceServicer_to_server(VoiceServicer(livekit), service.grpc)

    run("voice", set_up, config)


if __name__ == "__main__":
    main()
