"""Derivatives against MuJoCo's, closed forms and differences of plain MuJoCo steps."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from tests.mujoco_versions import IS_4
from tests.raised import raises

from simstate import Simulation, study
from simstate.base.errors import SimStateError
from simstate.engine.core import is_available
from simstate.integrate import DP54, RK4
from simstate.scene import models
from simstate.study import derivatives

F64 = torch.float64
FULL = mujoco.mjtState.mjSTATE_INTEGRATION.value
CLOSE = 1e-8 if is_available() else 1e-6
"""Of mjd_transitionFD; without the core displacements are rounded in other places."""
ALL_JOINTS = """<mujoco><option timestep="0.004" integrator="{i}"/><worldbody>
<geom type="plane" size="9 9 1"/>
<body pos="0.1 -0.2 {z}"><freejoint name="root"/>
<geom name="hull" type="box" size=".3 .2 .1" pos=".02 .01 .03" mass="2.3"/>
<body pos=".3 0 .1"><joint name="ball" type="ball" damping=".2"/>
<geom type="capsule" fromto="0 0 0 .2 .1 .05" size=".04" mass=".7"/>
<body pos=".2 .1 0"><joint name="hinge" axis="0 1 1" damping=".1" stiffness="3"/>
<geom name="tip" type="sphere" size=".06" pos=".1 0 .02" mass=".4"/></body></body>
<body pos="-.3 0 .1"><joint name="slide" type="slide" axis="1 0 1" damping="4"/>
<geom type="sphere" size=".05" mass=".5"/></body></body></worldbody>
<actuator><general name="lag" joint="hinge" gear="2" dyntype="filter" dynprm=".05"/>
<position name="servo" joint="slide" kp="30" kv="1.5"/>
<motor name="push" joint="hinge" gear=".7" ctrlrange="-1 1"/></actuator></mujoco>"""


def all_joints(own="implicitfast", worlds=3, z=1.5, seed=0, **options):
    """Every kind of joint, in worlds that differ, with velocities and controls.

    `own` is MuJoCo's integrator.
    """
    model = mujoco.MjModel.from_xml_string(ALL_JOINTS.format(i=own, z=z))
    sim = Simulation(model, worlds, **options)
    draw = np.random.default_rng(seed)
    qpos = np.tile(model.qpos0, (worlds, 1))
    for row in qpos:
        velocity = draw.normal(size=model.nv) * 0.5
        velocity[:3] *= 0.1
        mujoco.mj_integratePos(model, row, velocity, 1.0)
    sim.data.qpos[:] = torch.as_tensor(qpos)
    sim.data.qvel[:] = torch.as_tensor(draw.normal(size=(worlds, model.nv)))
    sim.data.act[:] = torch.as_tensor(draw.normal(size=(worlds, model.na)))
    sim.data.ctrl[:] = torch.as_tensor(draw.uniform(-0.8, 0.8, (worlds, model.nu)))
    return sim


def mujocos(sim, world, eps=1e-6, model=None):
    model = sim.model if model is None else model
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, sim.state[world].numpy(), FULL)
    size = 2 * model.nv + model.na
    a, b = np.zeros((size, size)), np.zeros((size, model.nu))
    mujoco.mjd_transitionFD(model, data, eps, True, a, b, None, None)
    return a, b


def stepped(model, row, steps, change):
    """Plain MuJoCo: the state after some steps, from a changed one."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, row, FULL)
    change(model, data)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data


def by_hand(model, row, steps, change, eps):
    """A column by differences of plain MuJoCo steps."""
    ahead = stepped(model, row, steps, lambda m, d: change(m, d, eps))
    behind = stepped(model, row, steps, lambda m, d: change(m, d, -eps))
    position = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, position, 2 * eps, behind.qpos, ahead.qpos)
    rest = [
        (getattr(ahead, n) - getattr(behind, n)) / (2 * eps) for n in ("qvel", "act")
    ]
    return np.concatenate([position, *rest])


