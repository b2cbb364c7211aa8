"""Cost of steps with forces of users and of aircraft, next to built-in models.

`python benchmarks/own_forces.py [--rows TEXT] [--json FILE]` prints every row in one
run, in CPU time. "By hand" is the built-in model in the same run, or, where the label
says so, RK4 written with `mujoco.batch` or `mj_forward` and NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import mujoco
import mujoco.batch
import numpy as np
import torch

from by_hand import RungeKutta
from rows import Result, Timed, alone, main, ratio, row
from simstate import Simulation, integrate
from simstate.flight import Aerodynamics, ControlCfg, FreeFlight, Table
from simstate.space import EARTH, HarmonicGravity, zonal_coefficients

T = TypeVar("T")

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


SQUASH = 1.5 * EARTH.j2 * EARTH.radius**2
AXES = torch.tensor([1.0, 1.0, 3.0], dtype=torch.float64)


class Oblate(integrate.Gravity):
    """Point mass and J2 as a user writes them in torch."""

    def acceleration(self, t: torch.Tensor, pos: torch.Tensor) -> torch.Tensor:
        """Return the field of an oblate planet; shape (num_envs, k, 3)."""
        del t
        r2 = (pos * pos).sum(-1, keepdim=True)
        polar = pos[..., 2:].square() * 5 / r2
        return (-EARTH.mu / r2**1.5) * pos * (1 + SQUASH / r2 * (AXES - polar))


class OblateInNumPy(integrate.Gravity):
    """The same in NumPy."""

    def acceleration(self, t: torch.Tensor, pos: torch.Tensor) -> torch.Tensor:
        """Return the field of an oblate planet; shape (num_envs, k, 3)."""
        del t
        place, axes = pos.numpy(), AXES.numpy()
        r2 = np.einsum("...i,...i", place, place)[..., None]
        polar = 5 * place[..., 2:] ** 2 / r2
        pull = -EARTH.mu / (r2 * np.sqrt(r2)) * place
        return torch.from_numpy(pull * (1 + SQUASH / r2 * (axes - polar)))


def without_core(make: Callable[[], T]) -> T:
    """Return what is made while the compiled core is switched off."""
    before = os.environ.get("SIMSTATE_CORE")
    os.environ["SIMSTATE_CORE"] = "0"
    try:
        return make()
    finally:
        if before is None:
            del os.environ["SIMSTATE_CORE"]
        else:
            os.environ["SIMSTATE_CORE"] = before


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


def oblate(gravity: integrate.Gravity) -> Result:
    """Compare a user's J2 with the built-in one."""
    sim, plain = orbit(gravity), orbit(HarmonicGravity(zonal_coefficients(EARTH)))
    result = ratio(ours=Timed(sim.step, loops=50), hand=Timed(plain.step, loops=50))
    ours, built_in = (one.integration.processes[0].value for one in (sim, plain))
    if not torch.allclose(ours, built_in, rtol=1e-9):
        raise AssertionError("J2 acts otherwise than the built-in one.")
    return result


@row("orbit, J2 by a Gravity subclass in torch; by hand HarmonicGravity", "≤ 100")
def _oblate() -> Result:
    return oblate(Oblate())


@row("orbit, J2 by a Gravity subclass in NumPy; by hand HarmonicGravity", "≤ 100")
def _oblate_in_numpy() -> Result:
    return oblate(OblateInNumPy())


@row("orbit + empty Python force, without the core", "")
def _empty_without() -> Result:
    sim = without_core(orbit)
    sim.add_force(nothing)
    return alone(7, ours=Timed(sim.step))


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


def aerodynamics_by_hand(data: mujoco.MjData) -> None:
    """Set the same load with NumPy; the table is constant, and the air is ISA's."""
    rot, spin = data.qpos[3:7], data.qvel[3:]
    turn, air = np.zeros(9), np.zeros(3)
    mujoco.mju_quat2Mat(turn, rot)
    axes = turn.reshape(3, 3)
    air[:] = axes.T @ data.qvel[:3]
    speed = np.sqrt(air @ air)
    alpha, beta = np.arctan2(air[2], air[0]), np.arcsin(air[1] / speed)
    altitude = -data.qpos[2]
    height = altitude * 6356766.0 / (6356766.0 + altitude)
    temperature = 288.15 - 0.0065 * height
    pressure = 101325.0 * (temperature / 288.15) ** (9.80665 / 0.0065 / 287.0528742)
    load = 0.25 * pressure / (287.0528742 * temperature) * speed * speed
    p, q, r = spin * np.array([2.2, 0.27, 2.2]) / (2 * speed)
    lift = 0.3 + 4.5 * alpha + 0.4 * data.act[0]
    drag, side = 0.04 + 0.05 * lift * lift, -0.4 * beta
    c, s = np.cos(alpha), np.sin(alpha)
    force = load * np.array([s * lift - c * drag, side, -c * lift - s * drag])
    roll, pitch, yaw = -0.5 * p, -0.6 * alpha - 8 * q, -0.2 * r + 0.1 * beta
    moment = load * np.array([2.2 * roll, 0.27 * pitch, 2.2 * yaw])
    data.xfrc_applied[1, :3], data.xfrc_applied[1, 3:] = axes @ force, axes @ moment


@row("FreeFlight with Aerodynamics, RK4, one step per call; by hand NumPy", "≤ 60")
def _aerodynamics() -> Result:
    flight = aircraft()
    hand = RungeKutta(flight.sim, aerodynamics_by_hand)
    hand.prepare()
    flight.step()
    if not np.allclose(flight.sim.data.qvel[0], hand.data.qvel, rtol=1e-6, atol=1e-9):
        raise AssertionError("The aerodynamics act otherwise than by hand.")
    return ratio(ours=Timed(flight.step, loops=50), hand=Timed(hand.step, loops=50))


@row("FreeFlight with Aerodynamics, RK4: per step of 100 / without the core", "")
def _aerodynamics_run() -> Result:
    run, without = aircraft(), without_core(aircraft)
    return alone(
        7, ours=Timed(lambda: run.step(100), steps=100), without=Timed(without.step)
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


@row("Python force on views without the core: 1 / 64 / 1024 worlds", "")
def _without() -> Result:
    sims = {f"ours{n}": without_core(lambda n=n: body(n)) for n in (1, 64, 1024)}
    for sim in sims.values():
        sim.add_force(drag, reads=("qvel",), writes=("xfrc_applied",))
    return alone(7, **{name: Timed(sim.step) for name, sim in sims.items()})


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


@row("numba force, 64 worlds; by hand UniformGravity", "≤ 1.2 ×")
def _numba_some() -> Result:
    return by_numba(64, 5)


@row("numba force, 1024 worlds; by hand UniformGravity", "≤ 1.2 ×")
def _numba_many() -> Result:
    return by_numba(1024, 1)


if __name__ == "__main__":
    main(__doc__)
