"""Patterns of rays, and what a user says of them: who carries them, what they hit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError


@runtime_checkable
class RayPattern(Protocol):
    """What has rays: anything with this method will do."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins [m] and directions of any length, in the sensor's axes; (R, 3)."""
        ...


@dataclass(frozen=True, kw_only=True)
class GridPattern:
    """Parallel rays from a grid in the x-y plane, for height scans.

    Row by row: x runs within a row, y from row to row, both rising.
    """

    size: tuple[float, float] = (1.6, 1.0)
    """Length along x and y [m]."""
    resolution: float = 0.1
    """Distance of neighbours [m]."""
    direction: Sequence[float] = (0.0, 0.0, -1.0)
    """Where they point."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        if not self.resolution > 0.0 or min(self.size) < 0.0:
            raise InvalidInputError(
                f"A grid needs a resolution > 0 and sizes ≥ 0, got {self}."
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
    """Rays from one point: some angles of elevation, each all around.

    Channel by channel from the lowest on; within one from the first azimuth on.
    """

    channels: int = 16
    """How many elevations."""
    elevation: tuple[float, float] = (-15.0, 15.0)
    """The lowest and the highest [deg above the x-y plane]."""
    count: int = 36
    """How many rays in each channel."""
    azimuth: tuple[float, float] = (-180.0, 180.0)
    """The first angle and the last, about z from x [deg]; of a full turn the last is
    left out, because it is the first."""

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
class RingPattern:
    """Rays outwards from a circle in the x-y plane, the first along x."""

    count: int = 8
    """How many."""
    radius: float = 0.0
    """Of the circle that they start from [m]."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        turn = LidarPattern(channels=1, elevation=(0.0, 0.0), count=self.count,
                            azimuth=(0.0, 360.0))  # fmt: skip
        _, directions = turn.rays()
        return self.radius * directions, directions


@dataclass(frozen=True, kw_only=True)
class OwnPattern:
    """Rays of your own."""

    directions: Sequence[Sequence[float]]
    """Where they point, of any length but zero; (R, 3)."""
    origins: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),)
    """Where they start [m]; (R, 3), or one for all."""

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions; (R, 3) each."""
        directions = np.array(self.directions, dtype=np.float64)
        origins = np.array(self.origins, dtype=np.float64)
        if directions.ndim != 2 or directions.shape[1:] != (3,):
            raise InvalidInputError(
                f"directions of rays have shape (R, 3), got {directions.shape}."
            )
        if origins.shape not in ((1, 3), directions.shape):
            raise InvalidInputError(
                f"origins of rays have shape (1, 3) or {directions.shape}, got "
                f"{origins.shape}."
            )
        return np.broadcast_to(origins, directions.shape).copy(), directions


@dataclass(frozen=True, kw_only=True)
class RayCastCfg:
    """What `sim.rays` casts: rays that a body carries, or that stand in the world."""

    pattern: RayPattern = field(default_factory=GridPattern)
    """A GridPattern, RingPattern, LidarPattern, OwnPattern, or what has `rays()`."""
    body: str | None = None
    """The body that carries them, as "entity/body"; None: they stand in the world."""
    pos: Sequence[float] = (0.0, 0.0, 0.0)
    """Where the pattern's origin is, from the body's, in the sensor's axes [m]."""
    alignment: Literal["full", "yaw", "world"] = "full"
    """The sensor's axes: the body's; turned about world z as the body's x axis is; or
    the world's."""
    groups: Sequence[int] | None = None
    """The geom groups (0 … 5) that can be hit; None: all."""
    exclude: str | Sequence[str] | None = None
    """Bodies that cannot be hit, "entity/body" by regular expressions; None: those of
    the entity that carries the rays; (): none."""
    max_distance: float = 100.0
    """How far a ray goes [m]."""
