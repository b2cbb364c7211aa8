"""Orders and errors on a torque-free asymmetric body, against scipy's DOP853."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from simstate import Simulation
from simstate.integrate import DOP853, DP54, RK4, RKF45, RKF78, Explicit

BODY = """
<mujoco><option gravity="0 0 0"/><worldbody><body name="body">
  <freejoint name="root"/><inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/>
</body></worldbody></mujoco>
"""
OMEGA = (0.1, 3.0, 0.1)
TABLE = {
    "manifold": {0.1: 1.749e-2, 0.05: 4.345e-3, 0.025: 1.085e-3},
    "high_order": {0.1: 2.514e-4, 0.05: 1.433e-5, 0.025: 8.54e-7},
    "lie": {0.1: 2.22e-4, 0.05: 1.26e-5, 0.025: 7.5e-7},
}
"""Greatest attitude error of RK4 over 10 s [rad], by step."""


@pytest.fixture(scope="module")
def reference():
    def rate(t, y):
        q, (x, z, w) = y[:4], y[4:]
        turn = np.zeros(4)
        mujoco.mju_mulQuat(turn, q, np.array([0, x, z, w]))
        return [*(turn / 2), -z * w, w * x, -x * z / 3]

    grid = np.arange(0.4, 10.01, 0.4)
    start = [1, 0, 0, 0, *OMEGA]
    tight = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    fine = solve_ivp(
        rate,
        (0, 10.01),
        start,
        dense_output=False,
        t_eval=np.arange(1, 101) * 0.1,
        **tight,
    )
    coarse = solve_ivp(rate, (0, 10.01), start, t_eval=grid, **tight)
    return {0.1: fine.y.T, 0.4: coarse.y.T}


def errors(integrator, dt, reference, grid=0.1):
    """Greatest attitude error [rad] and greatest error of ω on a grid of 10 s."""
    model = mujoco.MjModel.from_xml_string(BODY)
    model.opt.timestep = dt
    sim = Simulation(model, 1, integrator=integrator)
    sim.data.qvel[0, 3:] = torch.tensor(OMEGA, dtype=torch.float64)
    angle = rate = 0.0
    for want in reference[grid]:
        sim.step(round(grid / dt))
        got = sim.data.qpos[0, 3:].numpy()
        q = want[:4] / np.linalg.norm(want[:4])
        turn = np.zeros(4)
        mujoco.mju_mulQuat(turn, q * [1, -1, -1, -1], got)
        angle = max(angle, 2 * math.asin(min(1.0, np.linalg.norm(turn[1:]))))
        rate = max(rate, np.abs(sim.data.qvel[0, 3:].numpy() - want[4:]).max())
    return angle, rate


@pytest.mark.parametrize("mode", TABLE)
def test_rk4_meets_the_table(mode, reference):
    found = {dt: errors(RK4(attitude=mode), dt, reference) for dt in TABLE[mode]}
    for dt, most in TABLE[mode].items():
        assert found[dt][0] <= 1.01 * most
    attitude, omega = (math.log2(found[0.05][i] / found[0.025][i]) for i in (0, 1))
    assert attitude == pytest.approx(2 if mode == "manifold" else 4, abs=0.15)
    assert omega == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize("mode", ["high_order", "lie"])
def test_fehlberg_is_no_worse_than_the_table(mode, reference):
    scheme = Explicit(RKF45().tableau, mode)
    for dt, most in {0.1: 6.36e-5, 0.05: 2.68e-6}.items():
        assert errors(scheme, dt, reference)[0] <= 1.01 * most


@pytest.mark.parametrize("mode", ["high_order", "lie"])
@pytest.mark.parametrize(
    ("pair", "steps", "least"),
    [(DP54, (0.05, 0.025), 4.6), (RKF78, (0.4, 0.2), 7.0), (DOP853, (0.4, 0.2), 7.0)],
)
def test_pairs_have_their_order(pair, steps, least, mode, reference):
    scheme = Explicit(pair().tableau, mode)
    grid = max(0.1, steps[0])
    found = [errors(scheme, dt, reference, grid) for dt in steps]
    for i in (0, 1):
        assert math.log2(found[0][i] / found[1][i]) >= least
