"""Parts of a spacecraft's model: reaction wheels, control-moment gyros, thrusters.

Each is a configuration with `add_to(spec, body)`, which writes bodies, joints and
actuators into an MjSpec before it is compiled:

    def craft() -> mujoco.MjSpec:
        spec = models.spec("cube")
        for wheel in WHEELS:
            wheel.add_to(spec, "cube")
        return spec

    EntityCfg(model=craft)

Properties that MuJoCo does not support, Coulomb friction that changes sign smoothly and
the maximum speed of a wheel, are in the force model `ReactionWheels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from simstate.base.checks import argument, number
from simstate.base.errors import InvalidInputError, ModelError, unknown_name
from simstate.base.ids import Values
from simstate.math.conventions.checked_values import as_single
from simstate.math.inertia import physical_fault

_HINGE = mujoco.mjtJoint.mjJNT_HINGE


@dataclass(frozen=True, kw_only=True)
class ReactionWheelCfg:
    """A wheel on a bearing with a motor; its name is also that of joint and actuator.

    The actuator's control is the motor's torque on the wheel [N·m]; the opposite torque
    acts on the hub.
    """

    name: str
    axis: Values
    """Axis of the bearing, in body axes; (3,)."""
    inertia: float
    """About the axis [kg·m²]."""
    max_torque: float
    """Maximum torque of the motor [N·m]."""
    max_speed: float
    """Speed relative to the body at which the motor's torque vanishes [rad/s]."""
    mass: float = 1.0
    """[kg]."""
    position: Values = (0.0, 0.0, 0.0)
    """Position of the wheel's centre in the body [m]; (3,)."""
    transverse_inertia: float | None = None
    """About a diameter [kg·m²]; None: half of `inertia`, as of a thin disc."""
    viscous: float = 0.0
    """Friction torque per speed [N·m·s]."""
    coulomb: float = 0.0
    """Friction torque independent of speed [N·m]."""

    def add_to(self, spec: mujoco.MjSpec, body: str) -> None:
        """Add this wheel to a body of `spec`, which is changed."""
        numbers = ("inertia", "max_torque", "max_speed", "mass")
        _check_positive(self, f"reaction wheel {self.name!r}", *numbers)
        across = self.transverse_inertia
        disc = (0.5 * self.inertia if across is None else across, self.inertia)
        hub = _body(spec, body)
        wheel = _rotor(hub, self.name, self.axis, self.position, self.mass, *disc)
        joint = wheel.add_joint(name=self.name, type=_HINGE)
        joint.axis = [0.0, 0.0, 1.0]
        _motor(spec, self.name, self.max_torque)


@dataclass(frozen=True, kw_only=True)
class ControlMomentGyroCfg:
    """A rotor that spins in a gimbal, which a servo turns.

    Joints are `<name>_gimbal` and `<name>_rotor`. The control of the actuator `<name>`
    is the gimbal's rate [rad/s]. The rotor has no motor and keeps its momentum; its
    initial speed is `joint_vel`, for InitialStateCfg.
    """

    name: str
    gimbal_axis: Values
    """Axis of the gimbal, in body axes; (3,)."""
    spin_axis: Values
    """Axis of the rotor at gimbal angle zero, perpendicular to the gimbal's axis;
    (3,)."""
    inertia: float
    """Inertia of the rotor about its axis [kg·m²]."""
    speed: float
    """Initial speed of the rotor relative to the gimbal [rad/s]."""
    max_gimbal_rate: float
    """[rad/s]."""
    max_gimbal_torque: float
    """Maximum torque of the servo [N·m]."""
    servo_gain: float | None = None
    """Torque per error in rate [N·m·s]; None: the value that reaches the maximum torque
    at a twentieth of the maximum rate."""
    servo_time: float = 0.005
    """Time constant of the servo [s]: the gimbal's drive has the inertia (`armature`)
    servo_gain · servo_time. Time steps should not be much longer."""
    mass: float = 1.0
    """Mass of the rotor [kg]."""
    position: Values = (0.0, 0.0, 0.0)
    """Position of the rotor's centre in the body [m]; (3,)."""
    transverse_inertia: float | None = None
    """Inertia of the rotor about a diameter [kg·m²]; None: half of `inertia`."""

    @property
    def joint_vel(self) -> dict[str, float]:
        """Initial speed of the rotor by joint, for InitialStateCfg."""
        return {f"{self.name}_rotor": self.speed}

    def add_to(self, spec: mujoco.MjSpec, body: str) -> None:
        """Add this gyro to a body of `spec`, which is changed."""
        numbers = (
            "inertia",
            "mass",
            "max_gimbal_rate",
            "max_gimbal_torque",
            "servo_time",
        )
        _check_positive(self, f"control-moment gyro {self.name!r}", *numbers)
        gimbal_axis, spin_axis = (
            _unit(axis, f"axis of {self.name!r}")
            for axis in (self.gimbal_axis, self.spin_axis)
        )
        if abs(float(gimbal_axis @ spin_axis)) > 1e-6:
            raise InvalidInputError(
                f"spin_axis of {self.name!r} must be perpendicular to gimbal_axis, got "
                f"{self.spin_axis} and {self.gimbal_axis}.",
                name="spin_axis",
            )
        across = self.transverse_inertia
        disc = (0.5 * self.inertia if across is None else across, self.inertia)
        hub = _body(spec, body)
        gimbal = hub.add_body(name=f"{self.name}_gimbal")
        gimbal.pos = as_single(self.position, "position", 3).numpy()
        # A light frame, because MuJoCo requires moving bodies to have mass.
        _inertial(gimbal, 1e-3 * self.mass, [1e-3 * disc[0]] * 3)
        joint = gimbal.add_joint(name=f"{self.name}_gimbal", type=_HINGE)
        joint.axis = gimbal_axis.tolist()
        rotor = f"{self.name}_rotor"
        inner = _rotor(gimbal, rotor, spin_axis, (0, 0, 0), self.mass, *disc)
        inner.add_joint(name=rotor, type=_HINGE).axis = [0.0, 0.0, 1.0]
        rate, torque = self.max_gimbal_rate, self.max_gimbal_torque
        gain = 20 * torque / rate if self.servo_gain is None else self.servo_gain
        joint.armature = gain * self.servo_time
        servo = _actuator(spec, self.name, mujoco.mjtTrn.mjTRN_JOINT, joint.name)
        servo.gainprm[0], servo.biasprm[2] = gain, -gain
        servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        servo.ctrllimited, servo.ctrlrange = True, [-rate, rate]
        servo.forcelimited, servo.forcerange = True, [-torque, torque]


