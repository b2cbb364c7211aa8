"""Adaptive schemes in contact, against MuJoCo's RK4 with steps of 1e-5 s."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import take_blocks
from tests.raised import raises

import simstate
from simstate import ContactCfg, EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError
from simstate.integrate import (
    BS32,
    DOP853,
    DP54,
    RK4,
    RKF45,
    RKF78,
    PointMassGravity,
    Process,
)
from simstate.step.touchable_geoms import touching_geoms

pytestmark = pytest.mark.filterwarnings("ignore:.* is adaptive, so the stiffness")
SCHEMES = [BS32, RKF45, DP54, RKF78, DOP853]
HEAD = '<mujoco><option timestep="0.01" {}/><worldbody>'
FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'
END = "</worldbody></mujoco>"
BALL = f"""{HEAD.format("")}{FLOOR}<body pos="0.1 0.2 {{}}"><freejoint/>
<geom size="0.1" mass="1.3"/></body>{END}"""
MEETING = f"""{HEAD.format('gravity="0 0 0"')}
<body pos="-1 0.02 0.1"><freejoint/><geom size="0.1" mass="1"/></body>
<body pos="1 0 0.13"><freejoint/><geom size="0.15" mass="2.5"/></body>{END}"""
GEAR = f"""{HEAD.format("")}{FLOOR}<body pos="0.3 0.1 1.2">
<joint type="slide" axis="0 0 1"/>
<geom type="box" size="0.2 0.2 0.05" mass="5" contype="0" conaffinity="0"/>
<body pos="0.15 0.1 -0.3">
  <joint type="slide" axis="0 0 1" stiffness="900" damping="40" range="-0.2 0.2"/>
  <geom size="0.05" mass="0.3"/></body>
<body pos="-0.15 0 -0.25">
  <joint type="slide" axis="0 0 1" stiffness="1100" damping="50" range="-0.2 0.2"/>
  <geom size="0.04" mass="0.4"/></body></body>{END}"""
CAPSULE = f"""{HEAD.format("")}{FLOOR}
<body pos="0 0 0.7" quat="0.9 0.3 0.2 0.1"><freejoint/>
<geom type="capsule" size="0.04 0.2" mass="0.8"/></body>{END}"""
BULLET = f"""{HEAD.format('gravity="0 0 0"')}
<geom type="box" size="0.002 1 1" pos="2 0 0"/><body pos="0 0.1 0.05"><freejoint/>
<geom size="0.01" mass="0.1"/></body>{END}"""
LIMIT = f"""{HEAD.format("")}<body pos="0 0 1">
<joint type="slide" axis="0 0 1" range="-0.5 2"/><geom size="0.1" mass="1"/>
<body pos="1 0 0"><joint type="hinge" axis="0 1 0" range="-40 80"/>
<geom size="0.07" pos="0.3 0 0.1" mass="0.3"/></body></body>{END}"""


def quadruped() -> mujoco.MjModel:
    path = Path(simstate.__file__).parent / "scene/models/quadruped.xml"
    spec = mujoco.MjSpec.from_file(str(path))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    spec.bodies[1].pos = [0, 0, 0.6]
    return spec.compile()


@dataclass(frozen=True)
class Scene:
    """A model, its velocities at the start, and when to compare [s]."""

    xml: str
    qvel: tuple[float, ...]
    until: float

    def model(self, timestep: float | None = None) -> mujoco.MjModel:
        model = mujoco.MjModel.from_xml_string(self.xml) if self.xml else quadruped()
        if timestep is not None:
            model.opt.timestep = timestep
        return model

    def simulation(self, scheme, timestep: float | None = None) -> Simulation:
        sim = Simulation(self.model(timestep), integrator=scheme)
        if self.qvel:
            sim.data.qvel[0] = torch.tensor(self.qvel, dtype=torch.float64)
        return sim


SPIN = (0.3, -0.2, 0.1, 0.4, 0.3, 0.2)
SCENES = {
    "ball": Scene(BALL.format(1.0), SPIN, 1.5),
    "low ball": Scene(BALL.format(0.63), (0.0, 0.3, -0.9, 2.0, 0.1, 0.2), 1.2),
    "meeting": Scene(MEETING, (3, 0, 0, 0, 0, 0, -2, 0, 0, 1, 2, 3), 0.7),
    "gear": Scene(GEAR, (0.0, 0.2, -0.1), 2.0),
    "capsule": Scene(CAPSULE, (0.5, 0.2, 0, 3, 9, 2), 0.8),
    "quadruped": Scene("", (), 0.4),
    "limit": Scene(LIMIT, (0.3, 1.0), 1.0),
}


@dataclass(frozen=True)
class Truth:
    touch: float
    """Time of the first contact or limit [s]."""
    depth: float
    """Greatest penetration [m]."""
    pos: np.ndarray
    """Positions of all bodies at the end [m]."""
    energy: float
    """Energy at the end over that at the start."""


def energy(model, data) -> float:
    mujoco.mj_forward(model, data)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    return float(data.energy.sum())


def depth(data) -> float:
    return max(0.0, -float(data.contact.dist.min())) if data.ncon else 0.0


@cache
def truth(name: str, h: float = 1e-5) -> Truth:
    """MuJoCo's RK4, with the first touch once more in steps of 1e-8 s."""
    scene = SCENES[name]
    model = scene.model(h)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    data.qvel[: len(scene.qvel)] = scene.qvel
    start = energy(model, data)
    touch = deepest = 0.0
    while data.time < scene.until - h / 2:
        before = data.time, data.qpos.copy(), data.qvel.copy()
        mujoco.mj_step(model, data)
        if not touch and data.nefc:
            touch = first_touch(model, *before)
        deepest = max(deepest, depth(data))
    end = energy(model, data)
    return Truth(touch, deepest, data.xpos.copy(), end / start)


