"""Force models describe themselves to the core; their subclasses only on their own."""

from __future__ import annotations

import mujoco
import pytest
import torch
from tests.inside import compiled_models_of

from simstate import Simulation, integrate
from simstate.engine import core
from simstate.flight import ExponentialAtmosphere
from simstate.space import (
    EARTH,
    HarmonicGravity,
    PanelDrag,
    PlanetAir,
    ReactionWheelCfg,
    ReactionWheels,
    box_panels,
    zonal_coefficients,
)
from simstate.step.forces.compiled_force import CompiledForce

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 3
MODEL = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody>
  <body name="probe" pos="5 1 2"><freejoint/>
    <inertial pos="0.1 0 0.2" mass="2" diaginertia="0.1 0.2 0.25"/>
  </body>
  <body name="bus" pos="7e6 -1 2" quat="0.8 0.1 0.5 0.3"><freejoint/>
    <inertial pos="0.2 -0.1 0.05" mass="12" diaginertia="2 3 4"/>
    <body name="wheel"><joint name="wheel" axis="1 0.2 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.2"/>
    </body>
  </body>
</worldbody><actuator><motor name="wheel" joint="wheel" gear="0.7"/></actuator></mujoco>
"""
MU = 3.9e14
RK4 = integrate.RK4("lie")


def air(kind=PlanetAir):
    return kind(atmosphere=ExponentialAtmosphere(1e-9, 5e4, 5e5))


def drag_in(kind, density):
    return kind("model", "bus", 1.3, density.density, density.wind)


def wheels(kind):
    wheel = ReactionWheelCfg(
        name="wheel", axis=(1.0, 0.2, 0.0), inertia=0.2, max_torque=1.0, max_speed=9.0
    )
    return kind("model", [wheel])


MAKE = {
    integrate.UniformGravity: lambda kind: kind((0.1, -0.2, 0.3)),
    integrate.Thruster: lambda kind: kind("model", "bus", (1.0, 2.0, 3.0)),
    integrate.Drag: lambda kind: kind("model", "bus", 1.3),
    integrate.PointMassGravity: lambda kind: kind([MU]),
    integrate.CentralGravity: lambda kind: kind(integrate.PointMassGravity(MU), []),
    HarmonicGravity: lambda kind: kind(zonal_coefficients(EARTH)),
    PanelDrag: lambda kind: kind("model", "bus", *box_panels((1, 2, 3)), air()),
    ReactionWheels: wheels,
}


def runs_in_the_core(*models):
    model = mujoco.MjModel.from_xml_string(MODEL)
    sim = Simulation(model, NUM, integrator=integrate.RK4())
    for force in models:
        sim.add_force(force)
    return compiled_models_of(sim) is not None


@pytest.mark.parametrize("kind", MAKE, ids=lambda kind: kind.__name__)
def test_a_subclass_may_compute_anything(kind):
    other = type("Other", (kind,), {})
    assert runs_in_the_core(MAKE[kind](kind))
    assert not runs_in_the_core(MAKE[kind](other))


def test_a_moving_frame_falls_by_what_its_gravity_is():
    for kind in (integrate.PointMassGravity, HarmonicGravity):
        found = []
        for gravity in (kind, type("Other", (kind,), {})):
            sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM, integrator=RK4)
            speed = (0.0, 7.5e3, 0.0)
            frame = integrate.MovingFrame(MAKE[kind](gravity), (7e6, 0, 0), speed)
            sim.add_process(frame)
            found.append(compiled_models_of(sim) is not None)
        assert found == [True, False]


def test_air_that_is_not_the_planets_is_pythons():
    other = type("Other", (PlanetAir,), {})
    one, two = air(), air()
    assert runs_in_the_core(drag_in(integrate.Drag, air()))
    assert not runs_in_the_core(drag_in(integrate.Drag, air(other)))
    mixed = integrate.Drag("model", "bus", 1.3, one.density, two.wind)
    assert not runs_in_the_core(mixed)
    windy = integrate.Drag("model", "bus", 1.3, wind=lambda t, pos: 0 * pos)
    assert not runs_in_the_core(windy)


def test_a_class_of_ones_own_runs_in_the_core_by_its_description():
    class Pull(integrate.UniformGravity):
        """Half the acceleration."""

        def __call__(self, t, sim):
            raise AssertionError("the core evaluates it")

        def compiled(self, start, end):
            half = self.parameters["acceleration"] * 0.5
            return CompiledForce(core.LoadKind.UNIFORM_GRAVITY, [1], [half])

    class Frozen:
        """Nothing but a description."""

        def __call__(self, t, sim):
            raise AssertionError("the core evaluates it")

        def compiled(self, start, end):
            kind = core.LoadKind.UNIFORM_GRAVITY
            return CompiledForce(kind, [1], [0.5, 0.0, -0.25])

    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM, integrator=RK4)
    rows = torch.arange(3.0 * NUM, dtype=torch.float64).view(NUM, 3)
    start = sim.data.xipos[:, 1].clone()
    sim.add_force(Pull(rows))
    sim.add_force(Frozen())
    sim.step(10)
    total = rows / 2 + torch.tensor([0.5, 0.0, -0.25], dtype=torch.float64)
    moved = sim.data.xipos[:, 1] - start
    torch.testing.assert_close(moved, total / 2, rtol=0, atol=1e-12)
