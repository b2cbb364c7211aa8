"""Other people's models open: meshes, textures, heightfields, tendons, flexes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.foreign_models import FOREIGN, foreign_scene
from tests.inside import draw_now, meshes_of

from simstate import Simulation

SOME = ("gymnasium/ant", "gymnasium/walker2d", "dm_control/suite/finger")
"""Few enough for every run of the suite."""


def opens(name: str) -> None:
    """Open two worlds of a model with every overlay, and step them."""
    sim = Simulation(foreign_scene(name), 2)
    with sim.view(port=0, playing=False) as viewer:
        for overlay in viewer.panel.overlays:
            viewer.picture.show_overlay(overlay, True)
        for _ in range(2):
            viewer.session.step()
            draw_now(viewer)
        assert viewer.session.problem == ""
        drawn = [mesh for mesh in meshes_of(viewer) if not mesh.is_site]
        for mesh in drawn:
            assert np.isfinite(mesh.handle.batched_positions).all()
        shown = {body for mesh in drawn for body in mesh.bodies.tolist()}
        model = sim.model
        visible = model.geom_rgba[:, 3] > 0.0
        moving = model.body_weldid[model.geom_bodyid] != 0
        assert shown >= set(model.geom_bodyid[visible & moving].tolist())


@pytest.mark.parametrize("name", [name for name in SOME if name in FOREIGN])
def test_a_foreign_model_opens(name: str) -> None:
    opens(name)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_every_foreign_model_opens(name: str) -> None:
    opens(name)
