"""skrl's wrapper of an Env.

env = SkrlEnv(Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=1024))
SequentialTrainer(env=env, agents=agent).train()
"""

# skrl is not an extra of simstate (`pip install skrl`), nor known to the type checker.
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
    """An Env behind skrl's interface of environments.

    Observations are the group "policy", states the group "critic" if there is one.
    Worlds reset themselves. An episode that its time limit ends is truncated, or
    terminated if the limit is part of the task.
    """

    def __init__(self, env: Env) -> None:
        if not env.auto_reset:
            raise InvalidInputError(
                "skrl requires worlds that reset themselves: create the Env with "
                "auto_reset=True.",
                name="auto_reset",
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
        """Space of actions without limits, which the task's terms apply."""
        return Box(-np.inf, np.inf, (self.env.action_dim,), np.float32)

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        """Return the present observations: worlds reset themselves."""
        return self.env.observations["policy"], {}

    def step(self, actions: Tensor) -> Stepped:
        """Apply an action; return observations, reward, terminated, truncated, info."""
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
        """Do nothing: `simstate play` makes films, `env.view()` shows the worlds."""

    def close(self) -> None:
        """Do nothing."""


def _box(spec: Any) -> Box:
    if isinstance(spec, dict):
        raise InvalidInputError(
            f"skrl takes one tensor, but the group is a dictionary of {listed(spec)}: "
            "concatenate its terms."
        )
    kind = torch.empty(0, dtype=spec.dtype).numpy().dtype.type
    return Box(spec.low, spec.high, spec.shape, kind)
