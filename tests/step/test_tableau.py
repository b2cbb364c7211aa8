"""Tableaus: what is not a consistent scheme is refused, what is has its order."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import stepper_of
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.integrate import RK4, SCHEMES, Adaptive, Explicit, Tableau, scheme

A4 = ((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0))
B4 = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
RALSTON3 = Tableau(
    "Ralston3",
    a=((), (1 / 2,), (0.0, 3 / 4)),
    b=(2 / 9, 1 / 3, 4 / 9),
    order=3,
)
READY = {
    "EULER": (1, None),
    "HEUN": (2, None),
    "MIDPOINT": (2, None),
    "RK4": (4, None),
    "BS32": (3, 2),
    "RKF45": (5, 4),
    "DP54": (5, 4),
    "RKF78": (8, 7),
    "DOP853": (8, 5),
}
"""Order of the accepted and of the embedded solution."""

PENDULUM = """
<mujoco>
  <option timestep="0.1"/>
  <worldbody>
    <body name="bob">
      <joint name="pivot" axis="0 1 0"/>
      <inertial pos="0 0 -1" mass="1" diaginertia="0.1 0.1 0.1"/>
    </body>
  </worldbody>
</mujoco>
"""

BAD = {
    "implicit row": (((0.5,),), (1.0,), "a"),
    "diagonal": (((), (0.5, 0.5)), (0.5, 0.5), "a"),
    "too few rows": (((), (0.5,)), B4, "a"),
    "too many rows": (A4, (0.5, 0.5), "a"),
    "no stages": ((), (), "a"),
    "NaN in a": (((), (math.nan,)), (0.5, 0.5), "a"),
    "infinite b": (((), (1.0,)), (math.inf, 0.5), "b"),
    "weights sum to 0.9": (((), (1.0,)), (0.5, 0.4), "order"),
}


@pytest.mark.parametrize("case", BAD)
def test_inconsistent_numbers_are_refused(case):
    a, b, wanted = BAD[case]
    with raises(InvalidInputError, name=wanted) as error:
        Tableau("mine", a=a, b=b, order=1)
    assert "'mine'" in str(error.value)


@pytest.mark.parametrize("order", [0, -1])
def test_order_below_one_is_refused(order):
    with raises(InvalidInputError, name="order"):
        Tableau("mine", a=((),), b=(1.0,), order=order)


CLAIMS = {
    "Euler as 2": (((),), (1.0,), 2),
    "Heun as 3": (((), (1.0,)), (0.5, 0.5), 3),
    "Ralston as 4": (RALSTON3.a, RALSTON3.b, 4),
    # Right quadrature weights, wrong couplings: only Σ b a c tells.
    "wrong coupling": (((), (1 / 2,), (3 / 4, 0.0)), RALSTON3.b, 3),
    # Meets all conditions of order four but the last (Σ b a a c).
    "RK4, c kept": (((), (1 / 2,), (1 / 2, 0.0), (0.0, 0.0, 1.0)), B4, 4),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claimed_order_that_does_not_hold_is_refused(claim):
    a, b, order = CLAIMS[claim]
    with raises(InvalidInputError, name="order"):
        Tableau("mine", a=a, b=b, order=order)


def test_more_than_four_cannot_be_claimed_with_four_stages():
    with pytest.raises(InvalidInputError):
        Tableau("mine", a=A4, b=B4, order=5)


def test_embedded_solutions_are_checked():
    heun = {"a": ((), (1.0,)), "b": (0.5, 0.5), "order": 2}
    Tableau("mine", **heun, b_error=(-0.5, 0.5), error_order=1)
    with raises(InvalidInputError, name="b_error"):
        Tableau("mine", **heun, b_error=(0.5,), error_order=1)
    with raises(InvalidInputError, name="order"):
        Tableau("mine", **heun, b_error=(-0.5, 0.6), error_order=1)
    with raises(InvalidInputError, name="b_error"):
        Tableau("mine", **heun, b_error=(math.nan, 0.5), error_order=1)
    for error_order in (0, 2, 3):
        with raises(InvalidInputError, name="error_order"):
            Tableau("mine", **heun, b_error=(-0.5, 0.5), error_order=error_order)


def test_an_estimate_of_nothing_is_refused():
    with pytest.raises(InvalidInputError):
        Tableau("mine", a=A4, b=B4, order=4, b_error=(0.0,) * 4, error_order=3)


def rk_error(a, b, steps):
    """The error of y' = y cos t at t = 2, in numpy, for n steps."""
    c = [math.fsum(row) for row in a]
    h = 2.0 / steps
    y, t = np.longdouble(1.0), np.longdouble(0.0)
    for _ in range(steps):
        k = []
        for row, at in zip(a, c, strict=True):
            stage = y + h * sum((w * x for w, x in zip(row, k, strict=True)), 0 * y)
            k.append(stage * np.cos(t + at * h))
        y = y + h * sum(w * x for w, x in zip(b, k, strict=True))
        t = t + h
    return abs(float(y - np.exp(np.sin(np.longdouble(2.0)))))


