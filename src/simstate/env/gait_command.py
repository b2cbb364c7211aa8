"""Gaits: stance and swing of each foot, by a clock in each world."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.contract import PURE
from simstate.base.errors import InvalidInputError
from simstate.env.commands import Command, CommandCfg, Range
from simstate.env.host_view import either

if TYPE_CHECKING:
    from simstate.env.env import Env

Gaits = Mapping[str, tuple[float, ...]]
TROT = (0.0, 0.5, 0.5, 0.0)
"""Diagonal feet together, for feet in the order FL, FR, RL, RR."""


@dataclass(kw_only=True)
class GaitCommandCfg(CommandCfg):
    """A gait, its frequency, and its duty: the fraction of a stride in stance."""

    ranges = (*CommandCfg.ranges, "frequency", "duty")
    sensor_name: str
    """The contact sensor of the feet."""
    gaits: Gaits = field(default_factory=lambda: {"trot": TROT})
    """By name: for each foot, in the order of the sensor's elements, its lead over the
    clock as a fraction of a stride. Each draw takes one gait."""
    frequency: Range = (1.5, 3.0)
    """Strides a second [Hz]."""
    duty: Range = (0.5, 0.5)
    """Fraction of a stride in which each foot stands."""

    def make(self, name: str, env: Env) -> GaitCommand:
        """Return the term, in the environment's scene."""
        return GaitCommand(name, self, env)


@either
class GaitCommand(Command):
    """Frequency [Hz], duty, and the sine and cosine of each foot's phase.

    A foot stands while its phase, in [0, 1), is below the duty, then swings.
    """

    offset_contracts = (PURE,)

    def __init__(self, name: str, cfg: GaitCommandCfg, env: Env) -> None:
        self._feet = env.sim.contacts[cfg.sensor_name]
        _check(name, cfg, self._feet.num_elements)
        feet = [element.rpartition("/")[2] for element in self._feet.element_names]
        waves = (f"{wave}_{foot}" for wave in ("sin", "cos") for foot in feet)
        self.names = ("frequency", "duty", *waves)
        self.contracts = (PURE._replace(unit="Hz"), *(len(self.names) - 1) * [PURE])
        super().__init__(name, cfg, env)
        self.cfg = cfg
        self.clock = self.memory("clock")
        """Elapsed fraction of the current stride, in [0, 1); (num_envs,)."""
        self.gait = self.memory("gait", dtype=torch.int64)
        """Index of the commanded gait; (num_envs,)."""
        self._ahead = torch.tensor(
            list(cfg.gaits.values()), dtype=torch.float32, device=env.device
        )

    @property
    def phase(self) -> Tensor:
        """Elapsed fraction of the stride of each foot; (num_envs, feet)."""
        return (self.clock[:, None] + self._ahead[self.gait]) % 1.0

    @property
    def stance(self) -> Tensor:
        """True for each foot that the gait has in stance; bool, (num_envs, feet)."""
        return self.phase < self.command[:, 1:2]

    @property
    def offset(self) -> Tensor:
        """1 where stance and contact of a foot differ, else 0; (num_envs, feet)."""
        return (self.stance != self._feet.found) * 1.0

    def error(self) -> Tensor:
        """Return the fraction of the feet that differ from the gait; (num_envs,)."""
        return self.offset.mean(-1)

    def due(self, dt: float) -> Tensor:
        """Advance time and strides [s]; return the mask of due worlds; (num_envs,)."""
        self.clock[:] = (self.clock + self.command[:, 0] * dt) % 1.0
        return super().due(dt)

    def sample(self, env_ids: Tensor) -> None:
        """Draw stride frequencies, duty factors and gaits."""
        count = len(self.cfg.gaits)
        spans = (self.cfg.frequency, self.cfg.duty, (0.0, count))
        drawn = self.uniform(env_ids, *spans)
        self.command[env_ids, :2] = drawn[:, :2]
        self.gait[env_ids] = drawn[:, 2].to(torch.int64).clamp(max=count - 1)

    def reset(self, env_ids: Tensor) -> None:
        """Start an episode in these worlds, at a random time of a stride."""
        self.clock[env_ids] = self.uniform(env_ids, (0.0, 1.0))[:, 0]
        super().reset(env_ids)

    def follow(self, rows: object) -> None:
        """Write sine and cosine of the phase of each foot, in all worlds."""
        del rows  # the clock runs in all worlds
        xp, angle = self.env.xp, 2.0 * math.pi * self.phase
        self.command[:, 2:] = xp.concatenate([xp.sin(angle), xp.cos(angle)], 1)


def _check(name: str, cfg: GaitCommandCfg, feet: int) -> None:
    if not cfg.gaits:
        raise InvalidInputError(
            f"The command term {name!r} has no gaits.", name="gaits"
        )
    for gait, ahead in cfg.gaits.items():
        if len(ahead) != feet or not all(map(math.isfinite, ahead)):
            raise InvalidInputError(
                f"The command term {name!r} has {ahead!r} for the gait {gait!r}: it "
                f"must be a finite number for each of the {feet} elements of the "
                f"contact sensor {cfg.sensor_name!r}.",
                name=gait,
            )
    if not (cfg.frequency[0] >= 0.0 and cfg.duty[0] >= 0.0 and cfg.duty[1] <= 1.0):
        raise InvalidInputError(
            f"The command term {name!r} has frequency {cfg.frequency} and duty "
            f"{cfg.duty}: the former must be ≥ 0, the latter between 0 and 1.",
            name="duty",
        )
