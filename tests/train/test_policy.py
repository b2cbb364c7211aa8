"""A trained policy: its ONNX file, and the figures of an evaluation."""

from __future__ import annotations

import dataclasses
import json

import mujoco
import numpy as np
import onnxruntime
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import SimStateError
from simstate.env import Env, tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.evaluate import evaluate
from simstate.train.onnx_export import describe_actions, export_onnx
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A checkpoint of the quadruped after two updates."""
    task = "Quadruped-Velocity"
    folder = tmp_path_factory.mktemp("run")
    train = dataclasses.replace(tasks.make_train_cfg(task), num_envs=8)
    TrainingRun(RunCfg(task=task, train=train), folder).learn(2, lambda progress: None)
    return read_checkpoint(find_checkpoint(folder))


@pytest.fixture(scope="module")
def env():
    return Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=5, auto_reset=False)


def test_onnx_computes_what_the_policy_does_and_says_what_it_means(
    content, env, tmp_path
):
    policy = Policy(env, content)
    path = tmp_path / "policy.onnx"
    export_onnx(policy, env, path)
    session = onnxruntime.InferenceSession(path)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        seen = torch.randn(5, env.observation_dims["policy"], generator=generator)
        expected = policy({**env.observations, "policy": seen})
        (found,) = session.run(["actions"], {"obs": seen.numpy()})
        assert np.abs(expected.numpy()).max() > 0.01
        assert np.abs(found - expected.numpy()).max() < 1e-5
        (one,) = session.run(["actions"], {"obs": seen[:1].numpy()})
        assert np.abs(one - found[:1]).max() < 1e-5
    facts = session.get_modelmeta().custom_metadata_map
    told = {key: json.loads(value) for key, value in facts.items()}
    assert told["task"] == "Quadruped-Velocity"
    assert told["step_dt"] == 0.02
    assert len(told["observation_names"]) == env.observation_dims["policy"]
    assert told["action_names"] == env.action_names
    joints = told["actions"]["joints"]
    assert joints["joint_names"] == list(env.scene["robot"].joint_names)
    assert joints["default_joint_pos"] == pytest.approx(
        env.scene["robot"].data.default_joint_pos[0].tolist()
    )
    model = env.sim.model
    assert joints["stiffness"] == pytest.approx(model.actuator_gainprm[:, 0].tolist())
    assert joints["damping"] == pytest.approx((-model.actuator_biasprm[:, 2]).tolist())


def test_scales_in_the_metadata_are_what_an_action_does(env):
    told = describe_actions(env)["joints"]
    action = torch.linspace(-1.0, 1.0, 12).expand(5, 12)
    env.reset(seed=0)
    env.step(action)
    scale, zero = np.array(told["scale"]), np.array(told["target_at_zero"])
    expected = zero + scale * action[0].numpy()
    assert env.scene["robot"].data.joint_pos_target[0].numpy() == pytest.approx(
        expected
    )


def test_a_wrench_in_the_metadata_is_what_an_action_does():
    env = Env(tasks.make_cfg("Glider-Heading"))
    (told,) = describe_actions(env).values()
    robot = env.scene["robot"]
    assert told["body_name"] in robot.body_names
    action = torch.linspace(-3.0, 3.0, env.action_dim)[None]
    body = mujoco.mj_name2id(
        env.sim.model, mujoco.mjtObj.mjOBJ_BODY.value, f"robot/{told['body_name']}"
    )
    rotation = env.sim.data.xmat[0, body].reshape(3, 3).clone()
    env.step(action)
    limited = action[0].clamp(-told["limit"], told["limit"]).double()
    torque = rotation @ (torch.tensor(told["scale"]).double() * limited)
    assert told["names"] == ["torque_x", "torque_y", "torque_z"]
    torch.testing.assert_close(env.sim.data.xfrc_applied[0, body, 3:], torque)


def test_the_range_of_targets_is_in_the_metadata():
    cfg = tasks.make_cfg("Arm-Reach")
    (name,) = cfg.actions
    cfg.actions[name].clip = (-0.5, 0.5)
    assert describe_actions(Env(cfg))[name]["clip"] == (-0.5, 0.5)


def test_a_policy_of_another_task_does_not_fit(content):
    other = Env(tasks.make_cfg("Cartpole-Balance"))
    with raises(SimStateError, name="Quadruped-Velocity"):
        Policy(other, content)


def hold(env: Env):
    """A policy that asks for nothing: the quadruped stands."""
    return lambda seen: torch.zeros(env.num_envs, env.action_dim)


def test_a_standing_robot_misses_the_velocity_it_is_asked_for():
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.events.pop("push")
    command = cfg.commands["velocity"]
    cfg.commands = {
        "velocity": dataclasses.replace(
            command,
            lin_vel_x=(0.6, 0.6),
            lin_vel_y=(0.8, 0.8),
            ang_vel_z=(0.0, 0.0),
            standing_share=0.0,
        )
    }
    env = Env(cfg, num_envs=4, auto_reset=False)
    found = evaluate(env, hold(env), seconds=3.0)
    assert found.failures == 0
    assert found.failure_rate == 0.0
    assert found.seconds == pytest.approx(3.0)
    assert found.errors["velocity"] == pytest.approx(1.0, abs=0.05)
    assert found.errors["velocity/forward"] == pytest.approx(0.6, abs=0.05)


def test_falls_are_counted_once_and_nothing_after_them_counts():
    cfg = tasks.make_cfg("Cartpole-Balance")
    env = Env(cfg, num_envs=4, auto_reset=False)
    pushed = torch.tensor([[5.0], [0.0], [0.0], [5.0]])

    def act(seen):
        # The poles of two worlds are balanced by hand, the others pushed over.
        position, pole, speed, rate = seen["policy"].unbind(1)
        force = 2.0 * pole + 0.5 * rate + 0.1 * position + 0.2 * speed
        return torch.where(pushed > 0, pushed, force[:, None])

    short = evaluate(env, act, seconds=2.0)
    assert short.failures == 2
    longer = evaluate(env, act, seconds=8.0)
    assert longer.failures == 2
    assert longer.failure_rate == 0.5
    assert longer.reward > short.reward  # a fall's penalty came once


def test_evaluation_goes_on_after_a_time_out():
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.2
    env = Env(cfg, num_envs=2, auto_reset=False)
    assert evaluate(env, hold(env), seconds=0.5).failures == 0
    assert env.episode_length_buf.tolist() == [5, 5]


def test_evaluation_needs_worlds_that_do_not_reset_themselves():
    env = Env(tasks.make_cfg("Cartpole-Balance"))
    with raises(SimStateError, name="auto_reset"):
        evaluate(env, hold(env), 1.0)
    env = Env(tasks.make_cfg("Cartpole-Balance"), auto_reset=False)
    with raises(SimStateError, name="seconds"):
        evaluate(env, hold(env), 0.0)
