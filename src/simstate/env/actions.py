"""Action terms: how the columns of an action drive the simulation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from torch import Tensor

from simstate.base.checks import check_range, check_vector, number
from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError, listed
from simstate.base.places import calling_place
from simstate.entity import Entity, EntityData
from simstate.entity.writers import target_writer, wrench_writer
from simstate.env.contracts import quantity_contracts
from simstate.env.entity_cfg import Patterns, SceneEntityCfg, exactly_one
from simstate.env.host_view import chosen, either
from simstate.math import quaternion
from simstate.scene.element_names import matching
from simstate.scene.index import TargetKind

if TYPE_CHECKING:
    from simstate.entity.mirror import SignedPermutation
    from simstate.env.env import Env
    from simstate.env.symmetry import Symmetry

_TARGETS: dict[TargetKind, str] = {
    "position": "pos",
    "velocity": "vel",
    "effort": "effort",
}
"""Names of the quantities of targets."""
PerJoint: TypeAlias = "float | Mapping[str, float]"
"""One number for all joints, or numbers by regular expression on joint names."""


@dataclass(kw_only=True)
class ActionCfg(ABC):
    """Configuration of a part of the action, which `make` creates."""

    asset_name: str = "robot"
    """The entity that it drives."""

    def __post_init__(self) -> None:
        self.place = calling_place()
        """The line that it was written in, for errors."""

    @abstractmethod
    def make(self, name: str, env: Env) -> Action:
        """Return the term, resolved in the environment's scene."""


class Action(ABC):
    """Some columns of the action, and their effect; zero is the neutral action."""

    names: tuple[str, ...]
    """Name of the joint, component or the like that each column drives."""
    contracts: Sequence[Contract] = ()
    """Unit, axes and point of each column of an action; empty: not declared."""
    acts_every_substep: bool = False
    """True if `apply` is called before every physics step, with the same action, rather
    than once. An environment step then takes `decimation` calls of the engine."""
    keeps_dtype: bool = False
    """True if `apply` takes float32 actions, not the engine's dtype."""
    limits: tuple[Sequence[float], Sequence[float]] | None = None
    """Minimum and maximum of each column, for spaces; None: not stated."""

    @property
    def dim(self) -> int:
        """The number of columns."""
        return len(self.names)

    @abstractmethod
    def apply(self, action: Tensor) -> None:
        """Write the targets of an action, engine's dtype; shape (num_envs, dim)."""

    def mirror(self, symmetry: Symmetry) -> SignedPermutation:
        """Return the signed permutation of its columns in the task's mirror image."""
        return symmetry.components(self.names, self.contracts)

    def reset(self, env_ids: Tensor) -> None:  # noqa: B027
        """Start an episode in these worlds; `env.memory` is reset already."""


@dataclass(kw_only=True)
class JointActionCfg(ActionCfg):
    """Targets for joints: offset + scale × action, then clipped."""

    joint_names: Patterns = None
    """Regular expressions on joint names; None: all joints that take such a target."""
    preserve_order: bool = False
    """Keep the order of joint_names, instead of the entity's."""
    scale: PerJoint = 1.0
    """Change of the target per unit of action; by joint with {pattern: value}."""
    offset: PerJoint = 0.0
    """Target at the action 0; by joint with {pattern: value}."""
    clip: tuple[float, float] | None = None
    """Minimum and maximum target."""
    kind: ClassVar[TargetKind]

    def make(self, name: str, env: Env) -> JointAction:
        """Return the term, resolved in the environment's scene."""
        return JointAction(name, self, env)


@dataclass(kw_only=True)
class JointPositionActionCfg(JointActionCfg):
    """Position targets [rad or m]; by default zero holds the default pose.

    Servos use the encoders' positions, joint_pos_biased, so a bias shifts the pose.
    """

    use_default_offset: bool = True
    """Measure targets from `default_joint_pos`, with `offset` on top."""
    kind: ClassVar[TargetKind] = "position"


@dataclass(kw_only=True)
class JointVelocityActionCfg(JointActionCfg):
    """Velocity targets [rad/s or m/s]; zero is the default velocity, or standstill."""

    use_default_offset: bool = True
    """Measure targets from `default_joint_vel`, with `offset` on top."""
    kind: ClassVar[TargetKind] = "velocity"


