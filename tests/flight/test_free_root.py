"""An airframe's state by the compiled core, as the conversion of conventions has it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.inside import root_of
from tests.raised import raises

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.engine import core
from simstate.flight import EARTH, AircraftCfg, FreeFlight
from simstate.flight.free_root import FreeRoot
from simstate.math.conventions import PTERA

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


def held(flight: FreeFlight, name: str, by_the_core: bool, *load, **options):
    """What a call of `apply_loads` leaves in xfrc_applied, the one or the other way."""
    root = root_of(flight, name)
    kept = root.compiled
    flight.sim.data.xfrc_applied[:] = 7.0
    try:
        root.compiled = kept if by_the_core else None
        flight.apply_loads(*load, aircraft=name, **options)
    finally:
        root.compiled = kept
    return flight.sim.data.xfrc_applied.clone()


@pytest.mark.parametrize("axes", ["body", "earth"])
@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3)])
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, np.ndarray.tolist])
def test_loads_are_those_of_the_conversion(axes, shape, kind) -> None:
    flight = flights()
    rng = np.random.default_rng(3)
    load = [kind(rng.normal(size=shape) * 9) for _ in range(2)]
    for name in flight.aircraft:
        got = held(flight, name, True, *load, axes=axes)
        want = held(flight, name, False, *load, axes=axes)
        np.testing.assert_allclose(got, want, 1e-13, 1e-13)
        assert (got == 7.0).any(dim=-1).any()  # the other links are left alone


def test_loads_that_do_not_lie_in_rows_are_taken() -> None:
    flight = flights()
    wide = np.asfortranarray(np.arange(30.0).reshape(5, 6))
    force, moment = wide[:, ::-2], wide[:, 3:]
    got = held(flight, "two", True, force, moment, axes="earth")
    body = flight.aircraft["two"].index.root_body_id
    assert torch.equal(got[:, body, :3], torch.tensor(force.copy()))
    assert torch.equal(got[:, body, 3:], torch.tensor(moment.copy()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_loads_that_are_not_finite_are_refused(bad: float) -> None:
    flight = flights()
    force = np.zeros((5, 3))
    force[3, 1] = bad
    before = flight.sim.data.xfrc_applied.clone()
    for axes in ("body", "earth"):
        with raises(InvalidInputError, name="force"):
            flight.apply_loads(force, np.zeros(3), axes, aircraft="one")
    zero = np.zeros(3)
    with raises(UnknownNameError, name="other"):
        flight.apply_loads(zero, zero, aircraft="one", definition="other")
    assert torch.equal(flight.sim.data.xfrc_applied, before)


def test_a_held_load_makes_accelerations_stale() -> None:
    flight = FreeFlight(2.0, np.eye(3), gravity=0.0)
    assert flight.sim.data.qacc[0, 0] == 0.0
    flight.apply_loads(np.array([4.0, 0.0, 0.0]), np.zeros(3))
    assert flight.sim.data.qacc[0, 0] == 2.0


def test_the_wind_of_a_state_is_a_copy() -> None:
    flight = flights()
    state = flight.get_state("one")
    flight.air.parameters["wind"] = (5.0, 0.0, 0.0)
    assert torch.equal(state.wind_e, torch.zeros(5, 3, dtype=torch.float64))
    assert torch.equal(flight.get_state("one").wind_e[:, 0], state.wind_e[:, 0] + 5.0)
