"""EntityMirror: the mirror image of a robot in its plane of symmetry.

Pairs of bodies, joints and sites come from the geometry of the reference pose (qpos0),
signs from the directions of axes. A reflection keeps vectors in the plane and reverses
the component along its normal; of an axial vector (angular velocity, torque) it keeps
the component along the normal and reverses the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import ModelError, listed, unknown_name
from simstate.entity.entity import Entity
from simstate.world.worlds import worlds_of

AXES = "xyz"
Device: TypeAlias = torch.device | str
TOLERANCE = 1e-5
"""Largest distance [m], or difference of unit vectors, of parts that are a pair."""
_SITE = mujoco.mjtObj.mjOBJ_SITE.value
_HINGE = mujoco.mjtJoint.mjJNT_HINGE.value


@dataclass(frozen=True)
class SignedPermutation:
    """Column k of the mirror image is column `index[k]` times `sign[k]`."""

    index: tuple[int, ...]
    sign: tuple[float, ...]

    @staticmethod
    def identity(count: int) -> SignedPermutation:
        """Return the one that changes nothing."""
        return SignedPermutation(tuple(range(count)), (1.0,) * count)

    def __len__(self) -> int:
        return len(self.index)

    def __call__(self, values: Tensor) -> Tensor:
        """Return the mirror image; shape (…, columns)."""
        index, sign = self.tensors(values.device)
        return values[..., index] * sign.to(values)

    def tensors(self, device: Device = "cpu") -> tuple[Tensor, Tensor]:
        """Return index (int64) and sign (float32)."""
        index = torch.tensor(self.index, dtype=torch.int64, device=device)
        return index, torch.tensor(self.sign, device=device)

    def joined(self, *others: SignedPermutation) -> SignedPermutation:
        """Return the one of these columns with those of others next to them."""
        index, sign = list(self.index), list(self.sign)
        for other in others:
            index += [len(index) + k for k in other.index]
            sign += other.sign
        return SignedPermutation(tuple(index), tuple(sign))

    def repeated(self, count: int) -> SignedPermutation:
        """Return the one of this many equal blocks of columns."""
        return SignedPermutation((), ()).joined(*[self] * count)


def vector_signs(normal: str, axial: bool) -> tuple[float, float, float]:
    """Return the signs of the mirrored components of a vector, x, y and z."""
    x, y, z = ((-1.0 if (axis == normal) != axial else 1.0) for axis in AXES)
    return x, y, z


class EntityMirror:
    """Mirror images of the bodies, joints and sites of an entity.

    Args:
        entity: the entity, whose root link must be its own mirror image.
        normal: the normal of the plane through the root link's origin: its axis "x",
            "y" or "z".
        joints: pairs that geometry does not give, such as {"left": "-right"}; the "-"
            stands for the opposite sign. They hold in both directions.
    """

    def __init__(
        self, entity: Entity, normal: str = "y", joints: Mapping[str, str] | None = None
    ) -> None:
        self.entity = entity
        self.normal = normal
        self._model = worlds_of(entity).model
        self._pose = _ReferencePose(self._model, entity.index.root_body_id)
        self._signs = np.array(vector_signs(normal, axial=False))
        self._check_root()
        declared = self._declared(joints or {})
        self.bodies, self._joints = self._match(declared)
        """The mirror image of each body, by names."""

    def joint(self, name: str) -> tuple[str, float]:
        """Return the mirror image of a joint, and the sign of its position."""
        return self._joints[name]

    def ball_joint(self, name: str) -> str:
        """Return the mirror image of a ball joint."""
        balls, model = self.entity.index.ball_joints, self._model
        body = int(model.jnt_bodyid[balls.ids[balls.names.index(name)]])
        image = self.bodies[self._body_of(body)]
        for other, k in zip(balls.names, balls.ids, strict=True):
            if self._body_of(model.jnt_bodyid[k]) == image:
                if self._has_mirrored_axes(body, int(model.jnt_bodyid[k])):
                    return other
                break
        raise self._error("ball_joint", name)

    def body(self, name: str) -> str:
        """Return the mirror image of a body."""
        return self.bodies[name]

    def site(self, name: str) -> str:
        """Return the mirror image of a site."""
        names, ids = self.entity.site_names, self.entity.index.sites.ids
        at = self._pose.points(self._pose.data.site_xpos)
        want = at[ids[names.index(name)]] * self._signs
        body = self._body_of(self._model.site_bodyid[ids[names.index(name)]])
        for other, k in zip(names, ids, strict=True):
            same = self._body_of(self._model.site_bodyid[k]) == self.bodies[body]
            if same and np.abs(at[k] - want).max() < TOLERANCE:
                return other
        raise self._error("site", name)

    def sensor(self, name: str) -> str:
        """Return the mirror image of a sensor at a site."""
        model, found = self._model, self.entity.index.sensors
        ids, sites = dict(zip(found.names, found.ids, strict=True)), _SITE
        sensor = ids[name]
        names = self.entity.index.sites
        if model.sensor_objtype[sensor] == sites:
            at = names.names[names.ids.index(int(model.sensor_objid[sensor]))]
            image = names.ids[names.names.index(self.site(at))]
            for other, k in ids.items():
                same = model.sensor_type[k] == model.sensor_type[sensor]
                at_site = model.sensor_objtype[k] == sites
                if same and at_site and model.sensor_objid[k] == image:
                    return other
        raise self._error("sensor", name)

    def columns_of(
        self, names: Sequence[str], find: Callable[[str], str | tuple[str, float]]
    ) -> SignedPermutation:
        """Return the signed permutation of columns that belong to named elements."""
        index, sign = list[int](), list[float]()
        for name in names:
            found = find(name)
            other, factor = (found, 1.0) if isinstance(found, str) else found
            if other not in names:
                raise ModelError(
                    f"{name!r} is chosen, and its mirror image {other!r} is not: "
                    "choose both or none."
                )
            index.append(list(names).index(other))
            sign.append(factor)
        return SignedPermutation(tuple(index), tuple(sign))

    def _check_root(self) -> None:
        """Raise unless a fixed base is its own mirror image in the world."""
        if self.entity.index.base in ("free", "none"):
            return
        pos, quat = self._pose.root
        away = abs(pos[AXES.index(self.normal)])
        turned = quat * (1.0, *vector_signs(self.normal, axial=True))
        if away > TOLERANCE or abs(abs(turned @ quat) - 1.0) > TOLERANCE:
            raise ModelError(
                f"The base of entity {self.entity.name!r} is fixed, and not in the "
                f"world's plane {self.normal} = 0: the world has no mirror image "
                "there.",
                name=self.entity.name,
            )

    def _body_of(self, body_id: Any) -> str:
        bodies = self.entity.index.bodies
        return bodies.names[bodies.ids.index(int(body_id))]

    def _declared(self, joints: Mapping[str, str]) -> dict[str, tuple[str, float]]:
        """Return the declared pairs, in both directions."""
        found: dict[str, tuple[str, float]] = {}
        for name, text in joints.items():
            other = text.removeprefix("-")
            for each in (name, other):
                if each not in self.entity.joint_names:
                    raise unknown_name("joint", each, self.entity.joint_names)
            sign = -1.0 if text.startswith("-") else 1.0
            found |= {name: (other, sign), other: (name, sign)}
        return found

    def _match(
        self, declared: dict[str, tuple[str, float]]
    ) -> tuple[dict[str, str], dict[str, tuple[str, float]]]:
        """Return the mirror images of bodies and joints, from the root on."""
        index, model = self.entity.index, self._model
        bodies: dict[str, str] = {}
        joints: dict[str, tuple[str, float]] = {}
        for name, body in zip(index.bodies.names, index.bodies.ids, strict=True):
            parent = int(model.body_parentid[body])
            inside = parent in index.bodies.ids
            above = bodies[self._body_of(parent)] if inside else None
            for other, k in zip(index.bodies.names, index.bodies.ids, strict=True):
                over = int(model.body_parentid[k])
                around = self._body_of(over) if over in index.bodies.ids else None
                if around != above or other in bodies.values():
                    continue
                pairs = self._joint_pairs(body, k, declared)
                if pairs is not None and self._is_image(body, k, bool(pairs[1])):
                    bodies[name] = other
                    joints |= pairs[0]
                    break
            else:
                raise self._error("body", name)
        return bodies, joints

    def _is_image(self, body: int, other: int, is_declared: bool) -> bool:
        """Return True if a body looks like the mirror image of another one."""
        model, at = self._model, self._pose.points(self._pose.data.xipos)
        masses = model.body_mass[[body, other]]
        if abs(masses[0] - masses[1]) > 1e-6 * masses.max():
            return False
        near = np.abs(at[other] - at[body] * self._signs).max() < TOLERANCE
        return is_declared or bool(near)

    def _has_mirrored_axes(self, body: int, other: int) -> bool:
        """Return True if the axes of a body are the mirror images of another's."""
        axes = self._pose.axes(body) * self._signs[:, None] * self._signs
        return bool(np.abs(self._pose.axes(other) - axes).max() < TOLERANCE)

    def _joint_pairs(
        self, body: int, other: int, declared: dict[str, tuple[str, float]]
    ) -> tuple[dict[str, tuple[str, float]], list[str]] | None:
        """Return the joints of a body with those of its image, and declared ones.

        None: they do not fit each other.
        """
        mine, theirs = self._joints_of(body), self._joints_of(other)
        if len(mine) != len(theirs):
            return None
        pairs: dict[str, tuple[str, float]] = {}
        known: list[str] = []
        for name, joint in mine.items():
            if name in declared:
                if declared[name][0] not in theirs:
                    return None
                pairs[name] = declared[name]
                known.append(name)
                continue
            for partner, k in theirs.items():
                taken = partner in [pair[0] for pair in pairs.values()]
                sign = 0.0 if taken else self._sign(joint, k)
                if sign:
                    pairs[name] = partner, sign
                    break
            else:
                return None
        return pairs, known

    def _joints_of(self, body: int) -> dict[str, int]:
        joints = self.entity.index.joints
        return {
            name: k
            for name, k in zip(joints.names, joints.ids, strict=True)
            if self._model.jnt_bodyid[k] == body
        }

    def _sign(self, joint: int, other: int) -> float:
        """Return the sign of a joint as the image of another one; 0: it is not."""
        model, data = self._model, self._pose.data
        if model.jnt_type[joint] != model.jnt_type[other]:
            return 0.0
        axial = model.jnt_type[joint] == _HINGE
        axes = self._pose.directions(data.xaxis)
        image = axes[joint] * vector_signs(self.normal, bool(axial))
        anchors = self._pose.points(data.xanchor)
        away = anchors[other] - anchors[joint] * self._signs
        if axial:  # the anchor may be anywhere on the axis
            away = away - axes[other] * (away @ axes[other])
        if axial and np.abs(away).max() > TOLERANCE:
            return 0.0
        along = float(image @ axes[other])
        return float(np.sign(along)) if abs(abs(along) - 1.0) < TOLERANCE else 0.0

    def _error(self, kind: str, name: str) -> ModelError:
        known = self.entity.body_names
        if kind != "body":
            known = getattr(self.entity, f"{kind}_names")
        return ModelError(
            f"Entity {self.entity.name!r} has no mirror image of its "
            f"{kind.replace('_', ' ')} {name!r} "
            f"in the plane {self.normal} = 0 of the root link: none with the same mass "
            "and joints is at the mirrored position in the pose qpos0. If it has one, "
            "declare the joints in SymmetryCfg.joints; if not, the robot is not "
            f"symmetric. Known: {listed(known)}.",
            name=name,
            known=known,
        )


class _ReferencePose:
    """Positions and directions in the pose qpos0, root link's axes."""

    def __init__(self, model: mujoco.MjModel, root: int) -> None:
        self.data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, self.data)
        mujoco.mj_comPos(model, self.data)
        self.root = self.data.xpos[root].copy(), self.data.xquat[root].copy()
        self._matrix = self.data.xmat[root].reshape(3, 3)

    def points(self, points: Any) -> Any:
        """Return positions from the root link's origin [m]."""
        return (points - self.root[0]) @ self._matrix

    def axes(self, body: int) -> Any:
        """Return the axes of a body as columns."""
        return self._matrix.T @ self.data.xmat[body].reshape(3, 3)

    def directions(self, vectors: Any) -> Any:
        """Return vectors along the root link's axes."""
        return vectors @ self._matrix
