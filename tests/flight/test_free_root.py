"""An airframe's state by the compiled core, as the conversion of conventions has it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simstate.conventions import PTERA
from simstate.engine import core
from simstate.flight import EARTH, AircraftCfg, FreeFlight
from simstate.flight.free_root import FreeRoot

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

ROTOR = """
<body name="rotor" pos=".5 0 0"><joint axis="1 0 0"/>
  <geom type="box" size=".01 .2 .02" mass=".1" pos="0 .01 0"/></body>
"""


def flights() -> FreeFlight:
    """Two aircraft, in states of all kinds; quaternions are not of unit length."""
    inertia = np.diag([0.1, 0.3, 0.35])
    fleet = {
        "one": AircraftCfg(
            mass=2.0, inertia=inertia, com=(0.1, -0.03, 0.06), parts=ROTOR
        ),
        "two": AircraftCfg(mass=1.3, inertia=inertia, com=(-0.05, 0.02, 0.01)),
    }
    flight = FreeFlight(fleet=fleet, num_envs=5)
    rng = np.random.default_rng(8)
    for name in ("qpos", "qvel"):
        field = getattr(flight.sim.data, name)
        field[:] = torch.as_tensor(rng.normal(size=field.shape) * 7)
    return flight


@pytest.mark.parametrize("by_world", [False, True])
def test_it_is_the_conversion(by_world: bool) -> None:
    flight = flights()
    if by_world:
        flight.sim.expand("body_ipos")[:] += torch.linspace(0, 0.1, 5)[:, None, None]
    for entity in flight.aircraft.values():
        want = entity.state_in(PTERA, EARTH).parts
        got = FreeRoot(entity).read()
        for one, other in zip(got, want, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, 1e-13, 1e-13)


def test_it_is_a_copy() -> None:
    flight = flights()
    state = flight.get_state("one")
    before = state.position_E_Eo.clone()
    flight.sim.data.qpos[:] += 1.0
    assert torch.equal(state.position_E_Eo, before)


def test_no_turn_is_no_turn() -> None:
    """As MuJoCo takes a quaternion of zeros."""
    flight = flights()
    flight.sim.data.qpos[2, 3:7] = 0.0
    attitude = FreeRoot(flight.aircraft["one"]).read()[1]
    assert torch.equal(attitude[2], torch.eye(3, dtype=torch.float64))


def test_what_does_not_fit_is_refused() -> None:
    rows, com = np.zeros((3, 7)), np.zeros((1, 3))
    with pytest.raises(ValueError, match="qvel must have 6 numbers"):
        core.free_bodies.describe(rows, rows, com)
    with pytest.raises(ValueError, match="com must be float64 of shape"):
        core.free_bodies.describe(rows, rows[:, :6], np.zeros((2, 3)))
