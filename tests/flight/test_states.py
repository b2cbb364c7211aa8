"""States of free flight: of one instant, and what closed forms say."""

import copy
import dataclasses

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.mujoco_versions import IS_4
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.flight import (
    STANDARD_GRAVITY,
    Air,
    AircraftCfg,
    ControlCfg,
    FreeFlight,
    Load,
)
from simstate.integrate import DP54, RK4, Heun

INERTIA = np.array([[0.2, 0.01, -0.02], [0.01, 0.3, 0.0], [-0.02, 0.0, 0.4]])
COM = (-0.3, 0.05, 0.1)
MUJOCOS = ("Euler", "RK4", "implicit", "implicitfast")
OURS = (RK4(attitude="lie"), RK4(attitude="high_order"), Heun(), DP54())
PARTS = (
    "position_E_Eo", "R_pas_E_to_BP1", "velocity_E__E", "omegas_BP1__E", "time",
    "wind_e", "gust_ang_vel_b",
)  # fmt: skip
SCHEMES = (*MUJOCOS, *OURS)
IDS = (*MUJOCOS, *(f"{one.name}-{one.attitude}" for one in OURS))


def parts(state):
    return [getattr(state, name) for name in PARTS]


def make(num_envs=3, **change):
    given = {
        "com": COM,
        "position_E_Eo": (10.0, 20.0, -100.0),
        "angles_E_to_BP1_izyx": (10.0, -20.0, 30.0),
        "velocity_E__E": (15.0, 2.0, -1.0),
        "omegas_BP1__E": (40.0, -25.0, 60.0),
    }
    return FreeFlight(2.5, INERTIA, num_envs, **{**given, **change})


def test_start_is_what_was_given():
    state = make().get_state()
    assert np.allclose(state.position_E_Eo, [10, 20, -100], atol=1e-13)
    assert np.allclose(state.velocity_E__E, [15, 2, -1], atol=1e-13)
    assert np.allclose(state.omegas_BP1__E, [40, -25, 60], atol=1e-13)
    assert np.allclose(state.angles_E_to_BP1_izyx, [10, -20, 30], atol=1e-12)
    turn = Rotation.from_euler("ZYX", [30, -20, 10], degrees=True)
    assert np.allclose(state.R_pas_E_to_BP1, turn.as_matrix().T, atol=1e-14)
    assert state.time.tolist() == [0, 0, 0]


@pytest.mark.parametrize("integrator", SCHEMES, ids=IDS)
def test_all_of_one_instant(integrator):
    """Every part is that of the present qpos and qvel, worked out with scipy."""
    flight = make(integrator=integrator)
    flight.apply_loads([3.0, -1.0, 5.0], [0.2, 0.1, -0.3])
    flight.step(40)
    state = flight.get_state()
    qpos, qvel = (x.numpy() for x in (flight.sim.data.qpos, flight.sim.data.qvel))
    turn = Rotation.from_quat(qpos[:, 3:7], scalar_first=True)
    arm = turn.apply(COM)
    rates_E = turn.apply(qvel[:, 3:])
    velocity = qvel[:, :3] + np.cross(rates_E, arm)
    for got, want in (
        (state.position_E_Eo, qpos[:, :3] + arm),
        (state.R_pas_E_to_BP1, turn.as_matrix().transpose(0, 2, 1)),
        (state.velocity_E__E, velocity),
        (state.omegas_BP1__E, np.rad2deg(qvel[:, 3:])),
        (state.time, flight.sim.time),
    ):
        assert np.abs(np.asarray(got) - np.asarray(want)).max() < 1e-12


@pytest.mark.parametrize("integrator", SCHEMES, ids=IDS)
def test_parts_meet_at_the_same_time(integrator):
    """Spinning about a principal axis while falling: closed forms at one t."""
    flight = FreeFlight(
        2.0, np.diag([0.2, 0.3, 0.4]), com=(0.0, 0.0, 0.2), integrator=integrator,
        timestep=0.01, gravity=0.0, velocity_E__E=(3.0, 0.0, 0.0),
        omegas_BP1__E=(0.0, 0.0, 90.0),
    )  # fmt: skip
    flight.step(37)
    t, state = 0.37, flight.get_state()
    turn = Rotation.from_euler("z", 90 * t, degrees=True).as_matrix()
    assert np.allclose(state.time, t, atol=1e-12)
    assert np.allclose(state.position_E_Eo, [3 * t, 0, 0], atol=1e-12)
    assert np.allclose(state.R_pas_E_to_BP1, turn.T, atol=1e-12)
    assert np.allclose(state.velocity_E__E, [3, 0, 0], atol=1e-12)
    assert np.allclose(state.omegas_BP1__E, [0, 0, 90], atol=1e-12)


