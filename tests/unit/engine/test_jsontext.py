"""JSON where Python and browsers differ: what cannot be told the same way to both is refused."""

from __future__ import annotations

import enum
import json
import math
from collections import ChainMap, UserList
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine import jsontext

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-jsontext.MAX_SAFE_INT, jsontext.MAX_SAFE_INT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_values_come_back(value: Any) -> None:
    back = jsontext.decode(jsontext.encode(value))
    assert jsontext.same(back, value)
    assert back == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\ud', max_size=60))
def test_garbage_gives_values_or_value_errors(data: bytes | str) -> None:
    raw = data if isinstance(data, bytes) else data.encode()
    try:
        value = jsontext.decode(raw)
    except ValueError:
        return
    jsontext.encode(value)


@pytest.mark.parametrize("value", [2**53, -(2**53), 10**30, [0.1234567890123456, {"a": 2**53}]])
def test_integers_a_browser_would_change_are_refused_both_ways(value: Any) -> None:
    with pytest.raises(ValueError, match="browser"):
        jsontext.encode(value)
    text = repr(value).replace("'", '"')
    with pytest.raises(ValueError, match="browser"):
        jsontext.decode(text.encode())


def test_the_largest_integers_and_any_long_float_pass() -> None:
    for value in (2**53 - 1, -(2**53) + 1, 1e300, 0.1234567890123456789):
        assert jsontext.decode(jsontext.encode(value)) == value
    assert jsontext.decode(b"0.12345678901234567890123") == 0.12345678901234568


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"a": [math.nan]}])
def test_numbers_json_has_not_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        jsontext.encode(value)


NOT_JSON = [
    b"",
    b"NaN",
    b"1e999",
    b"01",
    b"[1,]",
    b"{'a':1}",
    b'"\\ud800"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b"1 2",
]
NOT_JSON += [b"\xef\xbb\xbf1", b"9" * 5_000]


@pytest.mark.parametrize("text", NOT_JSON)
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        jsontext.decode(text)


def test_a_lone_surrogate_is_refused() -> None:
    for value in ("\ud800", {"\udfff": 1}):
        with pytest.raises(ValueError, match="surrogate"):
            jsontext.encode(value)


@pytest.mark.parametrize("value", [object(), b"bytes", {1: 2}, {"a": {None: 1}}, {1, 2}, [bytearray(1)], 1j])
def test_what_json_cannot_say_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        jsontext.encode(value)


def test_nesting_ends_at_512() -> None:
    deep: list[Any] = []
    for _ in range(511):
        deep = [deep]
    assert jsontext.decode(jsontext.encode(deep)) == deep
    with pytest.raises(ValueError, match="512"):
        jsontext.encode([deep])
    with pytest.raises(ValueError, match="512"):
        jsontext.decode(b"[" * 513 + b"]" * 513)
    with pytest.raises(ValueError, match="JSON"):
        jsontext.decode(b"[" * 100_000 + b"]" * 100_000)
    assert len(jsontext.decode(b"[" + b"[]," * 600 + b"[]]")) == 601  # many, but flat


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="512"):
        jsontext.encode(loop)


class Colour(enum.StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Count(int):
    pass


def test_every_mapping_and_sequence_passes_and_subclasses_are_what_they_stand_for() -> None:
    value = {"a": ChainMap({"b": (1, 2)}), "c": UserList([Colour.RED, Text("t"), Count(3)])}
    assert jsontext.encode(value) == b'{"a":{"b":[1,2]},"c":["red","t",3]}'


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1, [2]], (1, (2,)), True),
        ([], {}, False),
        ("ab", ["a", "b"], False),
        (None, 0, False),
        ({"a": True}, {"a": 1}, False),
        ([1], [1, 2], False),
    ],
)
def test_same_is_structural(a: Any, b: Any, equal: bool) -> None:
    assert jsontext.same(a, b) is equal
    assert jsontext.same(b, a) is equal


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_is_bounded_alike_on_every_python(opening: str, closing: str) -> None:
    times = jsontext.MAX_DEPTH // len(closing)
    text = opening * times + "1" + closing * times
    assert not jsontext.is_too_deep(json.loads(text))
    assert not jsontext.is_too_deep(5)
    assert jsontext.is_too_deep(json.loads(f"[{text}]"))
