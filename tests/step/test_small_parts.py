"""Small parts of the steppers, each next to another way to compute it."""

import math
import warnings

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation
from tests.inside import ledger_of, worlds_of

from simstate import InvalidInputError, Simulation, integrate
from simstate.step.conservation import ConservationReport, conservative_model, panels
from simstate.step.crossings import find_crossing, first_change, turning_point
from simstate.step.dense_output import DenseOutput
from simstate.step.processes import finite_worlds
from simstate.step.timeline_events import PeriodicTask, check_multiple
from simstate.step.touchable_geoms import can_touch, touching_geoms

VALUES = st.floats(-3, 3).map(lambda x: round(x, 3))


# Crossings.


@given(st.lists(st.tuples(VALUES, VALUES, st.floats(-9, -1)), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_a_crossing_is_bracketed_within_its_own_tolerance(rows):
    """Cubic functions, a root and a tolerance of its own in each world."""
    root = torch.tensor([r for r, _, _ in rows], dtype=torch.float64)
    curve = torch.tensor([c for _, c, _ in rows], dtype=torch.float64).abs()
    tolerance = 10.0 ** torch.tensor([t for _, _, t in rows], dtype=torch.float64)
    asked = torch.zeros(len(rows), dtype=torch.long)

    def function(x, ids):
        asked[ids] += 1
        assert bool((x >= start[ids]).all() and (x <= end[ids]).all())
        return (x - root[ids]) * (0.1 + curve[ids] * (x - root[ids]) ** 2)

    start, end = root - 1.7, root + 0.9
    everyone = torch.arange(len(rows))
    at = function(start, everyone), function(end, everyone)
    asked.zero_()
    found = find_crossing(function, start, end, *at, tolerance)
    assert bool((function(found, everyone) > 0).all())
    assert bool((found - root <= 1.01 * tolerance).all())
    asked -= 1
    halvings = torch.log2(2.6 / tolerance)
    assert bool((asked <= 2 * halvings + 4).all())


def test_smooth_crossings_take_few_evaluations():
    """Bisection would take 36 for each."""
    count = torch.zeros(3, dtype=torch.long)
    root = torch.tensor([0.3, 0.61, 0.87], dtype=torch.float64)

    def function(x, ids):
        count[ids] += 1
        return torch.expm1(2 * (x - root[ids]))

    zero, one = torch.zeros(3).double(), torch.ones(3).double()
    everyone = torch.arange(3)
    at = function(zero, everyone), function(one, everyone)
    count.zero_()
    tolerance = torch.full((3,), 2e-11).double()
    found = find_crossing(function, zero, one, *at, tolerance)
    torch.testing.assert_close(found, root, rtol=0, atol=2e-11)
    assert max(count.tolist()) <= 9


def first_change_by_hand(side, wanted, times, values):
    start, end = 0.0, math.inf
    for time, value in sorted(zip(times, values, strict=True), key=lambda one: one[0]):
        sign = 0 if math.isnan(value) else int(np.sign(value))
        if side and sign == -side and (wanted in (0, side)):
            return start, time, side
        if sign:
            start, side = time, sign
    return start, end, side


SIDES = st.sampled_from([-1, 0, 1])
SAMPLES = st.sampled_from([-2.0, -0.5, 0.0, 0.4, 3.0, math.nan])


@given(
    SIDES,
    st.integers(1, 4).flatmap(
        lambda n: st.tuples(
            st.lists(SIDES, min_size=n, max_size=n),
            st.lists(st.lists(SAMPLES, min_size=n, max_size=n), min_size=1, max_size=6),
            st.randoms(use_true_random=False),
        )
    ),
)
@settings(max_examples=150, deadline=None)
def test_the_first_change_is_that_of_a_loop(wanted, drawn):
    sides, values, random = drawn
    times = [[random.random() for _ in row] for row in values]
    found = first_change(
        torch.tensor(sides), wanted, torch.tensor(times, dtype=torch.float64),
        torch.tensor(values, dtype=torch.float64),
    )  # fmt: skip
    for world, side in enumerate(sides):
        column = [row[world] for row in times], [row[world] for row in values]
        wished = first_change_by_hand(side, wanted, *column)
        assert tuple(float(part[world]) for part in found) == wished


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_a_turning_point_is_that_of_the_polynomial(rows):
    first, middle, last = torch.tensor(rows, dtype=torch.float64).T
    for row, at in zip(rows, turning_point(first, middle, last).tolist(), strict=True):
        c2, c1, c0 = np.polyfit([0, 0.5, 1], row, 2)
        if abs(c2) < 1e-9:
            continue
        turn = -c1 / (2 * c2)
        value = np.polyval([c2, c1, c0], turn)
        if min(abs(value), abs(turn), abs(turn - 1)) < 1e-9:
            continue  # on the edge of a condition
        differs = any(value * one < 0 for one in row)
        assert math.isnan(at) != (0 < turn < 1 and differs), (row, at)
        if not math.isnan(at):
            assert at == pytest.approx(turn, abs=1e-9)


def test_a_parabola_that_touches_zero_does_not_cross():
    first, middle, last = (torch.tensor([x]).double() for x in (1.0, 0.0, 1.0))
    assert bool(turning_point(first, middle, last).isnan())


# Dense output.

TWO = """<mujoco><option timestep="0.01"/><worldbody>
  <body><joint name="a" type="slide"/><joint name="b"/><geom size="0.1"/></body>
  <body pos="0 0 2"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
  <body pos="0 2 0"><joint type="ball"/><geom size="0.1" pos="0 0 1"/></body>
</worldbody></mujoco>"""


def random_state(sim, generator):
    sim.data.qpos[:] = torch.randn(sim.data.qpos.shape, generator=generator)
    sim.data.qvel[:] = torch.randn(sim.data.qvel.shape, generator=generator)
    for adr in (5, 9):
        quat = sim.data.qpos[:, adr : adr + 4]
        quat /= quat.norm(dim=1, keepdim=True)


def test_states_within_a_step_are_hermite_polynomials():
    sim = Simulation(mujoco.MjModel.from_xml_string(TWO), num_envs=4)
    generator = torch.Generator().manual_seed(3)
    dense = DenseOutput(worlds_of(sim))
    random_state(sim, generator)
    sim.data.time[:] = torch.tensor([0.5, 1.5, 2.5, 3.5])
    start = sim.data.qpos.clone().numpy(), sim.data.qvel.clone().numpy()
    dense.begin()
    random_state(sim, generator)
    sim.data.time[:] += 9.0
    end = sim.data.qpos.clone().numpy(), sim.data.qvel.clone().numpy()
    dense.end()
    share = torch.tensor([0.2, 0.9, 0.35, 0.7], dtype=torch.float64)
    h = torch.tensor([0.1, 0.2, 0.4, 0.3], dtype=torch.float64)
    moved = [2, 0, 3]
    dense.go_to(share, h, torch.tensor(moved))
    qpos, qvel = sim.data.qpos.numpy(), sim.data.qvel.numpy()
    for world in moved:
        s, length = float(share[world]), float(h[world])
        assert float(sim.data.time[world]) == pytest.approx(world + 0.5 + s * length)
        for q, v in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]:
            ends = [start[0][world, q], end[0][world, q]]
            speeds = [start[1][world, v], end[1][world, v]]
            curve = CubicHermiteSpline([0, length], ends, speeds)
            assert qpos[world, q] == pytest.approx(float(curve(s * length)))
            assert qvel[world, v] == pytest.approx(float(curve(s * length, 1)))
        for q, v in [(5, 5), (9, 8)]:
            one, other = (
                Rotation.from_quat(np.roll(ends[0][world, q : q + 4], -1))
                for ends in (start, end)
            )
            turn = (one.inv() * other).as_rotvec()
            last = end[1][world, v : v + 3]
            last = last + 0.5 * np.cross(turn, last)
            first = start[1][world, v : v + 3]
            curve = CubicHermiteSpline([0, length], [0 * turn, turn], [first, last])
            part, rate = curve(s * length), curve(s * length, 1)
            wished = (one * Rotation.from_rotvec(part)).as_matrix()
            found = Rotation.from_quat(np.roll(qpos[world, q : q + 4], -1))
            np.testing.assert_allclose(found.as_matrix(), wished, atol=1e-12)
            rate = rate - 0.5 * np.cross(part, rate)
            np.testing.assert_allclose(qvel[world, v : v + 3], rate, atol=1e-12)
    np.testing.assert_array_equal(qpos[1], end[0][1])
    dense.restore(torch.tensor([3, 2]))
    assert float(sim.data.time[3]) == 12.5
    for world, is_end in enumerate([False, True, True, True]):
        assert (qpos[world] == end[0][world]).all() == is_end
        assert (qvel[world] == end[1][world]).all() == is_end


# Periodic tasks.


@given(
    st.floats(0.03, 2).map(lambda x: round(x, 3)),
    st.floats(-1, 1).map(lambda x: round(x, 2)),
    st.lists(st.floats(0, 5).map(lambda x: round(x, 2)), min_size=3, max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_samples_of_a_task_are_counted_from_its_offset(period, offset, times):
    sim = Simulation(mujoco.MjModel.from_xml_string(TWO), num_envs=3)
    task = PeriodicTask(sim, lambda sim, ids: None, period, offset, "t")
    time = torch.tensor(times, dtype=torch.float64)
    counts = []
    for t in times:
        n = -1
        while offset + (n + 1) * period <= t + 1e-9 * period:
            n += 1
        counts.append(n)
    sample = task.sample(time)
    assert sample.tolist() == counts
    assert task.is_due(sample).tolist() == [n >= 0 for n in counts]
    until = [offset + (n + 1) * period - t for n, t in zip(counts, times, strict=True)]
    if offset <= 0:
        np.testing.assert_allclose(task.until_next(time), until, atol=1e-12)
    h = np.array([0.01, 0.02, 0.007])
    is_due = any(n >= 0 for n in counts)
    assert (task.quiet_steps(time.numpy(), h) == 0) >= is_due
    task.last.copy_(sample)
    assert not bool(task.is_due(sample).any())
    steps = task.quiet_steps(time.numpy(), h)
    after = torch.as_tensor(time.numpy() + (steps + 1) * h)
    is_before = sample < 0
    for k in range(steps):
        at = task.sample(torch.as_tensor(time.numpy() + k * h))
        assert bool((at == sample).logical_or(is_before & (at < 0)).all())
    if not bool(is_before.any()):
        assert bool((task.sample(after + 2e-9 * period) != sample).any())


def test_times_of_stochastic_schemes_are_multiples_of_a_step():
    for value in (0.3, -0.3, 0.1 * 7, 1e4, 0.1 * (3 + 9e-7)):
        check_multiple("every", value, 0.1)
    for value in (0.25, 0.1 * (3 + 2e-6), 0.1 * (3 - 2e-6)):
        with pytest.raises(InvalidInputError):
            check_multiple("every", value, 0.1)


# Pairs of geoms.

MANY = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1" {floor}/>
  <geom name="wall" type="box" size="1 1 1" pos="5 0 0" contype="2" conaffinity="4"/>
  <body name="post"><geom name="post" size="0.1"/>
    <body name="fixed" pos="0 0 1"><geom name="knob" size="0.1" contype="6"/></body>
  </body>
  <body name="a" pos="0 0 3"><freejoint/>
    <geom name="a0" size="0.1" {a}/><geom name="a1" size="0.1" pos="1 0 0"/>
    <body name="b" pos="0 1 0"><joint {limit}/>
      <geom name="b0" size="0.1" contype="{b}" conaffinity="3"/>
      <body name="weld" pos="0 1 0"><geom name="weld" size="0.1" conaffinity="4"/>
        <body name="c" pos="0 1 0"><joint/><geom name="c0" size="0.1"/></body>
      </body>
    </body>
  </body>
  <body name="d" pos="3 0 3"><freejoint/>
    <geom name="d0" type="box" size="0.1 0.1 0.1" contype="2" conaffinity="1"/></body>
  <body name="e" pos="3 3 3"><joint/>
    <geom name="e0" size="0.1" contype="0" conaffinity="0"/></body>
</worldbody><contact>{contact}</contact></mujoco>"""
CONTACTS = (
    "",
    '<exclude body1="d" body2="a"/><exclude body1="a" body2="c"/>',
    '<pair geom1="e0" geom2="knob"/><pair geom1="a0" geom2="a1"/>'
    '<exclude body1="c" body2="d"/>',
)


def with_margins(text):
    """The model with a margin of 100 m: each pair that MuJoCo tests is a contact."""
    margins = '<default><geom margin="100"/><pair margin="100"/></default>'
    text = text.replace("<worldbody>", f"{margins}<worldbody>", 1)
    model = mujoco.MjModel.from_xml_string(text)
    model.body_contype[:] = model.body_conaffinity[:] = 7  # masks of geoms may change
    return model


@pytest.mark.parametrize("contact", CONTACTS)
@pytest.mark.parametrize("filters", [True, False])
@pytest.mark.parametrize("masks", [('contype="3"', 4), ("", 0), ('conaffinity="0"', 2)])
def test_pairs_are_those_that_mujoco_finds_near_to_each_other(contact, filters, masks):
    text = MANY.format(floor="", a=masks[0], b=masks[1], contact=contact, limit="")
    model = mujoco.MjModel.from_xml_string(text)
    if not filters:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    wide = with_margins(text)
    wide.opt.disableflags = model.opt.disableflags
    data = mujoco.MjData(wide)
    mujoco.mj_forward(wide, data)
    weld = model.body_weldid[model.geom_bodyid]
    wished = {tuple(sorted(pair)) for pair in data.contact.geom.tolist()}
    wished = {(a, b) for a, b in wished if weld[a] != weld[b]}
    found = touching_geoms(model)
    assert {tuple(pair) for pair in found.tolist()} == wished
    assert len(found) == len(wished)
    assert can_touch(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert len(touching_geoms(model)) == 0
    assert not can_touch(model)


@pytest.mark.parametrize("flag", ["LIMIT", "CONSTRAINT", "CONTACT", "GRAVITY"])
def test_limits_touch_without_contacts(flag):
    text = MANY.format(
        floor="", a="", b=0, contact="", limit='limited="true" range="-1 1"'
    )
    model = mujoco.MjModel.from_xml_string(text)
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    assert can_touch(model)
    model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    assert can_touch(model) == (flag in ("CONTACT", "GRAVITY"))
    model.opt.disableflags, model.jnt_limited[:] = 0, 0
    assert not can_touch(model)


# Conservation.


def test_drifts_and_sizes_are_norms_of_the_samples():
    time = np.array([0.5, 0.7, 0.9])
    energy = np.array([-2.0, -2.5, -1.75])
    linear = np.array([[3.0, 4, 0], [3, 4, 12], [0, 0, 0]])
    angular = np.array([[0.0, 0, 1], [2, 0, 1], [0, 0, 4]])
    lengths = np.array([0.0, 1e-9, 3e-9])
    order = {"position": 4.0}
    report = ConservationReport("x", 0.1, time, energy, linear, angular, lengths, order)
    assert list(report.drifts().values()) == [0.5, 12.0, 3.0, 3e-9]
    assert list(report.sizes().values()) == [2.5, 13.0, 4.0, 1.0]
    known = report.to_dict()
    assert known["seconds"] == pytest.approx(0.4)
    assert known["drift"] == report.drifts()
    assert known["size"] == report.sizes()
    assert (known["scheme"], known["timestep"], known["order"]) == ("x", 0.1, order)


def test_the_conserved_quantities_of_one_world_of_several():
    """Next to MuJoCo's energy, and to sums over the bodies by their velocities."""
    model = mujoco.MjModel.from_xml_string(TWO)
    sim = Simulation(model, num_envs=3, integrator=integrate.RK4())
    random_state(sim, torch.Generator().manual_seed(8))
    sim.expand("body_mass")[:] *= torch.tensor([[1.0], [1.5], [2.0]])
    sim.expand("opt.gravity")[:, 1] = torch.tensor([0.75, 0.5, 0.25])
    sim.data.time[:] = torch.tensor([1.0, 2.0, 3.0])
    before = sim.state.clone()
    found = integrate.report(sim, 0.08, env_id=2, samples=4)
    assert torch.equal(sim.state, before)
    np.testing.assert_allclose(found.time, 3 + np.array([0, 2, 4, 6, 8]) * 0.01)
    shorter = integrate.report(sim, 0.07, env_id=2, samples=3)
    np.testing.assert_allclose(shorter.time, 3 + np.array([0, 3, 6, 7]) * 0.01)
    model.body_mass[:] *= 2.0
    model.opt.gravity[1] = 0.25
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    for row in range(5):
        data.qpos[:], data.qvel[:] = sim.data.qpos[2], sim.data.qvel[2]
        mujoco.mj_forward(model, data)
        linear, angular, energy = np.zeros(3), np.zeros(3), 0.0
        for body in range(1, model.nbody):
            six = np.zeros(6)
            kind = mujoco.mjtObj.mjOBJ_XBODY
            mujoco.mj_objectVelocity(model, data, kind, body, six, 0)
            arm = data.xipos[body] - data.xpos[body]
            speed = six[3:] + np.cross(six[:3], arm)
            axes = data.ximat[body].reshape(3, 3)
            inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
            mass = model.body_mass[body]
            linear += mass * speed
            angular += inertia @ six[:3] + np.cross(data.xipos[body], mass * speed)
            energy += 0.5 * mass * speed @ speed + 0.5 * six[:3] @ inertia @ six[:3]
            energy -= mass * model.opt.gravity @ data.xipos[body]
        assert found.energy[row] == pytest.approx(energy, rel=1e-9)
        np.testing.assert_allclose(found.linear_momentum[row], linear, rtol=1e-9)
        np.testing.assert_allclose(found.angular_momentum[row], angular, rtol=1e-9)
        sim.step(2)


def test_what_takes_energy_is_named_and_removed():
    text = """<mujoco><option {option}/><worldbody>
      <geom type="plane" size="1 1 1"/>
      <body pos="0 0 1"><joint name="j" {joint}/><geom size="0.1"/><site name="s"/>
      </body>
      <site name="o"/></worldbody>
      <tendon><spatial {tendon}><site site="s"/><site site="o"/></spatial></tendon>
      {rest}</mujoco>"""
    motor = '<actuator><motor joint="j"/></actuator>'
    cases = {
        "joint damping": {"joint": 'damping="1"'},
        "tendon damping": {"tendon": 'damping="1"'},
        "joint friction": {"joint": 'frictionloss="1"'},
        "tendon friction": {"tendon": 'frictionloss="1"'},
        "the medium's drag": {"option": 'density="1"'},
        "actuation": {"rest": motor},
        "limits": {"joint": 'limited="true" range="-1 1"'},
    }
    empty = {"option": "", "joint": "", "tendon": "", "rest": ""}
    for name, change in cases.items():
        model = mujoco.MjModel.from_xml_string(text.format(**empty | change))
        kept, found = conservative_model(model)
        assert found == [name, "contacts"]
        again, rest = conservative_model(kept)
        bits = mujoco.mjtDisableBit
        wished = bits.mjDSBL_CONTACT | (name == "actuation") * bits.mjDSBL_ACTUATION
        wished |= (name == "limits") * bits.mjDSBL_LIMIT
        assert kept.opt.disableflags == wished
        assert rest == (["limits"] if name == "limits" else [])
        assert again.opt.disableflags == wished
        assert model.opt.disableflags == 0
        assert not kept.dof_damping.any()
        assert not kept.dof_frictionloss.any()
        assert not kept.tendon_damping.any()
        assert not kept.tendon_frictionloss.any()
        assert kept.opt.density == kept.opt.viscosity == 0.0
    tendon = 'limited="true" range="0 2"'
    model = mujoco.MjModel.from_xml_string(text.format(**empty | {"tendon": tendon}))
    assert conservative_model(model)[1] == ["limits", "contacts"]
    model = mujoco.MjModel.from_xml_string(
        text.format(**empty | {"option": 'viscosity="0.1"'})
    )
    assert conservative_model(model)[1] == ["the medium's drag", "contacts"]


@pytest.mark.parametrize("contact", CONTACTS[::2])
@pytest.mark.parametrize("masks", [(1, 0), (0, 1), (0, 0), (2, 1), (4, 4)])
def test_contacts_are_named_where_two_geoms_can_collide(contact, masks):
    text = MANY.format(floor="", a="", b=0, contact=contact, limit="")
    model = mujoco.MjModel.from_xml_string(text)
    model.geom_contype[:], model.geom_conaffinity[:] = masks
    wide = with_margins(text)
    wide.geom_contype[:], wide.geom_conaffinity[:] = masks
    data = mujoco.MjData(wide)
    mujoco.mj_forward(wide, data)
    assert ("contacts" in conservative_model(model)[1]) == (data.ncon > 0)


@pytest.mark.parametrize(
    "pair",
    [("a0", "a1"), ("a0", "b0"), ("b0", "weld"), ("weld", "c0"), ("floor", "wall"),
     ("floor", "post"), ("post", "knob"), ("a0", "c0"), ("c0", "floor"), ("e0", "post"),
     ("c0", "knob"), ("c0", "wall"), ("d0", "e0")],
)  # fmt: skip
def test_one_pair_of_geoms_is_enough_to_collide(pair):
    """Geoms that are fixed to each other, and a body and its parent, do not collide."""
    text = MANY.format(floor="", a="", b=0, contact="", limit="")
    model, wide = mujoco.MjModel.from_xml_string(text), with_margins(text)
    for one in (model, wide):
        one.geom_contype[:] = one.geom_conaffinity[:] = 0
        one.geom(pair[0]).contype[:] = one.geom(pair[1]).conaffinity[:] = 1
    data = mujoco.MjData(wide)
    mujoco.mj_forward(wide, data)
    assert ("contacts" in conservative_model(model)[1]) == (data.ncon > 0)
    assert (len(touching_geoms(model)) > 0) == (data.ncon > 0)


class Axes:
    """Keeps what is drawn."""

    def semilogy(self, time, values, **look):
        self.lines = time, values

    def set_title(self, title, **look):
        self.title = title

    def grid(self, **look):
        pass


def test_the_panels_show_changes_since_the_start():
    time = np.array([1.0, 2, 3])
    linear = np.array([[1.0, 1, 1], [1, 1, 3], [4, 5, 1]])
    angular = np.array([[0.0, 2, 0], [0, 1, 0], [0, 2, 0]])
    energy, lengths = np.array([5.0, 3, 6]), np.array([0, 1e-9, 1e-20])
    report = ConservationReport("x", 0.1, time, energy, linear, angular, lengths, {})
    shown = []
    for draw in panels(report, "own: "):
        axes = Axes()
        draw(axes)
        assert axes.title.startswith("own: ")
        assert axes.lines[0].tolist() == [2, 3]
        shown.append(axes.lines[1].tolist())
    assert shown == [[2, 1], [2, 5], [1, 1e-18], [1e-9, 1e-18]]


def test_orders_compare_each_step_with_the_half_of_it():
    """The oscillator's error of explicit Euler steps follows from its matrix."""
    text = """<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body>
      <joint type="slide" stiffness="2"/><geom size="0.1" mass="0.5"/>
      </body></worldbody></mujoco>"""
    scheme = integrate.Euler()
    sim = Simulation(mujoco.MjModel.from_xml_string(text), 2, integrator=scheme)
    sim.data.qpos[:] = torch.tensor([[0.3], [0.7]])
    sim.data.qvel[:] = torch.tensor([[0.1], [-0.4]])
    start = np.array([float(sim.data.qpos[1]), float(sim.data.qvel[1])])
    found = integrate.report(sim, 0.5, env_id=1)
    ends = []
    for parts in (1, 2, 4):
        step = np.eye(2) + 0.1 / parts * np.array([[0, 1], [-4, 0]])
        ends.append(np.linalg.matrix_power(step, 5 * parts) @ start)
    wished = np.log2(np.abs(ends[0] - ends[1]) / np.abs(ends[1] - ends[2]))
    assert found.order["position"] == pytest.approx(wished[0], rel=1e-6)
    assert found.order["velocity"] == pytest.approx(wished[1], rel=1e-6)
    assert "attitude" not in found.order
    assert found.quaternion_norm.tolist() == [0.0] * 6


# Worlds that diverged, and worlds that are fast.


class Still(integrate.Process):
    """A process that stays as it is."""

    def rate(self, t, sim):
        return torch.zeros_like(self.value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.1e10, -1.1e10])
def test_worlds_with_huge_numbers_of_either_sign_are_not_finite(value):
    sim = Simulation(mujoco.MjModel.from_xml_string(TWO), 5, integrator=integrate.RK4())
    process = Still("wind", [0.0, 0.0])
    sim.add_process(process)
    sim.data.qpos[1, 3], sim.data.qvel[3, 10] = value, value
    process.value[4, 1] = value
    sim.data.qpos[0, 2], sim.data.qvel[2, 0] = -1e10, 1e10  # just allowed
    found = finite_worlds(ledger_of(sim))
    assert found.tolist() == [True, False, True, False, False]


@pytest.mark.parametrize(("speed", "warns"), [(999.5, False), (-1000.5, True)])
def test_a_warning_comes_with_a_kilometre_per_second(speed, warns):
    without = TWO.replace("<option ", '<option gravity="0 0 0" ')
    sim = Simulation(
        mujoco.MjModel.from_xml_string(without), 2, integrator=integrate.DP54()
    )
    sim.add_force(integrate.PointMassGravity(4e14, (0.0, 0.0, -7e6)))
    sim.data.qvel[1, 3] = speed
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sim.step()
        sim.step()
    assert len(caught) == warns
