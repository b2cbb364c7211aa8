"""Laws: relations that hold for any model, in any state, on any engine.

A law compares values of the library with something that it did not compute: MuJoCo's
C functions, finite differences, or the state before a write.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.entity import Entity
from simstate.math import quaternion
from simstate.simulation import Simulation
from simstate.study.oracles.random_states import moved
from simstate.study.oracles.reference import FRAMES, Reference, frame_ids
from simstate.study.oracles.verdicts import relative_error
from simstate.world.worlds import worlds_of

Finding = tuple[str, str, float]
"""Entity, quantity and error."""


@dataclass(frozen=True)
class Law:
    """A law, with its tolerances in float64 and in float32."""

    name: str
    find: Callable[[Simulation], Iterator[Finding]]
    native: float
    warp: float | None
    """None: the law is checked on the native engine only."""

    def tolerance(self, sim: Simulation) -> float | None:
        """Return the tolerance for the simulation's engine."""
        return self.native if sim.dtype == torch.float64 else self.warp


def plain_fields(sim: Simulation) -> Iterator[Finding]:
    """Compare poses, tendons and joint quantities with the fields after mj_forward."""
    reference = Reference(sim)
    for name, entity in sim.scene.items():
        bodies, geoms, sites = (
            list(elements.ids)
            for elements in (
                entity.index.bodies,
                entity.index.geoms,
                entity.index.sites,
            )
        )
        joints, dofs = list(entity.index.qpos_adr), list(entity.index.dof_adr)
        tendons = list(entity.index.tendons.ids)
        columns = {
            "body_link_pos_w": ("xpos", bodies),
            "body_com_pos_w": ("xipos", bodies),
            "geom_pos_w": ("geom_xpos", geoms),
            "site_pos_w": ("site_xpos", sites),
            "joint_pos": ("qpos", joints),
            "joint_vel": ("qvel", dofs),
            "tendon_len": ("ten_length", tendons),
            "tendon_vel": ("ten_velocity", tendons),
        }
        for quantity, (field, ids) in columns.items():
            expected = reference.field(field)[:, ids]
            yield name, quantity, relative_error(_read(entity, quantity), expected)
        matrices = {
            "body_link_quat_w": ("xmat", bodies),
            "body_com_quat_w": ("ximat", bodies),
            "geom_quat_w": ("geom_xmat", geoms),
            "site_quat_w": ("site_xmat", sites),
        }
        for quantity, (field, ids) in matrices.items():
            expected = reference.field(field)[:, ids]
            rotation = quaternion.to_matrix(_read(entity, quantity))
            yield name, quantity, relative_error(rotation.flatten(-2), expected)
        yield from _root_poses(name, entity, reference)
        yield from _parameters(name, entity)


def _root_poses(name: str, entity: Entity, reference: Reference) -> Iterator[Finding]:
    """Compare the root's poses, its heading, and gravity along its axes."""
    if entity.index.base == "none":
        return
    body = entity.index.root_body_id
    for point, pos_field, mat_field in (
        ("link", "xpos", "xmat"),
        ("com", "xipos", "ximat"),
    ):
        pos = reference.field(pos_field)[:, body]
        axes = reference.field(mat_field)[:, body]
        pose = _read(entity, f"root_{point}_pose_w")
        for quantity, value in (
            (f"root_{point}_pos_w", _read(entity, f"root_{point}_pos_w")),
            (f"root_{point}_pose_w", pose[:, :3]),
        ):
            yield name, quantity, relative_error(value, pos)
        for quantity, value in (
            (f"root_{point}_quat_w", _read(entity, f"root_{point}_quat_w")),
            (f"root_{point}_pose_w", pose[:, 3:]),
        ):
            rotation = quaternion.to_matrix(value).flatten(-2)
            yield name, quantity, relative_error(rotation, axes)
    axes = reference.field("xmat")[:, body].reshape(-1, 3, 3)
    heading = torch.atan2(axes[:, 1, 0], axes[:, 0, 0])
    angle = _read(entity, "heading_w").to(torch.float64) - heading
    yield name, "heading_w", relative_error(torch.sin(angle), torch.zeros_like(angle))
    model: Any = worlds_of(entity).model
    off = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY.value
    gravity = np.zeros(3) if off else np.array(model.opt.gravity)
    if not gravity.any():
        gravity = np.array([0.0, 0.0, -1.0])
    direction = torch.as_tensor(gravity / np.linalg.norm(gravity))
    expected = torch.einsum("nij,i->nj", axes, direction)
    value = _read(entity, "projected_gravity_b")
    yield name, "projected_gravity_b", relative_error(value, expected)


