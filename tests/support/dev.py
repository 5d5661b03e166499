"""`playhall dev` as a child process, on a copy of an example or of a game for tests, which tests may change.

    with dev_server(tmp_path) as dev:
        page.goto(dev.url)

    folder = copy_game(GAMES / "stand", tmp_path)
    with serve(folder, tmp_path / "dev.log") as dev: ...

It is there when the game is served, and gone, with all that it started, when the block is left. Where the
block fails, what it printed and the ends of its services' logs are printed.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
START_S = 90.0
STOP_S = 20.0
LOG_TAIL = 6_000
_NOT_COPIED = shutil.ignore_patterns(".playhall", "__pycache__", "dist", ".*_cache")


@dataclass(frozen=True)
class DevServer:
    """A `playhall dev` that serves. `pids` are those of its services, by name, when it began to."""

    url: str
    guest_url: str
    pids: dict[str, int]
    websockets: list[str]
    folder: Path
    log_path: Path
    process: subprocess.Popen[bytes]

    def room_host_pids(self) -> list[int]:
        """The processes that run rooms now, without their supervisor."""
        children = psutil.Process(self.pids["roomhost"]).children(recursive=True)
        return [child.pid for child in children if "playhall_roomhost.process" in _command(child)]

    def log(self) -> str:
        """All it printed so far."""
        return self.log_path.read_text(errors="replace")

    def service_log(self, service: str) -> str:
        """All that one of its services wrote so far."""
        path = self.folder / ".playhall" / "logs" / f"{service}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def running(self, service: str) -> list[int]:
        """The pids of one of its services, now: a service that ends is started again."""
        children = psutil.Process(self.process.pid).children()
        names = (f"playhall_{service}", f"{service}-server")
        return [child.pid for child in children if any(name in _command(child) for name in names)]

    def kill(self, service: str) -> int:
        """Kill a service by -9, and return the pid it had."""
        pid = self.running(service)[0]
        os.kill(pid, signal.SIGKILL)
        return pid


@contextmanager
def dev_server(directory: Path, example: str = "dots") -> Iterator[DevServer]:
    """Serve a copy of an example from below `directory`, at a free port."""
    with serve(_copy(directory, example), directory / "dev.log") as dev:
        yield dev


def copy_game(game: Path, directory: Path) -> Path:
    """Copy a game that needs nothing but its own folder; return where it is."""
    return Path(shutil.copytree(game, directory / game.name, ignore=_NOT_COPIED))


@contextmanager
def serve(
    folder: Path, log_path: Path, environment: Mapping[str, str] | None = None, *, routers: int = 1
) -> Iterator[DevServer]:
    """Serve the game in a folder, at a free port, by so many routers. `environment` is for settings of the
    services.
    """
    reader, writer = os.pipe()
    command = [str(Path(sys.executable).parent / "playhall"), "dev", str(folder), "--port", "0"]
    command += ["--routers", str(routers)]
    with open(reader, "rb") as ready, log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**_environment(), **(environment or {}), "PLAYHALL_READY_FD": str(writer)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writer],
            process_group=0,
        )
        os.close(writer)
        try:
            line = _read_line(ready.fileno(), time.monotonic() + START_S)
            if not line.endswith(b"\n"):
                raise AssertionError(f"playhall dev did not start\n{log_path.read_text(errors='replace')}")
            said = json.loads(line)
            yield DevServer(
                said["url"],
                said["guest_url"],
                said["pids"],
                said["websockets"],
                folder,
                log_path,
                process,
            )
        except BaseException:
            print(logs(folder, log_path))
            raise
        finally:
            _stop(process)


def _copy(directory: Path, example: str) -> Path:
    """Lay out what the example's build needs: itself, and the client at the place it is built from."""
    folder = directory / "examples" / example
    shutil.copytree(ROOT / "examples" / example, folder, ignore=_NOT_COPIED)
    (directory / "clients").symlink_to(ROOT / "clients")
    return folder


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PLAYHALL_")}


def logs(folder: Path, log_path: Path) -> str:
    """What `playhall dev` printed, and the ends of its services' logs."""
    pieces = [log_path.read_text(errors="replace")]
    for path in sorted((folder / ".playhall" / "logs").glob("*.log")):
        pieces += [f"--- {path.name}", path.read_text(errors="replace")[-LOG_TAIL:]]
    return "\n".join(pieces)


def _command(process: psutil.Process) -> list[str]:
    try:
        return [process.name(), *process.cmdline()]
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop it as a person does; what does not stop in time is killed, and fails the test."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise AssertionError(f"playhall dev still ran {STOP_S} s after Ctrl-C") from None


def _read_line(fd: int, deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(fd, 65_536) if readable else b""
        if not piece:
            return line
        line += piece
    return line