# Plain steps.


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
@pytest.mark.parametrize("z", [1.5, 0.16], ids=["free", "in contact"])
def test_one_step_is_mjd_transitionfd(integrator, z):
    sim = all_joints(integrator, z=z)
    found = derivatives(sim)
    for world in range(3):
        a, b = mujocos(sim, world)
        np.testing.assert_allclose(found.A[world], a, atol=CLOSE * np.abs(a).max())
        np.testing.assert_allclose(found.B[world], b, atol=CLOSE * np.abs(b).max())
    assert found.A.shape == (3, 23, 23)
    assert found.B.shape == (3, 23, 3)
    assert found.names_of_rows[3:7] == ("root.rx", "root.ry", "root.rz", "ball.rx")
    assert found.names_of_columns[-4:] == ("lag.act", "lag", "servo", "push")
    data = mujoco.MjData(sim.model)
    mujoco.mj_setState(sim.model, data, sim.state[0].numpy(), FULL)
    mujoco.mj_forward(sim.model, data)
    assert (data.ncon > 0) is (z < 1)
    assert z < 1 or bool(found.trusted.all())


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "arm", "cartpole"])
def test_bundled_robots_are_mjd_transitionfds(name):
    """After a second of motion, on the ground where they have one."""
    sim = Simulation(models.spec(name).compile(), 2)
    sim.data.ctrl[1] += 0.05
    sim.step(300)
    if sim.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        pytest.skip("mjd_transitionFD has no RK4")
    found = derivatives(sim, error=False)
    for world in range(2):
        a, b = mujocos(sim, world)
        np.testing.assert_allclose(found.A[world], a, atol=CLOSE * np.abs(a).max())
        np.testing.assert_allclose(found.B[world], b, atol=CLOSE * np.abs(b).max())


@pytest.mark.parametrize("integrator", ["RK4", "implicitfast"])
def test_several_steps_are_those_of_plain_mujoco(integrator):
    sim = all_joints(integrator)
    found = derivatives(sim, steps=5)
    model, nv = sim.model, sim.model.nv
    for world in (0, 2):
        row = sim.state[world].numpy().copy()
        for dof in (0, 4, 7, 9):

            def turn(m, d, by, dof=dof):
                unit = np.zeros(nv)
                unit[dof] = 1.0
                mujoco.mj_integratePos(m, d.qpos, unit, by)

            def push(m, d, by, dof=dof):
                d.qvel[dof] += by

            for column, change in ((dof, turn), (nv + dof, push)):
                want = by_hand(model, row, 5, change, 1e-6)
                scale = np.abs(want).max()
                np.testing.assert_allclose(
                    found.A[world, :, column], want, atol=CLOSE * scale
                )

        def drive(m, d, by):
            d.ctrl[1] += by

        want = by_hand(model, row, 5, drive, 1e-6)
        np.testing.assert_allclose(found.B[world, :, 1], want, atol=1e-8)


def test_gains_that_depend_on_velocity_are_differentiated_through_the_step():
    """Where MuJoCo 3's mjd_transitionFD keeps a factor of the undisturbed step."""
    xml = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody>
    <body><joint name="hinge" axis="0 1 0"/>
    <inertial pos=".1 0 .3" mass="1.4" diaginertia=".02 .05 .03"/></body></worldbody>
    <actuator><general joint="hinge" gear="3" gaintype="affine" gainprm="2 0 -0.9"
    biastype="affine" biasprm="0 0 -.4"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    sim = Simulation(model, 2)
    sim.data.qvel[:, 0] = torch.tensor([1.3, -2.1], dtype=F64)
    sim.data.ctrl[:, 0] = torch.tensor([0.7, 0.4], dtype=F64)
    found = derivatives(sim)

    def drive(m, d, by):
        d.ctrl[0] += by

    for world in range(2):
        row = sim.state[world].numpy().copy()
        want = by_hand(model, row, 1, drive, 1e-6)
        np.testing.assert_allclose(found.B[world, :, 0], want, rtol=1e-7)
        differs = np.abs(mujocos(sim, world)[1][:, 0] - want).max() > 1e-4
        assert differs == (not IS_4)


