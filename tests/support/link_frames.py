"""Frames as room hosts send them down Attach streams, and what came up them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.packing import Group, pack_down, read_up

__all__ = ["down_frames", "frames_up"]


def down_frames(
    links: Sequence[int],
    generation: int,
    body: bytes = b"",
    heads: Sequence[bytes] = (b"",),
    *,
    unreliable: bool = False,
) -> pb.Down:
    """One frame for these links."""
    return pb.Down(frames=pack_down(generation, Group(links, heads, body, unreliable)))


def frames_up(ups: Iterable[pb.Up]) -> list[tuple[int, bytes]]:
    """The links and frames of all runs."""
    return [found for up in ups for found in read_up(up.frames)]