@dataclass(kw_only=True)
class JointEffortActionCfg(JointActionCfg):
    """Efforts of motors [N·m or N]."""

    kind: ClassVar[TargetKind] = "effort"


@dataclass(kw_only=True)
class RelativeJointPositionActionCfg(JointActionCfg):
    """Position targets [rad or m] relative to the joints' positions at the step."""

    kind: ClassVar[TargetKind] = "position"

    def make(self, name: str, env: Env) -> RelativeJointAction:
        """Return the term, resolved in the environment's scene."""
        return RelativeJointAction(name, self, env)


@either
class JointAction(Action):
    """Writes targets for some joints of one entity into the controls."""

    def __init__(self, name: str, cfg: JointActionCfg, env: Env) -> None:
        self.cfg = cfg
        self.entity = env.scene[cfg.asset_name]
        label = f"action term {name!r}"
        self.joints = driven_joints(
            label, cfg.kind, cfg.joint_names, cfg.preserve_order, self.entity
        )
        self.names = self.joints.names_of("joint")
        self.scale = self._per_joint("scale", 1.0)
        self.offset = self._per_joint("offset", 0.0)
        target = EntityData.quantities[f"joint_{_TARGETS[self._asked]}_target"]
        each = quantity_contracts(self.entity, target, self.names)
        self.contracts = scaled_contracts(each, self.scale[0])
        check_range(label, "clip", cfg.clip, finite=False)
        self._write = target_writer(self.entity, cfg.kind, self.joints.joint_ids)

    def targets(self, action: Tensor) -> Tensor:
        """Return the joint targets of an action; shape (num_envs, dim)."""
        target = action * self.scale + self.offset
        zero = self._zero()
        if zero is not None:
            target = target + zero
        return target if self.cfg.clip is None else target.clip(*self.cfg.clip)

    def action_for(self, target: Tensor) -> Tensor:
        """Return the action with these targets, apart from clip; (num_envs, dim)."""
        target = target - self.offset
        zero = self._zero()
        return (target if zero is None else target - zero) / self.scale

    def apply(self, action: Tensor) -> None:
        """Write the targets of an action."""
        target = self.targets(action)
        if self.cfg.kind == "position":
            bias = chosen(self.entity.data.encoder_bias, self.joints.joint_ids)
            target = target - bias
        self._write(target)

    def mirror(self, symmetry: Symmetry) -> SignedPermutation:
        """Return the signed permutation of its joints."""
        found = symmetry.joints(self.joints)
        scale, offset = self.scale[0], self.offset[0]
        for k, (other, sign) in enumerate(zip(found.index, found.sign, strict=True)):
            if scale[k] != scale[other] or offset[k] != sign * offset[other]:
                raise InvalidInputError(
                    f"scale and offset of {self.names[k]!r} are not those of its "
                    f"mirror image {self.names[other]!r}"
                )
        return found

    def _per_joint(self, field: str, default: float, finite: bool = True) -> Tensor:
        """Return a setting by joint, `default` where no pattern matches; (1, dim)."""
        value: PerJoint = getattr(self.cfg, field)
        by_pattern = value if isinstance(value, Mapping) else {".*": value}
        numbers = dict.fromkeys(self.names, default)
        for pattern, each in by_pattern.items():
            is_scalar = isinstance(each, Real) or getattr(each, "shape", None) == ()
            is_number = is_scalar and not math.isnan(each)
            if not is_number or (finite and math.isinf(each)):
                raise InvalidInputError(
                    f"{field} must be a{' finite' * finite} number for all joints, or "
                    f"{{pattern: number}} by joint; got {value!r}.",
                    name=field,
                )
            found = matching(pattern, self.names, "joint")
            numbers |= dict.fromkeys(found, float(each))
        like = self.entity.data.default_joint_pos
        return like.new_tensor([list(numbers.values())])

    @property
    def _asked(self) -> TargetKind:
        """Kind of target of an action."""
        return self.cfg.kind

    def _zero(self) -> Tensor | None:
        """Return the targets from which an action is measured; None: from zero."""
        data = self.entity.data
        if not getattr(self.cfg, "use_default_offset", False):
            return None
        position = self.cfg.kind == "position"
        default = data.default_joint_pos if position else data.default_joint_vel
        return chosen(default, self.joints.joint_ids)


