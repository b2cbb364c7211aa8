"""Overlays of contacts, rays, joints, targets and tendons."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from simstate.view.body_overlays import load
from simstate.view.one_world import OneWorld, model_of_world, on_host, vector_text
from simstate.view.shapes import (
    GREEN,
    GREY,
    ORANGE,
    RED,
    YELLOW,
    Arrow,
    Path,
    Point,
    Shape,
)
from simstate.world.worlds import worlds_of

_HINGE = mujoco.mjtJoint.mjJNT_HINGE.value
_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
NEAR_LIMIT = 0.02
"""A joint is at its limit within this fraction of its range."""


def contacts(seen: OneWorld) -> list[Shape]:
    """Return contact points, their normals, and the forces on the second geom."""
    table = seen.contacts
    points, forces = on_host(table.pos_w), on_host(table.force_w)
    frames, distances = on_host(table.frame_w), on_host(table.distance)
    shapes: list[Shape] = []
    for k, (first, second) in enumerate(table.geom_names):
        pair = f"{first} on {second}"
        where = f"{pair}: at {vector_text(points[k])} m, {1e3 * distances[k]:.3g} mm"
        shapes.append(Point(points[k], 0.015 * seen.size, YELLOW, where))
        normal = f"{pair}: normal {vector_text(frames[k, 0])}, world axes"
        shapes.append(Arrow(points[k], 0.06 * seen.size * frames[k, 0], GREY, normal))
        text = f"{pair}: force {vector_text(forces[k])} N on {second}, world axes"
        drawn = seen.length_of_force(forces[k])
        shapes += load(seen, points[k], forces[k], drawn, RED, "N", text)
    return shapes


def rays(seen: OneWorld) -> list[Shape]:
    """Return rays from their origins to their hits, or to their ends."""
    shapes: list[Shape] = []
    for name, sensor in seen.rays.items():
        starts = on_host(sensor.origin_w[seen.world])
        ends = on_host(sensor.hit_pos_w[seen.world])
        hits = on_host(sensor.hit[seen.world])
        distances = on_host(sensor.distance[seen.world])
        for k in range(sensor.num_rays):
            text = f"rays {name}[{k}]: {distances[k]:.4g} m"
            ink = GREEN if hits[k] else GREY
            shapes.append(Path(np.stack([starts[k], ends[k]]), ink, text))
            if hits[k]:
                shapes.append(Point(ends[k], 0.01 * seen.size, GREEN, text))
    return shapes


def joints(seen: OneWorld) -> list[Shape]:
    """Return axes of hinges and slides with their ranges; red at a limit."""
    model, qpos = seen.model, seen.field("qpos")
    attitudes = seen.field("xmat").reshape(-1, 3, 3)
    anchors, axes = seen.field("xanchor"), seen.field("xaxis")
    limits = seen.parameter("jnt_range")
    shapes: list[Shape] = []
    for j in range(model.njnt):
        kind = int(model.jnt_type[j])
        name = model.joint(j).name or f"joint {j}"
        if kind not in (_HINGE, _SLIDE):
            shapes.append(Point(anchors[j], 0.02 * seen.size, ORANGE, name))
            continue
        unit = "rad" if kind == _HINGE else "m"
        value = float(qpos[model.jnt_qposadr[j]])
        text = f"{name}: {value:.4g} {unit}"
        ink = ORANGE
        if model.jnt_limited[j]:
            low, high = (float(x) for x in limits[j])
            near = NEAR_LIMIT * (high - low)
            ink = ORANGE if low + near < value < high - near else RED
            text += f" of {low:.4g} … {high:.4g}"
            arm = np.zeros(3)
            if kind == _HINGE:  # a direction that is fixed in the body
                own = attitudes[int(model.jnt_bodyid[j])]
                arm = 0.08 * seen.size * _across(own, axes[j])
            way = anchors[j] + _range(arm, axes[j], low - value, high - value)
            shapes.append(Path(way, ink, text))
            shapes.append(Point(anchors[j] + arm, 0.01 * seen.size, ink, text))
            for end, limit in zip(way[[0, -1]], (low, high), strict=True):
                limit_text = f"{name}: limit {limit:.4g} {unit}"
                shapes.append(Point(end, 0.006 * seen.size, RED, limit_text))
        shapes.append(Arrow(anchors[j], 0.15 * seen.size * axes[j], ink, text))
    return shapes


def _across(rot_wb: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return a unit vector normal to an axis, fixed in a body, world axes; (3,)."""
    own = rot_wb[:, int(np.argmin(np.abs(rot_wb.T @ axis)))]
    across = own - (own @ axis) * axis
    return across / np.linalg.norm(across)


