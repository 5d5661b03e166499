"""One room host process as its supervisor holds it: the pipes, the pulse page, signals, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator

import msgspec

from playhall_common import logs
from playhall_roomhost.messages import Bind, FromProcess, decode_message, encode
from playhall_roomhost.pulse import PulseReader, create_page

__all__ = ["NO_FORKS", "Child", "environment"]

MAX_LINE = 4 * 1024 * 1024
MAX_STACK = 32 * 1024
DUMP_S = 0.5
_DUMP_STEP_S = 0.02
NO_FORKS = {"GRPC_ENABLE_FORK_SUPPORT": "0"}
"""gRPC need not follow us into a child that becomes another program at once, and says so on stderr."""

log = logs.get_logger()


def environment(environ: dict[str, str]) -> dict[str, str]:
    """What room code's process may see of the environment: nothing that is Playhall's own, secrets above
    all."""
    kept = {name: value for name, value in environ.items() if not name.startswith("PLAYHALL_")}
    return {**kept, **NO_FORKS}


class Child:
    """Made by `spawn`; unbound until `bind`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reports: asyncio.StreamReader,
        pulse: PulseReader,
        stack_fd: int,
    ) -> None:
        self._process = process
        self._reports = reports
        self._stack_fd = stack_fd
        self.pulse = pulse
        self.host_id = ""
        self.token = ""
        """The newest host token that the process reported."""
        self.socket_path = ""

    @classmethod
    async def spawn(cls, log_level: str) -> Child:
        """Start a process that waits for a build."""
        page = create_page()
        reader_fd, writer_fd = os.pipe()
        with tempfile.TemporaryFile() as stack_file:
            stack_fd = os.dup(stack_file.fileno())
        try:
            process = await asyncio.create_subprocess_exec(
                # -P: what lies in the working directory is not importable.
                sys.executable,
                "-P",
                "-m",
                "playhall_roomhost.process",
                "--parent",
                str(os.getpid()),
                "--report-fd",
                str(writer_fd),
                "--pulse-fd",
                str(page),
                "--stack-fd",
                str(stack_fd),
                "--log-level",
                log_level,
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(writer_fd, page, stack_fd),
                env=environment(dict(os.environ)),
                start_new_session=True,
            )
            pulse = PulseReader(page)
        except BaseException:
            os.close(reader_fd)
            os.close(stack_fd)
            raise
        finally:
            os.close(writer_fd)
            os.close(page)
        reports = asyncio.StreamReader(limit=MAX_LINE)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reports), os.fdopen(reader_fd, "rb", 0)
        )
        return cls(process, reports, pulse, stack_fd)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Negative: the signal that ended it."""
        return self._process.returncode

    def bind(self, bind: Bind) -> None:
        """Make it a process of this build; `messages` tells how it went."""
        self.host_id = bind.host_id
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died; its end is seen elsewhere
            self._process.stdin.write(encode(bind))

    async def messages(self) -> AsyncIterator[FromProcess]:
        """What the process says, until its end. A line that is none is dropped: it may come from room
        code."""
        while True:
            try:
                line = await self._reports.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError as error:
                await self._reports.readexactly(error.consumed)
                continue
            try:
                yield decode_message(line)
            except msgspec.DecodeError as error:
                log.warning("process_line_unread", host_id=self.host_id, error=str(error))

    def terminate(self) -> None:
        """Ask it to drain and exit."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for its end; gives the exit code."""
        return await self._process.wait()

    async def dump_stack(self) -> str:
        """Where its threads are, were it as stuck as can be: the signal's handler is C code. Takes half a
        second at most."""
        self._signal(signal.SIGUSR1)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DUMP_S
        size = -1
        while loop.time() < deadline and self.exit_code is None:
            await asyncio.sleep(_DUMP_STEP_S)
            before, size = size, os.fstat(self._stack_fd).st_size
            if size > 0 and size == before:
                break
        return os.pread(self._stack_fd, MAX_STACK, 0).decode(errors="replace")

    def close(self) -> None:
        """Let go of what it held. Call when it has ended."""
        self.pulse.close()
        os.close(self._stack_fd)
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self.socket_path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.socket_path)

    def _signal(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
