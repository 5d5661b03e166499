"""The processes `playhall dev` starts: each told when to serve, kept alive, and ended with their parent.

A `Child` is one program, in a session of its own: Ctrl-C in a terminal reaches the parent alone, which ends
the children in order. One that ends unasked is started again, after a wait that doubles up to 5 s while it
keeps ending soon. Its output goes through a pipe that asyncio's subprocess does not know of: that would wait
for the pipe's end too, which whatever the child has started may hold up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhall.cli.errors import StartError
from playhall.cli.log_file import LogFile

__all__ = ["LAUNCHER", "READY_FD", "Child", "ChildFailedError", "Ended", "read_pipe"]

READY_FD = "PLAYHALL_READY_FD"
LAUNCHER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("die_with_parent.py")))

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0
_HEALTHY_S = 10.0
_LAST_LINES_S = 1.0
_KILL_S = 5.0
_LONGEST_LINE = 1 << 20
_TAIL = 20


class ChildFailedError(StartError):
    """A process did not get as far as serving. `lines` holds the last it wrote."""

    def __init__(self, name: str, why: str, lines: Sequence[str]) -> None:
        super().__init__(f"{name} {why}")
        self.name, self.why, self.lines = name, why, list(lines)


@dataclass(frozen=True)
class Ended:
    """A child that had served ended unasked, and is started again after `wait_s`.

    `times`: how often in a row it ended soon after it was started. `lines`: the last it wrote.
    """

    name: str
    why: str
    times: int
    wait_s: float
    lines: Sequence[str]


class Child:
    """One program under `playhall dev`."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        cwd: Path,
        log: Path,
        on_line: Callable[[str, str], None],
        on_end: Callable[[Ended], None],
        ready_s: float | None,
    ) -> None:
        """`on_line(name, line)` gets what it writes; `on_end` hears of each unasked end once it has served.

        `ready_s`: how long it may take until it writes a JSON line on the file descriptor that is in
        PLAYHALL_READY_FD; then it is killed. None: it writes none, and counts as ready once it runs.
        """
        self.name = name
        self.addresses: dict[str, Any] = {}
        self._argv, self._env, self._cwd = list(argv), dict(env), cwd
        self._log, self._on_line, self._on_end = LogFile(log), on_line, on_end
        self._ready_s = ready_s
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = asyncio.Event()
        self._log_broken = False
        self._tail: deque[str] = deque(maxlen=_TAIL)

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def start(self) -> None:
        """Start it and keep it running until `stop`."""
        self._task = asyncio.create_task(self._keep(), name=f"child {self.name}")
        self._task.add_done_callback(self._kept)

    async def ready(self) -> None:
        """Return when it serves. Raises ChildFailedError."""
        await asyncio.shield(self._ready)

    async def stop(self, timeout_s: float) -> bool:
        """End it: SIGTERM, and SIGKILL after `timeout_s`. Whether the first was enough."""
        self._stopping.set()
        if self._task is None:
            return True
        self._signal(signal.SIGTERM)
        ended, _ = await asyncio.wait({self._task}, timeout=timeout_s)
        if not ended:
            self.kill()
            await asyncio.wait({self._task}, timeout=_KILL_S)
            self._task.cancel()
        self._log.close()
        return bool(ended)

    def kill(self) -> None:
        """End it at once, with what it has started in its own process group."""
        self._stopping.set()
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended just now
                os.killpg(self.pid, signal.SIGKILL)
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _keep(self) -> None:
        times = 0
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            begun = loop.time()
            try:
                why = await self._run_once()
            except OSError as error:
                why = f"could not be started: {error}"
            if self._stopping.is_set():
                return
            if not self._ready.done():
                self._ready.set_exception(ChildFailedError(self.name, why, self._tail))
                self._ready.exception()  # `ready` may never be asked
                return
            times = 1 if loop.time() - begun > _HEALTHY_S else times + 1
            wait_s = min(_FIRST_WAIT_S * 2 ** (times - 1), _LONGEST_WAIT_S)
            self._on_end(Ended(self.name, why, times, wait_s, list(self._tail)))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait_s)

    def _kept(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not self._ready.done():
            self._ready.set_exception(error)
        else:
            context = {"message": f"{self.name} is no longer kept running", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _run_once(self) -> str:
        """Run it to its end; tells how it ended."""
        self._tail.clear()
        output, writer = os.pipe()
        ready, ready_writer = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *LAUNCHER, str(os.getpid()), "exec", *self._argv,
                env={**self._env, READY_FD: str(ready_writer)}, cwd=self._cwd, pass_fds=(ready_writer,),
                start_new_session=True, stdin=DEVNULL, stdout=writer, stderr=writer,
            )  # fmt: skip
        except BaseException:
            os.close(output)
            os.close(ready)
            raise
        finally:
            os.close(writer)
            os.close(ready_writer)
        if self._stopping.is_set():
            self._signal(signal.SIGTERM)
        reading = asyncio.create_task(self._read_log(output))
        telling = asyncio.create_task(self._await_ready(ready))
        try:
            code = await self._process.wait()
            await asyncio.wait({reading}, timeout=_LAST_LINES_S)
        finally:
            reading.cancel()
            telling.cancel()
            results = await asyncio.gather(telling, reading, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results[0] if isinstance(results[0], str) else _how(code)

    async def _await_ready(self, fd: int) -> str | None:
        """Wait until it serves; where that takes too long, end it and tell so."""
        async with read_pipe(fd) as stream:
            line = b""
            if self._ready_s is not None:
                try:
                    async with asyncio.timeout(self._ready_s):
                        line = await stream.readline()
                except TimeoutError:
                    self._signal(signal.SIGKILL)
                    return f"did not serve within {self._ready_s:g} s"
                if not line:
                    return None
                self.addresses = json.loads(line)
        if not self._ready.done():
            self._ready.set_result(None)
        return None

    async def _read_log(self, fd: int) -> None:
        async with read_pipe(fd) as stream:
            while line := await _next_line(stream):
                if (error := self._log.write(line)) is not None and not self._log_broken:
                    self._log_broken = True
                    self._on_line(self.name, f"cannot write {self._log.path}: {error.strerror}")
                text = line.decode(errors="replace").rstrip("\r\n")
                self._tail.append(text)
                self._on_line(self.name, text)


@contextlib.asynccontextmanager
async def read_pipe(fd: int) -> AsyncIterator[asyncio.StreamReader]:
    """The reading end of a pipe as a stream; it is closed at the end."""
    stream = asyncio.StreamReader(limit=_LONGEST_LINE)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(fd, "rb", buffering=0)
    )
    try:
        yield stream
    finally:
        transport.close()


async def _next_line(stream: asyncio.StreamReader) -> bytes:
    """The next line, or what there is of it at the end. One that is too long loses its beginning."""
    while True:
        try:
            return await stream.readline()
        except ValueError:
            continue


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was ended by {signal.Signals(-code).name}"
