"""rsl-rl's VecEnv on an Env, and its configuration from a TrainCfg.

env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=1024)
cfg = runner_cfg(tasks.make_train_cfg("Quadruped-Velocity"), env)
OnPolicyRunner(RslRlVecEnv(env), cfg, log_dir="runs/mine").learn(400)
"""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.utils import resolve_nn_activation
from tensordict import TensorDict
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.env import Env, TrainCfg
from simstate.env.groups import Observations, flat
from simstate.interop.picture_network import PictureNetwork
from simstate.interop.rsl_rl_changes import with_changes
from simstate.interop.squashed_gaussian import SquashedGaussian
from simstate.interop.trained_worlds import TrainedWorlds

SAVE_INTERVAL = 50
"""Updates between two checkpoints of rsl-rl's own runner."""


class RslRlVecEnv(VecEnv):
    """An Env behind rsl-rl's interface of environments."""

    def __init__(self, env: Env | TrainedWorlds) -> None:
        if not env.auto_reset:
            raise InvalidInputError(
                "rsl-rl requires worlds that reset themselves: create the Env with "
                "auto_reset=True.",
                name="auto_reset",
            )
        self.env = env
        self.num_envs = env.num_envs
        self.num_actions = env.action_dim
        self.max_episode_length = env.max_episode_length
        self.device = env.device
        self.cfg = env.cfg

    @property
    def unwrapped(self) -> Env | TrainedWorlds:
        """The Env itself, of which rsl-rl reads `step_dt`."""
        return self.env

    @property
    def episode_length_buf(self) -> Tensor:
        """Environment steps since the last reset; int64, shape (num_envs,)."""
        return self.env.episode_length_buf

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.env.episode_length_buf = steps

    def get_observations(self) -> TensorDict:
        """The latest observations, float32 by group."""
        return self._grouped(self.env.observations)

    def step(
        self, actions: Tensor
    ) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """Apply an action; return observations, reward, done and extras.

        Extras mark truncated episodes, whose value the runner estimates, unless the
        time limit is part of the task.
        """
        seen, reward, terminated, truncated, extras = self.env.step(actions)
        info = {k: extras[k] for k in ("log", "final_observation") if k in extras}
        if not self.env.cfg.is_finite_horizon:
            info["time_outs"] = truncated
        done = (terminated | truncated).to(torch.long)
        return self._grouped(seen), reward, done, info

    def _grouped(self, observations: Observations) -> TensorDict:
        return grouped(observations, self.num_envs)


def grouped(observations: Observations, num_envs: int) -> TensorDict:
    """Return observations in rsl-rl's form, by "group" or "group/term".

    Pictures have their channels first: (num_envs, C, H, W).
    """
    each = {
        name: values.permute(0, 3, 1, 2).contiguous() if values.ndim == 4 else values
        for name, values in flat(observations).items()
    }
    return TensorDict(each, batch_size=[num_envs])


def runner_cfg(
    cfg: TrainCfg, env: Env | TrainedWorlds, teacher: TrainCfg | None = None
) -> dict[str, Any]:
    """The configuration of rsl-rl's OnPolicyRunner, or DistillationRunner.

    The actor or student observes the group `cfg.actor_group`, the critic "critic" or,
    without one, the actor's. A teacher observes the group of its own settings.
    """
    cfg.check()
    try:
        resolve_nn_activation(cfg.activation)
    except ValueError as error:  # which names the known ones
        raise InvalidInputError(f"{error}.", name="activation") from error
    groups = env.observation_specs
    if cfg.actor_group not in groups:
        raise unknown_name("observation group (actor_group)", cfg.actor_group, groups)
    seen, actor = _network(cfg, env, cfg.actor_group)
    actor["distribution_cfg"] = _noise(cfg)
    settings: dict[str, Any] = {
        "num_steps_per_env": cfg.steps_per_env,
        "save_interval": SAVE_INTERVAL,
        "logger": "tensorboard",
        "obs_groups": {policy_part(cfg): seen},
    }
    parts = {policy_part(cfg): actor, "algorithm": _ppo(cfg)}
    if cfg.algorithm == "distillation":
        parts["algorithm"] = _distillation(cfg)
        if teacher is not None:
            _add_teacher(settings, teacher, env)
    else:
        _add_critic(settings, parts, cfg, env)
    return settings | with_changes(parts, cfg.rsl_rl)


def _noise(cfg: TrainCfg) -> dict[str, Any]:
    """Return the settings of the distribution of actions."""
    if cfg.algorithm == "sac":
        return {
            "class_name": SquashedGaussian,
            "limit": cfg.action_limit,
            "init_std": cfg.init_noise_std,
            "std_range": (0.01, 5.0),
        }
    return {
        "class_name": "GaussianDistribution",
        "init_std": cfg.init_noise_std,
        "std_type": cfg.noise_std_type,
    }


def policy_part(cfg: TrainCfg) -> str:
    """Return rsl-rl's name of the network that is the policy."""
    return "student" if cfg.algorithm == "distillation" else "actor"


def _add_critic(
    settings: dict[str, Any],
    parts: dict[str, dict[str, Any]],
    cfg: TrainCfg,
    env: Env | TrainedWorlds,
) -> None:
    """Add the critic's settings, and those of RND, which observes the same."""
    groups, observed = env.observation_specs, settings["obs_groups"]
    group = "critic" if "critic" in groups else cfg.actor_group
    observed["critic"], parts["critic"] = _network(cfg, env, group)
    if cfg.critic_hidden_sizes is not None:
        parts["critic"]["hidden_dims"] = list(cfg.critic_hidden_sizes)
    if cfg.rnd_weight:
        novel = list(flat({"rnd": groups["rnd"]})) if "rnd" in groups else None
        observed["rnd_state"] = _columns(novel or observed["critic"], env)
        parts["algorithm"]["rnd_cfg"] = _rnd(cfg)


