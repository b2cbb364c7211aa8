"""Parameters of servos, motors, tendons and equalities: reading and writing."""

from __future__ import annotations

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.drives import drives
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.parameters.common import Read, Write, row


def of_drives(what: str) -> Read:
    """Return a reader of an attribute of each joint's `Drive`."""

    def read(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for drive in drives(model):
            if what == "effort":
                factors = [i.factor for i in drive.inputs if i.kind == "effort"]
                if factors:
                    found[names.joint[drive.joint]] = row(factors)
            else:
                found[names.joint[drive.joint]] = row(getattr(drive, what))
        return found

    return read


def to_drive(what: str) -> Write:
    """Return a writer to a joint's actuators, at most one of each kind."""

    def write(
        model: mujoco.MjModel, names: ModelNames, element: str, value: Array
    ) -> None:
        joint = names.joint.index(element)
        drive = next(d for d in drives(model) if d.joint == joint)
        columns = {i.column: i.kind for i in drive.inputs}
        for actuator in range(model.nactuator):
            kind = columns.get(int(model.actuator_ctrladr[actuator]))
            output = int(model.actuator_outadr[actuator])
            gear = float(model.actuator_gear[output, 0])
            if kind is None:
                continue
            if what == "stiffness" and kind == "position":
                model.actuator_gainprm[actuator, 0] = value[0] / gear**2
                model.actuator_biasprm[actuator, 1] = -value[0] / gear**2
            elif what == "damping" and kind in ("position", "velocity"):
                model.actuator_biasprm[actuator, 2] = -value[0] / gear**2
                if kind == "velocity":
                    model.actuator_gainprm[actuator, 0] = value[0] / gear**2
            elif what == "effort" and kind == "effort":
                model.actuator_gear[output, 0] = value[0]
            elif what == "limit":
                limit = value[0] / abs(gear)
                model.actuator_forcelimited[actuator] = bool(np.isfinite(limit))
                model.actuator_forcerange[actuator] = (
                    (-limit, limit) if np.isfinite(limit) else (0.0, 0.0)
                )
                model.jnt_actfrclimited[joint] = False

    return write


def read_other_actuators(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return 1 for each actuator that is not a servo or motor of a 1-DoF joint."""
    driving = {i.column for drive in drives(model) for i in drive.inputs}
    return {
        names.actuator[a]: np.ones(1)
        for a in range(model.nactuator)
        if int(model.actuator_ctrladr[a]) not in driving
        and np.any(model.actuator_gear[int(model.actuator_outadr[a])])
    }


def write_other_actuator(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Disable an actuator if its value is 0."""
    actuator = names.actuator.index(element)
    if not value[0]:
        first = int(model.actuator_outadr[actuator])
        last = first + int(model.actuator_outnum[actuator])
        model.actuator_gear[first:last] = 0.0


def read_tendons(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return stiffness, damping, dry friction, armature, limited (0, 1), powers."""
    return {
        names.tendon[t]: row(
            [
                model.tendon_stiffness[t],
                model.tendon_damping[t],
                model.tendon_frictionloss[t],
                model.tendon_armature[t],
                float(model.tendon_limited[t]),
                *model.tendon_stiffnesspoly[t],
                *model.tendon_dampingpoly[t],
            ]
        )
        for t in range(model.ntendon)
    }


def write_tendon(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write the parameters of a tendon."""
    t = names.tendon.index(element)
    model.tendon_stiffness[t], model.tendon_damping[t] = value[0], value[1]
    model.tendon_frictionloss[t], model.tendon_armature[t] = value[2], value[3]
    model.tendon_limited[t] = bool(value[4])
    model.tendon_stiffnesspoly[t], model.tendon_dampingpoly[t] = value[5:7], value[7:9]


def read_equalities(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return the state of each equality: 1 (active) or 0."""
    return {names.equality[e]: row(model.eq_active0[e]) for e in range(model.neq)}


def write_equality(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Switch an equality on or off."""
    model.eq_active0[names.equality.index(element)] = bool(value[0])
