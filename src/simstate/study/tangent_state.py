"""Tangent states: displacements of a simulation's state, with names and units.

Orientations are displaced by rotation vectors along body axes, as in MuJoCo's qvel, so
that there are as many components as degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import mujoco
import torch
from torch import Tensor

from simstate.engine.field_layout import joint_layout
from simstate.math import quaternion

if TYPE_CHECKING:
    from simstate.simulation import Simulation
    from simstate.step import Process

_FREE = mujoco.mjtJoint.mjJNT_FREE.value
_BALL = mujoco.mjtJoint.mjJNT_BALL.value
_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value


@dataclass(frozen=True)
class _Layout:
    """The tangent space of a model."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    controls: tuple[str, ...]
    """Names of the controls: those of their actuators, or numbers."""
    rotations: list[tuple[int, int]]
    """qpos and qvel addresses of quaternions."""
    straight: dict[int, int]
    """qpos addresses of all other degrees of freedom, by their qvel addresses."""

    @staticmethod
    def of(model: mujoco.MjModel) -> _Layout:
        """Return the layout of a model."""
        coordinates = [*_joint_coordinates(model), *_activations(model)]
        names, units = zip(*coordinates, strict=True) if coordinates else ((), ())
        flat, quats = joint_layout(model)
        straight = {dof: adr for adr, dof in flat}
        return _Layout(names, units, _control_names(model), quats, straight)


_layouts: WeakKeyDictionary[mujoco.MjModel, _Layout] = WeakKeyDictionary()


class StateVector:
    """Displacements of positions, velocities, activations and processes, in this order.

    Together they have shape (num_envs, size).
    """

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        model = sim.model
        self.nv, self.na = int(model.nv), int(model.na)
        integration = sim.integration
        self.processes: list[Process] = (
            [] if integration is None else list(integration.processes)
        )
        layout = _layouts.get(model)
        if layout is None:
            layout = _layouts[model] = _Layout.of(model)
        rest = tuple(
            f"{process.name}[{k}]"
            for process in self.processes
            for k in range(process.value.shape[1])
        )
        self.names, self.units = layout.names + rest, layout.units + ("",) * len(rest)
        """Names and units of the coordinates."""
        self.controls = layout.controls
        """Names of the controls: those of their actuators, or numbers."""
        self._rotations, self._straight = layout.rotations, layout.straight

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return len(self.names)

    def scale(self, column: int) -> Tensor:
        """Return a typical size of a coordinate, 1 or more; (num_envs,).

        1 for MuJoCo's state, as in mjd_transitionFD; for processes, which may be
        positions in orbit, their magnitude.
        """
        if column < 2 * self.nv + self.na:
            return self.sim.data.qpos.new_ones(self.sim.num_envs)
        return self._process_value(column).abs().clamp(min=1.0)

    def _process_value(self, column: int) -> Tensor:
        """Return a view of the value of a process; (num_envs,)."""
        column -= 2 * self.nv + self.na
        for process in self.processes:
            width = process.value.shape[1]
            if column < width:
                return process.value[:, column]
            column -= width
        raise AssertionError(column)

    def displace(self, column: int, by: Tensor) -> None:
        """Move all worlds along one coordinate, each by its amount; (num_envs,)."""
        data = self.sim.data
        if column < self.nv:
            self._displace_position(column, by)
        elif column < 2 * self.nv:
            data.qvel[:, column - self.nv] += by
        elif column < 2 * self.nv + self.na:
            data.act[:, column - 2 * self.nv] += by
        else:
            self._process_value(column).add_(by)

    def _displace_position(self, dof: int, by: Tensor) -> None:
        qpos = self.sim.data.qpos
        for adr, first in self._rotations:
            if first <= dof < first + 3:
                turn = qpos.new_zeros(qpos.shape[0], 3)
                turn[:, dof - first] = by
                part = quaternion.from_rotation_vector(turn)
                quat = quaternion.normalize(qpos[:, adr : adr + 4])
                qpos[:, adr : adr + 4] = quaternion.multiply(quat, part)
                return
        qpos[:, self._straight[dof]] += by

    def read(self) -> tuple[Tensor, ...]:
        """Return a copy of the current state: qpos, qvel, act, processes' values."""
        data = self.sim.data
        own = (process.value.clone() for process in self.processes)
        return data.qpos.clone(), data.qvel.clone(), data.act.clone(), *own

    def write(self, state: Tensor) -> None:
        """Write rows of qpos, qvel, act and processes; quaternions are normalised.

        One that has unit length to rounding keeps its bits.
        """
        sizes = [x.shape[1] for x in self.read()]
        parts: tuple[Tensor, ...] = torch.split(state, sizes, dim=1)
        qpos = parts[0].clone()
        for adr, _ in self._rotations:
            given = qpos[:, adr : adr + 4]
            is_unit = (given.square().sum(dim=1, keepdim=True) - 1.0).abs() < 1e-14
            unit = torch.where(is_unit, given, quaternion.normalize(given))
            qpos[:, adr : adr + 4] = unit
        for name, part in zip(
            ("qpos", "qvel", "act"), (qpos, *parts[1:3]), strict=True
        ):
            self.sim.write_field(name, part)
        for process, value in zip(self.processes, parts[3:], strict=True):
            process.value.copy_(value)

    def pull_back(self, state: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient by displacements from that by the components of rows.

        A displacement δ of an orientation q changes it by q ⊗ (0, δ / 2).
        """
        moved = torch.zeros_like(gradient[:, : self.nv])
        for dof, adr in self._straight.items():
            moved[:, dof] = gradient[:, adr]
        for adr, first in self._rotations:
            turns = _turns(state[:, adr : adr + 4])
            along = gradient[:, adr : adr + 4, None]
            moved[:, first : first + 3] = (turns.mT @ along)[..., 0]
        return torch.cat([moved, gradient[:, int(self.sim.model.nq) :]], dim=1)

    def push_out(self, state: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient by the components of rows from that by displacements.

        It has no component along quaternions, because these are normalised.
        """
        nq = int(self.sim.model.nq)
        qpos = torch.zeros_like(state[:, :nq])
        for dof, adr in self._straight.items():
            qpos[:, adr] = gradient[:, dof]
        for adr, first in self._rotations:
            quat = state[:, adr : adr + 4]
            length = quat.square().sum(dim=1, keepdim=True)
            along = gradient[:, first : first + 3, None]
            qpos[:, adr : adr + 4] = 4 / length * (_turns(quat) @ along)[..., 0]
        return torch.cat([qpos, gradient[:, self.nv :]], dim=1)

    def difference(self, state: tuple[Tensor, ...], base: tuple[Tensor, ...]) -> Tensor:
        """Return the displacement of a state from a base; (num_envs, size)."""
        moved = torch.zeros_like(base[1])
        for dof, adr in self._straight.items():
            moved[:, dof] = state[0][:, adr] - base[0][:, adr]
        for adr, first in self._rotations:
            start, end = (
                quaternion.normalize(x[0][:, adr : adr + 4]) for x in (base, state)
            )
            apart = quaternion.multiply(quaternion.conjugate(start), end)
            turned = (start != end).any(dim=1, keepdim=True)  # else rounding is left
            turn = torch.where(turned, quaternion.to_rotation_vector(apart), 0.0)
            moved[:, first : first + 3] = turn
        rest = [one - other for one, other in zip(state[1:], base[1:], strict=True)]
        return torch.cat([moved, *rest], dim=1)

    def rate(self) -> Tensor:
        """Return the rate of change of the current state; (num_envs, size).

        The rate of positions is qvel; see `kinematics` for its derivatives.
        """
        sim = self.sim
        sim.forward()
        data = sim.data
        rates = [data.qvel.clone(), data.qacc.clone(), data.act_dot.clone()]
        rates += [p.rate(sim.time.clone(), sim).clone() for p in self.processes]
        return torch.cat(rates, dim=1)

    def kinematics(self, a: Tensor) -> None:
        """Write the derivatives of the rates of positions into A.

        A displacement δ of an orientation that turns at ω moves as δ' = δω − ω × δ.
        """
        a[:, : self.nv] = 0.0
        for dof in range(self.nv):
            a[:, dof, self.nv + dof] = 1.0
        omega = self.sim.data.qvel
        for _, first in self._rotations:
            x, y, z = (omega[:, first + k] for k in range(3))
            block = a[:, first : first + 3, first : first + 3]
            block[:, 0, 1], block[:, 0, 2] = z, -y
            block[:, 1, 0], block[:, 1, 2] = -z, x
            block[:, 2, 0], block[:, 2, 1] = y, -x


def _turns(quat: Tensor) -> Tensor:
    """Return the derivatives of q ⊗ (0, δ / 2) by δ; (n, 4, 3)."""
    w, x, y, z = (0.5 * quat).unbind(dim=1)
    rows = [(-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w)]
    return torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)


