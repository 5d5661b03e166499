"""A game's folder is watched: each change makes one build, and none is missed or made twice."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from playhall.cli import rebuild
from playhall.cli.build import Build
from playhall.cli.console import DevConsole
from playhall.cli.errors import DeployError
from playhall.cli.folders import Folders
from playhall.cli.project import ProjectFile, load
from tests.support.players import eventually

pytestmark = pytest.mark.asyncio

ROOM = """
from playhall.room import Entity, Room, Schema, u8

class Dot(Entity):
    x: u8

class Dots(Room):
    schema = Schema(entities=[Dot])
    max_players = 1
"""


class Recorder:
    """A place where builds go live, which keeps what came."""

    def __init__(self) -> None:
        self.live: Build | None = None
        self.builds: list[Build] = []
        self.projects: list[ProjectFile] = []
        self.refuses = 0
        self.before_each: Callable[[], None] = lambda: None

    async def go_live(self, project: ProjectFile, build: Build) -> None:
        self.before_each()
        if self.refuses:
            self.refuses -= 1
            raise DeployError("UNAVAILABLE: data is away")
        self.live = build
        self.builds.append(build)
        self.projects.append(project)


class Game:
    """A folder with a game, and what watches it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "game"
        self.folder.mkdir()
        self.configure()
        self.write("room.py", ROOM)
        self.live = Recorder()
        self.screen = io.StringIO()
        self.firsts = 0
        self._task: asyncio.Task[None] | None = None

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def configure(self, *, site: str = "", slug: str = "game", guests: bool = False) -> None:
        self.write(
            "playhall.toml",
            f'[project]\nslug = "{slug}"\n[rooms.default]\nmodule = "room:Dots"\n'
            f"[settings.players]\nguests = {str(guests).lower()}\n{site}",
        )

    def watch(self) -> None:
        project = load(self.folder)
        folders = Folders(project.root / ".playhall")
        folders.make()
        console = DevConsole(self.screen, colour=False)
        rebuilder = rebuild.Rebuilder(project, folders, self.live, console, self._first)
        self._task = asyncio.create_task(rebuilder.run())

    def _first(self) -> None:
        self.firsts += 1

    def said(self, text: str) -> int:
        return self.screen.getvalue().count(text)

    def players(self) -> list[int]:
        """Of each build that went live: `max_players` of its room."""
        return [build.room_types[0].max_players for build in self.live.builds]

    def set_players(self, players: int) -> None:
        self.write("room.py", ROOM.replace("max_players = 1", f"max_players = {players}"))

    async def rests(self) -> None:
        """Wait until nothing has been built for longer than a change takes to be seen."""
        seen = -1
        while seen != len(self.live.builds):
            seen = len(self.live.builds)
            await asyncio.sleep(1.2)  # real time: that no build comes is what is tested

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            done = await asyncio.gather(self._task, return_exceptions=True)
            assert isinstance(done[0], asyncio.CancelledError), done


@pytest_asyncio.fixture
async def game(tmp_path: Path) -> AsyncIterator[Game]:
    game = Game(tmp_path)
    yield game
    await game.close()


@pytest.mark.ledger("CLI-04")
async def test_a_change_is_built_and_nothing_else_is(game: Game) -> None:
    game.watch()
    await eventually(lambda: game.players() == [1])
    await eventually(lambda: game.firsts == 1)
    await game.rests()
    game.set_players(2)
    await eventually(lambda: game.players() == [1, 2])
    await eventually(lambda: game.said("the new code is live") == 1)
    (game.folder / "room.py").touch()
    game.write(".git/HEAD", "x")
    game.write("node_modules/a.js", "x")
    game.write(".playhall/notes", "x")
    await game.rests()
    assert game.players() == [1, 2]
    assert game.firsts == 1


async def test_a_change_while_a_build_runs_is_built_next(game: Game) -> None:
    def save() -> None:
        game.live.before_each = lambda: None
        game.set_players(2)

    game.live.before_each = save
    game.watch()
    await eventually(lambda: game.players() == [1, 2])


async def test_a_checkout_of_many_files_is_one_build(game: Game) -> None:
    game.watch()
    await eventually(lambda: game.players() == [1])
    for number in range(300):
        game.write(f"levels/{number}.json", "{}")
        if number % 30 == 0:
            await asyncio.sleep(0.01)  # real time: the files come over a third of a second
    game.set_players(2)
    await eventually(lambda: game.players()[-1:] == [2])
    await game.rests()
    assert game.players() == [1, 2]
    assert len(game.live.builds[-1].files) == 302


async def test_what_does_not_work_is_said_once_and_a_change_mends_it(game: Game) -> None:
    game.write("room.py", "def (:\n")
    game.watch()
    await eventually(lambda: game.said("SyntaxError"))
    assert game.said("Save a change to try again.") == 1
    assert (game.live.builds, game.firsts) == ([], 0)
    game.set_players(1)
    await eventually(lambda: game.players() == [1])
    await eventually(lambda: game.firsts == 1)
    game.write("room.py", "raise ValueError('later')\n")
    await eventually(lambda: game.said("ValueError: later"))
    assert game.said("The build before it stays live.") == 1
    await game.rests()
    assert (game.said("SyntaxError"), game.said("ValueError: later"), game.players()) == (1, 1, [1])
    game.set_players(1)
    await eventually(lambda: game.said("works again"))
    assert game.said("is live (") == 0


