"""Memory of simulations that are no longer used."""

from __future__ import annotations

import gc
import weakref

import mujoco
import numpy as np

from simstate import Simulation


def test_unused_simulations_are_freed_before_many_others():
    """Also those that outlived collections of young objects, as a fit's do."""
    spec = mujoco.MjSpec()
    heights = np.zeros(4_000_000)
    spec.add_hfield(name="h", nrow=2000, ncol=2000, size=[1] * 4, userdata=heights)
    body = spec.worldbody.add_body()
    body.add_freejoint()
    body.add_geom(size=[0.1, 0, 0])
    model = spec.compile()
    first = [Simulation(model) for _ in range(3)]
    alive = [weakref.ref(sim) for sim in first]
    gc.collect()  # they are old now
    del first
    for _ in range(12):
        Simulation(model)
    assert [one() for one in alive] == [None] * 3
