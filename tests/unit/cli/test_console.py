"""What `playhall dev` prints of logs, on terminals and elsewhere."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from playhall.cli.console import DevConsole, wants_colour


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def printed(child: str, line: str, *, only_errors: bool = False) -> str:
    screen = Screen()
    console = DevConsole(screen, colour=False)
    console.only_errors = only_errors
    console.log_line(child, line)
    return screen.getvalue()


def log(event: str, level: str, **fields: object) -> str:
    return json.dumps({"timestamp": "t", "level": level, "service": "s", **fields, "event": event})


def test_room_codes_own_lines_are_shown_under_the_rooms_name() -> None:
    line = log("room.log", "info", room="main", room_uid="01M", tick=7, message="alice scored")
    assert printed("roomhost", line) == "main  alice scored\n"


def test_what_room_code_prints_is_shown() -> None:
    assert printed("roomhost", "hello") == "roomhost  hello\n"
    assert printed("roomhost", "5") == "roomhost  5\n"
    assert printed("roomhost", '{"x": 1}') == 'roomhost  {"x": 1}\n'
    assert printed("roomhost", "{'x': 1}") == "roomhost  {'x': 1}\n"
    assert printed("roomhost", "[1, 2]") == "roomhost  [1, 2]\n"
    assert printed("roomhost", "") == ""


def test_services_say_what_is_wrong_and_keep_the_rest_for_their_logs() -> None:
    assert printed("router-1", log("connection_over", "info", code=1000)) == ""
    assert printed("router-1", log("slow", "warning", code=3)) == "router-1  slow code=3\n"
    assert printed("valkey", "1:M # WARNING Memory overcommit must be enabled!") == ""


def test_while_services_start_their_warnings_are_not_shown() -> None:
    assert printed("statestore", log("registry_away", "warning"), only_errors=True) == ""
    assert printed("statestore", log("disk", "error"), only_errors=True) == "statestore  disk\n"
    line = log("room.log", "warning", room="main", message="low")
    assert printed("roomhost", line, only_errors=True) == "main  low\n"


def test_a_traceback_names_the_authors_files() -> None:
    screen = Screen()
    console = DevConsole(screen, colour=False)
    console.translate = lambda text: text.replace("/copy/", "/game/")
    trace = 'Traceback\n  File "/copy/room.py", line 3\nValueError: no\n'
    line = log(
        "room.hook_failed", "error", project="p", room="main", room_uid="01M", hook="f", traceback=trace
    )
    console.log_line("roomhost", line)
    assert screen.getvalue() == (
        'main  room.hook_failed hook=f\nTraceback\n  File "/game/room.py", line 3\nValueError: no\n'
    )


def test_what_players_send_cannot_move_the_cursor() -> None:
    line = log("room.log", "info", room="main", message="\x1b[2Jname\r\x07\x9b1m\ttab")
    assert printed("roomhost", line) == "main  \\x1b[2Jname\\x0d\\x07\\x9b1m\ttab\n"
    assert printed("roomhost", "\x1b[31mred") == "roomhost  \\x1b[31mred\n"


def test_the_last_lines_of_a_log_are_readable() -> None:
    console = DevConsole(Screen(), colour=False)
    trace = "Traceback\nOSError: disk"
    lines = ["cannot start:", log("serving", "info", pid=3), log("start_failed", "error", exception=trace)]
    assert console.last_lines(lines) == "cannot start:\nserving pid=3\nstart_failed\nTraceback\nOSError: disk"
    assert console.last_lines([]) == "It wrote nothing."


def test_colours_are_for_terminals_that_want_them() -> None:
    assert wants_colour(Screen(terminal=True), {"TERM": "xterm"})
    assert wants_colour(Screen(terminal=True), {"NO_COLOR": ""})
    assert not wants_colour(Screen(terminal=True), {"NO_COLOR": "1"})
    assert not wants_colour(Screen(terminal=True), {"TERM": "dumb"})
    assert not wants_colour(Screen(), {})


@pytest.mark.parametrize("colour", [False, True])
def test_links_stand_alone_and_whole(colour: bool) -> None:
    screen = Screen(terminal=colour)
    DevConsole(screen, colour=colour).links("http://127.0.0.1:7350/", "http://localhost:7350/")
    lines = [line.split() for line in screen.getvalue().splitlines()]
    assert [line[-1] for line in lines if line and line[-1].startswith("http")] == [
        "http://127.0.0.1:7350/",
        "http://localhost:7350/",
    ]
    assert ("\x1b[" in screen.getvalue()) == colour


def test_the_inspector_has_its_link_where_it_can_be_reached() -> None:
    screen = Screen()
    url = "http://127.0.0.1:7350/v1/dev/"
    DevConsole(screen, colour=False).links("http://127.0.0.1:7350/", "http://localhost:7350/", url)
    DevConsole(screen, colour=False).address("http://127.0.0.1:7350/", "dots", url)
    assert screen.getvalue().count(f"Look inside       {url}\n") == 2


def test_no_line_is_of_blanks_alone() -> None:
    screen = Screen()
    DevConsole(screen, colour=False).links("http://10.0.0.7:7350/", "http://10.0.0.7:7350/")
    DevConsole(screen, colour=False).address("http://10.0.0.7:7350/", "dots")
    assert [line for line in screen.getvalue().splitlines() if line and not line.strip()] == []


def test_a_host_without_another_name_has_one_link() -> None:
    screen = Screen()
    DevConsole(screen, colour=False).links("http://10.0.0.7:7350/", "http://10.0.0.7:7350/")
    assert screen.getvalue().count("http://") == 1


def test_long_lines_are_not_broken() -> None:
    assert printed("roomhost", "x" * 5_000) == f"roomhost  {'x' * 5_000}\n"


def test_what_the_terminal_cannot_show_is_replaced(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as stream:
        DevConsole(stream, colour=False).problem("Wrong", "the room “main” fell")
    assert "the room ?main? fell" in (tmp_path / "out").read_text()


def test_output_that_nobody_reads_is_told_once(tmp_path: Path) -> None:
    stream = open("/dev/full", "w")  # noqa: SIM115  # the console redirects it
    gone = []
    console = DevConsole(stream, colour=False)
    console.on_gone = lambda: gone.append(1)
    console.step("one")
    console.step("two")
    stream.close()
    assert gone == [1]