def _joint_coordinates(model: mujoco.MjModel) -> list[tuple[str, str]]:
    """Return names and units of the displacements of qpos, then of qvel."""
    positions: list[tuple[str, str]] = []
    velocities: list[tuple[str, str]] = []
    for joint in range(model.njnt):
        name, kind = model.joint(joint).name or f"joint{joint}", model.jnt_type[joint]
        if kind == _FREE:
            positions += [(f"{name}.{x}", "m") for x in "xyz"]
            velocities += [(f"{name}.v{x}", "m/s") for x in "xyz"]
        if kind in (_FREE, _BALL):
            positions += [(f"{name}.r{x}", "rad") for x in "xyz"]
            velocities += [(f"{name}.w{x}", "rad/s") for x in "xyz"]
        else:
            unit = "m" if kind == _SLIDE else "rad"
            positions.append((name, unit))
            velocities.append((f"{name}.rate", f"{unit}/s"))
    return positions + velocities


def _activations(model: mujoco.MjModel) -> list[tuple[str, str]]:
    """Return names and units of the activations."""
    names = [f"act[{k}]" for k in range(int(model.na))]
    for actuator in range(model.nactuator):
        first, name = (
            int(model.actuator_actadr[actuator]),
            model.actuator(actuator).name,
        )
        for k in range(int(model.actuator_actnum[actuator]) if first >= 0 else 0):
            names[first + k] = f"{name}.act" if name else names[first + k]
    return [(name, "") for name in names]


def _control_names(model: mujoco.MjModel) -> tuple[str, ...]:
    names = [f"ctrl[{k}]" for k in range(int(model.nu))]
    for actuator in range(int(model.nactuator)):
        first = int(model.actuator_ctrladr[actuator])
        name, count = model.actuator(actuator).name, model.actuator_ctrlnum[actuator]
        for k in range(int(count) if name else 0):
            names[first + k] = name if count == 1 else f"{name}[{k}]"
    return tuple(names)
