"""Motions to track: CSV files of retargeted motions, and NPZ of the tracking tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simstate.base.archive import read_arrays
from simstate.base.checks import as_path, has_shape, number
from simstate.base.errors import InvalidInputError, ShapeError

_BODIES = {"body_pos_w": 3, "body_quat_w": 4, "body_lin_vel_w": 3, "body_ang_vel_w": 3}
"""Arrays of the bodies in a NPZ file, and their numbers of components."""


@dataclass(frozen=True)
class MotionClip:
    """A root link and joints over time, quaternions (w, x, y, z), world axes."""

    fps: float
    """Frames per second."""
    joint_names: tuple[str, ...]
    joint_pos: np.ndarray
    """Positions of the joints [rad or m]; (frames, joints)."""
    joint_vel: np.ndarray
    """Their velocities [rad/s or m/s]; differences of positions in a CSV file."""
    root_pos: np.ndarray
    """Position of the root link's origin [m]; (frames, 3)."""
    root_quat: np.ndarray
    """Orientation of the root link, (w, x, y, z); (frames, 4)."""
    bodies: dict[str, np.ndarray]
    """Arrays of the bodies in a NPZ file: body_pos_w, body_quat_w, …"""

    def __len__(self) -> int:
        return len(self.joint_pos)

    def states(self, robot: str) -> list[dict[str, Any]]:
        """A unified state for each frame, for `sim.set_states` or `env.reset`."""
        return [
            {
                "robots": {
                    robot: {
                        "pos": self.root_pos[k].tolist(),
                        "rot": self.root_quat[k].tolist(),
                        "dof_pos": dict(
                            zip(self.joint_names, map(float, pos), strict=True)
                        ),
                        "dof_vel": dict(
                            zip(self.joint_names, map(float, vel), strict=True)
                        ),
                    }
                }
            }
            for k, (pos, vel) in enumerate(
                zip(self.joint_pos, self.joint_vel, strict=True)
            )
        ]


def read_motion(
    path: str | Path, joint_names: Sequence[str], fps: float | None = None
) -> MotionClip:
    """Return the motion of a .csv or .npz file.

    A line of a CSV file has the root's position (3), its quaternion (x, y, z, w) and
    the joints. An NPZ file has `fps`, `joint_pos`, `joint_vel`, `body_pos_w` and
    `body_quat_w` (w, x, y, z), the root as the first body.

    Args:
        path: the file.
        joint_names: the names of its joints, in its order.
        fps: frames per second of a CSV file, which does not state it.
    """
    path = as_path("path", path)
    if not path.is_file():
        raise InvalidInputError(f"There is no file {str(path)!r}.")
    names = tuple(joint_names)
    if path.suffix == ".csv":
        return _from_csv(path, names, fps)
    if path.suffix == ".npz":
        return _from_npz(path, names)
    raise InvalidInputError(
        f"A motion is a .csv or .npz file, got {str(path)!r}.", name=str(path)
    )


def _from_csv(path: Path, names: tuple[str, ...], fps: float | None) -> MotionClip:
    if fps is None or not fps > 0:
        raise InvalidInputError(
            "A CSV file does not state its rate: give fps= [1/s].", name="fps"
        )
    try:
        rows = np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=2)
    except (ValueError, OSError) as error:
        raise InvalidInputError(
            f"{str(path)!r} has no lines of numbers: {error}."
        ) from error
    if rows.shape[1] != 7 + len(names):
        raise ShapeError(
            f"{str(path)!r} has {rows.shape[1]} columns: 7 of the root and "
            f"{rows.shape[1] - 7} joints, but {len(names)} joint names were given.",
            name="joint_names",
            shape=rows.shape,
        )
    _check_numbers(path, "lines", rows)
    quat = _unit(path, rows[:, [6, 3, 4, 5]], "Columns 4 to 7 are (x, y, z, w)")
    joints = rows[:, 7:]
    vel = np.gradient(joints, 1 / fps, axis=0) if len(rows) > 1 else 0 * joints
    return MotionClip(fps, names, joints, vel, rows[:, :3], quat, {})


def _check_numbers(path: Path, name: str, values: np.ndarray) -> None:
    """Raise unless all values are real and finite, and name the first that is not."""
    if values.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"{name} of {str(path)!r} must be real numbers, not {values.dtype}.",
            name=name,
        )
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        frame, *rest = (int(k) for k in wrong[0])
        at = "".join(f"[{k}]" for k in rest)
        raise InvalidInputError(
            f"{name}{at} of {str(path)!r} is {values[tuple(wrong[0])]} in frame "
            f"{frame}: all values must be finite.",
            name=name,
        )


def _unit(path: Path, quat: np.ndarray, means: str) -> np.ndarray:
    """Return normalised quaternions; raise if a length is far from 1; (frames, 4)."""
    lengths = np.linalg.norm(quat, axis=1)
    off = np.nan_to_num(np.abs(lengths - 1), nan=np.inf)
    if (off >= 1e-2).any():
        worst = int(off.argmax())
        raise InvalidInputError(
            f"Line {worst + 1} of {str(path)!r} has a quaternion of length "
            f"{lengths[worst]:.3g}. {means}.",
            name="quaternion",
        )
    return quat / lengths[:, None]


def _from_npz(path: Path, names: tuple[str, ...]) -> MotionClip:
    arrays = read_arrays(path)
    try:
        joints, vel = arrays.pop("joint_pos"), arrays.pop("joint_vel")
        fps = arrays.pop("fps").reshape(-1)[0]
        pos, quat = arrays["body_pos_w"], arrays["body_quat_w"]
    except (KeyError, IndexError) as error:
        raise InvalidInputError(
            f"{str(path)!r} is no motion file: {error}.", name=str(path)
        ) from error
    if (
        joints.ndim != 2
        or joints.shape[1] != len(names)
        or pos.shape[:1] != joints.shape[:1]
    ):
        raise ShapeError(
            f"{str(path)!r} has joints of shape {joints.shape} and bodies of shape "
            f"{pos.shape}; {len(names)} joint names were given.",
            name="joint_names",
            shape=joints.shape,
        )
    frames = len(joints)
    of = f"of {str(path)!r}"
    has_shape(f"joint_vel {of}", vel, joints.shape)
    for name, width in _BODIES.items():
        if name in arrays:
            has_shape(f"{name} {of}", arrays[name], (frames, "bodies", width))
    if not frames or not quat.shape[1] or pos.shape[1] != quat.shape[1]:
        raise ShapeError(
            f"{str(path)!r} needs one or more frames and bodies, got {pos.shape} and "
            f"{quat.shape}.",
            name="body_pos_w",
            shape=pos.shape,
        )
    known = {name: x for name, x in arrays.items() if name in _BODIES}
    for name, values in {"joint_pos": joints, "joint_vel": vel, **known}.items():
        _check_numbers(path, name, values)
    root = _unit(path, quat[:, 0], "body_quat_w is (w, x, y, z)")
    if fps.dtype.kind not in "fiu":
        raise InvalidInputError(f"fps {of} must be a number, not {fps.dtype}.")
    rate = number(f"fps {of}", float(fps), more_than=0, unit="1/s")
    return MotionClip(rate, names, joints, vel, pos[:, 0], root, arrays)
