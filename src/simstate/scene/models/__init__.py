"""The bundled models: small, with all elements named, without a ground."""

from __future__ import annotations

from pathlib import Path

import mujoco

from simstate.base.errors import unknown_name

NAMES: tuple[str, ...] = (
    "arm",
    "cartpole",
    "cube",
    "finger",
    "glider",
    "humanoid",
    "mocap_target",
    "quadruped",
    "satellite",
)
"""The bundled models, in alphabetical order."""


def path(name: str) -> Path:
    """Return the MJCF file of the bundled model `name`."""
    if name not in NAMES:
        raise unknown_name("model", name, NAMES)
    return Path(__file__).with_name(f"{name}.xml")


def spec(name: str) -> mujoco.MjSpec:
    """Return a new `MjSpec` of the bundled model `name`, to edit, attach or compile."""
    return mujoco.MjSpec.from_file(str(path(name)))
