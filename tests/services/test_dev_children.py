"""Processes under `playhall dev`: started, kept alive, and gone when they are to be or their parent is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from playhall.cli.children import Child, ChildFailedError, Ended

SOON_S = 10.0
READY = "import os; os.write(int(os.environ['PLAYHALL_READY_FD']), b'{\"grpc\": \"unix:x\"}\\n')\n"
SERVES = READY + "import signal; signal.pause()\n"


class Watched:
    """A child, and what it was heard to do."""

    def __init__(self, folder: Path, code: str, *, ready_s: float | None = SOON_S) -> None:
        self.lines: list[str] = []
        self.ends: list[Ended] = []
        self._heard = asyncio.Event()
        self.log = folder / "toy.log"
        self.child = Child(
            "toy", [sys.executable, "-c", textwrap.dedent(code)], os.environ, cwd=folder, ready_s=ready_s,
            log=self.log, on_line=self._line, on_end=self._end,
        )  # fmt: skip

    def _line(self, name: str, line: str) -> None:
        self.lines.append(line)
        self._heard.set()

    def _end(self, ended: Ended) -> None:
        self.ends.append(ended)
        self._heard.set()

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until something heard makes it true."""
        async with asyncio.timeout(SOON_S):
            while not true():
                self._heard.clear()
                await self._heard.wait()

    async def ready(self) -> None:
        async with asyncio.timeout(SOON_S):
            await self.child.ready()


@asynccontextmanager
async def running(folder: Path, code: str, *, ready_s: float | None = SOON_S) -> AsyncIterator[Watched]:
    watched = Watched(folder, code, ready_s=ready_s)
    watched.child.start()
    try:
        yield watched
    finally:
        watched.child.kill()
        await watched.child.stop(SOON_S)


@pytest.mark.asyncio
async def test_it_is_ready_when_it_says_so_and_tells_where(tmp_path: Path) -> None:
    async with running(tmp_path, SERVES) as toy:
        await toy.ready()
        assert toy.child.addresses == {"grpc": "unix:x"}
        assert toy.child.pid is not None
        assert await toy.child.stop(SOON_S)
        assert toy.child.pid is None
        assert toy.ends == []


@pytest.mark.asyncio
async def test_one_that_tells_nothing_is_ready_when_it_runs(tmp_path: Path) -> None:
    async with running(tmp_path, "import signal; signal.pause()", ready_s=None) as toy:
        await toy.ready()


@pytest.mark.asyncio
async def test_all_it_writes_is_logged_and_heard(tmp_path: Path) -> None:
    code = (
        READY + "import sys; print('out', flush=True); print('err', file=sys.stderr); print('x' * 2_000_000)"
    )
    async with running(tmp_path, code) as toy:
        await toy.until(lambda: bool(toy.ends))
    assert toy.lines[:2] == ["out", "err"]
    assert b"out\nerr\n" in toy.log.read_bytes()


@pytest.mark.asyncio
async def test_ending_before_it_serves_fails_the_start_with_its_last_lines(tmp_path: Path) -> None:
    async with running(tmp_path, "for n in range(50): print('line', n)\nraise SystemExit(3)") as toy:
        with pytest.raises(ChildFailedError, match="toy ended with exit code 3") as caught:
            await toy.ready()
        assert caught.value.lines == [f"line {number}" for number in range(30, 50)]
        assert toy.ends == []


@pytest.mark.asyncio
async def test_a_start_that_hangs_is_ended(tmp_path: Path) -> None:
    async with running(tmp_path, "print('hm', flush=True); import signal; signal.pause()", ready_s=1) as toy:
        with pytest.raises(ChildFailedError, match="did not serve within 1 s"):
            await toy.ready()
        assert toy.child.pid is None


@pytest.mark.asyncio
async def test_a_program_that_is_not_there_fails_the_start(tmp_path: Path) -> None:
    child = Child(
        "toy", [str(tmp_path / "nothing")], os.environ, cwd=tmp_path, ready_s=SOON_S,
        log=tmp_path / "toy.log", on_line=lambda *_: None, on_end=lambda _: None,
    )  # fmt: skip
    child.start()
    with pytest.raises(ChildFailedError, match="ended with exit code 127"):
        await child.ready()
    await child.stop(SOON_S)


@pytest.mark.asyncio
async def test_one_that_dies_is_started_again(tmp_path: Path) -> None:
    async with running(tmp_path, "print(__import__('os').getpid(), flush=True)\n" + SERVES) as toy:
        await toy.ready()
        first = toy.child.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await toy.until(lambda: len(toy.lines) == 2)
        assert [(ended.why, ended.times) for ended in toy.ends] == [("was ended by SIGKILL", 1)]
        assert toy.lines == [str(first), str(toy.child.pid)]


