from __future__ import annotations

from pathlib import Path

import pytest

from playhall.cli import project
from playhall.cli.project import ProjectFileError
from tools import gen_project_schema

SMALL = """
[project]
slug = "dots"

[rooms.default]
module = "room:Dots"
"""

WHOLE = """
[project]
slug = "two-games"

[rooms.default]
module = "lobby.room:Lobby"

[rooms.arena]
module = "arena:Arena"

[site]
dir = "web/dist"
build = "node build.mjs"

[settings]
players = { guests = true, create_rooms = true, list_public = true }

[settings.rooms]
retention = "12h"
build_update = "restart"
"""


def write(tmp_path: Path, text: str, folder: str = "dots") -> Path:
    path = tmp_path / folder / "playhall.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ProjectFileError) as caught:
        project.load(write(tmp_path, text))
    return str(caught.value).removeprefix(str(tmp_path.resolve()) + "/dots/")


def test_everything_a_project_file_may_say_is_read(tmp_path: Path) -> None:
    got = project.load(write(tmp_path, WHOLE))
    assert got.project.slug == "two-games"
    assert {name: room.module for name, room in got.rooms.items()} == {
        "default": "lobby.room:Lobby",
        "arena": "arena:Arena",
    }
    assert got.site == project.Site(dir="web/dist", build="node build.mjs")
    assert got.settings == project.Settings(
        players=project.PlayerSettings(guests=True, create_rooms=True, list_public=True),
        rooms=project.RoomSettings(retention="12h", build_update="restart"),
    )


def test_players_may_do_nothing_that_the_file_does_not_turn_on(tmp_path: Path) -> None:
    got = project.load(write(tmp_path, SMALL))
    players = got.settings.players
    assert (players.guests, players.create_rooms, players.list_public) == (False, False, False)
    assert (got.settings.rooms.retention, got.settings.rooms.build_update) == ("7d", "hibernate")
    assert got.site is None


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    assert project.load(path.parent) == project.load(path)
    assert project.load(path).root == path.parent.resolve()


def test_room_classes_are_found_below_the_folders_package(tmp_path: Path) -> None:
    assert project.load(write(tmp_path, WHOLE)).entry("arena") == "dots.arena:Arena"
    assert (
        project.load(write(tmp_path, WHOLE, "my-game")).entry("default") == "game_two_games.lobby.room:Lobby"
    )


@pytest.mark.parametrize("folder", ["json", "test", "msgspec", "playhall"])
def test_a_folder_named_like_another_package_does_not_stand_for_it(tmp_path: Path, folder: str) -> None:
    assert project.load(write(tmp_path, SMALL, folder)).entry("default") == "game_dots.room:Dots"


def test_a_folder_that_is_installed_as_a_package_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, SMALL, "a_game_of_this_test")
    (path.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert project.load(path).package == "a_game_of_this_test"


@pytest.mark.parametrize("retention", ["none", "forever", "1h", "8760h", "365d"])
def test_retentions(tmp_path: Path, retention: str) -> None:
    text = f'{SMALL}[settings.rooms]\nretention = "{retention}"\n'
    assert project.load(write(tmp_path, text)).settings.rooms.retention == retention


@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ("", "playhall.toml: ", "[project]"),
        ('[project]\nslug = "dots"\n', "playhall.toml: ", "[rooms.default]"),
        ("[project]\n[rooms.default]\nmodule='room:Dots'\n", "playhall.toml:1: project: ", "A slug is"),
        (SMALL.replace('"dots"', '"Dots!"'), "playhall.toml:3: project.slug: ", "a-z"),
        (SMALL.replace("room:Dots", "room.Dots"), "playhall.toml:6: rooms.default.module: ", "module:Class"),
        (SMALL.replace("rooms.default", 'rooms."a b"'), "playhall.toml:5: rooms.a b: ", "A-Z"),
        (SMALL + "tick_rate = 20\n", "playhall.toml:7: rooms.default.tick_rate: ", "Keys here: module"),
        (SMALL + "[settings.players]\nguest = true\n", "playhall.toml:8: settings.players.guest: ", "guests"),
        (SMALL + "[settings.players]\nguests = 1\n", "playhall.toml:8: settings.players.guests: ", "bool"),
        (
            SMALL + '[settings.rooms]\nretention = "366d"\n',
            "playhall.toml:8: settings.rooms.retention: ",
            "365d",
        ),
        (
            SMALL + '[settings.rooms]\nretention = "1w"\n',
            "playhall.toml:8: settings.rooms.retention: ",
            '"7d"',
        ),
        (SMALL + '[settings.rooms]\nbuild_update = "now"\n', "playhall.toml:8: ", '"restart"'),
        (SMALL + '[site]\ndir = "../secrets"\n', "playhall.toml:8: site.dir: ", "below"),
        (SMALL + '[site]\ndir = "."\n', "playhall.toml:8: site.dir: ", "below"),
        (SMALL + "[stie]\n", "playhall.toml:7: stie: ", "Did you mean site?"),
        ("[project\n", "playhall.toml: is not TOML", "line 1"),
    ],
)
def test_a_refusal_names_the_place_and_what_to_write(
    tmp_path: Path, text: str, place: str, advice: str
) -> None:
    message = refusal(tmp_path, text)
    assert message.startswith(place)
    assert advice in message


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectFileError, match="no such file"):
        project.load(tmp_path / "nowhere")
    path = write(tmp_path, "")
    path.write_bytes(b"slug = \xff")
    with pytest.raises(ProjectFileError, match="UTF-8"):
        project.load(path)


def test_the_schema_for_editors_is_fresh() -> None:
    assert gen_project_schema.OUTPUT.read_text() == project.json_schema(), "run make gen"
