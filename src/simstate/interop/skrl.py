"""skrl's environment on an Env.

env = SkrlEnv(Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=1024))
SequentialTrainer(env=env, agents=agent).train()
"""

# skrl is no extra of simstate: `pip install skrl`. The type checker does not see it.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.env import Env

try:
    from gymnasium.spaces import Box
    from skrl.envs.wrappers.torch import Wrapper
except ModuleNotFoundError as error:
    raise InvalidInputError(
        f"SkrlEnv needs {error.name}: pip install skrl.", name="skrl"
    ) from error

Stepped = tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]


class SkrlEnv(Wrapper):
    """An Env as skrl's trainers and agents want it.

    Observations are the group "policy", states the group "critic" where there is one.
    Worlds reset themselves. Where the time limit is a part of the task an episode that
    it ends is terminated, else truncated.
    """

    def __init__(self, env: Env) -> None:
        if not env.auto_reset:
            raise InvalidInputError(
                "skrl expects worlds to reset themselves: make the Env with "
                "auto_reset=True."
            )
        super().__init__(env)
        self.env = env

    @property
    def observation_space(self) -> Box:
        """Space of the policy's observations."""
        return _box(self.env.observation_specs["policy"])

    @property
    def state_space(self) -> Box | None:
        """Space of the critic's observations; None: the policy's."""
        spec = self.env.observation_specs.get("critic")
        return None if spec is None else _box(spec)

    @property
    def action_space(self) -> Box:
        """Actions, which have no limits here: terms of the task have theirs."""
        return Box(-np.inf, np.inf, (self.env.action_dim,), np.float32)

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        """The present observations: worlds reset themselves, and begin at a reset."""
        return self.env.observations["policy"], {}

    def step(self, actions: Tensor) -> Stepped:
        """Apply an action; observations, reward, terminated, truncated and info."""
        with torch.no_grad():
            seen, reward, terminated, truncated, extras = self.env.step(actions)
        if self.env.cfg.is_finite_horizon:
            terminated, truncated = terminated | truncated, torch.zeros_like(truncated)
        log_info = {"log": extras["log"]}
        ends = terminated.view(-1, 1), truncated.view(-1, 1)
        return seen["policy"], reward.view(-1, 1), *ends, log_info

    def state(self) -> Tensor | None:
        """Return the critic's observations; None: the policy's."""
        return self.env.observations.get("critic")

    def render(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: `simstate play` makes films, `env.view()` shows the worlds."""

    def close(self) -> None:
        """Nothing is open."""


def _box(spec: Any) -> Box:
    if isinstance(spec, dict):
        raise InvalidInputError(
            f"skrl takes one tensor, and the group is a dictionary of {listed(spec)}: "
            "give it terms that fit together."
        )
    kind = torch.empty(0, dtype=spec.dtype).numpy().dtype.type
    return Box(spec.low, spec.high, spec.shape, kind)
