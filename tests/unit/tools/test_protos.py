"""tools/gen_protos.py and tools/check_protos.py, on small contracts made here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools import check_protos, gen_protos

GOOD = """\
syntax = "proto3";
package playhall.api.lamp.v1;

// Lamps.
service Lamp {
  // Switches a lamp. Idempotent. NOT_FOUND.
  rpc Switch(SwitchRequest) returns (stream SwitchResponse);
}

// Which lamp.
message SwitchRequest {
  string id = 1;
  optional uint32 level = 2;
  map<string, Colour> colours = 3;
  repeated bytes parts = 4;
  oneof when {
    bool now = 5;
    uint64 at_ms = 6;
  }
}

// What became of it.
message SwitchResponse {
  // Inside.
  message Bulb {}
  Bulb bulb = 1;
}

enum Colour {
  COLOUR_UNSPECIFIED = 0;
  COLOUR_RED = 1;
}
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, path: str = "playhall/api/lamp/v1/lamp.proto") -> Path:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        return tmp_path

    return write


def test_a_good_file_has_no_complaints(write: Write) -> None:
    assert check_protos.lint(check_protos.load(write(GOOD))) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("  // Switches a lamp. Idempotent. NOT_FOUND.\n", "", "rpc Lamp.Switch has no comment"),
        ("// Which lamp.\n", "", "message SwitchRequest has no comment"),
        ("  // Inside.\n", "", "message SwitchResponse.Bulb has no comment"),
        ("COLOUR_UNSPECIFIED", "COLOUR_NONE", "enum Colour does not start with COLOUR_UNSPECIFIED = 0"),
        ("lamp.v1;", "lamps.v1;", "package playhall.api.lamps.v1 is not its directory playhall.api.lamp.v1"),
        ("(SwitchRequest) returns", "(SwitchResponse) returns", "not a message of its own"),
    ],
)
def test_the_linter_complains(write: Write, old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    assert complaint in "\n".join(check_protos.lint(check_protos.load(write(GOOD.replace(old, new)))))


def facts(folder: Path) -> list[str]:
    return check_protos.facts(check_protos.load(folder))


def test_facts_say_what_the_wire_depends_on(write: Write) -> None:
    prefix = "playhall.api.lamp.v1"
    assert {
        f"rpc {prefix}.Lamp.Switch ({prefix}.SwitchRequest) returns (stream {prefix}.SwitchResponse)",
        f"field {prefix}.SwitchRequest.level = 2 optional uint32",
        f"field {prefix}.SwitchRequest.colours = 3 map<string, {prefix}.Colour>",
        f"field {prefix}.SwitchRequest.parts = 4 repeated bytes",
        f"field {prefix}.SwitchRequest.at_ms = 6 oneof when uint64",
        f"value {prefix}.Colour.COLOUR_RED = 1",
    } < set(facts(write(GOOD)))


@pytest.mark.parametrize(
    ("old", "new", "broken"),
    [
        ("  string id = 1;\n", "", "SwitchRequest.id"),
        ("string id = 1", "string id = 9", "SwitchRequest.id"),
        ("string id = 1", "bytes id = 1", "SwitchRequest.id"),
        ("string id = 1", "repeated string id = 1", "SwitchRequest.id"),
        ("string id = 1", "string name = 1", "SwitchRequest.id"),
        ("map<string, Colour>", "map<string, uint32>", "SwitchRequest.colours"),
        ("  rpc Switch(SwitchRequest) returns (stream SwitchResponse);\n", "", "Lamp.Switch"),
        ("returns (stream SwitchResponse)", "returns (SwitchResponse)", "Lamp.Switch"),
        ("COLOUR_RED = 1", "COLOUR_RED = 2", "Colour.COLOUR_RED"),
    ],
)
def test_what_clients_rely_on_may_not_go(write: Write, old: str, new: str, broken: str) -> None:
    assert old in GOOD
    before = facts(write(GOOD))
    found = check_protos.breaks(before, facts(write(GOOD.replace(old, new))))
    assert len(found) == 1
    assert broken in found[0]


def test_adding_breaks_nothing(write: Write) -> None:
    before = facts(write(GOOD))
    after = facts(write(GOOD.replace("string id = 1;", "string id = 1;\n  string room = 7;")))
    assert check_protos.breaks(before, after) == []
    assert len(after) == len(before) + 1


def test_generation_makes_packages_and_is_the_same_every_time(write: Write) -> None:
    protos = write(GOOD)
    made = gen_protos.generate(protos)
    folder = Path("playhall/api/lamp/v1")
    assert {folder / f"lamp_pb2{end}" for end in (".py", ".pyi", "_grpc.py", "_grpc.pyi")} < made.keys()
    assert {
        Path("playhall/api/__init__.py"),
        folder.parent / "__init__.py",
        folder / "__init__.py",
    } < made.keys()
    assert b"from playhall.api.lamp.v1 import lamp_pb2" in made[folder / "lamp_pb2_grpc.py"]
    assert gen_protos.generate(protos) == made


def test_writing_removes_what_no_proto_stands_behind(tmp_path: Path) -> None:
    stale, kept = tmp_path / "playhall/api/old/v1/old_pb2.py", tmp_path / "playhall/room/__init__.py"
    for path in (stale, kept):
        path.parent.mkdir(parents=True)
        path.touch()
    gen_protos.write({Path("playhall/api/lamp_pb2.py"): b"x"}, tmp_path)
    assert (tmp_path / "playhall/api/lamp_pb2.py").read_bytes() == b"x"
    assert not stale.exists()
    assert kept.exists()


def test_a_proto_that_does_not_parse_is_an_error(write: Write) -> None:
    with pytest.raises(gen_protos.ProtocError):
        check_protos.load(write("syntax = 'proto3'; nonsense"))
