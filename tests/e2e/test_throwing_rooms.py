"""Room code that raises or blocks stops its own room, and no other."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.e2e.games.stand.shared import Board, Mine, schema
from tests.support.dev import DevServer
from tests.support.players import Player, everyone, together

pytestmark = pytest.mark.asyncio

ROOM_STOPPED = 4007
ROOM_MOVED = 4008


@pytest.mark.ledger("RECO-09", "RST-07", "TERM-10", "CODE-08")
async def test_an_exception_stops_its_room_alone_and_the_tick_before_is_kept(dev: DevServer) -> None:
    async with enter(dev, "falls") as alice, enter(dev, "falls") as bob, enter(dev, "stands") as carol:
        assert (await alice.ask("look"))["process"] == (await carol.ask("look"))["process"]
        carol.events.clear()
        carol.send({"type": "beat", "on": True})
        for _ in range(3):
            alice.send({"type": "press"})
        await bob.until(lambda: bob.state.presses == 3)

        alice.send({"type": "fail"})
        await together([player.happens("closed") for player in (alice, bob)])
        assert [player.closed_with for player in (alice, bob)] == [ROOM_STOPPED, ROOM_STOPPED]
        assert [player.sockets for player in (alice, bob)] == [1, 1]

        await carol.updates(20)
        assert carol.story() == []
        [line] = [
            line for line in log_lines(dev, "roomhost") if "the stand fell" in line.get("traceback", "")
        ]
        assert (line["level"], line["room"], line["hook"]) == ("error", "falls", "on_tick")
        assert re.search(r'stand/room\.py", line \d+, in on_tick', line["traceback"])
        assert "the stand fell" in dev.log()

        async with enter(dev, "falls", alice.client.guest_token) as again:
            assert (again.state.presses, again.private.presses) == (3, 3)
            assert (again.state.creates, again.state.wakes) == (1, 1)
            assert (await again.ask("look"))["vault"] == 3


@pytest.mark.ledger("HOOK-24", "RST-08")
async def test_a_room_that_blocks_its_process_is_stopped_and_the_others_move(dev: DevServer) -> None:
    async with enter(dev, "blocks") as alice, enter(dev, "neighbour") as carol:
        before = await alice.ask("look")
        assert before["process"] == (await carol.ask("look"))["process"]
        for player in (alice, carol):
            player.send({"type": "press"})
        await everyone((alice, carol), lambda player: player.state.presses == 1)
        carol.send({"type": "beat", "on": True})
        await carol.updates(20)
        carol.events.clear()

        alice.send({"type": "block", "seconds": 60})
        await together([alice.happens("closed"), carol.happens("restored")])
        assert alice.closed_with == ROOM_STOPPED
        assert [event.value for event in carol.named("disconnected")] == [ROOM_MOVED]
        assert carol.sockets == 1
        assert (carol.state.presses, carol.state.creates, carol.state.wakes) == (1, 1, 1)
        assert (await carol.ask("look"))["process"] != before["process"]

        async with enter(dev, "blocks", alice.client.guest_token) as again:
            assert (again.state.presses, again.state.creates, again.state.wakes) == (1, 1, 1)


def enter(dev: DevServer, room: str, token: str | None = None) -> Player[Board, Mine]:
    return Player(dev.url, "stand", room, schema, token=token)


def log_lines(dev: DevServer, service: str) -> list[dict[str, Any]]:
    lines = dev.service_log(service).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
