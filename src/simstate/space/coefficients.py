"""Coefficients of gravity fields: ICGEM files, truncation and zonal terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import as_path, instance_of, number, whole_number
from simstate.base.errors import InvalidInputError, ModelError
from simstate.space.planets import Planet

SHIPPED = Path(__file__).parent / "earth_egm2008.gfc"
"""EGM2008 to degree and order 20."""

MAX_DEGREE = 2190
"""Highest degree of a file, that of EGM2008: 77 MB of coefficients."""
_MAX_BYTES = 1 << 30
"""Size of the largest file that is read; EGM2008 has 0.25 GB."""
_NORMS = ("fully_normalized", "unnormalized")


@dataclass(frozen=True)
class HarmonicCoefficients:
    """A gravity field as fully normalised coefficients C̄ and S̄."""

    name: str
    mu: float
    """Gravitational parameter [m³/s²]."""
    radius: float
    """Reference radius of the coefficients [m]."""
    c: Tensor
    """C̄ₙₘ in row n and column m, float64; (degree + 1, degree + 1). C̄₀₀ is the factor
    of the central term μ/r; 0 counts as 1."""
    s: Tensor
    """S̄ₙₘ likewise."""

    def __post_init__(self) -> None:
        instance_of("c", self.c, Tensor)
        instance_of("s", self.s, Tensor)
        if self.c.shape != self.c.shape[:1] * 2 or self.c.shape != self.s.shape:
            raise InvalidInputError(
                "C̄ and S̄ must be square and of one shape, got "
                f"{tuple(self.c.shape)} and {tuple(self.s.shape)}.",
                name="c",
            )
        number("mu", self.mu, more_than=0)
        number("radius", self.radius, more_than=0)

    @property
    def degree(self) -> int:
        """Maximum degree."""
        return self.c.shape[0] - 1

    def cut(self, degree: int, order: int | None = None) -> HarmonicCoefficients:
        """Return the field truncated to a degree, and to an order that may be lower."""
        whole_number("degree", degree, 0)
        order = degree if order is None else whole_number("order", order, 0)
        if not 0 <= order <= degree <= self.degree:
            raise InvalidInputError(
                f"{self.name} goes to degree and order {self.degree}; 0 ≤ order ≤ "
                f"degree ≤ {self.degree}, got degree {degree} and order {order}.",
                name="degree",
            )
        c, s = (x[: degree + 1, : degree + 1].clone() for x in (self.c, self.s))
        c[:, order + 1 :], s[:, order + 1 :] = 0.0, 0.0
        return HarmonicCoefficients(self.name, self.mu, self.radius, c, s)


def earth_coefficients(
    degree: int = 8, order: int | None = None
) -> HarmonicCoefficients:
    """Return EGM2008 (tide-free), the Earth's field, to a degree and order up to 20."""
    return read_gfc(SHIPPED).cut(degree, order)


def zonal_coefficients(
    planet: Planet, j: Mapping[int, float] | None = None
) -> HarmonicCoefficients:
    """Return a field of zonal terms, unnormalised J₂, J₃, …; default: the planet's J₂.

    Jₙ is −Cₙ₀ for the planet's equatorial radius.
    """
    instance_of("planet", planet, Planet)
    if j is not None:
        instance_of("j", j, Mapping)
    given = {2: planet.j2} if j is None else dict(j)
    if not given or min(given) < 2:
        raise InvalidInputError(
            f"Zonal terms are J2, J3, …; got {sorted(given)}.", name="J2"
        )
    degree = max(given)
    c = torch.zeros(degree + 1, degree + 1, dtype=torch.float64)
    c[0, 0] = 1.0
    for n, value in given.items():
        c[n, 0] = -value / math.sqrt(2 * n + 1)
    name = f"{planet.name}, zonal"
    return HarmonicCoefficients(name, planet.mu, planet.radius, c, torch.zeros_like(c))


