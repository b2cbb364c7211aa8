"""Servos that Python computes in every physics step: PD with a torque-speed curve.

MuJoCo's own servos (PositionActuatorCfg) are faster and more stable: use these only if
the limit depends on the speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env.actions import JointAction, JointActionCfg, PerJoint
from simstate.scene.index import TargetKind

if TYPE_CHECKING:
    from simstate.env.env import Env


@dataclass(kw_only=True)
class JointPdActionCfg(JointActionCfg):
    """Position targets [rad or m] of a spring and damper that motors emulate.

    effort = stiffness·(q* − q) − damping·q̇, computed before every physics step and
    limited to the effort of a DC motor at that speed: in the direction of motion, it
    decreases from stall_effort at rest to zero at velocity_limit. The joints need
    motors (MotorActuatorCfg). An environment step takes `decimation` engine calls.
    """

    stiffness: PerJoint
    """[N·m/rad or N/m]."""
    damping: PerJoint = 0.0
    """[N·m·s/rad or N·s/m]."""
    effort_limit: PerJoint = math.inf
    """Maximum effort at any speed [N·m or N]."""
    stall_effort: PerJoint = math.inf
    """Maximum effort of the motor at rest, without effort_limit [N·m or N]."""
    velocity_limit: PerJoint = math.inf
    """Speed at which the motor's effort is zero [rad/s or m/s]."""
    use_default_offset: bool = True
    """Measure targets from `default_joint_pos`, with `offset` on top."""
    kind: ClassVar[TargetKind] = "effort"

    def make(self, name: str, env: Env) -> JointPdAction:
        """Return the term, resolved in the environment's scene."""
        return JointPdAction(name, self, env)


class JointPdAction(JointAction):
    """Computes efforts of a servo in every physics step."""

    acts_every_substep = True

    def __init__(self, name: str, cfg: JointPdActionCfg, env: Env) -> None:
        super().__init__(name, cfg, env)
        self.stiffness = self._per_joint("stiffness", 0.0)
        self.damping = self._per_joint("damping", 0.0)
        self.effort_limit = self._limit("effort_limit")
        self.stall_effort = self._limit("stall_effort")
        self.velocity_limit = self._limit("velocity_limit")

    def _limit(self, field: str) -> Tensor:
        """Return a limit by joint, infinite where none is set; shape (1, dim)."""
        limits = self._per_joint(field, math.inf, finite=False)
        if not bool((limits > 0.0).all()):
            raise InvalidInputError(
                f"{field} must be > 0, got {float(limits.min()):g}.", name=field
            )
        return limits

    @property
    def _asked(self) -> TargetKind:
        return "position"

    def efforts(self, action: Tensor) -> Tensor:
        """Return the present efforts for an action [N·m or N]; (num_envs, dim)."""
        data, ids = self.entity.data, self.joints.joint_ids
        position, velocity = data.joint_pos_biased[:, ids], data.joint_vel[:, ids]
        wanted = self.stiffness * (self.targets(action) - position)
        return self.limited(wanted - self.damping * velocity, velocity)

    def limited(self, effort: Tensor, velocity: Tensor) -> Tensor:
        """Return efforts clipped to the motors' limits at these speeds."""
        share = velocity / self.velocity_limit
        most = _product(self.stall_effort, (1.0 - share).clamp(min=0.0))
        least = -_product(self.stall_effort, (1.0 + share).clamp(min=0.0))
        most, least = most.minimum(self.effort_limit), least.maximum(-self.effort_limit)
        return effort.clamp(least, most)

    def apply(self, action: Tensor) -> None:
        """Write the efforts for an action."""
        self._write(self.efforts(action))

    def _zero(self) -> Tensor | None:
        cfg = self.cfg
        assert isinstance(cfg, JointPdActionCfg)
        if not cfg.use_default_offset:
            return None
        return self.entity.data.default_joint_pos[:, self.joints.joint_ids]


def _product(limit: Tensor, share: Tensor) -> Tensor:
    """Return limit × share, infinite where the limit is, also at a share of zero."""
    return torch.where(limit.isinf(), limit, limit * share)
