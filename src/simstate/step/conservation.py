"""Conserved quantities and order of an integrator, measured on a simulation."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import as_path, number, whole_number
from simstate.base.errors import InvalidInputError
from simstate.base.ids import everything
from simstate.base.samples import new_figure, save_figure
from simstate.engine.engine import model_value
from simstate.math import quaternion
from simstate.state import restore_snapshot, take_snapshot
from simstate.step.adaptive_stepper import AdaptiveStepper
from simstate.step.qpos_state import QPosState
from simstate.step.runge_kutta_stepper import RungeKuttaStepper
from simstate.step.stepping_host import SteppingHost
from simstate.step.stochastic_stepper import StochasticStepper
from simstate.world.worlds import worlds_of

_PARAMETERS = ("body_mass", "body_inertia", "body_ipos", "body_iquat", "opt.gravity")
"""Model parameters of a world that energy and momentum depend on."""


_NO_ACTUATION = mujoco.mjtDisableBit.mjDSBL_ACTUATION.value

_ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-4}
"""Distances between two end states below which rounding dominates, by dtype."""


@dataclass(frozen=True)
class ConservationReport:
    """Changes of one world's conserved quantities, and the measured order."""

    scheme: str
    timestep: float
    """The model's time step [s]."""
    time: np.ndarray
    """Times of the samples [s]; shape (samples,)."""
    energy: np.ndarray
    """Total energy, kinetic plus potential [J]; shape (samples,)."""
    linear_momentum: np.ndarray
    """Momentum of all bodies, world axes [kg·m/s]; shape (samples, 3)."""
    angular_momentum: np.ndarray
    """About the world's origin, world axes [kg·m²/s]; shape (samples, 3)."""
    quaternion_norm: np.ndarray
    """Largest deviation of a quaternion's length from 1; shape (samples,)."""
    order: dict[str, float]
    """Order measured by halving the step twice: "attitude", "position", "velocity";
    empty for MuJoCo's integrators and for adaptive and stochastic schemes."""

    def drifts(self) -> dict[str, float]:
        """Return the largest absolute change of each quantity, by name and unit."""
        return {
            "energy [J]": float(np.abs(self.energy - self.energy[0]).max()),
            "linear momentum [kg·m/s]": float(_change(self.linear_momentum).max()),
            "angular momentum [kg·m²/s]": float(_change(self.angular_momentum).max()),
            "quaternion length": float(self.quaternion_norm.max()),
        }

    def sizes(self) -> dict[str, float]:
        """Return the largest magnitude of each quantity, to compare its drift with."""
        return {
            "energy [J]": float(np.abs(self.energy).max()),
            "linear momentum [kg·m/s]": _greatest_size(self.linear_momentum),
            "angular momentum [kg·m²/s]": _greatest_size(self.angular_momentum),
            "quaternion length": 1.0,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the samples, for JSON."""
        return {
            "scheme": self.scheme,
            "timestep": self.timestep,
            "seconds": float(self.time[-1] - self.time[0]),
            "drift": self.drifts(),
            "size": self.sizes(),
            "order": self.order,
        }

    def __str__(self) -> str:
        sizes = self.sizes()
        lines = [
            f"{self.scheme}, time step {self.timestep:g} s, "
            f"{self.time[-1] - self.time[0]:g} s",
            f"{'':28}{'drift':>12}{'size':>12}",
        ]
        for name, drift in self.drifts().items():
            lines.append(f"{name:28}{drift:12.3e}{sizes[name]:12.3e}")
        for name, order in self.order.items():
            lines.append(f"{'order in ' + name:28}{order:12.2f}")
        return "\n".join(lines)

    def plot(self, path: str | Path) -> None:
        """Draw the drifts over time into an image file; needs matplotlib."""
        draw(self, as_path("path", path))


def report(
    sim: SteppingHost, seconds: float, env_id: int = 0, samples: int = 200
) -> ConservationReport:
    """Simulate one world and report its drifts and the measured order.

    The state of all worlds is restored afterwards. Loads, damping and contacts change
    energy and momentum too; the report does not account for them.

    Args:
        sim: the simulation, at the state to start from.
        seconds: simulated time [s]; at least one time step.
        env_id: the world to report.
        samples: maximum number of samples after the first one.
    """
    worlds_of(sim)  # raises unless it is a simulation
    number("seconds", seconds, unit="s")
    steps = round(seconds / sim.timestep) if math.isfinite(seconds) else 0
    if steps < 1:
        raise InvalidInputError(
            f"seconds must be at least one time step ({sim.timestep:g} s), got "
            f"{seconds}.",
            name="seconds",
        )
    samples = whole_number("samples", samples, 1)
    world = worlds_of(sim).select(env_id)
    everywhere = everything(sim.num_envs)
    start = take_snapshot(worlds_of(sim), everywhere)
    try:
        host = _Host(sim, int(world.tensor(sim.device)[0]))
        rows = [host.measure()]
        every = math.ceil(steps / samples)
        for first in range(0, steps, every):
            sim.step(min(every, steps - first))
            rows.append(host.measure())
        restore_snapshot(worlds_of(sim), start, everywhere)
        order = _measured_order(sim, host.env_id, steps)
    finally:
        restore_snapshot(worlds_of(sim), start, everywhere)
    time, energy, linear, angular, deviation = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return ConservationReport(
        _name(sim), sim.timestep, time, energy, linear, angular, deviation, order
    )


def conservative_model(model: mujoco.MjModel) -> tuple[mujoco.MjModel, list[str]]:
    """Return the model without sources and sinks of energy, and the names of those.

    Damping, friction losses, drag of a medium, actuators, limits and contacts are
    removed; springs and gravity remain, as they conserve energy.
    """
    kept = copy.copy(model)
    found: list[str] = []
    for name, text in (
        ("dof_damping", "joint damping"),
        ("tendon_damping", "tendon damping"),
        ("dof_frictionloss", "joint friction"),
        ("tendon_frictionloss", "tendon friction"),
    ):
        if np.any(getattr(kept, name)):
            getattr(kept, name)[:] = 0.0
            found.append(text)
    if kept.opt.density or kept.opt.viscosity:
        kept.opt.density = kept.opt.viscosity = 0.0
        found.append("the medium's drag")
    if kept.nu and not kept.opt.disableflags & _NO_ACTUATION:
        kept.opt.disableflags |= _NO_ACTUATION
        found.append("actuation")
    if np.any(kept.jnt_limited) or np.any(kept.tendon_limited):
        kept.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT.value
        found.append("limits")
    if _can_collide(kept):
        kept.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT.value
        found.append("contacts")
    return kept, found


def _can_collide(model: mujoco.MjModel) -> bool:
    """Return True if MuJoCo's filters let any two geoms of the model collide."""
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT.value:
        return False
    if model.npair:
        return True
    mine, others = model.geom_contype, model.geom_conaffinity
    pairs = (mine[:, None] & others) | (mine & others[:, None])
    weld = model.body_weldid[model.geom_bodyid]
    parent = model.body_weldid[model.body_parentid[weld]]
    related = (weld[:, None] == weld) | (
        ((weld[:, None] == parent) & (weld[:, None] != 0))
        | ((weld == parent[:, None]) & (weld != 0))
    )
    return bool(np.any(pairs.astype(bool) & ~related))


class _Host:
    """One world's state in a separate MjData, for MuJoCo's C functions."""

    def __init__(self, sim: SteppingHost, env_id: int) -> None:
        self.sim = sim
        self.env_id = env_id
        self._model = copy.copy(sim.model)
        self._data = mujoco.MjData(self._model)

    def measure(self) -> tuple[float, float, np.ndarray, np.ndarray, float]:
        """Return time, energy, linear and angular momentum, and norm deviation."""
        model, data, sim = self._model, self._data, self.sim
        for name in _PARAMETERS:
            value = worlds_of(sim).engine.parameter(name)
            row = value[self.env_id if value.shape[0] > 1 else 0]
            model_value(model, name)[:] = row.double().cpu().numpy()
        mujoco.mj_setConst(model, data)
        state = sim.state[self.env_id].double().cpu().numpy()
        mujoco.mj_setState(
            model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION.value
        )
        deviation = _norm_deviation(model, data.qpos)
        mujoco.mj_forward(model, data)
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        mujoco.mj_subtreeVel(model, data)
        linear = model.body_subtreemass[0] * data.subtree_linvel[0]
        angular = data.subtree_angmom[0] + np.cross(data.subtree_com[0], linear)
        return float(data.time), float(data.energy.sum()), linear, angular, deviation


def _norm_deviation(model: mujoco.MjModel, qpos: np.ndarray) -> float:
    """Return the largest deviation of a quaternion's length from 1."""
    blocks = _position_state(torch.as_tensor(qpos)[None], model).quaternion_blocks
    off = [
        abs(float(np.linalg.norm(qpos[b.qpos_adr : b.qpos_adr + 4])) - 1)
        for b in blocks
    ]
    return max(off, default=0.0)


def _position_state(qpos: Tensor, model: mujoco.MjModel) -> QPosState:
    state = QPosState(qpos, "manifold")
    state.configure(model)
    return state


def _measured_order(sim: SteppingHost, env_id: int, steps: int) -> dict[str, float]:
    """Return the orders estimated from the ends of runs with steps h, h/2, h/4."""
    stepper = sim.integration
    if stepper is None or isinstance(stepper, AdaptiveStepper | StochasticStepper):
        return {}
    ends = _ends(sim, env_id, steps, stepper)
    coarse = _distances(sim, ends[0], ends[1])
    fine = _distances(sim, ends[1], ends[2])
    return {
        name: math.log2(coarse[name] / fine[name])
        for name in coarse
        if fine[name] > _ROUNDING[sim.dtype]  # else it would be an order of rounding
    }


def _ends(
    sim: SteppingHost, env_id: int, steps: int, stepper: RungeKuttaStepper
) -> list[tuple[Tensor, Tensor]]:
    """Return positions and velocities after the same time, by steps h, h/2, h/4."""
    everywhere = everything(sim.num_envs)
    start = take_snapshot(worlds_of(sim), everywhere)
    ends: list[tuple[Tensor, Tensor]] = []
    try:
        for parts in (1, 2, 4):
            stepper.timestep = sim.timestep / parts
            sim.step(steps * parts)
            ends.append((sim.data.qpos[env_id].clone(), sim.data.qvel[env_id].clone()))
            restore_snapshot(worlds_of(sim), start, everywhere)
    finally:
        stepper.timestep = sim.timestep
    return ends


def _distances(
    sim: SteppingHost, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]
) -> dict[str, float]:
    """Return the distances of two end states: attitudes as angles [rad]."""
    state = _position_state(one[0][None], sim.model)
    found: dict[str, float] = {}
    angles = [
        float(quaternion.angle_between(one[0][part], other[0][part]))
        for block in state.quaternion_blocks
        for part in (slice(block.qpos_adr, block.qpos_adr + 4),)
    ]
    if angles:
        found["attitude"] = max(angles)
    if state.euclidean_qpos:
        apart = one[0] - other[0]
        found["position"] = float(apart[state.euclidean_qpos].abs().max())
    found["velocity"] = float((one[1] - other[1]).abs().max())
    return found


