"""Builds of a game's folder by real imports and commands, and what its author hears when one fails."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from playhall.cli import build as build_module
from playhall.cli.build import Build, Builder
from playhall.cli.bundle import sweep
from playhall.cli.errors import BuildError
from playhall.cli.project import load
from playhall.cli.sources import Sources, site_dir_of

pytestmark = pytest.mark.asyncio

ROOM = """
from playhall.room import Entity, Room, Schema, u8

class Dot(Entity):
    x: u8

class Dots(Room):
    schema = Schema(entities=[Dot])
"""


class Game:
    """A game's folder, and a builder for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "game"
        self.folder.mkdir()
        self.builds = self.folder / ".playhall/builds"
        self.write("room.py", ROOM)
        self.configure()
        sweep(self.builds)
        self.sources = Sources(self.folder)
        self.builder = Builder(self.builds, self.sources)

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def configure(self, *, site: str = "", module: str = "room:Dots") -> None:
        head = f'[project]\nslug = "game"\n[rooms.default]\nmodule = "{module}"\n'
        self.write("playhall.toml", f"{head}[site]\n{site}" if site else head)

    async def build(self) -> Build:
        project = load(self.folder)
        return await self.builder.build(project, self.sources.look(site_dir_of(project)))

    async def failure(self) -> str:
        with pytest.raises(BuildError) as caught:
            await self.build()
        return str(caught.value)


@pytest.fixture
def game(tmp_path: Path) -> Game:
    return Game(tmp_path)


@pytest.mark.ledger("TERM-04")
async def test_a_build_has_code_and_its_room_types(game: Game) -> None:
    build = await game.build()
    assert (build.code / "game/room.py").read_text() == ROOM
    assert build.site is None
    [room_type] = build.room_types
    assert (room_type.name, room_type.entry, room_type.max_players) == ("default", "game.room:Dots", 64)
    assert await game.build() == build


@pytest.mark.ledger("TERM-04", "CLI-04")
async def test_a_page_alone_changes_only_the_site(game: Game) -> None:
    game.configure(site='dir = "web/dist"\nbuild = "mkdir -p web/dist && cp web/src/* web/dist"\n')
    game.write("web/src/index.html", "<p>one")
    first = await game.build()
    assert first.site is not None
    assert (first.site / "index.html").read_text() == "<p>one"
    game.write("web/src/index.html", "<p>two")
    second = await game.build()
    assert (second.code, second.room_types) == (first.code, first.room_types)
    assert second.site != first.site


async def test_a_site_without_a_build_command_is_served_as_it_is(game: Game) -> None:
    game.configure(site='dir = "site"\n')
    game.write("site/index.html", "<p>")
    build = await game.build()
    assert build.site is not None
    assert (build.site / "index.html").exists()
    assert "site/index.html" in build.files


async def test_a_slip_in_room_code_is_shown_in_the_file_that_is_edited(game: Game) -> None:
    game.write("room.py", f"{ROOM}\nraise RuntimeError('not today')\n")
    said = await game.failure()
    assert said.startswith("The room code cannot be loaded:")
    assert f'File "{game.folder}/room.py", line 10' in said
    assert said.endswith("RuntimeError: not today")
    assert ".playhall" not in said


async def test_of_a_slip_in_code_that_the_site_reads_too_python_tells(game: Game) -> None:
    game.configure(site='dir = "web"\nbuild = "echo generator stumbled; exit 1"\n')
    game.write("room.py", "def (:\n")
    assert "SyntaxError" in await game.failure()


async def test_code_that_ends_its_process_is_told_apart(game: Game) -> None:
    game.write("room.py", "import os\nprint('bye', flush=True)\nos._exit(7)\n")
    assert (await game.failure()).endswith("bye\n\nIts import ended the process with 7.")


async def test_an_import_that_hangs_is_ended_and_its_place_shown(
    game: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "INSPECT_S", 1.0)
    game.write("room.py", "import time\ntime.sleep(60)\n")
    begun = time.monotonic()
    said = await game.failure()
    assert time.monotonic() - begun < 10
    assert f'File "{game.folder}/room.py", line 2' in said
    assert "over 1 s" in said


async def test_what_lies_beside_the_game_is_not_imported(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(game.folder)
    game.write("json.py", "raise RuntimeError('this is not the json you are looking for')\n")
    assert (await game.build()).room_types


async def test_a_build_command_that_fails_is_shown_with_what_it_said(game: Game) -> None:
    game.configure(site='dir = "web"\nbuild = "echo no such colour; exit 3"\n')
    said = await game.failure()
    assert "ended with 3: echo no such colour; exit 3" in said
    assert "\nno such colour\n" in said
    assert "[site] build" in said


async def test_a_program_that_is_not_installed_is_said(game: Game) -> None:
    game.configure(site='dir = "web"\nbuild = "nodejs-that-is-missing build.mjs"\n')
    assert "not installed, or not on PATH" in await game.failure()


async def test_a_build_command_that_hangs_is_ended(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "SITE_BUILD_S", 0.5)
    game.configure(site='dir = "web"\nbuild = "sleep 60"\n')
    begun = time.monotonic()
    assert "took over 0.5 s" in await game.failure()
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("command", ["", 'build = "true"\n'])
async def test_a_site_that_is_not_there_is_said(game: Game, command: str) -> None:
    game.configure(site=f'dir = "web"\n{command}')
    assert "[site] dir names web, which is not there" in await game.failure()


async def test_code_that_cannot_be_loaded_waits_for_no_site(game: Game) -> None:
    game.configure(site='dir = "web"\nbuild = "sleep 60"\n')
    game.write("room.py", "def (:\n")
    begun = time.monotonic()
    assert "SyntaxError" in await game.failure()
    assert time.monotonic() - begun < 10


async def test_a_folder_that_is_named_like_a_module_is_no_trouble(tmp_path: Path) -> None:
    for name in ("json", "typing", "aiohttp", "playhall"):
        folder = tmp_path / name
        folder.mkdir()
        game = Game(folder)
        renamed = game.folder.rename(folder / name)
        game.folder, game.builds = renamed, renamed / ".playhall/builds"
        game.sources = Sources(renamed)
        game.builder = Builder(game.builds, game.sources)
        assert (await game.build()).room_types
