"""A torque-free body for 10 s by DOP853 at 1e-10: scipy's, and simstate's.

scipy has the equations in NumPy, world after world.
"""

from __future__ import annotations

from job import cpu_rate, one_thread, report

INERTIA = (1.0, 2.0, 3.0)
OMEGA = (0.1, 3.0, 0.1)
XML = """
<mujoco><option gravity="0 0 0" timestep="10"/><worldbody><body name="body">
  <freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/>
</body></worldbody></mujoco>
"""


def scipy(worlds: int) -> float:
    """Runs per CPU second."""
    import numpy as np
    from scipy.integrate import solve_ivp

    ix, iy, iz = INERTIA

    def rate(_: float, y: np.ndarray) -> list[float]:
        w, x, y_, z, p, q, r = y.tolist()
        return [
            0.5 * (-x * p - y_ * q - z * r),
            0.5 * (w * p + y_ * r - z * q),
            0.5 * (w * q - x * r + z * p),
            0.5 * (w * r + x * q - y_ * p),
            (iy - iz) / ix * q * r,
            (iz - ix) / iy * r * p,
            (ix - iy) / iz * p * q,
        ]

    def run() -> None:
        start = [1.0, 0.0, 0.0, 0.0, *OMEGA]
        for _ in range(worlds):
            solve_ivp(rate, (0, 10), start, "DOP853", rtol=1e-10, atol=1e-10)

    return cpu_rate(run, worlds)


def simstate(worlds: int) -> float:
    """Runs per CPU second."""
    import mujoco
    import torch

    from simstate import Simulation, integrate

    model = mujoco.MjModel.from_xml_string(XML)
    scheme = integrate.DOP853(rtol=1e-10, atol=1e-10)
    sim = Simulation(model, worlds, engine=one_thread(), integrator=scheme)

    def run() -> None:
        sim.reset()
        sim.data.qvel[:, 3:] = torch.tensor(OMEGA, dtype=torch.float64)
        sim.step()

    return cpu_rate(run, worlds)


report("scipy", {"peer": scipy, "simstate": simstate})
