"""Whom the inspector answers, and of which generation."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_router.hosts import Hosts
from playhall_router.inspector import Inspector
from playhall_router.inspector_http import InspectorHttp, is_inspector, is_local
from playhall_router.placement import Placement, Pod, Process
from playhall_router.registry import Registry
from playhall_router.wake import Ownership


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


class Processes:
    """Room host processes that all say they run the room `main`, each in its generation."""

    def __init__(self, **generations: int) -> None:
        self.placement = Placement()
        self.generations = generations
        processes = tuple(Process(host_id, f"{host_id}:1", "b1", 1, 10) for host_id in generations)
        self.placement.update(Pod("pod:1", "games", False, processes))

    async def inspect(self, process: Process, request: pb.InspectRequest) -> bytes:
        generation = self.generations.get(process.host_id)
        if generation is None:
            raise ApiError(ErrorCode.UNAVAILABLE)
        room = {"project": "games", "id": "main", "uid": "uid-1", "generation": generation}
        return json.dumps(room if request.room_uid else [room]).encode()


class Names:
    """A registry that knows the room `main`."""

    async def lookup(self, project: str, room_id: str) -> Any:
        room = SimpleNamespace(room_uid="uid-1", project=project, room_id=room_id, room_type="default")
        return SimpleNamespace(room=room)


def inspector_of(processes: Processes, ownership: Ownership = Ownership.LIVE) -> Inspector:
    async def read(room_uid: str) -> Ownership:
        return ownership

    return Inspector(cast(Registry, Names()), cast(Hosts, processes), read)


@pytest.mark.asyncio
@pytest.mark.parametrize("generations", [{"a": 4, "b": 5}, {"a": 5, "b": 4}])
async def test_of_two_processes_that_show_a_room_the_newer_generation_counts(
    generations: dict[str, int],
) -> None:
    inspector = inspector_of(Processes(**generations))
    assert (await inspector.room("games", "main", pb.InspectRequest()))["generation"] == 5
    assert [room["generation"] for room in (await inspector.rooms())["rooms"]] == [5]


@pytest.mark.asyncio
async def test_an_older_generation_is_not_shown_again() -> None:
    processes = Processes(a=4, b=5)
    inspector = inspector_of(processes)
    await inspector.rooms()
    del processes.generations["b"]
    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            await inspector.room("games", "main", pb.InspectRequest())
        assert refused.value.code is ErrorCode.UNAVAILABLE
    assert (await inspector.rooms())["rooms"] == []
    processes.generations["b"] = 6
    assert (await inspector.room("games", "main", pb.InspectRequest()))["generation"] == 6


@pytest.mark.asyncio
async def test_an_old_process_does_not_hide_that_the_room_sleeps() -> None:
    processes = Processes(a=4, b=5)
    inspector = inspector_of(processes, Ownership.CLOSED)
    await inspector.rooms()
    del processes.generations["b"]
    assert (await inspector.room("games", "main", pb.InspectRequest()))["status"] == "hibernated"
