"""A thousand new rooms, two players entering each at the same instant by both routers: each starts once."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from playhall.engine import frames
from tests.e2e.games.stand.shared import schema
from tests.support.dev import DevServer
from tests.support.players import together
from tests.support.router_client import RouterClient

pytestmark = pytest.mark.asyncio

SETTINGS = {"PLAYHALL_ROOMHOST_PROCESSES_PER_BUILD": "5"}
ROOMS = 1_000
ROUND = 50


@pytest.mark.timeout(240)
@pytest.mark.ledger("HIB-12")
async def test_a_thousand_rooms_start_once_each_for_both_of_their_players(dev: DevServer) -> None:
    generations: set[int] = set()
    processes: Counter[int] = Counter()
    for first in range(0, ROOMS, ROUND):
        names = [f"room-{number}" for number in range(first, first + ROUND)]
        for generation, process in await play_round(dev, names):
            generations.add(generation)
            processes[process] += 1
    assert len(generations) == ROOMS
    assert sum(processes.values()) == ROOMS
    assert len(processes) > 1
    created = Counter(re.findall(r"created (room-\d+)", dev.service_log("roomhost")))
    assert created == Counter({f"room-{number}": 1 for number in range(ROOMS)})


async def play_round(dev: DevServer, names: list[str]) -> list[tuple[int, int]]:
    """Two players enter each of the rooms at once; return each room's generation and process."""
    routers = [urlsplit(url).netloc for url in dev.websockets]
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                RouterClient(router, project="stand", room=name, schema=schema.hash)
            )
            for name in names
            for router in routers
        ]
        await together([client.join() for client in clients])
        pairs = list(zip(clients[::2], clients[1::2], strict=True))
        return await together([look(*pair) for pair in pairs])


async def look(one: RouterClient, other: RouterClient) -> tuple[int, int]:
    """Both are in the one room there is."""
    assert one.welcome is not None
    assert other.welcome is not None
    assert one.welcome.generation == other.welcome.generation
    for client in (one, other):
        seen = await ask(client)
        assert seen["here"] == sorted([one.welcome.player, other.welcome.player])
    return one.welcome.generation, seen["process"]


async def ask(client: RouterClient) -> dict[str, Any]:
    await client.send(frames.Message({"type": "look", "ask": 1}))
    while True:
        frame = await client.receive()
        if isinstance(frame, frames.Message):
            content: dict[str, Any] = frame.content
            return content
