"""Wake, Failover and Drain, the router's part, for one room (docs/decisions.md and ARCHITECTURE.md)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from playhall.engine.codes import CloseCode
from playhall_router.wake import (
    Attach,
    Forget,
    Lose,
    Ownership,
    Place,
    Reason,
    Refusal,
    Refuse,
    RoomFlow,
    Route,
    StoreHint,
)

A7 = Route(7, "host-a", "a:1")
B8 = Route(8, "host-b", "b:1")
NOBODY = Route(0, "", "")


@pytest.fixture
def flow() -> RoomFlow:
    return RoomFlow()


def attached(flow: RoomFlow, route: Route = A7) -> None:
    """A room that runs, with people in it."""
    flow.status(Ownership.LIVE, route, 0)
    flow.wanted(0)
    flow.joined()
    flow.take_outputs()


def test_nothing_is_started_before_the_shard_has_spoken(flow: RoomFlow) -> None:
    flow.wanted(0)
    assert flow.take_outputs() == []
    flow.status(Ownership.NEW, NOBODY, 0)
    assert flow.take_outputs() == [Place(Reason.CONNECT, fresh=False)]


def test_a_room_nobody_wants_is_not_woken(flow: RoomFlow) -> None:
    for status in Ownership:
        flow.status(status, NOBODY, 0)
    flow.ended(A7, 0, moved=False)
    assert not any(isinstance(output, Place | Attach) for output in flow.take_outputs())


@pytest.mark.ledger("RTR-02")
def test_one_wake_is_in_flight_however_many_want_the_room(flow: RoomFlow) -> None:
    flow.status(Ownership.CLOSED, A7, 0)
    for _ in range(5):
        flow.wanted(0)
    flow.status(Ownership.LIVE, B8, 0)  # our own start's grant: it is not ready yet
    assert flow.take_outputs() == [Place(Reason.CONNECT, fresh=False)]
    flow.started(B8, 1)
    assert flow.take_outputs() == [StoreHint(B8), Attach(B8)]


def test_an_owner_the_shard_names_is_attached_to(flow: RoomFlow) -> None:
    flow.wanted(0)
    flow.status(Ownership.LIVE, A7, 0)
    assert flow.take_outputs() == [StoreHint(A7), Attach(A7)]


def test_a_start_that_finds_an_owner_attaches_there(flow: RoomFlow) -> None:
    flow.status(Ownership.DEAD, A7, 0)
    flow.wanted(0)
    assert flow.take_outputs() == [Place(Reason.CRASH, fresh=False)]
    flow.started(B8, 0)
    assert Attach(B8) in flow.take_outputs()


def test_a_hint_is_tried_and_dropped_when_wrong(flow: RoomFlow) -> None:
    flow.wanted(0)
    flow.hinted(A7, 0)
    assert flow.take_outputs() == [Attach(A7)]
    flow.failed(A7, 0)
    assert flow.take_outputs() == [Lose(A7)]
    flow.status(Ownership.CLOSED, A7, 0)
    assert flow.take_outputs() == [Place(Reason.CONNECT, fresh=False)]


def test_a_hint_never_outdoes_the_shard(flow: RoomFlow) -> None:
    flow.status(Ownership.CLOSED, A7, 0)
    flow.hinted(A7, 0)
    flow.wanted(0)
    assert flow.take_outputs() == [Place(Reason.CONNECT, fresh=False)]


@pytest.mark.ledger("RECO-08")
def test_a_dead_host_is_left_as_soon_as_the_shard_says_so(flow: RoomFlow) -> None:
    attached(flow)
    flow.failed(A7, 1.0)
    flow.wanted(1.0)
    assert flow.take_outputs() == [Lose(A7)]
    flow.status(Ownership.DEAD, A7, 1.01)
    assert flow.take_outputs() == [Place(Reason.CRASH, fresh=False)]


def test_a_host_the_shard_still_hears_is_tried_again_and_never_taken_from(flow: RoomFlow) -> None:
    attached(flow)
    flow.wanted(1.0)
    flow.take_outputs()
    now = 1.0
    pauses = []
    for _ in range(8):
        flow.failed(A7, now)
        outputs = flow.take_outputs()
        assert outputs[0] == Lose(A7)
        at = flow.next_timer()
        assert at is not None
        pauses.append(round(at - now, 3))
        now = at
        flow.timer(now)
        assert flow.take_outputs() == [StoreHint(A7), Attach(A7)]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_an_owner_that_does_not_know_its_generation_starts_the_room(flow: RoomFlow) -> None:
    """Its grant was lost on the way. The shard hears it, and gives the room to nobody else."""
    attached(flow)
    flow.wanted(1.0)
    flow.take_outputs()
    flow.unknown(A7, 1.0)
    assert flow.take_outputs() == [Lose(A7)]
    flow.timer(1.05)
    assert flow.take_outputs() == [Place(Reason.CONNECT, fresh=False, host_id="host-a")]
    flow.started(Route(8, "host-a", "a:1"), 1.1)
    assert Attach(Route(8, "host-a", "a:1")) in flow.take_outputs()


def test_an_owner_that_neither_knows_nor_starts_the_room_is_asked_again(flow: RoomFlow) -> None:
    attached(flow)
    flow.wanted(1.0)
    flow.unknown(A7, 1.0)
    flow.timer(1.05)
    flow.take_outputs()
    flow.refused(Refusal.BUSY, 1.1)
    flow.timer(1.3)
    assert flow.take_outputs() == [StoreHint(A7), Attach(A7)]


def test_a_dead_owner_that_did_not_know_its_generation_is_left(flow: RoomFlow) -> None:
    attached(flow)
    flow.wanted(1.0)
    flow.unknown(A7, 1.0)
    flow.take_outputs()
    flow.status(Ownership.DEAD, A7, 1.01)
    assert flow.take_outputs() == [Place(Reason.CRASH, fresh=False)]


def test_only_who_runs_the_room_speaks_of_it(flow: RoomFlow) -> None:
    assert not flow.knows(A7)
    attached(flow)
    assert flow.knows(A7)
    assert not flow.knows(Route(7, "host-b", "b:1"))
    assert not flow.knows(Route(9, "host-a", "a:1"))
    flow.failed(A7, 1)
    flow.status(Ownership.LIVE, B8, 1)
    assert flow.knows(A7)  # its last word may have been on its way
    assert flow.knows(B8)


def test_another_owner_takes_the_clients_over(flow: RoomFlow) -> None:
    attached(flow)
    flow.status(Ownership.LIVE, B8, 1)
    outputs = flow.take_outputs()
    assert outputs.index(Lose(A7)) < outputs.index(Attach(B8))


def test_an_owner_cut_off_from_the_shard_keeps_its_clients(flow: RoomFlow) -> None:
    attached(flow)
    flow.status(Ownership.DEAD, A7, 1)
    assert not any(isinstance(output, Lose) for output in flow.take_outputs())
    assert flow.route == A7


def test_arrivals_wait_while_a_room_closes(flow: RoomFlow) -> None:
    attached(flow)
    flow.closing(A7, 0)
    flow.wanted(1)
    assert flow.take_outputs() == []
    flow.ended(A7, 1, moved=False)
    assert flow.take_outputs() == [Lose(A7), Forget(), Place(Reason.CONNECT, fresh=True)]


@pytest.mark.ledger("RECO-11")
@pytest.mark.parametrize("wanted_first", [True, False])
def test_an_owner_that_dies_while_it_closes_is_left(flow: RoomFlow, wanted_first: bool) -> None:
    """Its last clients are gone, so that no stream tells of its end: the shard alone does."""
    attached(flow)
    flow.unwanted()
    flow.closing(A7, 0)
    if wanted_first:
        flow.wanted(0)
    flow.status(Ownership.DEAD, A7, 0)
    flow.wanted(0)
    assert flow.take_outputs() == [Lose(A7), Place(Reason.CRASH, fresh=False)]


def test_an_owner_cut_off_from_the_shard_is_left_when_it_closes(flow: RoomFlow) -> None:
    attached(flow)
    flow.unwanted()
    flow.status(Ownership.DEAD, A7, 0)
    assert flow.take_outputs() == []
    flow.closing(A7, 0)
    assert flow.take_outputs() == [Lose(A7)]


def test_a_room_that_moves_is_woken_on_what_is_live_now(flow: RoomFlow) -> None:
    attached(flow)
    flow.closing(A7, 0)
    flow.ended(A7, 1, moved=True)
    flow.wanted(1)
    assert flow.take_outputs()[-1] == Place(Reason.DEPLOY, fresh=True)


def test_news_that_crossed_the_end_brings_nobody_back(flow: RoomFlow) -> None:
    attached(flow)
    flow.wanted(1)
    flow.take_outputs()
    flow.ended(A7, 1, moved=True)
    assert flow.take_outputs()[-1] == Place(Reason.DEPLOY, fresh=True)
    flow.status(Ownership.LIVE, A7, 1)
    flow.hinted(A7, 1)
    flow.started(A7, 1)
    assert flow.route is None
    assert not any(isinstance(output, Attach) for output in flow.take_outputs())


def test_older_news_of_the_shard_is_ignored(flow: RoomFlow) -> None:
    flow.status(Ownership.LIVE, B8, 0)
    flow.status(Ownership.CLOSED, A7, 0)
    flow.wanted(0)
    assert Attach(B8) in flow.take_outputs()


def test_a_stale_build_is_looked_up_anew_and_not_for_ever(flow: RoomFlow) -> None:
    flow.status(Ownership.CLOSED, A7, 0)
    flow.wanted(0)
    flow.take_outputs()
    for _ in range(3):
        flow.refused(Refusal.STALE_BUILD, 0)
        assert flow.take_outputs() == [Forget(), Place(Reason.CONNECT, fresh=True)]
    flow.refused(Refusal.STALE_BUILD, 0)
    assert flow.take_outputs() == [Forget()]
    assert flow.next_timer() is not None


@pytest.mark.parametrize("refusal", [Refusal.BUSY, Refusal.UNAVAILABLE])
def test_what_may_pass_is_tried_again(flow: RoomFlow, refusal: Refusal) -> None:
    flow.status(Ownership.NEW, NOBODY, 0)
    flow.wanted(0)
    flow.take_outputs()
    flow.refused(refusal, 0)
    assert flow.take_outputs() == []
    flow.timer(0.05)
    assert flow.take_outputs() == [Place(Reason.CONNECT, fresh=False)]


@pytest.mark.ledger("CODE-08", "RECO-09")
def test_a_room_that_rests_or_fails_closes_who_waits(flow: RoomFlow) -> None:
    flow.status(Ownership.CLOSED, A7, 0)
    cases: list[tuple[Refusal, dict[str, Any], int, int]] = [
        (Refusal.BACK_OFF, {"retry_after_ms": 4000}, CloseCode.ROOM_STOPPED, 4000),
        (Refusal.FAILED, {"code": 4007, "text": "on_create raised"}, CloseCode.ROOM_STOPPED, 0),
        (Refusal.DELETED, {}, CloseCode.ROOM_NOT_FOUND, 0),
    ]
    for refusal, facts, code, retry in cases:
        flow.wanted(0)
        flow.take_outputs()
        flow.refused(refusal, 0, **facts)
        refuse = flow.take_outputs()[-1]
        assert isinstance(refuse, Refuse)
        assert (refuse.code, refuse.retry_after_ms) == (code, retry)


@pytest.mark.ledger("CODE-03")
def test_a_deleted_room_is_not_found(flow: RoomFlow) -> None:
    flow.status(Ownership.DELETED, NOBODY, 0)
    flow.take_outputs()
    flow.wanted(0)
    outputs = flow.take_outputs()
    assert Forget() in outputs
    assert isinstance(outputs[-1], Refuse)
    assert outputs[-1].code == CloseCode.ROOM_NOT_FOUND


def test_without_the_shard_only_what_is_known_is_tried(flow: RoomFlow) -> None:
    attached(flow)
    flow.shard_lost()
    assert flow.route == A7
    flow.wanted(1)
    assert flow.take_outputs() == [Attach(A7)]
    flow.failed(A7, 1)
    flow.timer(2)
    assert flow.take_outputs() == [Lose(A7)]
    flow.status(Ownership.LIVE, B8, 3)
    assert Attach(B8) in flow.take_outputs()


class FlowMachine(RuleBasedStateMachine):
    """Steps in any order: lost, late, doubled. What must hold is in the invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = RoomFlow()
        self.now = 0.0
        self.placing = 0
        self.gone = 0

    routes = st.builds(Route, st.integers(1, 5), st.sampled_from(["a", "b"]), st.just("x:1"))

    @rule()
    def wanted(self) -> None:
        self.flow.wanted(self.now)

    @rule()
    def unwanted(self) -> None:
        self.flow.unwanted()

    @rule(route=routes)
    def hinted(self, route: Route) -> None:
        self.flow.hinted(route, self.now)

    @rule(status=st.sampled_from([each for each in Ownership if each is not Ownership.DELETED]), route=routes)
    def status(self, status: Ownership, route: Route) -> None:
        self.flow.status(status, route, self.now)

    @precondition(lambda self: self.placing)
    @rule(route=routes)
    def started(self, route: Route) -> None:
        self.placing = 0
        self.flow.started(route, self.now)

    @precondition(lambda self: self.placing)
    @rule(refusal=st.sampled_from(Refusal))
    def refused(self, refusal: Refusal) -> None:
        self.placing = 0
        self.flow.refused(refusal, self.now)

    @rule(route=routes)
    def failed(self, route: Route) -> None:
        self.flow.failed(route, self.now)

    @rule(route=routes)
    def unknown(self, route: Route) -> None:
        self.flow.unknown(route, self.now)

    @rule(route=routes)
    def closing(self, route: Route) -> None:
        self.flow.closing(route, self.now)

    @rule(route=routes, moved=st.booleans())
    def ended(self, route: Route, moved: bool) -> None:
        self.gone = max(self.gone, route.generation)
        self.flow.ended(route, self.now, moved=moved)

    @rule()
    def shard_lost(self) -> None:
        self.flow.shard_lost()

    @rule(seconds=st.floats(0, 2))
    def timer(self, seconds: float) -> None:
        self.now += seconds
        self.flow.timer(self.now)

    @invariant()
    def one_start_at_a_time_and_no_way_back(self) -> None:
        for output in self.flow.take_outputs():
            if isinstance(output, Place):
                self.placing += 1
            if isinstance(output, Attach):
                assert output.route.generation > self.gone
        assert self.placing <= 1
        assert self.flow.placing == bool(self.placing)


FlowMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20)
TestFlow = FlowMachine.TestCase
