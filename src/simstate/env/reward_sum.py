"""RewardSum: the weighted sum of the reward terms, and each term's part of it."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.env.cfg import RewardTermCfg, is_number
from simstate.env.terms import Term, clear_diverged, not_finite_error
from simstate.errors import InvalidInputError, unknown_name
from simstate.ids import int_list

if TYPE_CHECKING:
    from simstate.env.env import Env


class RewardSum:
    """The reward terms with their weights, and what each has given in the episode."""

    def __init__(
        self, env: Env, cfgs: dict[str, RewardTermCfg], shipped: ModuleType
    ) -> None:
        self.terms = [
            Term("reward", name, cfg, shipped, env.scene) for name, cfg in cfgs.items()
        ]
        self.names = [term.name for term in self.terms]
        self._weights = [_weight(name, cfg.weight) for name, cfg in cfgs.items()]
        shape = (len(self.terms), env.num_envs)
        self._sums = torch.zeros(shape, device=env.device)
        self._factors = torch.zeros(shape[0], 1, device=env.device)
        self._step_dt = env.step_dt
        self._update_factors()

    def compute(self, env: Env) -> Tensor:
        """The reward of this step, added to the episode's; float32, (num_envs,)."""
        values = [term.tensor(env, 1).to(torch.float32) for term in self.terms]
        if not values:
            return torch.zeros(env.num_envs, device=env.device)
        parts = torch.stack(values)
        bad = clear_diverged(parts, env.sim.diverged)
        if bad is not None:
            term, world = int_list(bad.nonzero()[0])
            label = self.terms[term].label
            raise not_finite_error(label, world, float(parts[term, world]))
        parts *= self._factors
        self._sums += parts
        return parts.sum(0)

    def episode_sum(self, name: str) -> Tensor:
        """What a term has given since the last reset, weighted; shape (num_envs,)."""
        return self._sums[self._index(name)]

    def weight(self, name: str) -> float:
        """The weight of a term."""
        return self._weights[self._index(name)]

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of a term from the next step on."""
        self._weights[self._index(name)] = _weight(name, weight)
        self._update_factors()

    def reset(self, env_ids: Tensor) -> None:
        """Begin an episode in these worlds."""
        self._sums[:, env_ids] = 0.0

    def log(self, env_ids: Tensor, episode_length_s: float) -> dict[str, float]:
        """Mean over these worlds of each term's sum, per second of a full episode."""
        means = self._sums[:, env_ids].mean(1) / episode_length_s
        return dict(zip(self.names, means.tolist(), strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]

    def _update_factors(self) -> None:
        factors = torch.tensor(self._weights, dtype=torch.float32) * self._step_dt
        self._factors[:, 0] = factors

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("reward term", name, self.names)
        return self.names.index(name)


def _weight(name: str, weight: float) -> float:
    if not is_number(weight):
        raise InvalidInputError(
            f"The weight of the reward term {name!r} must be a finite number, got "
            f"{weight!r}."
        )
    return float(weight)
