"""Copies of code and site: named by what is in them, and never half there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhall.cli.bundle import copy_code, copy_site, original_paths, prune, sweep
from playhall.cli.sources import Sources


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "game"
    (folder / "levels").mkdir(parents=True)
    (folder / "room.py").write_text("room = 1\n")
    (folder / "levels/one.json").write_text("{}")
    return folder


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    sweep(tmp_path / "builds")
    return tmp_path / "builds"


def test_code_becomes_a_package_named_by_its_contents(root: Path, builds: Path) -> None:
    files = Sources(root).look(None)
    copy = copy_code(files, root, builds, "game")
    assert copy.parent == builds / "code"
    assert (copy / "game/room.py").read_text() == "room = 1\n"
    assert (copy / "game/levels/one.json").read_text() == "{}"
    assert (copy / "game/__init__.py").exists()
    assert copy_code(files, root, builds, "game") == copy
    assert copy_code(files, root, builds, "other") != copy
    (root / "room.py").write_text("room = 2\n")
    assert copy_code(Sources(root).look(None), root, builds, "game") != copy
    assert (copy / "game/room.py").read_text() == "room = 1\n"


def test_a_site_is_copied_without_its_folder(root: Path, builds: Path) -> None:
    (root / "web/dist/img").mkdir(parents=True)
    (root / "web/dist/index.html").write_text("<p>")
    (root / "web/dist/img/a.svg").write_text("<svg>")
    files = {path: digest for path, digest in Sources(root).look(None).items() if path.startswith("web/")}
    copy = copy_site(files, root, builds, "web/dist")
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()) == [
        "img/a.svg",
        "index.html",
    ]


def test_a_copy_is_named_by_what_was_copied_not_by_what_was_seen(root: Path, builds: Path) -> None:
    seen = Sources(root).look(None)
    (root / "room.py").write_text("room = 'saved while we copied'\n")
    (root / "levels/one.json").unlink()
    copy = copy_code(seen, root, builds, "game")
    assert not (copy / "game/levels/one.json").exists()
    assert copy_code(Sources(root).look(None), root, builds, "game") == copy
    (root / "room.py").write_text("room = 1\n")
    (root / "levels/one.json").write_text("{}")
    assert copy_code(seen, root, builds, "game") != copy


def test_a_copy_that_fails_leaves_nothing(root: Path, builds: Path) -> None:
    (root / "folder.py").mkdir()
    with pytest.raises(OSError):
        copy_code({**Sources(root).look(None), "folder.py": "0"}, root, builds, "game")
    assert list((builds / "code").iterdir()) == []


def test_sweep_removes_what_an_interrupted_copy_left(builds: Path) -> None:
    (builds / "code/.half/game").mkdir(parents=True)
    (builds / "site/whole").mkdir()
    sweep(builds)
    assert [path.name for path in builds.glob("*/*")] == ["whole"]


def test_the_ten_used_last_are_kept(root: Path, builds: Path) -> None:
    copies = []
    for number in range(12):
        (root / "room.py").write_text(f"room = {number}\n")
        copies.append(copy_code(Sources(root).look(None), root, builds, "game"))
        os.utime(copies[-1], ns=(number, number))
    (root / "room.py").write_text("room = 0\n")
    assert copy_code(Sources(root).look(None), root, builds, "game") == copies[0]
    prune(builds)
    assert {path.name for path in (builds / "code").iterdir()} == {
        path.name for path in [copies[0], *copies[3:]]
    }


def test_tracebacks_name_the_files_that_are_edited(root: Path, builds: Path) -> None:
    copy = copy_code(Sources(root).look(None), root, builds, "game")
    text = f'File "{copy}/game/room.py", line 1\nFile "{copy}/game/levels/a.py", line 2\nFile "/lib/x.py"'
    assert original_paths(text, builds=builds, package="game", root=root) == (
        f'File "{root}/room.py", line 1\nFile "{root}/levels/a.py", line 2\nFile "/lib/x.py"'
    )


def test_tracebacks_begin_at_the_authors_first_line(root: Path, builds: Path) -> None:
    own = f'  File "{root}/room.py", line 3, in on_tick\n    fall()\nValueError: no'
    text = f'Traceback (most recent call last):\n  File "/sdk/hooks.py", line 1\n    call()\n{own}'
    shown = original_paths(text, builds=builds, package="game", root=root)
    assert shown == f"Traceback (most recent call last):\n{own}"
    ours = 'Traceback (most recent call last):\n  File "/sdk/hooks.py", line 1\nValueError: no'
    assert original_paths(ours, builds=builds, package="game", root=root) == ours
    chained = f"{text}\n\nDuring handling of the above exception:\n\n{text}"
    assert original_paths(chained, builds=builds, package="game", root=root) == chained
