"""ContactTable: all contacts of some worlds, one in a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from torch import Tensor

from simstate.base.ids import Ids
from simstate.engine import ContactRows
from simstate.entity.dynamics.assembly import DynamicsParts
from simstate.math.vector import apply
from simstate.world.worlds import Worlds


@dataclass(frozen=True)
class ContactTable:
    """All contacts of some worlds at the present state; engine's dtype, world axes.

    World by world. Forces are those **on** the second side, by the first.
    """

    world: Tensor
    """The world of each contact; int64, (contacts,)."""
    geom_ids: Tensor
    """The geoms of both sides in sim.model, −1 for a flexible body; (contacts, 2)."""
    geom_names: list[tuple[str, str]]
    """The names of both geoms, or flexible bodies."""
    body_names: list[tuple[str, str]]
    """The names of the bodies that the geoms belong to; "" for a flexible body."""
    pos_w: Tensor
    """The point, midway between the surfaces, world axes [m]; (contacts, 3)."""
    frame_w: Tensor
    """Normal, from the first side to the second, and two tangents as rows, world axes;
    (contacts, 3, 3)."""
    distance: Tensor
    """Distance of the surfaces, negative inside [m]; (contacts,)."""
    force_w: Tensor
    """Force on the second side by the first, world axes [N]; (contacts, 3)."""
    torque_w: Tensor
    """Torque on the second side by the first about pos_w, world axes [N·m]; (contacts,
    3)."""
    normal_force: Tensor
    """Force along the normal [N]; (contacts,)."""
    friction: Tensor
    """Two sliding, one torsional and two rolling coefficients; (contacts, 5)."""

    def __len__(self) -> int:
        return int(self.world.shape[0])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each contact as a dictionary of plain numbers and names."""
        for k in range(len(self)):
            yield {
                "world": int(self.world[k]),
                "geoms": list(self.geom_names[k]),
                "bodies": list(self.body_names[k]),
                "pos_w": _plain(self.pos_w[k]),
                "normal_w": _plain(self.frame_w[k, 0]),
                "distance": float(self.distance[k]),
                "force_w": _plain(self.force_w[k]),
                "torque_w": _plain(self.torque_w[k]),
                "normal_force": float(self.normal_force[k]),
                "friction": _plain(self.friction[k]),
            }

    def net_force_on(self, body: str, world: int = 0) -> Tensor:
        """Sum of the contact forces on a body of that name, world axes [N]; (3,)."""
        total = self.force_w.new_zeros(3)
        for k, (first, second) in enumerate(self.body_names):
            if int(self.world[k]) == world:
                if second == body:
                    total = total + self.force_w[k]
                if first == body:
                    total = total - self.force_w[k]
        return total


def _plain(values: Tensor) -> list[float]:
    return [float(value) for value in values]


def contact_table(worlds: Worlds, env_ids: Ids) -> ContactTable:
    """Return all contacts of some worlds, None: all, at the present state."""
    ids = worlds.select(env_ids).tensor(worlds.device)
    rows = worlds.on_demand(lambda engine: engine.contacts(ids))
    rot_wc = rows.frame.transpose(1, 2)
    names = [_names(worlds.model, rows, k) for k in range(rows.world.shape[0])]
    return ContactTable(
        world=rows.world,
        geom_ids=rows.geom,
        geom_names=[geoms for geoms, _ in names],
        body_names=[bodies for _, bodies in names],
        pos_w=rows.pos,
        frame_w=rows.frame,
        distance=rows.dist,
        force_w=apply(rot_wc, rows.force[:, :3]),
        torque_w=apply(rot_wc, rows.force[:, 3:]),
        normal_force=rows.force[:, 0],
        friction=rows.friction,
    )


def _names(
    model: mujoco.MjModel, rows: ContactRows, k: int
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the names of both geoms, and of their bodies."""
    sides: list[tuple[str, str]] = []
    for side in range(2):
        geom, flex = int(rows.geom[k, side]), int(rows.flex[k, side])
        if geom >= 0:
            body = int(model.geom_bodyid[geom])
            sides.append(
                (model.geom(geom).name or f"geom {geom}", model.body(body).name)
            )
        else:
            kind = mujoco.mjtObj.mjOBJ_FLEX.value
            sides.append((mujoco.mj_id2name(model, kind, flex) or f"flex {flex}", ""))
    (geom_1, body_1), (geom_2, body_2) = sides
    return (geom_1, geom_2), (body_1, body_2)


def weight_of(worlds: Worlds) -> Tensor:
    """Weight of all that can move, world axes [N]; (num_envs or 1, 3)."""
    moving = np.flatnonzero(np.asarray(worlds.model.body_weldid))
    parts = DynamicsParts(worlds, [int(body) for body in moving])
    return parts.total_mass() * parts.gravity
