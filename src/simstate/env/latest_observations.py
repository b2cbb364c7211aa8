"""What the worlds of an environment see: all observation groups, and the latest."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.contract import Contract
from simstate.base.ids import Index
from simstate.env.env_cfg import ObservationGroupCfg
from simstate.env.observation_groups import (
    Computed,
    ObservationGroup,
    ObservationTerm,
)
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

Observations = dict[str, Tensor]


class Observing:
    """The observation groups of an environment, and what they saw last."""

    def __init__(
        self, env: Env, cfgs: Mapping[str, ObservationGroupCfg], shipped: ModuleType
    ) -> None:
        self._env = env
        self._ledger = worlds_of(env.sim).ledger
        self.groups = [
            ObservationGroup(env, name, group, shipped) for name, group in cfgs.items()
        ]
        self._may_change: tuple[int, list[str]] = (0, [])
        """How many slots there were, and which of them terms may change."""
        self.latest: Observations = {}
        """What was seen last, by group, live; float32, shape (num_envs, k)."""

    @property
    def terms(self) -> list[ObservationTerm]:
        """The terms of all groups."""
        return [term for group in self.groups for term in group.terms]

    def names(self) -> dict[str, list[str]]:
        """A readable name for each column of each group."""
        return {group.name: group.column_names(self._env) for group in self.groups}

    def contracts(self) -> dict[str, list[Contract]]:
        """Unit, axes and point of each column of each group."""
        return {group.name: group.contracts(self._env) for group in self.groups}

    def observe(self, rows: Index, restart: bool) -> Observations:
        """What some worlds see now, by group, which is kept as the latest.

        `restart` says that these worlds have just been reset.
        """
        values_of: Computed = {}
        seen: Observations = {}
        kept = self._others_memory() if restart else {}
        for group in self.groups:
            values = group.compute(self._env, rows, restart, values_of)
            if group.name not in self.latest:
                self.latest[group.name] = self._ledger.memory(
                    f"env/observation/{group.name}", (values.shape[1],),
                    torch.float32, reset=None, owner="env",
                ).tensor  # fmt: skip
            self.latest[group.name][rows] = values
            seen[group.name] = values
        for name, values in kept.items():
            tensor = self._ledger[name].tensor
            values[rows] = tensor[rows]
            tensor.copy_(values)
        return seen

    def _others_memory(self) -> dict[str, Tensor]:
        """What observation terms may change in all worlds: memory and random streams.

        A term is computed for all of them, also where some have just been reset: then
        it has looked once more at the others, which must not change what it remembers.
        """
        slots = self._ledger.slots
        if self._may_change[0] != len(slots):
            scopes = tuple(f"env/{term.scope}/" for term in self.terms)
            names = [
                slot.name
                for slot in slots.values()
                if slot.name.startswith((*scopes, "memory/", "random/count"))
                and not slot.shared
            ]
            self._may_change = (len(slots), names)
        return {name: slots[name].tensor.clone() for name in self._may_change[1]}
