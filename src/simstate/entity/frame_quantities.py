"""Points that move with bodies, and the formulas that all of them share.

One formula for each kind of quantity serves root and bodies, links and centres of
mass, geoms and sites; a declaration picks the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import Index, as_index
from simstate.entity import compiled_reads
from simstate.entity.quantity import Axes, Compile, Compute, Quantity, Size
from simstate.math import (
    acceleration_from_cacc,
    compute_velocity_from_cvel,
    quaternion,
)
from simstate.scene import EntityIndex

if TYPE_CHECKING:
    from simstate.engine.core.reads import Read
    from simstate.entity.reader import EntityReader

_AS_BODY = (
    mujoco.mjtSameFrame.mjSAMEFRAME_BODY.value,
    mujoco.mjtSameFrame.mjSAMEFRAME_BODYROT.value,
)
_AS_INERTIA = (
    mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA.value,
    mujoco.mjtSameFrame.mjSAMEFRAME_INERTIAROT.value,
)
"""Flags of orientations that equal the body's or its inertial frame's."""

Pick: TypeAlias = "int | Index"
"""Index of a frame's elements: an int drops the dimension, for the root."""


@dataclass(frozen=True)
class Frame:
    """A family of moving frames: whose they are, and which point is meant."""

    subject: str
    point: str
    count: str
    pos_field: str
    local_quat: str
    """The model parameter with the orientation in the body; "" for the body's own."""
    sameframe: str
    """The model's flags of elements that MuJoCo gives the orientation of their body or
    of its inertial frame, whatever their own; "" for the body's own."""
    where: str
    """The point, in words."""

    @property
    def shape(self) -> tuple[Size, ...]:
        """The shape before the components."""
        return (self.count,) if self.count else ()


ROOT_LINK = Frame("root", "link", "", "xpos", "", "", "link origin")
ROOT_COM = Frame(
    "root", "com", "", "xipos", "body_iquat", "body_sameframe", "centre of mass"
)
BODY_LINK = Frame("body", "link", "num_bodies", "xpos", "", "", "link origin")
BODY_COM = Frame(
    "body", "com", "num_bodies", "xipos", "body_iquat", "body_sameframe",
    "centre of mass",
)  # fmt: skip
GEOM = Frame(
    "geom", "", "num_geoms", "geom_xpos", "geom_quat", "geom_sameframe", "geom centre"
)
SITE = Frame(
    "site", "", "num_sites", "site_xpos", "site_quat", "site_sameframe", "site"
)


@dataclass(frozen=True)
class Picks:
    """Indices of a frame's elements, their bodies and their trees' roots."""

    elements: Pick
    bodies: Pick
    roots: Pick

    @staticmethod
    def resolve(
        frame: Frame, index: EntityIndex, model: mujoco.MjModel, device: torch.device
    ) -> Picks:
        """Return the selections of a frame for one entity."""
        if frame.subject == "root":
            body = index.root_body_id
            return Picks(body, body, int(model.body_rootid[body]))
        if frame.subject == "body":
            ids = bodies = index.bodies.ids
        elif frame.subject == "geom":
            ids, bodies = index.geoms.ids, _bodies(model.geom_bodyid, index.geoms.ids)
        else:
            ids, bodies = index.sites.ids, _bodies(model.site_bodyid, index.sites.ids)
        roots = sorted({int(model.body_rootid[body]) for body in bodies})
        if len(roots) == 1:  # one tree: let its point broadcast over the elements
            groups = (ids, bodies, roots)
        else:
            groups = (ids, bodies, _bodies(model.body_rootid, bodies))
        return Picks(*(as_index(group, device) for group in groups))


def _bodies(array: np.ndarray, ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(array[i]) for i in ids)


def _position(data: EntityReader, frame: Frame) -> Tensor:
    return data.raw(frame.pos_field)[:, data.picks(frame).elements]


def _orientation(data: EntityReader, frame: Frame) -> Tensor:
    picks = data.picks(frame)
    quat = data.raw("xquat")[:, picks.bodies]
    if not frame.local_quat:
        return quat
    return quaternion.multiply(quat, local_quat(data, frame, picks))


