"""Sequences of public calls, drawn by hypothesis, against plain MuJoCo."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.soak import SOAK
from tests.world.api_machine import ApiMachine
from tests.world.api_worlds import make

pytestmark = pytest.mark.long

CALLS = 16
"""Longest sequence."""


def run(machine: type[ApiMachine], examples: int) -> None:
    """Draw sequences: the same ones each time, others with SIMSTATE_SOAK."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples * SOAK,
            stateful_step_count=CALLS,
            deadline=None,
            derandomize=SOAK == 1,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("with_sensors", [True, False])
@pytest.mark.parametrize("freshness", ["auto", "strict"])
def test_native(freshness, with_sensors):
    options = {"freshness": freshness, "with_sensors": with_sensors}
    run(type("Native", (ApiMachine,), options), 100)


@pytest.mark.parametrize("freshness", ["auto", "strict"])
def test_warp(freshness):
    sim = make("warp", freshness, with_sensors=False)
    start = sim.snapshot()

    class Warp(ApiMachine):
        engine, with_sensors = "warp", False

        def make(self):
            sim.restore(start)
            return sim

    Warp.freshness = freshness
    run(Warp, 25)
