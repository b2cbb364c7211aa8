"""Speed of the integrators against mj_step's RK4 on one thread, in one run."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from rich.table import Table
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from simstate import Simulation, integrate
from simstate.scene import models
from timing import interleaved

FREE_BODY = """
<mujoco>
  <option gravity="0 0 0" timestep="0.1" integrator="RK4"/>
  <worldbody>
    <body name="body">
      <freejoint/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/>
    </body>
  </worldbody>
</mujoco>
"""
INERTIA = np.array([1.0, 2.0, 3.0])
SPIN = np.array([0.1, 3.0, 0.1])
LOOP = 4000
"""Steps of the plain loop in one measurement."""


def free_body() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(FREE_BODY)


def satellite() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(models.path("satellite")))


def fixed_steps(table: Table, results: dict[str, float]) -> None:
    """World-steps per second of RK4 in each mode, and of mj_step on one thread."""
    for name, make in (("free body", free_body), ("satellite", satellite)):
        model = make()
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        for num_envs, steps in ((1, 400), (1024, 10)):
            _compare(table, results, name, model, num_envs, steps)


def _compare(
    table: Table,
    results: dict[str, float],
    name: str,
    model: mujoco.MjModel,
    num_envs: int,
    steps: int,
) -> None:
    data = mujoco.MjData(model)
    sims = {
        mode: Simulation(model, num_envs, integrator=integrate.RK4(attitude=mode))
        for mode in integrate.ATTITUDE_MODES
    }
    calls = {"loop": lambda: mujoco.mj_step(model, data, nstep=LOOP)}
    for mode, sim in sims.items():
        calls[mode] = lambda sim=sim: [sim.step() for _ in range(steps)]
    times = interleaved(calls, repeats=15)
    plain = LOOP / times["loop"].median
    for mode in sims:
        rate = num_envs * steps / times[mode].median
        label = f"RK4 {mode}, {name}, {num_envs} worlds"
        table.add_row(
            f"{label}: world-steps/s against mj_step RK4, one thread",
            f"{rate:,.0f}",
            f"{plain:,.0f}",
            f"{rate / plain:.2f}",
            times[mode].spread_text,
        )
        results[label] = rate / plain


def adaptive_steps(table: Table, results: dict[str, float]) -> None:
    """Attitude error and evaluations at tolerance 1e-10, 10 s of a tumbling body."""
    end = tumbling_attitude(10.0)
    for name in ("dp54", "rkf78", "dop853"):
        scheme = integrate.scheme(name, "lie", atol=1e-10, rtol=1e-10)
        sim = Simulation(free_body(), integrator=scheme)
        sim.data.qvel[0, 3:] = torch.tensor(SPIN)
        sim.step(100)
        error = angle(sim.data.qpos[0, 3:].numpy(), end)
        count = int(sim.integration.statistics.evaluations[0])
        table.add_row(
            f"{scheme.name} at 1e-10: attitude error [rad], evaluations in 10 s",
            f"{error:.1e}",
            f"{count}",
            "",
            "",
        )
        results[f"{scheme.name} evaluations"] = count
        results[f"{scheme.name} error"] = error


def tumbling_attitude(seconds: float) -> np.ndarray:
    """The tumbling body's quaternion wxyz by scipy's DOP853 at 1e-13."""

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        q, spin = Rotation.from_quat(y[:4]), y[4:]
        x = q.as_quat()
        matrix = np.array(
            [
                [x[3], -x[2], x[1]],
                [x[2], x[3], -x[0]],
                [-x[1], x[0], x[3]],
                [-x[0], -x[1], -x[2]],
            ]
        )
        turn = -np.cross(spin, INERTIA * spin) / INERTIA
        return np.concatenate([0.5 * matrix @ spin, turn])

    start = np.concatenate([[0.0, 0.0, 0.0, 1.0], SPIN])
    found = solve_ivp(rate, (0, seconds), start, "DOP853", rtol=1e-13, atol=1e-13)
    return np.roll(found.y[:4, -1], 1)


def angle(one: np.ndarray, other: np.ndarray) -> float:
    """The angle between two quaternions wxyz [rad]."""
    first, second = (Rotation.from_quat(np.roll(q, -1)) for q in (one, other))
    return float((first.inv() * second).magnitude())