def _parameters(name: str, entity: Entity) -> Iterator[Finding]:
    """Compare masses, inertias and limits with those of the compiled model."""
    model: Any = worlds_of(entity).model
    bodies, joints = list(entity.index.bodies.ids), list(entity.index.joints.ids)
    limits = np.array(model.jnt_range[joints])
    limits[~np.array(model.jnt_limited[joints], dtype=bool)] = [-np.inf, np.inf]
    for quantity, array in (
        ("body_mass", model.body_mass[bodies]),
        ("body_inertia", model.body_inertia[bodies]),
        ("joint_pos_limits", limits),
    ):
        value = _read(entity, quantity).to(torch.float64)
        expected = torch.as_tensor(np.array(array)).expand_as(value)
        same = torch.isinf(value) & (value == expected)  # ∞ − ∞ is NaN
        zero = torch.zeros_like(value)
        error = relative_error(
            torch.where(same, zero, value), torch.where(same, zero, expected)
        )
        yield name, quantity, error


def forces(sim: Simulation) -> Iterator[Finding]:
    """Compare forces and accelerations with MuJoCo's after a forward pass.

    Accelerations are compared as the forces M·q̈. Light links at the ends of heavy ones
    make M ill-conditioned, so equal forces may have different accelerations.
    """
    reference = Reference(sim)
    sim.forward()
    inertial = reference.times_mass_matrix(sim.data.qacc)
    expected_inertial = reference.times_mass_matrix(reference.field("qacc"))
    for name, entity in sim.scene.items():
        dofs = list(entity.index.dof_adr)
        error = relative_error(inertial[:, dofs], expected_inertial[:, dofs])
        yield name, "joint_acc", error
        columns = {
            "qfrc_actuator": ("qfrc_actuator", dofs),
            "actuator_force": ("actuator_force", list(entity.index.actuators.ids)),
        }
        for quantity, (field, ids) in columns.items():
            expected = reference.field(field)[:, ids]
            yield name, quantity, relative_error(_read(entity, quantity), expected)


def applied_wrenches(sim: Simulation) -> Iterator[Finding]:
    """Compare qfrc_external with the result of mj_applyFT for all bodies."""
    expected = Reference(sim).applied_wrenches()
    for name, entity in sim.scene.items():
        value = entity.data.qfrc_external
        dofs = list(entity.index.dof_adr)
        yield name, "qfrc_external", relative_error(value, expected[:, dofs])


def object_velocity(sim: Simulation) -> Iterator[Finding]:
    """Compare all velocities with mj_objectVelocity."""
    reference = Reference(sim)
    for name, entity in sim.scene.items():
        for frame, kind in FRAMES.items():
            expected = reference.velocity(kind, frame_ids(entity, frame))
            vel = _read(entity, f"{frame}_vel_w")
            yield name, f"{frame}_vel_w", relative_error(vel, expected)
            for part, columns in (("lin", slice(0, 3)), ("ang", slice(3, 6))):
                quantity = f"{frame}_{part}_vel_w"
                value = _read(entity, quantity)
                yield name, quantity, relative_error(value, expected[..., columns])
        yield from _root_velocities(name, entity, reference)


def _root_velocities(
    name: str, entity: Entity, reference: Reference
) -> Iterator[Finding]:
    """Compare the root's velocities, along world axes and the root link's axes."""
    if entity.index.base == "none":
        return
    root = (entity.index.root_body_id,)
    rot_wb = reference.field("xmat")[:, root[0]].reshape(-1, 3, 3)
    for frame in ("link", "com"):
        expected = reference.velocity(FRAMES[f"body_{frame}"], root)[:, 0]
        vel = _read(entity, f"root_{frame}_vel_w")
        yield name, f"root_{frame}_vel_w", relative_error(vel, expected)
        for part, six in (("lin", expected[:, :3]), ("ang", expected[:, 3:])):
            quantity = f"root_{frame}_{part}_vel_w"
            yield name, quantity, relative_error(_read(entity, quantity), six)
            quantity = f"root_{frame}_{part}_vel_b"
            in_base = torch.einsum("nij,ni->nj", rot_wb, six)
            yield name, quantity, relative_error(_read(entity, quantity), in_base)


