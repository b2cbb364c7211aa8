"""Actuators declared in a scene's configuration instead of in the MJCF."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import mujoco

from simstate.errors import InvalidInputError

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
    """Greatest force or torque on the joint [N or N·m]; None: unlimited."""
    armature: float | None = None
    """Inertia added to the joint [kg or kg·m²]; None: as in the model."""

    def __post_init__(self) -> None:
        if self.effort_limit is not None and not self.effort_limit > 0:
            raise InvalidInputError(
                f"effort_limit must be > 0, got {self.effort_limit}."
            )
        if self.armature is not None and not self.armature >= 0:
            raise InvalidInputError(f"armature must be ≥ 0, got {self.armature}.")

    def add_to(self, spec: mujoco.MjSpec, joint: Any) -> None:
        """Add an actuator named as the joint to the model's specification."""
        actuator = spec.add_actuator(
            name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT
        )
        # Nothing of the model's default class: what is configured here is all of it.
        actuator.gear = [1, 0, 0, 0, 0, 0]
        for limited in ("ctrllimited", "forcelimited", "actlimited"):
            setattr(actuator, limited, mujoco.mjtLimited.mjLIMITED_FALSE)
        actuator.ctrlrange = actuator.forcerange = actuator.actrange = [0, 0]
        actuator.dyntype = mujoco.mjtDyn.mjDYN_NONE
        actuator.delay = 0
        self._configure(actuator)
        if self.effort_limit is not None:
            # MuJoCo limits the force before the gear, the limit here is the joint's.
            limit = self.effort_limit / abs(float(actuator.gear[0]))
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuator.forcerange = [-limit, limit]
        if self.armature is not None:
            joint.armature = self.armature

    def holding_controls(self, position: float) -> list[float]:
        """The controls that hold the joint at a position, as far as there are any."""
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
        for name in ("stiffness", "damping"):
            if not getattr(self, name) >= 0:
                raise InvalidInputError(
                    f"{name} must be ≥ 0, got {getattr(self, name)}."
                )
        if "pos" not in self.inputs or not set(self.inputs) <= set(_INPUT_BITS):
            raise InvalidInputError(
                "inputs must hold 'pos' and may hold 'vel' and 'ff', got "
                f"{self.inputs}."
            )

    def holding_controls(self, position: float) -> list[float]:
        """The position, and zero for each other input."""
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
        if not self.damping > 0:
            raise InvalidInputError(f"damping must be > 0, got {self.damping}.")

    def _configure(self, actuator: Any) -> None:
        actuator.set_to_velocity(kv=self.damping)


@dataclass(frozen=True, kw_only=True)
class MotorActuatorCfg(ActuatorCfg):
    """A force or torque on the joint: gear·control."""

    gear: float = 1.0
    """Force or torque per unit of control."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gear == 0:
            raise InvalidInputError("gear must not be 0: the motor would do nothing.")

    def _configure(self, actuator: Any) -> None:
        actuator.set_to_motor()
        actuator.gear = [self.gear, 0, 0, 0, 0, 0]
