"""docs/protocol/frames.md, in Python: what a server reads of clients, and a client of servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from playhall.engine import frames
from playhall.engine.errors import ProtocolError
from playhall.engine.frametypes import (
    Ack,
    Asleep,
    Call,
    Hello,
    Inputs,
    Leave,
    Message,
    Peers,
    Ping,
    Pong,
    Reply,
    ReplyError,
    Reset,
    Resume,
    Unreliable,
    Voice,
    Waking,
    Welcome,
)  # fmt: skip
from tests.support.vectors import params

VECTORS, IDS = params("frames.json")
NAMES = {
    Ack: "ack", Asleep: "asleep", Call: "call", Hello: "hello", Inputs: "inputs", Leave: "leave",
    Message: "message", Peers: "peers", Ping: "ping", Pong: "pong", Reply: "reply", ReplyError: "reply",
    Reset: "reset", Resume: "resume", Unreliable: "unreliable", Voice: "voice", Waking: "waking",
    Welcome: "welcome",
}  # fmt: skip
HEX = {"schema", "session"}


def _decode(vector: dict[str, Any]) -> Any:
    data = bytes.fromhex(vector["hex"])
    return frames.decode_client(data) if vector["from"] == "client" else frames.decode_server(data)


def _payload_as_decoded(said: dict[str, Any]) -> Any:
    data = bytes.fromhex(said["payload"])
    return data if said["binary"] else json.loads(data)


def _expect(frame: Any, said: dict[str, Any]) -> None:
    if said["frame"] is None:
        assert frame is None
        return
    assert NAMES[type(frame)] == said["frame"]
    if isinstance(frame, Message | Unreliable | Call):
        assert frame.content == _payload_as_decoded(said)
        assert isinstance(frame.content, bytes) == said["binary"]
        assert frame.seen == said.get("seen")
        if isinstance(frame, Call):
            assert (frame.call, frame.name) == (said["call"], said["name"])
    elif isinstance(frame, Reply):
        assert (frame.call, frame.content, said["error"]) == (said["call"], _payload_as_decoded(said), None)
    elif isinstance(frame, ReplyError):
        assert {"code": frame.code, "text": frame.text} == said["error"]
        assert frame.call == said["call"]
    elif isinstance(frame, Inputs):
        views = [None if e.lag is None else e.tick * 256 - e.lag for e in frame.entries]
        assert [e.tick for e in frame.entries] == [e["tick"] for e in said["entries"]]
        assert views == [e["view"] for e in said["entries"]]
        assert [e.value for e in frame.entries] == [
            json.loads(bytes.fromhex(e["input"])) for e in said["entries"]
        ]
    elif isinstance(frame, Pong):
        assert (frame.nonce, frame.fraction) == (said["nonce"], said["fraction"])
        assert frame.tick == (said["tick"] if said["has_tick"] else None)
    else:
        for name, value in said.items():
            if name != "frame":
                found = getattr(frame, name)
                assert (
                    found.hex() if name in HEX else list(found) if isinstance(found, tuple) else found
                ) == value


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_decoding(vector: dict[str, Any]) -> None:
    if vector["verdict"] == "refused":
        with pytest.raises(ProtocolError) as caught:
            _decode(vector)
        assert caught.value.code == vector["code"]
        return
    _expect(_decode(vector), vector["decoded"])


def _encodes_back(vector: dict[str, Any]) -> bool:
    """Not deflated, no surplus, nothing ignored, and JSON as our encoder writes it."""
    odd = "103 114 122 133 145 167 177 212 235"
    return vector["verdict"] == "valid" and vector["id"].removeprefix("FRAME-") not in odd.split()


@pytest.mark.parametrize("vector", [v for v in VECTORS if _encodes_back(v)], ids=lambda v: v["id"])
def test_encoding(vector: dict[str, Any]) -> None:
    encode = frames.encode_client if vector["from"] == "client" else frames.encode_server
    assert encode(_decode(vector)).hex() == vector["hex"]