@pytest.mark.parametrize("integrator", ["RK4", RK4()], ids=["mujoco", "ours"])
def test_gravity_once_and_down(integrator):
    flight = make(integrator=integrator, omegas_BP1__E=(0, 0, 0))
    flight.step(200)
    state = flight.get_state()
    assert np.allclose(state.velocity_E__E[:, 2], -1 + STANDARD_GRAVITY, atol=1e-10)
    drop = -1 + STANDARD_GRAVITY / 2
    assert np.allclose(state.position_E_Eo[:, 2] + 100, drop, atol=1e-10)
    flight = make(gravity=0.0)
    flight.step(100)
    assert np.allclose(flight.get_state().velocity_E__E, [15, 2, -1], atol=1e-10)


def test_each_world_has_a_flight_of_its_own():
    """A batch of five is five flights of one."""
    rng = np.random.default_rng(0)
    velocity, rates = rng.normal(size=(5, 3)) * 10, rng.normal(size=(5, 3)) * 50
    forces = rng.normal(size=(5, 3))
    many = make(5)
    many.set_state(velocity_E__E=velocity, omegas_BP1__E=rates)
    many.apply_loads(forces, np.zeros(3), axes="body", point="origin")
    many.step(30)
    for k in range(5):
        one = make(1)
        one.set_state(velocity_E__E=velocity[k : k + 1], omegas_BP1__E=rates[k : k + 1])
        one.apply_loads(forces[k], np.zeros(3), axes="body", point="origin")
        one.step(30)
        for a, b in zip(parts(one.get_state()), parts(many.get_state()), strict=True):
            assert torch.allclose(a[0], b[k], rtol=0, atol=1e-12)


def test_set_state_in_parts_and_in_some_worlds():
    flight = make()
    before = flight.get_state()
    flight.set_state(position_E_Eo=[[1.0, 2.0, 3.0]], env_ids=[1])
    after = flight.get_state()
    assert after.position_E_Eo[1].tolist() == pytest.approx([1, 2, 3])
    assert torch.allclose(after.position_E_Eo[0], before.position_E_Eo[0])
    for name in ("R_pas_E_to_BP1", "velocity_E__E", "omegas_BP1__E"):
        assert torch.allclose(getattr(after, name), getattr(before, name), atol=1e-12)


def test_record_of_a_flight():
    flight = make(2, integrator=RK4())
    path = flight.fly(20, every=5)
    assert path.position_E_Eo.shape == (5, 2, 3)
    assert path.R_pas_E_to_BP1.shape == (5, 2, 3, 3)
    assert np.allclose(path.time[:, 0], [0, 0.025, 0.05, 0.075, 0.1])
    last = flight.get_state()
    assert torch.equal(path[-1].position_E_Eo, last.position_E_Eo)


def test_wind_angles_of_the_state():
    flight = FreeFlight(1.0, np.eye(3), velocity_E__E=(20, 5, 4))
    state = flight.get_state()
    alpha, beta = state.wind_angles("ptera_5_1")
    assert (round(float(alpha), 2), round(float(beta), 2)) == (10.98, 14.04)
    alpha, beta = state.wind_angles()
    assert (round(float(alpha), 2), round(float(beta), 2)) == (11.31, 13.77)


def test_pitch_through_the_poles_goes_on():
    """A full loop at 90 deg/s: pitch reaches ±90 and nothing aborts."""
    flight = FreeFlight(
        1.0, np.eye(3), gravity=0.0, omegas_BP1__E=(0, 90, 0), timestep=0.01,
        integrator=RK4(),
    )  # fmt: skip
    angles = flight.fly(400).angles_E_to_BP1_izyx[:, 0]
    assert bool(torch.isfinite(angles).all())
    assert float(angles[100, 1]) == pytest.approx(90, abs=1e-5)
    assert float(angles[300, 1]) == pytest.approx(-90, abs=1e-5)
    assert angles[200].abs().tolist() == pytest.approx([180, 0, 180], abs=1e-6)
    assert angles[400].tolist() == pytest.approx([0, 0, 0], abs=1e-6)


def test_restored_again_and_again():
    flight = make(integrator=RK4())
    flight.add_load(lambda t, s: Load(force=-0.2 * s.velocity_BP1__E))
    flight.apply_loads([1.0, 2.0, 3.0], [0.1, 0.2, 0.3])
    flight.step(5)
    saved = flight.save_state()
    flight.step(10)
    want = parts(flight.get_state())
    for _ in range(4):
        flight.apply_loads([9.0, 9.0, 9.0], [1.0, 1.0, 1.0])
        flight.step(3)
        flight.restore_state(saved)
        flight.step(10)
        got = parts(flight.get_state())
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    flight.reset()
    assert np.allclose(flight.get_state().velocity_E__E, [15, 2, -1])
    assert bool((flight.sim.data.xfrc_applied == 0).all())


