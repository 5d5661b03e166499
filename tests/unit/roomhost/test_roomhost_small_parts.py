"""Metrics across processes, log limits, wake reasons, settings, joins, builds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import generate_latest

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall_common.config import ConfigError, load
from playhall_roomhost.build import BuildError, load_build
from playhall_roomhost.child import environment
from playhall_roomhost.config import PREFIX, RoomHostConfig
from playhall_roomhost.join import read_join
from playhall_roomhost.log_limit import BURST, LogLimit
from playhall_roomhost.measure import Sums
from playhall_roomhost.messages import Bound, Family, NewToken, Report, Sample, decode_message, encode
from playhall_roomhost.process import advertised
from playhall_roomhost.rooms import wake_reason


def counter(value: float) -> Family:
    return Family(
        "playhall_roomhost_ticks",
        "Ticks.",
        "counter",
        [Sample("playhall_roomhost_ticks_total", {"t": "a"}, value)],
    )


def gauge(name: str, value: float) -> Family:
    return Family(name, "A gauge.", "gauge", [Sample(name, {}, value)])


def served(sums: Sums) -> dict[str, float]:
    return {sample.name: sample.value for metric in sums.collect() for sample in metric.samples}


def test_counters_outlive_their_process_and_gauges_do_not() -> None:
    sums = Sums()
    sums.update("a", [counter(5), gauge("playhall_roomhost_rooms", 2)])
    sums.update("b", [counter(7), gauge("playhall_roomhost_rooms", 3)])
    assert served(sums) == {"playhall_roomhost_ticks_total": 12, "playhall_roomhost_rooms": 5}
    sums.end("a")
    assert served(sums) == {"playhall_roomhost_ticks_total": 12, "playhall_roomhost_rooms": 3}


def test_of_ages_the_largest_is_served_and_foreign_names_are_not() -> None:
    sums = Sums()
    sums.update("a", [gauge("playhall_roomhost_durable_lag_seconds", 2), gauge("node_cpu", 1)])
    sums.update("b", [gauge("playhall_roomhost_durable_lag_seconds", 3)])
    assert served(sums) == {"playhall_roomhost_durable_lag_seconds": 3}


def test_messages_come_back_as_they_were() -> None:
    report = Report(3, 9, 0.5, False, [counter(1)])
    for message in (Bound("unix:/x"), NewToken("t"), report):
        assert decode_message(encode(message)) == message


def test_metrics_that_no_scrape_takes_are_not_served() -> None:
    sums = Sums()
    name = "playhall_roomhost_rooms"
    sums.update("a", [gauge(name, 2), Family(name, "", "weird", []), Family(name + " x", "", "gauge", [])])
    sums.update("b", [Family(name, "", "gauge", [Sample(name, {"a b": "c"}, 1)])])
    sums.update("c", [Family(name, "", "gauge", [Sample("playhall_roomhost_\n", {}, 1)])])
    assert served(sums) == {name: 2}
    generate_latest(sums)


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b'{"type":"report",' + tail))
@example(b'{"type":"report","more":' + b"[" * 10_000)
@example(b'{"type":"bound","address":"\\ud800"}')
@example(b'{"type":"report","rooms":-1,"connections":0,"load":0,"draining":false}')
@example(b'{"type":"report","rooms":4294967296,"connections":0,"load":0,"draining":false}')
def test_whatever_a_process_writes_is_a_message_or_is_none(line: bytes) -> None:
    with suppress(msgspec.DecodeError):
        message = decode_message(line)
        assert not isinstance(message, Report) or min(message.rooms, message.connections) >= 0


def test_a_room_logs_a_burst_and_then_so_many_a_second() -> None:
    limit = LogLimit(0.0)
    assert sum(limit.allow(0.0) for _ in range(BURST + 50)) == BURST
    assert limit.dropped == 50
    assert sum(limit.allow(1.0) for _ in range(50)) == 20


@pytest.mark.parametrize(
    ("asked", "end", "reason"),
    [
        (pb.WAKE_REASON_CONNECT, store_pb.END_HIBERNATED, "connect"),
        (pb.WAKE_REASON_CONNECT, store_pb.END_CRASHED, "crash"),
        (pb.WAKE_REASON_CONNECT, store_pb.END_STOPPED, "crash"),
        (pb.WAKE_REASON_CONNECT, store_pb.END_MOVED, "deploy"),
        (pb.WAKE_REASON_REQUEST, store_pb.END_SLEPT, "sleep"),
        (pb.WAKE_REASON_REQUEST, store_pb.END_NEVER, "request"),
        (pb.WAKE_REASON_ALARM, store_pb.END_CRASHED, "alarm"),
        (pb.WAKE_REASON_UNSPECIFIED, store_pb.END_NEVER, "connect"),
    ],
)
def test_why_a_room_wakes(asked: int, end: int, reason: str) -> None:
    assert wake_reason(asked, end) == reason


def test_room_code_sees_nothing_of_playhall_in_its_environment() -> None:
    seen = environment({"PLAYHALL_SERVICE_SECRET": "x", "PLAYHALL_ROOMHOST_ADDRESS": "y", "HOME": "/h"})
    assert seen["HOME"] == "/h"
    assert not any(name.startswith("PLAYHALL") for name in seen)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ADDRESS": "unix:/run/a.sock"}, "run_dir is needed"),
        ({"ADDRESS": "here"}, "neither host:port nor unix"),
        ({"RUN_DIR": "/" + "long" * 30}, "too long"),
        ({"MAX_ROOMS": "251"}, "250 or less"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, str], problem: str) -> None:
    environ = {f"{PREFIX}_{name}": value for name, value in settings.items()}
    with pytest.raises(ConfigError, match=problem):
        load(RoomHostConfig, PREFIX, environ)


def test_what_others_dial() -> None:
    assert advertised("0.0.0.0:4000", "pod.example") == "pod.example:4000"
    assert advertised("127.0.0.1:4000", "") == "127.0.0.1:4000"
    assert advertised("unix:/run/x.sock", "pod.example") == "unix:/run/x.sock"


@pytest.mark.ledger("RTR-13")
def test_a_join_is_read_or_refused() -> None:
    join = read_join(pb.Join(player="ann", meta=b'{"a":1}', resume=bytes((0, 0, 0, 0, 0)), attempt=2))
    assert join is not None
    assert (join.player, join.meta, join.attempt, join.resume.generation) == ("ann", {"a": 1}, 2, 0)
    assert read_join(pb.Join(player="ann", meta=b"{")) is None
    for depth in (513, 5_000, 100_000):
        assert read_join(pb.Join(player="ann", meta=b"[" * depth + b"]" * depth)) is None
    assert read_join(pb.Join(player="ann", meta=b"[" * 512 + b"]" * 512)) is not None
    assert read_join(pb.Join(player="ann", resume=b"\x01")) is None


@pytest.mark.parametrize(
    ("location", "entries", "reason"),
    [
        ("https://builds.example/b1", {"default": "game:Game"}, "no file: URL"),
        ("file:///no/such/directory", {"default": "game:Game"}, "no directory"),
        ("{dir}", {}, "no room types"),
        ("{dir}", {"default": "game"}, "not module:Class"),
        ("{dir}", {"default": "json:JSONDecoder"}, "no class derived from"),
    ],
)
def test_builds_that_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str, entries: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr("sys.path", ["/nowhere"])
    with pytest.raises(BuildError, match=reason):
        load_build(location.format(dir=tmp_path.as_uri()), entries)
