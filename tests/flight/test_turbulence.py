"""Turbulence: the spectra of MIL-F-8785C, by the filters' matrices and by runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_lyapunov
from tests.raised import raises

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.flight import (
    Air,
    AircraftCfg,
    DrydenTurbulence,
    FreeFlight,
    VonKarmanTurbulence,
)
from simstate.integrate import RK4, SRIW1, EulerMaruyama

FOOT, KNOT = 0.3048, 1852 / 3600
WIND, VELOCITY = np.array([4.0, -3.0, 0.0]), np.array([40.0, 5.0, -2.0])
SPEED = np.linalg.norm(VELOCITY - WIND)
SPAN = 3.0


def flying(turbulence, height, num_envs=2, integrator=None, **change):
    given = {"velocity_E__E": VELOCITY, "position_E_Eo": (0.0, 0.0, -height)}
    flight = FreeFlight(
        3.0, np.diag([0.2, 0.3, 0.4]), num_envs, air=Air(wind=WIND), gravity=0.0,
        integrator=integrator or SRIW1(), angles_E_to_BP1_izyx=(5.0, 10.0, 60.0),
        **{**given, **change},
    )  # fmt: skip
    flight.add_turbulence(turbulence)
    return flight


def matrices(kind, height, severity="moderate"):
    """Drift, noise and output matrices, by asking for them state by state."""
    process = kind(severity, SPAN)
    flight = flying(process, height)
    width = process.value.shape[1]
    drift, out = np.zeros((width, width)), np.zeros((6, width))
    for k in range(width):
        process.value[:] = torch.eye(width, dtype=torch.float64)[k]
        drift[:, k] = process.rate(flight.sim.time, flight.sim)[1].numpy()
        out[:3, k] = process.velocity_b[1].numpy()
        out[3:, k] = process.ang_vel_b[1].numpy()
    push = process.diffusion(flight.sim.time, flight.sim)["turbulence"][1].numpy().T
    return drift, push, out


def scales(height, kind):
    """Lengths [m] and intensities [m/s] of moderate turbulence, as specified."""
    feet = height / FOOT
    if feet <= 1000:
        shape = 0.177 + 0.000823 * feet
        low = 0.1 * 30 * KNOT
        lengths = np.array([feet / shape**1.2, feet / shape**1.2, feet]) * FOOT
        return lengths, np.array([low / shape**0.4, low / shape**0.4, low])
    length = {DrydenTurbulence: 1750, VonKarmanTurbulence: 2500}[kind] * FOOT
    table = [500, 1750, 3750, 7500, 15000, 25000]
    sigma = np.interp(feet, table, [8.6, 9.6, 10.6, 10.1, 8.0, 6.6]) * FOOT
    return np.full(3, length), np.full(3, sigma)


def dryden(omega, length, sigma):
    """One-sided spectra of u, v, w, p, q, r over ω [rad/s]."""
    k = omega * length[:, None] / SPEED
    scale = sigma[:, None] ** 2 * length[:, None] / (np.pi * SPEED)
    u = 2 * scale[0] / (1 + k[0] ** 2)
    v, w = scale[1:] * (1 + 3 * k[1:] ** 2) / (1 + k[1:] ** 2) ** 2
    lw = length[2]
    p = sigma[2] ** 2 / (SPEED * lw) * 0.8 * (np.pi * lw / (4 * SPAN)) ** (1 / 3)
    p = p / (1 + (4 * SPAN * omega / (np.pi * SPEED)) ** 2)
    q = (omega / SPEED) ** 2 / (1 + (4 * SPAN * omega / (np.pi * SPEED)) ** 2) * w
    r = (omega / SPEED) ** 2 / (1 + (3 * SPAN * omega / (np.pi * SPEED)) ** 2) * v
    return np.stack([u, v, w, p, q, r])


def karman(omega, length, sigma):
    k = 1.339 * omega * length[:, None] / SPEED
    scale = sigma[:, None] ** 2 * length[:, None] / (np.pi * SPEED)
    u = 2 * scale[0] / (1 + k[0] ** 2) ** (5 / 6)
    v, w = scale[1:] * (1 + 8 / 3 * k[1:] ** 2) / (1 + k[1:] ** 2) ** (11 / 6)
    return np.stack([u, v, w])


def response(drift, push, out, omega):
    """Σ over sources of |H|² / π: the one-sided spectrum of white noise through it."""
    eye = np.eye(len(drift))
    found = [out @ np.linalg.solve(1j * w * eye - drift, push) for w in omega]
    return (np.abs(np.array(found)) ** 2).sum(-1).T / np.pi


HEIGHTS = [120.0, 2500.0]


@pytest.mark.parametrize("height", HEIGHTS)
def test_dryden_spectra_are_exact(height):
    drift, push, out = matrices(DrydenTurbulence, height)
    omega = np.geomspace(1e-3, 1e2, 40)
    got = response(drift, push, out, omega)
    want = dryden(omega, *scales(height, DrydenTurbulence))
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("height", HEIGHTS)
def test_karman_spectra_to_five_percent(height):
    drift, push, out = matrices(VonKarmanTurbulence, height)
    lengths, sigma = scales(height, VonKarmanTurbulence)
    omega = np.geomspace(1e-3, 10, 30) * SPEED / lengths.max()
    got = response(drift, push, out, omega)[:3]
    want = karman(omega, lengths, sigma)
    np.testing.assert_allclose(got, want, rtol=0.05)


@pytest.mark.parametrize("height", HEIGHTS)
def test_the_variance_is_the_intensitys(height):
    drift, push, out = matrices(DrydenTurbulence, height)
    spread = solve_continuous_lyapunov(drift, -push @ push.T)
    lengths, sigma = scales(height, DrydenTurbulence)
    got = np.diag(out @ spread @ out.T)
    np.testing.assert_allclose(got[:3], sigma**2, rtol=1e-9)
    del lengths


@pytest.mark.parametrize("kind", [DrydenTurbulence, VonKarmanTurbulence])
def test_above_the_table_turbulence_is_that_of_its_end(kind):
    end, beyond, lower = (
        matrices(kind, height, "severe")
        for height in (80_000 * FOOT, 30_000.0, 60_000 * FOOT)
    )
    for one, other in zip(end, beyond, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)
    assert max(np.abs(a - b).max() for a, b in zip(lower, end, strict=True)) > 0


def test_severity_by_name():
    low = {}
    for severity in ("light", "moderate", "severe"):
        drift, push, out = matrices(DrydenTurbulence, 120.0, severity)
        spread = solve_continuous_lyapunov(drift, -push @ push.T)
        low[severity] = np.sqrt((out @ spread @ out.T)[2, 2]) / KNOT
    assert low == pytest.approx({"light": 1.5, "moderate": 3.0, "severe": 4.5})


def test_air_that_turns_as_a_body_has_its_angular_velocity():
    """Along x, w falls by q per metre and v rises by r in air that turns with q, r."""
    omega = 1e-4  # rad/s: waves much longer than the span
    process = DrydenTurbulence("moderate", SPAN)
    drift, push, out = matrices(DrydenTurbulence, 2500.0)
    gain = out @ np.linalg.solve(1j * omega * np.eye(len(drift)) - drift, push)
    by_place = 1j * omega / SPEED  # ∂/∂x of what is flown through at SPEED
    np.testing.assert_allclose(gain[4, 2], -by_place * gain[2, 2], rtol=1e-3)
    np.testing.assert_allclose(gain[5, 1], by_place * gain[1, 1], rtol=1e-3)
    flight = flying(process, 2500.0)
    process.value[:] = torch.linspace(-1.0, 2.0, process.value.shape[1])
    flight.set_state(ang_vel_b=[[0.3, -0.2, 0.1]] * 2)
    seen = flight.get_state().air_ang_vel_b
    own = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)
    torch.testing.assert_close(seen, own - process.ang_vel_b)


def test_a_run_has_the_spread_and_each_world_its_own():
    process = DrydenTurbulence("moderate", SPAN, intensity_factor=0.5)
    flight = flying(
        process, 120.0, num_envs=200, integrator=EulerMaruyama(), timestep=0.05
    )
    lengths, sigma = scales(120.0, DrydenTurbulence)
    flight.step(round(5 * lengths[0] / SPEED / 0.05))
    state = flight.get_state()
    rot = state.R_pas_E_to_BP1
    gust = (rot @ (state.wind_e - torch.as_tensor(WIND))[..., None])[..., 0]
    torch.testing.assert_close(gust, process.velocity_b)
    got = gust.std(dim=0).numpy() / (0.5 * sigma)
    # Four standard errors of 200 worlds, and what a step of 0.05 s adds.
    np.testing.assert_allclose(got, 1.0, atol=0.22)
    flight.reset()
    assert bool((process.value == 0).all())


def test_the_same_worlds_in_any_batch():
    ends = []
    for count in (2, 5):
        process = VonKarmanTurbulence("light", [SPAN] * count)
        flight = flying(process, 300.0, num_envs=count, timestep=0.05)
        flight.step(20)
        ends.append(process.value[:2].clone())
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-12)
    assert (ends[0][0] - ends[0][1]).abs().max() > 1e-3


def test_two_aircraft_meet_gusts_of_their_own():
    cfg = {"mass": 2.0, "inertia": np.eye(3), "velocity_E__E": (20.0, 0, 0)}
    fleet = {"one": AircraftCfg(**cfg), "two": AircraftCfg(**cfg)}
    flight = FreeFlight(fleet=fleet, num_envs=2, integrator=SRIW1(), timestep=0.05)
    for name in fleet:
        gusts = DrydenTurbulence("light", 1.0, name=f"gusts of {name}")
        flight.add_turbulence(gusts, name)
    flight.step(20)
    one, two = (flight.get_state(name).wind_e for name in fleet)
    assert (one - two).abs().min() > 1e-4


def test_wrong_turbulence_is_refused():
    for wrong, name in (
        (lambda: DrydenTurbulence("mild", 1.0), "mild"),
        (lambda: DrydenTurbulence("light", 0.0), "span"),
        (
            lambda: flying(DrydenTurbulence("light", 1.0), 100.0, integrator=RK4()),
            "turbulence",
        ),
        (
            lambda: FreeFlight(1.0, np.eye(3), integrator=SRIW1()).sim.add_process(
                DrydenTurbulence("light", 1.0)
            ),
            "conditions",
        ),
    ):
        with raises((InvalidInputError, UnknownNameError), name=name):
            wrong()
    flight = flying(DrydenTurbulence("light", 1.0), 100.0)
    with raises(InvalidInputError, name="aircraft"):
        flight.add_turbulence(DrydenTurbulence("light", 1.0, name="more"))


EXCEEDED = {
    500: (6.6, 8.6, 15.6), 1750: (6.9, 9.6, 17.6), 3750: (7.4, 10.6, 23.0),
    7500: (6.7, 10.1, 23.6), 15000: (4.6, 8.0, 22.1), 25000: (2.7, 6.6, 20.0),
    35000: (0.4, 5.0, 16.0), 45000: (0.0, 4.2, 15.1), 55000: (0.0, 2.7, 12.1),
    65000: (0.0, 0.0, 7.9), 75000: (0.0, 0.0, 6.2), 80000: (0.0, 0.0, 5.1),
}  # fmt: skip
"""Intensities [ft/s] by height [ft], three columns of the table of JSBSim's FGWinds."""


@pytest.mark.parametrize("column", range(3))
def test_intensities_are_those_of_jsbsim(column):
    """Between 1000 and 2000 ft they change over to those of the wind at 20 ft."""
    severity = ("light", "moderate", "severe")[column]
    process = DrydenTurbulence(severity, SPAN)
    flying(process, 2500.0)
    process.value[:] = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0])
    near = 0.1 * 15 * (1 + column) * KNOT  # the same in all directions at 1000 ft
    heights = list(EXCEEDED)
    for feet in (1000, 1200, 1750, 2000, *heights[2:], 50000, 90000):
        table = [row[column] for row in EXCEEDED.values()]
        high = np.interp(feet, heights, table) * FOOT
        share = min((feet - 1000) / 1000, 1.0)
        at = torch.full((2,), feet * FOOT, dtype=torch.float64)
        process.conditions = lambda at=at: (torch.full_like(at, SPEED), at)
        want = near + share * (high - near)
        np.testing.assert_allclose(process.velocity_b[:, 0], want, atol=1e-12)