def test_several_aircraft_in_one_world():
    fleet = {
        "lead": AircraftCfg(mass=2.0, inertia=np.eye(3), velocity_E__E=(10, 0, 0)),
        "wing": AircraftCfg(
            mass=4.0, inertia=2 * np.eye(3), position_E_Eo=(0, 5, -2), com=(0.5, 0, 0)
        ),
    }
    flight = FreeFlight(fleet=fleet, num_envs=2, gravity=0.0, integrator=RK4())
    flight.add_load(lambda t, s: Load(force=(4.0, 0, 0)), "wing")
    flight.step(200)
    lead, wing = flight.get_state("lead"), flight.get_state("wing")
    assert np.allclose(lead.position_E_Eo, [10, 0, 0])
    assert np.allclose(wing.velocity_E__E, [1, 0, 0])
    assert np.allclose(wing.position_E_Eo, [0.5, 5, -2])


def test_articulated_parts_keep_the_momentum():
    """A flap that swings on a motor: inner forces do not move the common Cg."""
    flap = """<body name="flap" pos="-0.5 0 0"><joint name="hinge" axis="0 1 0"/>
      <geom type="box" size=".1 .3 .01" pos="-.1 0 0" mass=".2"/></body>"""
    flight = make(
        1,
        parts=flap,
        sections={"actuator": '<motor name="flap" joint="hinge"/>'},
        gravity=0.0,
        integrator=RK4(),
        timestep=0.001,
    )
    entity = flight.aircraft["aircraft"]
    com = flight.sim.data.subtree_com[0, 1].clone()
    data = mujoco.MjData(flight.sim.model)
    data.qpos[:], data.qvel[:] = flight.sim.data.qpos[0], flight.sim.data.qvel[0]
    mujoco.mj_forward(flight.sim.model, data)
    mujoco.mj_subtreeVel(flight.sim.model, data)
    entity.set_joint_effort_target([[0.05]])
    flight.step(100)
    assert abs(float(entity.data.joint_pos[0, 0])) > 0.01
    moved = flight.sim.data.subtree_com[0, 1] - com
    assert np.allclose(moved, 0.1 * data.subtree_linvel[1], atol=1e-6)


def test_lands_on_the_ground():
    """Down is +z: it falls to z = 0 from below, and rests a radius above."""
    skid = '<geom type="sphere" size="0.2"/>'
    flight = FreeFlight(
        1.0, 0.016 * np.eye(3), 2, parts=skid, ground=True, integrator="implicitfast",
        position_E_Eo=(0, 0, -0.5),
    )  # fmt: skip
    flight.step(600)
    state = flight.get_state()
    assert np.allclose(state.position_E_Eo[:, 2], -0.2, atol=2e-3)
    assert np.allclose(state.velocity_E__E, 0, atol=1e-3)


def test_on_warp():
    """The same flight in float32."""
    start = {"com": COM, "velocity_E__E": (15, 2, -1), "omegas_BP1__E": (40, -25, 60)}
    one, other = (
        FreeFlight(2.5, INERTIA, 3, engine=engine, integrator="Euler", **start)
        for engine in ("native", "warp")
    )
    for flight in (one, other):
        flight.apply_loads([1.0, 2.0, 3.0], [0.1, 0.0, 0.2], axes="body")
        flight.step(20)
    for a, b in zip(parts(one.get_state()), parts(other.get_state()), strict=True):
        assert torch.allclose(a, b.double(), rtol=1e-4, atol=1e-4)


def test_set_state_of_no_world_changes_nothing():
    flight = make()
    before = flight.sim.state.clone()
    flight.set_state(velocity_E__E=(1.0, 2.0, 3.0), env_ids=[])
    assert torch.equal(flight.sim.state, before)


def test_radians_next_to_degrees():
    turn, spin = np.array([0.2, -0.3, 1.1]), np.array([0.7, -0.4, 0.9])
    flight = make(
        angles_E_to_BP1_izyx=None, roll_pitch_yaw=turn, omegas_BP1__E=None,
        ang_vel_b=spin,
    )  # fmt: skip
    state = flight.get_state()
    assert np.allclose(state.roll_pitch_yaw, turn, atol=1e-14)
    assert np.allclose(state.angles_E_to_BP1_izyx, np.rad2deg(turn), atol=1e-12)
    assert np.allclose(state.ang_vel_b, spin, atol=1e-14)
    assert np.allclose(state.omegas_BP1__E, np.rad2deg(spin), atol=1e-12)
    assert np.allclose(flight.sim.data.qvel[:, 3:], spin, atol=1e-14)
    flight.set_state(ang_vel_b=2 * spin[None], env_ids=[2, 0])
    got = flight.sim.data.qvel[:, 3:]
    assert np.allclose(got, [2 * spin, spin, 2 * spin], atol=1e-13)
    for wrong, name in (
        (
            lambda: flight.set_state(omegas_BP1__E=spin[None], ang_vel_b=spin[None]),
            "ang_vel_b",
        ),
        (lambda: make(ang_vel_b=spin), "ang_vel_b"),
        (lambda: make(roll_pitch_yaw=turn), "roll_pitch_yaw"),
    ):
        with raises(InvalidInputError, name=name):
            wrong()


