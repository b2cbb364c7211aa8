"""Settings of rsl-rl's classes from a TrainCfg, its distribution, and its pictures."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rsl_rl.modules import CNN
from tensordict import TensorDict

from simstate.base.errors import InvalidInputError, SimStateError, UnknownNameError
from simstate.env.train_cfg import TrainCfg
from simstate.interop.picture_network import (
    ExportedNetwork,
    PictureCNN,
    PictureNetwork,
)
from simstate.interop.rsl_rl import grouped, policy_part, runner_cfg
from simstate.interop.squashed_gaussian import SquashedGaussian

NUMBERS = {
    "steps_per_env": 20, "hidden_sizes": (12, 7), "activation": "relu",
    "learning_rate": 2e-3, "desired_kl": 0.03, "entropy_coef": 0.007, "gamma": 0.97,
    "lam": 0.91, "clip_param": 0.3, "num_learning_epochs": 6, "num_mini_batches": 3,
    "value_loss_coef": 0.8, "max_grad_norm": 0.6, "init_noise_std": 0.4,
}  # fmt: skip


def worlds(**groups) -> SimpleNamespace:
    """An environment with observations of these shapes."""

    def spec(shape):
        return SimpleNamespace(shape=shape)

    specs = {
        name: {k: spec(v) for k, v in shape.items()}
        if isinstance(shape, dict)
        else spec(shape)
        for name, shape in groups.items()
    }
    return SimpleNamespace(observation_specs=specs)


def settings(groups, **changes):
    return runner_cfg(TrainCfg(**{**NUMBERS, **changes}), worlds(**groups))


MLP = {
    "class_name": "MLPModel", "hidden_dims": [12, 7], "activation": "relu",
    "obs_normalization": True,
}  # fmt: skip
PPO = {
    "class_name": "PPO", "learning_rate": 2e-3, "schedule": "adaptive",
    "desired_kl": 0.03, "num_learning_epochs": 6, "num_mini_batches": 3,
    "clip_param": 0.3, "gamma": 0.97, "lam": 0.91, "value_loss_coef": 0.8,
    "use_clipped_value_loss": True, "entropy_coef": 0.007, "max_grad_norm": 0.6,
}  # fmt: skip
NOISE = {"class_name": "GaussianDistribution", "init_std": 0.4, "std_type": "scalar"}


def test_all_settings_of_ppo():
    groups = {"policy": (5,), "critic": {"a": (2,), "b": (3,)}}
    assert settings(groups) == {
        "num_steps_per_env": 20, "save_interval": 50, "logger": "tensorboard",
        "obs_groups": {"actor": ["policy"], "critic": ["critic/a", "critic/b"]},
        "actor": {**MLP, "distribution_cfg": NOISE}, "critic": MLP, "algorithm": PPO,
    }  # fmt: skip
    fixed = settings(
        {"policy": (5,)}, desired_kl=None, clip_value_loss=False, noise_std_type="log",
        critic_hidden_sizes=(9,), normalize_observations=False,
    )  # fmt: skip
    assert fixed["algorithm"] == {
        **PPO, "schedule": "fixed", "desired_kl": None, "use_clipped_value_loss": False
    }  # fmt: skip
    assert fixed["obs_groups"]["critic"] == ["policy"]
    plain = {**MLP, "obs_normalization": False}
    assert fixed["critic"] == {**plain, "hidden_dims": [9]}
    noise = {**NOISE, "std_type": "log"}
    assert fixed["actor"] == {**plain, "distribution_cfg": noise}


def test_settings_of_recurrent_networks_and_of_pictures():
    found = settings({"policy": (5,)}, network="lstm", rnn_size=11, rnn_layers=2)
    memory = {"class_name": "RNNModel", "rnn_type": "lstm", "rnn_hidden_dim": 11,
              "rnn_num_layers": 2}  # fmt: skip
    assert found["critic"] == {**MLP, **memory}
    conv = {"conv_channels": (4, 5), "conv_kernels": (3, 2), "conv_strides": (2, 1)}
    cnn = {"output_channels": [4, 5], "kernel_size": [3, 2], "stride": [2, 1],
           "activation": "relu"}  # fmt: skip
    groups = {
        "policy": {"eye": (36, 24, 3), "pose": (2,)},
        "critic": {"eye": (36, 24, 3)},
    }
    found = settings(groups, network="cnn", **conv)
    seen = {**MLP, "class_name": PictureNetwork, "cnn_cfg": cnn}
    assert found["actor"] == {**seen, "distribution_cfg": NOISE}
    assert found["critic"] == {**seen, "obs_normalization": False}
    assert found["obs_groups"] == {
        "actor": ["policy/eye", "policy/pose"], "critic": ["critic/eye"]
    }  # fmt: skip
    without = settings(groups, network="cnn", normalize_observations=False)
    assert without["actor"]["obs_normalization"] is False


def test_settings_of_sac_and_of_distillation():
    found = settings({"policy": (5,)}, algorithm="sac", action_limit=2.5)
    assert found["actor"]["distribution_cfg"] == {
        "class_name": SquashedGaussian, "limit": 2.5, "init_std": 0.4,
        "std_range": (0.01, 5.0),
    }  # fmt: skip
    for steps, length in ((20, 10), (15, 15), (16, 8), (17, 1), (30, 15), (1, 1)):
        found = settings(
            {"policy": (5,)}, algorithm="distillation", steps_per_env=steps
        )
        assert found["algorithm"] == {
            "class_name": "Distillation", "learning_rate": 2e-3,
            "num_learning_epochs": 6, "gradient_length": length, "max_grad_norm": 0.6,
        }  # fmt: skip
        assert found["obs_groups"] == {"student": ["policy"]}
        assert "critic" not in found
    assert policy_part(TrainCfg(algorithm="distillation")) == "student"
    assert policy_part(TrainCfg(algorithm="sac")) == "actor"


def test_a_teacher_has_its_own_settings_and_observations():
    student = TrainCfg(**NUMBERS, algorithm="distillation", actor_group="eyes")
    teacher = TrainCfg(hidden_sizes=(31,), activation="tanh")
    env = worlds(policy=(5,), eyes=(3,))
    found = runner_cfg(student, env, teacher)
    assert found["obs_groups"] == {"student": ["eyes"], "teacher": ["policy"]}
    assert found["teacher"]["hidden_dims"] == [31]
    assert found["student"]["hidden_dims"] == [12, 7]
    again = TrainCfg(algorithm="distillation", hidden_sizes=(31,))
    assert runner_cfg(student, env, again)["teacher"]["hidden_dims"] == [31]
    with pytest.raises(InvalidInputError) as error:
        runner_cfg(student, env, TrainCfg(network="gru"))
    assert error.value.name == "teacher"


def test_random_network_distillation_sees_its_group_or_the_critics():
    wanted = {
        "weight": 0.3, "num_outputs": 16, "predictor_hidden_dims": [12, 7],
        "target_hidden_dims": [12, 7], "activation": "relu",
        "state_normalization": True, "reward_normalization": True,
    }  # fmt: skip
    own = settings({"policy": (5,), "rnd": {"a": (2,), "b": (1,)}}, rnd_weight=0.3)
    assert own["obs_groups"]["rnd_state"] == ["rnd/a", "rnd/b"]
    assert own["algorithm"] == {**PPO, "rnd_cfg": wanted}
    theirs = settings({"policy": (5,), "critic": (4,)}, rnd_weight=0.3)
    assert theirs["obs_groups"]["rnd_state"] == ["critic"]
    assert "rnd_state" not in settings({"policy": (5,)})["obs_groups"]
    with pytest.raises(InvalidInputError) as error:
        settings({"policy": (5,), "rnd": {"a": (2, 2, 3)}}, rnd_weight=0.3)
    assert error.value.name == "rnd_weight"


@pytest.mark.parametrize(
    ("groups", "changes", "name"),
    [
        ({"policy": (5,)}, {"activation": "cosine"}, "activation"),
        ({"policy": (5,)}, {"actor_group": "polic"}, "polic"),
        ({"policy": (4, 4, 3)}, {}, "network"),
        ({"policy": (4, 4, 3)}, {"network": "gru"}, "network"),
        ({"policy": (4, 4)}, {"network": "cnn"}, ""),
    ],
)
def test_observations_that_no_network_takes(groups, changes, name):
    with pytest.raises(SimStateError) as error:
        settings(groups, **changes)
    assert error.value.name == name


def test_changes_of_rsl_rls_settings():
    changes = {
        "actor": {"distribution_cfg": {"std_type": "log"}, "hidden_dims": [3]},
        "critic": {"class_name": "RNNModel", "rnn_type": "gru"},
        "algorithm": {"optimizer": "adamw", "rnd_cfg": {"num_outputs": 4}},
    }
    found = settings({"policy": (5,)}, rsl_rl=changes, rnd_weight=0.2)
    noise = {**NOISE, "std_type": "log"}
    assert found["actor"] == {**MLP, "hidden_dims": [3], "distribution_cfg": noise}
    assert found["critic"] == {**MLP, "class_name": "RNNModel", "rnn_type": "gru"}
    algorithm = found["algorithm"]
    assert algorithm["optimizer"] == "adamw"
    assert algorithm["rnd_cfg"]["num_outputs"] == 4
    assert algorithm["rnd_cfg"]["weight"] == 0.2
    beta = {"actor": {"distribution_cfg": {"class_name": "BetaDistribution"}}}
    found = settings({"policy": (5,)}, rsl_rl=beta)["actor"]["distribution_cfg"]
    assert found["class_name"] == "BetaDistribution"
    assert "std_type" not in found  # which this class does not have
    pictures = settings(
        {"policy": (24, 36, 3)}, network="cnn",
        rsl_rl={"actor": {"cnn_cfg": {"padding": "zeros"}, "activation": "tanh"}},
    )["actor"]  # fmt: skip
    assert pictures["cnn_cfg"]["padding"] == "zeros"
    assert pictures["cnn_cfg"]["output_channels"] == [16, 32]
    assert pictures["class_name"] is PictureNetwork
    assert pictures["activation"] == "tanh"


@pytest.mark.parametrize(
    ("changes", "kind", "name"),
    [
        ({"actors": {}}, UnknownNameError, "actors"),
        ({"actor": {"hidden_dim": [3]}}, UnknownNameError, "hidden_dim"),
        ({"actor": {"class_name": "os.system"}}, UnknownNameError, "os.system"),
        ({"algorithm": {"gamma": 0.5}}, InvalidInputError, "rsl_rl"),
        ({"algorithm": {"class_name": "PPO"}}, InvalidInputError, "rsl_rl"),
        ({"algorithm": {"rnd_cfg": {}}}, InvalidInputError, "rsl_rl"),
        ({"actor": {"cnn_cfg": {}}}, UnknownNameError, "cnn_cfg"),
        ({"actor": {"distribution_cfg": {"std": 1}}}, UnknownNameError, "std"),
        ({"actor": {"distribution_cfg": {"args": 1}}}, UnknownNameError, "args"),
        ({"actor": {"obs_set": "x"}}, UnknownNameError, "obs_set"),
    ],
)
def test_changes_that_are_rejected(changes, kind, name):
    with pytest.raises(kind) as error:
        settings({"policy": (5,)}, rsl_rl=changes)
    assert error.value.name == name


def test_the_gradient_length_of_distillation_may_be_changed():
    found = settings(
        {"policy": (5,)}, algorithm="distillation",
        rsl_rl={"algorithm": {"gradient_length": 5}},
    )  # fmt: skip
    assert found["algorithm"]["gradient_length"] == 5


def test_observations_have_channels_first():
    picture = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    pose = torch.arange(6.0).reshape(2, 3)
    found = grouped({"policy": {"eye": picture, "pose": pose}}, 2)
    assert found.batch_size == torch.Size([2])
    assert found["policy/eye"].shape == (2, 5, 3, 4)
    assert found["policy/eye"].is_contiguous()
    np.testing.assert_array_equal(
        found["policy/eye"].numpy(), np.moveaxis(picture.numpy(), 3, 1)
    )
    assert torch.equal(found["policy/pose"], pose)


# Distribution.


@pytest.fixture
def squashed():
    made = SquashedGaussian(3, 2.5, init_std=0.4)
    outputs = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(1))
    outputs.requires_grad_()
    made.update(outputs)
    return made, outputs


def test_actions_are_squashed_and_have_the_density_of_tanh(squashed):
    made, outputs = squashed
    torch.manual_seed(3)
    actions, log_prob = made.draw()
    assert actions.shape == (6, 3)
    assert float(actions.detach().abs().max()) < 2.5
    normal = torch.distributions.Normal(made.mean.double(), made.std.double())
    # By torch's own transform, at the same values.
    z = (actions.detach().double() / 2.5).atanh()
    transform = torch.distributions.TanhTransform()
    tanh = torch.distributions.TransformedDistribution(normal, transform)
    wanted = tanh.log_prob(z.tanh()).sum(-1)
    torch.testing.assert_close(log_prob.double(), wanted, rtol=1e-3, atol=1e-3)
    (gradient,) = torch.autograd.grad(actions.sum(), outputs)
    assert bool((gradient != 0.0).any())
    torch.manual_seed(3)
    sample = made.sample()
    assert torch.equal(sample, actions.detach())
    assert not sample.requires_grad


def test_the_deterministic_action_is_that_of_the_mean(squashed):
    made, outputs = squashed
    wanted = 2.5 * np.tanh(outputs.detach().numpy()[:, 0])
    found = made.deterministic_output(outputs).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    module = made.as_deterministic_output_module()
    np.testing.assert_allclose(module(outputs).detach().numpy(), wanted, rtol=1e-6)


# Pictures.

SIZES = {"output_channels": [2, 3], "kernel_size": [3, 2], "stride": [2, 1]}


def test_bytes_are_normalised_over_each_picture():
    torch.manual_seed(0)
    options = {"input_dim": (9, 8), "input_channels": 3, **SIZES}
    ours, theirs = PictureCNN(**options), CNN(**options)
    theirs.load_state_dict(ours.state_dict())
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 200, (4, 3, 9, 8), dtype=np.uint8)
    plain = pictures.astype(np.float32)
    plain -= plain.mean((2, 3), keepdims=True)
    plain /= np.sqrt((plain**2).mean((2, 3), keepdims=True)) + 1.0
    torch.testing.assert_close(
        ours(torch.from_numpy(pictures)), theirs(torch.from_numpy(plain))
    )
    fractions = torch.rand(4, 3, 9, 8)
    torch.testing.assert_close(ours(fractions), theirs(fractions))


@pytest.mark.parametrize("has_columns", [True, False])
def test_an_exported_network_is_the_network(has_columns):
    torch.manual_seed(0)
    eye = torch.randint(0, 255, (4, 3, 9, 8), dtype=torch.uint8)
    other = torch.rand(4, 1, 9, 8)
    seen = {"eye": eye, "depth": other}
    if has_columns:
        seen["pose"] = torch.randn(4, 5)
    observed = TensorDict(seen, batch_size=[4])
    network = PictureNetwork(
        observed, {"actor": list(seen)}, "actor", 2, cnn_cfg=SIZES, hidden_dims=[6],
        activation="tanh", obs_normalization=has_columns,
        distribution_cfg={"class_name": "GaussianDistribution", "init_std": 1.0},
    )  # fmt: skip
    if has_columns:
        network.obs_normalizer.train()
        network.obs_normalizer.update(torch.randn(50, 5) * 3.0 + 1.0)
    network.eval()
    wanted = network(observed)
    exported = network.as_onnx().eval()
    assert isinstance(exported, ExportedNetwork)
    assert exported.has_columns is has_columns
    inputs = [eye.permute(0, 2, 3, 1), other.permute(0, 2, 3, 1)]
    if has_columns:
        inputs = [seen["pose"], *inputs]
    torch.testing.assert_close(exported(*inputs), wanted)
