"""Random sequences of calls against plain MuJoCo, world by world."""

from __future__ import annotations

import mujoco
import pytest
from tests.soak import SOAK
from tests.world.fuzz import MODEL, NUM_ENVS, SCENE, Fuzz

from simstate import Simulation

PARTS = 4


def make(engine: str, freshness: str, with_sensors: bool = False) -> Simulation:
    scene = SCENE if with_sensors else mujoco.MjModel.from_xml_string(MODEL)
    sim = Simulation(scene, NUM_ENVS, engine=engine, freshness=freshness)
    sim.memory("fuzz", (2,), reset=[1.5, -2.0])
    return sim


@pytest.mark.parametrize("freshness", ["auto", "strict"])
@pytest.mark.parametrize("part", range(PARTS))
def test_native(freshness, part):
    for seed in range(part * 240 * SOAK, (part + 1) * 240 * SOAK):
        Fuzz(make("native", freshness, with_sensors=part == 0), seed).run(12)


@pytest.mark.parametrize("freshness", ["auto", "strict"])
def test_warp(freshness):
    sim = make("warp", freshness)
    start = sim.snapshot()
    for seed in range(40 * SOAK):
        sim.restore(start)
        Fuzz(sim, seed).run(12)
