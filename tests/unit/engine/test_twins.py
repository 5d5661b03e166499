"""All that room code and clients can do, right or wrong, on both engines at once: not a byte differs."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

from tests.support.twins import twins_of
from tests.support.twins_machine import World, read_world
from tests.support.twins_meddling import Meddled


def case(machine: Any, examples: int) -> Any:
    twins = twins_of(machine, read_world).TestCase
    twins.settings = settings(
        max_examples=examples, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return twins


TestWorld = case(World, 25)
TestMeddled = case(Meddled, 25)
