"""Runs of frames, lanes, gates and header scanners: both twins, told the same, say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhall.engine import gate, lanes, packing, wsheaders
from playhall.engine.frames import INPUTS, MESSAGE
from playhall.engine.packing import PIECE_BYTES, Group, pack_down, pack_group, pack_up, read_down


def twins(name: str, *pure: Any) -> list[Any]:
    """The pure module or modules, and the native one where it was built."""
    try:
        return [*pure, import_module(f"playhall.engine.native.{name}")]
    except ModuleNotFoundError:
        return [*pure]


class _Pure:
    """What is one native module stands in two pure ones."""

    def __init__(self, *modules: Any) -> None:
        for module in modules:
            self.__dict__.update(vars(module))


PACKING = twins("packing", _Pure(packing, lanes))
GATES = twins("gate", _Pure(gate, wsheaders))
each_packing = pytest.mark.parametrize("twin", PACKING, ids=["pure", "native"][: len(PACKING)])
each_gate = pytest.mark.parametrize("twin", GATES, ids=["pure", "native"][: len(GATES)])


def same(doing: Callable[[Any], Any], modules: list[Any]) -> Any:
    """What all twins give, or that they raise ValueError."""
    answers = []
    for twin in modules:
        try:
            answers.append(doing(twin))
        except ValueError:
            answers.append(ValueError)
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


def reliable_only(run: bytes, twin: Any) -> Any:
    return twin.reliable_only(run)


ROOMS = {1: "a", 2: "b", 3: "a"}


def by_room(run: bytes, twin: Any) -> Any:
    return list(twin.by_room(run, 7 << 32, ROOMS).items())


def link(stream: int, number: int) -> int:
    return stream << 32 | number


# Down, at the room host.


@each_packing
def test_groups_go_to_the_streams_of_their_links_in_order(twin: Any) -> None:
    data = pack_group([link(3, 1), link(4, 1), link(3, 2)], [b"a", b"b", b"c"], b"body")
    data += pack_group([link(4, 7)], [b"h"], b"later", unreliable=True)
    runs = {stream: list(read_down(run)) for stream, run in twin.route(data, 9)}
    assert runs == {
        3: [(9, Group((1, 2), [b"a", b"c"], b"body", False))],
        4: [(9, Group((1,), [b"b"], b"body", False)), (9, Group((7,), [b"h"], b"later", True))],
    }


@each_packing
def test_runs_are_cut_between_groups(twin: Any) -> None:
    data = b"".join(pack_group([link(1, n)], [b""], bytes(100_000)) for n in range(5))
    data += pack_group([link(1, 5)], [b""], bytes(2 * PIECE_BYTES))
    runs = [run for _, run in twin.route(data, 9)]
    assert [[group.links for _, group in read_down(run)] for run in runs] == [
        [(0,), (1,)], [(2,), (3,)], [(4,)], [(5,)]
    ]  # fmt: skip


@each_packing
def test_what_may_be_lost_is_taken_out(twin: Any) -> None:
    kept = pack_down(9, Group([1], [b""], b"kept", False))
    lost = pack_down(9, Group([1], [b""], b"lost", True))
    assert twin.reliable_only(lost + kept + lost) == (kept, 2)
    assert twin.reliable_only(kept) == (kept, 0)


heads = st.binary(max_size=255)
bodies = st.binary(max_size=40)


@st.composite
def groups(draw: st.DrawFn, numbers: st.SearchStrategy[int]) -> Group:
    links = draw(st.lists(numbers, min_size=1, max_size=5))
    own = draw(st.booleans())
    several = [draw(heads) for _ in links] if own else [draw(heads)]
    return Group(links, several, draw(bodies), draw(st.booleans()))


engine_groups = groups(st.builds(link, st.integers(0, 3), st.integers(0, 2**32 - 1)))


@given(st.lists(engine_groups, max_size=6), st.integers(0, 2**64 - 1))
def test_both_route_alike(told: list[Group], generation: int) -> None:
    data = b"".join(pack_group(g.links, g.heads, g.body, unreliable=g.unreliable) for g in told)
    for _, run in same(lambda twin: twin.route(data, generation), PACKING):
        same(partial(reliable_only, run), PACKING)


# Down, at the router.

LIMITS = {MESSAGE: 30, 4: 50}
LANE = (
    "given", "drained", "reported", "spare", "live", "busy", "generation", "progress_at", "owes",
)  # fmt: skip


class Wire:
    """A socket that keeps what it is sent; `full` is what waits after each frame."""

    def __init__(self, twin: Any, events: list[Any], number: int, generation: int, full: list[int]) -> None:
        self.events = events
        self.number = number
        self.full = full
        self.at = 0
        self.lane = twin.Lane(self.write, self.offer, self.waits, self.look)
        self.lane.generation = generation
        self.lane.live = True
        self.lane.spare = 100

    def write(self, frame: bytes) -> int:
        self.events.append((self.number, "sent", frame))
        self.at += 1
        return self.full[self.at % len(self.full)] if self.full else 0

    def offer(self, frame: bytes, unreliable: bool, now: float) -> None:
        self.events.append((self.number, "offered", frame, unreliable, now))
        self.at += 1

    def waits(self) -> None:
        self.events.append((self.number, "waits"))

    def look(self, now: float) -> None:
        self.events.append((self.number, "looked", now))
        self.lane.drained += (self.lane.given - self.lane.drained) // 2


def deliver(twin: Any, runs: list[bytes], full: list[int], *, report_every: int = 9) -> Any:
    """Everything that is to be seen of a delivery."""
    events: list[Any] = []
    downlink = twin.Downlink(LIMITS, 60)
    wires = [Wire(twin, events, number, 7 + number // 3, full) for number in range(1, 4)]
    for wire in wires:
        downlink.lanes[wire.number] = wire.lane
    wires[1].lane.live = not full
    for at, run in enumerate(runs):
        try:
            events.append(downlink.deliver(run, 2.5))
        except ValueError:
            events.append("ended")
        if at % report_every == report_every - 1:
            events.append(downlink.report(2.5 + at, all_of_it=at % 2 == 1))
    state = [tuple(getattr(w.lane, name) for name in LANE) for w in wires]
    return events, state, list(downlink.owing), downlink.dropped


def down(*links: int, body: bytes, generation: int = 7, unreliable: bool = False) -> bytes:
    return pack_down(generation, Group(links, [b""], body, unreliable))


@each_packing
def test_a_frame_goes_straight_to_the_links_it_is_for(twin: Any) -> None:
    frame = bytes((MESSAGE,)) + b"hi"
    events, _, _, dropped = deliver(twin, [down(1, 2, 3, 9, body=frame)], [])
    # 3 is attached to another generation, 9 to none.
    assert (events, dropped) == ([(1, "sent", frame), (2, "sent", frame), []], 2)


@each_packing
def test_what_no_room_may_send_closes_the_lane_from_there(twin: Any) -> None:
    good, unknown, long = bytes((MESSAGE,)), b"\x02", bytes((MESSAGE,)) * 31
    for bad in (unknown, long, b""):
        run = down(1, 2, body=good) + down(1, body=bad) + down(1, 2, body=good)
        events, _, _, dropped = deliver(twin, [run], [])
        assert events == [(1, "sent", good), (2, "sent", good), (2, "sent", good), [1]]
        assert dropped == 2


@each_packing
def test_the_client_decides_while_something_waits_or_the_kernel_is_to_be_asked(twin: Any) -> None:
    frame = bytes((MESSAGE,)) + bytes(25)
    events, state, owing, _ = deliver(twin, [down(1, body=frame, unreliable=True)] * 5, [])
    # 100 spare bytes, 36 for each.
    assert [event[1] for event in events if event] == ["sent", "sent", "sent", "offered", "offered"]
    assert (state[0][0], owing) == (78, [1])
    events, *_ = deliver(twin, [down(1, body=frame)] * 2, [0, 500])
    assert [event[1] for event in events if event] == ["sent", "waits", "offered"]


@each_packing
def test_what_went_out_whole_has_drained_and_much_of_it_is_reported(twin: Any) -> None:
    looked: list[float] = []
    lane = twin.Lane(lambda frame: 0, pytest.fail, pytest.fail, looked.append)
    lane.generation, lane.live, lane.spare, lane.drained = 7, True, 80, 0
    downlink = twin.Downlink(LIMITS, 60)
    downlink.lanes[4] = lane
    frame = bytes((MESSAGE,)) + bytes(29)
    downlink.deliver(down(4, body=frame), 1.0)
    assert (lane.drained, downlink.owing, downlink.report(1.0)) == (30, [], ([], []))
    downlink.deliver(down(4, body=frame) * 2, 1.0)
    # The last took more than was to spare: only who asks the kernel knows whether it has gone.
    assert (lane.given, lane.drained, downlink.owing) == (90, 60, [4])
    assert (downlink.report(2.0), looked) == (([4], [60]), [2.0])
    assert (downlink.report(3.0), downlink.owing, looked) == (([], []), [], [2.0])
    assert downlink.report(4.0, all_of_it=True) == ([], [])
    lane.drained = 90 + 2**32
    assert downlink.report(5.0, all_of_it=True) == ([4], [90])


@each_packing
def test_a_lane_with_much_on_its_way_owes_on(twin: Any) -> None:
    lane = twin.Lane(pytest.fail, lambda *_: None, pytest.fail, lambda now: None)
    lane.generation, lane.busy, lane.given = 7, True, 100
    downlink = twin.Downlink(LIMITS, 60)
    downlink.lanes[4] = lane
    downlink.deliver(down(4, body=bytes((MESSAGE,))), 1.0)
    assert [downlink.report(1.0), downlink.report(2.0), downlink.owing] == [([], []), ([], []), [4]]
    del downlink.lanes[4]
    assert [downlink.report(3.0), downlink.owing] == [([], []), []]


down_groups = groups(st.integers(0, 4))
frames_down = st.builds(
    lambda group, kind, generation: pack_down(
        generation, group if group.heads[0] else group._replace(body=bytes((kind,)) + group.body)
    ),
    down_groups,
    st.sampled_from((MESSAGE, 4, 2)),
    st.integers(6, 8),
)
bad_runs = st.one_of(
    st.binary(max_size=80),
    st.builds(lambda run, cut: run[: len(run) - cut], frames_down, st.integers(1, 60)),
    st.builds(lambda run, over: run + over, frames_down, st.binary(min_size=1, max_size=20)),
    st.builds(
        lambda run, at, over: run[: at % len(run)] + over + run[at % len(run) + len(over) :],
        frames_down,
        st.integers(0, 999),
        st.binary(min_size=1, max_size=4),
    ),
)


@given(st.lists(frames_down | bad_runs, max_size=8), st.lists(st.sampled_from((0, 0, 7)), max_size=4))
def test_both_deliver_alike_whatever_comes(runs: list[bytes], full: list[int]) -> None:
    same(lambda twin: deliver(twin, runs, full, report_every=2), PACKING)


# Up.


up_links = st.sampled_from((1, 2, 3, 4, 2**32 - 1))


@given(st.binary(max_size=60), st.lists(st.tuples(up_links, bodies), max_size=8), bodies)
def test_both_hand_what_comes_up_to_rooms_alike(
    anything: bytes, sent: list[tuple[int, bytes]], over: bytes
) -> None:
    run = b"".join(pack_up(*each) for each in sent)
    assert packing.read_up(run) == sent
    handed = same(partial(by_room, run), PACKING)
    for room, frames in handed:
        assert frames == [(7 << 32 | number, frame) for number, frame in sent if ROOMS.get(number) == room]
    assert {room for room, _ in handed} == {ROOMS[number] for number, _ in sent if number in ROOMS}
    for broken in (anything, run + over, run[: len(run) - len(over)]):
        same(partial(by_room, broken), PACKING)


up_steps = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3), st.booleans(), st.integers(0, 300)),
    st.tuples(st.just("drop"), st.integers(1, 700)),
    st.tuples(st.just("drop_link"), st.integers(1, 4)),
    st.tuples(st.just("take")),
)


@given(st.lists(up_steps, max_size=60))
def test_both_drop_the_oldest_inputs_or_all_of_a_link_and_nothing_else(steps: list[Any]) -> None:
    same(lambda twin: drive(twin.UpRun(), steps), PACKING)


def drive(run: Any, steps: list[Any]) -> list[Any]:
    """A run against the list it stands for; gives what it says."""
    said: list[Any] = []
    kept: list[tuple[int, bytes]] = []
    for serial, (step, *told) in enumerate(steps):
        if step == "append":
            number, is_input, size = told
            frame = bytes((INPUTS if is_input else MESSAGE, serial)) + bytes(size)
            run.append(number, frame)
            kept.append((number, frame))
        elif step == "drop":
            freed = dropped = 0
            for each in list(kept):
                if freed < told[0] and each[1][0] == INPUTS:
                    kept.remove(each)
                    freed += 8 + len(each[1])
                    dropped += 1
            said.append(run.drop_inputs(told[0]))
            assert said[-1] == dropped
        elif step == "drop_link":
            run.drop_link(told[0])
            kept = [each for each in kept if each[0] != told[0]]
        else:
            said.append(run.take())
            assert packing.read_up(said[-1]) == kept
            kept.clear()
        weights: Counter[int] = Counter()
        run.weigh(weights)
        assert sum(weights.values()) == run.size == sum(8 + len(frame) for _, frame in kept)
        assert run.frames == len(kept)
        said.append(sorted(weights.items()))
    return said


@each_packing
def test_a_queue_fills_the_run_under_way_and_asks_beyond_that(twin: Any) -> None:
    class Queue(twin.UpQueue):  # type: ignore[misc]
        def overflow(self, link: int, frame: bytes) -> bool:
            asked.append((link, frame))
            return link == 1

    asked: list[tuple[int, bytes]] = []
    queue = Queue()
    assert (queue.push(1, b"one"), queue.size, queue.run) == (True, 0, None)
    run = queue.run = twin.UpRun()
    queue.room = 25
    assert [queue.push(2, b"two"), queue.push(2, b"three"), queue.push(2, b"x")] == [True, True, False]
    assert asked == [(1, b"one"), (2, b"x")]
    assert (queue.room, queue.size, run.take()) == (1, 24, pack_up(2, b"two") + pack_up(2, b"three"))
    assert not twin.UpQueue().push(1, b"")


# Gates.

RULES: dict[str, Any] = {
    "limits": {1: 10, 2: 300, 3: 300, 5: 40},
    "control": (1, 2),
    "steady": (2, 3),
    "free": (1,),
    "messages_per_s": 5,
    "bytes_per_s": 200,
    "bytes_at_once": 900,
}


@each_gate
def test_a_gate_says_what_becomes_of_a_frame(twin: Any) -> None:
    made = twin.Gate(twin.Rules(**RULES), 3, 0.0)
    assert made.judge(b"\x05hi", 1.0) == gate.CONTROL
    made.open = True
    assert (made.judge(b"\x05hi", 2.0), made.heard_at) == (gate.FORWARD, 2.0)
    assert made.judge(b"\x02", 2.0) == gate.CONTROL
    assert made.judge(b"", 2.0) == made.judge(b"\x04", 2.0) == gate.UNKNOWN
    assert made.judge(bytes((5,)) * 41, 2.0) == gate.TOO_LONG
    assert [made.judge(b"\x03", 2.0) for _ in range(3)] == [gate.FORWARD, gate.FORWARD, gate.TOO_MANY]
    made.change_steady(10)
    assert [made.judge(b"\x03", 2.0) for _ in range(8)] == [gate.FORWARD] * 7 + [gate.TOO_MANY]
    assert [made.judge(bytes((2,)) * 300, 2.0 + n) for n in range(1, 12)][-1] == gate.TOO_MUCH


arrivals = st.tuples(
    st.floats(0, 1), st.sampled_from((1, 2, 3, 4, 5)), st.sampled_from((0, 1, 9, 40, 41, 300, 301))
)


@given(st.lists(arrivals, max_size=60), st.integers(1, 40))
def test_both_gates_judge_alike(said: list[tuple[float, int, int]], rate: int) -> None:
    def judge(twin: Any) -> list[Any]:
        made = twin.Gate(twin.Rules(**RULES), 3, 0.0)
        now, verdicts = 0.0, []
        for at, (gap, kind, size) in enumerate(said):
            now += gap
            made.open = at % 3 != 0
            if at == 20:
                made.change_steady(rate)
            verdicts.append(made.judge(bytes((kind,)) * size, now))
        return verdicts

    same(judge, GATES)


@given(st.lists(st.binary(max_size=40), max_size=12), st.sampled_from((130, 70_000, 2**40)))
def test_both_follow_headers_alike(pieces: list[bytes], limit: int) -> None:
    def follow(twin: Any) -> list[int]:
        scanner = twin.HeaderScanner(limit)
        passed = []
        for piece in pieces:
            passed.append(scanner.scan(memoryview(piece), len(piece)))
            if passed[-1] < len(piece):
                break
        return passed

    same(follow, GATES)


# Guards.


class Inner:
    """Speaks the protocol, into a small buffer."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said
        self.buffer = bytearray(50)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.said.append(("inner", bytes(self.buffer[:nbytes])))


