"""Fields of planets and their air in the compiled core: as without it, to rounding."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch
from tests.engine.core_loads import load
from tests.inside import compiled_models_of, processes_of
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.base.errors import InvalidInputError
from simstate.engine import core
from simstate.engine.core import LoadKind
from simstate.flight import ExponentialAtmosphere, StandardAtmosphere
from simstate.space import (
    EARTH,
    MARS,
    EarthRotation,
    Ephemeris,
    Epoch,
    HarmonicGravity,
    PanelDrag,
    Planet,
    PlanetAir,
    ReactionWheelCfg,
    ReactionWheels,
    UniformRotation,
    box_panels,
    earth_coefficients,
    zonal_coefficients,
)

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 3
F64 = torch.float64
CRAFT = """
<mujoco><option timestep="20" gravity="0 0 0"/><worldbody>
  <body name="bus" pos="0.3 -0.1 0.2" quat="0.8 0.1 0.5 0.3"><freejoint/>
    <inertial pos="0.2 -0.1 0.05" quat="0.9 0.3 0.1 0.2" mass="12" diaginertia="2 3 4"/>
  </body>
  <body name="probe" pos="-40 1e3 25"><freejoint/>
    <inertial pos="0.02 0.03 -0.01" mass="5" diaginertia="0.3 0.4 0.2"/>
  </body>
