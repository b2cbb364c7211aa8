"""Guards and repairs where a compiled model or an engine assumes fixed parameters.

`Shortcuts` guards parameters that MuJoCo's compiler assumes to be fixed. A body whose
inertial frame is that of the body, and that carries no other moving body, compiles as
"simple": its mass matrix is then assumed to be diagonal. Moving the COM later would
give wrong motion, in MuJoCo Warp without a warning. `StaticGeoms` updates the
poses of geoms attached to the world, `MeshBounds` the bounds of meshes that differ by
world, and `ZeroQuats` replaces zero quaternions of the state.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.base.ids import Index
from simstate.engine.engine import model_value
from simstate.engine.field_layout import joint_layout
from simstate.math import quaternion
from simstate.math.vector import norm
from simstate.scene.element_names import OBJECTS_OF_FIELDS

_TOLERANCE = 1e-7
"""Smaller than the displacements that MuJoCo distinguishes, and float32 resolves."""


class Shortcuts:
    """The elements of a model whose frames must not change after compilation."""

    def __init__(self, model: mujoco.MjModel, device: torch.device) -> None:
        self._model = model
        simple = np.asarray(model.body_simple) != 0
        simple[0] = False
        # A single dof has a diagonal mass matrix for any axis.
        coupled = simple & (np.asarray(model.body_dofnum) > 1)
        kind = np.asarray(model.jnt_type)
        free, ball = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
        joints = coupled[model.jnt_bodyid]
        frozen = {
            "body_ipos": simple,
            "body_iquat": simple,
            "jnt_pos": joints & (kind != free),
            "jnt_axis": joints & (kind != free) & (kind != ball),
        }
        self._frozen: dict[str, tuple[Tensor, Tensor]] = {}
        """By parameter: which elements must keep their values, and these values."""
        for name, mask in frozen.items():
            if mask.any():
                self._frozen[name] = (
                    torch.as_tensor(mask, device=device),
                    torch.as_tensor(model_value(model, name), device=device),
                )

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of which some elements must keep their values."""
        return frozenset(self._frozen)

    def check(
        self, name: str, values: Tensor, elements: Index | None, then: str
    ) -> None:
        """Raise if values of guarded elements differ from the compiled ones; (n, E, …).

        `then` is the end of the message.
        """
        if name not in self._frozen:
            return
        frozen, compiled = self._frozen[name]
        if elements is not None:
            frozen, compiled = frozen[elements], compiled[elements]
        moved = (values - compiled.to(values.dtype)).abs().amax(-1) > _TOLERANCE
        moved &= frozen
        if bool(moved.any()):
            ids = torch.arange(len(model_value(self._model, name)), device=moved.device)
            ids = ids if elements is None else ids[elements]
            raise self._error(name, ids[moved.any(0)].cpu().numpy(), then)

    def _error(self, name: str, ids: np.ndarray, then: str) -> InvalidInputError:
        kind = OBJECTS_OF_FIELDS[name.partition("_")[0]]
        names = [mujoco.mj_id2name(self._model, kind.value, int(k)) for k in ids]
        known = [
            label or f"{kind.name} {k}" for label, k in zip(names, ids, strict=True)
        ]
        return InvalidInputError(
            f"{name} of {listed(known)} must keep its compiled value: MuJoCo uses a "
            'shortcut for "simple" bodies (with their centre of mass at their origin), '
            "and would compute wrong motion. Compile them without it: "
            'EntityCfg(com_varies=True), or <body simple="false"> in MJCF. '
            f"{then}",
            name=name,
        )


PLACES = frozenset(("body_pos", "body_quat", "geom_pos", "geom_quat"))
"""The parameters that determine their poses."""


class StaticGeoms:
    """The geoms of a model that no joint and no mocap body moves."""

    def __init__(self, model: mujoco.MjModel, device: torch.device) -> None:
        bodies = np.asarray(model.geom_bodyid)
        roots = np.asarray(model.body_rootid)[bodies]
        is_static = np.asarray(model.body_weldid)[bodies] == 0
        is_static &= np.asarray(model.body_mocapid)[roots] == -1
        (ids,) = np.nonzero(is_static)
        self._ids = torch.as_tensor(ids, device=device)
        self._bodies = torch.as_tensor(bodies[ids].astype(np.int64), device=device)

    def __len__(self) -> int:
        return len(self._ids)

    def place(
        self,
        xpos: Tensor,
        xquat: Tensor,
        geom_pos: Tensor,
        geom_quat: Tensor,
        geom_xpos: Tensor,
        geom_xmat: Tensor,
    ) -> None:
        """Write their poses, world axes, from those of their bodies and offsets.

        Shapes are (num_envs, elements, …); those of offsets may be (1, elements, …).
        """
        pos, quat = xpos[:, self._bodies], xquat[:, self._bodies]
        offset = geom_pos[:, self._ids].expand_as(pos)
        turn = geom_quat[:, self._ids].expand_as(quat)
        geom_xpos[:, self._ids] = pos + quaternion.rotate(quat, offset)
        rot = quaternion.to_matrix(quaternion.multiply(quat, turn))
        geom_xmat[:, self._ids] = rot.reshape(geom_xmat[:, self._ids].shape)


