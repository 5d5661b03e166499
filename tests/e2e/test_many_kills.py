"""Ten kills in a row, of anything there is, while players press a button: what was durable is never lost."""

from __future__ import annotations

import os
import random
import signal

import pytest

from tests.e2e.games.stand.shared import Board, Mine, Pawn, schema
from tests.support.dev import DevServer
from tests.support.players import Player, eventually, everyone, together

pytestmark = pytest.mark.asyncio

KILLS = 10
SEED = 2
SECOND_OF_TICKS = 20
VICTIMS = ("process", "statestore", "router", "roomhost", "data", "valkey")


@pytest.mark.timeout(240)
@pytest.mark.ledger("RST-08", "RST-10")
async def test_clients_and_room_agree_after_each_of_ten_kills(dev: DevServer) -> None:
    rng = random.Random(SEED)
    victims = [*VICTIMS, *rng.choices(VICTIMS, k=KILLS - len(VICTIMS))]
    rng.shuffle(victims)
    players = [Player(dev.url, "stand", "main", schema) for _ in range(3)]
    async with players[0], players[1], players[2]:
        players[0].send({"type": "beat", "on": True})
        for number, victim in enumerate(victims):
            durable = await press_until_durable(players)
            print(f"kill {number} of seed {SEED}: {victim}, with {durable} presses durable")
            await kill(dev, players[0], victim)
            for player in players:
                player.send({"type": "press"})  # may be lost
            seen = await together([player.ask_until_answered("look") for player in players])
            assert min(look["presses"] for look in seen) >= durable
            assert min(look["vault"] for look in seen) >= durable
            await agreed(players)
        board = players[0].state
        assert board.creates == 1
        assert all(player.client.status == "open" for player in players)


async def press_until_durable(players: list[Player[Board, Mine]]) -> int:
    """Everyone presses, until all see it and a second has passed with the state store up."""
    presses = players[0].state.presses + len(players)
    for player in players:
        player.send({"type": "press"})
    await everyone(players, lambda player: player.state.presses >= presses)
    await players[0].updates(SECOND_OF_TICKS)
    return presses


async def kill(dev: DevServer, player: Player[Board, Mine], victim: str) -> None:
    """Kill one thing by -9, and wait until what is started again serves."""
    if victim == "process":
        seen = await player.ask("look")
        os.kill(seen["process"], signal.SIGKILL)
        return
    running = set(dev.running(victim))
    serving = starts(dev, victim)
    killed = dev.kill(victim)
    await eventually(lambda: killed not in dev.running(victim) and len(dev.running(victim)) == len(running))
    await eventually(lambda: victim == "valkey" or starts(dev, victim) > serving)  # Valkey tells nobody


def starts(dev: DevServer, service: str) -> int:
    names = ("router-1", "router-2") if service == "router" else (service,)
    return sum(dev.service_log(name).count('"event":"serving"') for name in names)


async def agreed(players: list[Player[Board, Mine]]) -> None:
    """Wait until everyone holds the same state: what each update brings must make them equal."""

    def held(player: Player[Board, Mine]) -> tuple[object, ...]:
        board = player.state
        pawns = {(pawn.id, pawn.owner, pawn.number) for pawn in player.client.entities.all(Pawn)}
        presence = {entry.player for entry in player.client.presence.values() if entry.connected}
        return board.presses, board.joins, board.wakes, pawns, presence

    await players[0].until(lambda: len({str(sorted(map(str, held(player)))) for player in players}) == 1)