</worldbody></mujoco>
"""
OTHER = CRAFT[: CRAFT.index('<body name="probe"')] + "</worldbody></mujoco>"
PLACE = np.array([[6.75e6, 2e5, 3e5], [-6.9e6, 1e5, -4e5], [2e5, -3e5, 6.8e6]])
SPEED = np.array([[-350.0, 5400, 5450], [300.0, -5500, 5200], [7500.0, 200, 90]])
MU = torch.tensor([3.986e14, 3.99e14, 3.98e14], dtype=F64)
RK4, DP54 = integrate.RK4("lie"), integrate.DP54(atol=1e-9, rtol=1e-10)


def winding(t):
    """A body that goes round, and is not always as far away."""
    angle = 2e-4 * t + 0.3
    way = np.stack([np.cos(angle), 0.9 * np.sin(angle), 0.4 * np.sin(angle)], axis=-1)
    return 2.1e7 * way * (1 + 0.1 * np.cos(angle))[:, None]


def uniform():
    rate = torch.tensor([7.3e-5, 1e-4, -3e-4], dtype=F64)
    return UniformRotation(rate, torch.tensor([0.2, 1.0, -2.0], dtype=F64))


def harmonics(rotation=uniform):
    return HarmonicGravity(earth_coefficients(8), rotation())


def central(inner):
    path = Ephemeris(winding, segment=900.0, degree=13, name="a near moon")
    near = integrate.ThirdBody(torch.tensor([4.9e12, 3e12, 6e12]), path, "moon")
    still = integrate.ThirdBody(
        1.3e20,
        torch.tensor([[1.5e11, 1e10, 2e9]]) * torch.tensor([[1.0], [0.9], [-1.1]]),
        "sun",
    )
    return integrate.CentralGravity(inner(), [near, still])


FIELDS = {
    "zonal": lambda: HarmonicGravity(zonal_coefficients(MARS, {2: 1.9e-3, 5: -3e-6})),
    "harmonics": harmonics,
    "earth": lambda: harmonics(lambda: EarthRotation(Epoch.utc("2026-11-16T12:00:00"))),
    "bodies": lambda: central(lambda: integrate.PointMassGravity(MU[:, None])),
    "both": lambda: central(harmonics),
}


def scene():
    """The craft, and another whose geoms never meet its own."""
    return SceneCfg(
        entities={"model": EntityCfg(model=CRAFT), "other": EntityCfg(model=OTHER)},
        ground=False,
        gravity=(0, 0, 0),
        timestep=20.0,
    )


def flown(monkeypatch, scheme, add, steps=(3, 4), world=scene):
    """The state with the core and without, and frames, after some steps."""
    ends = []
    for value in ("1", "0"):
        monkeypatch.setenv("SIMSTATE_CORE", value)
        sim = Simulation(world(), NUM, integrator=scheme)
        sim.data.qvel[:, 3:6] = torch.tensor([2e-3, -1e-3, 3e-3], dtype=F64)
        add(sim)
        is_compiled = compiled_models_of(sim) is not None
        assert is_compiled == (value == "1")
        sim.step(steps[0])
        sim.step(steps[1], env_ids=[2, 0])
        moved = torch.cat([sim.data.qpos, sim.data.qvel], dim=1)
        ends.append((moved, [x.value.clone() for x in processes_of(sim)]))
    return ends


def compare(ends, atol=1e-11):
    (ours, frames), (plain, expected) = ends
    torch.testing.assert_close(ours, plain, rtol=1e-11, atol=atol)
    for own, want in zip(frames, expected, strict=True):
        torch.testing.assert_close(own, want, rtol=1e-13, atol=1e-7)
        assert not torch.equal(own[0], own[1])


@pytest.mark.parametrize("scheme", [RK4, DP54], ids=["RK4", "DP54"])
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_in_a_moving_frame(monkeypatch, name, scheme):
    if name == "earth":
        pytest.importorskip("erfa")

    def add(sim):
        sim.add_process(integrate.MovingFrame(FIELDS[name](), PLACE, SPEED))

    compare(flown(monkeypatch, scheme, add))


@pytest.mark.parametrize("name", ["harmonics", "both"])
def test_a_field_in_inertial_axes(monkeypatch, name):
    def add(sim):
        for body in range(3):
            sim.data.qpos[:, 7 * body : 7 * body + 3] += torch.as_tensor(PLACE)
            sim.data.qvel[:, 6 * body : 6 * body + 3] = torch.as_tensor(SPEED)
        sim.add_force(FIELDS[name]())

    (ours, _), (plain, _) = flown(monkeypatch, RK4, add)
    for body in range(3):  # MuJoCo's dynamics lose digits of the attitude here
        for first in (7 * body, 21 + 6 * body):
            got, want = (x[:, first : first + 3] for x in (ours, plain))
            torch.testing.assert_close(got, want, rtol=3e-11, atol=1e-6)


def test_each_craft_in_a_frame_and_a_field_of_its_own(monkeypatch):
    def add(sim):
        one, two = FIELDS["harmonics"](), FIELDS["both"]()
        one.entity, two.entity = "other", "model"
        two.gradient_torque = False
        for gravity, place in ((one, PLACE), (two, 1.02 * PLACE)):
            sim.add_process(integrate.MovingFrame(gravity, place, SPEED))
        air = AIRS["exponential"]()
        for entity, body in (("other", "bus"), ("model", "probe")):
            sim.add_force(integrate.Drag(entity, body, 20.0, air.density, air.wind))

    compare(flown(monkeypatch, RK4, add), atol=1e-9)


BALL = Planet("ball", EARTH.mu, 6.5e6, 0.01, 2e-4, 0.0)
AIRS = {
    "exponential": lambda: PlanetAir(
        atmosphere=ExponentialAtmosphere(
            torch.tensor([6e-12, 5e-12, 7e-12]), 5.5e4, torch.tensor([3.5e5, 3e5, 4e5])
        )
    ),
    "standard": lambda: PlanetAir(
        atmosphere=StandardAtmosphere(density_factor=torch.tensor([0.9, 1.0, 1.4]))
    ),
    "still": lambda: PlanetAir(BALL, StandardAtmosphere("geopotential"), turns=False),
}


@pytest.mark.parametrize("name", AIRS)
def test_drag_in_a_planets_air(monkeypatch, name):
    area = torch.tensor([9e2, 12e2, 7e2])  # large: thin air must be felt

    def add(sim):
        gravity = HarmonicGravity(zonal_coefficients(EARTH))
        sim.add_process(integrate.MovingFrame(gravity, PLACE, SPEED))
        air = AIRS[name]()
        more = {"wind": air.wind} if name != "still" else {"wind": (30.0, -5.0, 9.0)}
        sim.add_force(
            integrate.Drag("model", "probe", area, density=air.density, **more)
        )

    ends = flown(monkeypatch, RK4, add)
    compare(ends, atol=3e-10)
    free = flown(monkeypatch, RK4, lambda sim: sim.add_process(integrate.MovingFrame(
        HarmonicGravity(zonal_coefficients(EARTH)), PLACE, SPEED)))  # fmt: skip
    assert float((free[0][0] - ends[0][0]).abs().max()) > 1e-3


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("exponential", DP54), ("standard", RK4), ("still", RK4)],
    ids=lambda x: getattr(x, "name", x),
)
def test_drag_of_panels(monkeypatch, name, scheme):
    """Of two craft, seen from frames of their own; numbers of each world are live."""

    def add(sim):
        air = AIRS[name]()
        for craft, body, shift in (("other", "bus", 7e3), ("model", "probe", 0.0)):
            gravity = integrate.PointMassGravity(EARTH.mu, entity=craft)
            place = PLACE + np.array([shift, 0.0, -shift])
            sim.add_process(integrate.MovingFrame(gravity, place, SPEED))
            normals, areas, centres = box_panels((1.0, 0.7, 1.1))
            panels = PanelDrag(
                craft, body, normals, areas, centres + torch.tensor([0.2, -0.1, 0.5]),
                air, torch.linspace(1.8, 2.6, 18).reshape(3, 6),
            )  # fmt: skip
            sim.add_force(panels)
            panels.parameters["areas"][1, 2] *= 3.0
            turned = torch.tensor([0.0, 0.6, 0.8], dtype=F64)
            panels.parameters["normals"][2, 0] = turned

    def slow():
        return replace(scene(), timestep=2.0)

    ends = flown(monkeypatch, scheme, add, steps=(2, 2), world=slow)
    compare(ends, atol=1e-11)
    spin = torch.tensor([2e-3, -1e-3, 3e-3], dtype=F64)
    assert float((ends[0][0][:, -3:] - spin).abs().max()) > 1e-6


def test_the_air_from_the_ground_up():
    """Every layer of the standard, through the force on a body at rest."""
    model = mujoco.MjModel.from_xml_string(CRAFT.replace('"20"', '"1e-13"'))
    heights = torch.linspace(-2e3, 1.2e6, 400, dtype=F64)
    sim = Simulation(model, 400, integrator=RK4)
    turn = torch.linspace(-1.5, 1.5, 400, dtype=F64)
    up = torch.stack([turn.cos(), 0.3 * turn.cos(), turn.sin()], dim=-1)
    place = up / up.norm(dim=1, keepdim=True) * (6.36e6 + heights[:, None])
    sim.data.qpos[:, 7:10] = place
    air = PlanetAir(turns=False)
    sim.add_force(
        integrate.Drag("model", "probe", 3.0, air.density, wind=(0.0, 0.0, 40.0))
    )
    assert compiled_models_of(sim) is not None
    sim.step()
    com = sim.data.xipos[:, 2]
    want = 0.5 * air.density(com) * 3.0 * 40.0**2 / 5.0 * 1e-13
    np.testing.assert_allclose(sim.data.qvel[:, 8], want, rtol=1e-10)


WHEELS = [
    ReactionWheelCfg(
        name=f"wheel_{k}", axis=axis, inertia=0.02, mass=1.5, max_torque=0.4,
        max_speed=60.0, viscous=2e-3, coulomb=5e-3,
    )
    for k, axis in enumerate([(1, 0.2, 0), (0, -0.5, 1)])
]  # fmt: skip


def wheeled():
    """Two craft of one kind, each with wheels."""

    def craft():
        spec = mujoco.MjSpec.from_string(OTHER)
        for wheel in WHEELS:
            wheel.add_to(spec, "bus")
        return spec

    return SceneCfg(
        entities={"a": EntityCfg(model=craft), "b": EntityCfg(model=craft)},
        ground=False,
        gravity=(0, 0, 0),
        timestep=0.5,
    )


@pytest.mark.parametrize("scheme", [RK4, DP54], ids=["RK4", "DP54"])
def test_reaction_wheels_of_two_craft(monkeypatch, scheme):
    """One wheel comes to its greatest speed; inputs stay what the user wrote."""
    kept = []

    def add(sim):
        for name in ("b", "a"):
            wheels = ReactionWheels(name, WHEELS)
            sim.add_force(wheels)
            wheels.parameters["max_speed"][1, 0] = 20.0
            wheels.parameters["coulomb"][2] *= 3.0
        sim.data.ctrl[:] = torch.tensor([0.3, -0.2, 0.05, 0.4], dtype=F64)
        sim.data.qfrc_applied[:, 3] = torch.tensor([0.1, -0.2, 0.3], dtype=F64)
        kept.append((sim, sim.data.ctrl.clone(), sim.data.qfrc_applied.clone()))

    ends = flown(monkeypatch, scheme, add, steps=(5, 4), world=wheeled)
    torch.testing.assert_close(ends[0][0], ends[1][0], rtol=1e-9, atol=1e-9)
    for sim, ctrl, force in kept:
        assert torch.equal(sim.data.ctrl, ctrl)
        assert torch.equal(sim.data.qfrc_applied, force)
    speed = kept[0][0].scene["a"].data.joint_vel[:, 0]
    assert float(speed[1]) < 22.0 < float(speed[0])


def test_a_wheel_whose_maximum_speed_is_zero_gives_no_torque(monkeypatch):
    """As after a failure, on both paths."""
    kept = []

    def add(sim):
        wheels = ReactionWheels("a", WHEELS)
        sim.add_force(wheels)
        wheels.parameters["max_speed"][1:, 0] = 0.0
        wheels.parameters["coulomb"][:] = wheels.parameters["viscous"][:] = 0.0
        sim.data.qvel[:] = 0.0
        sim.data.ctrl[:, 0] = 0.3
        kept.append(sim)

    (ours, _), (plain, _) = flown(monkeypatch, RK4, add, (3, 2), wheeled)
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-12)
    for sim in kept:
        speeds = sim.scene["a"].data.joint_vel[:, 0]
        assert float(speeds[0]) > 10.0
        assert float(speeds[1:].abs().max()) < 1e-9


def test_a_motor_slows_down_a_wheel_whose_maximum_speed_is_zero(monkeypatch):
    """The torque that slows a wheel down does not fade, on both paths."""
    kept = []

    def add(sim):
        wheels = ReactionWheels("a", WHEELS)
        sim.add_force(wheels)
        for name in ("max_speed", "coulomb", "viscous"):
            wheels.parameters[name][:] = 0.0
        sim.data.qvel[:] = 0.0
        sim.scene["a"].write_joint_velocity_to_sim([[20.0]], [0])
        sim.data.ctrl[:, 0] = -0.1
        kept.append(sim)

    (ours, _), (plain, _) = flown(monkeypatch, RK4, add, (3, 2), wheeled)
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-12)
    for sim in kept:
        speeds = sim.scene["a"].data.joint_vel[:, 0]
        left = 20.0 - 0.1 / 0.02 * np.array([2.5, 1.5, 2.5])  # of a heavy hub
        np.testing.assert_allclose(speeds, left, atol=0.5)


@pytest.mark.parametrize("kind", [UniformRotation, EarthRotation])
def test_a_rotation_that_is_a_subclass_is_evaluated_by_python(kind):
    if kind is EarthRotation:
        pytest.importorskip("erfa")
    args = (Epoch.utc("2026-11-16"),) if kind is EarthRotation else ()
    for own, is_compiled in ((kind, True), (type("Own", (kind,), {}), False)):
        sim = Simulation(mujoco.MjModel.from_xml_string(CRAFT), 2, integrator=RK4)
        gravity = HarmonicGravity(earth_coefficients(3), own(*args))
        sim.add_process(integrate.MovingFrame(gravity, PLACE[0], SPEED[0]))
        assert (compiled_models_of(sim) is not None) == is_compiled


@pytest.mark.parametrize("kind", [PlanetAir, ExponentialAtmosphere, StandardAtmosphere])
@pytest.mark.parametrize("of", ["panels", "body"])
def test_air_that_is_a_subclass_is_evaluated_by_python(kind, of):
    for own, is_compiled in ((kind, True), (type("Own", (kind,), {}), False)):
        air = own() if kind is PlanetAir else PlanetAir(atmosphere=own())
        sim = Simulation(mujoco.MjModel.from_xml_string(CRAFT), 2, integrator=RK4)
        gravity = integrate.PointMassGravity(EARTH.mu)
        sim.add_process(integrate.MovingFrame(gravity, PLACE[0], SPEED[0]))
        if of == "panels":
            drag = PanelDrag("model", "bus", *box_panels((1.0, 2.0, 3.0)), air)
        else:
            drag = integrate.Drag("model", "bus", 1.0, air.density, air.wind)
        sim.add_force(drag)
        assert (compiled_models_of(sim) is not None) == is_compiled


def test_what_only_python_has(monkeypatch):
    """A subclass, a hot day, a motion that is a function: the core steps aside."""

    class Own(HarmonicGravity):
        pass

    def orbit(sim, gravity):
        sim.add_process(integrate.MovingFrame(gravity, PLACE, SPEED))
        return compiled_models_of(sim)

    def make():
        return Simulation(mujoco.MjModel.from_xml_string(CRAFT), NUM, integrator=RK4)

    zonal = zonal_coefficients(EARTH)
    assert orbit(make(), Own(zonal)) is None
    body = integrate.ThirdBody(4.9e12, lambda t: torch.as_tensor(winding(t.numpy())))
    point = integrate.PointMassGravity(EARTH.mu)
    assert orbit(make(), integrate.CentralGravity(point, [body])) is None
    sim = make()
    assert orbit(sim, HarmonicGravity(zonal)) is not None
    hot = StandardAtmosphere(temperature_offset=torch.tensor([0.0, 20.0, 0.0]))
    air = PlanetAir(atmosphere=hot)
    sim.add_force(integrate.Drag("model", "bus", 3.0, air.density, air.wind))
    assert compiled_models_of(sim) is None
    hot.parameters["temperature_offset"].zero_()
    assert compiled_models_of(sim) is not None

    class Shaded(PanelDrag):
        pass

    sim.add_force(Shaded("model", "bus", *box_panels((1.0, 2.0, 3.0)), air))
    assert compiled_models_of(sim) is None


def test_polynomials_are_fitted_on_as_time_goes(monkeypatch):
    """Steps far beyond the segments that were there at first."""

    def add(sim):
        sim.add_process(integrate.MovingFrame(FIELDS["bodies"](), PLACE, SPEED))

    def coarse():
        return replace(scene(), timestep=300.0)

    compare(flown(monkeypatch, RK4, add, steps=(12, 25), world=coarse), atol=1e-8)


def test_the_air_takes_a_row_for_each_world():
    sim = Simulation(mujoco.MjModel.from_xml_string(CRAFT), NUM, integrator=RK4)
    air = PlanetAir(atmosphere=StandardAtmosphere(density_factor=[1.0, 1.1]))
    with raises(InvalidInputError, name="density_factor"):
        sim.add_force(integrate.Drag("model", "bus", 3.0, air.density, air.wind))


def test_tables_that_do_not_fit_are_refused():
    model = mujoco.MjModel.from_xml_string(CRAFT)
    worlds = core.CoreBatch(model, NUM, 1)
    zonal = HarmonicGravity(zonal_coefficients(EARTH)).compiled_form(0.0, 1.0)
    assert zonal is not None
    good = load(
        LoadKind.FIELD_GRAVITY, [1, 2], [[1.0, 1, 0, 0, 0]], -1, zonal.field.row()
    )
    core.Integrator(worlds, RK4.tableau, loads=[good])
    for table in (good.table[:-1], good.table[:3], np.full(200, math.nan)):
        bad = core.CoreLoad(good.kind, good.bodies, good.parameters, -1, table)
        with raises(InvalidInputError, name="integrator"):
            core.Integrator(worlds, RK4.tableau, loads=[bad])
    wheels = load(LoadKind.WHEELS, [0], [[1.0, 1, 1]], -1, [1.0, 2, 0])
    with raises(InvalidInputError, name="integrator"):  # there is no such control
        core.Integrator(worlds, RK4.tableau, loads=[wheels])
    table = core.PlanetAirTable(6.4e6, 0.003, 0.0).row()
    air = load(LoadKind.AIR_DRAG, [1], np.ones((NUM, 7)), -1, table)
    core.Integrator(worlds, RK4.tableau, loads=[air])
    panels = load(LoadKind.PANELS, [1], np.ones((NUM, 3 + 2 * 8)), -1, table)
    core.Integrator(worlds, RK4.tableau, loads=[panels])
    numbers = np.ascontiguousarray(panels.parameters[:, :-1])
    bad = core.CoreLoad(panels.kind, panels.bodies, numbers, -1, panels.table)
    with raises(InvalidInputError, name="integrator"):
        core.Integrator(worlds, RK4.tableau, loads=[bad])
    bad = core.CoreLoad(air.kind, air.bodies, air.parameters, -1, air.table[:-1])
    with raises(InvalidInputError, name="integrator"):
        core.Integrator(worlds, RK4.tableau, loads=[bad])
