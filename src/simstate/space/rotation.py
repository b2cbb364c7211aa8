"""Rotation of planets: from inertial axes to axes fixed in the planet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import instance_of
from simstate.engine import core
from simstate.math.elementwise import atan2, hypot
from simstate.space.ephemeris import Ephemeris
from simstate.space.epoch import DAY, J2000, Epoch, load_erfa
from simstate.space.planets import EARTH, Planet
from simstate.step.forces.force_parameters import Numbers, Parameters

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

_ERA_RATE = 2 * np.pi * 1.00273781191135448 / DAY
"""Rate of the Earth rotation angle [rad/s of UT1]; IERS Conventions (2010), eq.
5.15."""


class Rotation(Protocol):
    """Rotation from inertial axes to axes fixed in a planet.

    One that has a method `attach(sim)` is attached to the simulation that uses it.
    """

    def __call__(self, t: Tensor) -> Tensor:
        """rot_fi: vec_fixed = rot_fi @ vec_inertial; (1 or num_envs, 3, 3), float64.

        `t` is the simulation's time [s], (num_envs,).
        """
        ...

    def rate(self, t: Tensor) -> Tensor:
        """Angular velocity of the planet, fixed axes [rad/s]; (1 or num_envs, 3)."""
        ...


class UniformRotation:
    """Constant rotation about z, which is also the inertial z axis.

    Args:
        rate: angular velocity [rad/s]; a number or (num_envs,).
        angle: angle of the prime meridian from the inertial x axis at t = 0 [rad]; a
            number or (num_envs,).
    """

    def __init__(
        self, rate: Numbers = EARTH.rotation_rate, angle: Numbers = 0.0
    ) -> None:
        self.parameters = Parameters("UniformRotation")
        self.parameters.declare("rate", rate, unit="rad/s")
        self.parameters.declare("angle", angle, unit="rad")

    @classmethod
    def of(cls, planet: Planet, angle: Numbers = 0.0) -> UniformRotation:
        """Return the rotation of a planet."""
        return cls(planet.rotation_rate, angle)

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its rows of the parameters."""
        self.parameters.attach(sim)

    def __call__(self, t: Tensor) -> Tensor:
        """rot_fi: vec_fixed = rot_fi @ vec_inertial; (num_envs, 3, 3)."""
        rate, angle = (self.parameters.rows(n).to(t.device) for n in ("rate", "angle"))
        return about_z(angle + rate * t.double())

    def rate(self, t: Tensor) -> Tensor:
        """Angular velocity of the planet, fixed axes [rad/s]; (1 or num_envs, 3)."""
        rate = self.parameters.rows("rate").to(t.device)
        zero = torch.zeros_like(rate)
        return torch.stack([zero, zero, rate], dim=-1)


class EarthRotation:
    """The Earth's rotation by the IAU 2006/2000A models; inertial axes are the GCRS.

    Precession and nutation are interpolated to better than 1e-12 rad; the rotation
    angle is exact. Polar motion (0.3″, 9 m on the ground) and changes of `dut1` after
    the epoch are neglected. Needs pyerfa (extra `space`).

    Args:
        epoch: the epoch of t = 0.
    """

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = instance_of("epoch", epoch, Epoch)
        self._pole = Ephemeris(self._pole_at, segment=DAY, degree=9, name="the pole")

    def attach(self, sim: SteppingHost) -> None:
        """Move the interpolation to a simulation's device."""
        self._pole.attach(sim)

    def _pole_at(self, t: np.ndarray) -> np.ndarray:
        """Return the pole's coordinates X, Y and the origin's s [rad]; (n, 3)."""
        return np.stack(load_erfa().xys06a(*self.epoch.tt(t)), axis=-1)

    def __call__(self, t: Tensor) -> Tensor:
        """rot_fi, from the GCRS to the Earth's axes; (num_envs, 3, 3)."""
        x, y, s = self._pole(t).unbind(-1)
        e = atan2(y, x)
        d = atan2(hypot(x, y), (1 - x * x - y * y).sqrt())
        celestial = about_z(-(e + s)) @ _about_y(d) @ about_z(e)
        return about_z(self.epoch.earth_rotation_angle(t)) @ celestial

    def compiled_form(self, start: float, end: float) -> core.EarthAngle | None:
        """Return the rotation between two times [s] for the compiled core."""
        pole, epoch = self._pole.polynomials(start, end), self.epoch
        if pole is None or type(self) is not EarthRotation:
            return None
        days = epoch.tt_days - J2000
        fraction = days % 1.0 + epoch.tt_fraction
        return core.EarthAngle(
            epoch.ut1_minus_tt, days + epoch.tt_fraction, fraction, pole
        )

    def rate(self, t: Tensor) -> Tensor:
        """Angular velocity of the Earth, fixed axes [rad/s]; (1, 3)."""
        return torch.tensor([[0.0, 0.0, _ERA_RATE]], dtype=torch.float64).to(t.device)


def about_z(angle: Tensor) -> Tensor:
    """Return the matrix to axes rotated by an angle about z; (..., 3, 3)."""
    c, s = angle.cos(), angle.sin()
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    return _matrix([c, s, zero], [-s, c, zero], [zero, zero, one])


def _about_y(angle: Tensor) -> Tensor:
    """Return the matrix to axes rotated by an angle about y; (..., 3, 3)."""
    c, s = angle.cos(), angle.sin()
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    return _matrix([c, zero, -s], [zero, one, zero], [s, zero, c])


def _matrix(*rows: list[Tensor]) -> Tensor:
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
