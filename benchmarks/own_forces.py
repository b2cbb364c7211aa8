"""Cost of steps with forces of users and of aircraft, next to built-in models.

`python benchmarks/own_forces.py [--rows TEXT] [--json FILE]` prints every row in one
run, in CPU time. "By hand" is the built-in model in the same run, or, where the label
says so, RK4 written with `mujoco.batch` and NumPy.
"""

from __future__ import annotations

from typing import Any

import mujoco
import mujoco.batch
import numpy as np
import torch

from rows import Result, Timed, alone, main, ratio, row
from simstate import Simulation, integrate
from simstate.flight import Aerodynamics, ControlCfg, FreeFlight, Table

MU = 3.986004418e14
SATELLITE = """
<mujoco><option timestep="1" gravity="0 0 0"/><worldbody><body name="sat"><freejoint/>
<inertial pos="0.1 0.02 0" mass="12" diaginertia="1 2 2.5"/></body></worldbody></mujoco>
"""
BODY = SATELLITE.replace('timestep="1"', 'timestep="0.01"')
DRAG = 0.3
PULL = (0.3, -0.2, -9.0)


class Inverse(integrate.Gravity):
    """Point-mass gravity as a user writes it."""

    def acceleration(self, t: torch.Tensor, pos: torch.Tensor) -> torch.Tensor:
        """Return −μ r / r³; shape (num_envs, k, 3)."""
        del t
        return -MU * pos / torch.linalg.vector_norm(pos, dim=-1, keepdim=True) ** 3


def orbit(gravity: integrate.Gravity | None = None, scheme: Any = None) -> Simulation:
    """Return a satellite in low orbit, in a moving frame."""
    model = mujoco.MjModel.from_xml_string(SATELLITE)
    sim = Simulation(model, integrator=scheme or integrate.RK4())
    field = gravity or integrate.PointMassGravity(MU)
    sim.add_process(integrate.MovingFrame(field, (7e6, 0.0, 0.0), (0.0, 7546.0, 0.0)))
    return sim


def nothing(t: object, sim: object) -> None:
    """Add no load."""
    del t, sim


@row("orbit, one step per call; by hand step(100) / 100", "≤ 25")
def _orbit() -> Result:
    one, run = orbit(), orbit()
    return ratio(
        ours=Timed(one.step, loops=50), hand=Timed(lambda: run.step(100), steps=100)
    )


@row("orbit + empty Python force; by hand without", "≤ 60")
def _empty() -> Result:
    sim, plain = orbit(), orbit()
    sim.add_force(nothing)
    return ratio(ours=Timed(sim.step, loops=50), hand=Timed(plain.step, loops=50))


@row("orbit + empty Python force, step(100) / 100; by hand without", "")
def _empty_run() -> Result:
    sim, plain = orbit(), orbit()
    sim.add_force(nothing)
    ours, hand = (Timed(lambda s=s: s.step(100), steps=100) for s in (sim, plain))
    return ratio(ours=ours, hand=hand)


@row("orbit, Gravity subclass in Python; by hand PointMassGravity", "≤ 100")
def _gravity() -> Result:
    sim, plain = orbit(Inverse()), orbit()
    return ratio(ours=Timed(sim.step, loops=50), hand=Timed(plain.step, loops=50))


@row("DOP853, 60 s of orbit, Python force; by hand without", "≤ 2000")
def _adaptive() -> Result:
    sim, plain = (orbit(scheme=integrate.DOP853()) for _ in range(2))

    def push(_: object, sim: Simulation) -> None:
        sim.data.xfrc_applied[:, 1, 0] += 1e-4

    sim.add_force(push)
    ours, hand = (Timed(lambda s=s: s.step(60), loops=5) for s in (sim, plain))
    return ratio(ours=ours, hand=hand)


def aircraft(num_envs: int = 1) -> FreeFlight:
    """Return an aircraft with derivatives and a table."""
    controls = {"elevator": ControlCfg(range=(-0.3, 0.4), time_constant=0.1)}
    flight = FreeFlight(
        1.4, np.diag([0.2, 0.3, 0.4]), num_envs, controls=controls,
        velocity_E__E=(25.0, 0.0, 1.0),
    )  # fmt: skip
    polar = Table(
        {"alpha": [-0.3, 0.0, 0.2, 0.5], "mach": [0.05, 0.1, 0.3]},
        np.full((4, 3), 0.01),
    )
    coefficients = {
        "CL": {"0": 0.3, "alpha": 4.5, "elevator": 0.4}, "CD": [0.03, polar],
        "CY": {"beta": -0.4}, "Cl": {"p_hat": -0.5}, "Cm": {"alpha": -0.6, "q_hat": -8},
        "Cn": {"r_hat": -0.2, "beta": 0.1},
    }  # fmt: skip
    flight.add_load(Aerodynamics(0.5, 2.2, 0.27, coefficients, induced_drag=0.05))
    return flight


@row("FreeFlight with Aerodynamics, RK4: one step per call / per step of 100", "≤ 60")
def _aerodynamics() -> Result:
    one, run = aircraft(), aircraft()
    return alone(
        ours=Timed(one.step, loops=50), run=Timed(lambda: run.step(100), steps=100)
    )


