"""Log lines as a process writes them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def lines_of(code: str, level: str = "info") -> list[dict[str, Any]]:
    """The lines that this code logs in a process of its own."""
    setup = f"from playhall_common import logs; logs.configure('toy', {level!r}); log = logs.get_logger()\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == ""
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_line_is_an_event_with_fields() -> None:
    (line,) = lines_of("log.info('room_started', room='main', generation=3)")
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "service": "toy",
        "event": "room_started",
        "room": "main",
        "generation": 3,
    }


def test_what_is_bound_goes_with_every_line() -> None:
    first, second = lines_of(
        "with logs.bound(project='dots'):\n log.info('one')\n logs.bind(room='r')\nlog.info('two')"
    )
    assert (first["project"], second.get("project"), second["room"]) == ("dots", None, "r")


def test_lines_below_the_level_are_not_written() -> None:
    events = [line["event"] for line in lines_of("log.info('one'); log.warning('two')", level="warning")]
    assert events == ["two"]


def test_a_traceback_is_one_field() -> None:
    (line,) = lines_of("try: 1 / 0\nexcept ZeroDivisionError: log.exception('failed')")
    assert line["level"] == "error"
    assert line["exception"].endswith("ZeroDivisionError: division by zero")


def test_what_libraries_log_has_the_same_form() -> None:
    (line,) = lines_of("import logging; logging.getLogger('lib').warning('%s left', 3)")
    assert (line["event"], line["logger"], line["message"]) == ("library_log", "lib", "3 left")


def test_no_value_loses_a_line() -> None:
    odd, surrogate, loop = lines_of(
        "log.info('odd', a=object, b={1, 2}, c=2**70, d={(1,): 2}, e=b'x', f=float('nan'))\n"
        "log.info('surrogate', text='\\ud800', count=3)\n"
        "loop = []; loop.append(loop); log.info('loop', loop=loop)"
    )
    assert (odd["event"], odd["a"], odd["c"]) == ("odd", "<class 'object'>", 2**70)
    assert (surrogate["event"], surrogate["text"], surrogate["count"]) == ("surrogate", "'\\ud800'", 3)
    assert (loop["event"], loop["loop"]) == ("loop", "[[...]]")