def jacobian_velocity(sim: Simulation) -> Iterator[Finding]:
    """Compare the velocity of each point with J·q̇ by mj_jac."""
    reference = Reference(sim)
    model: Any = sim.model
    for name, entity in sim.scene.items():
        owners = {
            "body_link": list(entity.index.bodies.ids),
            "body_com": list(entity.index.bodies.ids),
            "geom": [int(model.geom_bodyid[i]) for i in entity.index.geoms.ids],
            "site": [int(model.site_bodyid[i]) for i in entity.index.sites.ids],
        }
        for frame, bodies in owners.items():
            points = _read(entity, f"{frame}_pos_w")
            expected = reference.jacobian_velocity(points, bodies)
            vel = _read(entity, f"{frame}_vel_w")
            error = relative_error(vel, expected.reshape(vel.shape))
            yield name, f"{frame}_vel_w", error


def object_acceleration(sim: Simulation) -> Iterator[Finding]:
    """Compare body accelerations with mj_objectAcceleration for the engine's qacc."""
    reference = Reference(sim)
    qacc = worlds_of(sim).acceleration_now()
    for name, entity in sim.scene.items():
        for frame in ("body_link", "body_com"):
            expected = reference.acceleration(
                FRAMES[frame], frame_ids(entity, frame), qacc
            )
            for part, six in (("lin", expected[..., :3]), ("ang", expected[..., 3:])):
                quantity = f"{frame}_{part}_acc_w"
                yield name, quantity, relative_error(_read(entity, quantity), six)


def pose_differences(sim: Simulation) -> Iterator[Finding]:
    """Compare velocities with differences of poses over a short time at constant q̇."""
    h = 1e-6 if sim.dtype == torch.float64 else 2e-3
    names = [f"{frame}_vel_w" for frame in FRAMES] + ["tendon_vel"]
    velocities = _read_all(sim, names)
    qvel = sim.data.qvel.clone()
    start = sim.data.qpos.clone()
    poses: list[dict[tuple[str, str], Tensor]] = []
    for sign in (-1.0, 1.0):
        sim.data.qpos.copy_(moved(sim, qvel, sign * h))
        poses.append(_read_all(sim, [f"{f}_pose_w" for f in FRAMES] + ["tendon_len"]))
        sim.data.qpos.copy_(start)
    before, after = poses
    for (entity, quantity), vel in velocities.items():
        key = quantity.replace("vel_w", "pose_w").replace("tendon_vel", "tendon_len")
        old, new = before[entity, key], after[entity, key]
        slope = (new - old) / (2 * h)
        if quantity != "tendon_vel":
            turn = quaternion.multiply(new[..., 3:], quaternion.conjugate(old[..., 3:]))
            rate = quaternion.to_rotation_vector(turn) / (2 * h)
            slope = torch.cat([slope[..., :3], rate], dim=-1)
        if not _is_mocap(sim, entity):
            yield entity, quantity, relative_error(slope, vel)


def velocity_differences(sim: Simulation) -> Iterator[Finding]:
    """Compare accelerations with differences of velocities over a short time."""
    h = 1e-6 if sim.dtype == torch.float64 else 2e-3
    names = [f"{f}_acc_w" for f in ("body_link", "body_com")]
    accelerations = _read_all(sim, names)
    qacc = worlds_of(sim).acceleration_now()
    qpos, qvel = sim.data.qpos.clone(), sim.data.qvel.clone()
    found: list[dict[tuple[str, str], Tensor]] = []
    for sign in (-1.0, 1.0):
        sim.data.qpos.copy_(moved(sim, qvel, sign * h))
        sim.data.qvel.copy_(qvel + sign * h * qacc)
        found.append(_read_all(sim, [n.replace("acc_w", "vel_w") for n in names]))
        sim.data.qpos.copy_(qpos)
        sim.data.qvel.copy_(qvel)
    for (entity, quantity), acc in accelerations.items():
        key = entity, quantity.replace("acc_w", "vel_w")
        slope = (found[1][key] - found[0][key]) / (2 * h)
        yield entity, quantity, relative_error(slope, acc)


def read_write(sim: Simulation) -> Iterator[Finding]:
    """Check that writing a quantity that was read leaves the state unchanged."""
    for name, entity in sim.scene.items():
        for quantity, write in writers(entity).items():
            before = sim.state.clone()
            with warnings.catch_warnings():  # targets that no actuator takes
                warnings.simplefilter("ignore", RuntimeWarning)
                write(_read(entity, quantity))
            error = relative_error(sim.state, before)
            yield name, quantity, error


