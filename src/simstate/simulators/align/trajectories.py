"""Runs from one state with the same controls, and their differences over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from simstate.base.errors import DivergenceError
from simstate.simulation import Simulation
from simstate.simulators.adapted_simulator import AdaptedSimulator, Array
from simstate.simulators.align.findings import RunGap
from simstate.simulators.mechanics import MechanicalState

_SAMPLES = 100
"""Number of times at which runs are compared."""


@dataclass(frozen=True)
class SimulatorRun:
    """States of a run at the sampled times."""

    qpos: list[Array]
    qvel: list[Array]
    bodies: list[Array]
    """Origins of the bodies [m]; shape (nbody, 3) each."""
    ended: str = ""


def mujoco_run(
    model: mujoco.MjModel, start: MechanicalState, steps: list[int]
) -> SimulatorRun:
    """Run MuJoCo; `steps` are the counts of steps at which states are sampled."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = start.qpos, start.qvel, start.ctrl
    run, done = SimulatorRun([], [], []), 0
    for step in steps:
        if step > done:
            mujoco.mj_step(model, data, step - done)
            done = step
        run.qpos.append(data.qpos.copy())
        run.qvel.append(data.qvel.copy())
        run.bodies.append(_positions(model, data.qpos))
    return run


def simulator_run(
    simulator: Simulation | AdaptedSimulator, start: MechanicalState, steps: list[int]
) -> SimulatorRun:
    """Run the first world of a simulator."""
    if isinstance(simulator, Simulation):
        return _simulation_run(simulator, start, steps)
    simulator.reset()
    simulator.ctrl[0] = torch.as_tensor(start.ctrl)
    simulator.write(start.qpos[None], start.qvel[None], [0])

    def observe() -> tuple[Array, Array, Array]:
        motion = simulator.read([0])
        return motion.qpos[0], motion.qvel[0], motion.body_pos[0]

    return _sampled(lambda n: simulator.step(n, [0]), observe, steps)


def _simulation_run(
    sim: Simulation, start: MechanicalState, steps: list[int]
) -> SimulatorRun:
    start.write_to(sim)

    def observe() -> tuple[Array, Array, Array]:
        fields = (sim.data.qpos, sim.data.qvel, sim.data.xpos)
        qpos, qvel, xpos = (f[0].cpu().numpy().astype(np.float64) for f in fields)
        return qpos, qvel, xpos

    return _sampled(lambda n: sim.step(n, [0]), observe, steps)


def _sampled(
    advance: Callable[[int], None],
    observe: Callable[[], tuple[Array, Array, Array]],
    steps: list[int],
) -> SimulatorRun:
    run, done = SimulatorRun([], [], []), 0
    for step in steps:
        try:
            if step > done:
                advance(step - done)
                done = step
        except DivergenceError as error:
            return SimulatorRun(run.qpos, run.qvel, run.bodies, str(error))
        qpos, qvel, bodies = observe()
        run.qpos.append(qpos.copy())  # a simulator may reuse its arrays
        run.qvel.append(qvel.copy())
        run.bodies.append(bodies.copy())
    return run


def sample_steps(model: mujoco.MjModel, seconds: float) -> list[int]:
    """Return the counts of steps at which runs are compared; the first is 0."""
    total = max(1, round(seconds / model.opt.timestep))
    every = max(1, total // _SAMPLES)
    return list(range(0, total + 1, every))


def compared(
    model: mujoco.MjModel, ours: SimulatorRun, theirs: SimulatorRun, steps: list[int]
) -> RunGap:
    """Return the gap between the runs, up to the end of the shorter one."""
    joints = model.jnt_qposadr[np.isin(model.jnt_type, _SINGLE)]
    count = len(theirs.qpos)
    joint_errors: list[float] = []
    body_errors: list[float] = []
    for k in range(count):
        gap = np.abs(ours.qpos[k][joints] - theirs.qpos[k][joints])
        joint_errors.append(float(gap.max(initial=0.0)))
        distance = np.linalg.norm(ours.bodies[k] - theirs.bodies[k], axis=-1)
        body_errors.append(float(distance.max(initial=0.0)))
    return RunGap(
        time=tuple(step * model.opt.timestep for step in steps[:count]),
        joints=tuple(joint_errors),
        bodies=tuple(body_errors),
        energy=_energies(model, ours, count),
        their_energy=_energies(model, theirs, count),
        ended=theirs.ended,
    )


_SINGLE = (mujoco.mjtJoint.mjJNT_SLIDE.value, mujoco.mjtJoint.mjJNT_HINGE.value)


def _positions(model: mujoco.MjModel, qpos: Array) -> Array:
    """Return the origins of the bodies at a qpos [m]; shape (nbody, 3)."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    return data.xpos.copy()


def _energies(
    model: mujoco.MjModel, run: SimulatorRun, count: int
) -> tuple[float, ...]:
    """Return kinetic plus potential energy along a run [J], by this model."""
    data, found = mujoco.MjData(model), list[float]()
    for qpos, qvel in zip(run.qpos[:count], run.qvel[:count], strict=True):
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        found.append(float(data.energy.sum()))
    return tuple(found)