def first_touch(model, time, qpos, qvel) -> float:
    own, model.opt.timestep = model.opt.timestep, 1e-8
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.time = qpos, qvel, time
    mujoco.mj_forward(model, data)
    assert not data.nefc
    while not data.nefc:
        mujoco.mj_step(model, data)
    model.opt.timestep = own
    return data.time


def compare(sim: Simulation, name: str) -> tuple[float, float]:
    """Return the errors of positions [m] and energy (of the start's) at the end."""
    scene, want = SCENES[name], truth(name)
    model = scene.model()
    data = mujoco.MjData(model)
    data.qvel[: len(scene.qvel)] = scene.qvel
    start = energy(model, data)
    data.qpos[:], data.qvel[:] = sim.data.qpos[0], sim.data.qvel[0]
    ratio = energy(model, data) / start
    return float(np.abs(data.xpos - want.pos).max()), abs(ratio - want.energy)


def touches(sim: Simulation, name: str) -> bool:
    model = SCENES[name].model()
    data = mujoco.MjData(model)
    data.qpos[:] = sim.data.qpos[0]
    mujoco.mj_forward(model, data)
    return bool(data.nefc)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["ball", "low ball", "meeting", "gear", "limit"])
def test_contacts_agree_with_short_steps(name, scheme):
    want = truth(name)
    for tolerance in (1e-6, 1e-8):
        sim = SCENES[name].simulation(scheme(rtol=tolerance, atol=tolerance))
        sim.run(until=want.touch - 1e-6)
        assert not touches(sim, name)
        sim.run(until=want.touch + 1e-6)
        assert touches(sim, name)
        sim.run(until=SCENES[name].until)
        distance, gain = compare(sim, name)
        assert distance < 1e-4
        assert gain < 1e-4


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["ball", "gear", "limit"])
def test_one_call_over_a_landing_ends_at_the_same_rest(name, scheme):
    """The whole span is one call: free flight has no error that would shorten it."""
    scene = SCENES[name]
    for tolerance in (1e-6, 1e-9):
        sim = scene.simulation(scheme(rtol=tolerance, atol=tolerance), 0.02)
        sim.step(round(scene.until / 0.02))
        distance, gain = compare(sim, name)
        assert distance < 1e-4
        assert gain < 1e-4


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["capsule", "quadruped"])
def test_penetration_is_that_of_short_steps(name, scheme):
    scene, want = SCENES[name], truth(name)
    sim = scene.simulation(scheme(rtol=1e-6), 1e-3)
    model = scene.model()
    data = mujoco.MjData(model)
    deepest = 0.0
    for _ in range(round(scene.until / 1e-3)):
        sim.step()
        data.qpos[:] = sim.data.qpos[0]
        mujoco.mj_fwdPosition(model, data)
        deepest = max(deepest, depth(data))
    assert 0.5 * want.depth < deepest < want.depth + 1e-3


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3, 1e-6])
def test_nothing_passes_through_the_ground_whatever_the_tolerance(scheme, tolerance):
    for name in ("ball", "low ball", "gear", "capsule", "quadruped"):
        sim = SCENES[name].simulation(scheme(rtol=tolerance, atol=tolerance), 0.4)
        for _ in range(4):
            sim.step()
            assert sim.data.xpos[0, 1:, 2].min() > -0.03
            assert sim.data.xpos[0, 1:, 2].max() < 2.0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-7])
