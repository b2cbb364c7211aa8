"""ControlActionCfg: controls of actuators of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError, listed
from simstate.entity.explanation import explain
from simstate.entity.writer_base import control_writer
from simstate.env.actions import Action, ActionCfg, scaled_contracts
from simstate.env.entity_cfg import Patterns
from simstate.env.host_view import either

if TYPE_CHECKING:
    from simstate.env.env import Env


@dataclass(kw_only=True)
class ControlActionCfg(ActionCfg):
    """Controls of actuators of any kind: of joints, tendons, muscles, adhesion.

    After `scale`, −1 … 1 spans the range of each control, and the result is clipped to
    it. Without a range, the control is the scaled action.
    """

    control_names: Patterns = None
    """Regular expressions on the names of controls; None: all of the entity's."""
    preserve_order: bool = False
    """Keep the order of control_names, instead of the entity's."""
    scale: float = 1.0
    """Factor of the action."""

    def make(self, name: str, env: Env) -> ControlAction:
        """Return the term, resolved in the environment's scene."""
        return ControlAction(name, self, env)


@either
class ControlAction(Action):
    """Writes some controls of one entity."""

    def __init__(self, name: str, cfg: ControlActionCfg, env: Env) -> None:
        self.cfg = cfg
        self.entity = env.scene[cfg.asset_name]
        patterns = ".*" if cfg.control_names is None else cfg.control_names
        if not self.entity.num_controls:
            raise InvalidInputError(
                f"The action term {name!r} needs actuators; entity "
                f"{self.entity.name!r} has none. Declare them in EntityCfg.actuators.",
                name=name,
            )
        ids, names = self.entity.find_controls(
            patterns, preserve_order=cfg.preserve_order
        )
        if not names:
            raise InvalidInputError(
                f"The action term {name!r} chooses no control; there are "
                f"{listed(self.entity.control_names)}."
            )
        self.names = tuple(names)
        columns = [self.entity.index.controls.ids[k] for k in ids]
        self.low, self.high = _ranges(env, columns)
        """Minimum and maximum controls; infinite where there is no range."""
        known = {e.index[0]: e for e in explain(env.sim) if e.field == "ctrl"}
        chosen = (known[column] for column in columns)
        each = [Contract(e.unit, e.axes, e.point) for e in chosen]
        limited = torch.isfinite(self.low)
        self._half = torch.where(limited, (self.high - self.low) / 2.0, 1.0)
        """Half the range of each control, 1 where there is none; shape (dim,)."""
        self._middle = torch.where(limited, (self.low + self.high) / 2.0, 0.0)
        self.contracts = scaled_contracts(each, self._half * cfg.scale)
        self._write = control_writer(self.entity, ids)

    def controls(self, action: Tensor) -> Tensor:
        """Return the controls of an action; shape (num_envs, dim)."""
        action = action * self.cfg.scale
        return (self._middle + self._half * action).clip(self.low, self.high)

    def apply(self, action: Tensor) -> None:
        """Write the controls of an action."""
        self._write(self.controls(action))


def _ranges(env: Env, controls: list[int]) -> tuple[Tensor, Tensor]:
    """Return minimum and maximum of some controls of the scene; shape (dim,) each."""
    model = env.sim.model
    ranges = torch.as_tensor(model.actuator_ctrlrange[controls], dtype=env.sim.dtype)
    limited = torch.as_tensor(model.actuator_ctrllimited[controls].astype(bool))
    low = torch.where(limited, ranges[:, 0], -torch.inf)
    high = torch.where(limited, ranges[:, 1], torch.inf)
    return low.to(env.device), high.to(env.device)
