"""The machines of the other tests on both engines at once: every byte to clients and log, and every read."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

from tests.support.twin_reads import read_driver, read_entities, read_room, read_table
from tests.support.twins import Reads, engine, needs_both_engines, twin_engine, twins_of
from tests.unit.engine.test_answers_machine import Answered
from tests.unit.engine.test_columns_lifetimes import Lifetimes, read_lifetimes
from tests.unit.engine.test_columns_machine import Columns
from tests.unit.engine.test_convergence import Everything, Interested, Thrifty
from tests.unit.engine.test_core_machine import Rooms
from tests.unit.engine.test_owner_writes_machine import FoggyTables, Tables
from tests.unit.engine.test_visibility_machine import Budget, Exact, Margin, Open, Views


class ViewsExact(Views):
    room_class = Exact


class ViewsMargin(Views):
    room_class = Margin


class ViewsBudget(Views):
    room_class = Budget


class ViewsOpen(Views):
    room_class = Open


def case(machine: type[RuleBasedStateMachine], reads: Reads, examples: int, steps: int) -> Any:
    twins = twins_of(machine, reads).TestCase
    twins.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return twins


@needs_both_engines
def test_the_twin_has_the_other_engine() -> None:
    assert {engine(), twin_engine()} == {"native", "pure"}


TestAnswered = case(Answered, read_driver, 10, 25)
TestColumns = case(Columns, read_entities, 40, 30)
TestLifetimes = case(Lifetimes, read_lifetimes, 15, 40)
TestEverything = case(Everything, read_table, 20, 50)
TestInterested = case(Interested, read_table, 25, 50)
TestThrifty = case(Thrifty, read_table, 10, 50)
TestRooms = case(Rooms, read_driver, 15, 25)
TestTables = case(Tables, read_room, 15, 40)
TestFoggyTables = case(FoggyTables, read_room, 15, 40)
TestViewsExact = case(ViewsExact, read_driver, 15, 40)
TestViewsMargin = case(ViewsMargin, read_driver, 15, 40)
TestViewsBudget = case(ViewsBudget, read_driver, 10, 40)
TestViewsOpen = case(ViewsOpen, read_driver, 10, 40)