# By parameters, through integrators and force models.


@pytest.mark.parametrize("steps", [1, 4])
def test_parameters_are_those_of_compiled_models(steps):
    """body_mass with the constants that follow; worlds have other damping."""
    sim = all_joints(worlds=2)
    sim.expand("dof_damping")[1, 9] = 0.35
    before = sim.snapshot()
    found = derivatives(sim, by=("body_mass", "dof_damping"), steps=steps)
    assert found.by["body_mass"].shape == (2, 23, sim.model.nbody)
    assert found.names_of_columns[-1] == "dof_damping[slide]"
    for world in range(2):
        row = sim.state[world].numpy().copy()
        model = mujoco.MjModel.from_xml_string(
            ALL_JOINTS.format(i="implicitfast", z=1.5)
        )
        model.dof_damping[9] = sim.expand("dof_damping")[world, 9]

        def heavier(m, d, by):
            m.body_mass[2] = 0.7 + by
            kept = d.qpos.copy()
            mujoco.mj_setConst(m, d)
            mujoco.mj_setState(m, d, row, FULL)  # noqa: B023
            d.qpos[:] = kept

        def damped(m, d, by, own=float(model.dof_damping[9])):
            m.dof_damping[9] = own + by

        want = by_hand(model, row, steps, heavier, 1e-5)
        model.body_mass[2] = 0.7
        found_mass = found.by["body_mass"][world, :, 2]
        np.testing.assert_allclose(found_mass, want, atol=1e-7 * np.abs(want).max())
        want = by_hand(model, row, steps, damped, 1e-5)
        got = found.by["dof_damping"][world, :, 9]
        np.testing.assert_allclose(got, want, atol=1e-6 * np.abs(want).max())
    after = sim.snapshot()
    for name, value in before.slots.items():
        assert torch.equal(value, after.slots[name]), name


def pendulum(angle, scheme, timestep=0.02):
    xml = f"""<mujoco><option timestep="{timestep}" gravity="0 0 -9.81"/><worldbody>
    <body pos="0 0 1"><joint name="hinge" axis="0 1 0" damping="0.3"/>
    <inertial pos="0 0 -0.7" mass="1.4" diaginertia="0.02 0.05 0.03"/></body>
    </worldbody><actuator><motor joint="hinge" gear="0.5"/></actuator></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2, integrator=scheme)
    sim.data.qpos[:, 0] = torch.tensor(angle, dtype=F64)
    return sim


@pytest.mark.parametrize(
    "scheme", [RK4(), DP54(rtol=1e-10, atol=1e-10)], ids=["fixed", "adaptive"]
)
def test_a_pendulum_at_rest_is_the_matrix_exponential(scheme):
    """Hanging and upright; by angle, rate, torque and the length to the COM."""
    sim = pendulum((0.0, math.pi), scheme)
    found = derivatives(sim, by=("state", "ctrl", "body_mass"), steps=10)
    inertia = 0.05 + 1.4 * 0.49
    for world, sign in enumerate((1.0, -1.0)):
        a = np.array([[0, 1], [-sign * 1.4 * 9.81 * 0.7 / inertia, -0.3 / inertia]])
        b = np.array([[0], [0.5 / inertia]])
        both = expm(0.2 * np.block([[a, b], [np.zeros((1, 3))]]))
        np.testing.assert_allclose(found.A[world], both[:2, :2], atol=2e-6)
        np.testing.assert_allclose(found.B[world], both[:2, 2:], atol=2e-6)
    # At rest in equilibrium the mass has no effect.
    assert float(found.by["body_mass"].abs().max()) < 1e-8


def test_a_free_body_by_its_mass_and_the_force_on_it():
    """v = F t / m: δv = −F t / m² δm, x half of that times t; force by a model."""
    xml = """<mujoco><option timestep="0.05" gravity="0 0 0"/><worldbody><body>
    <freejoint name="root"/><inertial pos=".1 .2 -.1" mass="2.5"
    diaginertia="1 2 2.5"/></body></worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2, integrator=RK4())
    sim.data.qpos[:, 3:7] = torch.tensor(
        [[0.5, 0.5, -0.5, 0.5], [0.8, 0.0, 0.6, 0.0]], dtype=F64
    )
    force = sim.memory("force", (3,), reset=None, stage="acceleration")
    force[:] = torch.tensor([[3.0, 0.0, -1.0], [0.0, 2.0, 0.5]], dtype=F64)

    def push(t, sim):
        sim.data.xfrc_applied[:, 1, :3] += force

    sim.add_force(push)
    found = derivatives(
        sim, of="state", by={"mass": "body_mass", "force": force}, steps=20
    )
    for world in range(2):
        by_mass = found.by["mass"][world, :, 1]
        want = -force[world] / 2.5**2
        np.testing.assert_allclose(by_mass[6:9], want, atol=1e-8)
        np.testing.assert_allclose(by_mass[:3], want / 2, atol=1e-8)
        np.testing.assert_allclose(
            found.by["force"][world, 6:9], np.eye(3) / 2.5, atol=1e-8
        )
    assert bool(found.trusted[:, found.columns["force"]].all())


