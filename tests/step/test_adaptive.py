"""Adaptive steps: the tolerance holds, world by world, or an error says where."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import stepper_of
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import IntegrationError, InvalidInputError, UnknownNameError
from simstate.integrate import BS32, DOP853, DP54, RK4, RKF45, Adaptive, Process
from simstate.step.schemes.tolerances import ABSOLUTE, tolerance

BODY = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body name="body">
  <freejoint name="root"/><inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/>
</body></worldbody></mujoco>
"""
MOTOR = """
<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody><body>
  <joint name="x" type="slide"/><geom size="0.1" mass="1"/></body></worldbody>
<actuator><general joint="x" dyntype="integrator" actlimited="true"
  actrange="0 0.1"/></actuator></mujoco>
"""


def started(integrator, num_envs=1, **options):
    model = mujoco.MjModel.from_xml_string(BODY)
    sim = Simulation(model, num_envs, integrator=integrator, **options)
    sim.data.qvel[:, 3:] = torch.tensor([0.1, 3.0, 0.1], dtype=torch.float64)
    return sim


def angle(p, q):
    return float(2 * torch.minimum((p - q).norm(), (p + q).norm()))


@pytest.fixture(scope="module")
def truth():
    from scipy.integrate import solve_ivp

    def rate(t, y):
        w, x, y_, z, a, b, c = y
        q = [-x * a - y_ * b - z * c, w * a + y_ * c - z * b]
        q += [w * b - x * c + z * a, w * c + x * b - y_ * a]
        return [*(v / 2 for v in q), -b * c, c * a, -a * b / 3]

    tight = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    end = solve_ivp(rate, (0, 10), [1, 0, 0, 0, 0.1, 3, 0.1], **tight).y[:4, -1]
    return torch.from_numpy(end)


def test_tight_tolerances_are_met_within_900_evaluations(truth):
    sim = started(DOP853(atol=1e-10, rtol=1e-10))
    sim.step(100)
    assert angle(sim.data.qpos[0, 3:], truth) <= 1e-9
    assert int(sim.integration.statistics.evaluations[0]) <= 900


@pytest.mark.parametrize("scheme", [DP54(), RK4()], ids=["DP54", "RK4"])
def test_an_activation_leaves_its_limit_slowly(scheme):
    """Inwards of the limits 0 and 0.1, and not beyond them."""
    rates = torch.tensor([[0.4], [-0.4], [-0.4], [0.4]], dtype=torch.float64)
    sim = Simulation(mujoco.MjModel.from_xml_string(MOTOR), 4, integrator=scheme)
    sim.data.act[:, 0] = sim.data.act.new_tensor([0.0, 0.1, 0.0, 0.1])
    sim.data.ctrl[:] = rates
    sim.step(5)
    found = sim.data.act[:, 0].tolist()
    assert found == pytest.approx([0.02, 0.08, 0.0, 0.1], abs=1e-12)


def test_errors_follow_the_tolerance(truth):
    found = []
    for size in (1e-5, 1e-7, 1e-9):
        sim = started(DP54(atol=size, rtol=size))
        sim.step(100)
        found.append(angle(sim.data.qpos[0, 3:], truth))
    assert 20 < found[0] / found[1] < 500
    assert 20 < found[1] / found[2] < 500


class Clock(Process):
    """Its value is the time of the stage, whatever the step: dx/dt = 1."""

    def rate(self, t, sim):
        return torch.ones_like(self.value)


@pytest.mark.parametrize("rate", [0.3, 5.0])
@pytest.mark.parametrize("scheme", [DP54, DOP853, BS32, RKF45])
def test_models_are_given_the_time_of_each_stage(scheme, rate):
    """In every evaluation, those of rejected steps included."""
    sim = started(scheme(atol=1e-8, rtol=1e-8))
    sim.data.qvel[:, 4] = rate
    clock = Clock("clock", [0.0])
    sim.add_process(clock)
    times = []

    def look(t, sim):
        times.append((float(t), float(clock.value)))
        sim.data.xfrc_applied[:, 1, 3] += 20.0 * (t > 0.234)  # not to be foreseen

    sim.add_force(look)
    sim.step(3)
    sim.step(2)
    given, true = np.array(times).T
    np.testing.assert_allclose(given, true, rtol=0, atol=1e-13)
    assert len(set(given)) > 50
    assert int(sim.integration.statistics.rejected) > 0
    assert float(sim.time) == pytest.approx(0.5, abs=1e-15)


