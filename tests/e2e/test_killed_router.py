"""A router is killed by -9: its players come back by the other one, and are sent only what they lack."""

from __future__ import annotations

import os
import signal
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import psutil
import pytest

from tests.e2e.games.stand.shared import Board, Mine, Pawn, schema
from tests.support.dev import DevServer
from tests.support.players import Player, everyone, together

pytestmark = pytest.mark.asyncio

MOST_PLAYERS = 24


@pytest.mark.ledger("RECO-03", "CODE-15")
async def test_its_players_resume_on_the_other_router_and_the_rest_notice_nothing(dev: DevServer) -> None:
    async with AsyncExitStack() as stack:
        by_the_first, by_the_second = await players_on_both_routers(dev, stack)
        players = by_the_first + by_the_second
        players[0].send({"type": "beat", "on": True})
        await press(players)
        generation = players[0].client.generation
        held = [{pawn.id: pawn for pawn in player.client.entities.all(Pawn)} for player in players]
        for player in players:
            player.events.clear()
            player.client.entities.on_enter(Pawn, lambda pawn: pytest.fail(f"{pawn} entered again"))
            player.client.entities.on_leave(Pawn, lambda pawn: pytest.fail(f"{pawn} left"))
            player.client.presence.on_leave(lambda entry: pytest.fail(f"{entry} left"))
            player.client.presence.on_join(lambda entry: pytest.fail(f"{entry} joined again"))

        os.kill(dev.pids["router-1"], signal.SIGKILL)
        await together([player.happens("disconnected") for player in by_the_first])
        await together([player.happens("restored") for player in by_the_first])
        await press(players)

        for player, pawns in zip(players, held, strict=True):
            assert player.client.generation == generation
            now = player.client.entities.all(Pawn)
            assert len(now) == len(pawns)
            assert all(pawn is pawns[pawn.id] for pawn in now)
        for player in by_the_second:
            assert player.story() == []
            assert player.sockets == 1
        for player in by_the_first:
            assert player.story() == ["disconnected", "restored"]
        assert (players[0].state.creates, players[0].state.wakes) == (1, 0)
        assert players[0].state.leaves == len(by_the_first)
        assert players[0].state.joins == len(players) + len(by_the_first)


async def players_on_both_routers(
    dev: DevServer, stack: AsyncExitStack
) -> tuple[list[Player[Board, Mine]], list[Player[Board, Mine]]]:
    """A client takes a router at random: players enter until both routers have two."""
    first: list[Player[Board, Mine]] = []
    second: list[Player[Board, Mine]] = []
    while min(len(first), len(second)) < 2:
        assert len(first) + len(second) < MOST_PLAYERS
        sockets = sockets_of(dev, "router-1")
        player = await stack.enter_async_context(Player(dev.url, "stand", "main", schema))
        (first if sockets_of(dev, "router-1") > sockets else second).append(player)
    return first, second


def sockets_of(dev: DevServer, router: str) -> int:
    """How many players' sockets a router process holds."""
    port = urlsplit(dev.websockets[int(router[-1]) - 1]).port
    return sum(
        connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port
        for connection in psutil.Process(dev.pids[router]).net_connections("tcp")
    )


async def press(players: list[Player[Board, Mine]]) -> None:
    """Everyone presses, and sees that all did."""
    presses = players[0].state.presses + len(players)
    for player in players:
        player.send({"type": "press"})
    await everyone(players, lambda player: player.state.presses == presses)
