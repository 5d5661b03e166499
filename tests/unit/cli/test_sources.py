"""Which files of a project count, and when a change is over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhall.cli.sources import Settling, Sources, code_of, difference, files_below, with_site


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def below(root: Path, site_dir: str | None = None) -> set[str]:
    return {path for path, _ in files_below(root, site_dir)}


def test_caches_packages_and_hidden_files_do_not_count(tmp_path: Path) -> None:
    write(
        tmp_path,
        "room.py",
        "levels/one.json",
        ".git/config",
        ".playhall/data/x",
        ".env",
        "node_modules/a/index.js",
        "web/node_modules/b.js",
        "__pycache__/room.pyc",
        "levels/__pycache__/x.pyc",
        "old.pyc",
        "room.py~",
        "venv/pyvenv.cfg",
        "venv/lib/python3.11/site.py",
    )
    assert below(tmp_path) == {"room.py", "levels/one.json"}


def test_tests_are_no_part_of_a_game_and_no_change_of_it(tmp_path: Path) -> None:
    write(tmp_path, "room.py", "test_room.py", "conftest.py", "tests/test_x.py", "tests/y_test.py")
    write(tmp_path, "contest.py", "test_levels.json", "latest.py", "test/rules.py")
    assert below(tmp_path) == {"room.py", "contest.py", "test_levels.json", "latest.py", "test/rules.py"}


def test_the_sites_folder_counts_whatever_it_is_called(tmp_path: Path) -> None:
    write(tmp_path, "room.py", ".output/public/index.html", ".output/server/x.js", "web/dist/a.js")
    assert below(tmp_path, ".output/public") == {"room.py", "web/dist/a.js", ".output/public/index.html"}
    assert sorted(path for path, _ in files_below(tmp_path, "web/dist")) == ["room.py", "web/dist/a.js"]


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    root = tmp_path / "game"
    write(root, "room.py", "maps/a.json")
    write(tmp_path, "common/shared.py")
    (root / "common").symlink_to(tmp_path / "common")
    (root / "maps" / "up").symlink_to(root)
    (root / "gone").symlink_to(tmp_path / "nothing")
    found = below(root)
    assert {"room.py", "maps/a.json", "common/shared.py"} <= found
    assert max(path.count("/") for path in found) < 6


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "room.py")
    os.mkfifo(tmp_path / "pipe")
    assert below(tmp_path) == {"room.py"}


def test_a_look_tells_contents_apart_and_not_times(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b.py")
    sources = Sources(tmp_path)
    first = sources.look(None)
    os.utime(tmp_path / "a.py", ns=(1, 1))
    assert sources.look(None) == first
    (tmp_path / "a.py").write_text("other")
    (tmp_path / "c.py").write_text("new")
    (tmp_path / "b.py").unlink()
    assert difference(first, sources.look(None)) == {"a.py", "b.py", "c.py"}


@pytest.mark.parametrize(
    ("site_dir", "code"),
    [
        (None, ["game/logic.py", "game/web/dist/a.png", "room.py", "web/b.png", "web/dist/c.png"]),
        ("web/dist", ["game/logic.py", "game/web/dist/a.png", "room.py"]),
        ("game/web/dist", ["game/logic.py", "room.py", "web/b.png", "web/dist/c.png"]),
    ],
)
def test_the_sites_part_is_no_code(site_dir: str | None, code: list[str]) -> None:
    files = ["playhall.toml", "room.py", "game/logic.py", "game/web/dist/a.png", "web/b.png"]
    assert code_of([*files, "web/dist/c.png"], site_dir) == code


def test_what_browsers_read_is_no_code_wherever_it_is() -> None:
    assert code_of(["build.mjs", "src/main.ts", "src/style.css", "levels/one.json"], "dist") == [
        "levels/one.json"
    ]


def test_a_folder_with_python_beside_the_site_stays_code() -> None:
    assert code_of(["web/tool.py", "web/dist/x.py", "web/a.png"], "web/dist") == ["web/a.png", "web/tool.py"]


def test_with_site_replaces_what_is_served() -> None:
    files = {"room.py": "1", "web/a": "1", "web/b": "1"}
    assert with_site(files, {"web/a": "2", "room.py": "2"}, "web") == {"room.py": "1", "web/a": "2"}


BUILT = {"room.py": "1", "web/a": "1"}


def test_a_change_is_over_once_two_looks_are_alike() -> None:
    settling = Settling(BUILT, set())
    settling.seen(BUILT, 0.0)
    assert (settling.begun, settling.done) == (False, False)
    settling.seen({**BUILT, "room.py": "2"}, 0.25)
    assert (settling.begun, settling.done) == (True, False)
    settling.seen({**BUILT, "room.py": "3"}, 0.35)
    assert not settling.done
    settling.seen({**BUILT, "room.py": "3"}, 0.45)
    assert settling.done


def test_a_storm_is_built_after_three_seconds() -> None:
    settling = Settling(BUILT, set())
    for step in range(30):
        settling.seen({**BUILT, "room.py": f"version {step}"}, step * 0.1)
        assert not settling.done
    settling.seen({**BUILT, "room.py": "last"}, 3.0)
    assert settling.done


def test_what_was_taken_back_is_no_change() -> None:
    settling = Settling(BUILT, set())
    settling.seen({**BUILT, "room.py": "2"}, 0.0)
    settling.seen(BUILT, 0.1)
    assert (settling.begun, settling.done) == (False, False)


def test_outputs_of_the_build_do_not_count() -> None:
    settling = Settling(BUILT, {"web/a"})
    for step in range(3):
        settling.seen({**BUILT, "web/a": str(step)}, step)
    assert (settling.begun, settling.done) == (False, False)
    settling.seen({"room.py": "2", "web/a": "7"}, 3.0)
    settling.seen({"room.py": "2", "web/a": "8"}, 3.1)
    assert settling.done