def test_worlds_step_on_their_own():
    batch = started(DP54(atol=1e-8, rtol=1e-8), 3)
    rate = torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
    batch.data.qvel[:, 4] = rate
    batch.step(20)
    accepted = batch.integration.statistics.accepted.tolist()
    assert accepted[0] < accepted[1] < accepted[2]
    for world in range(3):
        alone = started(DP54(atol=1e-8, rtol=1e-8))
        alone.data.qvel[:, 4] = rate[world]
        alone.step(20)
        assert torch.equal(alone.data.qpos[0], batch.data.qpos[world])


def unlike(num_envs=3, **options):
    """Worlds that turn at rates of their own, so each has steps of its own."""
    sim = started(DP54(atol=1e-8, rtol=1e-8), num_envs, **options)
    rates = torch.linspace(0.5, 4.0, num_envs, dtype=torch.float64)
    sim.data.qvel[:, 4] = rates
    return sim


def run(sim, steps):
    """Where a run ends, and how many evaluations it took, world by world."""
    before = sim.integration.statistics.evaluations.clone()
    sim.step(steps)
    done = sim.integration.statistics.evaluations - before
    return sim.data.qpos.clone(), done


def test_the_step_size_goes_on_from_call_to_call():
    """A second call does not guess again, which would cost evaluations."""
    sim, other = unlike(), unlike()
    sim.step(10)
    end, second = run(sim, 10)
    other.step(10)
    stepper_of(other).step_size.zero_()
    again, guessed = run(other, 10)
    assert (guessed > second).all()
    assert not torch.equal(end, again)


def test_a_snapshot_keeps_the_step_sizes():
    """Also of some worlds, in another order, after they were used for other steps."""
    sim = unlike()
    sim.step(10)
    kept = sim.snapshot()
    end, cost = run(sim, 10)
    assert len(set(cost.tolist())) == 3
    sim.reset()
    sim.step(3)
    sim.restore(kept)
    again, again_cost = run(sim, 10)
    assert torch.equal(again, end)
    assert torch.equal(again_cost, cost)
    other = unlike()
    other.step(4)
    other.restore(sim.snapshot([2]), env_ids=[0])
    want, want_cost = run(sim, 5)
    got, got_cost = run(other, 5)
    assert torch.equal(got[0], want[2])
    assert got_cost[0] == want_cost[2]


@pytest.mark.parametrize("env_ids", [None, [2, 0]])
def test_a_reset_forgets_the_step_size(env_ids):
    """Run, reset, run is what a new simulation does, bit for bit and step for step.

    The worlds that are not reset go on as if nothing had happened.
    """
    sim, fresh, twin = unlike(), unlike(), unlike()
    rates = fresh.data.qvel.clone()
    sim.step(7)
    twin.step(7)
    sim.reset(env_ids)
    rows = [0, 1, 2] if env_ids is None else env_ids
    rest = [world for world in range(3) if world not in rows]
    sim.data.qvel[rows] = rates[rows]
    (got, cost), (want, fresh_cost), (on, on_cost) = (
        run(each, 6) for each in (sim, fresh, twin)
    )
    assert torch.equal(got[rows], want[rows])
    assert torch.equal(cost[rows], fresh_cost[rows])
    assert torch.equal(got[rest], on[rest])
    assert torch.equal(cost[rest], on_cost[rest])


@pytest.mark.parametrize("on_divergence", ["raise", "mask"])
def test_what_cannot_be_met_is_said(on_divergence):
    options = {"on_divergence": on_divergence}
    sim = started(DP54(atol=1e-12, rtol=1e-12, min_step=0.05), 2, **options)
    sim.data.qvel[0] = 0.0
    before = sim.data.qpos.clone()
    if on_divergence == "raise":
        with raises(IntegrationError, worlds=[1]):
            sim.step(10)
        assert torch.equal(sim.data.qpos, before)
        assert sim.time.tolist() == [0.0, 0.0]
    else:
        sim.step(10)
        assert sim.diverged.tolist() == [False, True]
        assert torch.equal(sim.data.qpos[1], before[1])
        assert sim.time.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("joint", ["roll", "lift"])
