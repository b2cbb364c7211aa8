"""The controls of an aircraft in a simulation: read and written by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from simstate.base.checks import check_finite, has_shape
from simstate.base.errors import unknown_name
from simstate.base.ids import Ids, Values, as_values
from simstate.entity import Entity
from simstate.flight.flight_table import as_list
from simstate.simulation import Simulation
from simstate.step.forces.force_parameters import numbers
from simstate.world import Write
from simstate.world.worlds import worlds_of

Array = np.ndarray[Any, Any]

_NOTHING = (np.zeros(0), np.zeros(0))


class Controls:
    """The controls of one aircraft: actuators that apply no force themselves."""

    def __init__(self, sim: Simulation, entity: Entity, names: Sequence[str]) -> None:
        self.sim = sim
        self.names = tuple(names)
        model, ids = sim.model, entity.index.controls
        self._ctrl = [ids.ids[ids.names.index(name)] for name in names]
        prefix = entity.index.prefix
        actuators = [model.actuator(prefix + name).id for name in names]
        self._act = [int(model.actuator_actadr[k]) for k in actuators]
        limits = [
            model.actuator_ctrlrange[k].tolist()
            if model.actuator_ctrllimited[k]
            else (-np.inf, np.inf)
            for k in self._ctrl
        ]
        self._limits: list[tuple[float, float]] = [(low, high) for low, high in limits]
        like = worlds_of(sim).engine.field("ctrl")
        self._range = like.new_tensor(self._limits).reshape(-1, 2)
        self._lag = [float(model.actuator_dynprm[k, 0]) for k in actuators]
        ledger = worlds_of(sim).ledger
        self._slots = (ledger["act"], ledger["ctrl"])

    def present(self) -> tuple[Tensor, Tensor]:
        """Return MuJoCo's act and ctrl, live; (num_envs, …) each."""
        act, ctrl = self._slots
        return act.tensor, ctrl.tensor

    def take(self) -> tuple[Array, Array]:
        """Return copies of act and ctrl; (num_envs, …) each, empty without controls."""
        if not self.names:
            return _NOTHING
        act, ctrl = (slot.array for slot in self._slots)
        assert act is not None
        assert ctrl is not None
        return act.copy(), ctrl.copy()

    @property
    def rows(self) -> list[list[float]]:
        """Address in act (−1: none), index in ctrl, range and lag [s] of each."""
        parts = zip(self._act, self._ctrl, self._range, self._lag, strict=True)
        return [[act, ctrl, *as_list(limits), lag] for act, ctrl, limits, lag in parts]

    def range(self, name: str) -> tuple[float, float]:
        """Return the minimum and maximum position of a control."""
        return self._limits[self._index(name)]

    def column(self, name: str) -> int:
        """Return the column of a control's command in ctrl."""
        return self._ctrl[self._index(name)]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("control of the aircraft", name, self.names)
        return self.names.index(name)

    def positions(self, act: Tensor, ctrl: Tensor) -> dict[str, Tensor]:
        """Return the positions of the controls, in their units; (num_envs,), copies.

        `act` and `ctrl` are those of MuJoCo, (num_envs, …).
        """
        found: dict[str, Tensor] = {}
        for k, name in enumerate(self.names):
            if self._act[k] >= 0:
                found[name] = act[:, self._act[k]].clone()
            else:
                found[name] = self._command(k, ctrl)
        return found

    def rates(self, act: Tensor, ctrl: Tensor) -> dict[str, Tensor]:
        """Return the rates of the controls with a lag [unit/s]; (num_envs,)."""
        return {
            name: (self._command(k, ctrl) - act[:, self._act[k]]) / self._lag[k]
            for k, name in enumerate(self.names)
            if self._act[k] >= 0
        }

    def _command(self, k: int, ctrl: Tensor) -> Tensor:
        """Return the command, clipped to its range; (num_envs,)."""
        low, high = self._range[k]
        return ctrl[:, self._ctrl[k]].clamp(low, high)

    def write(
        self, commands: Mapping[str, Values | float], env_ids: Ids, settled: bool
    ) -> None:
        """Write commands, and with `settled` the positions; all are checked first."""
        rows = worlds_of(self.sim).select(env_ids)
        checked: dict[int, Tensor] = {}
        for name, given in commands.items():
            index = self._index(name)
            values = check_finite(numbers(given, name), name)
            has_shape(name, values, (), (rows.count,), means=", of the selected worlds")
            column = values.expand(rows.count)[:, None].to(self.sim.device)
            like = worlds_of(self.sim).engine.field("ctrl")
            checked[index] = as_values(column, name, rows.count, (1,), like)
        writes: list[Write] = []
        for k, column in checked.items():
            writes.append(Write("ctrl", rows, _one(self._ctrl[k]), column))
            if settled and self._act[k] >= 0:
                position = column.clamp(*self._range[k])
                writes.append(Write("act", rows, _one(self._act[k]), position))
        worlds_of(self.sim).ledger.write(*writes)


def _one(column: int) -> slice:
    return slice(column, column + 1)