@either
class RelativeJointAction(JointAction):
    """Writes targets relative to the current positions."""

    def _zero(self) -> Tensor | None:
        return chosen(self.entity.data.joint_pos_biased, self.joints.joint_ids)


_WRENCH = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")


@dataclass(kw_only=True)
class BodyWrenchActionCfg(ActionCfg):
    """Forces and torques on one body along its own axes: thrusters, control surfaces.

    The action has a column for each scale that is not zero.
    """

    body_name: str
    """The body that is pushed."""
    force_scale: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Force at the centre of mass per unit of action, body axes [N]."""
    torque_scale: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Torque per unit of action, body axes [N·m]."""
    limit: float = 1.0
    """Actions are clipped to ± this."""

    def make(self, name: str, env: Env) -> BodyWrenchAction:
        """Return the term, resolved in the environment's scene."""
        return BodyWrenchAction(name, self, env)


class BodyWrenchAction(Action):
    """Writes a wrench on one body."""

    def __init__(self, name: str, cfg: BodyWrenchActionCfg, env: Env) -> None:
        self.cfg = cfg
        self.entity = env.scene[cfg.asset_name]
        label = f"action term {name!r}"
        for field in ("force_scale", "torque_scale"):
            check_vector(label, field, getattr(cfg, field))
        number(f"limit of {label}", cfg.limit, more_than=0, finite=False)
        found = self.entity.find_bodies([cfg.body_name])
        self.body = exactly_one(label, "body", "body_name", found)
        scales = (*cfg.force_scale, *cfg.torque_scale)
        self.columns = [k for k, scale in enumerate(scales) if scale != 0.0]
        if not self.columns:
            raise InvalidInputError(
                f"The {label} does nothing: give force_scale or "
                "torque_scale a number other than zero.",
                name=name,
            )
        self.names = tuple(_WRENCH[k] for k in self.columns)
        like = self.entity.data.default_joint_pos
        self.scale = like.new_tensor([scales[k] for k in self.columns])
        axes = f"body {self.entity.body_names[self.body]}"
        force = Contract("N", axes, "centre of mass")
        torque = Contract("N·m", axes, "any")
        wrench = [*3 * [force], *3 * [torque]]
        each = [wrench[k] for k in self.columns]
        self.contracts = scaled_contracts(each, self.scale)
        self._write = wrench_writer(self.entity, [self.body])

    def apply(self, action: Tensor) -> None:
        """Write the wrench of an action, in world axes."""
        wrench = action.new_zeros(action.shape[0], 6)
        wrench[:, self.columns] = (
            action.clamp(-self.cfg.limit, self.cfg.limit) * self.scale
        )
        quat = self.entity.data.body_link_quat_w[:, self.body]
        force = quaternion.rotate(quat, wrench[:, :3])
        torque = quaternion.rotate(quat, wrench[:, 3:])
        self._write(force[:, None], torque[:, None])


def scaled_contracts(each: Sequence[Contract], scale: Tensor) -> list[Contract]:
    """Return the contracts of actions whose products with a scale have `each`."""
    return [one.scaled(float(k)) for one, k in zip(each, scale, strict=True)]


def driven_joints(
    label: str, kind: TargetKind, patterns: Patterns, keep_order: bool, entity: Entity
) -> SceneEntityCfg:
    """Return the chosen joints, if all take such targets; None: all that do."""
    inputs = entity.index.target_inputs(kind)
    driven = [entity.joint_names[k] for k in inputs.joints]
    if not driven:
        raise InvalidInputError(
            f"The {label} needs actuators that take {kind} targets; entity "
            f"{entity.name!r} has none. Declare them in EntityCfg.actuators.",
            name=entity.name,
        )
    names = driven if patterns is None else patterns
    joints = SceneEntityCfg(entity.name, joint_names=names, preserve_order=keep_order)
    joints = joints.resolve_in(entity)
    without = [name for name in joints.names_of("joint") if name not in driven]
    if without:
        raise InvalidInputError(
            f"The {label} chooses joints without an actuator that takes a {kind} "
            f"target: {listed(without)}. Those of {entity.name!r} that have one: "
            f"{listed(driven)}.",
            name=entity.name,
        )
    return joints
