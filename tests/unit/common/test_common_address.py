"""Addresses in settings."""

from __future__ import annotations

import pytest

from playhall_common.address import is_unix, join_host_port, split_host_port


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("127.0.0.1:0", "127.0.0.1", 0), ("localhost:65535", "localhost", 65535), ("[::1]:7350", "::1", 7350)],
)
def test_host_and_port(address: str, host: str, port: int) -> None:
    assert split_host_port(address) == (host, port)
    assert join_host_port(host, port) == address


@pytest.mark.parametrize(
    "address", ["", "localhost", "localhost:", ":80", "a:65536", "a:-1", "::1:80", "a:٣"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError):
        split_host_port(address)


def test_unix_sockets() -> None:
    assert is_unix("unix:/run/x.sock")
    assert not is_unix("unix.example:80")
