"""Policy: the trained network of a checkpoint, without optimiser and worlds."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.utils import resolve_class
from torch import Tensor

from simstate.base.errors import SnapshotError
from simstate.engine import OneTorchThread
from simstate.env import Env
from simstate.env.groups import Observations, flat
from simstate.interop.rsl_rl import grouped, policy_part, runner_cfg
from simstate.train.checkpoint import Content
from simstate.train.run_cfg import RunCfg


class Policy:
    """The network of a checkpoint; calling it returns the mean action, without noise.

    A recurrent network must be called once in every step; its memory of a world is
    cleared when an episode starts.
    """

    def __init__(self, env: Env, content: Content) -> None:
        cfg = RunCfg.of(content)
        settings = runner_cfg(cfg.train, env)
        part = policy_part(cfg.train)
        made, actor = resolve_class(settings[part])
        self.run = cfg
        """The run of the checkpoint: the task and its settings."""
        self.iterations = int(content.get("iteration", 0))
        """Number of updates."""
        self.seen: dict[str, Tensor] = dict(content.get("seen", {}))
        """Minimum and maximum values in training, as in `SeenRanges.ranges`."""
        self.network: Any = made(
            grouped(env.observations, env.num_envs),
            settings["obs_groups"],
            part,
            env.action_dim,
            **actor,
        ).to(env.device)
        self._env, self._content = env, content
        try:
            self.network.load_state_dict(content["algorithm"][f"{part}_state_dict"])
        except (RuntimeError, KeyError, TypeError, AttributeError) as error:
            shapes = _shapes(env, cfg.train.actor_group)
            raise SnapshotError(
                f"The checkpoint is of task {cfg.task!r}, and its network does not fit "
                f"this environment, with observations {shapes} and {env.action_dim} "
                "actions: use an environment of that task.",
                name=cfg.task,
            ) from error
        self.network.eval()

    def in_env(self, env: Env) -> Policy:
        """Return the same policy for other worlds of its task."""
        return Policy(env, self._content)

    def __call__(self, observations: Observations) -> Tensor:
        """Return actions for observations, float32; shape (num_envs, action_dim)."""
        with torch.inference_mode(), OneTorchThread():
            if self.network.is_recurrent:  # clear the memory of new episodes
                self.network.reset(self._env.episode_length_buf == 0)
            action: Tensor = self.network(grouped(observations, self._env.num_envs))
            return action


def _shapes(env: Env, group: str) -> str:
    specs = flat({group: env.observation_specs[group]})
    return ", ".join(f"{name} {spec.shape}" for name, spec in specs.items())