def test_a_spinning_satellite_by_its_state_transition():
    """About a spin along an axis of symmetry: Euler's equations, exactly linear."""
    xml = """<mujoco><option timestep="0.02" gravity="0 0 0"/><worldbody><body>
    <freejoint name="root"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1.7"/>
    </body></worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2, integrator=RK4())
    sim.data.qpos[:, 3:7] = torch.tensor([[0.5, 0.5, -0.5, 0.5]], dtype=F64)
    spin = torch.tensor([2.0, -1.1], dtype=F64)
    sim.data.qvel[:, 5] = spin
    found = derivatives(sim, steps=50)
    for world, s in enumerate(spin.tolist()):
        n = 0.7 * s
        rates = np.array([[0, -n, 0], [n, 0, 0], [0, 0, 0.0]])
        turn = np.array([[0, s, 0], [-s, 0, 0], [0, 0, 0.0]])
        flow = expm(np.block([[turn, np.eye(3)], [np.zeros((3, 3)), rates]]))
        part = found.A[world][[3, 4, 5, 9, 10, 11]][:, [3, 4, 5, 9, 10, 11]]
        np.testing.assert_allclose(part, flow, atol=1e-5)


def test_quantities_by_their_closed_forms():
    """The COM of the pendulum, and an attitude against SciPy's rotations."""
    sim = pendulum((0.3, -0.8), RK4())
    found = derivatives(sim, of={"bob": lambda s: s.data.xipos[:, 1]}, steps=0)
    for world, angle in enumerate((0.3, -0.8)):
        want = [-0.7 * math.cos(angle), 0, 0.7 * math.sin(angle)]
        np.testing.assert_allclose(found.A[world, :, 0], want, atol=1e-9)
    free = all_joints()
    name = "model.root_link_quat_w"
    found = derivatives(free, of=name, steps=0)
    assert found.names_of_rows == tuple(f"{name}[{k}]" for k in range(4))
    for world in range(3):
        w, *xyz = free.data.qpos[world, 3:7].tolist()
        start = Rotation.from_quat([*xyz, w])
        for axis in range(3):
            vector = np.zeros(3)
            vector[axis] = 1e-5
            ahead = (start * Rotation.from_rotvec(vector)).as_quat()
            behind = (start * Rotation.from_rotvec(-vector)).as_quat()
            want = (ahead - behind)[[3, 0, 1, 2]] / 2e-5
            np.testing.assert_allclose(found.A[world, :, 3 + axis], want, atol=1e-9)


# Errors and switches.


