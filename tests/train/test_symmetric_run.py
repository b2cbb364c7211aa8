"""Runs with symmetric networks, other physics in training, and a decreasing KL."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ModelError, SnapshotError
from simstate.env import Env, TrainCfg, tasks
from simstate.train.algorithm import make_algorithm
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.onnx_export import export_onnx
from simstate.train.run_cfg import OutputCfg, RunCfg
from simstate.train.training_run import TrainingRun

TASK = "Quadruped-Velocity"
FEW = {"num_envs": 12, "iterations": 4, "steps_per_env": 6, "hidden_sizes": (16, 8)}


def settings(**changes: object) -> RunCfg:
    """The shipped settings, which have all of it, for a short run."""
    train = dataclasses.replace(tasks.make_train_cfg(TASK), **{**FEW, **changes})
    assert train.symmetric or changes
    return RunCfg(task=TASK, train=train, seed=5, output=OutputCfg(save_every=2))


def tensors(run_dir: Path) -> dict[str, torch.Tensor]:
    saved = read_checkpoint(find_checkpoint(run_dir))["algorithm"]
    moments = saved["optimizer_state_dict"]["state"]
    return {
        **{f"actor {k}": v for k, v in saved["actor_state_dict"].items()},
        **{f"critic {k}": v for k, v in saved["critic_state_dict"].items()},
        **{f"mean {k}": v["exp_avg"] for k, v in moments.items()},
        **{f"square {k}": v["exp_avg_sq"] for k, v in moments.items()},
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    TrainingRun(settings(), folder).learn(4)
    return folder


def test_a_resumed_run_has_the_same_bits(whole, tmp_path):
    first = TrainingRun(settings(), tmp_path)
    first.learn(4, stop=lambda: first.iteration == 3)
    assert find_checkpoint(tmp_path).name == "model_3.npz"
    run = TrainingRun.resume(tmp_path)
    # The target follows the run's own iterations, not those of the call.
    assert run.learn(4)
    expected, found = tensors(whole), tensors(tmp_path)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert torch.equal(value, found[name]), name


def test_the_policy_of_a_mirror_image_is_the_mirror_image(whole, tmp_path):
    cfg = tasks.make_cfg(TASK)
    env = Env(cfg, 6, seed=2)
    content = read_checkpoint(find_checkpoint(whole))
    policy, symmetry = Policy(env, content), env.symmetry()
    seen = {k: torch.randn(v.shape) for k, v in env.observations.items()}
    image = {k: symmetry.observations[k](v) for k, v in seen.items()}
    action = policy(seen)
    assert action.abs().max() > 1e-4
    torch.testing.assert_close(
        policy(image), symmetry.action(action), rtol=1e-5, atol=1e-7
    )
    # Exactly: the weights are equal to the last bit, and the export is ordinary.
    state = content["algorithm"]["actor_state_dict"]
    hidden = state["mlp.2.weight"]
    assert torch.equal(hidden[4:], hidden[:4].roll(8, 1))
    mean, index = state["obs_normalizer._mean"][0], symmetry.observations["policy"]
    assert torch.equal(mean, index(mean))
    export_onnx(policy, env, tmp_path / "policy.onnx")
    import onnx

    graph = onnx.load(tmp_path / "policy.onnx").graph
    kinds = {node.op_type for node in graph.node}
    assert kinds <= {"Sub", "Add", "Div", "Gemm", "Elu", "MatMul", "Identity"}


def test_an_ordinary_run_is_not_symmetric(tmp_path):
    run = TrainingRun(settings(symmetric=False), tmp_path)
    run.learn(1)
    weight = run.algorithm.actor.mlp[2].weight
    assert not torch.allclose(weight[4:], weight[:4].roll(8, 1), atol=1e-3)


@pytest.mark.parametrize("kind", [{"symmetric": False}, {"activation": "tanh"}])
def test_a_checkpoint_of_another_kind_is_refused_with_the_reason(whole, kind):
    content = read_checkpoint(find_checkpoint(whole))
    (name,) = kind
    with raises(SnapshotError, name=name):
        TrainingRun(settings(**kind), whole, content)


def test_asymmetric_networks_do_not_start_a_symmetric_run(tmp_path):
    TrainingRun(settings(symmetric=False), tmp_path / "ordinary").learn(1)
    cfg = dataclasses.replace(settings(), start_from=str(tmp_path / "ordinary"))
    with raises(SnapshotError, name="symmetric"):
        TrainingRun(cfg, tmp_path / "new")


def test_symmetric_networks_start_another_run(whole, tmp_path):
    cfg = dataclasses.replace(settings(), start_from=str(whole))
    run = TrainingRun(cfg, tmp_path)
    expected = tensors(whole)["actor mlp.2.weight"]
    assert torch.equal(run.algorithm.actor.mlp[2].weight, expected)


def test_training_alone_has_other_physics(tmp_path, whole):
    run = TrainingRun(settings(), tmp_path)
    options = run.example.sim.model.opt
    assert options.solver == mujoco.mjtSolver.mjSOL_PGS
    assert options.iterations == 4
    played = Env(RunCfg.of(read_checkpoint(find_checkpoint(whole))).env_cfg(), 1)
    assert played.sim.model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON


def test_the_target_decreases_over_the_second_half():
    cfg = TrainCfg(iterations=100, desired_kl=0.05, final_kl=0.01)
    found = [cfg.kl_target(k) for k in (0, 50, 75, 100, 300)]
    assert found == pytest.approx([0.05, 0.05, 0.03, 0.01, 0.01])
    assert TrainCfg(desired_kl=None).kl_target(3) is None


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"hidden_sizes": (16, 7)}, "hidden_sizes"),
        ({"activation": "gelu"}, "symmetric"),
        ({"final_kl": 0.01, "desired_kl": None}, "final_kl"),
        ({"physics_options": {"timestep": 0.02}}, "physics_options"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, name, tmp_path):
    with raises(InvalidInputError, name=name):
        TrainingRun(settings(**changes), tmp_path)


def test_unknown_physics_is_refused(tmp_path):
    with raises((InvalidInputError, ModelError, KeyError), name="solvr"):
        TrainingRun(settings(physics_options={"solvr": "PGS"}), tmp_path)


def test_orthogonal_weights_have_small_first_actions():
    cfg = dataclasses.replace(settings(symmetric=False).train, hidden_sizes=(16, 8))
    from simstate.interop.rsl_rl import RslRlVecEnv

    env = Env(tasks.make_cfg(TASK), 3)
    found = make_algorithm(RslRlVecEnv(env), cfg, env, "cpu").actor.mlp
    hidden, last = found[2].weight, found[4].weight
    torch.testing.assert_close(hidden @ hidden.T, 2.0 * torch.eye(8))
    torch.testing.assert_close(last.T @ last, 1e-4 * torch.eye(8), atol=1e-7, rtol=1e-4)
    assert found[0].bias.abs().max() == 0.0


def test_the_number_of_threads_changes_no_bit(tmp_path):
    states = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            run = TrainingRun(settings(hidden_sizes=(128, 64)), tmp_path / str(threads))
            run.learn(1)
        finally:
            torch.set_num_threads(before)
        states.append(run.algorithm.actor.state_dict())
    for name, value in states[0].items():
        assert torch.equal(value, states[1][name]), name
