"""Configuration of rays: patterns, carriers, and the geoms that they can hit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from simstate.base.checks import number, whole_number
from simstate.base.errors import InvalidInputError


@runtime_checkable
class RayPattern(Protocol):
    """A pattern of rays: any object with this method."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return origins [m] and directions of any length, sensor axes; (R, 3) each."""
        ...


@dataclass(frozen=True, kw_only=True)
class GridPattern:
    """Parallel rays from a grid in the x-y plane, for height scans.

    The order is row by row: x increases within a row, y from row to row.
    """

    size: tuple[float, float] = (1.6, 1.0)
    """Length along x and y [m]."""
    resolution: float = 0.1
    """Spacing of the rays [m]."""
    direction: Sequence[float] = (0.0, 0.0, -1.0)
    """Direction of the rays."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        if not self.resolution > 0.0 or min(self.size) < 0.0:
            raise InvalidInputError(
                f"A grid needs a resolution > 0 and sizes ≥ 0, got {self}.",
                name="resolution",
            )
        x, y = (
            np.linspace(
                -0.5 * length, 0.5 * length, round(length / self.resolution) + 1
            )
            for length in self.size
        )
        origins = np.stack([np.tile(x, len(y)), np.repeat(y, len(x))], axis=-1)
        origins = np.concatenate([origins, np.zeros((len(origins), 1))], axis=1)
        direction = np.array(self.direction, dtype=np.float64)
        return origins, np.tile(direction, (len(origins), 1))


@dataclass(frozen=True, kw_only=True)
class LidarPattern:
    """Rays from one point: several elevations, each over a range of azimuths.

    The order is channel by channel from the lowest, and by azimuth within a channel.
    """

    channels: int = 16
    """Number of elevations."""
    elevation: tuple[float, float] = (-15.0, 15.0)
    """Lowest and highest elevation [deg above the x-y plane]."""
    count: int = 36
    """Number of rays in each channel."""
    azimuth: tuple[float, float] = (-180.0, 180.0)
    """First and last angle, about z from x [deg]; for a full circle, the last is
    omitted because it equals the first."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        channels = whole_number("channels of a lidar", self.channels, 1)
        count = whole_number("count of a lidar", self.count, 1)
        low, high = (math.radians(angle) for angle in self.elevation)
        first, last = (math.radians(angle) for angle in self.azimuth)
        full = math.isclose(abs(last - first), 2.0 * math.pi)
        up = np.repeat(np.linspace(low, high, channels), count)
        around = np.tile(np.linspace(first, last, count, endpoint=not full), channels)
        flat = np.cos(up)
        directions = [flat * np.cos(around), flat * np.sin(around), np.sin(up)]
        return np.zeros((channels * count, 3)), np.stack(directions, axis=-1)


@dataclass(frozen=True, kw_only=True)
class OutwardRingPattern:
    """Rays pointing outwards from a circle in the x-y plane, the first along x."""

    count: int = 8
    """Number of rays."""
    radius: float = 0.0
    """Radius of the circle that they start from [m]."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        directions = _around(self.count)
        return self.radius * directions, directions


@dataclass(frozen=True, kw_only=True)
class DownwardRingPattern:
    """Parallel rays from concentric circles in the x-y plane, for heights about feet.

    The order is the centre, then ring by ring, each starting along x.
    """

    rings: Sequence[tuple[float, int]] = ((0.1, 8),)
    """Radius [m] and number of rays of each ring."""
    include_center: bool = True
    """Add a ray at the centre."""
    direction: Sequence[float] = (0.0, 0.0, -1.0)
    """Direction of the rays."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        parts = [np.zeros((int(self.include_center), 3))]
        for radius, count in self.rings:
            parts.append(
                number("radius of a ring", radius, at_least=0) * _around(count)
            )
        origins = np.concatenate(parts)
        direction = np.array(self.direction, dtype=np.float64)
        return origins, np.tile(direction, (len(origins), 1))


def _around(count: int) -> np.ndarray:
    """Return evenly spaced unit vectors in the x-y plane, starting at x; (count, 3)."""
    turn = LidarPattern(
        channels=1, elevation=(0.0, 0.0), count=count, azimuth=(0.0, 360.0)
    )
    return turn.rays()[1]


@dataclass(frozen=True, kw_only=True)
class OwnPattern:
    """User-defined rays."""

    directions: Sequence[Sequence[float]]
    """Directions of any non-zero length; (R, 3)."""
    origins: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),)
    """Origins [m]; (R, 3), or one for all."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        directions = np.array(self.directions, dtype=np.float64)
        origins = np.array(self.origins, dtype=np.float64)
        if directions.ndim != 2 or directions.shape[1:] != (3,):
            raise InvalidInputError(
                f"directions of rays must have shape (R, 3), got {directions.shape}."
            )
        if origins.shape not in ((1, 3), directions.shape):
            raise InvalidInputError(
                f"origins of rays must have shape (1, 3) or {directions.shape}, got "
                f"{origins.shape}."
            )
        return np.broadcast_to(origins, directions.shape).copy(), directions


@dataclass(frozen=True, kw_only=True)
class RayCastCfg:
    """Rays of `sim.rays`, carried by bodies, sites or geoms, or fixed in the world.

    Every parent carries the pattern once: rays are listed parent by parent.
    """

    pattern: RayPattern = field(default_factory=GridPattern)
    """A GridPattern, DownwardRingPattern, OutwardRingPattern, LidarPattern, OwnPattern,
    or an object with `rays()`."""
    body: str | Sequence[str] | None = None
    """Bodies that carry them, "entity/body" by regular expressions."""
    site: str | Sequence[str] | None = None
    """Sites that carry them, likewise."""
    geom: str | Sequence[str] | None = None
    """Geoms that carry them, likewise. Without a parent they are fixed in the world."""
    pos: Sequence[float] = (0.0, 0.0, 0.0)
    """Position of the sensor from its parent's origin, in the parent's axes [m]."""
    offset: Sequence[float] = (0.0, 0.0, 0.0)
    """Position of the pattern from the sensor, in the sensor's axes [m]."""
    alignment: Literal["full", "yaw", "world"] = "full"
    """The sensor's axes: the parent's ("full"), the world's rotated about z by the
    heading of the parent's x axis ("yaw"), or the world's ("world")."""
    groups: Sequence[int] | None = None
    """The geom groups (0 … 5) that can be hit; None: all."""
    exclude: str | Sequence[str] | None = None
    """Bodies that cannot be hit, "entity/body" by regular expressions; None: those of
    the entities that carry the rays; (): none."""
    max_distance: float = 100.0
    """Maximum length of a ray [m]."""
