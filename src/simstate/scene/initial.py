"""The state in which a scene starts: keyframes, then root and joints by regex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from simstate.errors import InvalidInputError, ShapeError, unknown_name
from simstate.scene.cfg import InitialStateCfg, JointValue
from simstate.scene.index import Elements, EntityIndex
from simstate.scene.load import matching


def default_data(
    model: mujoco.MjModel,
    entities: Mapping[str, EntityIndex],
    states: Mapping[str, InitialStateCfg],
) -> mujoco.MjData:
    """An MjData in the state to which a reset brings every world back."""
    data = mujoco.MjData(model)
    for name, index in entities.items():
        state = states[name]
        stated = state.keyframe is not None and _load_keyframe(
            model, data, index, state
        )
        _set_root(data, model, index, state)
        _set_joints(data, index, state)
        if not stated:
            _hold_pose(model, data, index)
    return data


def vector(values: Sequence[float], size: int, what: str) -> np.ndarray:
    """The numbers as an array of `size` finite float64s."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise ShapeError(f"{what} must be {size} numbers, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{what} must be finite, got {array.tolist()}.")
    return array


def unit_quat(values: Sequence[float], what: str) -> np.ndarray:
    """The quaternion (w, x, y, z) scaled to unit length."""
    quat = vector(values, 4, what)
    norm = float(np.linalg.norm(quat))
    if norm < 1e-9:
        raise InvalidInputError(f"{what} must not be zero, got {quat.tolist()}.")
    return quat / norm


def _load_keyframe(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    index: EntityIndex,
    state: InitialStateCfg,
) -> bool:
    """Take the entity's part of a keyframe; whether the keyframe states controls."""
    keys = _keyframes(model, index)
    if state.keyframe not in keys:
        raise unknown_name(
            f"keyframe of entity {index.name!r}", str(state.keyframe), keys
        )
    key = keys[state.keyframe]
    for adr in index.qpos_adr:
        data.qpos[adr] = model.key_qpos[key, adr]
    for adr in index.dof_adr:
        data.qvel[adr] = model.key_qvel[key, adr]
    blocks = (
        (index.ball_qpos_adr, index.ball_dof_adr, 4, 3),
        (index.free_qpos_adr, index.free_dof_adr, 7, 6),
    )
    for qpos_adrs, dof_adrs, nq, nv in blocks:
        for q, v in zip(qpos_adrs, dof_adrs, strict=True):
            data.qpos[q : q + nq] = model.key_qpos[key, q : q + nq]
            data.qvel[v : v + nv] = model.key_qvel[key, v : v + nv]
    for body in index.mocap_bodies.ids:
        mocap = model.body_mocapid[body]
        data.mocap_pos[mocap] = model.key_mpos[key].reshape(-1, 3)[mocap]
        data.mocap_quat[mocap] = model.key_mquat[key].reshape(-1, 4)[mocap]
    controls, activations = list(index.controls.ids), list(index.activations.ids)
    data.ctrl[controls] = model.key_ctrl[key][controls]
    data.act[activations] = model.key_act[key][activations]
    return bool(np.any(data.ctrl[controls] != 0.0))


def _keyframes(model: mujoco.MjModel, index: EntityIndex) -> dict[str, int]:
    """The entity's keyframes: its own names → ids in the compiled model."""
    names = {model.key(i).name: i for i in range(model.nkey)}
    return {
        name.removeprefix(index.prefix): i
        for name, i in names.items()
        if name.startswith(index.prefix)
    }


def _set_root(
    data: mujoco.MjData,
    model: mujoco.MjModel,
    index: EntityIndex,
    state: InitialStateCfg,
) -> None:
    """Put the root link where the configuration says; a fixed base is there already."""
    moving = state.lin_vel is not None or state.ang_vel is not None
    if moving and index.base != "free":
        raise InvalidInputError(
            f"Entity {index.name!r} has a {index.base} base: lin_vel and ang_vel of "
            "init_state need a root link with a free joint."
        )
    if index.base == "mocap":
        mocap = model.body_mocapid[index.root_body_id]
        if state.pos is not None:
            data.mocap_pos[mocap] = vector(state.pos, 3, "init_state.pos")
        if state.rot is not None:
            data.mocap_quat[mocap] = unit_quat(state.rot, "init_state.rot")
    if index.base == "free":
        root = index.free_body_ids.index(index.root_body_id)
        q, v = index.free_qpos_adr[root], index.free_dof_adr[root]
        if state.pos is not None:
            data.qpos[q : q + 3] = vector(state.pos, 3, "init_state.pos")
        if state.rot is not None:
            data.qpos[q + 3 : q + 7] = unit_quat(state.rot, "init_state.rot")
        if state.lin_vel is not None:
            data.qvel[v : v + 3] = vector(state.lin_vel, 3, "init_state.lin_vel")
        if state.ang_vel is not None:
            # A free joint's angular velocity is in body axes.
            inverse = np.zeros(4)
            mujoco.mju_negQuat(inverse, data.qpos[q + 3 : q + 7])
            ang_vel_w = vector(state.ang_vel, 3, "init_state.ang_vel")
            mujoco.mju_rotVecQuat(data.qvel[v + 3 : v + 6], ang_vel_w, inverse)


def _set_joints(
    data: mujoco.MjData, index: EntityIndex, state: InitialStateCfg
) -> None:
    """Write the joint positions and velocities given by regular expressions."""
    both = Elements(
        index.joints.names + index.ball_joints.names,
        index.joints.ids + index.ball_joints.ids,
    )
    targets = (
        (
            state.joint_pos,
            data.qpos,
            index.qpos_adr,
            index.ball_qpos_adr,
            4,
            "joint_pos",
        ),
        (state.joint_vel, data.qvel, index.dof_adr, index.ball_dof_adr, 3, "joint_vel"),
    )
    for given, target, single, ball, width, what in targets:
        sizes = [1] * len(single) + [width] * len(ball)
        for joint, value in _resolve(given, both.names, what).items():
            adr, size = (single + ball)[joint], sizes[joint]
            label = f"init_state.{what} of {both.names[joint]!r}"
            array = np.atleast_1d(np.asarray(value, dtype=np.float64))
            if size == 4:
                array = unit_quat(array.tolist(), label)
            target[adr : adr + size] = vector(array.tolist(), size, label)


def _resolve(
    given: Mapping[str, JointValue], names: Sequence[str], what: str
) -> dict[int, JointValue]:
    """The value of each joint, by its position in `names`; two for one is an error."""
    values: dict[int, JointValue] = {}
    source: dict[int, str] = {}
    for pattern, value in given.items():
        for name in matching(pattern, names, f"joint in init_state.{what}"):
            joint = names.index(name)
            if joint in source:
                raise InvalidInputError(
                    f"init_state.{what} gives joint {name!r} two values, by "
                    f"{source[joint]!r} and {pattern!r}: let each joint match one."
                )
            values[joint], source[joint] = value, pattern
    return values


def _hold_pose(model: mujoco.MjModel, data: mujoco.MjData, index: EntityIndex) -> None:
    """Let position controls start at the joint positions that they act on."""
    inputs = index.position_inputs
    for joint, column, scale in zip(
        inputs.joints, inputs.ctrl, inputs.scale, strict=True
    ):
        target = scale * data.qpos[index.qpos_adr[joint]]
        data.ctrl[column] = target
        filtered = model.actuator_actadr[model.actuator_ctrladr == column]
        data.act[filtered[filtered >= 0]] = target
