"""The models that ship with the package: small, named throughout, without a ground."""

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
"""The shipped models, in alphabetical order."""


def path(name: str) -> Path:
    """The MJCF file of the shipped model `name`."""
    if name not in NAMES:
        raise unknown_name("model", name, NAMES)
    return Path(__file__).with_name(f"{name}.xml")


def spec(name: str) -> mujoco.MjSpec:
    """A new `MjSpec` of the shipped model `name`, to edit, attach or compile."""
    return mujoco.MjSpec.from_file(str(path(name)))
