"""Rays in a compiled model: the elements that carry them, the geoms they can hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from simstate.base.checks import instance_of, number, one_of, whole_number
from simstate.base.errors import InvalidInputError
from simstate.scene.element_names import matching
from simstate.scene.initial import vector
from simstate.scene.ray_cfg import RayCastCfg, RayPattern


@dataclass(frozen=True)
class BuiltRays:
    """The rays of one RayCastCfg in the compiled model."""

    cfg: RayCastCfg
    kind: Literal["body", "site", "geom"]
    """The kind of elements that carry them."""
    parents: list[int]
    """Ids of the elements that carry them; body 0: the world."""
    names: tuple[str, ...]
    """Names of these elements."""
    pos: tuple[float, float, float]
    """Position of the sensor from its parent's origin, in the parent's axes [m]."""
    origins: np.ndarray
    """Origins of one parent's rays, in the sensor's axes, from there [m]; (R, 3)."""
    directions: np.ndarray
    """Unit directions of one parent's rays, in the sensor's axes; (R, 3)."""
    geoms: np.ndarray
    """True for geoms that can be hit; bool, (ngeom,)."""


def build_rays(
    model: mujoco.MjModel, rays: Mapping[str, RayCastCfg]
) -> dict[str, BuiltRays]:
    """Check each configuration and resolve the names in it."""
    return {name: _build(model, name, cfg) for name, cfg in rays.items()}


def _build(model: mujoco.MjModel, name: str, cfg: RayCastCfg) -> BuiltRays:
    instance_of(f"rays[{name!r}]", cfg, RayCastCfg)
    one_of(f"alignment of rays {name!r}", cfg.alignment, ("full", "yaw", "world"))
    number(f"max_distance of rays {name!r}", cfg.max_distance, more_than=0, unit="m")
    if not isinstance(cfg.pattern, RayPattern):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            f"pattern of rays {name!r} must have a method rays(), got {cfg.pattern!r}.",
            name="pattern",
        )
    origins, directions = cfg.pattern.rays()
    length = np.linalg.norm(directions, axis=1, keepdims=True)
    if not len(directions) or not bool((length > 0.0).all()):
        raise InvalidInputError(
            f"Rays {name!r} must have at least one ray, and no direction that is zero.",
            name="rays",
        )
    kind, names = _parents(model, name, cfg)
    parents = [model_id(model, kind, one) for one in names] or [0]
    first, second, third = vector(cfg.pos, 3, f"pos of rays {name!r}")
    offset = vector(cfg.offset, 3, f"offset of rays {name!r}")
    geoms = _hittable(model, name, cfg, kind, parents if names else [])
    return BuiltRays(
        cfg, kind, parents, tuple(names), (float(first), float(second), float(third)),
        origins + offset, directions / length, geoms,
    )  # fmt: skip


def _parents(
    model: mujoco.MjModel, name: str, cfg: RayCastCfg
) -> tuple[Literal["body", "site", "geom"], list[str]]:
    """Return the kind and the names of the elements that carry rays; []: the world."""
    given = {"body": cfg.body, "site": cfg.site, "geom": cfg.geom}
    named = [kind for kind, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidInputError(
            f"Rays {name!r} are carried by {' and '.join(named)}: give only one of "
            "them, or declare rays for each.",
            name=name,
        )
    for kind in ("body", "site", "geom"):
        value = given[kind]
        if value is not None:
            known = [x for x in _names(model, kind) if x]
            return kind, matching(value, known, f"{kind} for rays")
    return "body", []


def _names(model: mujoco.MjModel, kind: str) -> list[str]:
    """Return the names of all elements of a kind, except for the world body."""
    count = {"body": model.nbody, "site": model.nsite, "geom": model.ngeom}[kind]
    first = 1 if kind == "body" else 0
    return [getattr(model, kind)(k).name for k in range(first, count)]


def model_id(model: mujoco.MjModel, kind: str, name: str) -> int:
    """Return the id of an element by its kind and name."""
    return int(getattr(model, kind)(name).id)


def _hittable(
    model: mujoco.MjModel,
    name: str,
    cfg: RayCastCfg,
    kind: str,
    parents: list[int],
) -> np.ndarray:
    """Return a mask of the geoms that can be hit; bool, (ngeom,)."""
    bodies = [model.body(k).name for k in range(model.nbody)]
    excluded: list[str] = []
    if cfg.exclude is None:
        own = tuple(_body_of(model, kind, k).partition("/")[0] + "/" for k in parents)
        excluded = [body for body in bodies if body.startswith(own)]
    elif cfg.exclude:
        excluded = matching(cfg.exclude, bodies[1:], "body that rays cannot hit")
    hidden = np.isin(bodies, excluded)
    geoms = ~hidden[np.asarray(model.geom_bodyid)]
    if cfg.groups is None:
        return geoms
    groups = [whole_number(f"groups of rays {name!r}", g, 0) for g in cfg.groups]
    if any(group > 5 for group in groups):
        raise InvalidInputError(
            f"Geom groups of rays {name!r} must be 0 … 5, got {list(cfg.groups)}.",
            name="groups",
        )
    return geoms & np.isin(model.geom_group, groups)


def _body_of(model: mujoco.MjModel, kind: str, element: int) -> str:
    """Return the name of the body that an element belongs to."""
    if kind != "body":
        element = int(getattr(model, f"{kind}_bodyid")[element])
    return model.body(element).name


def has_seams(model: mujoco.MjModel, geoms: np.ndarray) -> bool:
    """Return True if the surface of one of these geoms consists of several faces."""
    smooth = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_SPHERE,
              mujoco.mjtGeom.mjGEOM_ELLIPSOID)  # fmt: skip
    kinds = np.asarray(model.geom_type)[geoms]
    return model.nflex > 0 or not np.isin(kinds, [int(kind) for kind in smooth]).all()


def tilt(directions: np.ndarray, angle: float) -> np.ndarray:
    """Return unit directions rotated by a small angle [rad]; (R, 3).

    The rotation avoids axes, diagonals and grid lines, along which edges often lie.
    """
    across = np.cross(directions, (0.1371, 0.5934, 0.7931))
    parallel = np.linalg.norm(across, axis=1) < 0.1
    across[parallel] = np.cross(directions[parallel], (0.8147, -0.1270, 0.5658))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    turned = directions + angle * across
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)
