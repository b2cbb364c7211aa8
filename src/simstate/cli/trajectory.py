"""Motion of one world over time, as a figure: joints and root link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import torch
from torch import Tensor

from simstate.base.samples import draw
from simstate.entity import Entity
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step import ConservationReport

MOST_SAMPLES = 2000
"""Maximum number of samples; more than the width of a figure in pixels."""


class Trajectory:
    """The joints and the root link of one entity in one world, sample by sample."""

    def __init__(
        self, entity: Entity, world: int, total_steps: int, step_dt: float
    ) -> None:
        self._entity, self._world, self._step_dt = entity, world, step_dt
        contracts = type(entity.data).quantities
        names = ["joint_pos", "joint_vel"] if entity.num_joints else []
        if entity.index.base in ("free", "mocap"):
            names += ["root_link_pos_w", "root_link_lin_vel_w"]
        self.names = tuple(names)
        self.units = {name: contracts[name].unit for name in names}
        self._joint_units = _joint_units(entity)
        if len(set(self._joint_units)) == 1:
            unit = self._joint_units[0]
            self.units |= {"joint_pos": unit, "joint_vel": f"{unit}/s"}
        self._every = max(1, total_steps // MOST_SAMPLES)
        self._next = 0
        self._samples: list[dict[str, Tensor]] = []
        self.record(0)

    def record(self, step: int) -> None:
        """Record the current state if a sample is due."""
        if step < self._next:
            return
        self._next = step + self._every
        values = {name: self._entity.data.read(name) for name in self.names}
        values["time"] = time = worlds_of(self._entity).read_field("time")
        values["elapsed"] = torch.full_like(time, step * self._step_dt)
        one = slice(self._world, self._world + 1)
        self._samples.append({name: v[one].cpu().clone() for name, v in values.items()})

    @property
    def time(self) -> Tensor:
        """Times of the samples [s]; (samples, 1)."""
        return self["time"]

    def __getitem__(self, name: str) -> Tensor:
        """Return a quantity over time; (samples, 1, …)."""
        return torch.stack([sample[name] for sample in self._samples])

    def draw(
        self, path: Path, title: str, drift: ConservationReport | None = None
    ) -> None:
        """Write the figure: panels by kind of joint, then the drifts of a scheme."""
        from simstate.step.conservation import panels

        root = ["x", "y", "z"]
        labels = {name: root for name in self.names if name.startswith("root")}
        labels["joint_pos"] = self._joint_labels("")
        labels["joint_vel"] = self._joint_labels("/s")
        more = () if drift is None else panels(drift, "scheme alone: ")
        draw(
            self, path, {self._world: 0}, self.names, labels, self["elapsed"][:, 0],
            title=title, more=more,
        )  # fmt: skip

    def _joint_labels(self, per: str) -> list[str]:
        """Return the joints' names, with their units where these differ."""
        names, units = self._entity.joint_names, self._joint_units
        if len(set(units)) < 2:
            return list(names)
        return [f"{n} [{u}{per}]" for n, u in zip(names, units, strict=True)]


def _joint_units(entity: Entity) -> list[str]:
    """Return the unit of each 1-DoF joint's position."""
    slide = mujoco.mjtJoint.mjJNT_SLIDE.value
    types = worlds_of(entity).model.jnt_type[list(entity.index.joints.ids)]
    return ["m" if kind == slide else "rad" for kind in types]
