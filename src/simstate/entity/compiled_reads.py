"""Quantities of frames by the compiled core: the formulas of `frames`, in one C pass.

A quantity declares both; tests hold the two against each other. Parameters that differ
from world to world, and what the core does not have, are computed by the formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from simstate.engine.core import reads

if TYPE_CHECKING:
    from simstate.entity.frame_quantities import Frame, Pick
    from simstate.entity.reader import EntityReader


def pose_w(data: EntityReader, frame: Frame, local: Tensor | None) -> reads.Read:
    """Positions and orientations of a frame's elements."""
    pos, elements, bodies, _ = _places(data, frame)
    turned = _spread(local, elements, pos.shape[1])
    return reads.pose_w(pos, elements, _field(data, "xquat"), bodies, turned)


def quat_w(data: EntityReader, frame: Frame, local: Tensor) -> reads.Read:
    """Orientations of elements that are turned by `local` in their bodies."""
    picks, size = data.picks(frame), data.parameter(frame.local_quat).shape[1]
    elements = _ids(picks.elements, size)
    bodies = _ids(picks.bodies, data.model.nbody)
    turned = _spread(local, elements, size)
    return reads.quat_w(_field(data, "xquat"), bodies, turned, elements)


def vel_w(data: EntityReader, frame: Frame) -> reads.Read:
    """Linear, then angular velocities of a frame's elements."""
    pos, elements, bodies, roots = _places(data, frame)
    return reads.vel_w(pos, elements, _motion(data), bodies, roots)


def lin_vel_b(data: EntityReader, frame: Frame) -> reads.Read:
    """Return the velocity of a root frame's point, along the root link's axes."""
    pos, _, bodies, roots = _places(data, frame)
    body, root = int(bodies[0]), int(roots[0])
    xquat = _field(data, "xquat")
    return reads.lin_vel_b(pos, body, _motion(data), root, xquat, body)


def ang_vel_b(data: EntityReader, frame: Frame) -> reads.Read:
    """Return the angular velocity of a root frame, along the root link's axes."""
    body = int(_ids(data.picks(frame).bodies, data.model.nbody)[0])
    motion = reads.BodyMotion(None, _field(data, "cvel"))
    return reads.ang_vel_b(body, motion, _field(data, "xquat"), body)


def direction_b(data: EntityReader, direction: Tensor) -> reads.Read:
    """Return a direction of the world, (1, 3), along the root link's axes."""
    base = data.root_body_id
    return reads.direction_b(direction.numpy(), _field(data, "xquat"), base)


def take(data: EntityReader, field: str, columns: str) -> reads.Read | None:
    """Columns of a raw field that are not side by side; None: a view has them."""
    runs = data.runs(columns)
    if len(runs) == 1:
        return None
    ids = [i for run in runs for i in range(run.start, run.stop)]
    return reads.take(_field(data, field), ids)


def _field(data: EntityReader, name: str) -> Any:
    """Return a raw field's live array, current from now on."""
    return data.field(name).numpy()


def _motion(data: EntityReader) -> reads.BodyMotion:
    return reads.BodyMotion(_field(data, "subtree_com"), _field(data, "cvel"))


def _places(data: EntityReader, frame: Frame) -> tuple[Any, Any, Any, Any]:
    """Positions of all elements of the kind, and ids: elements, bodies, their roots."""
    picks, nbody = data.picks(frame), data.model.nbody
    pos = _field(data, frame.pos_field)
    return (
        pos,
        _ids(picks.elements, pos.shape[1]),
        _ids(picks.bodies, nbody),
        _ids(picks.roots, nbody),
    )


def _ids(pick: Pick, size: int) -> Any:
    return np.arange(size)[pick].reshape(-1)


def _spread(local: Tensor | None, elements: Any, size: int) -> Any:
    """Orientations of some elements, (1, elements, 4), at their places among all."""
    if local is None:
        return None
    turned = np.zeros((1, size, 4))
    turned[:, elements] = local.numpy().reshape(1, -1, 4)
    return turned