def _range(arm: np.ndarray, axis: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return points of a joint's range about its anchor, from low to high; (n, 3).

    Args:
        arm: position of the joint on its arc, world axes [m], zero for a slide; (3,).
        axis: axis of the joint, world axes; (3,).
        low: lower limit minus position [rad or m].
        high: upper limit minus position [rad or m].
    """
    if not arm.any():
        return np.stack([low * axis, high * axis])
    low, high = max(low, -2 * math.pi), min(high, 2 * math.pi)
    angles = np.linspace(low, high, 2 + int((high - low) / 0.2))[:, None]
    return np.cos(angles) * arm + np.sin(angles) * np.cross(axis, arm)


def targets(seen: OneWorld) -> list[Shape]:
    """Return the path of each link's centre of mass to its joint's target."""
    model = seen.model
    centres, anchors = seen.field("xipos"), seen.field("xanchor")
    axes = seen.field("xaxis")
    shapes: list[Shape] = []
    for entity in seen.entities.values():
        servos = entity.index.target_inputs("position").joints
        if not servos:
            continue
        asked = seen.quantity(entity.name, "joint_pos_target")
        values = seen.quantity(entity.name, "joint_pos")
        for k in servos:
            joint = entity.index.joints.ids[k]
            turns = int(model.jnt_type[joint]) == _HINGE
            centre = centres[int(model.jnt_bodyid[joint])]
            left = float(asked[k] - values[k])
            if not np.isfinite(left):
                continue
            way = (
                _arc(centre - anchors[joint], axes[joint], left) + anchors[joint]
                if turns
                else np.stack([centre, centre + left * axes[joint]])
            )
            unit = "rad" if turns else "m"
            text = (
                f"{entity.name}/{entity.joint_names[k]}: joint_pos_target = "
                f"{asked[k]:.4g} {unit}, joint_pos = {values[k]:.4g} {unit}; drawn at "
                "the link's COM"
            )
            shapes.append(Path(way, GREEN, text))
            shapes.append(Point(way[-1], 0.015 * seen.size, GREEN, text))
    return shapes


def _arc(arm: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Return points of a vector that rotates about an axis through its start; (n, 3).

    Full turns are omitted: they end at the same position.
    """
    angle = math.fmod(angle, 2 * math.pi)
    angles = np.linspace(0.0, angle, 2 + int(abs(angle) / 0.2))[:, None]
    along = (arm @ axis) * axis
    return along + np.cos(angles) * (arm - along) + np.sin(angles) * np.cross(axis, arm)


def tendons(seen: OneWorld) -> list[Shape]:
    """Return the paths of spatial tendons, over the geoms that they wrap."""
    if not seen.model.ntendon:
        return []
    worlds = worlds_of(seen.worlds)
    model = model_of_world(worlds, seen.world)
    data = mujoco.MjData(model)
    row = np.ascontiguousarray(on_host(worlds.rows.read()[seen.world]))
    mujoco.mj_setState(model, data, row, _STATE)
    mujoco.mj_fwdPosition(model, data)
    places = data.wrap_xpos.reshape(-1, 3)
    shapes: list[Shape] = []
    for t in range(model.ntendon):
        first, count = int(data.ten_wrapadr[t]), int(data.ten_wrapnum[t])
        if count < 2:
            continue
        name = model.tendon(t).name or f"tendon {t}"
        text = f"{name}: {data.ten_length[t]:.4g} m long"
        shapes.append(Path(places[first : first + count].copy(), YELLOW, text))
    return shapes
