"""Kinds of parameters: units, readers and writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from simstate.scene.physics_options import OPTION_WORDS
from simstate.simulators.adapted_simulator import Array
from simstate.simulators.parameters.actuator_parameters import (
    of_drives,
    read_equalities,
    read_other_actuators,
    read_tendons,
    to_drive,
    write_equality,
    write_other_actuator,
    write_tendon,
)
from simstate.simulators.parameters.body_parameters import (
    of_bodies,
    read_com,
    read_inertia,
    read_quat,
    to_body,
    write_inertia,
)
from simstate.simulators.parameters.common import BALL, FREE, SLIDE, Read, Write
from simstate.simulators.parameters.joint_parameters import (
    of_dofs,
    of_joints,
    read_higher_damping,
    read_range,
    read_rest,
    to_dofs,
    to_joint,
    write_higher_damping,
    write_range,
    write_rest,
)
from simstate.simulators.parameters.scene_parameters import (
    EXPLICIT_EULER,
    EXPLICIT_GYROSCOPIC,
    IMPLICIT_SERVOS,
    of_options,
    read_friction,
    read_integrator,
    read_sizes,
    to_option,
    write_friction,
    write_integrator,
    write_size,
)


@dataclass(frozen=True)
class ParameterKind:
    """One kind of parameter."""

    unit: str
    read: Read
    """Reads the values of a model by element."""
    write: Write
    """Writes a value of an element."""
    absent: float | None = 0.0
    """Value of a simulator that does not support it; None: MuJoCo's value."""
    labels: Mapping[float, str] = field(default_factory=dict[float, str])
    """Words for numbers that are codes."""

    def text(self, values: Sequence[float]) -> str:
        """Format a value."""
        words = [self.labels.get(value, f"{value:.6g}") for value in values]
        return words[0] if len(words) == 1 else f"({', '.join(words)})"

    def unsupported(self, like: Array) -> Array:
        """Return the value of a simulator that does not support the parameter."""
        if self.absent is None:
            return like
        filled = np.full_like(like, self.absent)
        if self.absent == np.inf and len(like) == 2:  # a range
            filled[0] = -np.inf
        return filled


KINDS: dict[str, ParameterKind] = {
    "mass": ParameterKind("kg", of_bodies("body_mass"), to_body("body_mass")),
    "centre of mass": ParameterKind("m", read_com, to_body("body_ipos"), absent=None),
    "inertia": ParameterKind("kg·m²", read_inertia, write_inertia),
    "position in parent": ParameterKind(
        "m", of_bodies("body_pos", attached=True), to_body("body_pos"), absent=None
    ),
    "orientation in parent": ParameterKind(
        "", read_quat, to_body("body_quat"), absent=None
    ),
    "gravity compensation": ParameterKind(
        "", of_bodies("body_gravcomp"), to_body("body_gravcomp")
    ),
    "joint axis": ParameterKind(
        "", of_joints("jnt_axis", FREE, BALL), to_joint("jnt_axis"), absent=None
    ),
    "joint anchor": ParameterKind(
        "m", of_joints("jnt_pos", FREE, SLIDE), to_joint("jnt_pos"), absent=None
    ),
    "joint range": ParameterKind("rad or m", read_range, write_range, absent=np.inf),
    "armature": ParameterKind(
        "kg·m² or kg", of_dofs("dof_armature"), to_dofs("dof_armature")
    ),
    "damping": ParameterKind(
        "N·m·s/rad or N·s/m", of_dofs("dof_damping"), to_dofs("dof_damping")
    ),
    "higher powers of damping": ParameterKind(
        "", read_higher_damping, write_higher_damping
    ),
    "dry friction": ParameterKind(
        "N·m or N", of_dofs("dof_frictionloss"), to_dofs("dof_frictionloss")
    ),
    "spring stiffness": ParameterKind(
        "N·m/rad or N/m", of_joints("jnt_stiffness"), to_joint("jnt_stiffness")
    ),
    "higher powers of stiffness": ParameterKind(
        "", of_joints("jnt_stiffnesspoly"), to_joint("jnt_stiffnesspoly")
    ),
    "spring rest position": ParameterKind(
        "rad or m", read_rest, write_rest, absent=None
    ),
    "servo stiffness": ParameterKind(
        "N·m/rad or N/m", of_drives("stiffness"), to_drive("stiffness")
    ),
    "servo damping": ParameterKind(
        "N·m·s/rad or N·s/m", of_drives("damping"), to_drive("damping")
    ),
    "force per control": ParameterKind(
        "N·m or N", of_drives("effort"), to_drive("effort")
    ),
    "force limit": ParameterKind(
        "N·m or N", of_drives("limit"), to_drive("limit"), absent=np.inf
    ),
    "other actuator": ParameterKind("", read_other_actuators, write_other_actuator),
    "tendon": ParameterKind("", read_tendons, write_tendon),
    "equality": ParameterKind("", read_equalities, write_equality),
    "gravity": ParameterKind("m/s²", of_options("gravity"), to_option),
    "fluid": ParameterKind("", of_options("density", "viscosity"), to_option),
    "time step": ParameterKind("s", of_options("timestep"), to_option, absent=None),
    "integrator": ParameterKind(
        "",
        read_integrator,
        write_integrator,
        absent=None,
        labels={
            **{float(k): word for word, k in OPTION_WORDS["integrator"].items()},
            EXPLICIT_EULER: "Euler with explicit dampers",
            IMPLICIT_SERVOS: "implicit dampers and servos",
            EXPLICIT_GYROSCOPIC: "implicitfast with explicit gyroscopic forces",
        },
    ),
    "geom size": ParameterKind("m", read_sizes, write_size, absent=None),
    "sliding friction": ParameterKind("", read_friction, write_friction, absent=None),
}
"""All kinds of parameters, by their names in reports."""
