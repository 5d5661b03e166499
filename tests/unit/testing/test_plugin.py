"""The pytest plugin, by running pytest within pytest."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

GAME = """
import asyncio
import pytest
from playhall.room import Entity, Room, Schema, u8
from playhall.testing import RoomHost, StillLoop

class Board(Entity):
    n: u8 = 0

class Game(Room[Board]):
    schema = Schema(state=Board)
"""


@dataclass
class Outcomes:
    """What became of each test."""

    by_test: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::")[2]
        if report.when == "call" or report.outcome != "passed":
            self.by_test[name] = (
                f"{report.outcome}" if report.when == "call" else f"{report.when} {report.outcome}"
            )
            self.texts[name] = report.longreprtext


def run(tmp_path: Path, text: str, *arguments: str) -> Outcomes:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    file = tmp_path / f"test_{tmp_path.name.replace('-', '_')}.py"
    file.write_text(GAME + text)
    outcomes = Outcomes()
    options = ["-p", "no:cacheprovider", "-p", "no:terminal", "--rootdir", str(tmp_path)]
    pytest.main([*options, "-c", str(tmp_path / "pytest.ini"), *arguments, str(file)], plugins=[outcomes])
    return outcomes


USES_ROOM_HOST = """
async def test_coroutine(room_host: RoomHost) -> None:
    t = room_host.room(Game)
    alice = await t.connect("alice")
    await t.tick()
    assert alice.status == "open"

@pytest.fixture
async def alice(room_host):
    return await room_host.room(Game).connect("alice")

@pytest.fixture
async def bob(room_host, alice, log):
    log.append("up")
    yield await room_host.room(Game, id="two").connect("bob")
    await room_host.advance(1)
    log.append("down")

LOG = []

@pytest.fixture
def log():
    return LOG

async def test_async_fixtures(alice, bob, log) -> None:
    assert (alice.status, bob.status, log) == ("open", "open", ["up"])

def test_teardown_ran(log):
    assert log == ["up", "down"]

def test_plain_test_of_an_async_fixture(alice, room_host):
    assert alice.status == "open"

class TestMethods:
    @pytest.mark.parametrize("n", [1, 2])
    async def test_method(self, room_host, n):
        t = room_host.room(Game)
        await t.connect("alice")
        await t.tick(n)
        assert t.room.tick == n
"""


@pytest.mark.parametrize(
    "arguments",
    [("-p", "no:asyncio", "-p", "no:anyio"), ("--asyncio-mode=strict",)],
    ids=["alone", "beside others"],
)
def test_tests_and_fixtures_that_use_room_host_need_no_mark(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    outcomes = run(tmp_path, USES_ROOM_HOST, *arguments)
    assert set(outcomes.by_test.values()) == {"passed"}, outcomes.texts
    assert len(outcomes.by_test) == 6


def test_a_test_that_waits_for_a_tick_fails_at_once_and_shows_where(tmp_path: Path) -> None:
    text = """
async def test_stuck(room_host):
    await room_host.room(Game).connect("alice")
    await asyncio.sleep(3600)  # here
"""
    outcomes = run(tmp_path, text)
    assert outcomes.by_test == {"test_stuck": "failed"}
    assert "# here" in outcomes.texts["test_stuck"]
    assert "call tick() or advance()" in outcomes.texts["test_stuck"]


def test_a_forgotten_await_fails_the_test_and_says_where(tmp_path: Path) -> None:
    text = """
async def test_tick(room_host):
    t = room_host.room(Game)
    await t.connect("alice")
    t.tick()

async def test_held(room_host):
    connecting = room_host.room(Game).connect("alice")

def test_plain(room_host):
    room_host.room(Game).connect("alice")

async def test_remembered(room_host):
    t = room_host.room(Game)
    await asyncio.gather(t.connect("alice"), asyncio.ensure_future(t.connect("bob")))
    await t.tick()
"""
    outcomes = run(tmp_path, text)
    assert outcomes.by_test == {
        "test_tick": "failed", "test_held": "failed", "test_plain": "failed", "test_remembered": "passed",
    }  # fmt: skip
    assert "'TestRoom.tick' was never awaited (test_" in outcomes.texts["test_tick"]
    assert "'TestRoom.connect' was never awaited" in outcomes.texts["test_held"]
    assert "'TestRoom.connect' was never awaited" in outcomes.texts["test_plain"]


def test_tests_of_other_plugins_are_left_to_them(tmp_path: Path) -> None:
    text = """
@pytest.mark.asyncio
async def test_marked(room_host):
    assert not isinstance(asyncio.get_running_loop(), StillLoop)

@pytest.mark.asyncio
async def test_without():
    assert not isinstance(asyncio.get_running_loop(), StillLoop)
"""
    outcomes = run(tmp_path, text, "--asyncio-mode=strict")
    assert outcomes.by_test == {"test_marked": "passed", "test_without": "passed"}, outcomes.texts


def test_in_auto_mode_all_coroutines_are_the_other_plugins(tmp_path: Path) -> None:
    text = """
async def test_coroutine(room_host):
    assert not isinstance(asyncio.get_running_loop(), StillLoop)
"""
    outcomes = run(tmp_path, text, "--asyncio-mode=auto")
    assert outcomes.by_test == {"test_coroutine": "passed"}, outcomes.texts


def test_a_fixture_that_yields_twice_is_an_error(tmp_path: Path) -> None:
    text = """
@pytest.fixture
async def twice(room_host):
    yield 1
    yield 2

async def test_twice(twice, room_host):
    assert twice == 1
"""
    outcomes = run(tmp_path, text)
    assert outcomes.by_test == {"test_twice": "teardown failed"}
    assert "yields once" in outcomes.texts["test_twice"]
