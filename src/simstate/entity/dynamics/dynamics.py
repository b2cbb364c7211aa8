"""Dynamics: mass matrix, forces, momenta and energies of an entity or of the scene."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import check_finite
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids, Values, as_values
from simstate.engine import Stage
from simstate.engine.core import matrices
from simstate.entity.dynamics.assembly import DynamicsParts
from simstate.entity.dynamics.dof_motion import spatial_acceleration
from simstate.math import acceleration_from_cacc, move_moment
from simstate.math.vector import cross, dot, solve_positive
from simstate.world.declared import EVALUATED, LAST_EVALUATION, Reading, Readings
from simstate.world.worlds import Worlds

_DOFS, _BODIES = "num_dofs", "num_bodies"
_JOINT_SPACE = "qvel's"


def _of_dofs(name: str, stage: Stage, when: str = "now") -> Reading:
    """Declare a raw field of the dofs."""
    return _forces(lambda own: own._parts.of_dofs(name).clone(), stage, when)


def _forces(
    compute: Callable[[Any], Tensor],
    stage: Stage,
    when: str = "now",
    evaluates: bool = False,
) -> Reading:
    """Declare a force on each dof."""
    return Reading(
        compute, unit="N or N·m", shape=(_DOFS,), stage=stage, axes=_JOINT_SPACE,
        when=when, evaluates=evaluates,
    )  # fmt: skip


def _vector(
    compute: Callable[[Any], Tensor], unit: str, stage: Stage, point: str = "–"
) -> Reading:
    """Declare a vector along world axes."""
    return Reading(
        compute, unit=unit, shape=(3,), stage=stage, axes="world", point=point
    )


class Dynamics(Readings):
    """The dynamics of some bodies in all worlds; engine's dtype, world axes.

    Joint space is that of qvel: `dof_ids` are the columns, free joints included (linear
    in world axes at the link's origin, angular in body axes). The equation of motion is
    mass_matrix @ qacc + bias_force = passive_force + applied_actuator_force +
    constraint_force + what a user applies.
    """

    def __init__(self, worlds: Worlds, label: str, bodies: Sequence[int]) -> None:
        super().__init__(worlds, label)
        self._parts = DynamicsParts(worlds, bodies)

    @property
    def num_dofs(self) -> int:
        """The number of dofs."""
        return self._parts.num_dofs

    @property
    def dof_ids(self) -> tuple[int, ...]:
        """The columns of qvel that the dofs are."""
        return self._parts.dofs

    # Joint space.
    mass_matrix = Reading(
        lambda own: own._mass_matrix(), unit="kg, kg·m or kg·m²", shape=(_DOFS, _DOFS),
        stage=Stage.POSITION, axes=_JOINT_SPACE,
    )  # fmt: skip
    """Mass matrix, in full, armature included [kg, kg·m or kg·m²]; (num_envs, num_dofs,
    num_dofs)."""
    bias_force = _of_dofs("qfrc_bias", Stage.VELOCITY)
    """Coriolis, centrifugal and gravity forces, on the side of the accelerations:
    mass_matrix @ qacc + bias_force = forces [N or N·m]; (num_envs, num_dofs)."""
    gravity_force = _forces(lambda own: own._gravity_force(), Stage.POSITION)
    """Gravity's part of bias_force: what holds the bodies at rest [N or N·m];
    (num_envs, num_dofs)."""
    coriolis_force = _forces(
        lambda own: own.bias_force - own.gravity_force, Stage.VELOCITY
    )
    """The part of bias_force that comes with velocities: Coriolis and centrifugal
    [N or N·m]; (num_envs, num_dofs)."""
    passive_force = _of_dofs("qfrc_passive", Stage.VELOCITY)
    """Springs, dampers, gravity compensation and fluid forces on the dofs [N or N·m];
    (num_envs, num_dofs)."""
    applied_generalized_force = _of_dofs("qfrc_applied", Stage.STATE)
    """Forces applied by the user to all dofs (`entity.data.generalized_force` has those
    of the free joints only) [N or N·m]; (num_envs, num_dofs)."""
    applied_actuator_force = _of_dofs(
        "qfrc_actuator", Stage.ACCELERATION, LAST_EVALUATION
    )
    """Applied torque: forces of all actuators on the dofs, after their limits, in the
    last dynamics evaluation [N or N·m]; (num_envs, num_dofs)."""
    computed_actuator_force = _forces(
        lambda own: own._unlimited()[:, own._parts.dof_index], Stage.VELOCITY,
        EVALUATED, evaluates=True,
    )  # fmt: skip
    """Computed torque: the same before the limits of actuators, joints and tendons, at
    the present state [N or N·m]; (num_envs, num_dofs). Evaluates when read."""
    constraint_force = _of_dofs("qfrc_constraint", Stage.ACCELERATION, LAST_EVALUATION)
    """Forces of all constraints (contacts, limits, friction, equalities) on the dofs,
    in the last dynamics evaluation [N or N·m]; (num_envs, num_dofs)."""
    incoming_wrench_w = Reading(
        lambda own: own._incoming_wrench(), unit="N, N·m", shape=(_BODIES, 6),
        stage=Stage.VELOCITY, point="link origin", axes="world", when=EVALUATED,
        evaluates=True,
    )  # fmt: skip
    """Force then torque **on** each body by its parent, through its joints and what
    drives them, torque about the link's origin, world axes [N, N·m]; (num_envs,
    num_bodies, 6). Evaluates the dynamics of the present state when read."""

    # Centre of mass and momentum.
    com_pos_w = _vector(lambda own: own._parts.com(), "m", Stage.POSITION)
    """Centre of mass of all bodies, world axes [m]; (num_envs, 3)."""
    com_vel_w = _vector(
        lambda own: own.linear_momentum_w / own._parts.total_mass(), "m/s",
        Stage.VELOCITY, "centre of mass of all bodies",
    )  # fmt: skip
    """Velocity of the centre of mass, world axes [m/s]; (num_envs, 3)."""
    com_acc_w = Reading(
        lambda own: own._com_acceleration(), unit="m/s²", shape=(3,), axes="world",
        stage=Stage.VELOCITY, point="centre of mass of all bodies", when=EVALUATED,
        evaluates=True,
    )  # fmt: skip
    """Acceleration of the centre of mass, world axes [m/s²]; (num_envs, 3). Evaluates
    the dynamics of the present state when read."""
    linear_momentum_w = _vector(
        lambda own: own._momentum()[:, :3], "kg·m/s", Stage.VELOCITY
    )
    """Linear momentum of all bodies, world axes [kg·m/s]; (num_envs, 3)."""
    angular_momentum_w = _vector(
        lambda own: own._momentum()[:, 3:], "kg·m²/s", Stage.VELOCITY,
        "centre of mass of all bodies",
    )  # fmt: skip
    """Angular momentum of all bodies about their centre of mass, world axes [kg·m²/s];
    (num_envs, 3)."""
    centroidal_momentum_matrix = Reading(
        lambda own: own._parts.momentum_matrix(), unit="kg, kg·m or kg·m²",
        shape=(6, _DOFS), stage=Stage.POSITION, axes="world, of qvel's",
        point="centre of mass of all bodies",
    )  # fmt: skip
    """Map from qvel to linear then angular momentum about the centre of mass, world
    axes [kg, kg·m or kg·m²]; (num_envs, 6, num_dofs)."""

    # Energy.
    kinetic_energy = Reading(
        lambda own: own._kinetic(), unit="J", shape=(), stage=Stage.VELOCITY
    )
    """½ qvel · mass_matrix · qvel, armature included [J]; (num_envs,)."""
    gravity_energy = Reading(
        lambda own: own._gravity_energy(), unit="J", shape=(), stage=Stage.POSITION
    )
    """Potential energy of all bodies in gravity, zero at the world's origin [J];
    (num_envs,)."""

    # Methods.
    def solve_mass_matrix(self, forces: Values) -> Tensor:
        """The accelerations that forces alone would give: mass_matrix⁻¹ @ forces.

        Both in joint space; shape (num_envs, num_dofs), or (num_envs, num_dofs, k).
        """
        given = torch.as_tensor(forces)
        tail = tuple(given.shape[2:]) if given.ndim == 3 else ()
        rows, like = self._reader.worlds.num_envs, self.mass_matrix
        checked = as_values(forces, "forces", rows, (self.num_dofs, *tail), like)
        columns = checked if tail else checked[..., None]
        solved, failed = solve_positive(self.mass_matrix, columns)
        if failed is not None:
            raise InvalidInputError(
                f"The mass matrix of world {failed} is not positive definite: a body "
                "that moves has no mass, or the state is not finite."
            )
        return solved if tail else solved[..., 0]

    def angular_momentum(self, about: Values) -> Tensor:
        """Angular momentum about a point, world axes [kg·m²/s]; (num_envs, 3).

        `about` is a point along world axes [m], one for all worlds or for each; its
        own motion does not count.
        """
        rows = self._reader.worlds.num_envs
        point = torch.as_tensor(about)
        if point.ndim == 1:
            point = point.expand(rows, *point.shape)
        checked = as_values(point, "about", rows, (3,), self.com_pos_w)
        return move_moment(
            self.angular_momentum_w, self.linear_momentum_w, checked - self.com_pos_w
        )

    # Formulas.
    def _mass_matrix(self) -> Tensor:
        if self._parts.worlds.engine.compiled is not None:
            rows = self._parts.field("M").numpy()
            matrix = matrices.entries(rows, self._parts.compiled_entries)
            return torch.as_tensor(matrix)
        places, there = self._parts.entries
        values = self._parts.field("M").index_select(1, places.flatten())
        return values.view(values.shape[0], *places.shape) * there

    def _gravity_force(self) -> Tensor:
        parts = self._parts
        offset = parts.field("xipos")[:, parts.body_index]
        offset = offset - parts.field("subtree_com")[:, parts.body_roots]
        # Mass and first moment of all that each dof moves, about its tree's centre.
        mass = torch.matmul(parts.mass, parts.moves)
        moment = torch.matmul(parts.moves.T, parts.mass[..., None] * offset)
        motion = parts.of_dofs("cdof")
        momentum = mass[..., None] * motion[..., 3:] + cross(motion[..., :3], moment)
        return -dot(momentum, parts.gravity[:, None])[..., 0]

    def _unlimited(self) -> Tensor:
        worlds = self._reader.worlds
        return worlds.on_demand(lambda engine: engine.unlimited_actuation())[1]

    def _incoming_wrench(self) -> Tensor:
        parts = self._parts
        all_wrenches = parts.worlds.on_demand(lambda engine: engine.joint_wrenches())
        wrench = all_wrenches[:, parts.body_index]
        torque, force = wrench[..., :3], wrench[..., 3:]
        origin = parts.field("xpos")[:, parts.body_index]
        offset = origin - parts.field("subtree_com")[:, parts.body_roots]
        return torch.cat([force, move_moment(torque, force, offset)], dim=-1)

    def _momentum(self) -> Tensor:
        qvel = self._parts.of_dofs("qvel")
        return torch.matmul(self.centroidal_momentum_matrix, qvel[..., None])[..., 0]

    def _com_acceleration(self) -> Tensor:
        parts = self._parts
        cacc = spatial_acceleration(
            parts.of_dofs("qvel"),
            parts.worlds.acceleration_now()[:, parts.dof_index],
            parts.of_dofs("cdof"),
            parts.of_dofs("cdof_dot"),
            parts.moves,
        )
        acceleration = acceleration_from_cacc(
            parts.field("xipos")[:, parts.body_index],
            parts.field("subtree_com")[:, parts.body_roots],
            parts.field("cvel")[:, parts.body_index],
            cacc,
        )[..., :3]
        weighted = parts.mass[..., None] * acceleration
        return weighted.sum(dim=1) / parts.total_mass()

    def _kinetic(self) -> Tensor:
        qvel = self._parts.of_dofs("qvel")
        moved = torch.matmul(self.mass_matrix, qvel[..., None])[..., 0]
        return 0.5 * dot(qvel, moved)[..., 0]

    def _gravity_energy(self) -> Tensor:
        parts = self._parts
        height = dot(parts.com(), parts.gravity)
        return -(parts.total_mass() * height)[:, 0]


class SceneDynamics(Dynamics):
    """The dynamics of all bodies of the scene; `num_dofs` is MuJoCo's nv."""

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds, "sim.dynamics", range(1, worlds.model.nbody))

    potential_energy = Reading(
        lambda own: own._potential(), unit="J", shape=(), stage=Stage.VELOCITY,
        when=EVALUATED, evaluates=True,
    )  # fmt: skip
    """Potential energy as MuJoCo's: gravity_energy, and that of the springs of joints,
    tendons and flexible bodies [J]; (num_envs,)."""

    def _potential(self) -> Tensor:
        worlds = self._reader.worlds
        return worlds.on_demand(lambda engine: engine.energies())[:, 0]

    def inverse_dynamics(self, acceleration: Values, env_ids: Ids = None) -> Tensor:
        """The forces in joint space that give accelerations, as mj_inverse; (n, nv).

        `acceleration` is qacc [m/s² or rad/s², qvel's axes], a row for each selected
        world. Contacts and other constraints are taken into account: it is
        mass_matrix @ qacc + bias_force − passive_force − constraint_force(qacc).

        The native engine has no batched call for it: MuJoCo runs one world after the
        other there, tens of microseconds each.
        """
        worlds = self._reader.worlds
        worlds.ledger.calls.recover()
        rows = worlds.select(env_ids)
        like = worlds.engine.field("qacc")
        checked = as_values(
            acceleration, "acceleration", rows.count, (like.shape[1],), like
        )
        check_finite(checked, "acceleration")
        values = checked.expand(rows.count, -1)
        ids = rows.tensor(worlds.device)
        return worlds.on_demand(lambda engine: engine.inverse(values, ids))
