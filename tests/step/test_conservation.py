"""The conservation report against closed forms, and the command that prints it."""

import json
import math

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import stepper_of
from tests.raised import raises

from simstate import InvalidInputError, Simulation, integrate
from simstate.cli import main

TOP = """
<mujoco>
  <option gravity="0 0 0" timestep="0.02"/>
  <worldbody>
    <body name="top" pos="1 2 3"><freejoint/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 2 3"/>
    </body>
  </worldbody>
</mujoco>
"""


def spinning(integrator, num_envs=1, **options):
    model = mujoco.MjModel.from_xml_string(TOP)
    sim = Simulation(model, num_envs, integrator=integrator, **options)
    rate = [0.5, 0.0, 0.0, 0.1, 3.0, 0.1]
    sim.data.qvel[:] = torch.tensor(rate, dtype=sim.dtype)
    return sim


def test_values_at_the_start_are_the_closed_forms():
    found = integrate.report(spinning(integrate.RK4()), 0.2)
    spin, inertia = np.array([0.1, 3.0, 0.1]), np.array([1.0, 2.0, 3.0])
    assert found.energy[0] == pytest.approx(0.25 + 0.5 * spin @ (inertia * spin))
    np.testing.assert_allclose(found.linear_momentum[0], [1.0, 0.0, 0.0], atol=1e-12)
    about_origin = inertia * spin + np.cross([1.0, 2.0, 3.0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(found.angular_momentum[0], about_origin, atol=1e-12)
    assert found.time.tolist() == pytest.approx([0.02 * k for k in range(11)])


def test_samples_limit_the_number_of_intervals():
    found = integrate.report(spinning(integrate.RK4()), 0.22, samples=6)
    assert found.time.tolist() == pytest.approx([0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.22])
    with raises(InvalidInputError, name="samples"):
        integrate.report(spinning(integrate.RK4()), 0.22, samples=2.5)


@pytest.mark.parametrize(
    ("attitude", "order"), [("lie", 4), ("high_order", 4), ("manifold", 2)]
)
def test_the_order_and_the_drifts(attitude, order):
    sim = spinning(integrate.RK4(attitude=attitude), 2)
    before = sim.state.clone()
    found = integrate.report(sim, 2.0, env_id=1)
    assert found.order["attitude"] == pytest.approx(order, abs=0.25)
    assert found.order["velocity"] == pytest.approx(4, abs=0.25)
    drifts = found.drifts()
    assert drifts["linear momentum [kg·m/s]"] < 1e-12
    assert 1e-12 < drifts["energy [J]"] < 1e-4
    turned = drifts["angular momentum [kg·m²/s]"]
    assert turned < 1e-4 if order == 4 else 1e-4 < turned < 1e-1
    assert torch.equal(sim.state, before)  # left as it was
    assert stepper_of(sim).timestep == sim.timestep


def test_orders_of_rounding_are_left_out():
    sim = spinning(integrate.RK4())
    sim.data.qvel[:] = 0.0
    assert integrate.report(sim, 0.1).order == {}


def test_adaptive_and_mujocos_own_steps_have_no_order():
    exact = integrate.report(spinning(integrate.DOP853(atol=1e-12, rtol=1e-12)), 1.0)
    assert exact.order == {}
    assert exact.drifts()["energy [J]"] < 1e-9
    mujocos = integrate.report(spinning(None), 1.0)
    assert mujocos.order == {}
    assert "Euler" in mujocos.scheme.title()
    assert mujocos.drifts()["energy [J]"] > 1e-4


def test_masses_that_flow_count():
    sim = spinning(integrate.RK4())
    sim.mass_rate[:, 1] = -1.0
    found = integrate.report(sim, 1.0)
    assert found.linear_momentum[-1, 0] == pytest.approx(0.5)  # half the mass is left


def test_the_world_has_its_own_mass():
    sim = spinning(integrate.RK4(), 2)
    sim.expand("body_mass")[:, 1] = torch.tensor([4.0, 6.0], dtype=sim.dtype)
    for world, mass in enumerate([4.0, 6.0]):
        found = integrate.report(sim, 0.1, env_id=world)
        assert found.linear_momentum[-1, 0] == pytest.approx(0.5 * mass)


def test_a_time_that_is_no_time_is_refused():
    for bad in (float("nan"), float("inf"), 0.0, -1.0):
        with raises(InvalidInputError, name="seconds"):
            integrate.report(spinning(integrate.RK4()), bad)


RUN = ["run", "--envs", "2", "--no-check"]


def test_the_command_prints_json_and_draws(tmp_path, capsys):
    picture = tmp_path / "drift.png"
    args = [*RUN, "satellite", "--attitude", "manifold", "--timestep", "0.02"]
    args += ["--integrator", "rk4"]
    assert main([*args, "--seconds", "1", "--json", "--plot", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)["integrator"]
    assert found["order"]["attitude"] == pytest.approx(2, abs=0.3)
    assert found["drift"]["linear momentum [kg·m/s]"] < 1e-2
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*args, "--seconds", "0.1"]) == 0
    assert "angular momentum" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--integrator", "rk5"], "rk4"),
        (["--integrator", "rk4", "--tolerance", "1e-6"], "fixed steps"),
        (["--integrator", "dp54", "--tolerance", "0"], "must be finite and > 0"),
        (["--integrator", "mujoco", "--tolerance", "1e-6"], "omit --tolerance"),
        (["--seconds", "nan"], "> 0 and finite"),
        (["--plot", "/nowhere/at/all.png", "--seconds", "0.1"], "does not exist"),
    ],
)
def test_bad_options_are_one_message(options, message, capsys):
    assert main([*RUN, "satellite", *options]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert error.startswith("error:")
    assert message in error


def test_the_command_tells_the_models_damping_from_the_schemes_drift(tmp_path, capsys):
    """A wheel on a damped bearing: E = E₀ exp(−2 c t / I), whatever the scheme does."""
    path = tmp_path / "wheel.xml"
    path.write_text(
        """<mujoco><option timestep="0.05"/><worldbody><body>
        <joint name="spin" axis="0 0 1" damping="0.3"/>
        <inertial pos="0 0 0" mass="1" diaginertia="1 1 1.5"/></body></worldbody>
        <actuator><motor joint="spin"/></actuator></mujoco>"""
    )
    for scheme in ("rk4", "euler"):
        line = [*RUN, str(path), "--integrator", scheme, "--seconds", "2", "--json"]
        assert main(line) == 0
        found = json.loads(capsys.readouterr().out)["integrator"]
        size, parts = found["size"]["energy [J]"], found["energy"]
        lost = size * (1 - math.exp(-2 * 0.3 * 2 / 1.5))
        assert set(parts) == {"joint damping and actuation", "the scheme alone"}
        # Without damping a free wheel keeps its speed in every scheme.
        assert abs(parts["the scheme alone"]) < 1e-14 * max(size, 1)
        rough = 1e-6 if scheme == "rk4" else 0.02
        damped = parts["joint damping and actuation"]
        assert damped == pytest.approx(-lost, rel=rough)
    line = [*RUN, "cube", "--integrator", "euler", "--seconds", "2", "--json"]
    assert main(line) == 0
    alone = json.loads(capsys.readouterr().out)["integrator"]
    assert list(alone["energy"]) == ["the scheme alone"]
    assert abs(alone["energy"]["the scheme alone"]) <= alone["drift"]["energy [J]"]
    # A cart that runs into its limits, and a ball between two others: only without
    # them is the change of energy the scheme's.
    balls = tmp_path / "balls.xml"
    balls.write_text(
        """<mujoco><option gravity="0 0 0"/><worldbody>
        <geom size="0.1" pos="0 0 -0.22"/><geom size="0.1" pos="0 0 0.22"/>
        <body><joint type="slide"/><geom size="0.1" mass="2"/></body>
        </worldbody></mujoco>"""
    )
    for model, cause in (("cartpole", "limits"), (str(balls), "contacts")):
        line = [*RUN, model, "--integrator", "rk4", "--noise", "2", "--json"]
        assert main(line) == 0
        parts = json.loads(capsys.readouterr().out)["integrator"]["energy"]
        (others,) = parts.keys() - {"the scheme alone"}
        assert cause in others
        assert abs(parts[others]) > 1e-2
        assert abs(parts["the scheme alone"]) < 1e-5
    # Tumbling with panels on dampers: the scheme has an error of its own.
    line = [*RUN, "satellite", "--integrator", "euler", "--seconds", "0.5", "--json"]
    assert main(line) == 0
    parts = json.loads(capsys.readouterr().out)["integrator"]["energy"]
    (others,) = parts.keys() - {"the scheme alone"}
    assert others.startswith("joint damping and actuation")
    assert parts[others] < -0.1
    assert abs(parts["the scheme alone"]) > 1e-2
