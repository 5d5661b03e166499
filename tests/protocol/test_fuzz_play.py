"""A room that uses everything, under frames of any sort in any order: it raises nothing, and goes on.

The frames are right by their layout: messages, calls, writes and inputs with values, ids and names of any
sort, again and again under one number. Between them ticks pass, and connections go and come back with lies.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall.engine.frames import encode_client
from tests.e2e.games.fuzzed.room import Fuzzed
from tests.e2e.games.fuzzed.shared import Pawn, Steer, schema
from tests.support.rooms import Driver, Replica, TestClient

FEWER = settings(max_examples=settings().max_examples // 2)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e9, 1e9)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
arguments = st.one_of(
    json_values,
    st.binary(max_size=9),
    st.fixed_dictionaries({"a": json_values}, optional={"b": json_values, "tags": json_values}),
    st.fixed_dictionaries({"text": json_values | st.text()}),
)
ids = st.integers(0, 12) | st.integers(2**31, 2**31 + 4) | st.integers(0, 2**32 - 1)
u32s = st.integers(0, 8) | st.integers(0, 2**32 - 1)
seens = st.none() | st.integers(0, 2**53 - 2)


@st.composite
def writes(draw: st.DrawFn) -> frames.Write:
    entries = []
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.integers(0, len(schema.kinds) - 1))
        kind = schema.kinds[number]
        chosen = draw(st.sets(st.sampled_from(kind.fields), min_size=1))
        values: dict[int, Any] = {field.index: field.type.zero for field in chosen}
        for field in chosen:
            if field.name == "pose":
                values[field.index] = draw(st.integers(0, 255))
        entries.append(frames.WriteEntry(draw(ids), number, kind, values))
    return frames.Write(draw(u32s), tuple(entries))


inputs = st.builds(
    lambda tick, lag, dx, note: frames.Inputs((frames.InputEntry(tick, lag, Steer(dx=dx, note=note)),)),
    st.integers(0, 2**53 - 1),
    st.none() | st.integers(0, 2**32 - 2),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
sent = st.one_of(
    st.builds(frames.Message, json_values | st.binary(max_size=9), seens),
    st.builds(frames.Unreliable, json_values | st.binary(max_size=9), seens),
    st.builds(frames.Call, u32s, seens, st.sampled_from(("add", "echo", "", "Add", "__init__")), arguments),
    writes(),
    inputs,
    st.just(frames.Leave()),
    st.builds(frames.Ping, u32s),
).map(encode_client)
resumes = st.builds(
    frames.Resume,
    st.just(0),
    st.sampled_from((1, 2, 2**53 - 1)),
    u32s,
    st.booleans(),
    st.sets(ids.filter(lambda id: id > 1), max_size=6).map(lambda held: tuple(sorted(held))),
)
steps = st.one_of(
    st.tuples(st.just("send"), sent), st.tuples(st.just("back"), resumes), st.just(("tick", None))
)


@FEWER
@given(st.lists(st.tuples(st.booleans(), steps), max_size=25))
def test_who_plays_is_in_sync_whatever_others_send(story: list[tuple[bool, tuple[str, Any]]]) -> None:
    driver = Driver(Fuzzed)
    ann = driver.join("ann")
    hostile = {True: driver.join("mallory"), False: driver.join("eve")}
    driver.tick()
    [mine] = list(driver.room.entities.all(Pawn, owner="ann"))
    mine.pose, mine.label = 7, "mine"
    for who, (step, about) in story:
        client = hostile[who]
        match step:
            case "send":
                driver.receive(client, about)
                driver.go_on_all()
            case "back":
                driver.leave(client)
                hostile[who] = driver.join(client.player, replica=Deaf(schema, client.player), resume=about)
            case _:
                driver.tick()
    driver.tick(2)
    assert driver.errors == []
    for client in hostile.values():
        assert client.closed is None or client.closed.code in (
            CloseCode.PROTOCOL,
            CloseCode.LIMIT_EXCEEDED,
            CloseCode.REPLACED,
        )
    assert (mine.pose, mine.label) == (7, "mine")
    goes_on(driver, ann)


def goes_on(driver: Driver, client: TestClient) -> None:
    driver.call(client, 1, "add", {"a": 1, "b": 2})
    driver.tick(2)
    assert client.closed is None
    assert [reply.content for reply in client.replies if isinstance(reply, frames.Reply)] == [3]
    driver.assert_in_sync(client)


class Deaf(Replica):
    """Of somebody who lied of what it holds: what comes may make no sense to it."""

    def part(self, frame: bytes) -> None:
        """Nothing is read."""
