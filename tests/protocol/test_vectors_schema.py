"""docs/protocol/schema.md, in Python: the canonical form and its hash."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from playhall.engine.fields import Json, f32, f64, i8, i16, i32, owner_only, q8, q16, u8, u16, u32, writable
from playhall.engine.inputs import Input
from playhall.engine.kinds import Entity
from playhall.engine.schema import Schema
from tests.support.vectors import params

VECTORS, IDS = params("schema.json")


class Dot(Entity):
    x: f32
    y: f32


class Board(Entity):
    moves: u32


class Mine(Entity):
    moves: u32
    volume: writable[u8]


class Every(Entity):
    a: bool
    b: u8
    c: u16
    d: u32
    e: i8
    f: i16
    g: i32
    h: f32
    i: f64
    j: Annotated[float, q8(0, 1)]
    k: Annotated[float, q16(-0.1, 2000)]
    l: str  # noqa: E741
    m: bytes
    n: writable[owner_only[Json[object]]] = None


class Secret(Entity, hidden=True):
    card: u8


class Control(Input):
    dx: i8
    fire: bool


DECLARED: dict[str, Schema[Any, Any]] = {
    "no schema": Schema(),
    "dots": Schema(state=Board, private=Mine, entities=[Dot]),
    "every type": Schema(entities=[Every]),
    "two kinds": Schema(entities=[Dot, Secret]),
    "the same in the other order": Schema(entities=[Secret, Dot]),
    "an input": Schema(entities=[Dot], input=Control),
}


@pytest.mark.ledger("SCHM-15")
@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_canonical_form_and_hash(vector: dict[str, Any]) -> None:
    schema = DECLARED[vector["about"]]
    assert schema.canonical() == vector["canonical"]
    assert schema.hash.hex() == vector["hash"]
