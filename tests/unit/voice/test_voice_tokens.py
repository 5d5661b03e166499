"""Voice tokens: who may do what in which LiveKit room."""

from __future__ import annotations

import pytest

from playhall.engine.codes import ErrorCode
from playhall_common.config import ConfigError, load
from playhall_common.errors import ApiError
from playhall_voice.config import PREFIX, VoiceConfig
from playhall_voice.tokens import Speaker

ROOM = "01ARYZ6S410000000000000000"
SECRET = "a secret of sixteen or more"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("project", "No Slug"),
        ("room_uid", "main"),
        ("player", ""),
        ("player", "bot:7"),
        ("name", "n" * 257),
        ("ttl_s", 0),
        ("ttl_s", 21_601),
    ],
)
def test_no_speaker(field: str, value: object) -> None:
    values = {"project": "dots", "room_uid": ROOM, "player": "ann", "name": "Ann", "ttl_s": 60}
    with pytest.raises(ApiError) as caught:
        Speaker(**(values | {field: value}))  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID
    assert caught.value.details["field"] == field


def voice_config(**environ: str) -> VoiceConfig:
    named = {f"{PREFIX}_{name}": value for name, value in environ.items()}
    return load(VoiceConfig, PREFIX, {"PLAYHALL_SERVICE_SECRET": SECRET} | named)


def test_half_a_livekit_is_refused() -> None:
    with pytest.raises(ConfigError, match="go together"):
        voice_config(LIVEKIT_URL="wss://voice.example")


def test_livekit_is_reached_by_websocket() -> None:
    with pytest.raises(ConfigError, match="ws://"):
        voice_config(LIVEKIT_URL="https://voice.example", LIVEKIT_KEY="k", LIVEKIT_SECRET="s")


def test_no_livekit_is_fine() -> None:
    assert voice_config().livekit_url is None
