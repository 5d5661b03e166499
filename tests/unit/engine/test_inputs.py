"""The compact input: immutable, checked as fields are, compared by value."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from playhall.engine.errors import FieldError, FieldTypeError
from playhall.engine.fields import Json, f32, i8, u8, writable
from playhall.engine.inputs import Input, input_of, input_spec_of, input_values
from playhall.engine.kinds import local


class Control(Input):
    dx: i8
    dy: i8
    fire: bool = False
    aim: f32 = 0.1

    def stands(self) -> bool:
        return self.dx == self.dy == 0


def test_values_and_defaults() -> None:
    control = Control(dx=1, dy=-1)
    assert (control.dx, control.dy, control.fire, control.stands()) == (1, -1, False, False)
    assert control.aim == 0.10000000149011612
    assert repr(control) == "Control(dx=1, dy=-1, fire=False, aim=0.10000000149011612)"
    assert input_of(Control, input_values(control)) == control
    assert [field.name for field in input_spec_of(Control).fields] == ["dx", "dy", "fire", "aim"]


def test_compared_by_value() -> None:
    class Other(Input):
        dx: i8
        dy: i8
        fire: bool = False
        aim: f32 = 0.1

    assert Control(dx=1, dy=2) == Control(dy=2, dx=1, aim=0.1)
    assert hash(Control(dx=1, dy=2)) == hash(Control(dx=1, dy=2))
    assert Control(dx=1, dy=2) != Control(dx=1, dy=3)
    other: object = Other(dx=1, dy=2)
    assert Control(dx=1, dy=2) != other
    nan, other_nan = float("nan"), float("nan")
    assert Control(dx=1, dy=2, aim=nan) == Control(dx=1, dy=2, aim=other_nan)
    assert hash(Control(dx=1, dy=2, aim=nan)) == hash(Control(dx=1, dy=2, aim=other_nan))
    assert Control(dx=1, dy=2, aim=0.0) != Control(dx=1, dy=2, aim=-0.0)
    assert pickle.loads(pickle.dumps(Control(dx=1, dy=2))) == Control(dx=1, dy=2)


def test_what_has_no_default_is_required() -> None:
    with pytest.raises(TypeError, match="Control: dx, dy is missing"):
        Control()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no field jump"):
        Control(dx=0, dy=0, jump=True)  # type: ignore[call-arg]


def test_values_must_fit() -> None:
    with pytest.raises(FieldError, match="dx: 200 is outside i8"):
        Control(dx=200, dy=0)
    with pytest.raises(FieldTypeError, match="dy: must be int"):
        Control(dx=0, dy=True)


def test_immutable() -> None:
    control = Control(dx=1, dy=1)
    changes: list[Callable[[], None]] = [
        lambda: setattr(control, "dx", 2),
        lambda: delattr(control, "dx"),
        lambda: setattr(control, "z", 2),
    ]
    for change in changes:
        with pytest.raises(AttributeError, match="immutable"):
            change()
    assert not hasattr(control, "__dict__")


def test_an_input_is_declared_from_input_alone() -> None:
    with pytest.raises(TypeError, match="only base"):

        class Sub(Control):
            z: u8

    with pytest.raises(TypeError, match="neither writable nor owner_only"):

        class Odd(Input):
            x: writable[u8]

    with pytest.raises(TypeError, match="no local slots"):

        class Local(Input):
            x: int = local(3)

    with pytest.raises(TypeError, match="declare a class of your own"):
        Input()


def test_an_input_can_hold_json() -> None:
    class Order(Input):
        units: Json[list[Any]]

    one, other = Order(units=[1, {"a": 2, "b": 3}]), Order(units=[1.0, {"b": 3, "a": 2}])
    assert one == other
    assert hash(one) == hash(other)


def test_an_input_has_the_limit_of_an_entity() -> None:
    class Huge(Input):
        a: bytes
        b: bytes

    with pytest.raises(ValueError, match="61376"):
        Huge(a=bytes(40_000), b=bytes(40_000))