BALL = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 1"/>
<body pos="0 0 .1"><joint name="lift" type="slide" axis="0 0 1"/>
<geom type="sphere" size=".1" mass=".8"/></body>
<body pos="1 0 1"><joint name="stop" type="slide" axis="1 0 0" range="-.2 .2"
limited="true"/><geom type="sphere" size=".1" mass=".8"/></body>
<body pos="2 0 1"><joint name="dry" type="slide" axis="1 0 0" frictionloss=".4"/>
<geom type="sphere" size=".1" mass=".8"/></body></worldbody></mujoco>"""


def breakaway(model, row):
    """The speed at which the friction loss of the third joint saturates."""
    data = mujoco.MjData(model)
    low, high = 0.0, 1.0
    for _ in range(60):
        speed = (low + high) / 2
        mujoco.mj_setState(model, data, row, FULL)
        data.qvel[2] = speed
        mujoco.mj_forward(model, data)
        force = data.efc_force[list(data.efc_type).index(1)]
        low, high = (speed, high) if abs(force) < 0.4 else (low, speed)
    return low


@pytest.mark.parametrize("general", [False, True], ids=["core", "general"])
def test_a_switch_is_flagged_and_nothing_else(general):
    """A contact, a limit and a friction loss about to switch; each in one world."""
    sim = Simulation(mujoco.MjModel.from_xml_string(BALL), 4)
    sim.data.qpos[:, 0] = 0.5
    sim.data.qpos[1, 0] = 0.0  # touches the plane
    sim.data.qpos[2, 1] = 0.2  # at the limit
    sim.data.qvel[:, 2] = torch.tensor([0.3, -0.2, 0.4, 0.0], dtype=F64)
    sim.data.qvel[3, 2] = breakaway(sim.model, sim.state[3].numpy())
    if general:
        sim.add_force(lambda t, sim: None)
    found = derivatives(sim, by="state")
    columns = found.names_of_columns
    flagged = [
        {columns[k] for k in row.nonzero().flatten().tolist()} for row in found.switched
    ]
    assert flagged[0] == set()
    assert "lift" in flagged[1]
    assert "stop" in flagged[2]
    assert "dry.rate" in flagged[3]
    for world, others in ((1, ("stop", "dry.rate")), (2, ("lift", "dry.rate"))):
        assert not flagged[world] & set(others)
    assert not bool((found.trusted & found.switched).any())
    assert "lift" in found.explain(1)
    assert found.explain(0) == "all columns are trusted"


@pytest.mark.parametrize("boxes", [1, 2])  # two are two islands
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_friction_cone_about_to_slip_is_flagged(cone, boxes):
    """A box is pushed ever harder: somewhere between sticking and slipping."""
    box = """<body pos="{x} 0 .098"><joint type="slide" axis="1 0 0" name="x{x}"/>
    <joint type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="1.3"
    friction=".5 .005 .0001" condim="3"/></body>"""
    xml = f"""<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
    <geom type="plane" size="9 9 1" friction=".5 .005 .0001"/>
    {"".join(box.format(x=k) for k in range(boxes))}</worldbody>
    <actuator><motor joint="x0" gear="2"/></actuator></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 31)
    sim.data.ctrl[:, 0] = 1.0
    sim.step(300)
    push = torch.linspace(0.0, 6.0, 31, dtype=F64)
    sim.data.ctrl[:, 0] = push
    found = derivatives(sim, by="ctrl", step=0.11)
    flags = found.switched[:, 0]
    assert bool(flags.any())
    assert not bool(flags[push < 1.0].any())  # sticks: μ m g is at 3.2
    assert not bool(flags[push > 4.5].any())  # slips