_MESHES = (mujoco.mjtGeom.mjGEOM_MESH.value, mujoco.mjtGeom.mjGEOM_SDF.value)


class MeshBounds:
    """Half sizes, bounding boxes and bounding radii of all meshes of a model."""

    def __init__(self, model: mujoco.MjModel, device: torch.device) -> None:
        is_mesh = np.isin(model.geom_type, _MESHES) & (model.geom_dataid >= 0)
        self._geoms = torch.as_tensor(np.flatnonzero(is_mesh), device=device)
        boxes = [_box(model, mesh) for mesh in range(model.nmesh)] or [np.zeros(6)]
        box = torch.as_tensor(np.array(boxes), device=device)
        size = box[:, :3].abs() + box[:, 3:]
        self._by_parameter: dict[str, Tensor] = {
            "geom_aabb": box,
            "geom_size": size,
            "geom_rbound": norm(size)[:, 0],
        }

    def __len__(self) -> int:
        return len(self._geoms)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that depend on the choice of a mesh."""
        return tuple(self._by_parameter)

    def follow(self, dataid: Tensor, parameter: str, values: Tensor) -> None:
        """Write a parameter of all mesh geoms for these choices; (num_envs, ngeom, …).

        A geom with a negative choice has no mesh and is unchanged.
        """
        chosen = dataid[:, self._geoms].long()
        now = values[:, self._geoms]
        bounds = self._by_parameter[parameter].to(values.dtype)[chosen.clamp(min=0)]
        there = (chosen >= 0).reshape(*chosen.shape, *([1] * (now.ndim - 2)))
        values[:, self._geoms] = torch.where(there, bounds.reshape(now.shape), now)


def _box(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Return centre and half size of a mesh's bounding box, its own frame; (6,)."""
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = np.asarray(model.mesh_vert[first : first + count], dtype=np.float64)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return np.concatenate([(low + high) / 2.0, (high - low) / 2.0])


_MIN = 1e-15
"""MuJoCo's mjMINVAL: smaller values count as zero."""


class ZeroQuats:
    """Replaces zero quaternions by the identity during a computation.

    Args:
        model: the model with the free joints, ball joints and mocap bodies.
        qpos: memory of the positions; shape (num_envs, nq).
        mocap_quat: memory of mocap orientations; shape (num_envs, nmocap, 4).
    """

    def __init__(self, model: mujoco.MjModel, qpos: Tensor, mocap_quat: Tensor) -> None:
        first = [q for q, _ in joint_layout(model).quats]
        self._first = torch.tensor(first, dtype=torch.int64, device=qpos.device)
        self._columns = self._first[:, None] + torch.arange(4, device=qpos.device)
        self._qpos = qpos
        self._mocap_quat = mocap_quat
        self._kept: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return len(self._first) + self._mocap_quat.shape[1]

    def fill(self) -> None:
        """Replace zero quaternions by the identity."""
        real, mocap = self._qpos[:, self._columns], self._mocap_quat
        zero = (real.abs() < _MIN).all(-1), (mocap.abs() < _MIN).all(-1)
        self._kept = zero
        if len(self._first):
            self._qpos[:, self._first] = real[..., 0].masked_fill(zero[0], 1.0)
        if mocap.shape[1]:
            mocap[..., 0].masked_fill_(zero[1], 1.0)

    def put_back(self, moved: bool) -> None:
        """Restore the zeros, except for joints if they have `moved`."""
        if self._kept is None:
            return
        zero, self._kept = self._kept, None
        if len(self._first) and not moved:
            real = self._qpos[:, self._first]
            self._qpos[:, self._first] = real.masked_fill(zero[0], 0.0)
        if self._mocap_quat.shape[1]:
            self._mocap_quat[..., 0].masked_fill_(zero[1], 0.0)
