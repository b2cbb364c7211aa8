"""TerrainCfg: the kinds of ground and their difficulty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simstate.base.checks import number, whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.scene.terrain.boxes import BOX_GENERATORS, Boxes
from simstate.scene.terrain.generators import GENERATORS, Generator


@dataclass(frozen=True, kw_only=True)
class TerrainCfg:
    """Tiles of ground in a grid centred at the origin, the same for all worlds.

    Levels run along x, the easiest at negative x; kinds alternate along y.
    """

    kinds: Sequence[str | Generator | Boxes] = (
        "flat",
        "rough",
        "slope_up",
        "slope_down",
    )
    """A generator for each column, by name or as a function, repeated if there are more
    columns. Names that start with "box_" and `Boxes(function)` are boxes on level
    ground, all others are parts of one heightfield. See
    `simstate.scene.terrain.generators` and `simstate.scene.terrain.boxes`."""
    levels: int = 6
    """Number of rows of tiles, of increasing difficulty."""
    columns: int = 8
    """Number of tiles of each level."""
    difficulty: tuple[float, float] = (0.0, 1.0)
    """Difficulty of the first and of the last level."""
    size: float = 8.0
    """Edge of a tile [m]."""
    border: float = 4.0
    """Width of the level ground around the tiles [m]."""
    resolution: float = 0.1
    """Spacing of the heightfield's points [m]."""
    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    """Sliding [1], torsional [m] and rolling [m] friction, as in MuJoCo."""
    color: tuple[float, float, float, float] = (0.42, 0.44, 0.40, 1.0)
    """Red, green, blue and opacity, each from 0 to 1."""
    seed: int = 0
    """Seed of the random parts of the ground."""

    def __post_init__(self) -> None:
        for name in ("levels", "columns"):
            whole_number(name, getattr(self, name), 1)
        if not 0.0 < self.resolution <= self.size / 4.0:
            raise InvalidInputError(
                "resolution must be > 0 and at most a quarter of a tile's size, got "
                f"{self.resolution} and {self.size}.",
                name="resolution",
            )
        number("border", self.border, at_least=0, unit="m")
        if not self.kinds:
            raise InvalidInputError("A terrain needs at least one kind.", name="kinds")
        for kind in self.kinds:
            known = (*GENERATORS, *BOX_GENERATORS)
            if isinstance(kind, str) and kind not in known:
                raise unknown_name("kind of terrain", kind, known)
