"""Masses, processes, noise and inputs around a step: what must not leak or be lost."""

import mujoco
import pytest
import torch
from tests.inside import processes_of
from tests.raised import raises

from simstate import DivergenceError, InvalidInputError, Simulation, SnapshotError
from simstate.integrate import (
    DP54,
    RK4,
    RKF45,
    SRIW1,
    EulerMaruyama,
    MovingFrame,
    OrnsteinUhlenbeck,
    PointMassGravity,
    Process,
    Thruster,
    UniformGravity,
)

XML = """
<mujoco>
  <option gravity="0 0 0" timestep="0.01"/>
  <worldbody>
    <body name="b"><freejoint/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 2 2.5"/>
      <site name="s"/>
    </body>
  </worldbody>
  <actuator><motor name="m" site="s" gear="1 0 0 0 0 0"/></actuator>
</mujoco>
"""


def make(integrator=None, num_envs=2, **options):
    model = mujoco.MjModel.from_xml_string(XML)
    return Simulation(model, num_envs, integrator=integrator, **options)


@pytest.mark.parametrize("scheme", [RK4(), SRIW1(), EulerMaruyama()])
def test_inertia_and_constants_follow_under_every_scheme(scheme):
    sim = make(scheme)
    sim.mass_rate[:, 1] = -0.5
    sim.step(100)
    inertia = sim.expand("body_inertia")[0, 1]
    want = torch.tensor([0.5, 1.0, 1.25], dtype=torch.float64)
    torch.testing.assert_close(inertia, want)
    assert sim.expand("body_subtreemass")[0, 0].item() == pytest.approx(0.5)
    with raises(InvalidInputError, name="b"):
        sim.step(150)
    assert sim.expand("body_mass")[0, 1].item() == pytest.approx(0.5)


def test_an_empty_world_is_masked_alone():
    sim = make(RK4(), on_divergence="mask")
    sim.mass_rate[0, 1] = -0.5
    sim.step(250)
    assert sim.diverged.tolist() == [True, False]
    assert sim.time.tolist() == pytest.approx([0.0, 2.5])
    assert sim.expand("body_mass")[:, 1].tolist() == [1.0, 1.0]


def test_a_trial_step_that_empties_a_tank_is_tried_shorter():
    sim = make(DP54(), 1)

    def burn(t, sim):
        sim.mass_rate[:, 1] -= (t < 0.9).to(sim.dtype)

    assert sim.mass_rate.abs().max() == 0
    sim.add_force(burn)
    sim.step(150)
    assert sim.expand("body_mass")[0, 1].item() == pytest.approx(0.1, abs=1e-3)


def test_the_state_cannot_grow_within_a_step():
    sim = make(RK4())

    def burn(t, sim):
        sim.mass_rate[:, 1] -= 0.1

    sim.add_force(burn)
    with raises(InvalidInputError, name="sim.mass_rate"):
        sim.step()
    assert sim.time.tolist() == [0.0, 0.0]
    assert float(sim.mass_rate.abs().max()) == 0
    sim.step()
    assert sim.expand("body_mass")[0, 1].item() == pytest.approx(0.999)


def test_a_load_belongs_to_one_simulation():
    push = Thruster("model", "b", (1.0, 0.0, 0.0))
    make(RK4()).add_force(push)
    with raises(InvalidInputError, name="Thruster"):
        make(RK4()).add_force(push)
    earth = PointMassGravity(1.0)
    sim = make(RK4())
    sim.add_process(MovingFrame(earth, (10.0, 0.0, 0.0), (0.0, 0.3, 0.0)))
    with raises(InvalidInputError, name="b"):
        sim.add_force(earth)


def test_limited_activations_meet_a_tolerance():
    xml = """
    <mujoco><option gravity="0 0 0" timestep="0.5"/><worldbody>
    <body><joint name="j" type="slide"/><geom size=".1" mass="1"/></body></worldbody>
    <actuator><general joint="j" dyntype="integrator" actlimited="true"
      actrange="0 0.1"/></actuator></mujoco>
    """
    model = mujoco.MjModel.from_xml_string(xml)
    for scheme in (RKF45(atol=1e-9, rtol=1e-9, max_step=0.05), DP54(atol=1e-8)):
        sim = Simulation(model, integrator=scheme)
        sim.data.ctrl[:] = 1.0
        sim.step()
        # The activation rises for 0.1 s to 0.1: 0.005 + 0.1 · 0.4.
        assert sim.data.qvel.item() == pytest.approx(0.045, rel=2e-3)


def test_a_control_that_is_not_finite_is_found_with_every_integrator(engine):
    for scheme in (RK4(), DP54()):
        sim = make(scheme, engine=engine)
        sim.data.ctrl[1, 0] = float("nan")
        with raises(DivergenceError, worlds=[1]):
            sim.step()


def test_one_time_step_for_all_worlds():
    sim = make(RK4())
    sim.expand("opt.timestep")[1] = 0.02
    with raises(InvalidInputError, name="opt.timestep"):
        sim.step()


def test_models_that_are_bad_only_together_are_found():
    sim = make(RK4())

    def one(t, sim):
        sim.data.xfrc_applied[:, 1, 0] += 1.0

    def two(t, sim):
        x = sim.data.xfrc_applied[:, 1, 0].clone()
        sim.data.xfrc_applied[:, 1, 0] = x / (1 - x)

    sim.add_force(one)
    sim.add_force(two)
    with raises(InvalidInputError, name="xfrc_applied"):
        sim.step()


