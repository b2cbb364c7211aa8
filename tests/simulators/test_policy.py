"""A policy in an ONNX file, played in a simulator that it was not trained in."""

from __future__ import annotations

import json
from contextlib import nullcontext

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.raised import raises
from tests.simulators.scenes import OTHERS, only

from simstate import cli
from simstate.base.errors import InvalidInputError
from simstate.env import Env, tasks
from simstate.integrate import RK4
from simstate.simulators import make
from simstate.simulators.borrowed_stepper import borrowed_stepper
from simstate.state import diff
from simstate.train.evaluate import evaluate
from simstate.train.onnx_policy import OnnxPolicy, task_of

WALKS = [key for key in OTHERS if key != "newton-featherstone"]
"""Featherstone's explicit servos are too stiff for the quadruped's time step."""


@pytest.fixture(scope="module")
def env():
    return Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=2, auto_reset=False)


def write_policy(path, env, weights, **changes):
    """A linear policy, actions = weights @ obs, with what it says of itself."""
    facts = {
        "task": "Quadruped-Velocity",
        "step_dt": env.step_dt,
        "observation_names": env.observation_names["policy"],
        "action_names": env.action_names,
        **changes,
    }
    matrix = numpy_helper.from_array(weights.T.astype(np.float32), "weights")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "weights"], ["actions"])],
        "policy",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, ["n", None])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, ["n", None])],
        [matrix],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    helper.set_model_props(model, {k: json.dumps(v) for k, v in facts.items()})
    onnx.save(model, str(path))
    return path


def test_columns_are_matched_by_name(env, tmp_path):
    """The same network with its columns in another order acts alike."""
    rng = np.random.default_rng(3)
    seen, names = env.observation_names["policy"], env.action_names
    weights = rng.normal(size=(len(names), len(seen)))
    plain = OnnxPolicy(write_policy(tmp_path / "a.onnx", env, weights), env)
    columns, rows = rng.permutation(len(seen)), rng.permutation(len(names))
    shuffled = write_policy(
        tmp_path / "b.onnx",
        env,
        weights[rows][:, columns],
        observation_names=[seen[i] for i in columns],
        action_names=[names[i] for i in rows],
    )
    obs = torch.as_tensor(rng.normal(size=(2, len(seen))), dtype=torch.float32)
    wanted = obs.numpy() @ weights.T.astype(np.float32)
    assert np.allclose(plain({"policy": obs}), wanted, atol=1e-5)
    other = OnnxPolicy(shuffled, env)
    assert np.allclose(other({"policy": obs}), wanted, atol=1e-5)
    assert other.task == task_of(shuffled) == "Quadruped-Velocity"


def test_a_policy_that_does_not_fit_is_reported(env, tmp_path):
    size = (env.action_dim, env.observation_dims["policy"])
    weights = np.zeros(size)
    names = ["other", *env.observation_names["policy"][1:]]
    path = write_policy(tmp_path / "a.onnx", env, weights, observation_names=names)
    with raises(InvalidInputError, name="observations"):
        OnnxPolicy(path, env)
    path = write_policy(tmp_path / "b.onnx", env, weights, step_dt=0.5)
    with raises(InvalidInputError, name="step_dt"):
        OnnxPolicy(path, env)
    with raises(InvalidInputError, file="c.onnx"):
        OnnxPolicy(tmp_path / "c.onnx", env)


def test_an_engine_of_ours_is_not_borrowed(env):
    for wrong, name in (("warp", "warp"), (env.sim, "simulator")):
        with (
            raises(InvalidInputError, name=name),
            borrowed_stepper(env, wrong),
        ):
            pass
    env.reset()
    env.sim.step(1)  # its own again


@pytest.mark.parametrize("key", WALKS)
def test_the_quadruped_stands_in_another_simulator(env, key):
    env.reset(seed=4)
    idle = torch.zeros(2, env.action_dim)
    with borrowed_stepper(env, key) as other:
        for _ in range(25):
            _, _, terminated, _, _ = env.step(idle)
            assert not terminated.any()
        there = other.read([0, 1])
        assert np.array_equal(env.sim.data.qpos.numpy(), there.qpos)
        height = env.sim.scene["robot"].data.root_link_pos_w[:, 2]
        assert bool((height > 0.2).all())
        assert env.sim.time[0] == pytest.approx(25 * env.step_dt)
        # A reset of one world is handed over; the other goes on.
        before = env.sim.data.qpos.clone()
        env.reset(env_ids=[1])
        env.step(idle)
        assert other.read([1]).qpos[0, :2] == pytest.approx(
            env.sim.data.qpos[1, :2].numpy()
        )
        assert torch.allclose(env.sim.data.qpos[0], before[0], atol=0.05)
        assert not env.sim.diverged.any()
    env.reset(seed=4)
    env.step(idle)


