"""Loads: in any axes, at any point, at any stage; against MuJoCo and closed forms."""

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from simstate.base.errors import (
    InvalidInputError,
    ModelError,
    ShapeError,
    UnknownNameError,
)
from simstate.flight import AircraftCfg, FreeFlight, Load
from simstate.integrate import RK4

INERTIA = np.array([[0.2, 0.01, -0.02], [0.01, 0.3, 0.0], [-0.02, 0.0, 0.4]])
COM = np.array([-0.3, 0.05, 0.1])
FORCE, MOMENT = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.2, -0.1])
TWO = np.zeros((2, 3))
ANGLES, VELOCITY = (10.0, -20.0, 30.0), np.array([15.0, 2.0, -1.0])


def make(**change):
    given = {"com": COM, "angles_E_to_BP1_izyx": ANGLES, "velocity_E__E": VELOCITY}
    given |= {"gravity": 0.0, "omegas_BP1__E": (40, -25, 60), "inertia": INERTIA}
    return FreeFlight(2.5, num_envs=2, **{**given, **change})


def body_to_earth() -> np.ndarray:
    return Rotation.from_euler("ZYX", ANGLES[::-1], degrees=True).as_matrix()


def axes_to_body(axes: str, definition: str) -> np.ndarray:
    """Columns: the axes' directions in body axes, built from what they are."""
    seen = body_to_earth().T @ VELOCITY
    ahead = seen / np.linalg.norm(seen)
    right = np.array([0.0, 1, 0])
    if axes == "body":
        return np.eye(3)
    if axes == "earth":
        return body_to_earth().T
    if axes == "geometry":
        return np.diag([-1.0, 1, -1])
    if axes == "stability":
        ahead = np.array([seen[0], 0, seen[2]])
        ahead /= np.linalg.norm(ahead)
        return np.stack([ahead, right, np.cross(ahead, right)], axis=1)
    if definition == "stevens":  # z lies in the plane of symmetry
        down = np.cross(ahead, right)
        down /= np.linalg.norm(down)
        return np.stack([ahead, np.cross(down, ahead), down], axis=1)
    across = np.cross([0.0, 0, 1], ahead)  # y is level in the body
    across /= np.linalg.norm(across)
    return np.stack([ahead, across, np.cross(ahead, across)], axis=1)


@pytest.mark.parametrize("axes", ["earth", "body", "geometry", "wind", "stability"])
@pytest.mark.parametrize("point", ["com", "origin", (0.4, -0.2, 0.3)], ids=str)
@pytest.mark.parametrize("definition", ["stevens", "ptera_5_1"])
def test_axes_and_points_against_mujoco(axes, point, definition):
    """The generalized force is that of mj_applyFT at the point itself."""
    flight = make(integrator=RK4())
    load = Load(
        force=FORCE, moment=MOMENT, axes=axes, point=point, definition=definition
    )
    flight.add_load(lambda t, s: load)
    acc = flight.sim.scene["aircraft"].data.body_com_acc_w[0, 0].numpy()
    model, data = flight.sim.model, mujoco.MjData(flight.sim.model)
    data.qpos[:], data.qvel[:] = flight.sim.data.qpos[0], flight.sim.data.qvel[0]
    mujoco.mj_forward(model, data)
    to_earth = body_to_earth() @ axes_to_body(axes, definition)
    places = {"com": COM, "origin": np.zeros(3)}
    place = places[point] if isinstance(point, str) else np.array(point)
    where = data.xpos[1] + body_to_earth() @ place
    mujoco.mj_applyFT(
        model, data, to_earth @ FORCE, to_earth @ MOMENT, where, 1, data.qfrc_applied
    )
    mujoco.mj_forward(model, data)
    want = np.zeros(6)
    mujoco.mj_rnePostConstraint(model, data)
    kind = mujoco.mjtObj.mjOBJ_BODY.value
    mujoco.mj_objectAcceleration(model, data, kind, 1, want, 0)
    assert np.allclose(acc, [*want[3:], *want[:3]], atol=1e-12)


@pytest.mark.parametrize("definition", ["stevens", "ptera_5_1"])
def test_held_loads_are_the_same_wrench(definition):
    """apply_loads writes what a load model would have added."""
    flight = make()
    for axes in ("earth", "body", "geometry", "wind", "stability"):
        flight.apply_loads(
            FORCE, MOMENT, axes=axes, point=(0.4, -0.2, 0.3), definition=definition
        )
        held = flight.sim.data.xfrc_applied[0, 1].numpy()
        to_earth = body_to_earth() @ axes_to_body(axes, definition)
        force = to_earth @ FORCE
        arm = body_to_earth() @ (np.array([0.4, -0.2, 0.3]) - COM)
        moment = to_earth @ MOMENT + np.cross(arm, force)
        assert np.allclose(held, [*force, *moment], atol=1e-12)


