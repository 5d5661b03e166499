"""Schemas: the numbers of kinds, and a hash that changes exactly when a layout does."""

from __future__ import annotations

# ruff: noqa: RUF012 (a default is copied for each entity, whatever it is)
import hashlib
import json
from typing import Annotated, Any

import pytest

from playhall.engine.fields import FieldType, Json, f32, i8, owner_only, q16, u8, u32, writable
from playhall.engine.inputs import Input
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.schema import EMPTY, PresenceRow, Schema


class Dot(Entity):
    x: f32
    y: f32
    heading: Annotated[float, q16(0, 100)]
    wears: Json[list[str]] = []


class Board(Entity):
    moves: u32 = 0


class Mine(Entity):
    coins: owner_only[u32] = 0
    volume: writable[u8] = 5


class Npc(Entity, hidden=True):
    plan: str


class Control(Input):
    dx: i8


def kind(name: str = "thing", **fields: Any) -> type[Entity]:
    make: Any = type(Entity)
    made: type[Entity] = make(
        "Thing", (Entity,), {"__annotations__": fields, "__module__": __name__}, kind=name
    )
    return made


def hash_of(*entities: type[Entity]) -> bytes:
    return Schema(entities=entities).hash


@pytest.mark.ledger("SCHM-03")
def test_kinds_are_numbered_in_order_and_presence_is_last() -> None:
    schema = Schema(state=Board, private=Mine, entities=[Npc, Dot], input=Control)
    assert [spec.name for spec in schema.kinds] == ["npc", "dot", "board", "mine", "playhall_presence"]
    assert (schema.state_number, schema.private_number, schema.presence_number) == (2, 3, 4)
    assert schema.number_of(spec_of(Dot)) == 1
    assert schema.number_of(spec_of(Board)) is None
    assert schema.classes == (Npc, Dot, Board, Mine, PresenceRow)
    bare = Schema()
    assert (bare.state_number, bare.private_number, bare.presence_number) == (None, None, 0)
    assert bare.hash == EMPTY.hash


def test_a_private_kind_may_be_an_entity_kind_too() -> None:
    schema = Schema(private=Mine, entities=[Mine])
    assert [spec.name for spec in schema.kinds] == ["mine", "mine", "playhall_presence"]
    assert (schema.number_of(spec_of(Mine)), schema.private_number) == (0, 1)


def test_the_canonical_form_is_what_the_page_says() -> None:
    schema = Schema(private=Mine, entities=[Dot])
    text = schema.canonical()
    assert text.isascii()
    assert " " not in text
    assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text
    assert json.loads(text)["entities"][0]["fields"][2] == {
        "name": "heading",
        "owner_only": False,
        "type": "q16:0000000000000000:4059000000000000",
        "writable": False,
    }
    assert schema.hash == hashlib.sha256(text.encode()).digest()[:16]


def test_the_empty_schema_has_a_hash_of_its_own() -> None:
    presence = [("player", "str"), ("name", "str"), ("status", "json"), ("connected", "bool")]
    fields = ",".join(
        f'{{"name":"{name}","owner_only":false,"type":"{type_}","writable":false}}'
        for name, type_ in presence
    )
    assert EMPTY.canonical() == (
        f'{{"entities":[],"input":null,"presence":{{"fields":[{fields}],"hidden":false,"name":"playhall_presence"}},'
        '"private":null,"state":null,"v":1}'
    )
    assert EMPTY.hash.hex() == "d52e6ec15ccbfea4cc9af3061b02f1e1"


@pytest.mark.ledger("SCHM-15")
def test_the_order_of_kinds_counts() -> None:
    assert hash_of(Dot, Mine) != hash_of(Mine, Dot)


@pytest.mark.ledger("SCHM-16", "STATE-18", "SCHM-20")
def test_every_part_of_a_layout_counts() -> None:
    class Turn(Input):
        dx: u8

    class Twist(Input):
        dy: i8

    meta: Any = type(Entity)
    hidden = meta("Thing", (Entity,), {"__annotations__": {"x": u8}, "__module__": __name__}, hidden=True)
    quantised: Any = Annotated
    variants = [
        hash_of(),
        hash_of(kind(x=u8)),
        hash_of(kind(y=u8)),
        hash_of(kind(x=i8)),
        hash_of(kind(x=writable[u8])),
        hash_of(kind(x=owner_only[u8])),
        hash_of(kind(x=owner_only[writable[u8]])),
        hash_of(kind(x=u8, y=u8)),
        hash_of(kind(y=u8, x=u8)),
        hash_of(kind("other", x=u8)),
        hash_of(hidden),
        hash_of(kind(x=quantised[float, q16(0, 1)])),
        hash_of(kind(x=quantised[float, q16(0, 1.0000000000000002)])),
        Schema(state=kind(x=u8)).hash,
        Schema(private=kind(x=u8)).hash,
        Schema(input=Control).hash,
        Schema(input=Turn).hash,
        Schema(input=Twist).hash,
    ]
    assert len(set(variants)) == len(variants)
    assert {len(found) for found in variants} == {16}


@pytest.mark.ledger("SCHM-12")
def test_the_type_in_a_json_and_the_defaults_do_not_count() -> None:
    class One(Entity, kind="same"):
        a: Json[list[int]] = []
        b: u8 = 1

    class Two(Entity, kind="same", max=7):
        a: Json[Any]
        b: u8

        def method(self) -> None: ...

    assert hash_of(One) == hash_of(Two)


@pytest.mark.ledger("SCHM-19")
def test_shared_state_is_neither_hidden_nor_writable() -> None:
    with pytest.raises(TypeError, match=r"Mine\.volume: shared state has no owner"):
        Schema(state=Mine)
    with pytest.raises(TypeError, match="Npc: shared state cannot be hidden"):
        Schema(state=Npc)


@pytest.mark.ledger("SCHM-22")
def test_private_state_may_have_writable_fields() -> None:
    schema = Schema(private=Mine)
    assert schema.private_number is not None
    assert [field.writable for field in schema.kinds[schema.private_number].fields] == [False, True]


def test_what_makes_no_schema_is_refused() -> None:
    class Base(Entity, abstract=True):
        pass

    class Twin(Entity, kind="dot"):
        pass

    with pytest.raises(TypeError, match="Base is abstract"):
        Schema(entities=[Base])
    with pytest.raises(TypeError, match="Dot and Twin have one kind name, 'dot'"):
        Schema(entities=[Dot, Twin])
    with pytest.raises(TypeError, match="Dot is listed twice"):
        Schema(entities=[Dot, Mine, Dot])
    with pytest.raises(TypeError, match="int'> is no Entity class"):
        Schema(entities=[int])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="is no Entity class"):
        Schema(entities=[Dot(x=1, y=1, heading=1)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="declare a class of your own"):
        Schema(input=Input)


def test_field_types_are_named_in_the_schema() -> None:
    assert isinstance(spec_of(Dot).fields[0].type, FieldType)
    assert repr(Schema(entities=[Dot])).endswith(": Dot>")
