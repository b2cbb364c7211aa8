"""Actuators declared in a scene's configuration instead of in the MJCF."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import mujoco

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError

SHORTEST_STEP_S = 0.001
"""Shortest time step for which the history of a delay is always long enough [s]."""

PidInput = Literal["pos", "vel", "ff"]

_INPUT_BITS: dict[PidInput, int] = {
    "pos": mujoco.mjtCtrlInput.mjINPUT_POS.value,
    "vel": mujoco.mjtCtrlInput.mjINPUT_VEL.value,
    "ff": mujoco.mjtCtrlInput.mjINPUT_FF.value,
}


@dataclass(frozen=True, kw_only=True)
class ActuatorCfg(ABC):
    """One actuator for each 1-DoF joint whose name matches `joints` in full."""

    joints: str | Sequence[str]
    """A regular expression, or several, matched in full against joint names."""
    effort_limit: float | None = None
    """Maximum force or torque on the joint [N or N·m]; None: unlimited."""
    armature: float | None = None
    """Inertia added to the joint [kg or kg·m²]; None: as in the model."""
    friction: float | None = None
    """Dry friction of the joint [N or N·m]; None: as in the model."""
    delay_s: float = 0.0
    """Delay of the controls [s], in whole physics steps."""
    max_delay_s: float | None = None
    """Maximum delay that `events.randomize_delay` may draw [s]; None: delay_s."""

    def __post_init__(self) -> None:
        self._check("delay_s", at_least=0)
        self._check("friction", "armature", at_least=0, or_none=True)
        self._check("max_delay_s", at_least=0, or_none=True)
        if self.max_delay_s is not None and self.delay_s > self.max_delay_s:
            raise InvalidInputError(
                "delay_s must be ≥ 0 and at most max_delay_s, got "
                f"{self.delay_s} and {self.max_delay_s}.",
                name="delay_s",
            )
        self._check("effort_limit", more_than=0, finite=False, or_none=True)

    def _check(self, *names: str, or_none: bool = False, **limits: Any) -> None:
        """Raise unless the given ones of these numbers are within limits."""
        for name in names:
            if not or_none or getattr(self, name) is not None:
                number(name, getattr(self, name), **limits)

    def add_to(self, spec: mujoco.MjSpec, joint: Any) -> None:
        """Add an actuator named as the joint to the model's specification."""
        actuator = spec.add_actuator(
            name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT
        )
        # Clear the model's default class: only this configuration counts.
        actuator.gear = [1, 0, 0, 0, 0, 0]
        for limited in ("ctrllimited", "forcelimited", "actlimited"):
            setattr(actuator, limited, mujoco.mjtLimited.mjLIMITED_FALSE)
        actuator.ctrlrange = actuator.forcerange = actuator.actrange = [0, 0]
        actuator.dyntype = mujoco.mjtDyn.mjDYN_NONE
        self._configure(actuator)
        self._delay(spec, actuator)
        if self.effort_limit is not None:
            # MuJoCo limits the force before the gear; effort_limit is the joint's.
            limit = self.effort_limit / abs(float(actuator.gear[0]))
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuator.forcerange = [-limit, limit]
        if self.armature is not None:
            joint.armature = self.armature
        if self.friction is not None:
            joint.frictionloss = self.friction

    def _delay(self, spec: mujoco.MjSpec, actuator: Any) -> None:
        """Set the actuator's delay, and a history for the longest allowed delay."""
        longest = self.delay_s if self.max_delay_s is None else self.max_delay_s
        actuator.delay = self.delay_s
        actuator.nsample = delay_samples(spec, longest)

    def holding_controls(self, position: float) -> list[float]:
        """Return the controls that hold the joint at a position, zero if none do."""
        del position
        return [0.0]

    @abstractmethod
    def _configure(self, actuator: Any) -> None:
        """Set the actuator's gain and bias."""


