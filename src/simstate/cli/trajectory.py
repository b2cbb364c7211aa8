"""Motion of one world over time, as a figure: joints and root link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from simstate.base.samples import new_figure, save_figure
from simstate.entity import Entity
from simstate.world.worlds import worlds_of

MOST_SAMPLES = 2000
"""More than a figure has pixels across."""
MOST_NAMES = 20
"""The most joints that a legend names; more of them would hide the figure."""


class Trajectory:
    """The joints and the root link of one entity in one world, sample by sample."""

    def __init__(self, entity: Entity, world: int, total_steps: int) -> None:
        self._entity = entity
        self._world = world
        self._root_moves = entity.index.base in ("free", "mocap")
        self._every = max(1, total_steps // MOST_SAMPLES)
        self._next = 0
        self._samples: list[dict[str, np.ndarray]] = []
        self._named: list[str] = []
        self.record(0)

    def record(self, step: int) -> None:
        """Keep the present state, if it is time for another sample."""
        if step < self._next:
            return
        self._next = step + self._every
        data = self._entity.data
        values = {
            "time": worlds_of(self._entity).read_field("time"),
            "joint_pos": data.joint_pos,
            "joint_vel": data.joint_vel,
        }
        if self._root_moves:
            values["root_link_pos_w"] = data.root_link_pos_w
            values["root_link_lin_vel_w"] = data.root_link_lin_vel_w
        self._samples.append(
            {name: v[self._world].cpu().numpy().copy() for name, v in values.items()}
        )

    def draw(self, path: Path, title: str) -> None:
        """Write the figure: a panel for each quantity, with its unit and axes."""
        series = {
            name: np.stack([sample[name] for sample in self._samples])
            for name in self._samples[0]
        }
        time = series.pop("time")
        panels = [name for name, values in series.items() if values.shape[1]]
        figure = new_figure(9.0, 2.6 * max(1, len(panels)) + 0.6)
        figure.suptitle(f"{title}, world {self._world}")
        grid = figure.subplots(max(1, len(panels)), 1, sharex=True, squeeze=False)
        for axes, name in zip(grid[:, 0], panels, strict=False):
            self._draw_panel(axes, name, time, series[name])
        if not panels:
            grid[0, 0].set_title("no joints, and a root link that does not move")
        grid[-1, 0].set_xlabel("time [s]")
        save_figure(figure, path)

    def _draw_panel(
        self, axes: Any, name: str, time: np.ndarray, values: np.ndarray
    ) -> None:
        labels, ylabel, title = self._describe(name)
        for k, (label, column) in enumerate(zip(labels, values.T, strict=True)):
            # There are ten colours; a line style tells each ten lines apart.
            style = ("-", "--", ":", "-.")[k // 10 % 4]
            axes.plot(time, column, style, label=label, linewidth=1.0)
        axes.set_ylabel(ylabel)
        axes.set_title(title, fontsize="medium", loc="left")
        axes.grid(visible=True, alpha=0.3)
        if len(labels) <= MOST_NAMES and labels != self._named:
            self._named = labels  # panels with the same curves share a legend
            columns = 1 + (len(labels) - 1) // 10
            axes.legend(
                loc="center left",
                bbox_to_anchor=(1.0, 0.5),
                fontsize="x-small",
                ncols=columns,
            )

    def _describe(self, name: str) -> tuple[list[str], str, str]:
        """Labels of the lines, of the vertical axis, and the panel's title."""
        contract = type(self._entity.data).quantities[name]
        what = "position" if contract.kind == "pos" else "velocity"
        if contract.subject == "root":
            title = f"{name}: {contract.point_text}, {contract.axes_text} axes"
            return ["x", "y", "z"], f"{what} [{contract.unit}]", title
        units = _joint_units(self._entity, per_second=name == "joint_vel")
        names = list(self._entity.joint_names)
        kinds = list(dict.fromkeys(units))
        if len(kinds) > 1:
            names = [f"{n} [{u}]" for n, u in zip(names, units, strict=True)]
        title = f"{name}: {len(names)} joints, each about or along its own axis"
        return names, f"{what} [{' or '.join(kinds)}]", title


def _joint_units(entity: Entity, per_second: bool) -> list[str]:
    """The unit of each 1-DoF joint's position, or of its velocity."""
    slide = mujoco.mjtJoint.mjJNT_SLIDE.value
    types = worlds_of(entity).model.jnt_type[list(entity.index.joints.ids)]
    units = ["m" if kind == slide else "rad" for kind in types]
    return [f"{unit}/s" for unit in units] if per_second else units
