"""Check an installed simstate: its core, a step of worlds, a restored snapshot.

    python tests/wheel_check.py

Run away from the source tree, or with simstate installed: it must not import the tree's
own `src`.
"""

from __future__ import annotations

import torch

from simstate import EntityCfg, SceneCfg, Simulation, __version__
from simstate.base import compiled_core


def main() -> None:
    """Step, save, step, restore, step again; raise unless the bits are the same.

    A wheel without the compiled core, which is optional in a build, is an error, too.
    """
    if not compiled_core.is_available():
        raise SystemExit(compiled_core.description())
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")})
    sim = Simulation(scene, num_envs=3)
    sim.data.qvel[:] = torch.linspace(-1.0, 1.0, 3, dtype=sim.dtype)[:, None]
    sim.step(20)
    snapshot = sim.snapshot()
    sim.step(20)
    first = sim.data.qpos.clone()
    if not torch.isfinite(first).all() or (first[0] == first[1]).all():
        raise SystemExit("The worlds did not move as they should.")
    sim.restore(snapshot)
    sim.step(20)
    if not torch.equal(sim.data.qpos, first):
        raise SystemExit("A restored snapshot gave another course.")
    print(
        f"simstate {__version__}: {compiled_core.description()}; step and snapshot ok"
    )


if __name__ == "__main__":
    main()
