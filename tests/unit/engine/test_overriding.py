"""A misspelt hook, and one that cannot be called, are told where the class is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import new_class
from typing import Any

import pytest

from playhall.room import Bot, Call, Interest, Room, Schema


def make(base: Any, *bases: type, **members: Any) -> Any:
    return new_class("Game", (*bases, base), exec_body=lambda body: body.update(members))


def method(*names: str) -> Any:
    """A method that takes these, and self."""
    space: dict[str, Any] = {}
    exec(f"def method({', '.join(['self', *names])}): pass", space)
    return space["method"]


@pytest.mark.parametrize(
    ("base", "name", "meant"),
    [
        (Room, "on_player_join", r"on_join\(self, conn\)"),
        (Room, "on_player_tick", r"on_tick\(self, dt\)"),
        (Room, "on_jion", r"on_join\(self, conn\)"),
        (Room, "on_joined", r"on_join\(self, conn\)"),
        (Room, "on_mesage", r"on_message\(self, conn, message\)"),
        (Room, "on_leaves", r"on_leave\(self, conn\)"),
        (Room, "on_hibernation", r"on_hibernate\(self\)"),
        (Room, "onJoin", r"on_join\(self, conn\)"),
        (Room, "On_Join", r"on_join\(self, conn\)"),
        (Room, "seesPresence", r"sees_presence\(self, viewer, entry\)"),
        (Bot, "on_tick", r"tick\(self, room\)"),
        (Bot, "Start", r"start\(self, room\)"),
        (Interest, "keysOf", r"keys_of\(self, room, entity\)"),
    ],
)
def test_a_misspelt_hook_is_refused_with_the_one_that_is_meant(base: Any, name: str, meant: str) -> None:
    says = rf"^Game\.{name} is no hook of {base.__name__}, .*did you mean {meant}\?"
    with pytest.raises(TypeError, match=says):
        make(base, **{name: method("conn")})


@pytest.mark.parametrize(
    "name",
    [
        *("on_pick", "on_kick", "on_click", "on_move", "on_fire", "on_take", "on_walk", "on_wave", "on_coin"),
        *("on_buy_item", "on_player", "on_player_hit", "on_stick", "on_team", "_on_join", "on_", "sees"),
    ],
)
def test_methods_of_ones_own_that_resemble_no_hook_are_legal(name: str) -> None:
    make(Room, **{name: method("whatever")})


def test_what_is_no_method_or_answers_a_call_may_be_named_so() -> None:
    class Joined(Call[None]):
        pass

    made = make(Room, schema=Schema(calls=[Joined]), on_joined=Joined.handler(method("conn", "ask")))
    assert make(made, on_jion=3).on_jion == 3


@pytest.mark.parametrize(
    ("base", "name", "wrong", "right"),
    [
        (Room, "on_join", method(), r"on_join\(self, conn\)"),
        (Room, "on_join", method("conn", "meta"), r"on_join\(self, conn\)"),
        (Room, "on_join", method("*", "conn"), r"on_join\(self, conn\)"),
        (Room, "on_tick", method(), r"on_tick\(self, dt\)"),
        (Room, "on_create", method("x"), r"on_create\(self\)"),
        (Room, "on_write", method("conn", "values"), r"on_write\(self, conn, entity, values\)"),
        (Room, "sees_presence", method("conn"), r"sees_presence\(self, viewer, entry\)"),
        (Room, "on_join", staticmethod(method("conn")), r"on_join\(self, conn\)"),
        (Bot, "tick", method(), r"tick\(self, room\)"),
        (Interest, "sees", method("conn", "entity"), r"sees\(self, room, conn, entity\)"),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused_with_how_it_is_written(
    base: Any, name: str, wrong: Any, right: str
) -> None:
    with pytest.raises(TypeError, match=rf"^Game\.{name} cannot be called: .*write def {right}$"):
        make(base, **{name: wrong})


def test_a_hook_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Game\.on_tick is no method: write def on_tick\(self, dt\)"):
        make(Room, on_tick=None)


def test_a_hook_of_a_mixin_counts_too() -> None:
    mixin = type("Mixin", (), {"on_join": method()})
    with pytest.raises(TypeError, match=r"Game\.on_join cannot be called"):
        make(Room, mixin)


def adding_player(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives the hook one argument more than it gets."""

    @wraps(hook)
    def wrapped(self: Any, conn: Any, *more: Any) -> Any:
        return hook(self, conn, *more, conn.player)

    return wrapped


@pytest.mark.parametrize(
    "right",
    [
        method("*args"),
        method("connection"),
        method("conn", "extra=None"),
        method("conn", "*", "extra=None", "**more"),
        adding_player(method("conn", "player")),
        staticmethod(lambda self: None),
        classmethod(method("conn")),
        partial(method("conn"), None),
    ],
)
def test_any_way_to_take_what_a_hook_is_called_with_is_legal(right: Any) -> None:
    make(Room, on_join=right)
