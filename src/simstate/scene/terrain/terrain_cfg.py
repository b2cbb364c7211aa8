"""TerrainCfg: which ground there is, and how it grows harder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.scene.terrain.boxes import BOX_GENERATORS, Boxes
from simstate.scene.terrain.generators import GENERATORS, Generator


@dataclass(frozen=True, kw_only=True)
class TerrainCfg:
    """Tiles of ground in a grid about the origin, the same for all worlds.

    Along x are levels, the easiest at negative x; along y the kinds, in turn.
    """

    kinds: Sequence[str | Generator | Boxes] = (
        "flat",
        "rough",
        "slope_up",
        "slope_down",
    )
    """A generator for each column, by name or as a function; fewer than columns are
    used in turn. Names that begin with "box_" and `Boxes(function)` are boxes that
    stand on level ground, all others parts of one heightfield. See
    `simstate.scene.terrain.generators` and `simstate.scene.terrain.boxes`."""
    levels: int = 6
    """Rows of tiles, each harder than the one before."""
    columns: int = 8
    """Tiles of each level, side by side."""
    difficulty: tuple[float, float] = (0.0, 1.0)
    """Difficulty of the first and of the last level."""
    size: float = 8.0
    """Edge of a tile [m]."""
    border: float = 4.0
    """Level ground around the tiles [m]."""
    resolution: float = 0.1
    """Distance of two points of the heightfield [m]."""
    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    """Sliding, torsional and rolling friction, as MuJoCo has them."""
    color: tuple[float, float, float, float] = (0.42, 0.44, 0.40, 1.0)
    """Red, green, blue and opacity, each from 0 to 1."""
    seed: int = 0
    """Seed of what is random in the ground."""

    def __post_init__(self) -> None:
        for name in ("levels", "columns"):
            whole_number(name, getattr(self, name), 1)
        if not 0.0 < self.resolution <= self.size / 4.0:
            raise InvalidInputError(
                "resolution must be > 0 and at most a quarter of a tile's size, got "
                f"{self.resolution} and {self.size}.",
                name="resolution",
            )
        if not self.border >= 0.0:
            raise InvalidInputError(
                f"The border of a terrain must be ≥ 0 m, got {self.border}.",
                name="border",
            )
        if not self.kinds:
            raise InvalidInputError("A terrain needs at least one kind.", name="kinds")
        for kind in self.kinds:
            known = (*GENERATORS, *BOX_GENERATORS)
            if isinstance(kind, str) and kind not in known:
                raise unknown_name("kind of terrain", kind, known)