@pytest.mark.asyncio
async def test_one_that_keeps_dying_is_started_ever_more_slowly(tmp_path: Path) -> None:
    async with running(tmp_path, READY + "print('oh', flush=True)") as toy:
        await toy.until(lambda: len(toy.ends) == 4)
        assert [(ended.times, ended.wait_s) for ended in toy.ends] == [
            (1, 0.1),
            (2, 0.2),
            (3, 0.4),
            (4, 0.8),
        ]
        assert {ended.why for ended in toy.ends} == {"ended with exit code 0"}
        assert all(list(ended.lines) == ["oh"] for ended in toy.ends)
        begun = time.monotonic()
        assert await toy.child.stop(SOON_S)
        assert time.monotonic() - begun < 0.7  # it was waiting


@pytest.mark.asyncio
async def test_a_restart_that_hangs_is_ended_and_told(tmp_path: Path) -> None:
    code = f"""
    from pathlib import Path
    if Path({str(tmp_path / "served")!r}).exists():
        import signal; signal.pause()
    Path({str(tmp_path / "served")!r}).touch()
    """
    async with running(tmp_path, textwrap.dedent(code) + READY, ready_s=1) as toy:
        await toy.until(lambda: len(toy.ends) == 2)
        assert [ended.why for ended in toy.ends] == ["ended with exit code 0", "did not serve within 1 s"]


@pytest.mark.asyncio
async def test_what_does_not_heed_sigterm_is_killed(tmp_path: Path) -> None:
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        + READY
        + "while True: signal.pause()"
    )
    async with running(tmp_path, code) as toy:
        await toy.ready()
        begun = time.monotonic()
        assert not await toy.child.stop(0.3)
        assert time.monotonic() - begun < 3
        assert toy.child.pid is None


@pytest.mark.asyncio
async def test_a_drain_is_waited_for_and_its_last_words_are_heard(tmp_path: Path) -> None:
    code = """
    import signal, sys
    def drain(*_):
        print('drained', flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, drain)
    """
    async with running(tmp_path, textwrap.dedent(code) + SERVES) as toy:
        await toy.ready()
        assert await toy.child.stop(SOON_S)
        assert toy.lines == ["drained"]


@pytest.mark.asyncio
async def test_a_grandchild_that_holds_the_output_holds_up_nothing(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n" + SERVES
    async with running(tmp_path, code) as toy:
        await toy.ready()
        await toy.until(lambda: bool(toy.lines))
        sleeper = psutil.Process(int(toy.lines[0]))
        begun = time.monotonic()
        assert await toy.child.stop(SOON_S)
        assert time.monotonic() - begun < 3
        sleeper.kill()


@pytest.mark.asyncio
async def test_stopping_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    for wait_s in (0.0, 0.001, 0.01, 0.03):
        watched = Watched(tmp_path, SERVES)
        watched.child.start()
        await asyncio.sleep(wait_s)  # real time: each meets another moment of the start
        await watched.child.stop(SOON_S)
        assert watched.child.pid is None
    assert [child for child in psutil.Process().children() if "signal.pause" in str(child.cmdline())] == []


PARENT = """
import asyncio, json, os, sys
from pathlib import Path
from playhall.cli.children import Child
from playhall.cli.commands import run_command

async def main():
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
    child = Child("toy", [sys.executable, "-c", deaf + {serves!r}], os.environ, cwd=Path({folder!r}),
        log=Path({folder!r}) / "toy.log", on_line=lambda *_: None, on_end=lambda _: None, ready_s=10)
    child.start()
    await child.ready()
    command = asyncio.create_task(run_command(
        ["/bin/sh", "-c", "sleep 61 & sleep 62"], cwd=Path({folder!r}), timeout_s=60))
    print(child.pid, flush=True)
    await command

asyncio.run(main())
"""


def test_kill_minus_9_of_the_parent_leaves_nothing(tmp_path: Path) -> None:
    code = PARENT.format(serves=SERVES, folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            deadline = time.monotonic() + SOON_S
            # The child, and the guard, shell and two sleeps of the command.
            while len(started := psutil.Process(parent.pid).children(recursive=True)) < 5:
                assert time.monotonic() < deadline
            assert child in [process.pid for process in started]
        finally:
            parent.kill()
    _, alive = psutil.wait_procs(started, SOON_S)
    assert alive == []


@pytest.mark.asyncio
async def test_its_ready_line_is_json(tmp_path: Path) -> None:
    code = "import os; os.write(int(os.environ['PLAYHALL_READY_FD']), b'serving\\n'); input()"
    async with running(tmp_path, code) as toy:
        with pytest.raises(json.JSONDecodeError):
            await toy.ready()
