"""Adding the cameras of a configuration to a scene's specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from simstate.base.checks import instance_of, number, whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.scene.initial import unit_quat, vector
from simstate.scene.scene_cfg import CameraCfg

_PIXEL = 1e-5
"""Size of a pixel on the sensor [m]; any value gives the same image."""
HEADLIGHT = "headlight"
"""Name of the light that replaces MuJoCo's headlight."""
_MOST_PIXELS = 2**15
"""Maximum width and height [pixels]."""


def add_cameras(spec: mujoco.MjSpec, cameras: Mapping[str, CameraCfg]) -> None:
    """Add each camera to the world or to its body, or configure the model's own."""
    for name, cfg in cameras.items():
        _check(name, cfg)
        camera = (
            _model_camera(spec, cfg) if cfg.camera else _new_camera(spec, name, cfg)
        )
        camera.resolution = [cfg.width, cfg.height]
        if cfg.headlight:
            _add_headlight(spec, name, cfg, camera)
        if cfg.intrinsic is not None:
            fx, fy, cx, cy = cfg.intrinsic
            camera.sensor_size = [cfg.width * _PIXEL, cfg.height * _PIXEL]
            camera.focal_pixel = [fx, fy]
            # MuJoCo measures from the centre, to the left and up.
            camera.principal_pixel = [cfg.width / 2 - cx, cfg.height / 2 - cy]
        elif cfg.fovy is not None:
            camera.fovy = cfg.fovy


def _add_headlight(spec: mujoco.MjSpec, name: str, cfg: CameraCfg, camera: Any) -> None:
    """Add a light with the values of MuJoCo's headlight at a camera's position."""
    if cfg.camera is not None or any(light.name == HEADLIGHT for light in spec.lights):
        raise InvalidInputError(
            f"Camera {name!r} has headlight=True, which only one camera of a scene can "
            "have, and no camera of a model: declare it with body, pos and look_at.",
            name=name,
        )
    direction, own = np.zeros(3), spec.visual.headlight
    mujoco.mju_rotVecQuat(direction, np.array([0.0, 0.0, -1.0]), camera.quat)
    camera.parent.add_light(
        name=HEADLIGHT, type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, castshadow=False,
        pos=camera.pos, dir=direction, mode=camera.mode, active=bool(own.active),
        ambient=own.ambient, diffuse=own.diffuse, specular=own.specular,
        attenuation=[1.0, 0.0, 0.0],
    )  # fmt: skip


def look_at_quat(pos: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the orientation wxyz of a camera at `pos` that looks at `target`."""
    backward = pos - target
    distance = float(np.linalg.norm(backward))
    if distance < 1e-9:
        raise InvalidInputError(
            "A camera's look_at must not be its own position.", name="look_at"
        )
    backward = backward / distance
    right = np.cross([0.0, 0.0, 1.0], backward)
    if np.linalg.norm(right) < 1e-9:  # straight up or down: +y is up
        right = np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    axes = np.column_stack([right, np.cross(backward, right), backward])
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, axes.flatten())
    return quat


def _check(name: str, cfg: CameraCfg) -> None:
    """Raise unless the configuration of a camera is valid."""
    instance_of(f"cameras[{name!r}]", cfg, CameraCfg)
    whole_number(f"width of camera {name!r}", cfg.width, 1, _MOST_PIXELS)
    whole_number(f"height of camera {name!r}", cfg.height, 1, _MOST_PIXELS)
    if cfg.fovy is not None:
        number(
            f"fovy of camera {name!r}", cfg.fovy, more_than=0, less_than=180, unit="°"
        )
    if cfg.intrinsic is not None:
        for focal in vector(cfg.intrinsic, 4, f"intrinsic of camera {name!r}")[:2]:
            number(f"intrinsic of camera {name!r}", focal, more_than=0)
    if cfg.follow and cfg.body is None:
        raise InvalidInputError(
            f"Camera {name!r} has follow=True but no body: name the body to follow.",
            name=name,
        )
    pairs = (("fovy", "intrinsic"), ("look_at", "rot"), ("camera", "body"))
    for one, two in pairs:
        if getattr(cfg, one) is not None and getattr(cfg, two) is not None:
            raise InvalidInputError(
                f"Camera {name!r} has both {one} and {two}: give only one of them.",
                name=two,
            )


def _model_camera(spec: mujoco.MjSpec, cfg: CameraCfg) -> Any:
    """Return the camera of an entity's model."""
    known = {camera.name: camera for camera in spec.cameras}
    if cfg.camera not in known:
        raise unknown_name("camera of a model", str(cfg.camera), known)
    return known[cfg.camera]


def _new_camera(spec: mujoco.MjSpec, name: str, cfg: CameraCfg) -> Any:
    """Add a camera to the world or to a body."""
    parent: Any = spec.worldbody
    if cfg.body is not None:
        known = {body.name: body for body in spec.bodies}
        if cfg.body not in known:
            raise unknown_name("body for a camera", cfg.body, known)
        parent = known[cfg.body]
    pos = vector(cfg.pos, 3, f"pos of camera {name!r}")
    quat = np.array([1.0, 0.0, 0.0, 0.0])
    if cfg.look_at is not None:
        target = vector(cfg.look_at, 3, f"look_at of camera {name!r}")
        quat = look_at_quat(pos, target)
    elif cfg.rot is not None:
        quat = unit_quat(cfg.rot, f"rot of camera {name!r}")
    camera = parent.add_camera(name=name, pos=pos, quat=quat)
    if cfg.follow:
        camera.mode = mujoco.mjtCamLight.mjCAMLIGHT_TRACK
    return camera