def read_gfc(path: str | Path) -> HarmonicCoefficients:
    """Read a static gravity field in ICGEM's format (.gfc), as those of EGM and GGM."""
    path = as_path("path", path)
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise ModelError(
                f"The gravity field {path} has {size:,} bytes: at most {_MAX_BYTES:,} "
                "are read.",
                name=str(path),
            )
        lines = path.read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise ModelError(
            f"The gravity field {path} cannot be read: {error}.", name=str(path)
        ) from error
    ends = [k for k, line in enumerate(lines) if line.startswith("end_of_head")]
    if not ends:
        raise ModelError(
            f"{path} is not an ICGEM file: it has no line 'end_of_head'.",
            name="end_of_head",
        )
    head = _head(lines[: ends[0]])
    for key in ("earth_gravity_constant", "radius", "max_degree"):
        if key not in head:
            raise ModelError(f"The head of {path} has no {key}.", name=key)
    norm = head.get("norm", "fully_normalized")
    if norm not in _NORMS:
        raise ModelError(
            f"{path} is normalised as {norm!r}, not as one of {_NORMS}.", name="norm"
        )
    degree = _degree(path, head["max_degree"])
    c, s = _table(path, lines, ends[0] + 1, degree)
    if norm == "unnormalized":
        c, s = _normalised(path, c, s)
    mu, radius = (
        _positive(path, key, head[key]) for key in ("earth_gravity_constant", "radius")
    )
    name = head.get("modelname", path.stem)
    return HarmonicCoefficients(
        name, mu, radius, torch.as_tensor(c), torch.as_tensor(s)
    )


def _degree(path: Path, text: str) -> int:
    """Return the highest degree that the head of a file states."""
    digits = text.strip()
    degree = int(digits) if digits.isdecimal() and len(digits) < 9 else -1
    if not 0 <= degree <= MAX_DEGREE:
        raise ModelError(
            f"The head of {path} states max_degree {text[:40]!r}: it must be an "
            f"integer from 0 to {MAX_DEGREE}.",
            name="max_degree",
        )
    return degree


def _positive(path: Path, key: str, text: str) -> float:
    """Return a number of the head that must be finite and > 0."""
    try:
        value = _number(text.split()[0])
    except (ValueError, IndexError):
        value = math.nan
    if not 0 < value < math.inf:
        raise ModelError(
            f"The head of {path} states {key} {text[:40]!r}: it must be a finite "
            "number > 0.",
            name=key,
        )
    return value


def _head(lines: list[str]) -> dict[str, str]:
    """Return the values of the head by key."""
    parts = (line.split(maxsplit=1) for line in lines)
    return {part[0]: part[1].strip() for part in parts if len(part) == 2}


def _table(
    path: Path, lines: list[str], first: int, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return C and S of the lines from `first` on; (degree + 1, degree + 1) each."""
    c, s = np.zeros((2, degree + 1, degree + 1))
    c[0, 0] = 1.0
    for k, line in enumerate(lines[first:], first + 1):
        part = line.split()
        if not part or part[0] not in ("gfc", "gfct"):
            if part and part[0] in ("trnd", "dot", "acos", "asin"):
                raise ModelError(
                    f"{path} changes with time (a line '{part[0]}'): such fields are "
                    "not supported. Take a static one.",
                    name=part[0],
                )
            continue
        try:
            n, m = int(part[1]), int(part[2])
            values = _number(part[3]), _number(part[4])
        except (ValueError, IndexError) as error:
            raise ModelError(
                f"Line {k} of {path} is not a coefficient: {line[:80]!r}.",
                name=str(path),
            ) from error
        if not 0 <= m <= n <= degree or not all(map(math.isfinite, values)):
            raise ModelError(
                f"Line {k} of {path} is not a coefficient: it must have 0 ≤ order ≤ "
                f"degree ≤ {degree} and finite values, got {line[:80]!r}.",
                name=str(path),
            )
        c[n, m], s[n, m] = values
    return c, s


def _number(text: str) -> float:
    """Parse a number, also with Fortran's exponent."""
    return float(text.lower().replace("d", "e"))


def _normalised(
    path: Path, c: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return C̄ and S̄ of unnormalised C and S; raise where they overflow."""
    scale = _normalisation(len(c))
    # At high degrees, the factor underflows in float64, and so do C and S.
    with np.errstate(divide="ignore", over="ignore"):
        found = [np.divide(x, scale, np.zeros_like(x), where=x != 0) for x in (c, s)]
    wrong = np.argwhere(~np.isfinite(found).all(axis=0))
    if len(wrong):
        n, m = wrong[0]
        raise ModelError(
            f"The coefficient of degree {n} and order {m} of {path} cannot be "
            "normalised: it is too large. Take a file that is fully normalised.",
            name="norm",
        )
    return found[0], found[1]


def _normalisation(size: int) -> np.ndarray:
    """Return N in C = N C̄; (size, size), 1 where m > n."""
    scale = np.ones((size, size))
    for n in range(size):
        for m in range(n + 1):
            root = math.exp(0.5 * (math.lgamma(n - m + 1) - math.lgamma(n + m + 1)))
            scale[n, m] = math.sqrt((1 if m == 0 else 2) * (2 * n + 1)) * root
    return scale
