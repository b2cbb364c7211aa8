"""Policies that see pictures: training, resume, play and export."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime
import pytest
import torch
from rsl_rl.models import MLPModel
from tests.raised import raises

from simstate import InvalidInputError, SimStateError
from simstate.env import Env, TrainCfg, tasks
from simstate.interop.picture_network import PictureNetwork
from simstate.interop.rsl_rl import RslRlVecEnv, grouped, runner_cfg
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.evaluate import evaluate
from simstate.train.onnx_export import export_onnx
from simstate.train.onnx_policy import OnnxPolicy
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun

TASKS = ("Cartpole-Pixels", "Arm-Reach-Pixels")


def run_cfg(task: str) -> RunCfg:
    train = dataclasses.replace(
        tasks.make_train_cfg(task), num_envs=6, steps_per_env=5, iterations=4
    )
    return RunCfg(task=task, train=train, seed=3)


@pytest.fixture(scope="module", params=TASKS)
def trained(request, tmp_path_factory):
    """The folder of a run after four updates, and its task."""
    folder = tmp_path_factory.mktemp("run")
    run = TrainingRun(run_cfg(request.param), folder)
    run.learn(4)
    return folder, request.param, run


def weights(run: TrainingRun) -> dict[str, torch.Tensor]:
    saved = run.algorithm.save()
    return {
        f"{part}/{name}": value
        for part in ("actor_state_dict", "critic_state_dict")
        for name, value in saved[part].items()
    }


def test_a_resumed_run_has_the_same_weights(trained, tmp_path):
    _, task, whole = trained
    first = TrainingRun(run_cfg(task), tmp_path)
    begin = {name: value.clone() for name, value in weights(first).items()}
    first.learn(2)
    again = TrainingRun.resume(tmp_path)
    assert again.iteration == 2
    again.learn(4)
    want, found = weights(whole), weights(again)
    assert want.keys() == found.keys()
    assert all(torch.equal(want[name], found[name]) for name in want)
    convolutions = [name for name in want if "cnns" in name]
    assert convolutions
    assert all(not torch.equal(want[name], begin[name]) for name in convolutions)


def test_the_actor_sees_pictures_and_the_critic_the_state(trained):
    _, _, run = trained
    assert isinstance(run.algorithm.actor, PictureNetwork)
    assert type(run.algorithm.critic) is MLPModel
    stored = run.algorithm.storage.observations
    assert {x.dtype for x in stored.values() if x.ndim == 5} == {torch.uint8}


def test_a_policy_is_played_and_exported(trained, tmp_path):
    folder, task, _ = trained
    env = Env(tasks.make_cfg(task), num_envs=4, auto_reset=False, seed=5)
    policy = Policy(env, read_checkpoint(find_checkpoint(folder)))
    path = tmp_path / "policy.onnx"
    export_onnx(policy, env, path)
    exported = OnnxPolicy(path, env)
    seen = env.observations
    for _ in range(5):
        expected = policy(seen)
        assert (exported(seen) - expected).abs().max() < 1e-5
        seen, *_ = env.step(expected)
    assert expected.std(0).min() > 1e-5  # worlds look different
    names = {x.name: x.type for x in onnxruntime.InferenceSession(path).get_inputs()}
    pictures = {k for k, kind in names.items() if kind == "tensor(uint8)"}
    want = {"Cartpole-Pixels": {"policy"}}
    assert pictures == want.get(task, {"policy/front", "policy/above"})
    assert ("obs" in names) == (task == "Arm-Reach-Pixels")
    assert evaluate(env, exported, 0.4).num_envs == 4
    env = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=2)
    with raises(InvalidInputError, name="pictures"):
        OnnxPolicy(path, env)


def test_bytes_are_centred_and_channels_come_first():
    env = Env(tasks.make_cfg("Cartpole-Pixels"), num_envs=3)
    settings = runner_cfg(tasks.make_train_cfg("Cartpole-Pixels"), env)
    actor = {k: v for k, v in settings["actor"].items() if k != "class_name"}
    seen = grouped(env.observations, 3)
    assert torch.equal(seen["policy"], env.observations["policy"].movedim(-1, 1))
    network = PictureNetwork(seen, settings["obs_groups"], "actor", 1, **actor)
    layer = network.cnns["policy"][0]
    bytes_ = seen["policy"].double().numpy()
    mean, spread = (f(bytes_, (2, 3), keepdims=True) for f in (np.mean, np.std))
    scaled = torch.from_numpy((bytes_ - mean) / (spread + 1.0))
    by_hand = torch.nn.functional.conv2d(
        scaled, layer.weight.double(), layer.bias.double(),
        stride=layer.stride,
    )  # fmt: skip
    found = []
    layer.register_forward_hook(lambda module, args, out: found.append(out))
    network(seen)
    assert (found[0] - by_hand).abs().max() < 1e-5
    assert RslRlVecEnv(env).get_observations()["policy"].dtype == torch.uint8


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "network"),
        ({"network": "transformer"}, "transformer"),
        ({"network": "cnn", "conv_strides": (2,)}, "conv_strides"),
        ({"network": "cnn", "conv_kernels": (0, 3)}, "conv_kernels"),
        ({"network": "cnn", "conv_kernels": (24, 3)}, "conv_kernels"),
    ],
)
def test_bad_networks_are_refused(changes, name):
    env = Env(tasks.make_cfg("Cartpole-Pixels"), num_envs=1)
    with raises(SimStateError, name=name):
        runner_cfg(TrainCfg(**changes), env)
