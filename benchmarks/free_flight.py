"""Speed of free flight: 1024 aircraft with loads at each RK4 stage, and one alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import mujoco
import numpy as np
from rich.table import Table
from torch import Tensor

from simstate.flight import FlightState, FreeFlight, Load
from simstate.integrate import RK4
from simstate.interop.ptera import MuJoCoModel
from timing import interleaved

WORLDS, STEPS, LOOP_WORLDS, CYCLES = 1024, 10, 32, 200
MASS, INERTIA = 1.5, np.diag([0.13, 0.10, 0.22])
TIMESTEP = 0.005
DRAG = np.array([0.02, 0.3, 1.2])
"""Force along body axes per −velocity·speed [N·s²/m²]."""
DAMPING = np.array([0.05, 0.08, 0.06])
"""Moment along body axes per −rate [N·m·s]."""


def air_loads(t: Tensor, state: FlightState) -> Load:
    """Quadratic drag along body axes, and damping of the rates."""
    velocity = state.velocity_BP1__E
    speed = velocity.norm(dim=-1, keepdim=True)
    rates = state.omegas_BP1__E * (np.pi / 180)
    force = -velocity.new_tensor(DRAG) * velocity * speed
    return Load(force=force, moment=-velocity.new_tensor(DAMPING) * rates)


def starts(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Velocities [m/s] and rates [deg/s] of the worlds at the start."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 3)) * 15, rng.normal(size=(count, 3)) * 60


class Loop:
    """The same flights by single models: RK4 in Python, one MjData after the other."""

    def __init__(self, flight: FreeFlight, count: int) -> None:
        self.model = flight.sim.model
        self.flights = [mujoco.MjData(self.model) for _ in range(count)]
        self.start = flight.sim.data.qpos[:count].numpy().copy()
        self.start_vel = flight.sim.data.qvel[:count].numpy().copy()

    def reset(self) -> None:
        """All flights back to their start."""
        for data, qpos, qvel in zip(
            self.flights, self.start, self.start_vel, strict=True
        ):
            data.qpos[:], data.qvel[:] = qpos, qvel

    def step(self, n: int) -> None:
        """Every flight by n steps."""
        for data in self.flights:
            for _ in range(n):
                self.rk4(data)

    def rk4(self, data: mujoco.MjData) -> None:
        """One step; the rates of the stages are averaged in the tangent space."""
        qpos, qvel, h = data.qpos.copy(), data.qvel.copy(), TIMESTEP
        rates, accs = [], []
        for share in (0.0, 0.5, 0.5, 1.0):
            if rates:
                data.qpos[:] = qpos
                mujoco.mj_integratePos(self.model, data.qpos, rates[-1], share * h)
                data.qvel[:] = qvel + share * h * accs[-1]
            self.evaluate(data)
            rates.append(data.qvel.copy())
            accs.append(data.qacc.copy())
        data.qpos[:] = qpos
        mean = (rates[0] + 2 * rates[1] + 2 * rates[2] + rates[3]) / 6
        mujoco.mj_integratePos(self.model, data.qpos, mean, h)
        data.qvel[:] = qvel + h * (accs[0] + 2 * accs[1] + 2 * accs[2] + accs[3]) / 6

    def evaluate(self, data: mujoco.MjData) -> None:
        """The loads at the present state, then the dynamics."""
        mujoco.mj_kinematics(self.model, data)
        rot = data.xmat[1].reshape(3, 3)
        velocity = rot.T @ data.qvel[:3]
        force = -DRAG * velocity * np.linalg.norm(velocity)
        data.xfrc_applied[1, :3] = rot @ force
        data.xfrc_applied[1, 3:] = rot @ (-DAMPING * data.qvel[3:])
        mujoco.mj_forward(self.model, data)


def flying(table: Table, results: dict[str, float]) -> None:
    """World-steps per second of the batch, and of the loop of single models."""
    flight = FreeFlight(
        MASS, INERTIA, WORLDS, timestep=TIMESTEP, integrator=RK4(attitude="manifold")
    )
    flight.add_load(air_loads)
    velocity, rates = starts(WORLDS)
    flight.set_state(velocity_E__E=velocity, omegas_BP1__E=rates)
    loop = Loop(flight, LOOP_WORLDS)
    start = flight.save_state()

    def theirs() -> None:
        loop.reset()
        loop.step(STEPS)

    calls = {"ours": lambda: flight.step(STEPS), "loop": theirs}
    prepare = {"ours": lambda: flight.restore_state(start)}
    timing = interleaved(calls, 9, prepare)
    check(flight, loop, start)
    ours = WORLDS * STEPS / timing["ours"].median
    other = LOOP_WORLDS * STEPS / timing["loop"].median
    results["free flight, load model at each RK4 stage: ours / loop"] = ours / other
    results["free flight, world-steps/s"] = ours
    table.add_row(
        f"{WORLDS} aircraft, loads at each RK4 stage",
        f"{ours / 1e3:,.1f} k world-steps/s",
        f"{other / 1e3:,.1f} k world-steps/s",
        f"{ours / other:.1f} × a loop of single models",
        timing["ours"].spread_text,
    )


def one_aircraft(table: Table, results: dict[str, float]) -> None:
    """Loads, a step and the state of one aircraft against plain MuJoCo; CPU time.

    The latter is what Ptera Software's own class does: loads into xfrc_applied, mj_step
    by RK4, and copies of the state.
    """
    force, moment = np.array([0.1, 0.0, -14.0]), np.zeros(3)
    flight = FreeFlight(MASS, INERTIA, timestep=TIMESTEP)
    start = (np.zeros(3), np.eye(4), np.array([15.0, 0.0, 0.0]))
    ours = MuJoCoModel("aircraft", MASS, *start, INERTIA, TIMESTEP)
    model = mujoco.MjModel.from_xml_string(ours.xml_str)
    data = mujoco.MjData(model)

    def fly() -> None:
        flight.apply_loads(force, moment)
        flight.step()
        flight.get_state()

    def look() -> None:
        flight.apply_loads(force, moment)
        flight.step()
        state = flight.get_state()
        _ = state.position_E_Eo, state.R_pas_E_to_BP1
        _ = state.velocity_E__E, state.omegas_BP1__E

    def as_ptera() -> None:
        ours.apply_loads(force, moment)
        ours.step()
        ours.get_state()

    def plain() -> object:
        data.xfrc_applied[1, :3], data.xfrc_applied[1, 3:] = force, moment
        mujoco.mj_step(model, data)
        turn = data.xmat[1].reshape(3, 3).T.copy()
        return (
            data.xpos[1].copy(),
            turn,
            data.qvel[:3].copy(),
            np.rad2deg(data.qvel[3:6]),
        )

    calls = {
        "FreeFlight": fly,
        "FreeFlight, four tensors of it read": look,
        "interop.ptera": as_ptera,
        "MuJoCo": plain,
    }
    many = {name: _repeated(call, CYCLES) for name, call in calls.items()}
    timing = interleaved(many, 25, clock=time.process_time)
    other = timing["MuJoCo"].median / CYCLES * 1e6
    for name in list(calls)[:-1]:
        taken = timing[name].median / CYCLES * 1e6
        results[f"{name}, one aircraft: loads, step, state [µs]"] = taken
        table.add_row(
            f"{name}, one aircraft: loads, a step by RK4, state; CPU",
            f"{taken:.0f} µs",
            f"{other:.0f} µs (MuJoCo, by hand)",
            f"{taken / other:.1f} of its time",
            timing[name].spread_text,
        )


def _repeated(call: Callable[[], object], count: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            call()

    return run


def check(flight: FreeFlight, loop: Loop, start: object) -> None:
    """Both fly the same; otherwise the ratio means nothing."""
    flight.restore_state(start)
    flight.step(STEPS)
    loop.reset()
    loop.step(STEPS)
    got = flight.sim.data.qpos[:LOOP_WORLDS].numpy()
    gap = np.abs(got - [data.qpos for data in loop.flights]).max()
    if gap > 1e-9:
        raise SystemExit(f"The two ways of flying differ by {gap:.2e}.")