def test_the_error_estimate_bounds_the_error():
    """A stiff spring of higher order: differences are wrong by a known amount."""
    xml = """<mujoco><option timestep="0.01" gravity="0 0 0" integrator="Euler"/>
    <worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
    <geom type="sphere" size=".1" mass="2"/></body></worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 3)
    sim.data.qpos[:, 0] = torch.tensor([0.2, 0.5, -0.7], dtype=F64)

    def spring(t, sim):
        sim.data.qfrc_applied[:, 0] -= 4000.0 * torch.sin(30 * sim.data.qpos[:, 0])

    sim.add_force(spring)
    exact = 1.0 - 0.01**2 * 4000.0 / 2 * 30 * torch.cos(30 * sim.data.qpos[:, 0])
    for step in (1e-2, 1e-3, 1e-4):
        found = derivatives(sim, by="state", step=step, tolerance=1e-4)
        want = torch.stack([exact, (exact - 1.0) / 0.01], dim=1)
        wrong = (found.A[:, :, 0] - want).abs().amax(dim=1)
        bound = found.error[:, 0] * found.A[:, :, 0].abs().amax(dim=1)
        assert bool((wrong <= bound).all())
        assert bool((bound <= 100 * wrong + 1e-9).all())
        assert bool(found.trusted[:, 0].all()) is (step < 1e-3)


def test_controls_at_their_limits_are_displaced_inwards():
    for force in (False, True):
        sim = all_joints(worlds=3)
        sim.data.ctrl[:, 2] = torch.tensor([1.0, -1.0, 1.7], dtype=F64)
        if force:
            sim.add_force(lambda t, sim: None)
        found = derivatives(sim, by="ctrl")
        for world in (0, 1):
            b = mujocos(sim, world)[1]
            np.testing.assert_allclose(found.B[world], b, atol=1e-7 * np.abs(b).max())
        assert float(found.B[2, :, 2].abs().max()) == 0.0  # beyond: without effect


@pytest.mark.parametrize("general", [False, True], ids=["core", "general"])
def test_controls_that_are_not_clamped_act_beyond_their_range(general):
    """mjd_transitionFD returns 0 there; the steps themselves do not."""
    model = """<mujoco><option timestep="0.01"><flag clampctrl="disable"/></option>
      <worldbody><body euler="10 20 30"><joint name="a" damping=".1"/>
        <geom size=".1" pos=".2 0 .1"/>
        <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping=".2"/>
          <geom size=".1" pos=".2 0 .1"/></body></body></worldbody>
      <actuator><motor joint="a" ctrlrange="-1 1" gear="2"/>
        <motor joint="b" ctrlrange="-1 1" gear="3"/></actuator></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(model), 2)
    sim.data.ctrl[:] = torch.tensor([[1.5, 1.0], [0.3, -2.0]])
    if general:
        sim.add_force(lambda t, sim: None)
    found = derivatives(sim, by="ctrl")
    for world, k in ((0, 0), (0, 1), (1, 0), (1, 1)):

        def change(m, d, by, k=k):
            d.ctrl[k] += by

        want = by_hand(sim.model, sim.state[world].numpy(), 1, change, 1e-6)
        np.testing.assert_allclose(found.B[world, :, k], want, rtol=0, atol=1e-8)
        assert np.abs(want).max() > 1e-3


def test_values_without_effect_have_zero_columns_that_are_trusted():
    """The world's mass, a force on it, the friction of what touches nothing."""
    sim = all_joints()
    by = ("xfrc_applied", "geom_friction", "opt.gravity")
    found = derivatives(sim, by=by, steps=2)
    assert float(found.by["xfrc_applied"][:, :, 0].abs().max()) == 0.0
    assert float(found.by["geom_friction"].abs().max()) == 0.0
    assert bool(found.trusted[:, found.columns["geom_friction"]].all())
    falls = found.by["opt.gravity"][:, 11:14]  # the root's velocity
    want = 0.008 * torch.eye(3, dtype=F64).expand(3, 3, 3)
    torch.testing.assert_close(falls, want, rtol=0, atol=1e-9)


def test_worlds_that_diverge_have_no_derivatives():
    sim = pendulum((0.3, 0.4), None)
    sim.on_divergence = "mask"
    sim.data.qvel[1] = 1e11
    sim.step()
    assert sim.diverged.tolist() == [False, True]
    sim.data.qvel[1] = 0.0
    for general in (False, True):
        if general:
            sim.add_force(lambda t, sim: None)
        found = derivatives(sim)
        assert bool(found.A[1].isnan().all())
        assert not bool(found.trusted[1].any())
        assert bool(found.trusted[0].all())
    assert sim.diverged.tolist() == [False, True]


