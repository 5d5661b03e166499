"""A room host process is killed by -9 under its players: they keep their sockets, and the room comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from playhall.client import PlayhallError
from tests.e2e.games.stand.shared import Board, Mine, Pawn, Press, schema
from tests.support.dev import DevServer
from tests.support.players import Player, everyone, together

pytestmark = pytest.mark.asyncio

BACK_S = 2.0
ROOM_MOVED = 4008
SECOND_OF_TICKS = 20


@pytest.mark.ledger(
    "RECO-02", "RECO-04", "RECO-08", "RST-08", "RST-10", "HOOK-04", "CODE-09", "STATE-21", "STATE-22"
)
async def test_the_room_is_back_within_two_seconds_and_nobody_lost_the_socket(dev: DevServer) -> None:
    players = [Player(dev.url, "stand", "main", schema) for _ in range(3)]
    async with players[0], players[1], players[2]:
        process, floor = await play_until_durable(players)
        before = [(player.client.generation, set(player.client.entities.all(Pawn))) for player in players]
        entered: list[Pawn] = []
        left: list[Pawn] = []
        players[0].client.entities.on_enter(Pawn, entered.append)
        players[0].client.entities.on_leave(Pawn, left.append)

        for player in players:
            player.events.clear()
        killed_at = time.monotonic()
        os.kill(process, signal.SIGKILL)
        restored = await together([player.happens("restored") for player in players])

        assert max(event.at for event in restored) - killed_at < BACK_S
        for player, (generation, pawns) in zip(players, before, strict=True):
            assert player.sockets == 1
            assert player.story() == ["disconnected", "waking", "restored"]
            assert player.named("disconnected")[0].value == ROOM_MOVED
            assert player.client.generation != generation
            assert set(player.client.entities.all(Pawn)).isdisjoint(pawns)
            assert player.state.presses == 15
            assert player.private.presses == 5
            assert player.state.beats >= floor
        assert len({player.client.generation for player in players}) == 1
        assert set(left) == before[0][1]
        assert {pawn.id for pawn in entered} == {pawn.id for pawn in left}

        await everyone(players, lambda player: player.state.joins == 6)
        board = players[0].state
        assert (board.creates, board.wakes, board.leaves, board.player_leaves) == (1, 1, 0, 0)
        assert board.reason == "crash"
        seen = await players[0].ask("look")
        assert seen["process"] != process
        assert seen["vault"] == 15

        players[0].send({"type": "press"})
        await everyone(players, lambda player: player.state.presses == 16)


@pytest.mark.ledger("CALL-09")
async def test_what_a_call_was_answered_for_is_there_after_a_kill(dev: DevServer) -> None:
    async with Player(dev.url, "stand", "answered", schema) as alice:
        process = (await alice.ask("look"))["process"]
        replies = [await alice.client.call(Press(times=3))]
        assert (replies, alice.state.presses, alice.private.presses) == ([3], 3, 3)

        async def press_on() -> None:
            while True:
                replies.append(await alice.client.call(Press()))

        pressing = asyncio.ensure_future(press_on())
        os.kill(process, signal.SIGKILL)
        with pytest.raises(PlayhallError) as raised:
            await pressing
        assert raised.value.code == 0
        await alice.happens("restored")
        assert replies[-1] <= alice.state.presses <= replies[-1] + 1
        assert await alice.client.call(Press()) == alice.state.presses


@pytest.mark.ledger("RECO-08", "RST-10")
async def test_a_second_kill_is_survived_as_the_first(dev: DevServer) -> None:
    players = [Player(dev.url, "stand", "twice", schema) for _ in range(3)]
    async with players[0], players[1], players[2]:
        for kills in (1, 2):
            process, _ = await play_until_durable(players)
            killed_at = time.monotonic()
            os.kill(process, signal.SIGKILL)
            restored = await together([player.happens("restored", kills) for player in players])
            assert max(event.at for event in restored) - killed_at < BACK_S
        assert [player.sockets for player in players] == [1, 1, 1]
        await everyone(players, lambda player: player.state.joins == 9)
        board = players[0].state
        assert (board.presses, board.creates, board.wakes, board.leaves) == (30, 1, 2, 0)


async def play_until_durable(players: list[Player[Board, Mine]]) -> tuple[int, int]:
    """Each presses five times, and the room beats for a second after.

    Return the room's process, and the beats that were seen a second ago and are durable by now, too.
    """
    presses = players[0].state.presses + 5 * len(players)
    for player in players:
        for _ in range(5):
            player.send({"type": "press"})
    players[0].send({"type": "beat", "on": True})
    await everyone(players, lambda player: player.state.presses == presses)
    beats = max(player.state.beats for player in players)
    await players[0].updates(SECOND_OF_TICKS)  # records go out with ticks, and are committed within 5 ms
    seen = await players[0].ask("look")
    return int(seen["process"]), beats