def local_quat(data: EntityReader, frame: Frame, picks: Picks) -> Tensor:
    """Orientation in the body as the engine takes it; (num_envs or 1, elements, 4).

    The compiler marks what is turned like its body, or like the body's inertial frame,
    up to 1e-6 or so; MuJoCo then takes theirs, and the difference would show.
    """
    own = data.parameter(frame.local_quat)[:, picks.elements]
    if not data.engine.uses_sameframe:
        return own
    flags = data.parameter(frame.sameframe)[:, picks.elements][..., None]
    same = own.new_tensor([1.0, 0.0, 0.0, 0.0])
    if frame.local_quat != BODY_COM.local_quat:
        inertial = local_quat(data, BODY_COM, Picks(picks.bodies, picks.bodies, 0))
        own = torch.where(_any_of(flags, _AS_INERTIA), inertial, own)
    return torch.where(_any_of(flags, _AS_BODY), same, own)


def _fixed_local_quat(data: EntityReader, frame: Frame) -> Tensor | None:
    """Orientation in the body where all worlds have the same; None: the body's own."""
    if not frame.local_quat:
        return None
    return local_quat(data, frame, data.picks(frame))


def _local_parameters(frame: Frame) -> tuple[str, ...]:
    """Return the model parameters that orientations in the body depend on."""
    own = (frame.local_quat, frame.sameframe)
    return tuple(dict.fromkeys((*own, BODY_COM.local_quat, BODY_COM.sameframe)))


def _any_of(flags: Tensor, kinds: tuple[int, int]) -> Tensor:
    return (flags == kinds[0]) | (flags == kinds[1])


def _velocity(data: EntityReader, frame: Frame) -> Tensor:
    picks = data.picks(frame)
    return compute_velocity_from_cvel(
        _position(data, frame),
        data.raw("subtree_com")[:, picks.roots],
        data.raw("cvel")[:, picks.bodies],
    )


def _acceleration(data: EntityReader, frame: Frame) -> Tensor:
    picks = data.picks(frame)
    return acceleration_from_cacc(
        _position(data, frame),
        data.raw("subtree_com")[:, picks.roots],
        data.raw("cvel")[:, picks.bodies],
        data.spatial_acceleration(),
    )


_VELOCITY_READS = ("subtree_com", "cvel")
_ACCELERATION_READS = (*_VELOCITY_READS, "cdof", "cdof_dot", "qvel")
_EVALUATED = "dynamics of the present state, evaluated when read"
ANY_POINT = "any"
"""The point of an angular quantity of a rigid body."""


def pose_w(frame: Frame, writer: str = "") -> Quantity:
    """Declare the position and quaternion of a frame."""

    def compute(data: EntityReader) -> Tensor:
        return torch.cat([_position(data, frame), _orientation(data, frame)], dim=-1)

    def compiled(data: EntityReader) -> Read:
        return compiled_reads.pose_w(data, frame, _fixed_local_quat(data, frame))

    reads = (frame.pos_field, "xquat")
    return _declare(
        frame, "pose", 7, "m, 1", compute, reads, writer=writer, compiled=compiled
    )


def pos_w(frame: Frame) -> Quantity:
    """Declare the position of a frame."""
    reads = (frame.pos_field,)
    return _declare(
        frame, "pos", 3, "m", lambda data: _position(data, frame), reads, is_view=True
    )


def quat_w(frame: Frame) -> Quantity:
    """Declare the orientation of a frame."""

    def compiled(data: EntityReader) -> Read:
        local = _fixed_local_quat(data, frame)
        assert local is not None
        return compiled_reads.quat_w(data, frame, local)

    return _declare(
        frame, "quat", 4, "1", lambda data: _orientation(data, frame), ("xquat",),
        point_text="–", compiled=compiled if frame.local_quat else None, is_view=True,
    )  # fmt: skip


def vel_w(frame: Frame, writer: str = "") -> Quantity:
    """Declare the linear and angular velocity of a frame."""
    reads = (frame.pos_field, *_VELOCITY_READS)
    return _declare(
        frame, "vel", 6, "m/s, rad/s", lambda data: _velocity(data, frame), reads,
        writer=writer, compiled=lambda data: compiled_reads.vel_w(data, frame),
    )  # fmt: skip


def lin_vel_w(frame: Frame) -> Quantity:
    """Declare the linear velocity of a frame's point."""

    def compute(data: EntityReader) -> Tensor:
        return data.read(_name(frame, "vel_w"))[..., :3]

    reads = (frame.pos_field, *_VELOCITY_READS)
    return _declare(frame, "lin_vel", 3, "m/s", compute, reads)


def ang_vel_w(frame: Frame) -> Quantity:
    """Declare the angular velocity of a frame."""

    def compute(data: EntityReader) -> Tensor:
        return data.raw("cvel")[:, data.picks(frame).bodies][..., :3]

    return _declare(
        frame, "ang_vel", 3, "rad/s", compute, ("cvel",), point_text=ANY_POINT,
        is_view=True,
    )  # fmt: skip


