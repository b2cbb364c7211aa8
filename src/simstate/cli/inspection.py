"""Facts about a scene's model, as plain data."""

from __future__ import annotations

from typing import Any

import mujoco

from simstate.cli.model_scene import ENTITY
from simstate.entity import Entity
from simstate.entity.explanation import explain
from simstate.entity.state_writes import TARGETS
from simstate.scene import SceneCfg
from simstate.simulation import Simulation
from simstate.world.worlds import worlds_of

_JOINT_TYPES = {
    mujoco.mjtJoint.mjJNT_FREE.value: ("free", 7, 6, "m, quaternion wxyz"),
    mujoco.mjtJoint.mjJNT_BALL.value: ("ball", 4, 3, "quaternion wxyz"),
    mujoco.mjtJoint.mjJNT_SLIDE.value: ("slide", 1, 1, "m"),
    mujoco.mjtJoint.mjJNT_HINGE.value: ("hinge", 1, 1, "rad"),
}
"""By type: name, number of entries in qpos and in qvel, and unit of those in qpos."""

Fact = dict[str, Any]
"""Facts about one element, as JSON values; columns are [start, stop]."""


def inspect_scene(scene: SceneCfg) -> dict[str, Any]:
    """Return the facts about the entity of a command's scene, as JSON values.

    Masses are in kg, lengths in m and the time step in s.
    """
    sim = Simulation(scene)
    robot = sim.scene[ENTITY]
    index, model = robot.index, sim.model
    return {
        "base": index.base,
        "mass": float(model.body_mass[list(index.bodies.ids)].sum()),
        "nstate": worlds_of(sim).engine.nstate,
        "sizes": {
            "links": len(index.bodies),
            "1-DoF joints": len(index.joints),
            "ball joints": len(index.ball_joints),
            "free joints": len(index.free_joints),
            "actuators": len(index.actuators),
            "controls": len(index.controls),
            "activations": len(index.activations),
            "sensors": len(index.sensors),
            "geoms": len(index.geoms),
            "sites": len(index.sites),
            "tendons": len(index.tendons),
            "mocap bodies": len(index.mocap_bodies),
            "equalities": len(index.equalities),
        },
        "options": {
            "timestep": sim.timestep,
            "integrator": _enum_name(mujoco.mjtIntegrator, model.opt.integrator),
            "gravity": [float(g) for g in model.opt.gravity],
        },
        "links": [_link(robot, k) for k in range(robot.num_bodies)],
        "joints": _joints(robot),
        "controls": _controls(sim),
        "targets": _targets(robot),
        "sensors": _sensors(robot),
        "state": _layout(sim),
        "sites": list(index.sites.names),
        "tendons": list(index.tendons.names),
        "equalities": list(index.equalities.names),
        "keyframes": _names(model, mujoco.mjtObj.mjOBJ_KEY, model.nkey, index.prefix),
        "cameras": _names(model, mujoco.mjtObj.mjOBJ_CAMERA, model.ncam, index.prefix),
    }


def _link(robot: Entity, k: int) -> Fact:
    model, bodies = worlds_of(robot).model, robot.index.bodies
    body = bodies.ids[k]
    parent = int(model.body_parentid[body])
    known = parent in bodies.ids
    return {
        "link": bodies.names[k],
        "parent": bodies.names[bodies.ids.index(parent)] if known else "world",
        "mass": float(model.body_mass[body]),
        "com": [float(x) for x in model.body_ipos[body]],
    }


def _joints(robot: Entity) -> list[Fact]:
    """Return all joints, in the order of qpos."""
    index, model = robot.index, worlds_of(robot).model
    kinds = (index.free_joints, index.ball_joints, index.joints)
    named = sorted(
        (i, n) for kind in kinds for n, i in zip(kind.names, kind.ids, strict=True)
    )
    columns = worlds_of(robot).engine.columns
    facts: list[Fact] = []
    for joint, name in named:
        kind, num_pos, num_vel, unit = _JOINT_TYPES[int(model.jnt_type[joint])]
        pos = columns["qpos"].start + int(model.jnt_qposadr[joint])
        vel = columns["qvel"].start + int(model.jnt_dofadr[joint])
        limited = bool(model.jnt_limited[joint])
        facts.append(
            {
                "joint": name,
                "type": kind,
                "link": _link_name(robot, int(model.jnt_bodyid[joint])),
                "position_columns": [pos, pos + num_pos],
                "velocity_columns": [vel, vel + num_vel],
                "unit": unit,
                "range": [float(x) for x in model.jnt_range[joint]]
                if limited
                else None,
            }
        )
    return facts


def _controls(sim: Simulation) -> list[Fact]:
    """Return the controls, and what each of them commands."""
    model, controls = sim.model, sim.scene[ENTITY].index.controls
    start = worlds_of(sim).engine.columns["ctrl"].start
    explained = explain(sim)
    facts: list[Fact] = []
    for name, i in zip(controls.names, controls.ids, strict=True):
        meaning = explained[f"ctrl[{i}]"]
        facts.append(
            {
                "control": name,
                "columns": [start + i, start + i + 1],
                "of": meaning.element,
                "meaning": meaning.meaning,
                "unit": meaning.unit,
                "range": _control_range(model, i),
            }
        )
    return facts


def _targets(robot: Entity) -> list[Fact]:
    """Return for each 1-DoF joint the control that receives each kind of target.

    None: no control does; such a target is stored, but not passed to MuJoCo.
    """
    index = robot.index
    names = dict(zip(index.controls.ids, index.controls.names, strict=True))
    taken: dict[tuple[int, str], list[str]] = {}
    for kind in TARGETS.values():
        inputs = index.target_inputs(kind)
        for joint, column in zip(inputs.joints, inputs.ctrl, strict=True):
            taken.setdefault((joint, kind), []).append(names[column])
    return [
        {
            "joint": name,
            **{k: ", ".join(taken.get((j, k), ())) or None for k in TARGETS.values()},
        }
        for j, name in enumerate(index.joints.names)
    ]


def _control_range(model: mujoco.MjModel, column: int) -> list[float] | None:
    if not model.actuator_ctrllimited[column]:
        return None
    return [float(x) for x in model.actuator_ctrlrange[column]]


def _sensors(robot: Entity) -> list[Fact]:
    contracts = [robot.sensor_contract(name) for name in robot.sensor_names]
    return [
        {
            "sensor": contract.name,
            "type": contract.type,
            "columns": list(contract.columns),
            "what": contract.what,
            "unit": contract.unit,
            "axes": contract.axes,
            "of": contract.point,
        }
        for contract in contracts
    ]


def _layout(sim: Simulation) -> list[Fact]:
    """Return the fields of the state that are not empty for this model."""
    return [
        {
            "field": name,
            "columns": [columns.start, columns.stop],
            "count": columns.stop - columns.start,
            "unit": worlds_of(sim).ledger[name].unit,
        }
        for name, columns in worlds_of(sim).engine.columns.items()
        if columns.stop > columns.start
    ]


def _link_name(robot: Entity, body: int) -> str:
    bodies = robot.index.bodies
    return bodies.names[bodies.ids.index(body)]


def _enum_name(enum: Any, value: Any) -> str:
    """Return the name of an enum's member without the enum's prefix, in lower case."""
    return str(enum(int(value)).name).rpartition("_")[2].lower()


def _names(
    model: mujoco.MjModel, kind: mujoco.mjtObj, count: int, prefix: str
) -> list[str]:
    names = [mujoco.mj_id2name(model, kind.value, i) or "" for i in range(count)]
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
