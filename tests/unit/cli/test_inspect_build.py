"""What a build is asked about itself, and what its author hears of a slip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhall.cli.inspect_build import inspect

ROOM = """
from playhall.room import Entity, Room, Schema, u8

class Dot(Entity):
    x: u8

class Dots(Room):
    schema = Schema(entities=[Dot])
    max_players = 12
    version = 3
"""

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture
def inspect_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Inspect:
    """Inspects a module as a build's room code; every test has a package of its own name."""
    package = f"game_{abs(hash(request.node.name))}"
    monkeypatch.syspath_prepend(tmp_path)

    def run(code: str, entry: str = "room:Dots", **others: str) -> dict[str, Any]:
        (tmp_path / package).mkdir()
        for name, text in {"__init__": "", "room": code, **others}.items():
            (tmp_path / package / f"{name}.py").write_text(text)
        return inspect(str(tmp_path), [f"default={package}.{entry}"])

    return run


def test_a_room_class_is_described(inspect_room: Inspect) -> None:
    [found] = inspect_room(ROOM)["room_types"]
    assert found["name"] == "default"
    assert found["entry"].endswith(".room:Dots")
    assert (found["max_players"], found["state_version"]) == (12, 3)
    assert len(bytes.fromhex(found["schema_hash"])) == 16
    assert found["kinds"] == {"dot": {"x": "u8"}}


def test_a_field_of_no_type_is_shown_by_its_class_and_name_alone(inspect_room: Inspect) -> None:
    error = inspect_room(ROOM.replace("x: u8", "x: u8\n    hue: int"))["error"]
    assert error.count("File ") == 1
    assert 'room.py", line 4' in error
    assert "TypeError: Dot.hue: int is no field type; use" in error


@pytest.mark.parametrize(
    ("code", "entry", "hint"),
    [
        (ROOM, "room:Dotz", "room.py has no such room class. It has Dots."),
        (ROOM, "room:Dot", "room.py has no such room class. It has Dots."),
        ("x = 1", "room:Dots", "It has no room class; make one: class MyRoom(Room)."),
        ("from playhall.room import Room", "room:Dots", "It has no room class; make one"),
    ],
)
def test_a_name_that_is_no_room_class_is_said(
    inspect_room: Inspect, code: str, entry: str, hint: str
) -> None:
    error = inspect_room(code, entry)["error"]
    assert hint in error
    assert f"[rooms.default] names {entry}" in error


def test_a_traceback_begins_in_the_game(inspect_room: Inspect) -> None:
    code = "from .rules import limit\n"
    error = inspect_room(code, rules="def look():\n    return missing\n\nlimit = look()\n")["error"]
    lines = error.splitlines()
    assert lines[0].endswith('room.py", line 1, in <module>')
    assert lines[-1] == "NameError: name 'missing' is not defined"
    assert "importlib" not in error


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("def (:\n", "SyntaxError"),
        ("import nothing_of_this_name\n", "No module named 'nothing_of_this_name'"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    ],
)
def test_whatever_a_module_raises_is_shown_with_its_line(
    inspect_room: Inspect, code: str, shown: str
) -> None:
    error = inspect_room(code)["error"]
    assert shown in error
    assert 'room.py", line 1' in error


def test_a_module_that_is_not_there_is_shown(inspect_room: Inspect) -> None:
    assert "No module named" in inspect_room(ROOM, "rooms:Dots")["error"]
