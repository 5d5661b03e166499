"""docs/protocol/state.md and the frames whose layout needs a schema, in Python."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from playhall.engine import frames
from playhall.engine.errors import ProtocolError
from playhall.engine.fields import (
    Json,
    f32,
    f64,
    i8,
    i16,
    i32,
    owner_only,
    patched,
    q8,
    q16,
    u8,
    u16,
    u32,
    writable,
)
from playhall.engine.frametypes import Inputs, Write
from playhall.engine.inputs import Input, input_values
from playhall.engine.kinds import Entity
from playhall.engine.schema import Schema
from playhall.engine.specs import KindSpec
from playhall.engine.updates import Change, Correct, Enter, Leave, Operation, Owner, Patch, UpdateReader
from tests.support.vectors import load, params, said, same

UPDATES, UPDATE_IDS = params("updates.json")
WRITES, WRITE_IDS = params("writes.json")
INPUTS, INPUT_IDS = params("inputs.json")


class Dot(Entity):
    x: f32
    y: f32


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
    n: Json[object] = None


class Note(Entity):
    text: str
    data: bytes
    volume: writable[u8]
    secret: owner_only[u16]


class Board(Entity):
    moves: u32


class Mine(Entity):
    moves: u32
    volume: writable[u8]


class Control(Input):
    dx: i8
    fire: bool


SCHEMA = Schema(state=Board, private=Mine, entities=[Dot, Every, Note])


class _Model:
    """What a client holds, by the letter of state.md; the clients have their own."""

    def __init__(self, player: str) -> None:
        self.player = player
        self.reader = UpdateReader(SCHEMA.kinds)
        self.reader.welcome(0, 40, resumed=False)
        self.held: dict[int, tuple[KindSpec, str | None, dict[str, Any]]] = {}

    def part(self, frame: bytes) -> None:
        update = self.reader.part(frame)
        if update is None:
            return
        if update.full:
            self.held.clear()
        before = {id: owner for id, (_, owner, _) in self.held.items()}
        for operation in update.operations:
            self._apply(operation, before)

    def _apply(self, operation: Operation, before: dict[int, str | None]) -> None:
        match operation:
            case Leave(id):
                self.held.pop(id, None)
                before.pop(id, None)
            case Enter(id, number, values):
                spec = SCHEMA.kinds[number]
                fields = {f.name: f.type.load(v) for f, v in zip(spec.fields, values, strict=True)}
                self.held[id] = (spec, self.player if id == 1 else None, fields)
                before.pop(id, None)
            case Change(id, values) | Correct(id, values):
                spec, owner, fields = self.held[id]
                for index, value in values.items():
                    field = spec.fields[index]
                    own = before.get(id) == self.player and field.writable
                    if isinstance(operation, Correct) or not own:
                        fields[field.name] = field.type.load(value)
            case Patch(id, index, offset, data):
                spec, _, fields = self.held[id]
                name = spec.fields[index].name
                fields[name] = patched(fields[name], offset, data)
            case Owner(id, owner):
                spec, _, fields = self.held[id]
                self.held[id] = (spec, owner, fields)

    def said(self) -> dict[str, Any]:
        return {
            "version": self.reader.version,
            "tick": self.reader.tick,
            "entities": {
                str(id): {
                    "kind": spec.name,
                    "owner": owner,
                    "fields": {n: said(v) for n, v in fields.items()},
                }
                for id, (spec, owner, fields) in self.held.items()
            },
        }


@pytest.mark.ledger("CENT-06")
@pytest.mark.parametrize("vector", UPDATES, ids=UPDATE_IDS)
def test_updates(vector: dict[str, Any]) -> None:
    model = _Model(vector["player"])
    parts = [bytes.fromhex(part) for part in vector["parts"]]
    for part in vector["before"]:
        model.part(bytes.fromhex(part))
    for part in parts[:-1]:
        model.part(part)
    if vector["verdict"] == "refused":
        with pytest.raises(ProtocolError):
            model.part(parts[-1])
        return
    model.part(parts[-1])
    assert same(model.said(), vector["after"])


def test_the_schema_is_the_one_of_the_file() -> None:
    kinds = load("updates.json")["schema"]["kinds"]
    assert {spec.name: [f.name for f in spec.fields] for spec in SCHEMA.kinds[:5]} == {
        name: [field[0] for field in fields] for name, fields in kinds.items()
    }


@pytest.mark.parametrize("vector", WRITES, ids=WRITE_IDS)
def test_writes(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    if vector["verdict"] == "refused":
        with pytest.raises(ProtocolError):
            frames.decode_client(data, SCHEMA)
        return
    frame = frames.decode_client(data, SCHEMA)
    assert isinstance(frame, Write)
    found = [
        {
            "id": entry.id,
            "kind": entry.spec.name,
            "fields": {
                entry.spec.fields[i].name: entry.spec.fields[i].type.load(v) for i, v in entry.values.items()
            },
        }
        for entry in frame.entries
    ]
    assert same(found, vector["decoded"])
    assert frame.seen == vector["seen"]
    assert frames.encode_client(frame).hex() == vector["hex"]


@pytest.mark.parametrize("vector", INPUTS, ids=INPUT_IDS)
def test_compact_inputs(vector: dict[str, Any]) -> None:
    schema = Schema(input=Control)
    data = bytes.fromhex(vector["hex"])
    if vector["verdict"] == "refused":
        with pytest.raises(ProtocolError):
            frames.decode_client(data, schema)
        return
    frame = frames.decode_client(data, schema)
    assert isinstance(frame, Inputs)
    found = [
        {
            "tick": entry.tick,
            "view": None if entry.lag is None else entry.tick * 256 - entry.lag,
            "fields": dict(zip(["dx", "fire"], input_values(entry.value), strict=True)),
        }
        for entry in frame.entries
    ]
    assert same(found, vector["decoded"])
    assert frames.encode_client(frame).hex() == vector["hex"]
