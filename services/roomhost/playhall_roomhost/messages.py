"""What supervisor and process say to each other: JSON, a line each.

The supervisor writes one `Bind` to the process's stdin, and closes stdin never: its end tells the process
that the supervisor is gone. The process writes to a pipe of its own: `Bound` or `Failed`, then `Report` and
`NewToken` for life. What it writes is not trusted: tenant code runs in it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = [
    "Bind",
    "Bound",
    "Failed",
    "Family",
    "FromProcess",
    "NewToken",
    "Report",
    "Sample",
    "decode_bind",
    "decode_message",
    "encode",
]  # fmt: skip


# What goes into a u32 of roomhost.proto.
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """Become a process of this build."""

    host_id: str
    address: str
    """Where to listen."""
    advertise_host: str
    """The host by which routers dial a process that listens on TCP; empty: the one it listens on."""
    project: str
    build_id: str
    deploy_seq: int
    location: str
    rooms: dict[str, str]
    max_rooms: int
    drain_s: float
    inspector: bool = False


class Bound(msgspec.Struct, frozen=True, tag="bound"):
    """The build is loaded; the process serves at this address."""

    address: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The build cannot be loaded. The process ends."""

    reason: str


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A value of a metric."""

    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """A metric as of now."""

    name: str
    help: str
    type: str
    samples: list[Sample]


class Report(msgspec.Struct, frozen=True, tag="report"):
    """How full the process is: at every change, and every second. `metrics` come every few seconds."""

    rooms: _Count
    connections: _Count
    load: float
    draining: bool
    metrics: list[Family] | None = None


class NewToken(msgspec.Struct, frozen=True, tag="token"):
    """The newest host token, with which the supervisor reports a strike for a process that cannot."""

    token: str


FromProcess = Bound | Failed | Report | NewToken

_encoder = msgspec.json.Encoder()
_bind_decoder = msgspec.json.Decoder(Bind)
_message_decoder: msgspec.json.Decoder[FromProcess] = msgspec.json.Decoder(FromProcess)


def encode(message: Bind | FromProcess) -> bytes:
    """A line."""
    return _encoder.encode(message) + b"\n"


def decode_bind(line: bytes) -> Bind:
    """Raises msgspec.DecodeError."""
    return _bind_decoder.decode(line)


def decode_message(line: bytes) -> FromProcess:
    """Raises msgspec.DecodeError."""
    try:
        return _message_decoder.decode(line)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from None
