"""A room that everyone left hibernates after 30 s and wakes as it was.

The 30 s are a promise to players and no setting, so one story waits for them, once.
"""

from __future__ import annotations

import re
import time

import pytest

from tests.e2e.games.stand.shared import Board, Mine, Pawn, schema
from tests.support.dev import DevServer
from tests.support.players import Player, eventually

pytestmark = pytest.mark.asyncio

IDLE_S = 30.0
HIBERNATED = 4011
TICK_RATE = 20


@pytest.mark.timeout(150)
@pytest.mark.ledger("HIB-08", "HIB-11", "ENT-06", "STATE-21", "STATE-22", "RECO-02")
async def test_an_empty_room_hibernates_after_30_seconds_and_wakes_with_its_state(dev: DevServer) -> None:
    async with enter(dev, "idle") as alice:
        player, token = alice.player, alice.client.guest_token
        generation = alice.client.generation
        for _ in range(3):
            alice.send({"type": "press"})
        alice.send({"type": "beat", "on": True})
        spawned = [(await alice.ask("spawn", number=number))["id"] for number in (7, 8)]
        seen = await alice.ask("look")
        assert (seen["presses"], seen["vault"]) == (3, 3)
    left_at = time.monotonic()

    await eventually(lambda: logged_ticks(dev, "hibernating"), timeout=2 * IDLE_S)
    assert IDLE_S - 0.5 < time.monotonic() - left_at < IDLE_S + 5
    [slept_at] = logged_ticks(dev, "hibernating")
    assert slept_at - seen["tick"] == pytest.approx(IDLE_S * TICK_RATE, abs=2 * TICK_RATE)

    async with enter(dev, "idle", token) as again:
        assert logged_ticks(dev, "woken") == [slept_at]
        assert again.player == player
        assert again.client.generation != generation
        assert again.story() == ["waking"]
        board = again.state
        assert (board.creates, board.wakes, board.leaves, board.player_leaves) == (1, 1, 1, 1)
        assert board.presses == 3
        assert board.beats >= slept_at - seen["tick"]
        assert again.private.presses == 3
        assert {pawn.id for pawn in again.client.entities.all(Pawn) if pawn.number in (7, 8)} == set(spawned)
        assert (await again.ask("look"))["vault"] == 3
        assert (await again.ask("spawn", number=9))["id"] == max(spawned) + 1


@pytest.mark.ledger("HIB-02", "RECO-10", "CODE-12")
async def test_a_room_that_asks_to_hibernate_is_there_again_for_the_next_player(dev: DevServer) -> None:
    async with enter(dev, "asked") as alice:
        token = alice.client.guest_token
        alice.send({"type": "press"})
        alice.send({"type": "hibernate"})
        await alice.happens("closed")
        assert alice.closed_with == HIBERNATED
        assert alice.sockets == 1
    async with enter(dev, "asked", token) as again:
        board = again.state
        assert (board.creates, board.wakes, board.presses, again.private.presses) == (1, 1, 1, 1)
        assert (board.leaves, board.player_leaves) == (1, 1)


def enter(dev: DevServer, room: str, token: str | None = None) -> Player[Board, Mine]:
    return Player(dev.url, "stand", room, schema, token=token)


def logged_ticks(dev: DevServer, what: str) -> list[int]:
    """The ticks at which the stand wrote a line to its log."""
    return [int(tick) for tick in re.findall(rf"{what} at tick (\d+)", dev.service_log("roomhost"))]
