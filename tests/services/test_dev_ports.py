"""The ports `playhall dev` takes, and what it says where it cannot have one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from playhall.cli.errors import StartError
from playhall.cli.ports import (
    check_port,
    free_ports,
    join_host_port,
    loopback_name,
    other_name,
    public_host,
)

HOST = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_free_port_is_taken_as_asked(taken: int) -> None:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        free = probe.getsockname()[1]
    assert check_port(HOST, free) == free
    assert check_port(HOST, 0) not in (0, taken)


def test_a_port_in_use_is_said_with_what_to_do(taken: int) -> None:
    with pytest.raises(StartError, match=rf"port {taken} on {HOST} is in use.*--port.*make play PORT=8000"):
        check_port(HOST, taken)


@pytest.mark.parametrize(
    ("host", "said"),
    [("nowhere.invalid", "there is no such address"), ("203.0.113.7", "is not an address of this machine")],
)
def test_a_host_that_is_not_this_machine_is_said(host: str, said: str) -> None:
    with pytest.raises(StartError, match=said):
        check_port(host, 0)


def test_websocket_ports_follow_the_sites_where_they_are_free(taken: int) -> None:
    ports = free_ports(HOST, taken, 3)
    assert len({*ports, taken}) == 4


def test_there_is_no_port_after_the_last() -> None:
    ports = free_ports(HOST, 65_536, 2)
    assert len(set(ports)) == 2
    assert max(ports) < 65_536


def test_addresses_of_ipv6_have_brackets() -> None:
    assert join_host_port("::1", 7350) == "[::1]:7350"
    assert join_host_port("localhost", 7350) == "localhost:7350"


def test_another_name_makes_another_guest() -> None:
    assert other_name("127.0.0.1") == "localhost"
    assert other_name("localhost") == "127.0.0.1"
    assert other_name("0.0.0.0") == "127.0.0.1"
    assert other_name("10.0.0.7") == "10.0.0.7"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("::1", "::1"),
        ("0.0.0.0", "127.0.0.1"),
        ("10.0.0.7", None),
    ],
)
def test_what_this_machine_alone_calls_a_host(host: str, name: str | None) -> None:
    assert loopback_name(host) == name


def test_listening_everywhere_is_reached_at_a_real_address() -> None:
    found = public_host("0.0.0.0")
    assert found not in ("0.0.0.0", "")
    check_port(found, 0)
    assert public_host("10.0.0.7") == "10.0.0.7"
