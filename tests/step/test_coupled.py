"""Strong coupling: loads that grow with the acceleration, against closed forms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from tests.raised import raises

from simstate import CouplingError, DivergenceError, InvalidInputError, Simulation
from simstate.flight import FreeFlight, Load
from simstate.integrate import DOP853, RK4, Strong

G, MASS = 9.81, 0.5
ADDED = torch.tensor([2.0, 5.0, 50.0], dtype=torch.float64)  # kg, by world
INERTIA = np.array([0.004, 0.006, 0.009])

XML = f"""
<mujoco>
  <option gravity="0 0 -{G}" timestep="0.01"/>
  <worldbody>
    <body name="other" pos="3 0 0"><freejoint/><geom size="0.1" mass="2"/></body>
    <body name="hull" pos="0 0 1" quat="0.5 0.5 -0.5 0.5">
      <freejoint/>
      <inertial pos="0 0 0" mass="{MASS}" diaginertia="0.004 0.006 0.009"/>
      <geom size="0.1" mass="0"/>
    </body>
  </worldbody>
</mujoco>
"""
HULL, DOF = 2, 6


def make(scheme=None, num_envs=3, h=0.01, gravity=True, **options):
    model = mujoco.MjModel.from_xml_string(XML)
    model.opt.timestep = h
    if not gravity:
        model.opt.gravity[:] = 0
    return Simulation(model, num_envs, integrator=scheme, **options)


def add_mass(sim, added=ADDED, coupling=None):
    """Added mass of the fluid around the hull: a force against its acceleration."""

    def fluid(t, sim):
        acc = found.mean_acc[:, DOF : DOF + 3]
        sim.data.xfrc_applied[:, HULL, :3] -= added[: sim.num_envs, None] * acc

    found = sim.add_coupled_force(fluid, coupling)
    return found


def test_weak_coupling_diverges_where_strong_coupling_is_exact():
    """(m + m_a) a = −m g; taken from the last step, the load grows m_a / m-fold."""
    sim, weak = make(), make()
    coupling = add_mass(sim)
    for _ in range(100):
        sim.step()
    wanted = -G * MASS / (MASS + ADDED)
    np.testing.assert_allclose(sim.data.qvel[:, DOF + 2], wanted, rtol=1e-9)
    # The force is held over each step, so that positions are those of MuJoCo's Euler.
    height = 1 + wanted * 0.01**2 * sum(range(1, 101))
    np.testing.assert_allclose(sim.data.qpos[:, 7 + 2], height, rtol=1e-9)
    np.testing.assert_allclose(sim.data.qvel[:, 2], -G, rtol=1e-12)  # the other body
    assert bool((coupling.residual <= 1e-9 * ADDED * G).all())

    acc = torch.zeros(3, dtype=torch.float64)
    for _ in range(5):
        before = weak.data.qvel[:, DOF + 2].clone()
        weak.data.xfrc_applied[:, HULL, 2] = -ADDED * acc
        weak.step()
        acc = (weak.data.qvel[:, DOF + 2] - before) / 0.01
    assert bool((acc.abs() > G * (ADDED / MASS) ** 4 / 2).all())


def kirchhoff(linear, angular, speed, spin, until):
    """Velocities of a body in an ideal fluid at a time, body axes, by SciPy."""

    def rate(t, y):
        v, w = y[:3], y[3:]
        momentum, turn = (MASS + linear) * v, (INERTIA + angular) * w
        force = np.cross(momentum, w)
        moment = np.cross(turn, w) + np.cross(momentum, v)
        return np.concatenate([force / (MASS + linear), moment / (INERTIA + angular)])

    y = np.concatenate([speed, spin])
    return solve_ivp(rate, (0, until), y, rtol=1e-12, atol=1e-13).y[:, -1]


LINEAR, ANGULAR = np.array([1.0, 4.0, 9.0]), np.array([0.5, 0.8, 0.6])
SPEED, SPIN = np.array([1.0, 0.3, -0.4]), np.array([0.2, -0.5, 0.3])


def swim(scheme, h, until=0.16):
    """The same body by coupled loads: velocities at the end, body axes."""
    sim = make(scheme, num_envs=2, h=h, gravity=False)
    rot = torch.as_tensor(sim.data.xmat[:, HULL])
    sim.data.qvel[:, DOF : DOF + 3] = (rot @ torch.as_tensor(SPEED)[:, None])[..., 0]
    sim.data.qvel[:, DOF + 3 :] = torch.as_tensor(SPIN)
    linear, angular = torch.as_tensor(LINEAR), torch.as_tensor(ANGULAR)

    def body(sim):
        rot = sim.data.xmat[:, HULL]
        vel = (rot.mT @ sim.data.qvel[:, DOF : DOF + 3, None])[..., 0]
        return rot, vel, sim.data.qvel[:, DOF + 3 :]

    def fluid(t, sim):
        rot, v, w = body(sim)
        acc = coupling.mean_acc[:, DOF:]
        dv = (rot.mT @ acc[:, :3, None])[..., 0] - torch.linalg.cross(w, v)
        force = -linear * dv - torch.linalg.cross(w, linear * v)
        moment = -angular * acc[:, 3:] - torch.linalg.cross(w, angular * w)
        moment -= torch.linalg.cross(v, linear * v)
        wrench = torch.stack([force, moment], dim=2)
        sim.data.xfrc_applied[:, HULL] += (rot @ wrench).mT.flatten(1)

    coupling = sim.add_coupled_force(fluid)
    sim.step(round(until / h))
    _, v, w = body(sim)
    return torch.cat([v, w], dim=1)[1].numpy(), coupling


@pytest.mark.parametrize(
    "scheme", [None, RK4(), DOP853()], ids=["MuJoCo", "RK4", "DOP853"]
)
def test_a_body_in_an_ideal_fluid_follows_kirchhoffs_equations(scheme):
    """Six axes of different added mass and inertia, 2 to 133 times the body's own."""
    wanted = kirchhoff(LINEAR, ANGULAR, SPEED, SPIN, 0.16)
    (coarse, _), (fine, coupling) = (swim(scheme, h) for h in (8e-3, 4e-3))
    errors = [np.abs(found - wanted).max() for found in (coarse, fine)]
    assert errors[1] < 1e-2
    assert 1.8 < errors[0] / errors[1] < 2.3  # loads held over a step: first order
    assert int(coupling.iterations.max()) <= 12