def test_a_bullet_does_not_miss_a_thin_wall(scheme, tolerance):
    """It crosses 4 mm in 13 µs; the stages of a step of 20 ms all lie outside it."""
    model = mujoco.MjModel.from_xml_string(BULLET)
    model.opt.timestep = 0.02
    sim = Simulation(model, integrator=scheme(rtol=tolerance, atol=tolerance))
    sim.data.qvel[0] = torch.tensor([300.0, 0, 0, 1, 2, 3])
    sim.step()
    assert float(sim.data.qvel[0, 0]) < 299.5  # it was braked


def test_a_spinning_rod_does_not_miss_a_small_ball():
    xml = f"""{HEAD.format('gravity="0 0 0"')}
    <body pos="0 0 1"><joint type="hinge" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0.6 0 0" size="0.01" mass="0.2"/></body>
    <body pos="-0.3 -0.4 1.005"><freejoint/><geom size="0.012" mass="0.01"/></body>
    {END}"""
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep = 0.06
    for scheme in SCHEMES:
        sim = Simulation(model, integrator=scheme(contact_timestep=0.02))
        sim.data.qvel[0, 0] = 80.0
        sim.step()
        assert float(sim.data.qvel[0, 1:4].norm()) > 0.3  # it was hit


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("axis", np.eye(3, dtype=int).tolist())
def test_a_ball_on_an_arm_does_not_miss_another(axis, turn):
    """Its centre of mass is half way: the ball's speed is that of the arm's turning."""
    out, along = np.roll(axis, turn), np.roll(axis, -turn)
    arm = """<body pos="{} {} {}"><joint type="hinge" axis="{} {} {}"/>
    <inertial pos="{} {} {}" mass="2" diaginertia="0.1 0.1 0.1"/>
    <geom size="{}" pos="{} {} {}"/></body>"""
    near = arm.format(*(0, 0, 1), *axis, *(0.3 * out), 0.012, *(0.6 * out))
    place = np.array([0, 0, 1]) + along  # its ball is at rest on the way of the first
    far = arm.format(*place, *axis, *(-0.2 * along), 0.015, *(-0.4 * along))
    xml = f"""{HEAD.format('gravity="0 0 0"')}{near}{far}{END}"""
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep = 0.06
    for scheme in (DP54, DOP853):
        sim = Simulation(model, integrator=scheme(contact_timestep=0.02))
        sim.data.qvel[0, 0] = 60.0 * turn
        sim.step(2)
        assert float(sim.data.qvel[0, 1].abs()) > 0.5  # it was hit


def test_pairs_are_those_that_mujoco_tests():
    """Exclusions, masks, explicit pairs, parents; compared with contacts it finds."""
    xml = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body name="a"><freejoint/><geom name="a" size="1"/>
      <body name="b"><joint/><geom name="b" size="1.1"/>
        <body name="c"><joint/><geom name="c" size="1.2"/>
          <geom name="mask" size="1.3" contype="2" conaffinity="4"/>
        </body></body></body>
    <body name="d"><freejoint/><geom name="d" size="1.4"/></body>
    <body name="e"><freejoint/><geom name="e" size="1.5" contype="4" conaffinity="2"/>
    </body></worldbody>
    <contact><exclude body1="a" body2="d"/><pair geom1="a" geom2="b"/></contact>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found = {tuple(sorted(pair)) for pair in data.contact.geom.tolist()}
    assert {tuple(pair) for pair in touching_geoms(model).tolist()} == found
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    mujoco.mj_forward(model, data)
    found = {tuple(sorted(pair)) for pair in data.contact.geom.tolist()}
    assert {tuple(pair) for pair in touching_geoms(model).tolist()} == found


