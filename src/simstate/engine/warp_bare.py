"""MuJoCo Warp without simstate's code. Importing this module loads Warp."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mujoco
import warp as wp
from torch import Tensor

from simstate.engine.engine_cfg import BareForward, WarpCfg

import mujoco_warp as mjw  # isort: skip


def bare_forward(
    model: mujoco.MjModel, fields: Mapping[str, Tensor], num_envs: int, cfg: WarpCfg
) -> BareForward:
    """Evaluate the dynamics with only put_model, make_data and forward."""
    warp_model = mjw.put_model(model)
    data = mjw.make_data(
        model,
        nworld=num_envs,
        nconmax=cfg.contacts_per_world,
        njmax=cfg.constraints_per_world,
    )
    for name, values in fields.items():
        array = getattr(data, name, None)
        if array is not None and values.numel():
            wp.to_torch(array, requires_grad=False).view(values.shape).copy_(values)
    for _ in range(2):  # the first builds connects and welds with old velocities
        mjw.forward(warp_model, data)
    contacts = data.contact
    found = slice(min(int(data.nacon.numpy()[0]), data.naconmax))
    return BareForward(
        "MuJoCo Warp",
        wp.to_torch(data.qacc, requires_grad=False).clone(),
        contacts.worldid.numpy()[found],
        contacts.geom.numpy()[found],
        contacts.dist.numpy()[found],
        contacts.frame.numpy()[found],
        _roomier(data, num_envs),
    )


def _roomier(data: Any, num_envs: int) -> WarpCfg | None:
    """Return 1.5 times the required capacity; None if it was sufficient.

    If contacts are dropped, only the constraints of the remaining ones are counted.
    """
    pairs = max(int(data.nacon.numpy()[0]), int(data.ncollision.numpy()[0]))
    rows = int(data.nefc.numpy().max())
    if pairs <= data.naconmax and rows <= data.njmax:
        return None
    contacts = max(pairs, data.naconmax) / num_envs
    return WarpCfg(
        contacts_per_world=math.ceil(1.5 * contacts),
        constraints_per_world=math.ceil(1.5 * max(rows, data.njmax)),
    )