@pytest.mark.parametrize("key", only("newton"))
def test_it_is_the_other_simulators_physics(env, key):
    """Newton's MuJoCo solver is MuJoCo's: a run there is nearly the native one."""
    tracks = []
    for borrowed in (False, True):
        env.reset(seed=9)
        idle = torch.zeros(2, env.action_dim)
        if borrowed:
            with borrowed_stepper(env, key):
                for _ in range(10):
                    env.step(idle)
        else:
            for _ in range(10):
                env.step(idle)
        tracks.append(env.sim.data.qpos.clone())
    apart = (tracks[0] - tracks[1]).abs().max()
    assert 0 < apart < 2e-3


def walked(env, other=None):
    """Where the worlds are after ten steps from one state."""
    env.reset(seed=9)
    idle = torch.zeros(2, env.action_dim)
    with nullcontext() if other is None else borrowed_stepper(env, other):
        for _ in range(10):
            env.step(idle)
    return env.sim.data.qpos.clone()


def test_another_gravity_there_is_felt_here(env):
    other = make("looped", env.cfg.scene, num_envs=2)
    here = walked(env)
    assert torch.allclose(walked(env, other), here, rtol=0, atol=1e-7)
    other.own_model.opt.gravity[:] = (0.0, 0.0, 4.0)
    lifted = walked(env, other)
    assert bool((lifted[:, 2] > here[:, 2] + 0.02).all())
    assert torch.equal(walked(env), here)  # its own physics again


def test_a_world_that_cannot_be_advanced_has_diverged(env):
    env.reset(seed=5)
    idle = torch.zeros(2, env.action_dim)
    with borrowed_stepper(env, "looped"):
        env.step(idle)
        env.sim.data.qvel[1, 7] = 2e9
        count = env.divergence.count
        _, _, terminated, _, _ = env.step(idle)
        assert terminated.tolist() == [False, True]
        assert env.sim.diverged.tolist() == [False, True]
        assert env.divergence.count == count + 1
        assert env.sim.data.qvel[1, 7] == 2e9  # what it had before
        assert env.sim.time.tolist() == pytest.approx([2 * env.step_dt, env.step_dt])
        env.reset(env_ids=[1])
        env.step(idle)
        assert not env.sim.diverged.any()
        assert env.sim.time[1] == pytest.approx(env.step_dt)


def test_an_interrupted_step_has_not_happened(env, monkeypatch):
    other = make("looped", env.cfg.scene, num_envs=2)
    action = torch.full((2, env.action_dim), 0.3)

    def interrupted(n, ctrl, ids):
        advance(n, ctrl, ids[:1])
        raise KeyboardInterrupt

    advance = other.advance
    tracks = []
    for break_off in (False, True):
        env.reset(seed=6)
        with borrowed_stepper(env, other):
            env.step(action)
            if break_off:
                before = env.snapshot()
                with monkeypatch.context() as patched:
                    patched.setattr(other, "advance", interrupted)
                    with pytest.raises(KeyboardInterrupt):
                        env.step(-action)
                assert not len(diff(env.snapshot(), before))
            env.step(action)
        tracks.append(env.sim.data.qpos.clone())
    assert torch.allclose(*tracks, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"engine": "warp"}, {"integrator": RK4()}],
    ids=["warp", "integrator"],
)
def test_only_mujocos_own_stepper_on_native_is_replaced(options):
    cfg = tasks.make_cfg("Cartpole-Balance")
    env = Env(cfg, num_envs=2, auto_reset=False, **options)
    with (
        raises(InvalidInputError, name="engine"),
        borrowed_stepper(env, "looped"),
    ):
        pass


@pytest.mark.parametrize("key", WALKS[:1])
def test_figures_of_a_policy_in_another_simulator(env, key, tmp_path):
    size = (env.action_dim, env.observation_dims["policy"])
    policy = OnnxPolicy(write_policy(tmp_path / "a.onnx", env, np.zeros(size)), env)
    with borrowed_stepper(env, key):
        found = evaluate(env, policy, seconds=0.5)
    assert found.failures == 0
    assert found.seconds == pytest.approx(0.5)


@pytest.mark.parametrize("key", OTHERS)
def test_worlds_must_be_as_many(env, key):
    other = make(key, env.cfg.scene, num_envs=3)
    with (
        raises(InvalidInputError, name="num_envs"),
        borrowed_stepper(env, other),
    ):
        pass


@pytest.mark.parametrize("key", [None, *WALKS[:1]])
def test_the_command_plays_an_onnx_file(env, key, tmp_path, capsys):
    size = (env.action_dim, env.observation_dims["policy"])
    path = write_policy(tmp_path / "a.onnx", env, np.zeros(size))
    args = ["play", "Quadruped-Velocity", str(path), "--envs", "1"]
    args += ["--seconds", "0.2", "--json"] + (["--in", key] if key else [])
    assert cli.main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failures"] == 0
    assert found["num_envs"] == 1
    alone = [args[0], *args[2:]]  # the file knows its task
    assert cli.main(alone) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert cli.main(["play", "Quadruped-Velocity", "--seconds", "0.2"]) == 1
    assert "name the policy to play" in capsys.readouterr().err
    assert cli.main(["play", "Arm-Reach", str(path), "--seconds", "0.2"]) == 1
    assert "trained for 'Quadruped-Velocity'" in capsys.readouterr().err
