"""TorchRL's environment for a task.

env = TorchRlEnv(tasks.make_cfg("Quadruped-Velocity"), num_envs=1024)
env.rollout(24, policy, break_when_any_done=False)
"""

# TorchRL is not an extra of simstate, because it requires an older tensordict than the
# extra `train`. The type checker does not know it.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env import Env, EnvCfg

try:
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Categorical, Composite, Unbounded
    from torchrl.envs import EnvBase
except ModuleNotFoundError as error:
    raise InvalidInputError(
        f"TorchRlEnv needs {error.name}: pip install torchrl==0.14.1 "
        "'tensordict<0.15', in an environment without the extra `train`.",
        name="torchrl",
    ) from error


class TorchRlEnv(EnvBase):
    """A task in many worlds, as a TorchRL batch; each is reset on request.

    Keys of observations are the names of their groups ("policy", "critic"). An episode
    that its time limit ends is truncated, or terminated if the limit is part of the
    task. Takes the arguments of Env except auto_reset.
    """

    def __init__(self, cfg: EnvCfg, num_envs: int = 1, **options: Any) -> None:
        self.env = Env(cfg, num_envs, auto_reset=False, **options)
        super().__init__(device=self.env.device, batch_size=[num_envs])
        self.observation_spec = Composite(
            self._specs(self.env.observation_specs),
            shape=self.batch_size,
        )
        self.action_spec = self._spec(self.env.action_dim)
        self.reward_spec = self._spec(1)
        flag = Categorical(2, (num_envs, 1), dtype=torch.bool, device=self.device)
        self.done_spec = Composite(
            {name: flag.clone() for name in ("done", "terminated", "truncated")},
            shape=self.batch_size,
        )

    def _specs(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return specs of the groups; that of a dictionary is a Composite by term."""
        return {
            name: Composite(self._specs(spec), shape=self.batch_size)
            if isinstance(spec, dict)
            else self._spec(*spec.shape, dtype=spec.dtype)
            for name, spec in given.items()
        }

    def _spec(self, *shape: int, dtype: torch.dtype = torch.float32) -> Unbounded:
        return Unbounded((self.env.num_envs, *shape), dtype=dtype, device=self.device)

    def _reset(
        self, tensordict: TensorDictBase | None = None, **kwargs: Any
    ) -> TensorDictBase:
        """Start an episode in the worlds of the mask "_reset", or without it in all."""
        mask = None if tensordict is None else tensordict.get("_reset", None)
        worlds = None if mask is None else mask.reshape(-1)
        seen, _ = self.env.reset(env_ids=worlds)
        return self._tensordict(seen, {})

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        seen, reward, terminated, truncated, _ = self.env.step(tensordict["action"])
        if self.env.cfg.is_finite_horizon:
            terminated, truncated = terminated | truncated, torch.zeros_like(truncated)
        ends = {"terminated": terminated, "truncated": truncated}
        return self._tensordict(seen, {"reward": reward, **ends})

    def _tensordict(
        self, seen: dict[str, Tensor], rest: dict[str, Tensor]
    ) -> TensorDict:
        none = torch.zeros(self.env.num_envs, dtype=torch.bool, device=self.device)
        ends = {"terminated": none, "truncated": none, **rest}
        ends["done"] = ends["terminated"] | ends["truncated"]
        columns = {name: x.unsqueeze(-1) for name, x in ends.items()}
        return TensorDict({**seen, **columns}, self.batch_size, device=self.device)

    def _set_seed(self, seed: int | None) -> None:
        """Restart all random streams, and start an episode in all worlds."""
        if seed is not None:
            self.env.reset(seed=seed)