@pytest.mark.parametrize("freshness", ["auto", "strict"])
@pytest.mark.parametrize("integrator", [None, RK4()])
def test_reading_accelerations_changes_nothing(freshness, integrator):
    sim = make(integrator, freshness=freshness)
    sim.add_force(UniformGravity((0.1, 0.0, 0.0)))
    sim.add_force(UniformGravity((0.1, 0.0, 0.0)))
    sim.forward()
    sim.step()
    first = sim.data.qacc.clone()
    body = sim.scene["model"].data.body_link_lin_acc_w[0, 0, 0].item()
    assert body == pytest.approx(0.2)
    assert torch.equal(sim.data.qacc, first)
    assert first[0, 0].item() == pytest.approx(0.2)
    assert float(sim.data.xfrc_applied.abs().max()) == 0


def test_strict_reads_after_a_world_was_masked():
    sim = make(RK4(), 3, freshness="strict", on_divergence="mask")
    sim.add_force(UniformGravity((0.1, 0.0, 0.0)))
    sim.forward()
    sim.data.qvel[1, 0] = float("nan")
    sim.step()
    assert sim.diverged.tolist() == [False, True, False]
    sim.step()
    assert sim.data.xpos.shape[0] == 3


def test_held_loads_are_part_of_one_call():
    sim = make()

    def push(t, sim):
        huge = torch.tensor(1e300, dtype=torch.float64)
        sim.data.xfrc_applied[:, 1, 0] = torch.where(t > 0.025, huge, 0.0)

    sim.add_force(push)
    with raises(DivergenceError, worlds=[0, 1]):
        sim.step(10)
    assert sim.time.tolist() == [0.0, 0.0]


class Growth(Process):
    """dx/dt = a x, with a rate of growth for each world."""

    def rate(self, t, sim):
        return self.value * torch.tensor([[0.0], [1e3]], dtype=torch.float64)


def test_a_process_that_blows_up_is_a_diverged_world():
    sim = make(RK4(), on_divergence="mask")
    growth = Growth("growth", [1.0])
    sim.add_process(growth)
    for _ in range(10):
        sim.step()
    assert sim.diverged.tolist() == [False, True]
    assert growth.value[0, 0].item() == 1.0
    assert growth.value[1, 0].item() < 1e10


class Forgetful(Process):
    def rate(self, t, sim):
        return -self.value

    def diffusion(self, t, sim):
        return {self.name: self.value[:, None]}


def test_noise_without_sources_is_refused():
    with raises(InvalidInputError, name="num_sources"):
        make(RK4()).add_process(Forgetful("f", [1.0]))


def test_snapshots_and_processes_that_differ():
    sim = make(SRIW1())
    older = sim.snapshot()
    sim.add_process(OrnsteinUhlenbeck("x", [0.5, 0.5], 1.0, 1.0))
    sim.step(3)
    sim.restore(older)  # what the snapshot does not know goes back to its start
    process = processes_of(sim)[0]
    assert process.value.tolist() == [[0.5, 0.5]] * 2
    other = make(SRIW1())
    other.add_process(OrnsteinUhlenbeck("x", [0.5], 1.0, 1.0))
    other.step()
    before = other.state.clone()
    with raises(SnapshotError, name="parameter/process 'x'/time_constant"):
        other.restore(sim.snapshot())
    assert torch.equal(other.state, before)


def test_noise_goes_on_with_its_seed_in_another_row():
    first = make(SRIW1(), 3, seed=1)
    first.add_process(OrnsteinUhlenbeck("x", [0.0], 1.0, 1.0))
    first.step(2)
    second = make(SRIW1(), 3, seed=2)
    second.add_process(OrnsteinUhlenbeck("x", [0.0], 1.0, 1.0))
    second.restore(first.snapshot([2]), [0])
    for sim in (first, second):
        sim.step(2)
    got = processes_of(second)[0].value[0]
    assert torch.equal(got, processes_of(first)[0].value[2])


def test_masses_that_were_randomised_are_what_a_reset_brings_back():
    sim = make(RK4())
    assert float(sim.mass_rate.abs().max()) == 0
    sim.expand("body_mass")[:, 1] = torch.tensor([3.0, 7.0], dtype=torch.float64)
    sim.set_const()
    sim.mass_rate[:, 1] = -1.0
    sim.step(10)
    sim.reset()
    assert sim.expand("body_mass")[:, 1].tolist() == [3.0, 7.0]
    assert float(sim.mass_rate.abs().max()) == 0


def test_statistics_count_steps_and_evaluations():
    sim = make(RK4())
    sim.step(5)
    counts = sim.integration.statistics
    assert counts.evaluations.tolist() == [20, 20]
    assert counts.accepted.tolist() == [5, 5]
    assert counts.rejected.tolist() == [0, 0]
    with raises(InvalidInputError, name="RK4"):
        sim.integration.prescribe_noise(torch.zeros(1, 2, 1))


def test_models_may_keep_the_time_that_they_were_given():
    sim = make(RK4(), 1)
    times = []
    sim.add_force(lambda t, sim: times.append(t))
    sim.step()
    assert [t.item() for t in times] == pytest.approx([0.0, 0.005, 0.005, 0.01])
