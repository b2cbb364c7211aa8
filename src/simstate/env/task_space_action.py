"""Motions of a site as actions, by differential inverse kinematics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError
from simstate.entity.writers import target_writer
from simstate.env.actions import Action, ActionCfg, driven_joints, scaled_contracts
from simstate.env.entity_cfg import Patterns, exactly_one
from simstate.math.vector import apply, solve

if TYPE_CHECKING:
    from simstate.env.env import Env

_COLUMNS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(kw_only=True)
class TaskSpaceActionCfg(ActionCfg):
    """Displacements of a site, along the root link's axes.

    Joint position targets follow from the site's Jacobian by damped least squares,
    Δq = Jᵀ (J Jᵀ + λ²)⁻¹ Δx, relative to the joints' current positions. Targets are
    clipped to the joints' limits.
    """

    site_name: str
    joint_names: Patterns = None
    """Regular expressions on joint names; None: all that take position targets."""
    translation_scale: float = 0.05
    """Translation per unit of action [m]; 0: the action does not translate."""
    rotation_scale: float = 0.0
    """Rotation vector per unit of action [rad]; 0: the action does not rotate, and the
    attitude of the site is free."""
    damping: float = 0.05
    """λ: larger values are smoother near singular poses, and less exact [m or rad]."""
    limit: float = 1.0
    """Actions are clipped to ± this."""

    def make(self, name: str, env: Env) -> TaskSpaceAction:
        """Return the term, resolved in the environment's scene."""
        return TaskSpaceAction(name, self, env)


class TaskSpaceAction(Action):
    """Writes position targets of joints that move a site."""

    def __init__(self, name: str, cfg: TaskSpaceActionCfg, env: Env) -> None:
        label = f"action term {name!r}"
        _check(label, cfg)
        self.cfg = cfg
        self.entity = env.scene[cfg.asset_name]
        found = self.entity.find_sites([cfg.site_name])
        site = exactly_one(label, "site", "site_name", found)
        self._site = self.entity.site_names[site]
        joints = driven_joints(label, "position", cfg.joint_names, False, self.entity)
        self._joints = joints.joint_ids
        dofs = torch.tensor(self.entity.index.dof_adr, device=env.device)
        self._dofs = dofs[self._joints]
        scales = [cfg.translation_scale] * 3 + [cfg.rotation_scale] * 3
        self._rows = [k for k, scale in enumerate(scales) if scale]
        self.names = tuple(_COLUMNS[k] for k in self._rows)
        like = self.entity.data.default_joint_pos
        self._scale = like.new_tensor([scales[k] for k in self._rows])
        place = f"site {self._site}"
        way, turn = (Contract(unit, "root link", place) for unit in ("m", "rad"))
        each = [(*3 * [way], *3 * [turn])[k] for k in self._rows]
        self.contracts = scaled_contracts(each, self._scale)
        self._damping = cfg.damping**2 * torch.eye(len(self._rows)).to(like)
        self._write = target_writer(self.entity, "position", self._joints)

    def apply(self, action: Tensor) -> None:
        """Write the targets that move the site from its current pose."""
        data = self.entity.data
        asked = action.clamp(-self.cfg.limit, self.cfg.limit) * self._scale
        jacobian = self.entity.jacobian(self._site, axes="b")
        jacobian = jacobian[:, self._rows][:, :, self._dofs]
        transposed = jacobian.transpose(1, 2)
        weights = solve(jacobian @ transposed + self._damping, asked)
        moved = apply(transposed, weights)
        now = data.joint_pos_biased[:, self._joints]
        low, high = data.joint_pos_limits[:, self._joints].unbind(-1)
        bias = data.encoder_bias[:, self._joints]
        self._write((now + moved).clamp(low, high) - bias)


def _check(label: str, cfg: TaskSpaceActionCfg) -> None:
    numbers = {
        "translation_scale": cfg.translation_scale,
        "rotation_scale": cfg.rotation_scale,
        "damping": cfg.damping,
        "limit": cfg.limit,
    }
    for field, value in numbers.items():
        if not 0.0 <= value < math.inf:
            raise InvalidInputError(
                f"The {label} has {field} {value!r}: it must be finite and ≥ 0.",
                name=field,
            )
    if not (cfg.translation_scale or cfg.rotation_scale):
        raise InvalidInputError(
            f"The {label} does nothing: give translation_scale or rotation_scale a "
            "number other than zero.",
            name="translation_scale",
        )
    if cfg.damping == 0.0:
        raise InvalidInputError(
            f"The {label} has damping 0: near a singular pose targets would jump. "
            "Give it a length, such as 0.01.",
            name="damping",
        )