# What stays.


def test_everything_is_as_it_was():
    """Streams, memory, histories, recorders and the run that follows, bit for bit."""

    def make():
        sim = all_joints(z=0.2, integrator=RK4())
        count = sim.memory("count", (), reset=0.0)
        sim.add_force(lambda t, sim: None)

        def noise(sim, env_ids):
            count[env_ids] += sim.rng.uniform(env_ids, 1)[:, 0]

        sim.add_task(noise, 0.004)
        return sim, sim.record(quantities=["qpos"])

    (one, history), (other, second) = make(), make()
    calls = []

    class Watch:
        def begin(self, n, rows, until):
            calls.append(n)

        def end(self):
            pass

    one.attach(Watch())
    one.step(3)
    other.step(3)
    one.expand("body_mass")
    before = one.snapshot()
    found = derivatives(one, by=("state", "ctrl", "body_mass"), steps=2)
    assert bool(found.matrix.isfinite().all())
    after = one.snapshot()
    assert before.slots.keys() == after.slots.keys()
    for name, value in before.slots.items():
        assert torch.equal(value, after.slots[name]), name
    assert calls == [3]
    assert len(history.time) == len(second.time)
    one.step(5)
    other.step(5)
    assert torch.equal(one.state, other.state)


def test_an_error_within_leaves_everything():
    sim = all_joints(integrator=RK4())
    calls = []

    def failing(t, sim):
        calls.append(1)
        if len(calls) > 30:
            raise RuntimeError("stop")

    sim.add_force(failing)
    before = sim.snapshot()
    with pytest.raises(RuntimeError, match="stop"):
        derivatives(sim)
    after = sim.snapshot()
    for name, value in before.slots.items():
        assert torch.equal(value, after.slots[name]), name


def test_threads_and_batches_have_the_same_bits():
    from simstate.engine import NativeCfg

    found = []
    for threads in (1, 2):
        sim = all_joints(worlds=5, z=0.2, engine=NativeCfg(num_threads=threads))
        found.append(derivatives(sim, steps=3))
    assert torch.equal(found[0].matrix, found[1].matrix)
    assert torch.equal(found[0].error, found[1].error)


# Wrong questions.


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"by": "body_mas"}, "body_mas"),
        ({"by": ()}, "by"),
        ({"by": ("ctrl", "ctrl")}, "by"),
        ({"by": {"x": torch.zeros(2)}}, "x"),
        ({"by": "geom_type"}, "geom_type"),
        ({"by": "geom_rgba"}, "geom_rgba"),
        ({"by": "body_quat"}, "body_quat"),
        ({"by": "tendon_stiffness"}, "tendon_stiffness"),
        ({"of": "model.joint_poss"}, "joint_poss"),
        ({"by": {"wind": torch.ones(3)}}, "wind"),
        ({"by": {"gear": torch.ones(3, dtype=torch.int64)}}, "gear"),
        ({"of": ()}, "of"),
        ({"of": {"x": lambda: 3.0}}, "x"),
        ({"of": {"x": lambda s: torch.zeros(2)}}, "x"),
        ({"steps": -1}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"step": 0.0}, "step"),
        ({"step": math.nan}, "step"),
        ({"tolerance": -1.0}, "tolerance"),
    ],
)
def test_wrong_questions_raise(wrong, name):
    sim = all_joints()
    before = sim.state.clone()
    with raises(SimStateError, name=name):
        derivatives(sim, **wrong)
    assert torch.equal(sim.state, before)


def test_invalid_simulations_raise():
    with raises(SimStateError, name="sim"):
        derivatives(3)
    sim = all_joints()
    sim.data.ctrl[1, 0] = math.nan
    with raises(SimStateError, name="ctrl"):
        derivatives(sim)
    with raises(SimStateError, name="state"):
        _ = derivatives(all_joints(), by="ctrl").A
    assert study.derivatives is derivatives