def writers(entity: Entity) -> dict[str, Callable[[Tensor], None]]:
    """Return the writer of each writable quantity of an entity."""
    index = entity.index
    found: dict[str, Callable[[Tensor], None]] = {}
    if index.base in ("free", "mocap"):
        found["root_link_pose_w"] = entity.write_root_link_pose_to_sim
        found["root_com_pose_w"] = entity.write_root_com_pose_to_sim
    if index.base == "free":
        found["root_link_vel_w"] = entity.write_root_link_velocity_to_sim
        found["root_com_vel_w"] = entity.write_root_com_velocity_to_sim
    local = {body: k for k, body in enumerate(index.bodies.ids)}
    free = [local[body] for body in index.free_body_ids]
    movable = sorted({*free, *(local[body] for body in index.mocap_bodies.ids)})
    if movable:
        found["body_link_pose_w"] = lambda pose: entity.write_body_link_pose_to_sim(
            pose[:, movable], movable
        )
    if free:
        found["body_link_vel_w"] = lambda vel: entity.write_body_link_velocity_to_sim(
            vel[:, free], free
        )
    sized: dict[str, tuple[int, Callable[[Tensor], None]]] = {
        "joint_pos": (entity.num_joints, entity.write_joint_position_to_sim),
        "joint_vel": (entity.num_joints, entity.write_joint_velocity_to_sim),
        "qfrc_applied": (entity.num_joints, entity.write_joint_force_to_sim),
        "joint_pos_target": (entity.num_joints, entity.set_joint_position_target),
        "joint_vel_target": (entity.num_joints, entity.set_joint_velocity_target),
        "joint_effort_target": (entity.num_joints, entity.set_joint_effort_target),
        "ball_joint_quat": (
            entity.num_ball_joints,
            entity.write_ball_joint_quat_to_sim,
        ),
        "ball_joint_ang_vel": (
            entity.num_ball_joints,
            entity.write_ball_joint_ang_vel_to_sim,
        ),
        "generalized_force": (
            len(index.free_joints),
            entity.write_generalized_force_to_sim,
        ),
        "ctrl": (entity.num_controls, entity.write_ctrl_to_sim),
        "act": (len(index.activations), entity.write_act_to_sim),
        "mocap_pose_w": (len(index.mocap_bodies), entity.write_mocap_pose_to_sim),
        "equality_active": (len(index.equalities), entity.write_equality_active_to_sim),
        "body_external_wrench": (
            entity.num_bodies,
            lambda wrench: entity.write_external_wrench_to_sim(
                wrench[..., :3], wrench[..., 3:]
            ),
        ),
    }
    found.update({name: write for name, (count, write) in sized.items() if count})
    return found


LAWS = (
    Law("MuJoCo's fields", plain_fields, 1e-12, 5e-6),
    Law("MuJoCo's forces", forces, 1e-12, 1e-4),
    Law("Jᵀ·wrench by mj_applyFT", applied_wrenches, 1e-12, 1e-5),
    Law("mj_objectVelocity", object_velocity, 1e-12, 5e-6),
    Law("J·q̇ by mj_jac", jacobian_velocity, 1e-12, 5e-6),
    Law("mj_objectAcceleration", object_acceleration, 1e-12, 1e-4),
    Law("Δpose/Δt = velocity", pose_differences, 1e-7, 5e-3),
    Law("Δvelocity/Δt = acceleration", velocity_differences, 1e-7, 5e-3),
    Law("write what was read: same state", read_write, 1e-12, 1e-5),
)
"""Laws of a single state, in the order in which they are checked."""


def _read(entity: Entity, quantity: str) -> Tensor:
    return entity.data.read(quantity)


def _read_all(sim: Simulation, names: list[str]) -> dict[tuple[str, str], Tensor]:
    """Return copies of quantities of all entities, in float64."""
    return {
        (name, quantity): _read(entity, quantity).to(torch.float64, copy=True)
        for name, entity in sim.scene.items()
        for quantity in names
    }


def _is_mocap(sim: Simulation, entity: str) -> bool:
    """Return True if an entity has only mocap and fixed bodies."""
    bodies = list(sim.scene[entity].index.bodies.ids)
    model: Any = sim.model
    return not np.any(model.body_dofnum[bodies])
