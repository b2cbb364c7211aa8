"""A camera from which a scene can be watched, chosen by the size of what it shows."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from simstate.base.errors import InvalidInputError
from simstate.scene import CameraCfg, SceneCfg, build_scene

VIEW = "view"
"""The name of the camera that `with_view` adds."""

_FROM = np.array([-0.6, -0.7, 0.4])
"""Direction from the target to the camera, world axes."""


def with_view(scene: SceneCfg, width: int = 320, height: int = 240) -> SceneCfg:
    """The scene with a camera on its first entity, from the side and a bit above.

    It follows an entity that moves freely; others it sees as a whole.
    """
    if VIEW in scene.cameras:
        raise InvalidInputError(
            f"The scene has a camera {VIEW!r}, the name of the one to watch it by.",
            name=VIEW,
        )
    built = build_scene(scene)
    name, index = next(iter(built.entities.items()))
    model, data = built.model, built.default
    mujoco.mj_kinematics(model, data)
    geoms = [k for k in range(model.ngeom) if model.geom_bodyid[k] in index.bodies.ids]
    centres, radii = data.geom_xpos[geoms], model.geom_rbound[geoms][:, None]
    low, high = (centres - radii).min(0), (centres + radii).max(0)
    middle, size = (low + high) / 2.0, float(np.linalg.norm(high - low))
    pos = middle + 1.2 * size * _FROM
    body = None
    if index.base == "free":
        body = f"{name}/{index.bodies.names[0]}"
        start = data.xpos[index.bodies.ids[0]]
        pos, middle = pos - start, middle - start
    camera = CameraCfg(
        body=body,
        follow=body is not None,
        pos=tuple(pos),
        look_at=tuple(middle),
        width=width,
        height=height,
    )
    return dataclasses.replace(scene, cameras={**scene.cameras, VIEW: camera})