def decay(timestep: float, integrator: object) -> float:
    """The error after 1 s of a body that drag −2·m·v slows down."""
    flight = FreeFlight(
        3.0, np.eye(3), gravity=0.0, timestep=timestep, integrator=integrator,
        velocity_E__E=(10.0, 0, 0),
    )  # fmt: skip
    flight.add_load(lambda t, s: Load(force=-6.0 * s.velocity_E__E, axes="earth"))
    flight.step(round(1 / timestep))
    return abs(float(flight.get_state().velocity_E__E[0, 0]) - 10 * np.exp(-2))


def test_load_models_are_evaluated_at_every_stage():
    """Fourth order with RK4 of ours; first order where the load is held for a step."""
    ours = [decay(h, RK4()) for h in (0.1, 0.05)]
    held = [decay(h, "RK4") for h in (0.1, 0.05)]
    assert np.log2(ours[0] / ours[1]) == pytest.approx(4, abs=0.2)
    assert np.log2(held[0] / held[1]) == pytest.approx(1, abs=0.2)
    assert ours[0] < 1e-4 < held[0]


def test_load_models_get_the_time_of_the_stage():
    """v = ∫ cos t dt; a load at the step's start alone would be off by 1e-2."""
    flight = FreeFlight(2.0, np.eye(3), gravity=0.0, timestep=0.1, integrator=RK4())

    def push(t: torch.Tensor, state: object) -> Load:
        zero = torch.zeros_like(t)
        force = torch.stack([2 * torch.cos(t), zero, zero], dim=-1)
        return Load(force=force, axes="earth")

    flight.add_load(push)
    flight.step(10)
    got = float(flight.get_state().velocity_E__E[0, 0])
    assert got == pytest.approx(np.sin(1.0), abs=1e-6)


def test_loads_add_up():
    flight = make(integrator=RK4(), omegas_BP1__E=(0, 0, 0))
    flight.add_load(lambda t, s: [Load(force=FORCE, axes="earth")] * 2)
    flight.add_load(lambda t, s: Load(force=FORCE, axes="earth"))
    flight.apply_loads(-3 * FORCE, np.zeros(3), axes="earth")
    flight.step(100)
    assert np.allclose(flight.get_state().velocity_E__E, VELOCITY, atol=1e-12)


def test_a_load_on_a_part():
    """At the tip of a wing that is turned in the airframe, in the wing's own axes."""
    wing = """<body name="wing" pos="0 1 0" euler="0 0 90">
      <geom type="box" size=".5 .1 .01" mass=".3"/></body>"""
    flight = make(parts=wing, integrator=RK4())
    load = Load(force=FORCE, moment=MOMENT, point=(0.5, 0, 0), body="wing")
    flight.add_load(lambda t, s: load)
    acc = flight.sim.scene["aircraft"].data.body_com_acc_w[0, 0].numpy()
    model, data = flight.sim.model, mujoco.MjData(flight.sim.model)
    data.qpos[:], data.qvel[:] = flight.sim.data.qpos[0], flight.sim.data.qvel[0]
    mujoco.mj_forward(model, data)
    turn = data.xmat[2].reshape(3, 3)
    where = data.xpos[2] + turn @ [0.5, 0, 0]
    mujoco.mj_applyFT(
        model, data, turn @ FORCE, turn @ MOMENT, where, 2, data.qfrc_applied
    )
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    want = np.zeros(6)
    kind = mujoco.mjtObj.mjOBJ_BODY.value
    mujoco.mj_objectAcceleration(model, data, kind, 1, want, 0)
    assert np.allclose(acc, [*want[3:], *want[:3]], atol=1e-11)
    flight.apply_loads(FORCE, MOMENT, axes="body", body="wing")
    assert np.allclose(flight.sim.data.xfrc_applied[0, 2, :3], turn @ FORCE)


def test_a_load_that_turns_with_the_aircraft():
    """Thrust along body x follows the nose; a held one keeps its Earth direction."""
    spin = {"omegas_BP1__E": (0, 0, 90.0), "angles_E_to_BP1_izyx": (0, 0, 0)}
    spin |= {"velocity_E__E": (0, 0, 0), "com": (0, 0, 0), "timestep": 0.01}
    spin |= {"inertia": np.eye(3)}
    flight = make(**spin, integrator=RK4())
    flight.add_load(lambda t, s: Load(force=(2.5, 0, 0)))
    flight.step(100)
    w = np.pi / 2
    assert np.allclose(
        flight.get_state().velocity_E__E[0], [np.sin(w) / w, (1 - np.cos(w)) / w, 0],
        atol=1e-9,
    )  # fmt: skip
    held = make(**spin)
    held.apply_loads([2.5, 0, 0], np.zeros(3), axes="body")
    held.step(100)
    assert np.allclose(held.get_state().velocity_E__E[0], [1, 0, 0], atol=1e-10)


