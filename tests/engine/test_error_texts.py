"""The wording of the errors of `engine`, also of those that come from C."""

import numpy as np
import pytest
from tests.engine import core_loads
from tests.engine.core_models import load
from tests.raised import says

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.engine import core
from simstate.engine.core import reads

NUM = 5
needs_core = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return Simulation(SceneCfg(entities={"cube": EntityCfg(model="cube")}), 2)


@pytest.mark.parametrize(
    ("call", "error", "fragments"),
    [
        (
            lambda sim: sim.write_parameter("body_ipos", [[[0.1, 0.0, 0.0]]], [1], [1]),
            InvalidInputError,
            ["cube/cube", "EntityCfg(com_varies=True)", 'simple="false"',
             "Nothing was written"],
        ),
        (
            lambda sim: sim.data.cacc,
            UnknownNameError,
            ["sim.data.cacc is not available", "Instead, ", "body_link_lin_acc_w"],
        ),
        (
            lambda sim: sim.expand("body_parentid"),
            InvalidInputError,
            ["body_parentid is part of the model's structure", "compile another model"],
        ),
        (
            lambda sim: sim.write_parameter("opt.timestep", [0.0], env_ids=[1]),
            InvalidInputError,
            ["opt.timestep must be > 0 and finite, got 0 in world 1."],
        ),
    ],
)  # fmt: skip
def test_texts(sim, call, error, fragments):
    with says(error, *fragments):
        call(sim)


@needs_core
def test_texts_of_wrong_reads():
    worlds = core.CoreBatch(load("small"), NUM, 1)
    pos, quat = worlds.bind("xpos"), worlds.bind("xquat")
    for bad, text in (
        (reads.take(pos, [99]), "elements has the id 99"),
        (reads.take(pos, [-1]), "elements has the id -1"),
        (reads.take(pos, [1], 2, 2), "lacks a source"),
        (reads.pose_w(pos, [1], quat, [99]), "bodies has the id 99"),
        (reads.pose_w(pos, [1, 2], quat, [1]), "bodies must be an array of 2"),
        (reads.direction_b(np.zeros((NUM, 2)), quat, 1), "lacks a source"),
        (reads.direction_b(np.zeros((NUM, 3)), quat, 99), "lacks a source"),
        (reads.take(pos.astype(np.float32), [1]), "must be float64"),
        (reads.take(pos[:2], [1]), "must be float64"),
        (reads.take(pos[:, ::2], [1]), "must be float64"),
    ):
        with says(InvalidInputError, text):
            bad.writer(NUM)


@needs_core
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"processes": [core.CoreProcess("frame", np.zeros((NUM, 5)))]},
            "moving frame",
        ),
        ({"loads": [core_loads.uniform_gravity([99], (0, 0, 1))]}, "the id 99"),
        ({"loads": [core_loads.uniform_gravity([1], (0, 1))]}, "Load of kind 0"),
    ],
)
def test_texts_of_wrong_integrators(given, text):
    worlds = core.CoreBatch(load("small"), NUM, 1)
    with says(InvalidInputError, text):
        core.Integrator(worlds, integrate.RK4().tableau, **given)