@dataclass(frozen=True, kw_only=True)
class ThrusterCfg:
    """A thruster fixed in a body; its actuator's control is the throttle, 0 to 1.

    `pulses` converts commands to throttles with a minimum on-time. For thrusters that
    consume propellant, use `integrate.Thruster`.
    """

    name: str
    position: Values
    """Point of application, body axes [m]; (3,)."""
    direction: Values
    """Direction of the force on the body, body axes; (3,)."""
    max_force: float
    """[N]."""

    def add_to(self, spec: mujoco.MjSpec, body: str) -> None:
        """Add this thruster to a body of `spec`, which is changed."""
        _check_positive(self, f"thruster {self.name!r}", "max_force")
        site = _body(spec, body).add_site(name=self.name)
        site.pos = as_single(self.position, "position", 3).numpy()
        along = _unit(self.direction, f"direction of {self.name!r}")
        jet = _actuator(spec, self.name, mujoco.mjtTrn.mjTRN_SITE, self.name)
        jet.gear = [*(self.max_force * along), 0.0, 0.0, 0.0]
        jet.ctrllimited, jet.ctrlrange = True, [0.0, 1.0]


def _rotor(
    parent: Any, name: str, axis: Values, position: Values, mass: float,
    across: float, along: float,
) -> Any:  # fmt: skip
    """Add a body whose z axis is the given axis of its parent, with these inertias."""
    fault = physical_fault(as_single(np.diag([across, across, along]), name, 3, 3))
    if fault:
        raise ModelError(f"The inertia of {name!r} is impossible: {fault}.", name=name)
    body = parent.add_body(name=name)
    body.pos = as_single(position, "position", 3).numpy()
    body.quat = _quat_of_axis(_unit(axis, f"axis of {name!r}"))
    _inertial(body, mass, [across, across, along])
    return body


def _inertial(body: Any, mass: float, moments: list[float]) -> None:
    """Set mass and principal moments about the body's origin, along its axes."""
    body.explicitinertial = True
    body.mass, body.inertia = mass, moments
    # By default these are the body's pose in its parent.
    body.ipos, body.iquat = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]


def _motor(spec: mujoco.MjSpec, joint: str, most: float) -> None:
    motor = _actuator(spec, joint, mujoco.mjtTrn.mjTRN_JOINT, joint)
    motor.ctrllimited, motor.ctrlrange = True, [-most, most]


def _actuator(spec: mujoco.MjSpec, name: str, kind: Any, target: str) -> Any:
    actuator = spec.add_actuator(name=name)
    actuator.trntype, actuator.target = kind, target
    actuator.gainprm[0] = 1.0
    return actuator


def _body(spec: mujoco.MjSpec, name: str) -> Any:
    body = spec.body(name)
    if body is None:
        raise unknown_name("body", name, [b.name for b in spec.bodies[1:] if b.name])
    return body


def _unit(axis: Values, name: str) -> np.ndarray:
    vector = as_single(axis, name, 3).numpy()
    length = float(np.linalg.norm(vector))
    if length < 1e-9:
        raise InvalidInputError(f"The {name} must not be zero.", name=argument(name))
    return vector / length


def _quat_of_axis(axis: np.ndarray) -> list[float]:
    """Return the shortest rotation of z to the axis."""
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, axis)
    return quat.tolist()


def _check_positive(part: Any, what: str, *names: str) -> None:
    for name in names:
        number(f"{name} of {what}", getattr(part, name), more_than=0)
