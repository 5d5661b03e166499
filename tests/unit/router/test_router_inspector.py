"""Whom the inspector answers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_router.inspector import Inspector
from playhall_router.inspector_http import InspectorHttp, is_inspector, is_local


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7350", "127.0.0.1", "127.0.0.1:7350", "[::1]:80"])
def test_this_machine_that_is_asked_for_by_its_name(peer: str, host: str) -> None:
    assert is_local(peer, host)


@pytest.mark.parametrize(
    "peer", ["192.168.1.7", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "0.0.0.0", ""]
)
def test_other_machines_are_refused(peer: str) -> None:
    assert not is_local(peer, "localhost:7350")


@pytest.mark.parametrize(
    "host",
    [
        None, "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:", "::1",
        "localhost:7350@evil.example", "127.1", "2130706433", "0.0.0.0", "192.168.1.7", "localhost\n",
        "[::1]:x",
    ],
)  # fmt: skip
def test_other_names_are_refused(host: str | None) -> None:
    assert not is_local("127.0.0.1", host)


class Transport:
    """The end of a socket."""

    def __init__(self, peer: object) -> None:
        self._peer = peer

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._peer if name == "peername" else default


class Rooms:
    """An inspector without rooms."""

    async def rooms(self) -> dict[str, Any]:
        return {"rooms": [], "silent": []}


async def ask(peer: object, **headers: str) -> web.StreamResponse:
    served = InspectorHttp(cast(Inspector, Rooms()))
    handler = next(route.handler for route in served.routes() if route.path.endswith("}"))
    transport = cast(asyncio.Transport, Transport(peer))
    request = make_mocked_request(
        "GET", "/v1/dev/rooms", headers=headers, transport=transport, match_info={"path": "rooms"}
    )
    answer = await cast(Any, handler)(request)
    assert isinstance(answer, web.StreamResponse)
    return answer


@pytest.mark.asyncio
async def test_a_peer_is_known_by_its_socket_whatever_headers_say() -> None:
    assert (await ask(("127.0.0.1", 5), Host="localhost")).status == 200
    for peer in (("203.0.113.9", 5), "", None, ("203.0.113.9", 5, 0, 0)):
        with pytest.raises(ApiError) as refused:
            await ask(
                peer, **{"Host": "localhost", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
            )
        assert refused.value.code is ErrorCode.FORBIDDEN


def test_which_paths_are_the_inspectors() -> None:
    assert all(map(is_inspector, ("/v1/dev", "/v1/dev/", "/v1/dev/rooms")))
    assert not any(map(is_inspector, ("/", "/v1/device", "/v1/projects/dev/endpoints")))
