"""The processes `playhall dev` starts: each told when to serve, kept alive, and ended with their parent.

A `Child` is one program, in a session of its own: Ctrl-C in a terminal reaches the parent alone, which ends
the children in order. One that dies unasked is started again, after a wait that doubles up to 5 s.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Child", "ChildFailedError"]

READY_FD = "PLAYHALL_READY_FD"

_LAUNCHER = str(Path(__file__).with_name("die_with_parent.py"))
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0
_HEALTHY_S = 10.0
_LONGEST_LINE = 1 << 20


class ChildFailedError(Exception):
    """A process did not get as far as serving. `lines` holds the last it wrote."""

    def __init__(self, name: str, why: str, lines: Sequence[str]) -> None:
        super().__init__(f"{name} {why}")
        self.name, self.why, self.lines = name, why, list(lines)


class Child:
    """One program under `playhall dev`."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        log: Path,
        on_line: Callable[[str, str], None],
        on_restart: Callable[[str, int], None],
        tells_ready: bool = True,
    ) -> None:
        """`on_line(name, line)` gets what it writes on stderr; `on_restart(name, code)` says it died.

        `tells_ready`: it writes a JSON line on the file descriptor in PLAYHALL_READY_FD once it serves.
        """
        self.name = name
        self.addresses: dict[str, Any] = {}
        self._argv, self._env = list(argv), dict(env)
        self._log, self._on_line, self._on_restart = log, on_line, on_restart
        self._tells_ready = tells_ready
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = False
        self._tail: list[str] = []

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def start(self) -> None:
        """Start it and keep it running until `stop`."""
        self._task = asyncio.create_task(self._keep(), name=f"child {self.name}")

    async def ready(self, timeout_s: float) -> None:
        """Return when it serves. Raises ChildFailedError."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._ready)
        except TimeoutError:
            raise ChildFailedError(self.name, f"did not serve within {timeout_s:g} s", self._tail) from None

    async def stop(self, timeout_s: float) -> None:
        """End it: SIGTERM, and SIGKILL after `timeout_s`."""
        self._stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(timeout_s):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        wait_s = _FIRST_WAIT_S
        loop = asyncio.get_running_loop()
        while not self._stopping:
            begun = loop.time()
            code = await self._run_once()
            if self._stopping:
                return
            if not self._ready.done():
                self._ready.set_exception(
                    ChildFailedError(self.name, f"ended with {code} before it served", self._tail)
                )
                self._ready.exception()
                return
            self._on_restart(self.name, code)
            wait_s = _FIRST_WAIT_S if loop.time() - begun > _HEALTHY_S else min(wait_s * 2, _LONGEST_WAIT_S)
            await asyncio.sleep(wait_s)

    async def _run_once(self) -> int:
        env, reader = dict(self._env), -1
        pass_fds: tuple[int, ...] = ()
        if self._tells_ready:
            reader, writer = os.pipe()
            env[READY_FD] = str(writer)
            pass_fds = (writer,)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-S", _LAUNCHER, str(os.getpid()), *self._argv,
                env=env, pass_fds=pass_fds, start_new_session=True, limit=_LONGEST_LINE,
                stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
            )  # fmt: skip
        finally:
            for fd in pass_fds:
                os.close(fd)
        told = asyncio.create_task(self._await_ready_line(reader)) if self._tells_ready else None
        if told is None and not self._ready.done():
            self._ready.set_result(None)
        try:
            await self._read_log(self._process.stderr)
            return await self._process.wait()
        finally:
            if told is not None:
                told.cancel()
                await asyncio.gather(told, return_exceptions=True)

    async def _await_ready_line(self, reader_fd: int) -> None:
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reader_fd, "rb", buffering=0)
        )
        try:
            line = await stream.readline()
        finally:
            transport.close()
        if line:
            self.addresses = json.loads(line)
            if not self._ready.done():
                self._ready.set_result(None)

    async def _read_log(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        with self._log.open("ab", buffering=0) as file:
            while True:
                try:
                    line = await stream.readline()
                except ValueError:
                    # Longer than any line of ours may be; what readline has dropped is gone.
                    continue
                if not line:
                    return
                file.write(line)
                text = line.decode(errors="replace").rstrip("\n")
                self._tail = [*self._tail[-19:], text]
                self._on_line(self.name, text)
