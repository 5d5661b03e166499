"""Build commands: what they say, their deadline, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psutil
import pytest

from playhall.cli.commands import Finished, run_command
from tests.support.players import eventually

pytestmark = pytest.mark.asyncio

SOON_S = 10.0


async def shell(folder: Path, command: str, *, timeout_s: float = SOON_S) -> Finished:
    return await run_command(["/bin/sh", "-c", command], cwd=folder, timeout_s=timeout_s)


def marked(folder: Path) -> list[int]:
    """Processes that work in the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


async def test_its_code_and_all_it_says(tmp_path: Path) -> None:
    done = await shell(tmp_path, "echo out; echo err >&2; pwd; exit 3")
    assert done == Finished(3, f"out\nerr\n{tmp_path}\n")


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert (await shell(tmp_path, "no-such-program")).code == 127
    done = await run_command(["no-such-program"], cwd=tmp_path, timeout_s=SOON_S)
    assert done == Finished(127, "no-such-program: No such file or directory\n")


async def test_one_that_is_ended_by_a_signal(tmp_path: Path) -> None:
    assert (await shell(tmp_path, "kill -9 $$")).code == 128 + 9


async def test_of_much_output_the_end_is_kept(tmp_path: Path) -> None:
    done = await shell(tmp_path, "yes | head -c 3000000; echo the end")
    assert done.code == 0
    assert done.output.endswith("the end\n")
    assert len(done.output) < 40_000


async def test_it_gets_no_input(tmp_path: Path) -> None:
    assert await shell(tmp_path, "cat; echo done") == Finished(0, "done\n")


async def test_one_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = await shell(tmp_path, "echo begun; sleep 60 & sleep 61", timeout_s=0.5)
    assert done == Finished(None, "begun\n")
    assert time.monotonic() - begun < 3
    await gone(tmp_path)


async def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = await shell(tmp_path, "sleep 60 & echo done")
    assert done == Finished(0, "done\n")
    assert time.monotonic() - begun < 3
    await gone(tmp_path)


async def test_giving_up_ends_it_with_all_it_started(tmp_path: Path) -> None:
    running = asyncio.create_task(shell(tmp_path, "sleep 60 & sleep 61"))
    await eventually(lambda: len(marked(tmp_path)) >= 4)  # guard, shell and two sleeps
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await gone(tmp_path)


async def test_its_environment_is_what_it_is_given(tmp_path: Path) -> None:
    env = {"PATH": os.defpath, "COLOUR": "red"}
    done = await run_command(["/bin/sh", "-c", "echo $COLOUR"], cwd=tmp_path, timeout_s=SOON_S, env=env)
    assert done.output == "red\n"


async def gone(folder: Path) -> None:
    """Killed processes are gone when the kernel comes to it."""
    await eventually(lambda: not marked(folder))
