"""Ctrl-C stops everything, and the next start goes on where it was: rooms, players and their tokens."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.games.stand.shared import schema
from tests.support.dev import DevServer, serve
from tests.support.players import Player

STOP_S = 15.0


@pytest.mark.asyncio
@pytest.mark.ledger("STATE-22", "CLI-04")
async def test_ctrl_c_leaves_nothing_running_and_everything_kept(game_folder: Path, tmp_path: Path) -> None:
    with serve(game_folder, tmp_path / "first.log") as dev:
        async with Player(dev.url, "stand", "main", schema) as alice:
            player, token = alice.player, alice.client.guest_token
            generation = alice.client.generation
            alice.send({"type": "press"})
            await alice.until(lambda: alice.state.presses == 1)
            stop(dev)  # with a player in the room
        assert dev.process.returncode == 0
        assert "Traceback" not in dev.log()
        assert any((game_folder / ".playhall/data").iterdir())

    with serve(game_folder, tmp_path / "second.log") as dev:
        async with Player(dev.url, "stand", "main", schema, token=token) as alice:
            assert alice.player == player
            assert alice.client.generation != generation
            assert (alice.state.presses, alice.private.presses, alice.state.creates) == (1, 1, 1)
            assert (await alice.ask("look"))["vault"] == 1
        async with Player(dev.url, "stand", "main", schema) as bob:
            assert bob.player != player
        stop(dev)
        assert dev.process.returncode == 0


def test_a_port_in_use_is_said(game_folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        playhall = Path(sys.executable).parent / "playhall"
        ended = subprocess.run(
            [playhall, "dev", game_folder, "--port", str(port)], capture_output=True, text=True, timeout=60
        )
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert str(port) in said
    assert "in use" in said
    assert "--port" in said
    assert "Traceback" not in said
    assert started_for(game_folder) == []


def stop(dev: DevServer) -> None:
    """Ctrl-C, as a terminal sends it; nothing that was started may be left."""
    started = psutil.Process(dev.process.pid).children(recursive=True)
    assert len(started) >= len(dev.pids)
    dev.process.send_signal(signal.SIGINT)
    stopped_at = time.monotonic()
    dev.process.wait(STOP_S)
    assert time.monotonic() - stopped_at < STOP_S
    assert [process for process in started if process.is_running()] == []
    assert started_for(dev.folder) == []


def started_for(folder: Path) -> list[int]:
    """Processes that name the game's folder in their command, environment or working directory."""
    found = []
    for process in psutil.process_iter():
        try:
            about = [*process.cmdline(), *process.environ().values(), process.cwd()]
        except psutil.Error:
            continue
        if any(str(folder) in text for text in about):
            found.append(process.pid)
    return found
