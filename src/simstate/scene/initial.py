"""The initial state of a scene: keyframes, then root and joints by regex."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import mujoco
import numpy as np
import torch

from simstate.base.checks import argument, as_array, check_finite, has_shape
from simstate.base.errors import InvalidInputError, unknown_name, warn
from simstate.math.quaternion import UNIT_TOLERANCE
from simstate.scene.element_names import matching
from simstate.scene.index import Elements, EntityIndex, places_of
from simstate.scene.placement import Placement
from simstate.scene.scene_cfg import InitialStateCfg, JointValue


@dataclass(frozen=True)
class Start:
    """Initial state of one entity: its configuration and its model's placement."""

    cfg: InitialStateCfg
    placement: Placement
    """Displacement of the entity from its position in the model."""
    states_ctrl: bool
    """True if the keyframe states controls."""
    states_act: bool
    """True if the keyframe states activations."""


def default_data(
    model: mujoco.MjModel,
    entities: Mapping[str, EntityIndex],
    starts: Mapping[str, Start],
) -> mujoco.MjData:
    """Return an MjData in the state to which a reset restores every world.

    Position controls start at values that hold the pose, unless a keyframe sets them.
    """
    data = mujoco.MjData(model)
    for name, index in entities.items():
        start = starts[name]
        if start.cfg.keyframe is not None:
            _load_keyframe(model, data, index, start)
        _set_root(data, model, index, start.cfg)
        _set_joints(data, index, start.cfg)
        _hold_pose(model, data, index, start)
    _fill_histories(model, data)
    return data


