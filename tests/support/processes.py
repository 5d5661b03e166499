"""Real services as child processes, for the tests of tests/services, browser and e2e.

    with Processes(tmp_path) as processes:
        data = processes.start("data", DATABASE_URL=f"sqlite+aiosqlite:///{tmp_path}/data.db")
        channel = auth.channel(data.grpc)

`start` returns when the service says that it serves: nothing sleeps, and a process that dies or does not
start in time fails the test with its log. Leaving the block kills what still runs, by pid and with what it
started, and prints the logs where the test failed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SERVICE_SECRET = "a secret for tests only"
START_S = 30.0
STOP_S = 15.0
POLL_S = 0.01


class ProcessError(AssertionError):
    """A service did not do what was waited for; the text ends with its log."""


@dataclass
class ServiceProcess:
    """A service that runs, or ran. `addresses` is its ready line."""

    name: str
    process: subprocess.Popen[bytes]
    log_path: Path
    addresses: dict[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def grpc(self) -> str:
        """The target for `playhall_common.auth.channel`."""
        return str(self.addresses["grpc"])

    def log(self) -> str:
        """All it wrote to stdout and stderr so far."""
        return self.log_path.read_text(errors="replace")

    def log_lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """Its JSON log lines; those of one event."""
        whole, _, _ = self.log().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        return [line for line in lines if event is None or line["event"] == event]

    def wait_for_log(self, event: str, timeout_s: float = STOP_S) -> dict[str, Any]:
        """Its first log line of that event, once it is there."""
        deadline = time.monotonic() + timeout_s
        while not (lines := self.log_lines(event)):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise ProcessError(f"{self.name} did not log {event!r}\n{self.log()}")
            select.select([], [], [], POLL_S)
        return lines[0]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.process.kill()
        self.process.wait(STOP_S)

    def terminate(self, timeout_s: float = STOP_S) -> int:
        """SIGTERM; gives the exit code. Fails where it does not exit in time."""
        self.process.terminate()
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = STOP_S) -> int:
        """The exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"{self.name} still runs after {timeout_s} s\n{self.log()}") from None


class Processes:
    """The child processes of one test; see the module's text."""

    def __init__(self, directory: Path, environ: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._environ = dict(environ or {})
        self._started: list[ServiceProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._started):
            if process.process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # a group of its own, see `launch`
                process.wait()
        if error is not None:
            self.print_logs()

    def print_logs(self) -> None:
        """Put every log into the test's captured output."""
        for process in self._started:
            print(f"--- {process.name} (pid {process.pid}, exit {process.process.returncode})")
            print(process.log())

    def launch(
        self, service: str, *arguments: str, module: str | None = None, **settings: object
    ) -> tuple[ServiceProcess, int]:
        """Start a service and return without waiting, with the fd of its ready line.

        It is `python -m playhall_<service>`, or `module`. `settings` become PLAYHALL_<SERVICE>_<NAME>; names
        that are PLAYHALL_... already stay as they are.
        """
        log_path = self._directory / f"{service}-{len(self._started)}.log"
        reader, writer = os.pipe()
        environ = self._environment(service, settings)
        environ["PLAYHALL_READY_FD"] = str(writer)
        try:
            with log_path.open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", module or f"playhall_{service}", *arguments],
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[writer],
                    # Its own group: Ctrl-C at the terminal is pytest's, which then ends its children itself.
                    process_group=0,
                )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        started = ServiceProcess(service, process, log_path)
        self._started.append(started)
        return started, reader

    def start(
        self, service: str, *arguments: str, module: str | None = None, **settings: object
    ) -> ServiceProcess:
        """Start a service and wait until it serves."""
        return self.started(*self.launch(service, *arguments, module=module, **settings))

    def started(self, process: ServiceProcess, reader: int) -> ServiceProcess:
        """Wait for what `launch` gave; so several services start side by side."""
        with open(reader, "rb") as ready:
            line = _read_line(ready.fileno(), time.monotonic() + START_S)
        if not line.endswith(b"\n"):
            raise ProcessError(f"{process.name} did not start\n{process.log()}")
        process.addresses = json.loads(line)
        return process

    def _environment(self, service: str, settings: Mapping[str, object]) -> dict[str, str]:
        # The settings of whoever runs the tests are not the tests'.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHALL_")}
        environ |= {"PLAYHALL_SERVICE_SECRET": SERVICE_SECRET, "PYTHONUNBUFFERED": "1"} | self._environ
        for name, value in settings.items():
            key = name if name.startswith("PLAYHALL_") else f"PLAYHALL_{service.upper()}_{name.upper()}"
            environ[key] = str(value)
        return environ


def _read_line(fd: int, deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return line
        piece = os.read(fd, 65_536)
        if not piece:
            return line
        line += piece
    return line
