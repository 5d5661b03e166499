"""Which process a room starts on."""

from __future__ import annotations

import pytest

from playhall_router.placement import Placement, Pod, Process


def process(host_id: str, rooms: int, build: str = "b1", *, draining: bool = False) -> Process:
    return Process(host_id, f"{host_id}:1", build, rooms, 10, draining)


@pytest.fixture
def placement() -> Placement:
    placement = Placement()
    placement.update(Pod("pod1", "dots", False, (process("a", 3), process("b", 7), process("c", 10))))
    placement.update(Pod("pod2", "dots", False, (process("d", 5, "b2"), process("e", 9, draining=True))))
    placement.update(Pod("pod3", "", False, ()))
    placement.update(Pod("pod4", "other", False, (process("f", 9),)))
    return placement


def host(found: Process | None) -> str | None:
    return found.host_id if found is not None else None


def test_the_fullest_with_room_of_the_build_is_taken(placement: Placement) -> None:
    assert host(placement.pick("dots", "b1")) == "b"
    assert host(placement.pick("dots", "b1", {"b"})) == "a"
    assert host(placement.pick("dots", "b1", {"a", "b"})) is None
    assert host(placement.pick("dots", "b2")) == "d"
    assert host(placement.pick("other", "b1")) == "f"


def test_rooms_on_their_way_count(placement: Placement) -> None:
    for _ in range(3):
        placement.started("b")
    assert host(placement.pick("dots", "b1")) == "a"
    placement.settled("b")
    assert host(placement.pick("dots", "b1")) == "b"
    placement.settled("b")
    placement.settled("b")
    placement.settled("b")
    assert host(placement.pick("dots", "b1")) == "b"


def test_places_are_those_of_processes_that_take_rooms(placement: Placement) -> None:
    assert placement.free("dots", "b1") == 7 + 3
    placement.started("a")
    assert placement.free("dots", "b1") == 6 + 3
    assert placement.free("dots", "b2") == 5
    assert placement.free("nobody's", "b1") == 0
    placement.update(Pod("pod1", "dots", True, (process("a", 3),)))
    assert placement.free("dots", "b1") == 0


def test_supervisors_of_the_project_are_asked_before_free_ones(placement: Placement) -> None:
    assert placement.pods("dots") == ["pod1", "pod2", "pod3"]
    assert placement.pods("dots", {"pod1"}) == ["pod2", "pod3"]
    assert placement.pods("new") == ["pod3"]


def test_a_pod_that_drains_or_is_not_heard_gets_nothing(placement: Placement) -> None:
    placement.update(Pod("pod1", "dots", True, (process("a", 3),)))
    assert host(placement.pick("dots", "b1")) is None
    assert "pod1" not in placement.pods("dots")
    placement.forget("pod2")
    placement.forget("pod2")
    assert host(placement.pick("dots", "b2")) is None


def test_processes_are_found_by_id(placement: Placement) -> None:
    assert placement.find("d") == ("dots", process("d", 5, "b2"))
    assert placement.find("nobody") is None
    assert placement.addresses() == {f"{name}:1" for name in "abcdef"}
