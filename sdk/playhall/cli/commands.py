"""Commands that build something: run with a deadline, and gone, with all they started, when they are done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhall.cli.children import LAUNCHER, read_pipe

__all__ = ["Finished", "run_command"]

_LAST_OUTPUT_S = 1.0
_KEPT_OUTPUT = 32_768


@dataclass(frozen=True)
class Finished:
    """How a command ended; `code` is None where it was ended because it took too long."""

    code: int | None
    output: str


async def run_command(
    argv: Sequence[str], *, cwd: Path, timeout_s: float, env: Mapping[str, str] | None = None
) -> Finished:
    """Run a command without input; gives its exit code and the end of what it wrote."""
    reader, writer = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *LAUNCHER, str(os.getpid()), "guard", *argv,
            env=env, cwd=cwd, start_new_session=True, stdin=DEVNULL, stdout=writer, stderr=writer,
        )  # fmt: skip
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    output = bytearray()
    reading = asyncio.create_task(_read_end(reader, output))
    code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                code = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing of it is left
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait({reading}, timeout=_LAST_OUTPUT_S)
        reading.cancel()
        await asyncio.gather(reading, process.wait(), return_exceptions=True)
    return Finished(code, output.decode(errors="replace"))


async def _read_end(fd: int, output: bytearray) -> None:
    """Read all, so that the command never waits for us, and keep the end."""
    async with read_pipe(fd) as stream:
        while data := await stream.read(65_536):
            output += data
            del output[:-_KEPT_OUTPUT]
