"""Symmetric networks by their outputs, and exported networks that are written here."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import nn

from simstate.base.errors import InvalidInputError, SnapshotError
from simstate.entity.mirror import SignedPermutation
from simstate.train.onnx_policy import OnnxPolicy, metadata_of, task_of
from simstate.train.symmetric_networks import SymmetricNetworks

SEEN = SignedPermutation((1, 0, 2, 3), (1.0, 1.0, -1.0, 1.0))
PRIVILEGED = SignedPermutation((0, 2, 1), (-1.0, 1.0, 1.0))
ACTION = SignedPermutation((1, 0, 2), (-1.0, -1.0, 1.0))


def network(kind: str, inputs: int, outputs: int, **more) -> MLPModel:
    seen = TensorDict({kind: torch.zeros(2, inputs)}, batch_size=[2])
    return MLPModel(
        seen, {kind: [kind]}, kind, outputs, hidden_dims=[8, 6], activation="tanh",
        obs_normalization=True, **more,
    )  # fmt: skip


@pytest.fixture
def made():
    torch.manual_seed(4)
    noise = {"class_name": "GaussianDistribution", "init_std": 0.5}
    actor = network("actor", 4, 3, distribution_cfg=noise)
    critic = network("critic", 3, 1)
    return actor, critic, SymmetricNetworks(actor, critic, SEEN, PRIVILEGED, ACTION)


def flat(model: MLPModel) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_the_mirror_image_of_an_observation_has_the_mirrored_action(made):
    actor, critic, networks = made
    seen, privileged = torch.randn(9, 4), torch.randn(9, 3)
    with pytest.raises(SnapshotError):
        networks.check("random weights")
    networks.initialise()
    networks.check("symmetric weights")
    torch.testing.assert_close(actor.mlp(SEEN(seen)), ACTION(actor.mlp(seen)))
    torch.testing.assert_close(
        critic.mlp(PRIVILEGED(privileged)), critic.mlp(privileged)
    )
    assert float(actor.mlp(seen).std()) > 0.05


def test_weights_keep_their_size_when_they_are_made_symmetric(made):
    actor, _, networks = made
    layers = [x for x in actor.mlp if isinstance(x, nn.Linear)]
    before = [layer.weight.detach().clone() for layer in layers]
    networks.initialise()
    for layer, old in zip(layers[:-1], before[:-1], strict=True):
        half = len(old) // 2
        torch.testing.assert_close(layer.weight.detach()[:half], old[:half])
    # The last layer is a mean of two, times √2.
    index = torch.arange(6).roll(3)
    last = before[-1]
    mirrored = last[[1, 0, 2]][:, index] * torch.tensor([[-1.0], [-1.0], [1.0]])
    wanted = (last + mirrored) / np.sqrt(2.0)
    torch.testing.assert_close(layers[-1].weight.detach(), wanted)


@pytest.mark.parametrize("which", [0, 1])
def test_an_averaged_gradient_is_that_of_observations_and_mirror_images(made, which):
    actor, critic, networks = made
    networks.initialise()
    model = (actor, critic)[which]
    mirror, done = ((SEEN, ACTION), (PRIVILEGED, SignedPermutation.identity(1)))[which]
    seen = torch.randn(5, len(mirror))
    weights = torch.randn(5, len(done))

    def gradient(values, factors):
        model.zero_grad()
        (model.mlp(values) * factors).sum().backward()
        parts = [p.grad if p.grad is not None else torch.zeros_like(p)
                 for p in model.parameters()]  # fmt: skip
        return nn.utils.parameters_to_vector(parts).detach().clone()

    one = gradient(seen, weights)
    other = gradient(mirror(seen), done(weights))
    found = one.clone()
    networks.average(which, found)
    torch.testing.assert_close(found, (one + other) / 2.0, atol=1e-5, rtol=1e-4)


def test_normalisers_are_those_of_values_and_mirror_images(made):
    actor, _, networks = made
    networks.initialise()
    values = torch.randn(400, 4) * torch.tensor([1.0, 3.0, 2.0, 0.5]) + 0.7
    actor.obs_normalizer.train()
    actor.obs_normalizer.update(values)
    mean, variance = actor.obs_normalizer.mean, actor.obs_normalizer.std**2
    networks.project()
    # Moments of a mixture of the distribution and its mirror image.
    index, sign = list(SEEN.index), torch.tensor(SEEN.sign)
    other = mean[index] * sign
    middle = (mean + other) / 2
    second = (variance + mean**2 + variance[index] + other**2) / 2
    deviation = (second - middle**2).sqrt()
    torch.testing.assert_close(actor.obs_normalizer.mean, middle)
    torch.testing.assert_close(actor.obs_normalizer.std, deviation)


def test_weights_that_are_nearly_symmetric_are_projected(made):
    actor, _, networks = made
    networks.initialise()
    before = flat(actor)
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter += 1e-6 * torch.randn_like(parameter)
    networks.check("rounding")
    networks.project()
    after = flat(actor)
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0.0)
    networks.project()
    assert torch.equal(flat(actor), after)
    with torch.no_grad():
        next(iter(actor.mlp.parameters()))[0, 0] += 0.01
    with pytest.raises(SnapshotError):
        networks.check("altered")


def test_hidden_units_come_in_pairs():
    seen = TensorDict({"a": torch.zeros(2, 4)}, batch_size=[2])
    odd = MLPModel(seen, {"a": ["a"]}, "a", 3, hidden_dims=[7], activation="tanh")
    with pytest.raises(InvalidInputError) as error:
        SymmetricNetworks(odd, odd, SEEN, SEEN, ACTION)
    assert error.value.name == "hidden_sizes"


# Exported networks.

NAMES = ["a/x", "a/y", "b"]
MATRIX = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]], np.float32)


def write(path, memory=False, picture=None, **metadata):
    made = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["obs", "matrix"], ["now"])]
    inputs = [made("obs", TensorProto.FLOAT, [None, 3])]
    outputs = [made("actions", TensorProto.FLOAT, [None, 2])]
    constants = [numpy_helper.from_array(MATRIX, "matrix")]
    if memory:  # (1, n, 2), which adds up all that was returned
        inputs.append(made("h_in", TensorProto.FLOAT, [1, None, 2]))
        outputs.append(made("h_out", TensorProto.FLOAT, [1, None, 2]))
        axes = numpy_helper.from_array(np.array([0]), "axes")
        constants.append(axes)
        nodes += [
            helper.make_node("Squeeze", ["h_in", "axes"], ["before"]),
            helper.make_node("Add", ["now", "before"], ["actions"]),
            helper.make_node("Unsqueeze", ["actions", "axes"], ["h_out"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["now"], ["actions"]))
    if picture is not None:
        inputs.append(made("policy/eye", TensorProto.UINT8, [None, *picture]))
    graph = helper.make_graph(nodes, "policy", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    facts = {"task": "walk", "step_dt": 0.02, "observation_names": NAMES,
             "action_names": ["m", "n"], **metadata}  # fmt: skip
    kept = {k: json.dumps(v) for k, v in facts.items() if v is not None}
    helper.set_model_props(model, kept)
    onnx.save(model, path)
    return path


def worlds(names=NAMES, actions=("m", "n"), specs=None) -> SimpleNamespace:
    spec = SimpleNamespace(shape=(3,))
    return SimpleNamespace(
        observation_specs={"policy": specs or spec}, num_envs=4, step_dt=0.02,
        observation_names={"policy": list(names)}, action_names=list(actions),
        episode_length_buf=torch.tensor([3, 0, 5, 1]),
    )  # fmt: skip


def test_columns_are_matched_by_name(tmp_path):
    path = write(tmp_path / "a.onnx")
    seen = torch.arange(12.0).reshape(4, 3)
    plain = OnnxPolicy(path, worlds())
    assert plain.task == task_of(path) == metadata_of(path)["task"] == "walk"
    np.testing.assert_allclose(plain({"policy": seen}), seen.numpy() @ MATRIX)
    other = OnnxPolicy(path, worlds(["b", "a/x", "a/y"], ["n", "m"]))
    found = other({"policy": seen[:, [2, 0, 1]]})
    np.testing.assert_allclose(found, (seen.numpy() @ MATRIX)[:, ::-1])
    assert found.dtype == torch.float32


def test_the_memory_of_a_world_ends_with_its_episode(tmp_path):
    env = worlds()
    env.episode_length_buf = torch.zeros(4, dtype=torch.int64)
    policy = OnnxPolicy(write(tmp_path / "a.onnx", memory=True), env)
    total = np.zeros((4, 2))
    rng = np.random.default_rng(0)
    for lengths in ([0, 0, 0, 0], [1, 1, 1, 1], [2, 0, 2, 0], [3, 1, 3, 1]):
        env.episode_length_buf = torch.tensor(lengths)
        seen = rng.normal(size=(4, 3)).astype(np.float32)
        total[np.array(lengths) == 0] = 0.0
        total += seen @ MATRIX
        found = policy({"policy": torch.from_numpy(seen)})
        np.testing.assert_allclose(found, total, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "env",
    [
        worlds(["a/x", "a/y", "c"]), worlds(["a/x", "a/y"]), worlds([*NAMES, "c"]),
        worlds(actions=["m"]), worlds(actions=["m", "o"]),
    ],
)  # fmt: skip
def test_columns_of_another_environment_are_rejected(tmp_path, env):
    with pytest.raises(InvalidInputError):
        OnnxPolicy(write(tmp_path / "a.onnx"), env)


def test_rates_metadata_and_pictures_must_be_the_same(tmp_path):
    for wrong in ({"step_dt": 0.03}, {"task": None}, {"observation_names": None},
                  {"action_names": None}, {"step_dt": None}):  # fmt: skip
        with pytest.raises(InvalidInputError):
            OnnxPolicy(write(tmp_path / "a.onnx", **wrong), worlds())
    with pytest.raises(InvalidInputError):
        OnnxPolicy(write(tmp_path / "b.onnx", picture=(4, 6, 3)), worlds())
