"""RewardSum: the weighted sum of the reward terms, and each term's part of it."""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.places import written_at
from simstate.env.env_cfg import RewardTermCfg, is_number
from simstate.env.host_read import host_read_of
from simstate.env.terms import Term, clear_diverged, not_finite_error
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


class RewardSum:
    """The reward terms with their weights, and what each has given in the episode."""

    def __init__(
        self, env: Env, cfgs: dict[str, RewardTermCfg], shipped: ModuleType
    ) -> None:
        self.terms = [
            Term("reward", name, cfg, shipped, env) for name, cfg in cfgs.items()
        ]
        self.names = [term.name for term in self.terms]
        weights = [_weight_of(name, cfg) for name, cfg in cfgs.items()]
        self._weights = (
            worlds_of(env.sim)
            .ledger.shared(
                "env/reward/weights", torch.tensor(weights, dtype=torch.float64)
            )
            .tensor
        )
        """The weights, which curricula may change; shape (terms,)."""
        self._sums = (
            worlds_of(env.sim)
            .ledger.memory(
                "env/reward/sums", (len(self.terms),), torch.float32, owner="env"
            )
            .tensor
        )
        """What each has given in the episode, weighted; shape (num_envs, terms)."""
        self._step_dt = env.step_dt

    def compute(self, env: Env) -> Tensor:
        """The reward of this step, added to the episode's; float32, (num_envs,)."""
        if not self.terms:
            return torch.zeros(env.num_envs, device=env.device)
        values = [term.tensor(env, 1) for term in self.terms]
        parts = _stacked(values)
        bad = clear_diverged(parts, env.sim.diverged)
        host_read_of(env).raise_if(bad, lambda: self._not_finite(values, env))
        parts *= (self._weights * self._step_dt).to(parts)[:, None]
        self._sums += parts.T
        return _added(parts)

    def _not_finite(self, values: list[Tensor], env: Env) -> InvalidInputError:
        """The error for the first term that gave a bad number."""
        fine = env.sim.diverged
        for term, value in zip(self.terms, values, strict=True):
            value = value.to(torch.float32).masked_fill(fine, 0.0)
            if not bool(value.isfinite().all()):
                return not_finite_error(term, value, env.all_ids)
        raise AssertionError("a term was not finite")

    def episode_sum(self, name: str) -> Tensor:
        """What a term has given since the last reset, weighted; shape (num_envs,)."""
        return self._sums[:, self._index(name)]

    def weight(self, name: str) -> float:
        """The weight of a term."""
        return float(self._weights[self._index(name)])

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of a term from the next step on."""
        self._weights[self._index(name)] = _weight(name, weight)

    def log(self, env_ids: Tensor, episode_length_s: float) -> dict[str, float]:
        """Mean over these worlds of each term's sum, per second of a full episode."""
        means = self._sums[env_ids].mean(0) / episode_length_s
        return dict(zip(self.names, means.tolist(), strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("reward term", name, self.names)
        return self.names.index(name)


def _stacked(values: list[Tensor]) -> Tensor:
    """What terms have given, a row each, float32; (terms, num_envs)."""
    if values[0].device.type != "cpu":
        return torch.stack([value.to(torch.float32) for value in values])
    # NumPy's calls cost less than torch's, and it is one for each term.
    rows = np.empty((len(values), len(values[0])), np.float32)
    with np.errstate(all="ignore"):
        for row, value in zip(rows, values, strict=True):
            known = value if value.dtype != torch.bfloat16 else value.float()
            row[:] = known.numpy()
    return torch.from_numpy(rows)


def _added(parts: Tensor) -> Tensor:
    """The sum of the rows, one after the other; (terms, num_envs) → (num_envs,).

    A sum over a dimension adds in an order that depends on the number of worlds.
    """
    total = parts[0].clone()
    if parts.device.type != "cpu":
        for part in parts[1:]:
            total += part
        return total
    with np.errstate(all="ignore"):
        whole = total.numpy()
        for part in parts.numpy()[1:]:
            whole += part
    return total


def _weight_of(name: str, cfg: RewardTermCfg) -> float:
    with written_at(cfg.place):
        return _weight(name, cfg.weight)


def _weight(name: str, weight: float) -> float:
    if not is_number(weight):
        raise InvalidInputError(
            f"The weight of the reward term {name!r} must be a finite number, got "
            f"{weight!r}."
        )
    return float(weight)
