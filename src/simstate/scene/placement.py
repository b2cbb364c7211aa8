"""The displacement of a placed entity, and its effect on the arrays of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from simstate.scene.model_fields import names_in

_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
_ROUNDING = 1e-8
_FREE = mujoco.mjtJoint.mjJNT_FREE.value
_CONNECT, _WELD = mujoco.mjtEq.mjEQ_CONNECT.value, mujoco.mjtEq.mjEQ_WELD.value
_SITE = mujoco.mjtObj.mjOBJ_SITE.value

_CARRIERS = {
    "body": "body_parentid", "geom": "geom_bodyid", "site": "site_bodyid",
    "cam": "cam_bodyid", "light": "light_bodyid",
}  # fmt: skip
"""Prefixes of posed elements, and the array of the bodies that carry them."""
_TURNED = names_in("cam_pos0 cam_poscom0 light_pos0 light_poscom0 light_dir0")
"""Vectors along world axes, from the carrying body at qpos0."""
_ROUNDED = names_in(
    "dof_M0 dof_length tendon_length0 tendon_lengthspring actuator_length0 "
    "actuator_lengthrange flexedge_length0 flex_bending flex_stiffness eq_data "
    "body_invweight0 dof_invweight0 tendon_invweight0 flexedge_invweight0 "
    "actuator_acc0 flex_vertmetric actuator_biasprm"
)
"""Arrays that MuJoCo computes from positions in the world at qpos0."""
_ALONG_WORLD_AXES = names_in("flex_size flex_vert0 flex_node0")
"""Extents along world axes, which a rotation changes."""
_SAME_FRAME = names_in("body_sameframe geom_sameframe site_sameframe")


@dataclass(frozen=True, eq=False)
class Placement:
    """The rotation, then the translation, that place an entity's model in a scene."""

    pos: np.ndarray
    """Translation, world axes [m]."""
    quat: np.ndarray
    """Rotation about the origin, wxyz."""

    @property
    def is_identity(self) -> bool:
        """True if the entity is exactly where its file has it."""
        return not self.pos.any() and bool((self.quat == _IDENTITY).all())

    def moved_point(self, points: np.ndarray) -> np.ndarray:
        """Map points from the file's world to the scene's; shape (…, 3)."""
        return self.turned(points) + self.pos

    def turned(self, vectors: np.ndarray) -> np.ndarray:
        """Map vectors from the file's world axes to the scene's; shape (…, 3)."""
        return vectors @ self._matrix().T

    def moved_quat(self, quats: np.ndarray) -> np.ndarray:
        """Map orientations from the file's world to the scene's; shape (n, 4)."""
        moved = np.zeros_like(quats)
        for k, quat in enumerate(quats):
            mujoco.mju_mulQuat(moved[k], self.quat, quat)
        return moved

    def moved_equality(
        self, kind: int, data: np.ndarray, first: bool, second: bool
    ) -> np.ndarray:
        """Return an equality's data if its first or second body is the world.

        Anchors and relative poses in the world move along with the entity.
        """
        data = data.copy()
        if kind == _CONNECT and first:
            data[:3] = self.moved_point(data[:3])
        elif kind == _CONNECT and second:
            data[3:6] = self.moved_point(data[3:6])
        elif kind == _WELD and first:
            data[3:6] = self.moved_point(data[3:6])
            data[6:10] = self.moved_quat(data[None, 6:10])[0]
        elif kind == _WELD and second:
            data[:3] = self.moved_point(data[:3])
            # The relative position is of the anchor, along the first body's axes.
            inverse, turned = np.zeros(4), np.zeros(4)
            mujoco.mju_negQuat(inverse, self.quat)
            mujoco.mju_mulQuat(turned, data[6:10], inverse)
            data[6:10] = turned
        return data

    def explains(
        self, field: str, own: Any, expected: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        """Return a mask of the scene's values that agree with the placement.

        `expected` are the file's values of one entity, `found` the scene's.
        """
        kind, _, what = field.partition("_")
        if field in _SAME_FRAME:
            return np.asarray(getattr(own, _CARRIERS[kind])) == 0
        if field in _CARRIED:
            carried = np.asarray(getattr(own, _CARRIERS[kind])) == 0
            return carried[:, None] & _close(_MOVED[what](self, expected), found)
        if field in ("qpos0", "qpos_spring"):
            return _close(self._moved_qpos(own, expected, found), found)
        if field in _KEYS:  # a key that states no position has that of the model
            return _close(_KEYS[field](self, own, expected, found), found)
        if field == "eq_data":
            expected = self._moved_equalities(own, expected)
        if field in _ROUNDED:
            return _close(expected, found)
        if field in _TURNED:
            turned = _close(self.turned(expected), found)
            return turned | _close(self.moved_point(expected), found)
        if field == "cam_mat0":
            axes = expected.reshape(-1, 3, 3)
            return _close((self._matrix() @ axes).reshape(found.shape), found)
        return np.ones(found.shape, bool)  # extents along world axes

    def _moved_qpos(
        self, own: Any, expected: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        """Return qpos with the poses of free joints moved; shape (…, nq)."""
        moved = expected.copy()
        for adr in own.jnt_qposadr[own.jnt_type == _FREE]:
            pos, quat = slice(adr, adr + 3), slice(adr + 3, adr + 7)
            moved[..., pos] = self.moved_point(expected[..., pos])
            turned = self.moved_quat(expected[..., quat].reshape(-1, 4))
            turned = turned.reshape(expected[..., quat].shape)
            moved[..., quat] = _signed(turned, found[..., quat])
        return moved

    def _moved_mocap_pos(
        self, own: Any, expected: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        del own
        return self.moved_point(expected.reshape(-1, 3)).reshape(found.shape)

    def _moved_mocap_quat(
        self, own: Any, expected: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        del own
        moved = self.moved_quat(expected.reshape(-1, 4))
        return _signed(moved, found.reshape(-1, 4)).reshape(found.shape)

    def _moved_equalities(self, own: Any, data: np.ndarray) -> np.ndarray:
        moved = data.copy()
        for k, kind in enumerate(own.eq_type):
            if own.eq_objtype[k] != _SITE:
                world = own.eq_obj1id[k] == 0, own.eq_obj2id[k] == 0
                moved[k] = self.moved_equality(int(kind), data[k], *world)
        return moved

    def _matrix(self) -> np.ndarray:
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, self.quat)
        return matrix.reshape(3, 3)


_MOVED = {
    "pos": Placement.moved_point,
    "dir": Placement.turned,
    "quat": Placement.moved_quat,
}
"""Functions that move the fields of elements attached to the world."""

_KEYS = {
    "key_qpos": Placement._moved_qpos,  # pyright: ignore[reportPrivateUsage]
    "key_mpos": Placement._moved_mocap_pos,  # pyright: ignore[reportPrivateUsage]
    "key_mquat": Placement._moved_mocap_quat,  # pyright: ignore[reportPrivateUsage]
}
"""Functions that move the positions of keyframes."""


_CARRIED = frozenset(f"{kind}_{what}" for kind in _CARRIERS for what in _MOVED)
_EXPLAINED = frozenset(
    {"qpos0", "qpos_spring", "cam_mat0", *_KEYS, *_CARRIED, *_SAME_FRAME, *_TURNED}
    | _ROUNDED
    | _ALONG_WORLD_AXES
)


def moves_with_placement(field: str) -> bool:
    """Return True if an array of a model depends on the entity's placement."""
    return field in _EXPLAINED


def _close(expected: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return a mask of values that agree to rounding; quaternions up to sign."""
    if expected.ndim == 2 and expected.shape[1] == 4:
        expected = _signed(expected, found)
    scale = np.maximum(1.0, np.abs(expected).max(initial=0.0, axis=-1, keepdims=True))
    return np.abs(expected - found) <= _ROUNDING * scale


def _signed(quat: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.where((quat * like).sum(-1, keepdims=True) < 0, -quat, quat)