def _name(sim: SteppingHost) -> str:
    """Return the names of the scheme and its attitude mode, or MuJoCo's integrator."""
    if sim.integration is None:
        kind = mujoco.mjtIntegrator(sim.model.opt.integrator).name
        return f"MuJoCo's {kind.removeprefix('mjINT_')}"
    scheme = sim.integration.scheme
    return f"{scheme.name}, attitude {scheme.attitude}"


def _greatest_size(vectors: np.ndarray) -> float:
    return float(np.linalg.norm(vectors, axis=1).max())


def draw(report: ConservationReport, path: Path) -> None:
    """Draw the drift of each quantity over time, on logarithmic axes."""
    figure = new_figure(8.0, 5.0)
    grid = figure.subplots(2, 2, sharex=True)
    for axes, draw_panel in zip(grid.flat, panels(report), strict=True):
        draw_panel(axes)
    figure.supxlabel("time [s]", fontsize="small")
    figure.suptitle(
        f"{report.scheme}, time step {report.timestep:g} s: change since the start",
        fontsize="medium",
    )
    save_figure(figure, path)


def panels(report: ConservationReport, prefix: str = "") -> list[Callable[[Any], None]]:
    """Return functions that draw the drift of one quantity each on axes."""
    changes = {
        "energy [J]": np.abs(report.energy - report.energy[0]),
        "linear momentum, world axes [kg·m/s]": _change(report.linear_momentum),
        "angular momentum, origin [kg·m²/s]": _change(report.angular_momentum),
        "quaternion length [1]": report.quaternion_norm,
    }
    return [
        partial(_draw_panel, report.time, values, prefix + name)
        for name, values in changes.items()
    ]


def _draw_panel(time: np.ndarray, values: np.ndarray, title: str, axes: Any) -> None:
    # A logarithmic axis has no zero: values are clipped below rounding error.
    axes.semilogy(time[1:], np.maximum(values[1:], 1e-18), color="C0", linewidth=1.1)
    axes.set_title(title, loc="left", fontsize="small")
    axes.grid(visible=True, alpha=0.3)


def _change(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors - vectors[0], axis=1)
