"""Settings of a training: the limits of each, and those that exclude each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import SimStateError
from simstate.env.train_cfg import TrainCfg

ACCEPTED = {
    "algorithm": ("ppo", "sac", "distillation"),
    "num_envs": (1, 5000), "iterations": (1,), "steps_per_env": (1,),
    "num_learning_epochs": (1,), "num_mini_batches": (1,),
    "network": ("mlp", "cnn", "gru", "lstm"),
    "hidden_sizes": ((1,), (2**16, 3)), "critic_hidden_sizes": (None, (1,)),
    "rnn_size": (1, 2**12), "rnn_layers": (1, 16),
    "conv_channels": ((1, 2**12),), "conv_kernels": ((1, 2**12),),
    "conv_strides": ((1, 2**12),), "weight_init": ("default", "orthogonal"),
    "symmetric": (True, False), "init_noise_std": (1e-9,),
    "noise_std_type": ("scalar", "log"), "normalize_observations": (False,),
    "learning_rate": (1e-9,), "desired_kl": (None, 1e-9), "final_kl": (None, 1e-9),
    "entropy_coef": (-1.0, 0.0), "gamma": (0.0, 1.0), "lam": (0.0, 1.0),
    "clip_param": (1e-9,), "value_loss_coef": (0.0,), "clip_value_loss": (False,),
    "max_grad_norm": (1e-9,), "rnd_weight": (0.0, 2.0), "replay_size": (1,),
    "batch_size": (1,), "action_limit": (1e-9,), "patience": (None, 1),
    "physics_options": ({}, {"iterations": 4}),
    "training_settings": ({}, {"env.decimation": 2}), "rsl_rl": ({}, {"critic": {}}),
}  # fmt: skip
REJECTED = {
    "algorithm": ("trpo",), "num_envs": (0, 1.5), "iterations": (0,),
    "steps_per_env": (0,), "num_learning_epochs": (0,), "num_mini_batches": (0,),
    "network": ("transformer",), "hidden_sizes": ((), (0,), (2**16 + 1,), (4, 1.5)),
    "critic_hidden_sizes": ((), (0,)), "rnn_size": (0, 2**12 + 1),
    "rnn_layers": (0, 17), "conv_channels": ((1, 0), (4,), (2**12 + 1, 3)),
    "conv_kernels": ((1, 0), (4,), (4, 4, 4), (3, 2**12 + 1)),
    "conv_strides": ((0, 1), (4,), (1, 2**12 + 1)), "weight_init": ("zeros",),
    "symmetric": (1,), "init_noise_std": (0.0, -1.0), "noise_std_type": ("std",),
    "activation": (3,), "actor_group": (3,),
    "normalize_observations": ("yes",), "learning_rate": (0.0, float("nan")),
    "desired_kl": (0.0,), "final_kl": (0.0,), "entropy_coef": (float("inf"),),
    "gamma": (-0.01, 1.01), "lam": (-0.01, 1.01), "clip_param": (0.0,),
    "value_loss_coef": (-0.1,), "clip_value_loss": (1,), "max_grad_norm": (0.0,),
    "rnd_weight": (-0.1,), "replay_size": (0,), "batch_size": (0,),
    "action_limit": (0.0,), "patience": (0,), "physics_options": (3, {"timestep": 1}),
    "training_settings": (3, {"decimation": 2}, {"train.gamma": 1}, {3: 2}),
    "rsl_rl": (3,),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_values_that_are_accepted(name):
    for value in ACCEPTED[name]:
        TrainCfg(**{name: value}).check()


@pytest.mark.parametrize("name", REJECTED)
def test_values_that_are_rejected(name):
    for value in REJECTED[name]:
        cfg = TrainCfg(**{name: value})
        with pytest.raises((SimStateError, TypeError)):
            cfg.check()


@pytest.mark.parametrize(
    "name", ["hidden_sizes", "critic_hidden_sizes", "conv_channels", "conv_strides"]
)
def test_sizes_are_tuples_or_lists_which_json_has(name):
    for sizes in (np.array([4, 4]), torch.tensor([4, 4])):
        with raises(SimStateError, name=name):
            TrainCfg(**{name: sizes}).check()
    TrainCfg(**{name: [4, 4]}).check()


EXCLUDED = (
    ({"symmetric": True, "algorithm": "sac"}, "algorithm"),
    ({"symmetric": True, "algorithm": "distillation"}, "algorithm"),
    ({"symmetric": True, "network": "gru"}, "network"),
    ({"symmetric": True, "rnd_weight": 0.1}, "rnd_weight"),
    ({"rnd_weight": 0.1, "algorithm": "sac"}, "algorithm"),
    ({"rnd_weight": 0.1, "algorithm": "distillation"}, "algorithm"),
    ({"algorithm": "sac", "network": "cnn"}, "network"),
    ({"algorithm": "sac", "rsl_rl": {"critic": {}}}, "rsl_rl"),
    ({"algorithm": "sac", "weight_init": "orthogonal"}, "weight_init"),
    ({"final_kl": 0.1, "desired_kl": None}, "final_kl"),
    ({"network": "gru", "num_envs": 3, "num_mini_batches": 4}, "num_mini_batches"),
    ({"network": "lstm", "num_envs": 3, "num_mini_batches": 4}, "num_mini_batches"),
)


@pytest.mark.parametrize(("settings", "name"), EXCLUDED)
def test_settings_that_exclude_each_other(settings, name):
    with pytest.raises(SimStateError) as error:
        TrainCfg(**settings).check()
    assert error.value.name == name


def test_there_are_steps_for_each_mini_batch():
    TrainCfg(num_envs=2, steps_per_env=3, num_mini_batches=6).check()
    TrainCfg(network="gru", num_envs=4, num_mini_batches=4).check()
    TrainCfg(num_envs=3, num_mini_batches=4).check()
    with pytest.raises(SimStateError):
        TrainCfg(num_envs=2, steps_per_env=3, num_mini_batches=7).check()


def test_the_divergence_decreases_in_the_second_half():
    cfg = TrainCfg(iterations=40, desired_kl=0.08, final_kl=0.02)
    wanted = {0: 0.08, 7: 0.08, 20: 0.08, 25: 0.065, 30: 0.05, 40: 0.02, 90: 0.02}
    for iteration, value in wanted.items():
        assert cfg.kl_target(iteration) == pytest.approx(value)
    assert TrainCfg(desired_kl=0.08).kl_target(299) == 0.08
    assert TrainCfg(desired_kl=None).kl_target(299) is None


def test_networks_with_a_memory():
    recurrent = [kind for kind in ACCEPTED["network"]
                 if TrainCfg(network=kind).is_recurrent]  # fmt: skip
    assert recurrent == ["gru", "lstm"]
