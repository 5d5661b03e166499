"""docs/protocol/values.md, in Python."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.engine.errors import ProtocolError
from playhall.engine.fields import (
    FieldType,
    Json,
    f32,
    f64,
    i8,
    i16,
    i32,
    q8,
    q16,
    u8,
    u16,
    u32,
)
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.wire import Reader, Writer
from tests.support.vectors import params, said, same

VECTORS, IDS = params("values.json")
PLAIN = {"varint32", "varint53", "zigzag", "mask"}


class _Every(Entity):
    bool_: bool
    u8_: u8
    u16_: u16
    u32_: u32
    i8_: i8
    i16_: i16
    i32_: i32
    f32_: f32
    f64_: f64
    str_: str
    bytes_: bytes
    json_: Json[object] = None


def _type(vector: dict[str, Any]) -> FieldType:
    if vector["type"] in ("q8", "q16"):
        return (q8 if vector["type"] == "q8" else q16)(vector["lo"], vector["hi"])
    return spec_of(_Every).by_name[vector["type"] + "_"].type


def _bits(fields: list[int]) -> int:
    return sum(1 << field for field in fields)


def _decode(vector: dict[str, Any], source: Reader, *, from_client: bool) -> Any:
    value = _decode_first(vector, source, from_client=from_client)
    source.done()
    return value


def _decode_first(vector: dict[str, Any], source: Reader, *, from_client: bool) -> Any:
    name = vector["type"]
    if name == "mask":
        bits = source.mask(vector["fields"])
        return [field for field in range(vector["fields"]) if bits >> field & 1]
    if name in PLAIN or (name == "str" and "field" not in vector):
        return getattr(source, name)()
    field_type = _type(vector)
    return field_type.load(field_type.decode(source, from_client=from_client))


@pytest.mark.ledger("SCHM-04", "SCHM-05", "SCHM-06", "SCHM-08")
@pytest.mark.parametrize("from_client", [False, True], ids=["server", "client"])
@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_decoding(vector: dict[str, Any], from_client: bool) -> None:
    source = Reader(bytes.fromhex(vector["hex"]))
    if vector["verdict"] == "refused" or (from_client and vector.get("client") == "refused"):
        with pytest.raises(ProtocolError):
            _decode(vector, source, from_client=from_client)
        return
    value = _decode(vector, source, from_client=from_client)
    assert same(said(value), vector["value"])


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["verdict"] == "valid"], ids=lambda v: v["id"])
def test_encoding(vector: dict[str, Any]) -> None:
    out, name = Writer(), vector["type"]
    value = _decode(vector, Reader(bytes.fromhex(vector["hex"])), from_client=False)
    if name == "mask":
        out.mask(_bits(value))
    elif name in PLAIN or name == "str":
        getattr(out, name)(value)
    else:
        field_type = _type(vector)
        field_type.encode(out, field_type.accept(value))
    assert out.finish().hex() == vector["hex"]