@pytest.mark.parametrize(
    ("load", "error", "message"),
    [
        (Load(force=(np.nan, 0, 0)), InvalidInputError, "force must be finite"),
        (Load(force=np.zeros((5, 3))), ShapeError, "(2, 3)"),
        (Load(axes="erth"), UnknownNameError, "Did you mean 'earth'"),
        (Load(point="cg"), UnknownNameError, "com, origin"),
        (Load(definition="classic"), UnknownNameError, "stevens"),
        (Load(body="tail"), UnknownNameError, "airframe"),
        (3.0, InvalidInputError, "must return one Load or several"),
    ],
)
def test_bad_loads_raise_and_leave_the_state(load, error, message):
    flight = make(integrator=RK4())
    flight.add_load(lambda t, s: load)
    before = flight.sim.state.clone()
    with pytest.raises(error) as caught:
        flight.step()
    assert message in str(caught.value)
    assert torch.equal(flight.sim.state[:, :14], before[:, :14])


@pytest.mark.parametrize(
    ("make_one", "error", "message"),
    [
        (lambda: FreeFlight(1.0), InvalidInputError, "mass and the inertia"),
        (lambda: make(com=TWO), ShapeError, "com describes one body"),
        (lambda: make(position_E_Eo=TWO), ShapeError, "position_E_Eo"),
        (lambda: make(velocity_E__E=TWO), ShapeError, "velocity_E__E"),
        (lambda: make(angles_E_to_BP1_izyx=TWO), ShapeError, "got (2, 3)"),
        (
            lambda: make(angles_E_to_BP1_izyx=None, R_pas_E_to_BP1=[np.eye(3)] * 2),
            ShapeError,
            "must be shape (3, 3)",
        ),
        (
            lambda: FreeFlight([1.0, 2.0], np.eye(3)),
            ShapeError,
            "mass describes one body and must be a single number",
        ),
        (lambda: FreeFlight(1.0, [np.eye(3)] * 2), ShapeError, "(2, 3, 3)"),
        (lambda: make(integrator=None), InvalidInputError, "such as RK4(), got None"),
        (lambda: FreeFlight(), InvalidInputError, "or a fleet"),
        (
            lambda: FreeFlight(1.0, np.eye(3), fleet={"a": 1}),
            InvalidInputError,
            "fleet",
        ),
        (lambda: FreeFlight(-1.0, np.eye(3)), InvalidInputError, "mass must be > 0"),
        (lambda: FreeFlight("2 kg", np.eye(3)), InvalidInputError, "real numbers"),
        (
            lambda: FreeFlight(1.0, np.diag([1.0, 1, 3])),
            InvalidInputError,
            "sum of the other two",
        ),
        (
            lambda: FreeFlight(1.0, np.triu(np.ones((3, 3)))),
            InvalidInputError,
            "not symmetric",
        ),
        (lambda: FreeFlight(1.0, [1.0, 1.0, 1.0]), ShapeError, "(…, 3, 3)"),
        (
            lambda: FreeFlight(1.0, np.eye(3), R_pas_E_to_BP1=2 * np.eye(3)),
            InvalidInputError,
            "rotation matrix",
        ),
        (
            lambda: FreeFlight(
                1.0, np.eye(3), R_pas_E_to_BP1=np.eye(3), angles_E_to_BP1_izyx=(0, 0, 0)
            ),
            InvalidInputError,
            "given twice",
        ),
        (
            lambda: FreeFlight(1.0, np.eye(3), velocity_E_E=(1, 0, 0)),
            UnknownNameError,
            "Did you mean 'velocity_E__E'",
        ),
        (
            lambda: FreeFlight(1.0, np.eye(3), omegas_BP1__E=(np.nan, 0, 0)),
            InvalidInputError,
            "omegas_BP1__E must be finite",
        ),
        (
            lambda: FreeFlight(1.0, np.eye(3), integrator="rk4"),
            UnknownNameError,
            "RK4",
        ),
        (
            lambda: FreeFlight(1.0, np.eye(3), parts="<geom type='bx'/>"),
            ModelError,
            "not valid MJCF",
        ),
        (
            lambda: FreeFlight(1.0, np.eye(3), sections={"option": ""}),
            UnknownNameError,
            "actuator",
        ),
        (
            lambda: FreeFlight(fleet={"a": 3}),
            InvalidInputError,
            "must be an AircraftCfg",
        ),
        (
            lambda: FreeFlight(
                fleet={"ground": AircraftCfg(mass=1.0, inertia=np.eye(3))}, ground=True
            ),
            InvalidInputError,
            "another name",
        ),
        (
            lambda: FreeFlight(
                fleet={"a": AircraftCfg(mass=1.0, inertia=np.eye(3))}, com=(0, 0, 1)
            ),
            InvalidInputError,
            "to the AircraftCfg instead",
        ),
        (lambda: make().get_state("other"), UnknownNameError, "Known: aircraft"),
        (lambda: make().add_load(3.0), InvalidInputError, "apply_loads"),
        (lambda: make().fly(10, 3), InvalidInputError, "divide n"),
        (
            lambda: make().apply_loads([0, 0, np.nan], [0, 0, 0]),
            InvalidInputError,
            "finite",
        ),
        (
            lambda: make().set_state(R_pas_E_to_BP1=np.ones((1, 3, 3))),
            InvalidInputError,
            "orthonormal",
        ),
    ],
)
def test_refused(make_one, error, message):
    with pytest.raises(error) as caught:
        make_one()
    assert message in str(caught.value)
