"""Metrics: values of an episode that are reported but not rewarded."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.base.errors import unknown_name
from simstate.base.places import written_at
from simstate.env.backend import backend_of
from simstate.env.env_cfg import REDUCTIONS, MetricTermCfg
from simstate.env.term_plan import TermPlan
from simstate.env.terms import Term
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


class Metrics:
    """The metric terms, and their values in the episode so far."""

    def __init__(
        self, env: Env, cfgs: dict[str, MetricTermCfg], shipped: ModuleType
    ) -> None:
        for name, cfg in cfgs.items():
            with written_at(cfg.place):
                one_of(f"reduction of metric {name!r}", cfg.reduction, REDUCTIONS)
        self.terms = [
            Term("metric", name, cfg, shipped, env) for name, cfg in cfgs.items()
        ]
        self.names = [term.name for term in self.terms]
        self._reductions = [cfg.reduction for cfg in cfgs.values()]
        first = [-torch.inf if x == "max" else 0.0 for x in self._reductions]
        backend = backend_of(env)
        self._values = worlds_of(env.sim).ledger.memory(
            "env/metric/values", (len(self.terms),), torch.float64, owner="env",
            reset=torch.tensor(first, dtype=torch.float64), optional=True,
        ).tensor  # fmt: skip
        """Last value, largest value or sum of each term; (num_envs, terms)."""
        self._env, self._backend = env, backend
        self._array = backend.array(self._values)
        self._plan = TermPlan(env, self.terms, 1)

    def compute(self) -> None:
        """Add the values of this step to the episode's."""
        if not self.terms:
            return
        xp, values = self._backend.xp, self._array
        parts = self._plan.rows(torch.float64)
        for k, reduction in enumerate(self._reductions):
            if reduction == "last":
                values[:, k] = parts[k]
            elif reduction == "max":
                values[:, k] = xp.maximum(values[:, k], parts[k])
            else:
                values[:, k] += parts[k]

    def value(self, name: str) -> Tensor:
        """Return a metric over the episode so far, float64; shape (num_envs,)."""
        if name not in self.names:
            raise unknown_name("metric", name, self.names)
        return self.of(None)[name]

    def of(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        """Return each metric of some worlds over the episode so far; None: all."""
        rows = slice(None) if env_ids is None else env_ids
        steps = self._env.episode_length_buf[rows].clamp(min=1)
        found = self._values[rows].clone()
        for k, reduction in enumerate(self._reductions):
            if reduction == "mean":
                found[:, k] /= steps
        return dict(zip(self.names, found.unbind(1), strict=True))
