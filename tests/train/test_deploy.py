"""The stand-alone runner acts as the policy did in the environment."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch

from simstate.data.logs import read_log
from simstate.env import Env, tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.deploy import PolicyRunner
from simstate.train.onnx_export import export_onnx
from simstate.train.onnx_policy import OnnxPolicy
from simstate.train.policy_passport import PassportPolicy
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun

TASK = "Quadruped-Velocity"
TERMS = "env.observations.policy.terms"
QUANTITIES = (
    "root_link_lin_vel_b",
    "root_link_ang_vel_b",
    "root_link_quat_w",
    "joint_pos",
    "joint_vel",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An exported policy with histories and delays, and its environment."""
    folder = tmp_path_factory.mktemp("run")
    train = dataclasses.replace(
        tasks.make_train_cfg(TASK), num_envs=8, symmetric=False, init_noise_std=1.0
    )
    settings = {
        f"{TERMS}.joint_pos.history": 3,
        f"{TERMS}.joint_vel.history": 2,
        f"{TERMS}.joint_vel.delay": 2,
        f"{TERMS}.projected_gravity.delay": (1, 3),
        f"{TERMS}.base_ang_vel.clip": (-0.3, 0.4),
    }
    run = TrainingRun(RunCfg(task=TASK, train=train, settings=settings), folder)
    run.learn(4, lambda progress: None)
    path = folder / "policy.onnx"
    export_onnx(
        Policy(run.example, read_checkpoint(find_checkpoint(folder))), run.example, path
    )
    cfg = run.cfg.env_cfg()
    for term in cfg.observations["policy"].terms.values():
        term.noise = None
    return path, Env(cfg, num_envs=3, seed=5, auto_reset=False)


@pytest.fixture(scope="module")
def log_of(made, tmp_path_factory):
    """Recorded steps of a world, as a log."""
    path, env = made
    recorded = tmp_path_factory.mktemp("log") / "run.simrec"
    policy = OnnxPolicy(path, env)
    seen, _ = env.reset(seed=7)
    quantities = [f"robot.{name}" for name in QUANTITIES]
    recorder = env.record(recorded, quantities=quantities)
    for k in range(60):
        if k == 30:
            env.commands["velocity"].command[:] = torch.tensor([0.7, -0.2, 0.4])
        # Louder than an untrained policy, so that all columns move.
        seen, *_ = env.step(policy(seen))
    recorder.close()
    return lambda world: read_log(recorded, world=world, episode=0)


def fed(runner, log):
    """The runner's actions for the raw signals of a log."""
    columns = log["observation/policy"]
    command = np.stack(
        [
            columns.component(f"command/{n}")
            for n in ("lin_vel_x", "lin_vel_y", "ang_vel_z")
        ],
        1,
    )
    found = []
    for k in range(len(log["action"].time)):
        sensors = {name: log[f"robot.{name}"].values[k] for name in QUANTITIES}
        found.append(runner.act({**sensors, "command.velocity": command[k]}))
    return np.array(found)


@pytest.mark.parametrize("world", [0, 2])
def test_actions_are_those_of_the_environment(made, log_of, world):
    path, _ = made
    log = log_of(world)
    wanted = log["action"].values
    assert np.abs(np.diff(wanted, axis=0)).max() > 0.01
    errors = []
    for lag in (1, 2, 3):  # drawn at reset: one of these is the world's
        runner = PolicyRunner(path, lags={"projected_gravity": lag})
        errors.append(np.abs(fed(runner, log) - wanted).max())
        runner.reset()
        assert np.abs(fed(runner, log) - wanted).max() == errors[-1]
    assert min(errors) < 1e-6
    assert sorted(errors)[1] > 1e-5


def test_a_recurrent_network_remembers_until_a_reset(tmp_path):
    task = "Cartpole-Balance"
    train = dataclasses.replace(
        tasks.make_train_cfg(task), num_envs=8, network="lstm", rnn_size=16
    )
    run = TrainingRun(RunCfg(task=task, train=train), tmp_path)
    run.learn(2, lambda progress: None)
    path = tmp_path / "policy.onnx"
    content = read_checkpoint(find_checkpoint(tmp_path))
    export_onnx(Policy(run.example, content), run.example, path)
    assert PassportPolicy(path).proof_error() < 1e-5
    env = Env(run.cfg.env_cfg(), num_envs=1, auto_reset=False)
    policy, runner = OnnxPolicy(path, env), PolicyRunner(path)
    robot, found = env.scene["robot"].data, []
    for _ in range(2):
        seen, _ = env.reset(seed=4)
        runner.reset()
        for _ in range(20):
            sensors = {"joint_pos": robot.joint_pos[0], "joint_vel": robot.joint_vel[0]}
            found.append(runner.act(sensors))
            action = policy(seen)
            assert np.abs(found[-1] - action[0].numpy()).max() < 1e-6
            seen, *_ = env.step(action)
    assert np.array_equal(found[:20], found[20:])
    assert not np.allclose(runner.act(sensors), found[-1], rtol=0, atol=1e-6)


def test_targets_are_those_of_the_servos(made):
    path, env = made
    action = torch.linspace(-1.0, 1.5, 12).expand(3, 12)
    env.reset(seed=3)
    env.step(action)
    found = PolicyRunner(path).targets(action[0])
    targets = env.scene["robot"].data.joint_pos_target[0].numpy()
    assert list(found) == env.action_names
    assert list(found.values()) == pytest.approx(targets, abs=1e-6)


def test_missing_and_wrong_sensors_are_named(made, tmp_path):
    path, _ = made
    runner = PolicyRunner(path)
    sensors = {
        "joint_pos": np.zeros(12),
        "joint_vel": np.zeros(12),
        "root_link_lin_vel_b": np.zeros(3),
        "root_link_ang_vel_b": np.zeros(3),
        "projected_gravity_b": (0.0, 0.0, -1.0),
        "velocity": (0.5, 0.0, 0.0),
    }
    assert runner.act(sensors).shape == (12,)
    for change in ({"joint_pos": np.zeros(11)}, {"joint_vel": [np.nan] * 12}):
        with pytest.raises(ValueError, match=r"12 finite numbers, for FL_hip, "):
            runner.act({**sensors, **change})
    other = {**sensors, "other.joint_vel": sensors["joint_vel"]}
    del other["joint_vel"]
    with pytest.raises(ValueError, match=r"robot\.joint_vel' is missing"):
        runner.act(other)
    del sensors["projected_gravity_b"]
    with pytest.raises(ValueError, match="projected_gravity_b' is missing"):
        runner.act(sensors)
    for lags in ({"joint": 1}, {"joint_vel": -1}, {"joint_vel": 1.5}):
        with pytest.raises(ValueError, match="lags must be"):
            PolicyRunner(path, lags=lags)
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(ValueError, match="is not an ONNX policy"):
        PolicyRunner(cut)


def test_it_needs_neither_torch_nor_mujoco(made):
    path, _ = made
    code = (
        "import sys\n"
        "from simstate.train.deploy import PolicyRunner\n"
        f"PolicyRunner({str(path)!r})\n"
        "print([m for m in ('torch', 'mujoco', 'onnx') if m in sys.modules])\n"
        "print([m for m in sys.modules if m.startswith('simstate.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "[]"
    assert second == "['simstate.train', 'simstate.train.deploy']"