@pytest.mark.parametrize("scheme", [None, RK4()], ids=["MuJoCo", "RK4"])
def test_steps_are_the_same_in_one_call_alone_and_after_a_restore(scheme):
    start = torch.tensor([[0.3, -0.2, 0.1], [-0.4, 0.5, 0.6], [0.7, 0.8, -0.9]])

    def run(worlds, calls, restored=False):
        sim = make(scheme, len(worlds))
        add_mass(sim, ADDED[worlds])
        sim.data.qvel[:, DOF + 3 :] = start[worlds].double()
        for n in calls:
            if restored:
                kept = sim.snapshot()
                sim.step(3)
                sim.restore(kept)
            sim.step(n)
        return sim.state.clone()

    together = run([0, 1, 2], [7])
    assert torch.equal(together, run([0, 1, 2], [2, 4, 1]))
    assert torch.equal(together, run([0, 1, 2], [3, 4], restored=True))
    for world in range(3):
        assert torch.equal(together[world], run([world], [7])[0])


@pytest.mark.parametrize("order", ["event first", "coupling first"])
def test_events_cut_coupled_steps(order):
    """The crossing is at the time of the closed form, not at a time step."""
    sim = make()
    fall = (0.5 * G * MASS / (MASS + ADDED)).sqrt()  # to fall 1 m takes 1 / fall [s]

    def below(sim):
        return sim.data.qpos[:, 7 + 2] - 0.95

    if order == "event first":
        event = sim.add_event(below)
        coupling = add_mass(sim)
    else:
        coupling = add_mass(sim)
        event = sim.add_event(below)
    assert coupling.inner is not coupling
    sim.run(until=2.5)
    found = event.time
    np.testing.assert_allclose(found, 0.05**0.5 / fall, rtol=0.05)
    np.testing.assert_allclose(
        sim.data.qvel[:, DOF + 2], -2.5 * G * MASS / (MASS + ADDED), rtol=1e-6
    )


def test_loads_of_the_step_are_part_of_accelerations_and_go_with_a_reset():
    sim = make(RK4())
    add_mass(sim)
    sim.step(5)
    wanted = -G * MASS / (MASS + ADDED)
    np.testing.assert_allclose(sim.data.qacc[:, DOF + 2], wanted, rtol=1e-9)
    assert bool((sim.data.xfrc_applied == 0).all())
    sim.reset([1])
    sim.forward()
    np.testing.assert_allclose(sim.data.qacc[1, DOF + 2], -G, rtol=1e-12)
    np.testing.assert_allclose(sim.data.qacc[0, DOF + 2], wanted[0], rtol=1e-9)