def order_of(a, b, expected):
    many = {1: 512, 2: 128, 3: 64, 4: 32, 5: 24, 8: 6}
    steps = many.get(expected, 4)
    # Over a factor of six: the error of an embedded scheme may cross zero between.
    # Order eight would meet rounding.
    factor = 2 if expected == 8 else 6
    ends = (rk_error(a, b, n * steps) for n in (1, factor))
    return math.log(next(ends) / next(ends), factor)


@pytest.mark.parametrize("name", READY)
def test_ready_tableaus_have_their_orders(name):
    tableau = SCHEMES[name.lower()].tableau
    order, embedded = READY[name]
    assert tableau.order == order
    assert order_of(tableau.a, tableau.b, order) == pytest.approx(order, abs=0.45)
    if embedded is None:
        assert tableau.b_error is None
        return
    assert tableau.error_order == embedded
    low = np.subtract(tableau.b, tableau.b_error)
    assert order_of(tableau.a, low, embedded) == pytest.approx(embedded, abs=0.45)


def test_rk4s_stages_are_known_by_their_times():
    assert RK4.tableau.c == (0.0, 0.5, 0.5, 1.0)
    assert RK4.tableau.num_stages == 4


def test_first_same_as_last_is_detected():
    found = {
        name for name in READY if SCHEMES[name.lower()].tableau.is_first_same_as_last
    }
    # Of the ready ones, those whose last stage is at the accepted solution.
    # DOP853 is written with its twelve stages, and evaluates its start again.
    assert found == {"BS32", "DP54"}


def test_a_tableau_keeps_its_numbers():
    weights = [1.0]
    tableau = Tableau("mine", a=[[]], b=weights, order=1)
    weights[0] = 7.0
    assert tableau.b == (1.0,)
    with pytest.raises(AttributeError):
        tableau.order = 2


def pendulum_reference(seconds):
    from scipy.integrate import solve_ivp

    def rate(t, y):
        return [y[1], -9.81 * math.sin(y[0]) / 1.1]

    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    return solve_ivp(rate, (0, seconds), [1.0, 0.0], **options).y[:, -1]


def pendulum(integrator, dt, seconds=1.6):
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    model.opt.timestep = dt
    sim = Simulation(model, 1, integrator=integrator)
    sim.data.qpos[:] = 1.0
    sim.step(round(seconds / dt))
    return np.array([sim.data.qpos.item(), sim.data.qvel.item()])


def test_a_users_tableau_steps_a_simulation():
    want = pendulum_reference(1.6)
    coarse, fine = (
        np.abs(pendulum(Explicit(RALSTON3), dt) - want).max() for dt in (0.02, 0.01)
    )
    assert fine < 1e-4
    assert math.log2(coarse / fine) == pytest.approx(3, abs=0.2)


def test_the_classical_scheme_as_a_users_tableau_is_rk4():
    mine = Explicit(Tableau("mine", a=A4, b=B4, order=4))
    np.testing.assert_array_equal(pendulum(mine, 0.1), pendulum(RK4(), 0.1))


def test_a_users_pair_adapts():
    pair = Tableau(
        "HeunEuler", ((), (1.0,)), (0.5, 0.5), 2, b_error=(-0.5, 0.5), error_order=1
    )
    got = pendulum(Adaptive(pair, atol=1e-6, rtol=1e-6), 0.1)
    np.testing.assert_allclose(got, pendulum_reference(1.6), atol=2e-4)


def test_schemes_by_name():
    assert scheme("RK4").tableau is RK4.tableau
    assert scheme("dop853", "high_order", atol=1e-3).atol == 1e-3
    with raises(UnknownNameError, name="rkf54"):
        scheme("rkf54")
    with raises(InvalidInputError, name="RK4"):
        scheme("rk4", atol=1e-3)
    with raises(UnknownNameError, name="quat"):
        RK4(attitude="quat")
    with raises(InvalidInputError, name="tableau"):
        Explicit("RK4")


@pytest.mark.parametrize("bad", ["rk4", RK4, 4])
def test_what_is_no_scheme_is_refused(bad):
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    with raises(InvalidInputError, name="integrator"):
        Simulation(model, 1, integrator=bad)


def test_blocks_do_not_grow_with_the_model(make_sim):
    sim = make_sim(integrator=RK4())
    sim.step()
    names = [block.name for block in stepper_of(sim).blocks]
    assert names == ["qpos", "qvel", "act"]
    assert torch.isfinite(sim.data.qpos).all()
