"""Orbits about a point mass: orbital elements, states and secular rates.

Angles are in radians, lengths in metres, tensors of float64 with any batch shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from simstate.base.checks import instance_of
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.math.conventions.checked_values import as_float64, batch_of
from simstate.math.elementwise import atan2, hypot
from simstate.math.vector import cross, dot, norm
from simstate.space.anomaly import (
    mean_from_true,
    true_from_mean,
)
from simstate.space.planets import EARTH, Planet, check_length

CIRCULAR = 1e-11
"""Eccentricity below which an orbit is a circle, whose periapsis is at its node; sine
of the inclination below which it is equatorial, with its node at x."""


@dataclass(frozen=True)
class OrbitalElements:
    """Classical elements; all of the same shape (...).

    The size is the semi-latus rectum, which every conic has. A circle has no periapsis:
    its argument is zero, and the anomaly counts from the node. An equatorial orbit has
    no node: its longitude is zero, and the argument of periapsis counts from x.
    """

    semi_latus_rectum: Tensor
    """p [m], > 0."""
    eccentricity: Tensor
    """e ≥ 0: below 1 an ellipse, 1 a parabola, above a hyperbola."""
    inclination: Tensor
    """i, 0 to π [rad]."""
    node: Tensor
    """Longitude of the ascending node Ω, 0 to 2π [rad]."""
    periapsis: Tensor
    """Argument of periapsis ω, 0 to 2π [rad]."""
    true_anomaly: Tensor
    """ν, −π to π [rad]."""
    mu: float = EARTH.mu
    """Gravitational parameter of the central body [m³/s²]."""

    @classmethod
    def of(
        cls,
        semi_major_axis: Values | float,
        eccentricity: Values | float = 0.0,
        inclination: Values | float = 0.0,
        node: Values | float = 0.0,
        periapsis: Values | float = 0.0,
        true_anomaly: Values | float = 0.0,
        mu: float = EARTH.mu,
    ) -> OrbitalElements:
        """Return elements by the semi-major axis a [m], < 0 for a hyperbola; SI units.

        An orbit inside the planet of `mu` raises, because its size was probably given
        in kilometres.
        """
        names = (
            "semi_major_axis", "eccentricity", "inclination", "node", "periapsis",
            "true_anomaly",
        )  # fmt: skip
        given = (
            semi_major_axis, eccentricity, inclination, node, periapsis, true_anomaly,
        )  # fmt: skip
        parts = [as_float64(x, n) for x, n in zip(given, names, strict=True)]
        batch_of(**{n: (part, 0) for n, part in zip(names, parts, strict=True)})
        like = sum(parts, torch.zeros((), dtype=torch.float64))
        a, e, i, *turns = (part.expand_as(like).clone() for part in parts)
        if bool((e < 0).any()):
            raise InvalidInputError(
                f"eccentricity must be ≥ 0, got {eccentricity}.", name="eccentricity"
            )
        if bool((a * (1 - e * e) <= 0).any()):
            raise InvalidInputError(
                "An ellipse (e < 1) has a > 0, a hyperbola (e > 1) a < 0; a parabola "
                "has no semi-major axis: give OrbitalElements its semi_latus_rectum.",
                name="semi_major_axis",
            )
        if bool(((i < 0) | (i > torch.pi)).any()):
            raise InvalidInputError(
                f"inclination must be ≥ 0 and ≤ π [rad], got {inclination}: "
                "math.radians(…) takes degrees.",
                name="inclination",
            )
        if bool((1 + e * turns[2].cos() <= 0).any()):
            raise InvalidInputError(
                "The true anomaly of a hyperbola must be within ±arccos(−1/e) [rad], "
                f"its asymptotes; got {true_anomaly} and e = {eccentricity}.",
                name="true_anomaly",
            )
        # A trajectory that only begins or ends on the ground is an orbit, too.
        apoapsis, axis = torch.where(e < 1, a * (1 + e), inf), names[0]
        check_length(axis, "The apoapsis a·(1 + e)", apoapsis, mu)
        check_length(axis, "The semi-major axis", torch.where(e > 1, -a, inf), mu, 0.01)
        return cls(a * (1 - e * e), e, i, turns[0], turns[1], turns[2], mu)

    @property
    def semi_major_axis(self) -> Tensor:
        """a [m]: negative for a hyperbola, infinite for a parabola."""
        return self.semi_latus_rectum / (1 - self.eccentricity**2)

    @property
    def period(self) -> Tensor:
        """Period of an ellipse [s]; infinite for others."""
        a = self.semi_major_axis
        closed = self.eccentricity < 1
        time = 2 * torch.pi * (torch.where(closed, a, 1.0) ** 3 / self.mu).sqrt()
        return torch.where(closed, time, torch.inf)

    @property
    def mean_anomaly(self) -> Tensor:
        """M [rad]; of a parabola √(μ/p³)·Δt, of a hyperbola √(μ/|a|³)·Δt."""
        return mean_from_true(self.true_anomaly, self.eccentricity)

    def with_mean_anomaly(self, mean: Values | float) -> OrbitalElements:
        """Return the same orbit at another mean anomaly [rad]."""
        given = as_float64(mean, "mean_anomaly") + 0 * self.eccentricity
        true = true_from_mean(given, self.eccentricity)
        return OrbitalElements(
            self.semi_latus_rectum, self.eccentricity, self.inclination, self.node,
            self.periapsis, true, self.mu,
        )  # fmt: skip

    def after(self, seconds: Values | float) -> OrbitalElements:
        """Return the same orbit after a time [s].

        Near a parabola (|e − 1| < 1e-6) anomalies lose digits; use `propagate_kepler`.
        """
        time = as_float64(seconds, "seconds")
        parabola = self.eccentricity == 1
        size = torch.where(parabola, self.semi_latus_rectum, self.semi_major_axis.abs())
        motion = (self.mu / size**3).sqrt()
        return self.with_mean_anomaly(self.mean_anomaly + motion * time)

    def state(self) -> tuple[Tensor, Tensor]:
        """Return position [m] and velocity [m/s], inertial axes; (..., 3) each."""
        p, e, nu = self.semi_latus_rectum, self.eccentricity, self.true_anomaly
        cos, sin = nu.cos(), nu.sin()
        zero = torch.zeros_like(nu)
        radius = p / (1 + e * cos)
        speed = (self.mu / p).sqrt()
        pos = torch.stack([radius * cos, radius * sin, zero], dim=-1)
        vel = torch.stack([-speed * sin, speed * (e + cos), zero], dim=-1)
        rot = _rot_inertial_orbit(self.node, self.inclination, self.periapsis)
        return (rot @ pos[..., None])[..., 0], (rot @ vel[..., None])[..., 0]


def elements_from_state(
    position: Values, velocity: Values, mu: float = EARTH.mu
) -> OrbitalElements:
    """Return the elements of a position [m] and velocity [m/s], inertial axes."""
    pos = as_float64(position, "position", 3)
    vel = as_float64(velocity, "velocity", 3)
    batch_of(position=(pos, 1), velocity=(vel, 1))
    check_length("position", "The distance of the position", norm(pos), mu, 0.01)
    momentum = cross(pos, vel)
    if bool((norm(momentum) <= 1e-12 * norm(pos) * norm(vel)).any()):
        raise InvalidInputError(
            "A straight line through the centre has no orbital elements: position and "
            "velocity must not be parallel.",
            name="velocity",
        )
    to_periapsis = cross(vel, momentum) / mu - pos / norm(pos)
    eccentricity = norm(to_periapsis)[..., 0]
    pole = momentum / norm(momentum)
    sine = hypot(pole[..., 0], pole[..., 1])
    inclination = atan2(sine, pole[..., 2])
    node = torch.where(sine < CIRCULAR, 0.0, atan2(pole[..., 0], -pole[..., 1]))
    to_node = torch.stack([node.cos(), node.sin(), torch.zeros_like(node)], dim=-1)
    across = cross(pole, to_node)
    latitude = atan2(dot(pos, across)[..., 0], dot(pos, to_node)[..., 0])
    periapsis = atan2(
        dot(to_periapsis, across)[..., 0], dot(to_periapsis, to_node)[..., 0]
    )
    periapsis = torch.where(eccentricity < CIRCULAR, 0.0, periapsis)
    true = torch.remainder(latitude - periapsis + torch.pi, 2 * torch.pi) - torch.pi
    return OrbitalElements(
        dot(momentum, momentum)[..., 0] / mu,
        eccentricity,
        inclination,
        torch.remainder(node, 2 * torch.pi),
        torch.remainder(periapsis, 2 * torch.pi),
        true,
        mu,
    )


@dataclass(frozen=True)
class SecularRates:
    """Average rates of an orbit due to J2 [rad/s]; shape (...) each."""

    node: Tensor
    periapsis: Tensor
    mean_anomaly: Tensor
    """In addition to the mean motion."""


def j2_rates(elements: OrbitalElements, planet: Planet = EARTH) -> SecularRates:
    """Return the first-order secular rates of an ellipse about an oblate planet."""
    instance_of("elements", elements, OrbitalElements)
    instance_of("planet", planet, Planet)
    if abs(elements.mu / planet.mu - 1.0) > 1e-3:
        raise InvalidInputError(
            f"The elements have mu = {elements.mu:g} m³/s², but {planet.name} has "
            f"{planet.mu:g}: pass the planet of the orbit.",
            name="planet",
        )
    if bool((elements.eccentricity >= 1).any()):
        raise InvalidInputError(
            "Only closed orbits (eccentricity < 1) have secular rates, got "
            f"{float(elements.eccentricity.max()):g}.",
            name="eccentricity",
        )
    e, cos = elements.eccentricity, elements.inclination.cos()
    motion = (elements.mu / elements.semi_major_axis**3).sqrt()
    size = 0.75 * motion * planet.j2 * (planet.radius / elements.semi_latus_rectum) ** 2
    return SecularRates(
        -2 * size * cos,
        size * (5 * cos**2 - 1),
        size * (1 - e**2).sqrt() * (3 * cos**2 - 1),
    )


def _rot_inertial_orbit(node: Tensor, inclination: Tensor, periapsis: Tensor) -> Tensor:
    """Matrix from orbit axes (x to periapsis, z its pole) to inertial; (..., 3, 3)."""
    co, so = node.cos(), node.sin()
    ci, si = inclination.cos(), inclination.sin()
    cw, sw = periapsis.cos(), periapsis.sin()
    rows = [
        torch.stack([co * cw - so * sw * ci, -co * sw - so * cw * ci, so * si], dim=-1),
        torch.stack(
            [so * cw + co * sw * ci, -so * sw + co * cw * ci, -co * si], dim=-1
        ),
        torch.stack([sw * si, cw * si, ci], dim=-1),
    ]
    return torch.stack(rows, dim=-2)
