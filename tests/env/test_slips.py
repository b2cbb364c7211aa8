"""Slips in tasks that special values hide: each is caught here once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.env.conftest import ROBOT

from simstate import EntityCfg, InitialStateCfg, SceneCfg
from simstate.env import (
    Env,
    JointPositionActionCfg,
    RewardTermCfg,
    TerminationTermCfg,
    VelocityCommandCfg,
    curricula,
    events,
    tasks,
    terminations,
)
from simstate.env.env_cfg import CurriculumTermCfg, EventTermCfg
from simstate.interop.metasim import MetaSimTaskEnv
from simstate.interop.rsl_rl import RslRlVecEnv
from simstate.train.onnx_export import describe_actions

FOREVER = (1e6, 1e6)


def test_a_fall_is_no_time_out():
    cfg = tasks.make_cfg("Cartpole-Balance")
    envs = RslRlVecEnv(Env(cfg, num_envs=2))
    envs.env.scene["robot"].write_joint_position_to_sim([[0.0, 1.5], [0.1, 0.0]])
    _, _, done, extras = envs.step(torch.zeros(2, 1))
    assert done.tolist() == [1, 0]
    assert extras["time_outs"].tolist() == [False, False]


def test_an_action_undoes_the_offset(make_env):
    action = JointPositionActionCfg(scale=0.5, offset=0.2)
    env = make_env(3, actions={"joints": action})
    term = env.actions["joints"]
    asked = torch.tensor([[0.1, -0.3], [0.7, 0.2], [-0.4, 0.5]]).double()
    torch.testing.assert_close(term.action_for(term.targets(asked)), asked)
    torch.testing.assert_close(term.targets(term.action_for(asked)), asked)


def test_columns_of_a_second_term_come_after_the_first(make_env):
    actions = {
        "knee": JointPositionActionCfg(joint_names=("knee",), scale=0.5),
        "hip": JointPositionActionCfg(joint_names=("hip",), scale=0.25),
    }
    env = make_env(2, actions=actions, auto_reset=False, events={})
    meta = MetaSimTaskEnv(env)
    meta.reset()
    goals = [{"hip": 0.11, "knee": 0.42}, {"hip": -0.2, "knee": 0.23}]
    meta.step([{"robot": {"dof_pos_target": goal}} for goal in goals])
    names = env.scene["robot"].joint_names
    found = env.scene["robot"].data.joint_pos_target
    for world, goal in enumerate(goals):
        for name, value in goal.items():
            got = float(found[world, names.index(name)])
            assert got == pytest.approx(value, abs=1e-6)


def test_the_turn_of_a_reset_is_about_world_axes():
    """scipy: roll, pitch, then yaw about the world's axes, after the default turn."""
    start = InitialStateCfg(pos=(0, 0, 2), rot=(0.5, 0.5, 0.5, 0.5))
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.scene = SceneCfg(
        entities={"robot": EntityCfg(model="quadruped", init_state=start)},
        timestep=None,
    )
    cfg.events = {}
    env = Env(cfg, num_envs=2)
    turn = {"yaw": (1.0, 1.0), "pitch": (-0.7, -0.7), "roll": (0.3, 0.3)}
    events.reset_root_state(env, torch.tensor([1, 0]), pose_range=turn)
    w, *xyz = env.scene["robot"].data.root_link_quat_w[1].tolist()
    expected = Rotation.from_euler("xyz", [0.3, -0.7, 1.0]) * Rotation.from_quat(
        [0.5] * 4
    )
    found = Rotation.from_quat([*xyz, w])
    assert (found * expected.inv()).magnitude() < 1e-9


def test_a_velocity_servos_gain_is_its_damping(make_env):
    model = ROBOT.replace(
        '<position name="knee" joint="knee" kp="15" kv="0.5"/>',
        '<velocity name="knee" joint="knee" kv="1.5"/>',
    )
    scene = SceneCfg(entities={"robot": EntityCfg(model=model)}, timestep=None)
    env = make_env(
        2, scene=scene, events={},
        actions={"hip": JointPositionActionCfg(joint_names=("hip",))},
    )  # fmt: skip
    events.randomize_gains(
        env, torch.tensor([1]), stiffness_range=(3.0, 3.0), damping_range=(2.0, 2.0)
    )
    gain = env.sim.expand("actuator_gainprm")[:, :, 0]
    bias = env.sim.expand("actuator_biasprm")
    np.testing.assert_allclose(gain.numpy(), [[20, 1.5], [60, 3.0]])
    np.testing.assert_allclose(bias[1, :, 2].numpy(), [-2.0, -3.0])


def test_a_curriculum_counts_the_steps_that_were_taken(make_env):
    """An episode that ends early earned all that it could."""

    def falls(env: Env) -> torch.Tensor:
        return env.episode_length_buf >= 3

    env = make_env(
        2,
        commands={
            "velocity": VelocityCommandCfg(
                resampling_time_s=FOREVER, lin_vel_x=(0.2, 1.0)
            )
        },
        rewards={"track": RewardTermCfg(lambda env: torch.ones(2), weight=2.0)},
        terminations={
            "fall": TerminationTermCfg(falls),
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
        },
        curricula={
            "velocity": CurriculumTermCfg(
                curricula.forward_velocity,
                params={
                    "command_name": "velocity", "reward_name": "track", "step": 0.3,
                },
            )
        },
        episode_length_s=2.0,
    )  # fmt: skip
    for _ in range(3):
        log = env.step(torch.zeros(2, 2))[4]["log"]
    assert log["Curriculum/velocity"] == pytest.approx(1.3)


def test_the_error_of_a_second_episode_is_its_own(make_env):
    cfg = VelocityCommandCfg(resampling_time_s=FOREVER, lin_vel_x=(5.0, 5.0))
    env = make_env(2, commands={"velocity": cfg}, episode_length_s=0.1)
    told = []
    for _ in range(10):
        log = env.step(torch.zeros(2, 2))[4]["log"]
        if log:
            told.append(log["Metrics/velocity/error"])
    assert len(told) == 2
    assert told[1] == pytest.approx(5.0, abs=1.5)


def test_gains_are_reported_at_the_joint(make_env):
    model = ROBOT.replace('joint="hip" kp="20" kv="1"', 'joint="hip" kp="5" gear="3"')
    scene = SceneCfg(entities={"robot": EntityCfg(model=model)}, timestep=None)
    env = make_env(2, scene=scene, events={})
    told = describe_actions(env)["joints"]
    hip = told["joint_names"].index("hip")
    assert told["stiffness"][hip] == pytest.approx(45.0)


def test_the_previous_action_is_zero_after_a_reset(make_env):
    env = make_env(3)
    for k in range(2):
        env.step(torch.full((3, 2), 0.1 + 0.2 * k))
    assert (env.previous_action != 0).all()
    env.reset(env_ids=[2, 0])
    assert env.previous_action[[0, 2]].abs().max() == 0
    assert env.previous_action[1].abs().min() > 0


def test_events_of_the_configuration_are_used(make_env):
    """The reset of the fixture's event is the one that the tests above leave out."""
    event = EventTermCfg(
        events.reset_joints, params={"position_range": (0.1, 0.1)}, mode="reset"
    )
    env = make_env(2, events={"joints": event})
    data = env.scene["robot"].data
    off = data.joint_pos - data.default_joint_pos
    np.testing.assert_allclose(off.numpy(), 0.1, atol=math.ulp(1.0))
