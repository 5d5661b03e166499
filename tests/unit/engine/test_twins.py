"""All that room code and clients can do, right or wrong, on both engines at once: not a byte differs."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.support.twins import twins_of
from tests.support.twins_machine import World, read_world

TestWorld = twins_of(World, read_world).TestCase
TestWorld.settings = settings(
    max_examples=40, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