# The contact time step.


@pytest.mark.parametrize("scheme", SCHEMES)
def test_softness_does_not_depend_on_the_time_step(scheme):
    heights = []
    for timestep in (0.001, 0.01, 0.1, 1.0):
        tolerance = {"rtol": 1e-8, "atol": 1e-8}
        sim = SCENES["ball"].simulation(
            scheme(**tolerance, contact_timestep=0.001), timestep
        )
        sim.run(until=3.0)
        heights.append(float(sim.data.qpos[0, 2]))
    np.testing.assert_allclose(heights, 0.0996328, atol=1e-6)


def test_the_contact_time_step_limits_the_stiffness():
    """As MuJoCo's own time step does: with 0.1 s the ball rests at 0.0779 m."""
    model = SCENES["ball"].model(0.1)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    data.qpos[2] = 0.1
    for _ in range(400):
        mujoco.mj_step(model, data)
    sim = SCENES["ball"].simulation(DP54(contact_timestep=0.1), 0.003)
    assert sim.contact_timestep == 0.1
    sim.run(until=20.0)
    assert float(sim.data.qpos[0, 2]) == pytest.approx(float(data.qpos[2]), abs=1e-6)


def test_the_contact_time_step_is_shown_and_warned_of():
    with pytest.warns(RuntimeWarning, match=r"contact_timestep=0\.002 s"):
        sim = SCENES["ball"].simulation(DOP853(), 0.0101)
    assert sim.contact_timestep == 0.002
    assert "contact_timestep=0.002 s" in repr(sim)
    with pytest.warns(RuntimeWarning, match=r"contact_timestep=0\.0003 s"):
        SCENES["ball"].simulation(DP54(contact_timestep=3e-4), 0.002)
    with raises(InvalidInputError, name="contact_timestep"):
        DP54(contact_timestep=0.0)


@pytest.mark.filterwarnings("error")
def test_nothing_is_warned_of_without_need():
    for timestep, chosen in ((0.01, 0.002), (0.0007, 0.0007)):
        sim = SCENES["ball"].simulation(DP54(), timestep)
        assert sim.contact_timestep == chosen
    assert SCENES["ball"].simulation(RK4(), 0.4).contact_timestep == 0.4
    far = f"""{HEAD.format("")}<body><freejoint/><geom size="1"/></body>{END}"""
    model = mujoco.MjModel.from_xml_string(far)
    model.opt.timestep = 60.0
    Simulation(model, integrator=DOP853())  # nothing can touch


def test_free_flight_takes_as_many_evaluations_with_geoms_that_can_touch():
    """Two satellites on orbits 30 m apart, and the same without collisions."""
    counts = []
    for mask in (0, 1):
        body = '<body pos="{} {} 0"><freejoint/><geom size="{}" contype="{}"/></body>'
        bodies = body.format(100, 0, 1, mask) + body.format(70, 10, 2, mask)
        head = HEAD.format('gravity="0 0 0"')
        model = mujoco.MjModel.from_xml_string(head + bodies + END)
        sim = Simulation(model, integrator=DOP853(rtol=1e-9))
        sim.add_force(PointMassGravity(1e4))
        sim.data.qvel[0, 1], sim.data.qvel[0, 7] = 9.0, 12.0
        sim.step(20_000)
        counts.append(sim.integration.statistics.evaluations.tolist())
    assert counts[0] == counts[1]
    assert counts[0][0] < 3000


# Other loops: Python models in the core, and blocks without it.


class Clock(Process):
    """A process whose rate is a Python function, evaluated between calls."""

    def rate(self, t, sim):
        return torch.ones_like(self.value)


