"""`playhall dev` as a process: how it starts, refuses to, and ends. Nothing of it may be left, ever."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.support.dev import DevServer, serve

PLAYHALL = Path(sys.executable).parent / "playhall"
ENDS_S = 20.0
LOOK_S = 0.05

TOML = """
[project]
slug = "small"
[rooms.default]
module = "room:Small"
[site]
dir = "site"
"""
ROOM = """
from playhall.room import Entity, Room, Schema, u8

class Dot(Entity):
    x: u8

class Small(Room):
    schema = Schema(entities=[Dot])
"""


def write_game(directory: Path) -> Path:
    folder = directory / "small"
    (folder / "site").mkdir(parents=True)
    (folder / "playhall.toml").write_text(TOML)
    (folder / "room.py").write_text(ROOM)
    (folder / "site/index.html").write_text("<p>small")
    return folder


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return write_game(tmp_path)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    directory = tmp_path_factory.mktemp("dev")
    with serve(write_game(directory), directory / "dev.log") as server:
        yield server


def launch(game: Path, log: Path, *under: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start it, under another command perhaps, and do not wait for anything.

    Its signals are those that a terminal gives, also where these tests run in the background of a script.
    """
    signals = ["env", "--default-signal=HUP,INT"]
    with log.open("wb") as out:
        return subprocess.Popen(
            [*signals, *under, PLAYHALL, "dev", game, "--port", "0"], stdin=subprocess.DEVNULL, stdout=out,
            stderr=out, env={**os.environ, **environment}, process_group=0,
        )  # fmt: skip


def until(done: Callable[[], object], timeout_s: float = ENDS_S) -> None:
    """Wait for what nothing reports."""
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain"
        time.sleep(LOOK_S)


def left(game: Path) -> list[str]:
    """What runs and names the game's folder: in its command, environment or working directory."""
    found = []
    for process in psutil.process_iter():
        try:
            about = [*process.cmdline(), *process.environ().values(), process.cwd()]
            if any(str(game) in text for text in about):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


@pytest.mark.ledger("RTR-14", "CLI-04")
def test_site_and_api_are_at_one_origin_and_a_second_one_is_refused(dev: DevServer) -> None:
    assert urlopen(dev.url, timeout=5).read() == b"<p>small"
    endpoints = urlopen(f"{dev.url}v1/projects/small/endpoints", timeout=5).read()
    assert b"/v1/connect" in endpoints
    second = subprocess.run(
        [PLAYHALL, "dev", dev.folder], capture_output=True, text=True, timeout=ENDS_S, check=False
    )
    assert second.returncode == 1
    assert f"process {dev.process.pid} serves it at {dev.url}" in second.stdout
    assert "Traceback" not in second.stdout + second.stderr
    assert urlopen(dev.url, timeout=5).status == 200


def test_it_says_when_the_engine_runs_in_python(game: Path, tmp_path: Path) -> None:
    with serve(game, tmp_path / "dev.log", {"PLAYHALL_PURE": "1"}) as server:
        assert "The engine runs in Python" in server.log()


def test_output_that_is_no_terminal_has_no_colours(dev: DevServer) -> None:
    assert "\x1b" not in dev.log()
    assert re.search(rf"Play +{re.escape(dev.url)}\n", dev.log())
    assert re.search(rf"As another guest +{re.escape(dev.guest_url)}\n", dev.log())
    assert re.search(rf"Look inside +{re.escape(dev.url)}v1/dev/\n", dev.log())


def test_kill_minus_9_leaves_nothing_and_the_next_start_works(game: Path, tmp_path: Path) -> None:
    with serve(game, tmp_path / "first.log") as dev:
        started = psutil.Process(dev.process.pid).children(recursive=True)
        assert any("playhall_roomhost.process" in process.cmdline() for process in started)
        sockets = Path((game / ".playhall/run").read_text())
        assert sockets.is_dir()
        dev.process.kill()
        _, alive = psutil.wait_procs(started, ENDS_S)
        assert alive == []
    with serve(game, tmp_path / "second.log") as dev:
        assert not sockets.exists()
        assert urlopen(dev.url, timeout=5).status == 200