@dataclass(frozen=True, kw_only=True)
class PositionActuatorCfg(ActuatorCfg):
    """A spring and damper towards a position target: stiffness·(q* − q) − damping·q̇.

    With more `inputs` than "pos" the actuator has one control for each of them, and
    the force is stiffness·(q* − q) + damping·(q̇* − q̇) + feedforward.
    """

    stiffness: float
    """[N/m or N·m/rad]."""
    damping: float = 0.0
    """[N·s/m or N·m·s/rad]."""
    inputs: tuple[PidInput, ...] = ("pos",)
    """The controls: "pos", "vel" and "ff" (feedforward force), in this order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("stiffness", "damping", at_least=0)
        if "pos" not in self.inputs or not set(self.inputs) <= set(_INPUT_BITS):
            raise InvalidInputError(
                "inputs must contain 'pos' and may contain 'vel' and 'ff', got "
                f"{self.inputs}."
            )

    def holding_controls(self, position: float) -> list[float]:
        """Return the position, and zero for each other input."""
        return [position] + [0.0] * (len(set(self.inputs)) - 1)

    def _configure(self, actuator: Any) -> None:
        if self.inputs == ("pos",):
            actuator.set_to_position(kp=self.stiffness, kv=self.damping)
        else:
            bits = sum(_INPUT_BITS[name] for name in set(self.inputs))
            actuator.set_to_pid(kp=self.stiffness, kv=self.damping, ctrlspec=bits)


@dataclass(frozen=True, kw_only=True)
class VelocityActuatorCfg(ActuatorCfg):
    """A damper towards a velocity target: damping·(q̇* − q̇)."""

    damping: float
    """[N·s/m or N·m·s/rad]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("damping", more_than=0)

    def _configure(self, actuator: Any) -> None:
        actuator.set_to_velocity(kv=self.damping)


@dataclass(frozen=True, kw_only=True)
class MotorActuatorCfg(ActuatorCfg):
    """A force or torque on the joint: gear·control."""

    gear: float = 1.0
    """Force or torque per unit of control."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_gear(self.gear)

    def _configure(self, actuator: Any) -> None:
        actuator.set_to_motor()
        actuator.gear = [self.gear, 0, 0, 0, 0, 0]


@dataclass(frozen=True, kw_only=True)
class DcMotorActuatorCfg(ActuatorCfg):
    """A motor driven by a voltage: torque K·(V − K·ω)/R on its shaft, then the gear.

    The control is the voltage V [V]; the speed of the shaft is ω = gear·q̇. With a
    limited voltage, the torque falls from K·V/R at rest to zero at ω = V/K, which is a
    torque-speed curve. It is MuJoCo's `dcmotor`, on both engines. For a servo with such
    a curve, see `JointPdActionCfg`.
    """

    motor_constant: float
    """K: torque per current, equal to voltage per speed [N·m/A = V·s/rad]."""
    resistance: float
    """R: resistance of the winding [Ω]."""
    voltage_limit: float | None = None
    """Maximum voltage [V]; None: unlimited."""
    gear: float = 1.0
    """Revolutions of the shaft per revolution of the joint."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("motor_constant", "resistance", more_than=0)
        self._check("voltage_limit", more_than=0, or_none=True)
        _check_gear(self.gear)

    def _configure(self, actuator: Any) -> None:
        constant = [self.motor_constant, self.motor_constant]
        actuator.set_to_dcmotor(motorconst=constant, resistance=self.resistance)
        actuator.gear = [self.gear, 0, 0, 0, 0, 0]
        if self.voltage_limit is not None:
            actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuator.ctrlrange = [-self.voltage_limit, self.voltage_limit]


def delay_samples(spec: mujoco.MjSpec, longest_s: float) -> int:
    """Return the length of a control history for delays up to a time [s]."""
    if longest_s <= 0.0:
        return 0
    # The scene may have a shorter time step than the model's own file.
    step = min(spec.option.timestep, SHORTEST_STEP_S)
    return math.ceil(longest_s / step) + 2


def _check_gear(gear: float) -> None:
    """Raise if the gear is zero or not finite."""
    if number("gear", gear) == 0:
        raise InvalidInputError(
            "gear must not be 0: the motor would have no effect.", name="gear"
        )


def force_law(
    model: mujoco.MjModel, actuator: int
) -> Literal["motor", "position", "velocity"] | None:
    """Return the kind of force that gain and bias derive from the control.

    A motor's force is the control times a gain. A servo's, written as such or as
    <general>, is zero at the target, where the gain cancels the bias. Activation
    dynamics are not considered. Return None for any other force.
    """
    if model.actuator_gaintype[actuator] != mujoco.mjtGain.mjGAIN_FIXED.value:
        return None
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE.value:
        return "motor"
    if model.actuator_biastype[actuator] != mujoco.mjtBias.mjBIAS_AFFINE.value:
        return None
    gain, bias = model.actuator_gainprm[actuator, 0], model.actuator_biasprm[actuator]
    if bias[0] == 0.0 and bias[1] == -gain:
        return "position"
    if bias[0] == bias[1] == 0.0 and bias[2] == -gain:
        return "velocity"
    return None