class Reader:
    """A client whose gate closes when it did wrong."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said
        self.gate: Any = None

    def judged(self, verdict: int, frame: bytes, now: float) -> None:
        self.said.append(("judged", verdict, frame, now))
        if verdict != gate.CONTROL:
            self.gate.open = False

    def overflowed(self, frame: bytes, now: float) -> None:
        self.said.append(("overflowed", frame, now))

    def oversized(self, now: float) -> None:
        self.said.append(("oversized", now))


BOTH = list(zip(GATES, PACKING, strict=True))
each_engine = pytest.mark.parametrize(("twin", "queues"), BOTH, ids=["pure", "native"][: len(BOTH)])


class Guarded:
    """A guard whose client is in its room."""

    def __init__(self, twin: Any, queues: Any, *, room: int = 10_000, limit: int = 70_000) -> None:
        self.said: list[Any] = []
        self.queue = queues.UpQueue()
        self.queue.run, self.queue.room = queues.UpRun(), room
        reader = Reader(self.said)
        rules = twin.Rules(**RULES | {"bytes_at_once": 9e9, "bytes_per_s": 9e9})
        self.gate = reader.gate = twin.Gate(rules, 1000, 0.0)
        self.gate.open, self.gate.queue, self.gate.link = True, self.queue, 3
        self.guard = twin.Guard(Inner(self.said), twin.Intake(limit, lambda: 2.0), self.gate, reader)

    def feed(self, data: bytes, cuts: list[int]) -> None:
        at = turn = 0
        while at < len(data):
            piece = data[at : at + cuts[turn % len(cuts)]]
            self.guard.get_buffer(-1)[: len(piece)] = piece
            self.guard.buffer_updated(len(piece))
            at += len(piece)
            turn += 1

    def queued(self) -> list[tuple[int, bytes]]:
        return packing.read_up(self.queue.run.take())


def websocket(payload: bytes, *, first: int = 0x82, mask: bytes | None = b"mask", wide: int = 0) -> bytes:
    """A frame as it stands in a stream; `wide`: bytes for its length, where it does not need so many."""
    size = len(payload)
    wide = max(wide, 0 if size < 126 else 2 if size < 65_536 else 8)
    short = {0: size, 2: 126, 8: 127}[wide]
    head = bytes((first, short | (0x80 if mask else 0))) + (size.to_bytes(wide, "big") if wide else b"")
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def inner(*frames: bytes) -> list[tuple[str, bytes]]:
    """What the protocol is given, 50 bytes at a time."""
    return [("inner", frame[at : at + 50]) for frame in frames for at in range(0, len(frame), 50)]


@each_engine
def test_usual_frames_are_taken_out_and_all_else_is_the_protocols(twin: Any, queues: Any) -> None:
    client = Guarded(twin, queues)
    small, middle, long = b"\x05hi", b"\x03" + bytes(124), b"\x03" + bytes(range(200))
    ping, control, text = (
        websocket(b"", first=0x89),
        websocket(b"\x02control"),
        websocket(b"\x05", first=0x81),
    )
    odd = [
        websocket(b"\x05", wide=2),
        websocket(b"\x05", mask=None),
        websocket(b"\x05", first=2),
        websocket(b""),
    ]
    stream = [
        websocket(small),
        ping,
        control,
        websocket(middle),
        websocket(long),
        text,
        *odd,
        websocket(small),
    ]
    client.feed(b"".join(stream), [60_000])
    assert client.queued() == [(3, small), (3, middle), (3, long), (3, small)]
    assert client.said == [*inner(ping), ("judged", gate.CONTROL, b"\x02control", 2.0), *inner(text, *odd)]
    assert client.gate.heard_at == 2.0


@each_engine
def test_a_frame_in_pieces_is_the_protocols_and_the_next_is_not(twin: Any, queues: Any) -> None:
    client = Guarded(twin, queues)
    frame = websocket(b"\x05" + bytes(30))
    client.feed(frame + frame, [20, 60_000])
    assert client.said == [("inner", frame[:20]), ("inner", frame[20:])]
    assert client.queued() == [(3, b"\x05" + bytes(30))]


@each_engine
def test_until_the_client_is_in_its_room_all_is_told_to_its_reader(twin: Any, queues: Any) -> None:
    for verdict, closed in ((gate.CONTROL, {"open": False}), (gate.FORWARD, {"queue": None})):
        client = Guarded(twin, queues)
        for name, value in closed.items():
            setattr(client.gate, name, value)
        client.feed(websocket(b"\x05hi"), [100])
        assert (client.said, client.queued()) == ([("judged", verdict, b"\x05hi", 2.0)], [])


@each_engine
def test_who_is_told_of_frames_that_may_not_pass(twin: Any, queues: Any) -> None:
    client = Guarded(twin, queues)
    bad = bytes((5,)) * 41
    client.feed(websocket(bad) + websocket(b"\x05late"), [100])
    late = ("judged", gate.CONTROL, b"\x05late", 2.0)
    assert client.said == [("judged", gate.TOO_LONG, bad, 2.0), late]
    client = Guarded(twin, queues)
    client.feed(websocket(b"\x07") + websocket(b"\x05late"), [100])
    assert client.said[0] == ("judged", gate.UNKNOWN, b"\x07", 2.0)
    client = Guarded(twin, queues, room=10)
    client.feed(websocket(b"\x05hi"), [100])
    assert (client.said, client.queued()) == ([("overflowed", b"\x05hi", 2.0)], [])


@each_engine
def test_nothing_is_read_from_a_frame_over_the_limit_on(twin: Any, queues: Any) -> None:
    client = Guarded(twin, queues, limit=150)
    client.feed(websocket(b"\x03") + websocket(bytes(151)) + websocket(b"\x03"), [1000])
    client.feed(websocket(b"\x03"), [1000])
    assert (client.said, client.queued()) == ([("oversized", 2.0)], [(3, b"\x03")])


pieces = st.builds(
    websocket,
    st.builds(
        lambda kind, size: bytes((kind,)) * size, st.sampled_from((1, 2, 3, 5, 7)), st.integers(0, 310)
    ),
    first=st.sampled_from((0x82, 0x82, 0x82, 0x02, 0x81, 0x88, 0x89, 0xC2)),
    mask=st.sampled_from((b"mask", b"mask", b"\0\0\0\0", None)),
    wide=st.sampled_from((0, 0, 0, 2, 8)),
) | st.binary(max_size=20)


@given(st.lists(pieces, max_size=12), st.lists(st.integers(1, 700), min_size=1, max_size=5))
def test_both_guard_alike_whatever_comes(stream: list[bytes], cuts: list[int]) -> None:
    seen = []
    for twin, queues in BOTH:
        client = Guarded(twin, queues, limit=305)
        client.feed(b"".join(stream), cuts)
        seen.append((client.said, client.queued(), client.gate.heard_at))
    assert seen[0] == seen[-1]


def note(said: list[Any], _: int, frame: bytes) -> bool:
    said.append(("queued", frame))
    return True


@given(st.lists(pieces, max_size=12), st.lists(st.integers(1, 700), min_size=1, max_size=5))
def test_no_byte_is_lost_or_told_twice(stream: list[bytes], cuts: list[int]) -> None:
    """What went to the queue and what went to the protocol are the whole stream, in order, up to a limit."""
    twin, queues = BOTH[0]
    client = Guarded(twin, queues, limit=70_000)
    client.gate.change_steady(1e9)
    client.queue.push = partial(note, client.said)
    data = b"".join(stream)
    client.feed(data, cuts)
    at = 0
    for said, *told in client.said:
        if said == "inner":
            assert data[at : at + len(told[0])] == told[0]
            at += len(told[0])
        elif said in ("queued", "judged"):
            frame = told[-1] if said == "queued" else told[1]
            wide = 2 if len(frame) >= 126 else 0
            mask = data[at + 2 + wide : at + 6 + wide]
            assert data[at : at + 6 + wide + len(frame)] == websocket(frame, mask=mask)
            at += 6 + wide + len(frame)
        else:
            return
    assert at == len(data)