def test_the_default_integrator_is_of_fourth_order_in_attitude():
    """MuJoCo's own, of second order before MuJoCo 4, flies when it is named."""
    spun = {"gravity": 0.0, "omegas_BP1__E": (57.0, 171.0, 57.0), "num_envs": 1}

    def ends(**options):
        found = []
        for timestep in (0.1, 0.05, 0.025):
            flight = make(timestep=timestep, **spun, **options)
            flight.step(round(2 / timestep))
            found.append(flight.get_state().R_pas_E_to_BP1[0])
        coarse, fine = found[0] - found[1], found[1] - found[2]
        return np.log2(float(coarse.norm()) / float(fine.norm()))

    assert ends() == pytest.approx(4, abs=0.3)
    assert ends(integrator="RK4") == pytest.approx(4 if IS_4 else 2, abs=0.3)


def test_a_state_stays_what_it_was_when_it_was_taken():
    """Its tensors are made when they are asked for: steps and writes change nothing."""
    controls = {"elevator": ControlCfg(time_constant=0.2), "flap": ControlCfg()}
    flight = make(air=Air(wind=(3.0, -1.0, 0.5)), controls=controls)
    flight.set_controls({"elevator": 0.4, "flap": 0.2})
    flight.step(7)
    first, later = flight.get_state(), flight.get_state()
    known = [part.clone() for part in parts(first)]
    places = {name: value.clone() for name, value in first.controls.items()}
    rates = {name: value.clone() for name, value in first.control_rates.items()}
    copied = copy.copy(flight.get_state())
    flight.air.parameters["wind"][:] = 9.0
    flight.set_controls({"elevator": -0.4, "flap": -0.1}, settled=True)
    flight.step(5)
    for state in (later, copied, later[:]):
        for got, expected in zip(parts(state), known, strict=True):
            assert torch.equal(got, expected)
        for got, expected in ((state.controls, places), (state.control_rates, rates)):
            assert got.keys() == expected.keys()
            assert all(torch.equal(got[name], expected[name]) for name in got)
    assert not torch.equal(flight.get_state().wind_e, known[5])
    with pytest.raises(AttributeError, match="no 'altitud'"):
        _ = later.altitud


@pytest.mark.parametrize("names", [(), ("body_mass",), ("body_mass", "body_ipos")])
def test_the_first_state_after_parameters_differ(names):
    flight = make()
    for name in names:
        flight.sim.expand(name)
    if names[1:]:
        flight.sim.expand("body_ipos")[:, 1] += 0.1
    com = flight.sim.scene["aircraft"].data.root_com_pos_w
    torch.testing.assert_close(flight.get_state().position_E_Eo, com)
    assert float(com.norm()) > 1.0


def test_a_state_in_a_field_of_wind_stays_what_it_was_too():
    controls = {"elevator": ControlCfg(time_constant=0.2), "flap": ControlCfg()}
    flight = make(air=Air(wind=lambda t, place: gale), controls=controls)
    gale = torch.full((flight.sim.num_envs, 3), 2.0, dtype=torch.float64)
    flight.set_controls({"elevator": 0.4, "flap": 0.2})
    flight.step(7)
    state = flight.get_state()
    kept = [*parts(state), *state.controls.values(), *state.control_rates.values()]
    known = [part.clone() for part in kept]
    flight.set_controls({"elevator": -0.4, "flap": -0.1}, settled=True)
    gale[:] = 9.0
    flight.step(5)
    assert all(torch.equal(one, other) for one, other in zip(kept, known, strict=True))
    assert not torch.equal(flight.get_state().controls["elevator"], known[-3])


def test_a_state_is_a_frozen_dataclass():
    state = make(air=Air(wind=(3.0, 0.0, 0.0))).get_state()
    still = dataclasses.replace(state, wind_e=torch.zeros(3, 3))
    assert torch.equal(still.position_E_Eo, state.position_E_Eo)
    assert not still.wind_e.any()
    assert state.wind_e.any()
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.time = torch.zeros(3)