def _add_teacher(
    settings: dict[str, Any], teacher: TrainCfg, env: Env | TrainedWorlds
) -> None:
    """Add the settings of a teacher's network, those of its run."""
    if teacher.is_recurrent:
        raise InvalidInputError(
            f"The teacher has network={teacher.network!r}, but rsl-rl's distillation "
            "does not support recurrent teachers: use one with 'mlp' or 'cnn'.",
            name="teacher",
        )
    taught, part = runner_cfg(teacher, env), policy_part(teacher)
    settings["teacher"] = taught[part]
    settings["obs_groups"]["teacher"] = taught["obs_groups"][part]


def _network(
    cfg: TrainCfg, env: Env | TrainedWorlds, group: str
) -> tuple[list[str], dict[str, Any]]:
    """Return the names of a network's observations, and its settings."""
    specs = flat({group: env.observation_specs[group]})
    pictures = [name for name, spec in specs.items() if len(spec.shape) == 3]
    for name, spec in specs.items():
        if len(spec.shape) not in (1, 3):
            raise InvalidInputError(
                f"The observation {name!r} has shape {spec.shape}: networks take "
                "columns (k,) and pictures (H, W, C)."
            )
    network: dict[str, Any] = {
        "class_name": "MLPModel",
        "hidden_dims": list(cfg.hidden_sizes),
        "activation": cfg.activation,
        "obs_normalization": cfg.normalize_observations,
    }
    if pictures and cfg.network != "cnn":
        raise InvalidInputError(
            f"The observation {pictures[0]!r} is a picture: train with network='cnn' "
            f"in the TrainCfg, which is {cfg.network!r}.",
            name="network",
        )
    if cfg.is_recurrent:
        network |= {
            "class_name": "RNNModel",
            "rnn_type": cfg.network,
            "rnn_hidden_dim": cfg.rnn_size,
            "rnn_num_layers": cfg.rnn_layers,
        }
    for name in pictures:
        _check_size(name, specs[name].shape, cfg)
    if pictures:
        network |= {
            "class_name": PictureNetwork,
            # Pictures are not normalised, and there may be no columns.
            "obs_normalization": cfg.normalize_observations
            and len(pictures) < len(specs),
            "cnn_cfg": {
                "output_channels": list(cfg.conv_channels),
                "kernel_size": list(cfg.conv_kernels),
                "stride": list(cfg.conv_strides),
                "activation": cfg.activation,
            },
        }
    return list(specs), network


def _check_size(name: str, shape: tuple[int, ...], cfg: TrainCfg) -> None:
    """Raise unless each convolution has a picture at least as large as its kernel."""
    height, width, _ = shape
    for kernel, stride in zip(cfg.conv_kernels, cfg.conv_strides, strict=True):
        if min(height, width) < kernel:
            raise InvalidInputError(
                f"A convolution with a kernel of {kernel} px gets {height} × {width} "
                f"px of the observation {name!r} ({shape[0]} × {shape[1]} px). Use a "
                f"larger picture, or smaller conv_kernels {tuple(cfg.conv_kernels)} or "
                f"conv_strides {tuple(cfg.conv_strides)}.",
                name="conv_kernels",
            )
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1


def _ppo(cfg: TrainCfg) -> dict[str, Any]:
    """Return the settings of rsl-rl's PPO."""
    return {
        "class_name": "PPO",
        "learning_rate": cfg.learning_rate,
        "schedule": "fixed" if cfg.desired_kl is None else "adaptive",
        "desired_kl": cfg.desired_kl,
        "num_learning_epochs": cfg.num_learning_epochs,
        "num_mini_batches": cfg.num_mini_batches,
        "clip_param": cfg.clip_param,
        "gamma": cfg.gamma,
        "lam": cfg.lam,
        "value_loss_coef": cfg.value_loss_coef,
        "use_clipped_value_loss": cfg.clip_value_loss,
        "entropy_coef": cfg.entropy_coef,
        "max_grad_norm": cfg.max_grad_norm,
    }


def _distillation(cfg: TrainCfg) -> dict[str, Any]:
    """Return the settings of rsl-rl's Distillation.

    A step of the optimiser uses at most 15 steps of the worlds: a divisor of their
    number, because rsl-rl ignores a remainder.
    """
    steps = cfg.steps_per_env
    return {
        "class_name": "Distillation",
        "learning_rate": cfg.learning_rate,
        "num_learning_epochs": cfg.num_learning_epochs,
        "gradient_length": max(k for k in range(1, 16) if steps % k == 0),
        "max_grad_norm": cfg.max_grad_norm,
    }


def _rnd(cfg: TrainCfg) -> dict[str, Any]:
    """Return the settings of rsl-rl's random network distillation."""
    return {
        "weight": cfg.rnd_weight,
        "num_outputs": 16,
        "predictor_hidden_dims": list(cfg.hidden_sizes),
        "target_hidden_dims": list(cfg.hidden_sizes),
        "activation": cfg.activation,
        "state_normalization": True,
        "reward_normalization": True,
    }


def _columns(names: list[str], env: Env | TrainedWorlds) -> list[str]:
    """Return the names if all observations are columns, as RND requires, else raise."""
    specs = flat(env.observation_specs)
    for name in names:
        if len(specs[name].shape) != 1:
            raise InvalidInputError(
                f"The observation {name!r} has shape {specs[name].shape}, and "
                "rnd_weight rewards novel columns (k,): add a group 'rnd' of columns, "
                "or leave out rnd_weight.",
                name="rnd_weight",
            )
    return names