def lin_vel_b(frame: Frame) -> Quantity:
    """Declare the velocity of a root frame's point along the root link's axes."""
    reads = (frame.pos_field, "xquat", *_VELOCITY_READS)
    return _declare(
        frame, "lin_vel", 3, "m/s", _in_base(frame, "lin_vel_w"), reads, axes="b",
        compiled=lambda data: compiled_reads.lin_vel_b(data, frame),
    )  # fmt: skip


def ang_vel_b(frame: Frame) -> Quantity:
    """Declare the angular velocity of a root frame along the root link's axes."""
    return _declare(
        frame, "ang_vel", 3, "rad/s", _in_base(frame, "ang_vel_w"), ("xquat", "cvel"),
        axes="b", point_text=ANY_POINT,
        compiled=lambda data: compiled_reads.ang_vel_b(data, frame),
    )  # fmt: skip


def acc_w(frame: Frame) -> Quantity:
    """Declare the linear and angular acceleration of a frame."""
    return _declare_acc(
        frame, "acc", 6, "m/s², rad/s²", lambda data: _acceleration(data, frame)
    )


def lin_acc_w(frame: Frame) -> Quantity:
    """Declare the classical acceleration of a frame's point."""
    return _declare_acc(
        frame, "lin_acc", 3, "m/s²",
        lambda data: data.read(_name(frame, "acc_w"))[..., :3],
    )  # fmt: skip


def ang_acc_w(frame: Frame) -> Quantity:
    """Declare the angular acceleration of a frame."""
    return _declare_acc(
        frame, "ang_acc", 3, "rad/s²",
        lambda data: data.read(_name(frame, "acc_w"))[..., 3:], ANY_POINT,
    )  # fmt: skip


_WHOLE_WRITERS = {
    ("root", "link", "pose"): "write_root_link_pose_to_sim",
    ("root", "link", "vel"): "write_root_link_velocity_to_sim",
    ("root", "com", "pose"): "write_root_com_pose_to_sim",
    ("root", "com", "vel"): "write_root_com_velocity_to_sim",
    ("body", "link", "pose"): "write_body_link_pose_to_sim",
    ("body", "link", "vel"): "write_body_link_velocity_to_sim",
}
"""Writers of the pose or velocity that a quantity is a part of."""


def _in_base(frame: Frame, world_name: str) -> Compute:
    """Return the vector of that name, along the root link's axes."""
    return lambda data: quaternion.rotate_inverse(
        data.raw("xquat")[:, data.picks(ROOT_LINK).bodies],
        data.read(_name(frame, world_name)),
    )


def _declare(
    frame: Frame,
    kind: str,
    width: int,
    unit: str,
    compute: Compute,
    reads: tuple[str, ...],
    *,
    axes: Axes = "w",
    point_text: str = "",
    writer: str = "",
    when: str = "now",
    evaluates: bool = False,
    compiled: Compile | None = None,
    is_view: bool = False,
) -> Quantity:
    """Return a quantity of a frame; what all of them have in common is said here."""
    oriented = kind in ("pose", "quat") and frame.local_quat
    whole = {"pos": "pose", "quat": "pose", "lin_vel": "vel", "ang_vel": "vel"}.get(
        kind
    )
    remedy = _WHOLE_WRITERS.get((frame.subject, frame.point, whole or ""), "")
    return Quantity(
        compute,
        subject=frame.subject,
        point=frame.point,
        kind=kind,
        axes=axes,
        point_text=point_text or frame.where,
        unit=unit,
        shape=(*frame.shape, width),
        reads=reads,
        parameters=_local_parameters(frame) if oriented else (),
        writer=writer,
        remedy="" if writer or not remedy else f"use {{entity}}.{remedy}(…)",
        when=when,
        evaluates=evaluates,
        compiled=compiled,
        is_view=is_view,
        is_local=not evaluates,
    )


def _declare_acc(
    frame: Frame, kind: str, width: int, unit: str, compute: Compute, point: str = ""
) -> Quantity:
    reads = (frame.pos_field, *_ACCELERATION_READS)
    return _declare(
        frame, kind, width, unit, compute, reads, point_text=point, when=_EVALUATED,
        evaluates=True,
    )  # fmt: skip


def _name(frame: Frame, rest: str) -> str:
    parts = (frame.subject, frame.point, rest)
    return "_".join(part for part in parts if part)
