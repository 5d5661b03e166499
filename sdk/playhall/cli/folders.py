"""What `playhall dev` keeps in a project's `.playhall`, and the lock that keeps a second one out of it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from playhall.cli.errors import StartError

__all__ = ["Folders", "ProjectLock", "Secrets", "cache_bytecode", "make_run_dir"]

_RUN_PREFIX = "playhall-"


@dataclass(frozen=True)
class Folders:
    """Where a project's things are. Deleting `state` starts every room afresh."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "data"

    @property
    def builds(self) -> Path:
        return self.root / "builds"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def bytecode(self) -> Path:
        return self.root / "bytecode"

    def make(self) -> None:
        """Create them, and keep them out of git. Raises StartError."""
        try:
            for folder in (self.state, self.builds, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
            (self.root / ".gitignore").write_text("*\n")
        except OSError as error:
            raise StartError(
                f"{error.filename}: {error.strerror}. playhall dev keeps state, builds and logs there; "
                "make the game's folder writable."
            ) from None


class ProjectLock:
    """Held while `playhall dev` runs for a project: two would share one state store's volume.

    The kernel lets go of it when the process ends, however it ends.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, folders: Folders) -> ProjectLock:
        """Raises StartError, which names the process that has it."""
        path = folders.root / "lock"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StartError(f"{path}: cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(_held(os.pread(fd, 4096, 0))) from None
        except OSError as error:
            raise StartError(
                f"{path}: cannot be locked: {error.strerror}. Is it on a network drive?"
            ) from None
        lock = cls(fd)
        lock.tell()
        return lock

    def tell(self, url: str = "") -> None:
        """Leave word for whoever finds the lock taken."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "url": url}).encode(), 0)

    def release(self) -> None:
        """Let the next one in."""
        os.close(self._fd)


def _held(content: bytes) -> str:
    try:
        holder = json.loads(content)
        pid, url = int(holder["pid"]), str(holder["url"])
    except (ValueError, KeyError, TypeError):
        return "playhall dev was started for this folder a moment ago. Use that one, or stop it first."
    does = f"serves it at {url}" if url else "is starting"
    return (
        f"playhall dev already runs for this folder: process {pid} {does}\n"
        f"Use that one, or stop it: kill {pid}"
    )


@dataclass(frozen=True)
class Secrets:
    """Made once per project, so that guests stay who they are over a restart."""

    service: str
    admin: str
    guest: str

    @classmethod
    def load(cls, folders: Folders) -> Secrets:
        """Read them, or make and keep them, readable by the user alone. Raises StartError."""
        path = folders.root / "secrets"
        if not path.exists():
            made = path.with_name(f".secrets-{uuid.uuid4().hex[:8]}")
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write("\n".join(secrets.token_urlsafe(32) for _ in range(3)))
            os.replace(made, path)
        lines = path.read_text(errors="replace").split("\n")
        if len(lines) != 3 or not all(len(line) >= 16 for line in lines):
            raise StartError(f"{path}: was changed. Delete it; guests then become new players.")
        return cls(*lines)


def make_run_dir(folders: Folders) -> Path:
    """A folder for sockets, whose paths must be short; the one of a run that was killed goes."""
    note = folders.root / "run"
    if note.exists():
        _remove_left(Path(note.read_text(errors="replace")))
    made = Path(tempfile.mkdtemp(prefix=_RUN_PREFIX))
    note.write_text(str(made))
    return made


def _remove_left(folder: Path) -> None:
    """Remove it if it is what it is said to be: the name may have become somebody else's."""
    if not folder.is_absolute() or not folder.name.startswith(_RUN_PREFIX):
        return
    try:
        found = folder.lstat()
    except OSError:
        return
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
        shutil.rmtree(folder, ignore_errors=True)


def cache_bytecode(folders: Folders) -> None:
    """Let this process and its children keep bytecode in the project's folder, where Python may keep none.

    Without any (PYTHONDONTWRITEBYTECODE, which container images like to set), all of ten processes would
    compile all they import at every start: over twice the CPU.
    """
    if not sys.dont_write_bytecode:
        return
    # Builds come and go, each with a path of its own.
    shutil.rmtree(folders.bytecode / folders.builds.relative_to(folders.builds.anchor), ignore_errors=True)
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(folders.bytecode)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
