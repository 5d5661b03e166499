"""The pytest plugin as a user has it: found by its entry point, in a pytest of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GAME = """
import asyncio
import pytest
from playhall.room import Entity, Json, Room, Schema, u8
from playhall.testing import Net, RoomHost

class Board(Entity):
    n: u8 = 0
    tags: Json[list[str]] = []

class Game(Room[Board]):
    schema = Schema(state=Board)

    def on_message(self, conn, message):
        if message == "tag":
            self.state.tags.append("in place")
        elif message == "stop":
            self.state.n = 13
        else:
            self.count_what_is_not_there(message)

    def count_what_is_not_there(self, message):
        self.state.n += message["n"]

    def on_tick(self, dt):
        if self.state.n == 13:
            raise RuntimeError("thirteen")
"""

PASSES = (
    GAME
    + """
@pytest.fixture
async def game(room_host):
    return room_host.room(Game)

@pytest.fixture(params=["ann", "bob"])
async def player(request, room_host, game):
    yield await game.connect(request.param)
    await room_host.advance(1)

class TestGame:
    @pytest.fixture
    async def prepared(self, room_host, game):
        self.made = await game.connect("carol")
        yield
        assert self.made.status == "open"

    async def test_method(self, prepared, player, game):
        assert self.made.presence[player.player].connected
        await game.tick()

@pytest.mark.parametrize("n", range(6))
async def test_many(room_host: RoomHost, n) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice", net=Net(rtt=0.1, loss=0.2))
    alice.send({"n": n})
    await t.advance(5)
    assert alice.state.n == n

async def test_errors_that_were_looked_at(room_host) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.send({})
    await t.tick()
    assert "KeyError" in t.errors[0]
"""
)

FAILS = (
    GAME
    + """
async def test_mutated_json(room_host):
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.send("tag")
    await t.tick()

async def test_stopped(room_host):
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.send("stop")
    await t.tick()

async def test_raised(room_host):
    t = room_host.room(Game)
    alice = await t.connect("alice")
    alice.send({})
    await t.tick()
    assert alice.status == "open"

async def test_stuck(room_host):
    t = room_host.room(Game)
    alice = await t.connect("alice")
    came = asyncio.get_running_loop().create_future()
    alice.on("message", came.set_result)
    await came

async def test_by_chance(room_host):
    t = room_host.room(Game)
    alice = await t.connect("alice", net=Net(jitter=0.1))
    assert alice.status == "closed"

async def test_without_chance(room_host):
    assert room_host.room(Game).status == "active"
"""
)


ALONE = ("-p", "no:asyncio", "-p", "no:anyio", "-p", "no:xdist")
# The option is pytest-asyncio's wish: unset, it warns.
BESIDE_OTHERS = ("-n", "2", "-o", "asyncio_default_fixture_loop_scope=function")


def run(folder: Path, text: str, *arguments: str) -> tuple[int, dict[str, str], str]:
    """Run pytest, warnings being errors. Return its exit code, its text on each failure, and all its text."""
    (folder / "test_game.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    parts = re.split(r"^_{3,} (\w+) _{3,}$", ran.stdout, flags=re.MULTILINE)
    return ran.returncode, dict(zip(parts[1::2], parts[2::2], strict=True)), ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "arguments", [ALONE, BESIDE_OTHERS], ids=["alone", "beside others, in two processes"]
)
def test_coroutine_tests_and_fixtures_of_all_sorts_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code, _, output = run(tmp_path, PASSES, *arguments)
    assert code == 0, output
    assert "9 passed" in output
    assert "warning" not in output


def test_a_test_that_fails_says_why(tmp_path: Path) -> None:
    code, failed, output = run(tmp_path, FAILS, *ALONE, "--playhall-seed=77")
    assert code == 1
    assert "6 failed" in output, output
    mutated = failed["test_mutated_json"]
    assert "tags was changed in place" in mutated
    assert "assign a new value" in mutated
    assert ">       await t.tick()\nE   " in mutated

    stopped = failed["test_stopped"]
    assert "RoomStoppedError: on_tick raised RuntimeError: thirteen" in stopped
    assert 'raise RuntimeError("thirteen")' in stopped
    assert ">       await t.tick()\nE   " in stopped

    raised = failed["test_raised"]
    assert "the test did not look at t.errors" in raised
    assert "in count_what_is_not_there" in raised
    assert "KeyError: 'n'" in raised
    assert raised.index("look at t.errors") < raised.index("KeyError")
    assert "During handling" not in raised

    stuck = failed["test_stuck"]
    assert ">       await came\nE   " in stuck
    assert "`await came` (test_game.py, line " in stuck
    assert "call tick() or advance()" in stuck

    assert "--playhall-seed=77" in failed["test_by_chance"]
    assert "--playhall-seed" not in failed["test_without_chance"]


@pytest.mark.parametrize(("seed", "code"), [("random", 0), ("soon", 4)])
def test_the_seed_may_be_another_in_each_test(tmp_path: Path, seed: str, code: int) -> None:
    text = GAME + "SEEN = set()\n" + "@pytest.mark.parametrize('n', range(2))\n" + (
        "async def test_seed(room_host, n):\n    SEEN.add(room_host.seed)\n    assert len(SEEN) == n + 1\n"
    )  # fmt: skip
    got, _, output = run(tmp_path, text, *ALONE, f"--playhall-seed={seed}")
    assert got == code, output
    if code:
        assert "--playhall-seed: a number or 'random', not 'soon'" in output
