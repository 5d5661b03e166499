"""Settings of the router."""

from __future__ import annotations

import pytest

from playhall_common.config import ConfigError, load
from playhall_router.config import PREFIX, RouterConfig

ENVIRON = {
    "PLAYHALL_SERVICE_SECRET": "a secret for tests only",
    "PLAYHALL_ROUTER_DATA_ADDRESS": "unix:/run/data.sock",
    "PLAYHALL_ROUTER_HOSTS": "unix:/run/one.sock, unix:/run/two.sock",
}


def read(**changes: str) -> RouterConfig:
    return load(
        RouterConfig, PREFIX, ENVIRON | {f"PLAYHALL_ROUTER_{name}": value for name, value in changes.items()}
    )


def test_little_must_be_said() -> None:
    config = read()
    assert config.hosts == ["unix:/run/one.sock", "unix:/run/two.sock"]
    assert (config.http_address, config.redis_url, config.voice_address) == ("127.0.0.1:7350", "", "")


def test_the_guest_key_is_given_or_made_of_the_service_secret() -> None:
    assert read(GUEST_KEY="0123456789abcdef").guest_secret == "0123456789abcdef"
    assert read().guest_secret == read().guest_secret != ENVIRON["PLAYHALL_SERVICE_SECRET"]


@pytest.mark.parametrize(
    "changes",
    [
        {"HTTP_ADDRESS": "7350"},
        {"WEBSOCKET_ADDRESS": "unix:/run/x"},
        {"HOSTS": ""},
        {"GUEST_KEY": "short"},
        {"PUBLIC_WEBSOCKETS": "http://play.example"},
        {"CLOSES_PER_S": "0"},
        {"WEBSOCKETS": "1"},
    ],
)
def test_what_cannot_be_is_said_at_start(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        read(**changes)
