"""Terms called by hand: with their defaults, and with entities that have no ids yet."""

from __future__ import annotations

import inspect

import pytest
import torch
from tests.raised import raises

from simstate import SimStateError
from simstate.env import events, observations, rewards, terminations
from simstate.env.entity_cfg import SceneEntityCfg


def of_entities(module):
    """The shipped terms that take an entity, by name."""
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
        and "asset_cfg" in inspect.signature(function).parameters
    }


TERMS = {
    f"{module.__name__.rsplit('.', 1)[-1]}.{name}": function
    for module in (observations, rewards, terminations)
    for name, function in of_entities(module).items()
}
PARAMS = {"std": 0.5, "threshold": 0.1, "minimum_height": 0.3, "limit_angle": 0.5}


def params_of(function):
    """Values for the parameters that have no default."""
    given = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if parameter.default is parameter.empty:
            given[name] = PARAMS.get(name)
    return given


@pytest.fixture
def env(make_env, given):
    env = make_env(num_envs=3)
    for action in given(env, 5):
        env.step(action)
    return env


ALONE = [
    name
    for name, function in TERMS.items()
    if not params_of(function) and "terrain" not in name  # which the scene lacks
]


def test_most_terms_have_defaults_for_all():
    assert len(ALONE) >= 15
    assert "observations.joint_pos_rel" in ALONE


@pytest.mark.parametrize("name", ALONE)
def test_a_term_works_with_its_defaults(env, name):
    resolved = SceneEntityCfg("robot").resolve(env.scene)
    got = TERMS[name](env)
    want = TERMS[name](env, asset_cfg=resolved)
    torch.testing.assert_close(got, want, rtol=0, atol=0)
    assert got.shape[0] == 3
    torch.testing.assert_close(TERMS[name](env, SceneEntityCfg("robot")), want)


def test_chosen_joints_without_ids_are_found(env):
    robot = env.scene["robot"]
    got = observations.joint_pos_rel(env, SceneEntityCfg("robot", joint_names="knee"))
    want = robot.data.joint_pos - robot.data.default_joint_pos
    torch.testing.assert_close(got, want[:, [1]])
    biased = observations.joint_pos_rel(env, biased=True)
    torch.testing.assert_close(biased, want)


def test_an_unknown_joint_is_named(env):
    with raises(SimStateError, name="kne"):
        observations.joint_pos_rel(env, SceneEntityCfg("robot", joint_names="kne"))


def test_events_work_with_their_defaults(env):
    ids = torch.tensor([2, 0])
    before = env.sim.data.qpos.clone()
    events.reset_joints(env, ids, position_range=(0.1, 0.2))
    changed = (env.sim.data.qpos != before).any(-1)
    assert changed.tolist() == [True, False, True]
    mass = env.sim.expand("body_mass").clone()
    events.randomize_mass(env, ids, mass_range=(1.5, 1.5))
    ratio = env.sim.expand("body_mass")[:, 1:] / mass[:, 1:]
    torch.testing.assert_close(ratio[[0, 2]], torch.full_like(ratio[[0, 2]], 1.5))
    torch.testing.assert_close(ratio[1], torch.ones_like(ratio[1]))
    events.randomize_encoder_bias(env, ids, bias_range=(0.3, 0.3))
    bias = env.scene["robot"].data.encoder_bias
    torch.testing.assert_close(bias[:, 0].cpu(), torch.tensor([0.3, 0, 0.3]).to(bias))


def test_column_names_are_kept():
    assert observations.joint_pos_rel.column_names
    assert observations.joint_pos_rel.__doc__.startswith("Joint positions relative")
    assert "asset_cfg" in inspect.signature(observations.joint_pos_rel).parameters


def test_a_term_of_ones_own_takes_all_joints_of_an_entity_without_ids(env):
    """The function that the entity-data document prints, called as it stands."""

    def joint_pos_rel(env, asset_cfg):
        asset = env.scene[asset_cfg.name]
        jnt_ids = asset_cfg.joint_ids
        return (
            asset.data.joint_pos[:, jnt_ids] - asset.data.default_joint_pos[:, jnt_ids]
        )

    got = joint_pos_rel(env, SceneEntityCfg("robot"))
    assert got.abs().min() > 0
    data = env.scene["robot"].data
    assert torch.equal(got, data.joint_pos - data.default_joint_pos)
    with raises(SimStateError, name="robot"):
        joint_pos_rel(env, SceneEntityCfg("robot", joint_names="hip"))
