"""Compiler settings that MuJoCo reads from the outermost model only.

Other settings (angle, autolimits, boundmass, inertiafromgeom, …) stay with the elements
of the file that states them when it is attached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco

from simstate.base.errors import ModelError

_LENGTH_RANGE = (
    "mode", "useexisting", "uselimit", "accel", "maxforce", "timeconst", "timestep",
    "inttotal", "interval", "tolrange",
)  # fmt: skip
_MESH_TYPES = (
    mujoco.mjtGeom.mjGEOM_MESH.value,
    mujoco.mjtGeom.mjGEOM_SDF.value,
)


def carry_compiler_settings(
    parent: mujoco.MjSpec, specs: Mapping[tuple[str, ...], mujoco.MjSpec]
) -> None:
    """Copy the settings of the entities' models to the scene; raise if they differ.

    Only models with elements that the setting affects count, whether the value is
    stated or MuJoCo's default.
    """
    fitted = {users: s.compiler for users, s in specs.items() if _fits_geoms(s)}
    _carry("compiler", ("fitaabb",), parent.compiler, fitted)
    ranges = {users: s.compiler.LRopt for users, s in specs.items() if s.actuators}
    _carry("lengthrange", _LENGTH_RANGE, parent.compiler.LRopt, ranges)


def _fits_geoms(spec: mujoco.MjSpec) -> bool:
    """Return True if a primitive geom is fitted to a mesh."""
    return any(
        geom.meshname and int(geom.type) not in _MESH_TYPES for geom in spec.geoms
    )


def _carry(
    element: str,
    names: tuple[str, ...],
    parent: Any,
    stated: Mapping[tuple[str, ...], Any],
) -> None:
    """Set attributes of an MJCF element to the values that all models have."""
    for name in names:
        values = {users: getattr(each, name) for users, each in stated.items()}
        distinct = set(values.values())
        if len(distinct) > 1:
            said = ", ".join(f"{k}: {v}" for users, v in values.items() for k in users)
            raise ModelError(
                f"The entities' models have different values of <{element} {name}> "
                f"({said}), but MuJoCo compiles a scene with one. State the same value "
                "in the files.",
                name=name,
            )
        for value in distinct:
            setattr(parent, name, value)
