"""The state store is killed by -9: rooms go on without it, and what they did meanwhile is kept."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.games.stand.shared import Board, Mine, schema
from tests.support.dev import DevServer
from tests.support.players import Player, eventually, everyone, together

pytestmark = pytest.mark.asyncio

SECOND_OF_TICKS = 20


@pytest.mark.ledger("RST-08")
async def test_rooms_go_on_and_nothing_is_lost_when_their_host_dies_after(dev: DevServer) -> None:
    players = [Player(dev.url, "stand", "main", schema) for _ in range(2)]
    async with players[0], players[1]:
        players[0].send({"type": "beat", "on": True})
        await press(players, 3)
        await players[0].updates(SECOND_OF_TICKS)
        generation = players[0].client.generation

        for player in players:
            player.events.clear()
        starts = dev.service_log("statestore").count('"serving"')
        killed = dev.kill("statestore")
        beats = players[0].state.beats
        await press(players, 4)
        await players[0].updates(SECOND_OF_TICKS)
        assert players[0].state.beats >= beats + SECOND_OF_TICKS
        await eventually(lambda: dev.service_log("statestore").count('"serving"') > starts)
        assert killed not in dev.running("statestore")

        # Routers and rooms come back to it, and the room replays what it kept.
        await press(players, 5)
        floor = players[0].state.beats
        await players[0].updates(3 * SECOND_OF_TICKS)
        for player in players:
            assert player.story() == []
            assert player.client.generation == generation
            assert player.sockets == 1
        seen = await players[0].ask("look")

        os.kill(seen["process"], signal.SIGKILL)
        await together([player.happens("restored") for player in players])
        for player in players:
            assert player.state.presses == 24
            assert player.private.presses == 12
            assert player.state.beats >= floor
        assert (await players[0].ask("look"))["vault"] == 24
        assert (players[0].state.creates, players[0].state.wakes) == (1, 1)


async def test_a_room_is_there_after_the_store_and_its_host_die_at_once(dev: DevServer) -> None:
    players = [Player(dev.url, "stand", "both", schema) for _ in range(2)]
    async with players[0], players[1]:
        players[0].send({"type": "beat", "on": True})
        await press(players, 3)
        floor = players[0].state.beats
        await players[0].updates(SECOND_OF_TICKS)  # by then it is durable
        seen = await players[0].ask("look")

        os.kill(seen["process"], signal.SIGKILL)
        dev.kill("statestore")
        await together([player.happens("restored") for player in players])
        await together([player.ask_until_answered("look") for player in players])
        for player in players:
            assert player.state.presses == 6
            assert player.private.presses == 3
            assert player.state.beats >= floor
        assert players[0].state.creates == 1


async def press(players: list[Player[Board, Mine]], times: int) -> None:
    """Everyone presses so many times, and sees that all did."""
    presses = players[0].state.presses + times * len(players)
    for player in players:
        for _ in range(times):
            player.send({"type": "press"})
    await everyone(players, lambda player: player.state.presses == presses)
