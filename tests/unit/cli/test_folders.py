"""A project's `.playhall`: its lock, secrets and leftovers."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from playhall.cli.errors import StartError
from playhall.cli.folders import Folders, ProjectLock, Secrets, cache_bytecode, make_run_dir


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folders = Folders(tmp_path / "game/.playhall")
    folders.make()
    return folders


def test_everything_is_kept_out_of_git(folders: Folders) -> None:
    assert (folders.root / ".gitignore").read_text() == "*\n"
    assert folders.state == folders.root / "data"
    assert folders.state.is_dir()


def test_deleting_the_state_resets_it_and_nothing_else(folders: Folders) -> None:
    secrets = Secrets.load(folders)
    folders.state.rmdir()
    folders.make()
    assert Secrets.load(folders) == secrets


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / ".playhall").write_text("a file")
    with pytest.raises(StartError, match="writable"):
        Folders(tmp_path / ".playhall").make()


def test_a_second_one_is_refused_and_told_of_the_first(folders: Folders) -> None:
    first = ProjectLock.take(folders)
    with pytest.raises(StartError, match=rf"(?s)process {os.getpid()} is starting.*kill {os.getpid()}"):
        ProjectLock.take(folders)
    first.tell("http://127.0.0.1:7350/")
    with pytest.raises(StartError, match=r"process \d+ serves it at http://127\.0\.0\.1:7350/"):
        ProjectLock.take(folders)
    first.release()
    ProjectLock.take(folders).release()


def test_a_lock_that_says_nothing_yet_is_a_lock(folders: Folders) -> None:
    first = ProjectLock.take(folders)
    (folders.root / "lock").write_text("")
    with pytest.raises(StartError, match="was started for this folder a moment ago"):
        ProjectLock.take(folders)
    first.release()


def test_secrets_are_made_once_and_are_the_users_alone(folders: Folders) -> None:
    secrets = Secrets.load(folders)
    assert len({secrets.service, secrets.admin, secrets.guest}) == 3
    assert Secrets.load(folders) == secrets
    assert stat.S_IMODE((folders.root / "secrets").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "one\ntwo", "short\nshort\nshort"])
def test_secrets_that_were_changed_are_refused(folders: Folders, content: str) -> None:
    (folders.root / "secrets").write_text(content)
    with pytest.raises(StartError, match="Delete it"):
        Secrets.load(folders)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_the_sockets_of_a_run_that_was_killed_go(folders: Folders, temporary: Path) -> None:
    first = make_run_dir(folders)
    (first / "data.sock").touch()
    second = make_run_dir(folders)
    assert [*temporary.iterdir()] == [second]
    assert stat.S_IMODE(second.stat().st_mode) == 0o700


def test_no_folder_but_ours_is_removed(folders: Folders, temporary: Path, tmp_path: Path) -> None:
    for precious in (tmp_path / "precious", tmp_path / "playhall-game"):
        precious.mkdir()
    (temporary / "playhall-link").symlink_to(tmp_path / "precious")
    for note in (str(tmp_path / "precious"), "playhall-game", str(temporary / "playhall-link"), ""):
        (folders.root / "run").write_text(note)
        make_run_dir(folders)
    assert (tmp_path / "precious").is_dir()
    assert (tmp_path / "playhall-game").is_dir()


def test_bytecode_is_kept_in_the_project_where_python_keeps_none(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = folders.bytecode / folders.builds.relative_to("/") / "code/0123/room.cpython-311.pyc"
    ours = folders.bytecode / "usr/lib/x.cpython-311.pyc"
    for path in (old, ours):
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    cache_bytecode(folders)
    assert not sys.dont_write_bytecode
    assert sys.pycache_prefix == os.environ["PYTHONPYCACHEPREFIX"] == str(folders.bytecode)
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert not old.exists()
    assert ours.exists()


def test_bytecode_is_left_to_python_where_it_keeps_some(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    cache_bytecode(folders)
    assert sys.pycache_prefix is None