async def test_a_build_that_cannot_read_what_rooms_saved_does_not_go_live(game: Game) -> None:
    game.watch()
    await eventually(lambda: game.players() == [1])
    game.write("room.py", ROOM.replace("x: u8", "x: u8\n    hue: u8").replace("= 1", "= 2"))
    await eventually(lambda: game.players() == [1, 2])
    game.set_players(3)
    await eventually(lambda: game.said("dot.hue was u8 and is gone"))
    assert game.said("The build before it stays live.") == 1
    await game.rests()
    assert game.players() == [1, 2]
    game.write("room.py", ROOM.replace("x: u8", "x: u8\n    hue: u8").replace("= 1", "= 4"))
    await eventually(lambda: game.players() == [1, 2, 4])


async def test_a_project_file_that_breaks_is_said_and_mended(game: Game) -> None:
    game.watch()
    await eventually(lambda: game.players() == [1])
    game.write("playhall.toml", "[project\n")
    await eventually(lambda: game.said("is not TOML"))
    game.configure(slug="other")
    await eventually(lambda: game.said("stop playhall dev and start it again"))
    (game.folder / "playhall.toml").unlink()
    await eventually(lambda: game.said("no such file"))
    game.configure()
    game.set_players(2)
    await eventually(lambda: game.players() == [1, 2])


async def test_settings_alone_are_no_new_code(game: Game) -> None:
    game.watch()
    await eventually(lambda: len(game.live.builds) == 1)
    game.configure(guests=True)
    await eventually(lambda: len(game.live.builds) == 2)
    assert game.live.projects[-1].settings.players.guests
    assert game.live.builds[0] == game.live.builds[1]
    assert game.said("is live") == 0


async def test_a_page_that_is_edited_in_place_is_served_anew(game: Game) -> None:
    game.configure(site='[site]\ndir = "site"\n')
    game.write("site/index.html", "one")
    game.watch()
    await eventually(lambda: len(game.live.builds) == 1)
    game.write("site/index.html", "two")
    await eventually(lambda: game.said("the new page is live"))
    site = game.live.builds[-1].site
    assert site is not None
    assert (site / "index.html").read_text() == "two"


GENERATES = '[site]\ndir = "dist"\nbuild = "cp room.py web/room.gen.ts && mkdir -p dist && cp web/* dist"\n'


async def test_what_a_build_generates_starts_no_endless_builds(game: Game) -> None:
    game.configure(site=GENERATES)
    game.write("web/index.html", "one")
    game.watch()
    await eventually(lambda: game.firsts == 1)
    await game.rests()
    assert len(game.live.builds) <= 2
    assert len({build.site for build in game.live.builds}) == 1
    game.set_players(2)
    await eventually(lambda: game.players()[-1] == 2)
    await game.rests()
    assert game.said("is live") == 1


async def test_what_each_build_writes_anew_is_found_out(game: Game) -> None:
    game.configure(
        site='[site]\ndir = "dist"\nbuild = "date +%N > built.txt && mkdir -p dist && cp room.py dist"\n'
    )
    game.watch()
    await eventually(lambda: game.said("built.txt changes in every build"))
    await game.rests()
    before = len(game.live.builds)
    assert before <= 4
    game.set_players(2)
    await eventually(lambda: game.players()[-1] == 2)
    await game.rests()
    assert len(game.live.builds) == before + 1


async def test_a_failed_build_that_wrote_files_is_told_once(game: Game) -> None:
    build = "date +%N > dist/x; date +%N > gen.txt; sleep 0.3; exit 3"
    game.configure(site=f'[site]\ndir = "dist"\nbuild = "{build}"\n')
    game.write("dist/x", "")
    game.watch()
    await eventually(lambda: game.said("ended with 3"))
    await asyncio.sleep(3)  # real time: two more builds find out that gen.txt is written each time
    assert game.said("ended with 3") == 1


async def test_a_failed_build_that_tells_its_time_and_wrote_a_file_is_told_once(game: Game) -> None:
    build = "mkdir -p gen; cp room.py gen/copy.gen; echo took $(date +%N) ms; exit 3"
    game.configure(site=f'[site]\ndir = "dist"\nbuild = "{build}"\n')
    game.watch()
    await eventually(lambda: game.said("ended with 3"))
    await asyncio.sleep(2)  # real time: the copy starts a second build
    assert game.said("ended with 3") == 1


async def test_a_build_that_cannot_go_live_is_tried_again(
    game: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "RETRY_S", 0.1)
    game.live.refuses = 3
    game.watch()
    await eventually(lambda: game.players() == [1])
    assert game.said("could not go live") == 1
    assert game.said("data is away") == 1