def landed(sim: Simulation) -> None:
    """Let the ball land, and compare; the touch is between two times."""
    want = truth("ball")
    sim.run(until=want.touch - 1e-6)
    assert not touches(sim, "ball")
    sim.run(until=want.touch + 1e-6)
    assert touches(sim, "ball")
    sim.step(50)
    sim.run(until=SCENES["ball"].until)
    distance, gain = compare(sim, "ball")
    assert distance < 1e-4
    assert gain < 1e-4


@pytest.mark.parametrize("scheme", [DP54, RKF45, DOP853])
def test_contacts_next_to_models_and_processes_in_python(scheme):
    sim = SCENES["ball"].simulation(scheme(rtol=1e-6, atol=1e-6))
    sim.add_force(lambda t, sim: None)
    landed(sim)
    sim = SCENES["ball"].simulation(scheme(rtol=1e-6, atol=1e-6))
    sim.add_process(Clock("clock", [0.5]))
    landed(sim)


@pytest.mark.parametrize("scheme", [DP54, RKF45])
def test_contacts_with_a_contact_sensor(scheme):
    """Sensors observe every evaluation, which the blocks make."""
    ball = BALL.format(1.0).replace("<body ", '<body name="ball" ')
    cfg = SceneCfg(
        entities={"a": EntityCfg(model=ball)},
        contacts={"touch": ContactCfg(of="a/ball")},
    )
    sim = Simulation(cfg, integrator=scheme(rtol=1e-6, atol=1e-6))
    sim.data.qvel[0] = torch.tensor(SPIN, dtype=torch.float64)
    landed(sim)
    assert bool(sim.contacts["touch"].found.any())


def test_a_touch_is_located_again_after_a_reset_in_blocks(monkeypatch):
    sim = SCENES["ball"].simulation(RKF45(rtol=1e-6, atol=1e-6))
    take_blocks(sim, monkeypatch)
    ends = []
    for _ in range(2):
        sim.reset()
        sim.data.qvel[0] = torch.tensor(SPIN, dtype=torch.float64)
        sim.step(60)
        ends.append(sim.data.qpos[0, 2].item())
    assert ends[0] == ends[1] > 0.09


TENDON = """<mujoco><option timestep="0.05"/><worldbody><body>
<joint name="lift" type="slide" axis="0 0 1"/><geom size="0.1" mass="1.4"/>
</body></worldbody><tendon><fixed limited="true" range="-0.75 2">
<joint joint="lift" coef="1.5"/></fixed></tendon></mujoco>"""


def test_limits_of_tendons_are_located_in_blocks(monkeypatch):
    ends = []
    for by_blocks in (False, True):
        scene = Scene(TENDON, (-0.3,), 1.0)
        sim = scene.simulation(RKF45(rtol=1e-6, atol=1e-6))
        if by_blocks:
            take_blocks(sim, monkeypatch)
        sim.step(30)
        ends.append(sim.data.qpos[0, 0].item())
    assert ends[0] == pytest.approx(-0.5, abs=2e-3)
    assert ends[1] == pytest.approx(ends[0], abs=1e-4)


def test_pairs_do_not_pass_through_each_other_in_blocks():
    cfg = SceneCfg(
        entities={"a": EntityCfg(model=BULLET.replace("<body ", '<body name="b" '))},
        contacts={"touch": ContactCfg(of="a/b")},
        ground=None,
    )
    sim = Simulation(cfg, integrator=RKF45(rtol=1e-3, atol=1e-3))
    sim.data.qvel[0] = torch.tensor([300.0, 0, 0, 1, 2, 3])
    sim.step(2)
    assert float(sim.data.qvel[0, 0]) < 299.5


def test_nothing_falls_through_the_ground_on_warp():
    model = SCENES["ball"].model(0.5)
    sim = Simulation(model, 2, engine="warp", integrator=RKF45(rtol=1e-3, atol=1e-3))
    sim.data.qpos[1, 2] = 0.6
    sim.step(3)
    np.testing.assert_allclose(sim.data.qpos[:, 2].numpy(), 0.0996, atol=2e-3)
