"""Quantities by the compiled core against their formulas, as a user reads them."""

from __future__ import annotations

import pytest
import torch
from tests.conftest import SMALL
from tests.engine.core_models import random_states
from tests.inside import is_read_by_core
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError
from simstate.engine import core

pytestmark = [
    pytest.mark.fast,
    pytest.mark.skipif(
        not core.is_available(), reason="the compiled core is not there"
    ),
]

NUM = 5
ENTITIES = ("small", "dog", "man")


@pytest.fixture
def both(monkeypatch):
    """The same scene and state with the core, and without."""
    scene = SceneCfg(
        entities={
            "small": EntityCfg(model=SMALL),
            "dog": EntityCfg(model="quadruped"),
            "man": EntityCfg(model="humanoid"),
        },
        gravity=(1.0, -2.0, -9.0),
        timestep=0.004,
    )
    sims = []
    for value in ("1", "0"):
        monkeypatch.setenv("SIMSTATE_CORE", value)
        sim = Simulation(scene, NUM)
        sim.write_state(torch.tensor(random_states(sim.model, NUM, 21)))
        sim.step(2)
        sims.append(sim)
    return sims


def assert_alike(ours, plain):
    for name in ENTITIES:
        one, two = (sim.scene[name].data for sim in (ours, plain))
        for quantity in one.quantities:
            got, want = one.read(quantity), two.read(quantity)
            assert got.shape == want.shape, quantity
            torch.testing.assert_close(
                got, want, rtol=1e-14, atol=1e-14, equal_nan=True, msg=quantity
            )


def compiled(sim, entity, name):
    return is_read_by_core(sim.scene[entity].data, name)


def test_all_quantities_are_those_of_the_formulas(both):
    ours, plain = both
    assert_alike(ours, plain)
    assert compiled(ours, "dog", "body_link_vel_w")
    assert compiled(ours, "man", "root_com_quat_w")
    assert not compiled(plain, "dog", "body_link_vel_w")


def test_partial_steps_and_writes_are_seen(both):
    ours, plain = both
    for sim in both:
        for name in ENTITIES:
            sim.scene[name].data.body_link_vel_w  # noqa: B018
        sim.step(2, env_ids=[4, 1])
        sim.data.qpos[2] += 0.01
        sim.scene["dog"].write_joint_velocity_to_sim(
            torch.full((1, 12), 0.3).double(), env_ids=[3]
        )
    assert_alike(ours, plain)


@pytest.mark.parametrize(
    ("parameter", "quantity"),
    [
        ("opt.gravity", "projected_gravity_b"),
        ("geom_quat", "geom_pose_w"),
        ("body_iquat", "body_com_quat_w"),
    ],
)
def test_parameters_that_differ_are_followed(both, parameter, quantity):
    ours, plain = both
    assert compiled(ours, "dog", quantity)
    for sim in both:
        sim.scene["dog"].data.read(quantity)
        values = sim.expand(parameter)
        drawn = torch.rand(values.shape, generator=torch.Generator().manual_seed(4))
        if parameter == "body_iquat":  # MuJoCo takes shortcuts for simple bodies
            drawn[:, sim.model.body_simple != 0] = 0.0
        values[:] = values + drawn
        if parameter.endswith("quat"):
            values[:] = values / values.norm(dim=-1, keepdim=True)
    assert not compiled(ours, "dog", quantity)
    assert_alike(ours, plain)


def test_a_value_is_kept_for_its_state_and_no_longer(both):
    sim, _ = both
    data = sim.scene["dog"].data
    before = data.body_link_vel_w
    kept = before.clone()
    assert data.body_link_vel_w is before
    sim.step()
    assert data.body_link_vel_w is not before
    assert torch.equal(before, kept)  # what was handed out is the reader's to keep


def test_a_write_into_a_value_is_refused(both):
    data = both[0].scene["dog"].data
    data.root_link_pose_w[1, 2] = 3.0
    with raises(InvalidInputError, name="root_link_pose_w"):
        data.root_link_pose_w  # noqa: B018


def test_values_read_in_inference_mode_can_be_used_outside(both):
    data = both[0].scene["dog"].data
    with torch.inference_mode():
        data.root_link_lin_vel_b  # noqa: B018
    assert not data.root_link_lin_vel_b.is_inference()
