"""Quantities of joints, actuators, tendons and applied forces: the formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.ids import Index
from simstate.entity import compiled_reads
from simstate.entity.quantity import Axes, Quantity, Size
from simstate.math import quaternion
from simstate.math.elementwise import atan2
from simstate.math.vector import cross, norm
from simstate.scene.index import TargetKind

if TYPE_CHECKING:
    from simstate.entity.reader import EntityReader

LAST_EVALUATION = "last dynamics evaluation: after a step, the state before it"


def column(
    field: str,
    columns: str,
    *,
    kind: str,
    unit: str,
    count: str,
    subject: str = "",
    writer: str = "",
    when: str = "now",
    point_text: str = "–",
    axes_text: str = "",
) -> Quantity:
    """Declare some columns of a raw field; `columns` names them in the reader."""
    return Quantity(
        lambda data: data.take(field, columns),
        subject=subject, kind=kind, unit=unit, shape=(count,), reads=(field,),
        writer=writer, when=when, point_text=point_text, axes_text=axes_text,
        compiled=lambda data: compiled_reads.take(data, field, columns), is_view=True,
    )  # fmt: skip


def stored(
    *,
    kind: str,
    unit: str,
    shape: tuple[Size, ...],
    axes: Axes = "",
    writer: str = "",
) -> Quantity:
    """Declare a tensor that the entity itself keeps, live and writable in place."""
    return Quantity(
        lambda data: data.stored(kind),
        subject="", kind=kind, axes=axes, axes_in_name=False, unit=unit,
        shape=shape, reads=(), writer=writer, is_view=True,
        remedy="" if writer else f"write into it: {{entity}}.data.{kind}[:] = …",
    )  # fmt: skip


def target(kind: str, unit: str, writer: str, inputs: TargetKind) -> Quantity:
    """Declare the targets: in the controls that take them, else in a slot."""
    return Quantity(
        lambda data: _targets(data, inputs, f"joint_{kind}"),
        subject="joint", kind=kind, unit=unit, shape=("num_joints",), reads=("ctrl",),
        parameters=("actuator_gear", "actuator_gainprm"), writer=writer,
    )  # fmt: skip


def _targets(data: EntityReader, inputs: TargetKind, name: str) -> Tensor:
    targets = data.stored(name).clone()
    joints, columns, scale = data.target_inputs(inputs)
    targets[:, joints] = data.raw("ctrl")[:, columns] / scale
    return targets


def joint_pos_limits(data: EntityReader) -> Tensor:
    """Lower and upper limit of each joint; infinite where there is none."""
    joints = data.columns("joint_ids")
    limits = data.parameter("jnt_range")[:, joints]
    limited = data.parameter("jnt_limited")[:, joints].bool()[..., None]
    endless = torch.tensor(
        [-torch.inf, torch.inf], dtype=limits.dtype, device=limits.device
    )
    limits = torch.where(limited, limits, endless)
    return limits.expand(data.num_envs, *limits.shape[1:])


def soft_joint_pos_limits(data: EntityReader) -> Tensor:
    """Return the limits drawn in towards their middle by the configured factor."""
    limits = data.read("joint_pos_limits")
    middle = limits.mean(-1, keepdim=True)
    soft = middle + data.soft_limit_factor * (limits - middle)
    return torch.where(limits.isfinite(), soft, limits)


def parameter(
    name: str,
    columns: str,
    *,
    kind: str,
    unit: str,
    shape: tuple[Size, ...],
    subject: str,
) -> Quantity:
    """Declare a model parameter of some elements, per world if it was expanded."""
    return Quantity(
        lambda data: _per_world(data, name, data.columns(columns)),
        subject=subject, kind=kind, unit=unit, shape=shape, reads=(),
        parameters=(name,), remedy=f'use sim.expand("{name}")[:] = …',
    )  # fmt: skip


def _per_world(data: EntityReader, name: str, columns: Index) -> Tensor:
    values = data.parameter(name)[:, columns]
    if values.shape[0] == data.num_envs and name in data.engine.expanded:
        return values
    return values.expand(data.num_envs, *values.shape[1:]).clone()


def external_wrench(
    kind: str, unit: str, components: slice, point_text: str = "–"
) -> Quantity:
    """Declare components of the wrenches that the user applies to links."""
    width = len(range(6)[components])
    return Quantity(
        lambda data: data.raw("xfrc_applied")[:, data.columns("body_ids"), components],
        subject="body", kind=kind, axes="w", axes_in_name=False, unit=unit,
        point_text=point_text, shape=("num_bodies", width), reads=("xfrc_applied",),
        writer="write_external_wrench_to_sim",
    )  # fmt: skip


def projected_gravity_b(data: EntityReader) -> Tensor:
    """The unit vector along gravity in the root link's axes; without any, world −z."""
    direction = data.gravity_direction()
    return quaternion.rotate_inverse(data.read("root_link_quat_w"), direction)


def unit_or_down(vec: Tensor) -> Tensor:
    """The vector scaled to unit length; (0, 0, −1) if it is zero; shape (..., 3)."""
    length = norm(vec)
    down = vec.new_tensor([0.0, 0.0, -1.0])
    unit = vec / torch.where(length > 0, length, torch.ones_like(length))
    return torch.where(length > 0, unit, down)


def heading_w(data: EntityReader) -> Tensor:
    """The angle about world z of the root link's x axis, projected to the ground."""
    quat = data.read("root_link_quat_w")
    forward = quat.new_tensor([1.0, 0.0, 0.0]).expand(quat.shape[0], 3)
    axis = quaternion.rotate(quat, forward)
    return atan2(axis[..., 1], axis[..., 0])


def qfrc_external(data: EntityReader) -> Tensor:
    """Return the applied wrenches as forces on the 1-DoF joints: Jᵀ · wrench."""
    wrench = data.raw("xfrc_applied")
    com = data.raw("subtree_com")[:, data.columns("body_rootid")]
    arm = data.raw("xipos") - com
    torque = wrench[..., 3:] + cross(arm, wrench[..., :3])
    spatial = torch.cat([torque, wrench[..., :3]], dim=-1)
    dofs = data.columns("dof_adr")
    # What acts on a dof is the sum over the bodies that it moves.
    on_dofs = torch.matmul(data.all_moved_by[:, dofs].T, spatial)
    return (data.raw("cdof")[:, dofs] * on_dofs).sum(-1)


def blocks(data: EntityReader, field: str, addresses: str, width: int) -> Tensor:
    """Groups of `width` neighbouring columns; shape (num_envs, groups, width)."""
    first = data.addresses(addresses)
    columns = first[:, None] + torch.arange(width, device=first.device)
    return data.raw(field)[:, columns]