def _fill_histories(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Fill the histories of delayed actuators with their first controls.

    MuJoCo starts with zeros, towards which a servo would pull during the delay.
    """
    for actuator in range(model.nactuator):
        samples = int(model.actuator_history[actuator, 0])
        if samples > 0:
            steps = model.actuator_delay[actuator] / model.opt.timestep
            if steps > samples:
                warn(
                    f"Actuator {model.actuator(actuator).name!r} has a delay of "
                    f"{steps:.0f} steps but a history of {samples}: its delay is "
                    "shorter than requested. Increase its nsample."
                )
            first = int(model.actuator_ctrladr[actuator])
            count = int(model.actuator_ctrlnum[actuator])
            values = np.tile(data.ctrl[first : first + count], (samples, 1))
            mujoco.mj_initCtrlHistory(model, data, actuator, None, values)


def vector(values: Sequence[float], size: int, what: str) -> np.ndarray:
    """Return the values as an array of `size` finite float64 values."""
    array = as_array(values, what)
    has_shape(what, array, (size,))
    if not np.isfinite(array).all():
        check_finite(torch.as_tensor(array), what, after="")  # raises
    return array


def unit_quat(values: Sequence[float], what: str) -> np.ndarray:
    """Return the quaternion (w, x, y, z) scaled to unit length.

    If it has unit length to 1e-14, it is returned unchanged, as in MuJoCo.
    """
    quat = vector(values, 4, what)
    norm = float(np.linalg.norm(quat))
    if norm < 1e-9:
        raise InvalidInputError(
            f"{what} must not be zero, got {quat.tolist()}.", name=argument(what)
        )
    return quat if abs(norm - 1.0) <= UNIT_TOLERANCE else quat / norm


def carrying(
    pos: np.ndarray, quat: np.ndarray, to_pos: np.ndarray, to_quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the translation, and the rotation before it, from one pose to another."""
    inverse, turn, moved = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(inverse, quat)
    mujoco.mju_mulQuat(turn, to_quat, inverse)
    mujoco.mju_rotVecQuat(moved, pos, turn)
    return to_pos - moved, turn


def _load_keyframe(
    model: mujoco.MjModel, data: mujoco.MjData, index: EntityIndex, start: Start
) -> None:
    """Load the entity's part of a keyframe, moved to the entity's placement."""
    keys = _keyframes(model, index)
    if start.cfg.keyframe not in keys:
        kind = f"keyframe of entity {index.name!r}"
        raise unknown_name(kind, str(start.cfg.keyframe), keys)
    key = keys[start.cfg.keyframe]
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
    if yielding := _yielding(model, index):
        state: Any = data  # since MuJoCo 4
        state.plastic[yielding] = cast("Any", model).key_plastic[key][yielding]
    _move_keyframe(model, data, index, start)


def _yielding(model: Any, index: EntityIndex) -> list[int]:
    """Return the columns of an entity's plastic state; empty before MuJoCo 4."""
    if not getattr(model, "nplastic", 0):
        return []
    joints = (*index.joints.ids, *index.ball_joints.ids, *index.free_joints.ids)
    flexes = [
        k for k in range(model.nflex) if model.flex(k).name.startswith(index.prefix)
    ]
    addresses = (model.jnt_plasticadr, model.tendon_plasticadr, model.flex_plasticadr)
    # Each block ends where the next starts.
    starts = sorted({model.nplastic, *np.concatenate(addresses).tolist()} - {-1})
    ends = dict(itertools.pairwise(starts))
    own = zip(addresses, (joints, index.tendons.ids, flexes), strict=True)
    return [
        column
        for table, ids in own
        for first in table[list(ids)].tolist()
        if first >= 0
        for column in range(first, ends[first])
    ]


def _move_keyframe(
    model: mujoco.MjModel, data: mujoco.MjData, index: EntityIndex, start: Start
) -> None:
    """Move a keyframe's free and mocap bodies along with a placed root.

    A keyframe refers to the placement in the entity's own model. `pos` or `rot` move
    the root elsewhere, and bodies that are not attached to it move along.
    """
    cfg = start.cfg
    if cfg.pos is None and cfg.rot is None:
        return
    turn, shift = start.placement.quat, start.placement.pos
    root = _root_pose(model, data, index)
    if root is not None:
        pos, quat = root
        wanted_pos = pos if cfg.pos is None else vector(cfg.pos, 3, "init_state.pos")
        wanted = quat if cfg.rot is None else unit_quat(cfg.rot, "init_state.rot")
        shift, turn = carrying(pos, quat, wanted_pos, wanted)
    for q, v in zip(index.free_qpos_adr, index.free_dof_adr, strict=True):
        _move_pose(data.qpos[q : q + 3], data.qpos[q + 3 : q + 7], shift, turn)
        mujoco.mju_rotVecQuat(data.qvel[v : v + 3], data.qvel[v : v + 3].copy(), turn)
    for body in index.mocap_bodies.ids:
        mocap = model.body_mocapid[body]
        _move_pose(data.mocap_pos[mocap], data.mocap_quat[mocap], shift, turn)


def _root_pose(
    model: mujoco.MjModel, data: mujoco.MjData, index: EntityIndex
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return copies of position and quaternion of a free or mocap root, else None."""
    if index.base == "free":
        q = index.free_qpos_adr[index.free_body_ids.index(index.root_body_id)]
        return data.qpos[q : q + 3].copy(), data.qpos[q + 3 : q + 7].copy()
    if index.base == "mocap":
        mocap = model.body_mocapid[index.root_body_id]
        return data.mocap_pos[mocap].copy(), data.mocap_quat[mocap].copy()
    return None


def _move_pose(
    pos: np.ndarray, quat: np.ndarray, shift: np.ndarray, turn: np.ndarray
) -> None:
    """Move a pose in place by a rotation about the origin, then a translation."""
    turned = np.zeros(3)
    mujoco.mju_rotVecQuat(turned, pos.copy(), turn)
    pos[:] = turned + shift
    mujoco.mju_mulQuat(quat, turn, quat.copy())


def _keyframes(model: mujoco.MjModel, index: EntityIndex) -> dict[str, int]:
    """Return the entity's keyframes: its own names → ids in the compiled model."""
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
    """Set the configured state of the root link; a fixed base is already placed."""
    moving = state.lin_vel is not None or state.ang_vel is not None
    if moving and index.base != "free":
        raise InvalidInputError(
            f"Entity {index.name!r} has a {index.base} base: lin_vel and ang_vel of "
            "init_state need a root link with a free joint.",
            name=index.name,
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
        adrs = single + ball
        sizes = [1] * len(single) + [width] * len(ball)
        values = _resolve(given, both.names, len(single), what)
        for joint, value in values.items():
            adr, size = adrs[joint], sizes[joint]
            label = f"init_state.{what} of {both.names[joint]!r}"
            numbers = cast("Sequence[float]", np.atleast_1d(value).tolist())
            checked = vector(numbers, size, label)
            if size == 4:
                checked = unit_quat(checked.tolist(), label)
            target[adr : adr + size] = checked


def _resolve(
    given: Mapping[str, JointValue], names: Sequence[str], num_single: int, what: str
) -> dict[int, JointValue]:
    """Return the value of each joint by its index in `names`; raise if it has two.

    A single number is for 1-DoF joints, which come first, if the pattern matches any.
    """
    values: dict[int, JointValue] = {}
    source: dict[int, str] = {}
    places = places_of(names)
    for pattern, value in given.items():
        matched = matching(pattern, names, f"joint in init_state.{what}")
        single = [name for name in matched if places[name] < num_single]
        if np.ndim(value) == 0 and single:
            matched = single
        for name in matched:
            joint = places[name]
            if joint in source:
                raise InvalidInputError(
                    f"init_state.{what} gives joint {name!r} two values, by "
                    f"{source[joint]!r} and {pattern!r}: each joint may match one."
                )
            values[joint], source[joint] = value, pattern
    return values


def _hold_pose(
    model: mujoco.MjModel, data: mujoco.MjData, index: EntityIndex, start: Start
) -> None:
    """Set position controls to the joint positions that they act on."""
    inputs = index.position_inputs
    for joint, column, actuator, output in zip(
        inputs.joints, inputs.ctrl, inputs.actuators, inputs.outputs, strict=True
    ):
        gear = float(model.actuator_gear[output, 0])
        target = gear * data.qpos[index.qpos_adr[joint]]
        if not start.states_ctrl:
            data.ctrl[column] = target
        adr = int(model.actuator_actadr[actuator])
        if adr >= 0 and not start.states_act:
            data.act[adr] = target