@row("FreeFlight cycle: apply_loads, step, get_state", "≤ 30")
def _cycle() -> Result:
    flight = FreeFlight(1.4, np.diag([0.2, 0.3, 0.4]))
    force, moment = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.01, 0.0])

    def cycle() -> None:
        flight.apply_loads(force, moment)
        flight.step()
        flight.get_state()

    return alone(ours=Timed(cycle, loops=50))


def body(num_envs: int) -> Simulation:
    """Return worlds of a free body that turns."""
    model = mujoco.MjModel.from_xml_string(BODY)
    sim = Simulation(model, num_envs, integrator=integrate.RK4())
    sim.data.qvel[:] = torch.tensor([1.0, 2.0, 3.0, 0.3, 0.2, 0.1]).double()
    return sim


def drag(_: object, qvel: np.ndarray, wrench: np.ndarray) -> None:
    """Add a force against the velocity."""
    wrench[:, 1, :3] -= DRAG * qvel[:, :3]


class BatchByHand:
    """RK4 of free bodies by mujoco.batch and NumPy, with the same force."""

    def __init__(self, num_envs: int) -> None:
        model = mujoco.MjModel.from_xml_string(BODY)
        self.batch = mujoco.batch.Batch(model, num_envs, nthread=1)
        self.h = model.opt.timestep
        self.qpos, self.qvel = self.batch.bind("qpos"), self.batch.bind("qvel")
        self.wrench, self.qacc = (
            self.batch.bind("xfrc_applied"),
            self.batch.bind("qacc"),
        )
        self.qvel[:] = [1.0, 2.0, 3.0, 0.3, 0.2, 0.1]

    def step(self) -> None:
        """Advance by one time step."""
        start, speed0 = self.qpos.copy(), self.qvel.copy()
        speeds, rates = [], []
        for stage, share in enumerate((0.0, 0.5, 0.5, 1.0)):
            if stage:
                self.displace(start, speed0, speeds[-1], rates[-1], share * self.h)
            self.wrench[:, 1, :3] = -DRAG * self.qvel[:, :3]
            self.batch.forward()
            speeds.append(self.qvel.copy())
            rates.append(self.qacc.copy())
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in (speeds, rates)]
        self.displace(start, speed0, *mean, self.h)

    def displace(
        self, start: Any, speed0: Any, speed: Any, rate: Any, h: float
    ) -> None:
        """Move from the start at a velocity for a time h."""
        self.qvel[:] = speed0 + h * rate
        self.qpos[:, :3] = start[:, :3] + h * speed[:, :3]
        turn = h * speed[:, 3:]
        angle = np.linalg.norm(turn, axis=1, keepdims=True)
        half = np.where(angle > 0, np.sin(angle / 2) / np.maximum(angle, 1e-300), 0.5)
        w, v = np.cos(angle / 2), half * turn
        a, b = start[:, 3:4], start[:, 4:7]
        self.qpos[:, 3:4] = a * w - (b * v).sum(axis=1, keepdims=True)
        self.qpos[:, 4:7] = a * v + w * b + np.cross(b, v)


def many(num_envs: int, loops: int) -> Result:
    """Compare a force on views with mujoco.batch and NumPy."""
    sim, hand = body(num_envs), BatchByHand(num_envs)
    sim.add_force(drag, reads=("qvel",), writes=("xfrc_applied",))
    result = ratio(
        15, ours=Timed(sim.step, loops=loops), hand=Timed(hand.step, loops=loops)
    )
    if not np.allclose(sim.data.qvel[0, :3], hand.qvel[0, :3], rtol=1e-9):
        raise AssertionError("The force acts otherwise than by hand.")
    return result


@row("Python force on views, 1 world; by hand batch + NumPy", "")
def _one() -> Result:
    return many(1, 20)


@row("Python force on views, 64 worlds; by hand batch + NumPy", "≤ 1.1 ×")
def _some() -> Result:
    return many(64, 5)


@row("Python force on views, 1024 worlds; by hand batch + NumPy", "≤ 0.9 ×")
def _many() -> Result:
    return many(1024, 1)


def by_numba(num_envs: int, loops: int) -> Result:
    """Compare weights by numba with those of UniformGravity."""
    ours, plain = body(num_envs), body(num_envs)

    def weigh(_: float, wrench: Any, x: float, y: float, z: float) -> None:
        wrench[1, 0] += 12.0 * x
        wrench[1, 1] += 12.0 * y
        wrench[1, 2] += 12.0 * z

    given = dict(zip("xyz", PULL, strict=True))
    force = integrate.compile_force(
        weigh, ours, writes=("xfrc_applied",), parameters=given
    )
    ours.add_force(force)
    plain.add_force(integrate.UniformGravity(PULL))
    return ratio(
        ours=Timed(ours.step, loops=loops), hand=Timed(plain.step, loops=loops)
    )


@row("numba force, 1 world; by hand UniformGravity", "≤ 1.2 ×")
def _numba_one() -> Result:
    return by_numba(1, 50)


@row("numba force, 1024 worlds; by hand UniformGravity", "≤ 1.2 ×")
def _numba_many() -> Result:
    return by_numba(1024, 1)


if __name__ == "__main__":
    main(__doc__)
