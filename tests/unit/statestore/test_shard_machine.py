"""The shard under everything a network and a power switch can do.

Hosts open, write in parts, close; their calls are lost, late, doubled and reordered, their streams break with
a tail unread, acks are lost, commits fail for want of space, and the shard dies before a commit, or between
it and its answers. Whatever happens:

    W1  one accepted generation for each room, and none is given twice
    W2  nobody takes a room from a holder that is heard
    W3  what a grant hands out holds all that was acknowledged to generations before it
    A1  what was acknowledged is on the volume
    A2  each record is applied once, in order
    A3  an ack says no more than what is on the volume
    H1  nothing of a generation is accepted after its Close
"""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from playhall_statestore import volume
from playhall_statestore.model import End, Mark, Now, Outcome
from playhall_statestore.requests import (
    Acks,
    Closed,
    CloseRoom,
    EndStream,
    Granted,
    Hello,
    OpenRoom,
    Output,
    Part,
    Reply,
    Request,
    StreamClosed,
)
from tests.support.shard_bench import OTHER, PROJECT, ROOM, ShardBench

HOSTS = ("h1", "h2", "h3")
UIDS = (ROOM, OTHER)
SEPARATOR = b","
# Every 'record' is one entry, and a base is all of them: so a state is the list of what was ever written.
Entry = tuple[int, int]


def text(entries: list[Entry]) -> bytes:
    return SEPARATOR.join(b"%d.%d" % entry for entry in entries)


def entries_of(state: list[bytes]) -> list[Entry]:
    texts = [entry for data in state for entry in data.split(SEPARATOR) if entry]
    return [(int(generation), int(version)) for generation, _, version in (t.partition(b".") for t in texts)]


@dataclass
class Held:
    """A room as the host that runs it has it."""

    generation: int
    entries: list[Entry]
    version: int = 0
    acked: int = 0
    needs_base: bool = True


@dataclass
class Host:
    rooms: dict[str, Held] = field(default_factory=dict)
    stream: int | None = None
    sent: deque[Request] = field(default_factory=deque)
    """On the stream, not read by the shard yet."""
    heard_at: float = 0.0


class ShardMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        # So few that records are filed in the midst of everything.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(volume, "FILE_ROWS", 3)
        self.patch.setattr(volume, "FILE_SLICE", 2)
        self.bench = ShardBench()
        self.hosts = {name: Host() for name in HOSTS}
        self.calls: list[OpenRoom | CloseRoom] = []
        """Unary calls on their way; a call may arrive more than once, or never."""
        self.asked: dict[int, OpenRoom | CloseRoom] = {}
        self.generations: dict[int, str] = {}
        self.acked: dict[str, list[Entry]] = {uid: [] for uid in UIDS}
        self.closed: dict[str, tuple[int, list[Entry]]] = {}
        self.protected: set[int] = set()
        """Opens that came while the holder was heard."""
        for host, uid in zip(HOSTS, UIDS, strict=False):
            self.calls.append(self.bench.open_request(host, uid))
        self.all_goes_well()
        for host, uid in zip(HOSTS, UIDS, strict=False):
            self.connect(host)
            self.write(host, uid, base=True, parts=1, skip=0)
        self.all_goes_well()

    @rule()
    def all_goes_well(self) -> None:
        """For a while: what is on its way arrives, once and in order, and so do the answers."""
        for call in self.calls:
            self.apply_call(call)
        self.calls.clear()
        for host in HOSTS:
            self.shard_reads(host, count=1_000)
        self.commit(acks_arrive=True)

    # What hosts and the network do.

    @rule(host=st.sampled_from(HOSTS), uid=st.sampled_from(UIDS))
    def open(self, host: str, uid: str) -> None:
        self.calls.append(self.bench.open_request(host, uid))

    @rule(host=st.sampled_from(HOSTS), uid=st.sampled_from(UIDS), kind=st.sampled_from(list(End)[1:]))
    def close(self, host: str, uid: str, kind: End) -> None:
        held = self.hosts[host].rooms.get(uid)
        if held is not None and kind is not End.CRASHED:
            token = self.bench.number()
            self.calls.append(
                CloseRoom(token, PROJECT, uid, held.generation, held.version, 0, kind, None, host)
            )

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), again=st.booleans())
    def call_arrives(self, data: st.DataObject, again: bool) -> None:
        call = data.draw(st.sampled_from(self.calls))
        if not again:
            self.calls.remove(call)
        self.apply_call(call)

    def apply_call(self, call: OpenRoom | CloseRoom) -> None:
        if isinstance(call, OpenRoom) and self.is_held_by_the_living(call):
            self.protected.add(call.token)
        else:
            self.protected.discard(call.token)
        self.asked[call.token] = call
        self.bench.shard.apply(call, self.bench.now)

    @precondition(lambda self: self.calls)
    @rule()
    def call_is_lost(self) -> None:
        self.calls.pop(0)

    @rule(host=st.sampled_from(HOSTS))
    def connect(self, host: str) -> None:
        self.break_stream(host, read=0)
        end = self.hosts[host]
        end.stream, end.heard_at = self.bench.number(), self.bench.now.mono
        self.bench.shard.stream_opened(end.stream, host, self.bench.now)
        rooms = tuple((uid, held.generation) for uid, held in end.rooms.items())
        end.sent.append(Hello(end.stream, host, None, rooms))

    @rule(host=st.sampled_from(HOSTS), read=st.integers(0, 3))
    def break_stream(self, host: str, read: int) -> None:
        """The shard may have read some of what was sent; the rest is lost."""
        end = self.hosts[host]
        if end.stream is None:
            return
        for _ in range(min(read, len(end.sent))):
            self.bench.shard.apply(end.sent.popleft(), self.bench.now)
        end.sent.clear()
        self.bench.shard.stream_closed(end.stream, host, self.bench.now)
        self.bench.shard.apply(StreamClosed(end.stream), self.bench.now)
        end.stream = None

    @rule(
        host=st.sampled_from(HOSTS), uid=st.sampled_from(UIDS), base=st.booleans(), parts=st.integers(1, 3),
        skip=st.sampled_from([0, 0, 0, 1]),
    )  # fmt: skip
    def write(self, host: str, uid: str, base: bool, parts: int, skip: int) -> None:
        """A record, or a base; now and then with a gap before it."""
        end = self.hosts[host]
        held = end.rooms.get(uid)
        if held is None or end.stream is None:
            return
        base = base or held.needs_base
        if not base or not held.version or skip:
            for _ in range(1 + skip):
                held.version += 1
                held.entries.append((held.generation, held.version))
        held.needs_base = False
        prev = held.version - 1
        data = text(held.entries) if base else text(held.entries[-1:])
        self.send(end, uid, held, prev, data, base, parts)

    @rule(host=st.sampled_from(HOSTS), uid=st.sampled_from(UIDS))
    def write_behind_a_close(self, host: str, uid: str) -> None:
        """The host has no answer to its Close yet, and its room is not as quiet as it should be."""
        if uid in self.hosts[host].rooms:
            self.shard_reads(host, count=1_000)
            self.close(host, uid, End.STOPPED)
            self.apply_call(self.calls[-1])
            self.write(host, uid, base=False, parts=1, skip=0)
            self.shard_reads(host, count=1_000)

    @rule(host=st.sampled_from(HOSTS), uid=st.sampled_from(UIDS))
    def resend(self, host: str, uid: str) -> None:
        """What is not acknowledged, again and in order."""
        end = self.hosts[host]
        held = end.rooms.get(uid)
        if held is None or end.stream is None:
            return
        for version in range(held.acked + 1, held.version + 1):
            self.send(end, uid, held, version - 1, text([(held.generation, version)]), False, 1, version)

    def send(
        self, end: Host, uid: str, held: Held, prev: int, data: bytes, base: bool, parts: int,
        version: int | None = None,
    ) -> None:  # fmt: skip
        assert end.stream is not None
        size = max(1, -(-len(data) // parts))
        pieces = [data[start : start + size] for start in range(0, len(data), size)] or [b""]
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            at = version or held.version
            crc32 = zlib.crc32(data)
            end.sent.append(
                Part(end.stream, uid, held.generation, prev, at, 0, piece, last, base, None, crc32)
            )

    @rule(host=st.sampled_from(HOSTS), count=st.integers(1, 6))
    def shard_reads(self, host: str, count: int) -> None:
        end = self.hosts[host]
        for _ in range(min(count, len(end.sent))):
            self.bench.shard.apply(end.sent.popleft(), self.bench.now)
            assert end.stream is not None
            self.bench.shard.stream_beat(end.stream, host, self.bench.now)
            end.heard_at = self.bench.now.mono

    @rule(seconds=st.sampled_from([0.1, 0.3, 3.0, 7.0]))
    def time_passes(self, seconds: float) -> None:
        while seconds > 0:
            turn = min(1.0, seconds)
            seconds -= turn
            now = self.bench.now
            self.bench.now = Now(now.mono + turn, now.wall_ms + round(turn * 1000))
            _, expired = self.bench.shard.timer(self.bench.now)
            for request in expired:
                self.bench.shard.apply(request, self.bench.now)

    # What the shard does.

    @rule(acks_arrive=st.booleans())
    def commit(self, acks_arrive: bool) -> None:
        self.bench.shard.apply(StreamClosed(0), self.bench.now)  # so that there is a batch
        outputs = self.bench.commit()
        self.check_outputs(outputs)
        if acks_arrive:
            self.hosts_hear(outputs)
        self.asked.clear()

    @rule(trouble=st.sampled_from(["crash", "crash after the commit", "disk full"]), read=st.integers(0, 9))
    def trouble(self, trouble: str, read: int) -> None:
        self.bench.shard.apply(StreamClosed(0), self.bench.now)
        if trouble == "disk full":
            self.bench.shard.take_changes()
            streams = [end.stream for end in self.hosts.values() if end.stream is not None]
            self.bench.shard.rolled_back(streams)
            for host in HOSTS:
                self.break_stream(host, read)
        else:
            if trouble == "crash after the commit":
                self.bench.volume.commit(self.bench.shard.take_changes() or [])
            self.restart()
        self.asked.clear()

    def teardown(self) -> None:
        self.patch.undo()

    @rule(slices=st.integers(1, 4))
    def sweep(self, slices: int) -> None:
        for _ in range(slices):
            self.bench.volume.sweep()

    def restart(self) -> None:
        for end in self.hosts.values():
            end.stream = None
            end.sent.clear()
        self.bench.restart()

    # What must hold.

    def is_held_by_the_living(self, call: OpenRoom) -> bool:
        """W2, by what the host did, not by what the shard thinks of it."""
        room = self.bench.shard.room(call.uid)
        if room is None or not room.held or room.host_id == call.host_id:
            return False
        # A Close that waits in the same batch may have ended it before.
        if any(isinstance(asked, CloseRoom) and asked.uid == call.uid for asked in self.asked.values()):
            return False
        end = self.hosts[room.host_id]
        return end.stream is not None and self.bench.now.mono - end.heard_at < 6.0

    def check_outputs(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Acks):
                for ack in output.acks:
                    if ack.outcome is Outcome.DURABLE and ack.version:
                        self.check_ack(ack.uid, ack.generation, ack.version)
            elif isinstance(output, Reply) and output.token in self.asked:
                call = self.asked[output.token]
                if isinstance(output.answer, Granted) and isinstance(call, OpenRoom):
                    assert output.token not in self.protected  # W2
                    self.check_grant(call, output.answer)
                elif isinstance(output.answer, Closed) and isinstance(call, CloseRoom):
                    self.closed[call.uid] = (call.generation, self.on_volume(call.uid))

    def check_ack(self, uid: str, generation: int, version: int) -> None:
        room = self.bench.room(uid)
        written = self.on_volume(uid)
        # A1, A3: the last entry of that generation on the volume is at or after what the ack says.
        assert max((v for g, v in written if g == generation), default=0) >= version
        self.acked[uid] = written[: written.index((generation, version)) + 1]
        closed = self.closed.get(uid)
        if closed is not None and closed[0] == generation:
            assert version <= max((v for g, v in closed[1] if g == generation), default=0)  # H1
        assert room.generation >= generation

    def check_grant(self, call: OpenRoom, granted: Granted) -> None:
        known = self.generations.setdefault(granted.generation, call.open_id)
        assert known == call.open_id  # W1
        state = entries_of(self.bench.stored(granted, call.uid)) if granted.base else []
        assert state[: len(self.acked[call.uid])] == self.acked[call.uid]  # W3
        closed = self.closed.get(call.uid)
        if closed is not None and closed[0] == max((g for g, _ in state), default=0):
            assert state == closed[1]  # H1

    def on_volume(self, uid: str) -> list[Entry]:
        room = self.bench.shard.room(uid)
        if room is None or room.base is None:
            return []
        items = self.bench.volume.read_items(uid, room.base, room.saved.at)
        return entries_of([item.data for item in items])

    @invariant()
    def acknowledged_is_on_the_volume(self) -> None:
        for uid in UIDS:
            written = self.on_volume(uid)
            assert written[: len(self.acked[uid])] == self.acked[uid]  # A1
            assert written == sorted(set(written))  # A2: none twice, none out of order
            for generation in {generation for generation, _ in written}:
                versions = [version for of, version in written if of == generation]
                assert versions == list(range(1, len(versions) + 1))  # and none left out

    @invariant()
    def one_holder(self) -> None:
        for uid in UIDS:
            room = self.bench.shard.room(uid)
            if room is not None and room.held:
                assert room.saved.at <= Mark(room.generation, room.version) or room.version == 0

    def hosts_hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Reply):
                self.host_is_answered(output)
            elif isinstance(output, EndStream):
                raise AssertionError(output)
            elif isinstance(output, Acks):
                for host, end in self.hosts.items():
                    if end.stream == output.stream:
                        self.host_is_told(host, output)

    def host_is_answered(self, reply: Reply) -> None:
        call = self.asked.get(reply.token)
        if isinstance(call, OpenRoom) and isinstance(reply.answer, Granted):
            held = self.hosts[call.host_id].rooms.get(call.uid)
            room = self.bench.room(call.uid)
            if room.generation == reply.answer.generation and (
                held is None or held.generation < reply.answer.generation
            ):
                state = entries_of(self.bench.stored(reply.answer, call.uid))
                fresh = Held(reply.answer.generation, state, needs_base=reply.answer.base is None)
                self.hosts[call.host_id].rooms[call.uid] = fresh
        elif isinstance(call, CloseRoom) and isinstance(reply.answer, Closed):
            held = self.hosts[call.host_id].rooms.get(call.uid)
            if held is not None and held.generation == call.generation:
                del self.hosts[call.host_id].rooms[call.uid]

    def host_is_told(self, host: str, acks: Acks) -> None:
        for ack in acks.acks:
            held = self.hosts[host].rooms.get(ack.uid)
            if held is None or held.generation != ack.generation:
                continue
            if ack.outcome is Outcome.FENCED:
                del self.hosts[host].rooms[ack.uid]
            elif ack.outcome is Outcome.NEED_BASE:
                held.needs_base = True
            else:
                held.acked = ack.version


TestShardMachine = ShardMachine.TestCase
TestShardMachine.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