@pytest.mark.parametrize(
    ("number", "after_s"),
    [(signal.SIGINT, 0.1), (signal.SIGHUP, 0.4), (signal.SIGTERM, 0.8), (signal.SIGINT, 1.6)],
)
def test_a_signal_while_it_starts_ends_it_whole(
    game: Path, tmp_path: Path, number: signal.Signals, after_s: float
) -> None:
    process = launch(game, tmp_path / "dev.log")
    time.sleep(after_s)  # real time: each meets another moment of the start
    process.send_signal(number)
    process.wait(ENDS_S)
    said = (tmp_path / "dev.log").read_text()
    assert left(game) == []
    if "starting services" in said:
        assert process.returncode == 0
        assert "Traceback" not in said


def test_under_nohup_it_outlives_its_terminal(game: Path, tmp_path: Path) -> None:
    log = tmp_path / "dev.log"
    process = launch(game, log, "nohup")
    try:
        until(lambda: "starting services" in log.read_text())
        process.send_signal(signal.SIGHUP)
        until(lambda: "http://" in log.read_text())
    finally:
        process.terminate()
        process.wait(ENDS_S)


def test_code_that_is_broken_at_the_start_is_said_and_mending_it_is_enough(
    game: Path, tmp_path: Path
) -> None:
    (game / "room.py").write_text("def (:\n")
    log = tmp_path / "dev.log"
    process = launch(game, log)
    try:
        until(lambda: "SyntaxError" in log.read_text())
        assert "http://" not in log.read_text()
        (game / "room.py").write_text(ROOM)
        until(lambda: "http://" in log.read_text())
    finally:
        process.terminate()
        process.wait(ENDS_S)
    assert (process.returncode, left(game)) == (0, [])
    assert log.read_text().splitlines()[-2:] == ["  stopping", "  stopped"]


def test_a_game_without_a_site_has_an_address_for_clients_and_no_link(game: Path, tmp_path: Path) -> None:
    (game / "playhall.toml").write_text(TOML.partition("[site]")[0])
    with serve(game, tmp_path / "dev.log") as dev:
        assert re.search(rf"For clients +{re.escape(dev.url)} +project small\n", dev.log())
        assert "Play " not in dev.log()
        assert b"/v1/connect" in urlopen(f"{dev.url}v1/projects/small/endpoints", timeout=5).read()


def test_a_service_that_cannot_start_ends_it_with_the_reason(game: Path, tmp_path: Path) -> None:
    process = launch(game, tmp_path / "dev.log", PLAYHALL_VOICE_LOG_LEVEL="shout")
    assert process.wait(ENDS_S) == 1
    said = (tmp_path / "dev.log").read_text()
    assert "Playhall cannot start: voice ended with exit code" in said
    assert "shout" in said
    assert "Traceback" not in said
    assert left(game) == []


def test_a_service_that_dies_again_and_again_is_told_with_its_last_lines(dev: DevServer) -> None:
    for _ in range(2):
        pid = dev.kill("voice")
        until(lambda gone=pid: [p for p in dev.running("voice") if p != gone])  # type: ignore[misc]
    assert dev.log().count("voice was ended by SIGKILL and is started again") == 2
    assert dev.log().count("voice keeps ending") == 1
    assert str(dev.folder / ".playhall/logs/voice.log") in dev.log()


def test_a_second_ctrl_c_waits_for_nobody(game: Path, tmp_path: Path) -> None:
    with serve(game, tmp_path / "dev.log") as dev:
        os.kill(dev.pids["statestore"], signal.SIGSTOP)
        dev.process.send_signal(signal.SIGINT)
        until(lambda: "stopping" in dev.log())
        begun = time.monotonic()
        dev.process.send_signal(signal.SIGINT)
        dev.process.wait(ENDS_S)
        assert time.monotonic() - begun < 3
        assert dev.process.returncode == 0
    assert left(game) == []


def test_a_reader_that_goes_away_ends_it(game: Path) -> None:
    with subprocess.Popen(
        [PLAYHALL, "dev", game, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(ENDS_S) == 0
        assert process.stderr.read() == b""
    assert left(game) == []


def test_bytecode_is_kept_where_python_keeps_none(game: Path, tmp_path: Path) -> None:
    process = launch(game, tmp_path / "dev.log", PYTHONDONTWRITEBYTECODE="1")
    try:
        until(lambda: "http://" in (tmp_path / "dev.log").read_text())
    finally:
        process.terminate()
        process.wait(ENDS_S)
    kept = [path.name for path in (game / ".playhall/bytecode").rglob("*.pyc")]
    assert any(name.startswith("router.") for name in kept)
    assert not list((game / ".playhall/builds").rglob("*.pyc"))
    assert not list(game.glob("__pycache__"))
