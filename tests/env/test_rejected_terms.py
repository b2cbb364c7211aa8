"""Terms that an environment cannot have, or that ask for what its scene lacks."""

from __future__ import annotations

import pytest
import torch

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import SimStateError
from simstate.env import (
    ControlActionCfg,
    Env,
    JointPdActionCfg,
    curricula,
    events,
    observations,
    tasks,
    terminations,
)
from simstate.env.motion_command import motion_command
from simstate.env.parameter_events import drawn_numbers, randomize_parameter
from simstate.env.pose_events import place_on_tile, randomize_headlight

IDS = torch.tensor([1])


@pytest.fixture(scope="module")
def env() -> Env:
    return Env(tasks.make_cfg("Cartpole-Balance"), 3)


@pytest.fixture(scope="module")
def walking() -> Env:
    return Env(tasks.make_cfg("Quadruped-Velocity"), 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda env: observations.terrain_scan(env),
        lambda env: terminations.terrain_out_of_bounds(env),
        lambda env: curricula.terrain_levels(env, IDS),
        lambda env: place_on_tile(env, IDS),
        lambda env: randomize_headlight(env, IDS),
        lambda env: randomize_parameter(env, IDS, "wheel_size", (1.0, 2.0)),
        lambda env: randomize_parameter(env, IDS, "dof_damping", (2.0, 1.0)),
        lambda env: events.randomize_parameter(
            env, IDS, "dof_damping", (0.5, -0.1), distribution="gaussian"
        ),
    ],
    ids=["scan", "bounds", "levels", "tile", "headlight", "kind", "range", "gaussian"],
)
def test_what_the_scene_does_not_have_is_rejected(env, call):
    before = env.sim.state.clone()
    with pytest.raises(SimStateError):
        call(env)
    assert torch.equal(env.sim.state, before)


def test_a_term_needs_a_command_of_its_kind(walking):
    with pytest.raises(SimStateError):
        motion_command(walking, "velocity")


def with_action(cfg, **changes):
    made = tasks.make_cfg("Cartpole-Balance")
    made.actions = {"act": cfg}
    if changes:
        made.scene = SceneCfg(**changes)
    return made


@pytest.mark.parametrize("limit", ["effort_limit", "stall_effort", "velocity_limit"])
def test_limits_of_a_servo_are_above_zero(limit):
    def cfg(value):
        return JointPdActionCfg(joint_names="slider", stiffness=2.0, **{limit: value})

    Env(with_action(cfg(0.5)))
    for wrong in (0.0, -1.0):
        with pytest.raises(SimStateError):
            Env(with_action(cfg(wrong)))


def test_an_action_of_controls_has_one():
    cube = EntityCfg(model="cube")
    scene = {"entities": {"robot": cube}, "ground": True, "timestep": 0.005}
    cfg = with_action(ControlActionCfg(), **scene)
    cfg.observations, cfg.rewards, cfg.terminations, cfg.events = {}, {}, {}, {}
    with pytest.raises(SimStateError):
        Env(cfg)


def test_draws_have_their_distributions(env):
    every = torch.arange(3)
    low, high = 0.5, 2.0
    for kind in ("uniform", "log_uniform"):
        found = drawn_numbers(env, every, 2000, (low, high), kind)
        assert found.shape == (3, 2000)
        assert low <= float(found.min()) < 0.51
        assert 1.99 < float(found.max()) <= high
        middle = 1.25 if kind == "uniform" else 1.0  # medians
        assert float(found.median()) == pytest.approx(middle, abs=0.05)
    normal = drawn_numbers(env, every, 4000, (3.0, 0.5), "gaussian")
    assert float(normal.mean()) == pytest.approx(3.0, abs=0.03)
    assert float(normal.std()) == pytest.approx(0.5, abs=0.03)
    drawn_numbers(env, every, 2, (3.0, 0.0), "gaussian")
    drawn_numbers(env, every, 2, (2.0, 2.0), "uniform")
