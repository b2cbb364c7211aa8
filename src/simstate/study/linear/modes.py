"""Modes of a linear model: frequency, damping and participation of states."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mode:
    """A real eigenvalue, or a conjugate pair, in continuous time."""

    eigenvalue: complex
    """Eigenvalue [1/s]; of a pair the one with a positive imaginary part.

    −∞ in a discrete-time model for a state that does not depend on the previous one."""
    participation: dict[str, float]
    """Participation of each state, 0 to 1; the sum is 1."""

    @property
    def is_oscillation(self) -> bool:
        """True for a conjugate pair."""
        return self.eigenvalue.imag != 0

    @property
    def frequency(self) -> float:
        """Natural frequency |λ| [rad/s]."""
        return abs(self.eigenvalue)

    @property
    def damping(self) -> float:
        """Damping ratio −Re λ / |λ|: 1 for a decay, −1 for a growth, 0 at λ = 0."""
        if math.isinf(self.frequency):
            return 1.0
        return -self.eigenvalue.real / self.frequency if self.frequency else 0.0

    @property
    def period(self) -> float:
        """Period of the damped oscillation [s]; infinite without one."""
        imag = abs(self.eigenvalue.imag)
        return 2 * math.pi / imag if imag else math.inf

    @property
    def time_to_half(self) -> float:
        """Time in which the amplitude halves [s]; negative if it grows."""
        real = self.eigenvalue.real
        return math.log(2) / -real if real else math.inf

    def main(self, count: int = 3) -> list[str]:
        """Return the states with the largest participation."""
        ordered = sorted(self.participation.items(), key=lambda x: -x[1])
        return [name for name, _ in ordered[:count]]


def modes_of(
    a: np.ndarray, states: tuple[str, ...], timestep: float | None
) -> list[Mode]:
    """Return the modes of a matrix, fastest first."""
    values, right = np.linalg.eig(a)
    # Rows of the inverse are the left eigenvectors; of a defective matrix, which has
    # no inverse, the pseudoinverse is used.
    left = np.linalg.pinv(right)
    shares = np.abs(right * left.T)
    shares = shares / shares.sum(axis=0).clip(min=1e-300)
    if timestep is not None:
        with np.errstate(divide="ignore"):  # log 0 = −∞
            logarithms = np.log(values.astype(complex))
        parts = logarithms.view(float) / timestep  # by parts, since −∞ + 0i is not NaN
        values = parts.view(complex)
    found: list[Mode] = []
    for k, value in enumerate(values):
        if value.imag < 0:
            continue  # the conjugate of another eigenvalue
        named = {name: float(x) for name, x in zip(states, shares[:, k], strict=True)}
        found.append(Mode(complex(value), named))
    return sorted(found, key=lambda mode: -mode.frequency)
