"""TerrainPlaces: which tile of the terrain each world is on."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.scene.terrain import Terrain, TerrainCfg
from simstate.world import Ledger


class TerrainPlaces:
    """A level and a column for each world, which curricula may change.

    Worlds begin on the levels in turn, and stay in their column.
    """

    def __init__(
        self, cfg: TerrainCfg, ledger: Ledger, first_world: int, dtype: torch.dtype
    ) -> None:
        self.terrain = Terrain(cfg)
        """The ground: heights and origins."""
        ids = torch.arange(first_world, first_world + ledger.num_envs)
        self.column = _slot(ledger, "column", ids % cfg.columns)
        """The column of each world; int64, shape (num_envs,)."""
        self.level = _slot(ledger, "level", ids // cfg.columns % cfg.levels)
        """The level of each world, 0 the easiest; int64, shape (num_envs,)."""
        self._origins = torch.as_tensor(
            self.terrain.origins, dtype=dtype, device=ledger.device
        )

    def origins(self, env_ids: Tensor) -> Tensor:
        """The middle of these worlds' tiles, on the ground [m]; shape (n, 3)."""
        return self._origins[self.level[env_ids], self.column[env_ids]]


def _slot(ledger: Ledger, name: str, values: Tensor) -> Tensor:
    return ledger.memory(
        f"env/terrain/{name}", (), torch.int64, reset=None, initial=values, owner="env"
    ).tensor