def test_loads_that_do_not_converge_raise_and_leave_the_state():
    sim = make()
    seen = []

    def jumping(t, sim):
        seen.append(1)
        sim.data.xfrc_applied[1, HULL, 2] += float(len(seen) % 2)

    sim.step(2)
    before = sim.state.clone()
    sim.add_coupled_force(jumping, Strong(max_iterations=6))
    with raises(CouplingError, worlds=[1]) as e:
        sim.step(4)
    assert e.value.env_ids == [1]
    assert isinstance(e.value, DivergenceError)
    assert torch.equal(sim.state, before)

    sim.on_divergence = "mask"
    sim.step()
    assert sim.diverged.tolist() == [False, True, False]
    assert torch.equal(sim.state[1], before[1])
    assert sim.time.tolist() == pytest.approx([0.03, 0.02, 0.03])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (lambda t, sim: sim.data.qpos.add_(0.1), "sim.data.qpos"),
        (lambda t, sim: sim.data.qfrc_applied.fill_(torch.nan), "qfrc_applied"),
        (lambda t, sim: sim.step(), "sim.step"),
    ],
    ids=["state", "nan", "step"],
)
def test_a_wrong_model_leaves_the_state(model, name):
    sim = make()
    sim.step()
    before = sim.state.clone()
    sim.add_coupled_force(model)
    with raises(InvalidInputError, name=name):
        sim.step(2)
    assert torch.equal(sim.state, before)


def test_controls_are_not_coupled():
    xml = XML.replace(
        "</mujoco>",
        '<actuator><motor joint="j"/></actuator></mujoco>',
    ).replace('<body name="other" pos="3 0 0"><freejoint/>',
              '<body name="other" pos="3 0 0"><joint name="j"/>')  # fmt: skip
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2)
    sim.add_coupled_force(lambda t, sim: sim.data.ctrl.fill_(1.0))
    with raises(InvalidInputError, name="ctrl"):
        sim.step()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Strong(tolerance=0),
        lambda: Strong(max_iterations=1),
        lambda: Strong(relaxation=1.5),
        lambda: Strong(history=0),
        lambda: make().add_coupled_force(3),
        lambda: make().add_coupled_force(print, coupling=0.1),
        lambda: FreeFlight(1.0, np.eye(3), coupling=True),
        lambda: FreeFlight(1.0, np.eye(3)).mean_acceleration(),
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidInputError):
        wrong()


@pytest.mark.parametrize("integrator", [RK4(), "Euler"], ids=["RK4", "Euler"])
def test_an_airship_rises_by_its_mass_and_the_air_that_it_moves(integrator):
    added, lift = torch.tensor([4.0, 30.0], dtype=torch.float64), 12.0
    flight = FreeFlight(
        1.0, np.diag([0.2, 0.3, 0.4]), num_envs=2, integrator=integrator,
        timestep=0.02, coupling=Strong(tolerance=1e-10),
    )  # fmt: skip

    def air(t, state):
        linear, _ = flight.mean_acceleration()
        force = -added[:, None] * linear
        force[:, 2] -= lift  # down is positive
        return Load(force=force, axes="earth")

    flight.add_load(air)
    flight.step(50)
    wanted = (9.80665 - lift) / (1.0 + added)
    np.testing.assert_allclose(flight.get_state().velocity_E__E[:, 2], wanted)
    assert int(flight.coupling.iterations.min()) >= 1


def test_an_airship_turns_by_its_inertia_and_that_of_the_air():
    added, moment = torch.tensor([0.3, 2.0], dtype=torch.float64), 0.6
    flight = FreeFlight(
        1.0, np.diag([0.2, 0.3, 0.4]), num_envs=2, integrator=RK4(), gravity=0.0,
        timestep=0.02, coupling=Strong(tolerance=1e-10),
    )  # fmt: skip

    def air(t, state):
        _, angular = flight.mean_acceleration()
        turning = -added[:, None] * angular
        turning[:, 2] += moment
        return Load(force=torch.zeros_like(turning), moment=turning, axes="body")

    flight.add_load(air)
    flight.step(25)
    wanted = 0.5 * moment / (0.4 + added)
    np.testing.assert_allclose(flight.get_state().ang_vel_b[:, 2], wanted, rtol=1e-7)


def test_the_mean_acceleration_is_that_of_the_airframe_alone():
    fin = (
        '<body name="fin"><joint axis="0 0 1"/>'
        '<inertial pos="0 0 0" mass="0.1" diaginertia="0.01 0.01 0.01"/></body>'
    )
    flight = FreeFlight(
        1.0, np.eye(3), num_envs=2, integrator=RK4(), parts=fin, coupling=Strong()
    )
    flight.add_load(lambda t, state: Load(force=torch.ones(2, 3), axes="earth"))
    flight.step()
    assert [part.shape for part in flight.mean_acceleration()] == [(2, 3), (2, 3)]
