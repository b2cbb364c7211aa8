"""Formulas in torch and in C whose terms are too small on Earth to tell them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.inside import set_pole
from tests.space.test_compiled import F64, PLACE, RK4, SPEED, compare, flown, harmonics

from simstate import integrate
from simstate.engine import core
from simstate.flight import ExponentialAtmosphere
from simstate.space import EARTH, EarthRotation, Epoch, PlanetAir

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)


def test_the_height_above_a_very_flat_planet(monkeypatch):
    planet = replace(EARTH, radius=6.5e6, flattening=0.3)
    density = torch.tensor([3e-9, 2e-9, 4e-9], dtype=F64)

    def add(sim):
        gravity = integrate.PointMassGravity(EARTH.mu)
        sim.add_process(integrate.MovingFrame(gravity, PLACE, SPEED))
        air = PlanetAir(planet, ExponentialAtmosphere(density, 4e5, 1e5))
        drag = integrate.Drag("model", "probe", 50.0, air.density, air.wind)
        sim.add_force(drag)

    compare(flown(monkeypatch, RK4, add), atol=1e-8)


def test_a_pole_that_is_far_away(monkeypatch):
    pytest.importorskip("erfa")

    def far(self, t):
        turn = 1e-4 * t
        return np.stack(
            [0.2 + 0.1 * np.cos(turn), 0.3 * np.sin(turn) - 0.1, 0.4 - 0.1 * turn],
            axis=-1,
        )

    set_pole(monkeypatch, far)

    def add(sim):
        field = harmonics(lambda: EarthRotation(Epoch.utc("2026-11-16T12:00:00")))
        sim.add_process(integrate.MovingFrame(field, PLACE, SPEED))

    compare(flown(monkeypatch, RK4, add))