def test_the_element_that_cannot_be_met_is_that_of_its_world(world, joint):
    model = """
    <mujoco><option gravity="0 0 0"/><worldbody>
      <body><joint name="roll" axis="1 0 0" stiffness="3"/>
        <geom size="0.1" pos="0 0.2 0" mass="1"/></body>
      <body pos="1 0 0"><joint name="lift" type="slide" axis="0 0 1" stiffness="40"/>
        <geom size="0.1" mass="1"/></body>
    </worldbody></mujoco>
    """
    scheme = DP54(atol=1e-13, rtol=1e-13, min_step=0.02)
    scene = SceneCfg(entities={"it": EntityCfg(model=model)}, ground=False)
    sim = Simulation(scene, 4, integrator=scheme)
    column = ["roll", "lift"].index(joint)
    sim.data.qpos[world, column] = 0.5
    with raises(IntegrationError, name=f"qvel[{column}]", worlds=[world]):
        sim.step(40)
    loose = DP54(atol={"qpos": 1e3, "qvel": 1e-13}, rtol=1e-13, min_step=0.02)
    fast = Simulation(scene, 4, integrator=loose)
    fast.data.qpos[world, column] = 0.5
    with raises(IntegrationError, name=f"qvel[{column}]", worlds=[world]):
        fast.step(40)


def test_metres_and_radians_have_tolerances_of_their_own(truth):
    turns = {"attitude": 1e-10, "rate": 1e-10, "position": 1e3, "velocity": 1e3}
    moves = {"attitude": 1e-3, "rate": 1e-3, "qpos": 1e-13, "qvel": 1e-13}
    errors, counts = [], []
    for kinds in (turns, moves):
        sim = started(DP54(atol=kinds, rtol=1e-14), 2)
        sim.data.qvel[:, :3] = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)
        sim.step(100)
        errors.append(angle(sim.data.qpos[1, 3:], truth))
        counts.append(int(sim.integration.statistics.evaluations[1]))
    assert errors[0] < 1e-7 < 1e-4 < errors[1]
    assert counts[1] < counts[0] / 4


def test_a_group_a_process_and_what_is_left_out():
    given = {"qpos": 2e-3, "attitude": 3e-4, "gusts": 5e-5}
    found = [
        tolerance(given, kind, ABSOLUTE)
        for kind in ("position", "attitude", "joint", "rate", "gusts", "other")
    ]
    assert found == [2e-3, 3e-4, 2e-3, 1e-7, 5e-5, 1e-6]
    assert tolerance({"process": 4.0}, "other", ABSOLUTE) == 4.0
    assert tolerance(None, "attitude", ABSOLUTE) == 1e-7


def test_bad_options_are_refused():
    for bad in (0.0, -1e-6, float("nan"), {"qpos": 0.0}):
        with raises(InvalidInputError, name="atol"):
            DP54(atol=bad)
    sim = started(DP54(rtol={"pos": 1e-6}))  # it might be a process's name
    with raises(UnknownNameError, name="pos"):
        sim.step()
    with raises(InvalidInputError, name="attitude"):
        DP54(attitude="manifold")
    with raises(InvalidInputError, name="b_error"):
        Adaptive(RK4().tableau)
    with raises(InvalidInputError, name="min_step"):
        DP54(min_step=1.0, max_step=0.1)


def test_limited_activations_hold_within_a_call():
    sim = Simulation(
        mujoco.MjModel.from_xml_string(MOTOR), 1, integrator=DP54(atol=1e-8, rtol=1e-8)
    )
    sim.data.ctrl[:] = 1.0
    sim.step(100)
    # The activation rises to 0.1 in 0.1 s and stays there.
    assert sim.data.qvel.item() == pytest.approx(0.095, rel=0.02)
