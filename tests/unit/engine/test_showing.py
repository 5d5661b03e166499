"""Values as the inspector shows them are strict JSON and bounded."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from playhall.engine.fields import BYTES, F32, F64, JSON, STR, U8
from playhall.engine.showing import MAX_TEXT, cut, listed, show_content, show_field


@pytest.mark.parametrize(
    ("type", "value", "shown"),
    [
        (U8, 7, 7),
        (F64, 0.5, 0.5),
        (F64, math.nan, "NaN"),
        (F32, math.inf, "Infinity"),
        (F32, -math.inf, "-Infinity"),
        (STR, "<script>", "<script>"),
        (BYTES, b"\x01\xff", {"bytes": 2, "hex": "01ff"}),
        (BYTES, bytes(40_000), {"bytes": 40_000, "hex": "00" * 32}),
        (JSON, {"a": [1, None]}, {"a": [1, None]}),
    ],
)
def test_fields(type: Any, value: Any, shown: Any) -> None:
    found = show_field(type, type.accept(value))
    assert found == shown
    json.dumps(found, allow_nan=False)


def test_what_is_long_is_cut_and_says_how_long_it_is() -> None:
    assert show_field(STR, "x" * 5_000) == {"cut": "x" * MAX_TEXT, "size": 5_000}
    found = show_field(JSON, JSON.accept(["y" * 5_000]))
    assert found["size"] == 5_004
    assert found["cut"].startswith('["yyy')
    assert cut("z" * MAX_TEXT) == "z" * MAX_TEXT


def test_a_json_field_is_shown_as_it_was_assigned_whatever_room_code_did_to_it_since() -> None:
    stored = JSON.accept({"n": 1})
    stored.value["n"] = math.nan
    assert show_field(JSON, stored) == {"n": 1}


def test_content_that_is_no_json_is_shown_as_python_prints_it() -> None:
    assert show_content(b"\x00") == {"bytes": 1, "hex": "00"}
    assert show_content({"x": 2**60}) == "{'x': 1152921504606846976}"
    assert show_content("a lone \ud800 surrogate") == "'a lone \\ud800 surrogate'"


def test_a_list_ends_at_a_number_of_things_or_of_bytes() -> None:
    assert listed(range(10), str, most=3, most_bytes=10_000) == ["0", "1", "2"]
    assert listed(range(10), str, most=100, most_bytes=500) == ["0", "1", "2"]
    assert listed(range(10), lambda _: "x" * 5_000, most=100, most_bytes=10) == ["x" * 5_000]
