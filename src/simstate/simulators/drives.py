"""Combined law of MuJoCo's actuators on a joint, for other simulators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.capabilities import driven_joints
from simstate.simulators.mjcf_actuators import actuator_kind

InputKind: TypeAlias = Literal["position", "velocity", "effort"]


class DriveInput(NamedTuple):
    """A control that acts on a joint."""

    column: int
    """The column of ctrl."""
    kind: InputKind
    factor: float
    """Force at the joint per unit of control [N or N·m]."""


@dataclass
class Drive:
    """The servos and motors of one 1-DoF joint, as one law.

    force = stiffness (target − q) + damping (target rate − q̇) + effort, in which
    stiffness × target, damping × target rate and effort are sums over the inputs.
    """

    joint: int
    """The joint's id in MuJoCo."""
    stiffness: float = 0.0
    """[N/m or N·m/rad] at the joint."""
    damping: float = 0.0
    """[N·s/m or N·m·s/rad] at the joint."""
    limit: float = np.inf
    """Maximum force or torque at the joint in either direction: the joint's limit, or
    that of its only actuator if lower."""
    inputs: list[DriveInput] = field(default_factory=list[DriveInput])


def drives(model: mujoco.MjModel) -> list[Drive]:
    """Return the combined law of the actuators of each driven 1-DoF joint."""
    found: dict[int, Drive] = {}
    driven = driven_joints(model)
    for actuator in range(model.nactuator):
        joint = int(model.actuator_trnid[actuator, 0])
        kind = actuator_kind(model, actuator)
        on_joint = model.actuator_trntype[actuator] in (
            mujoco.mjtTrn.mjTRN_JOINT.value,
            mujoco.mjtTrn.mjTRN_JOINTINPARENT.value,
        )
        output = int(model.actuator_outadr[actuator])
        gear = float(model.actuator_gear[output, 0])
        if not on_joint or joint not in driven or kind is None or not gear:
            continue
        is_first = joint not in found
        drive = found.setdefault(joint, Drive(joint))
        column = int(model.actuator_ctrladr[actuator])
        bias = model.actuator_biasprm[actuator]
        if kind == "position":
            drive.inputs.append(DriveInput(column, "position", -bias[1] * gear))
            drive.stiffness -= bias[1] * gear**2
            drive.damping -= bias[2] * gear**2
        elif kind == "velocity":
            drive.inputs.append(DriveInput(column, "velocity", -bias[2] * gear))
            drive.damping -= bias[2] * gear**2
        else:
            drive.inputs.append(DriveInput(column, "effort", gear))
        drive.limit = _joint_limit(model, joint)
        if is_first and model.actuator_forcelimited[actuator]:
            limit = float(np.abs(model.actuator_forcerange[actuator]).max() * abs(gear))
            drive.limit = min(drive.limit, limit)
    return list(found.values())


def _joint_limit(model: mujoco.MjModel, joint: int) -> float:
    """Return the maximum force of all actuators of a joint together."""
    if not model.jnt_actfrclimited[joint]:
        return np.inf
    return float(np.abs(model.jnt_actfrcrange[joint]).max())


class DriveInputs(NamedTuple):
    """Inputs of the drives of one world; shape (drives,) each."""

    position: Array
    """Target positions [rad or m]."""
    rate: Array
    """Target rates [rad/s or m/s]."""
    effort: Array
    """Additional forces or torques [N or N·m]."""


def drive_inputs(model: mujoco.MjModel, found: list[Drive], ctrl: Array) -> DriveInputs:
    """Return the drives' inputs for one world's controls, clamped to their ranges."""
    limited = model.actuator_ctrllimited.astype(bool)
    low, high = model.actuator_ctrlrange.T
    ctrl = np.where(limited, np.clip(ctrl, low, high), ctrl)
    forces: dict[InputKind, Array] = {}
    for kind in ("position", "velocity", "effort"):
        forces[kind] = np.array(
            [
                sum(i.factor * ctrl[i.column] for i in drive.inputs if i.kind == kind)
                for drive in found
            ],
            dtype=np.float64,
        )
    return DriveInputs(
        _divided(forces["position"], [drive.stiffness for drive in found]),
        _divided(forces["velocity"], [drive.damping for drive in found]),
        forces["effort"],
    )


def _divided(forces: Array, gains: list[float]) -> Array:
    """Divide forces by gains; 0 where the gain is 0."""
    divisors = np.array(gains, dtype=np.float64)
    return np.divide(forces, divisors, np.zeros_like(forces), where=divisors != 0)
