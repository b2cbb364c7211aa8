"""Small pictures of fixed scenes by simstate's own renderer, pixel by pixel.

Where things are drawn is compared with MuJoCo in other files. Colours, shading, lines
and texts have no other reference than the picture: these tests hold them to
tests/view/pictures.npz, which `python -m tests.view.test_whole_picture` writes again
after a change that is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.view.scenes import make_sim
from tests.view.test_soft import MODEL

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.view import Course, Orbit, start_offscreen
from simstate.view.overlays import OVERLAYS

FILE = Path(__file__).with_name("pictures.npz")
SURFACES = """
<mujoco>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.2 0.4 0.6"
      rgb2="0.9 0.8 0.7" width="32" height="32"/>
    <texture name="check" type="2d" builtin="checker" rgb1="0.9 0.2 0.1"
      rgb2="0.1 0.3 0.8" width="32" height="32"/>
    <material name="check" texture="check" texrepeat="3 2" texuniform="true"
      rgba="0.9 0.8 0.7 1"/>
    <material name="shiny" rgba="0.3 0.6 0.4 1" emission="0.2" specular="0.7"/>
    <mesh name="wedge" vertex="0 0 0  .2 0 0  0 .3 0  0 0 .1"
      texcoord="0 0  1 0  0 1  1 1"/>
  </asset>
  <worldbody>
    <light pos="1 -1 2" dir="-0.4 0.4 -1"/>
    <geom type="plane" size="1.5 1 0.1" pos="0 0 -0.05" material="check"/>
    <body pos="0.1 0.2 0.2" quat="0.9 0.1 0.3 0.2"><freejoint/>
      <geom type="box" size="0.2 0.1 0.05" material="shiny"/>
      <geom type="mesh" mesh="wedge" material="check" pos="0 0 0.1"/></body>
    <body pos="-0.3 -0.2 0.3"><freejoint/>
      <geom type="ellipsoid" size="0.1 0.2 0.15" rgba="0.9 0.7 0.1 0.5"/></body>
    <body pos="0.4 -0.4 0.2" quat="0.8 0.5 0.1 0"><freejoint/>
      <geom type="cylinder" size="0.1 0.2" rgba="0.6 0.2 0.7 1"/></body>
  </worldbody>
</mujoco>
"""


def of_model(text: str) -> Course:
    entity = EntityCfg(model=text)
    scene = SceneCfg(entities={"it": entity}, ground=None, timestep=None)
    sim = Simulation(scene, 2)
    return Course(sim, sim.rays)


def of_robot() -> Course:
    sim = make_sim(4)
    return Course(sim, sim.rays)


def picture(course: Course, worlds: list[int], **options: object) -> np.ndarray:
    made = start_offscreen(course, worlds, renderer="software", **options)
    return made.picture()


PICTURES: dict[str, Callable[[], np.ndarray]] = {
    "surfaces": lambda: picture(of_model(SURFACES), [0], size=(80, 60)),
    "smooth": lambda: picture(
        of_model(SURFACES), [1], size=(48, 40), supersampling=4, camera="side"
    ),
    "overlays": lambda: picture(
        of_robot(), [1], size=(120, 90), overlays=tuple(OVERLAYS),
        camera=Orbit(70.0, -35.0),
    ),
    "worlds": lambda: picture(
        of_robot(), [2, 0, 3], size=(96, 64), overlays=("external wrenches",),
        values=False,
    ),
    "sheet": lambda: picture(
        of_robot(), [3, 1, 0], size=(40, 32), sheet=True, overlays=("contacts",)
    ),
    "transparent": lambda: picture(
        of_model(SURFACES), [0], size=(64, 48), transparent=True, camera="above"
    ),
    "soft": lambda: picture(of_model(MODEL), [0], size=(80, 60), camera="front"),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_it_was(name):
    found = PICTURES[name]().astype(int)
    with np.load(FILE) as wanted:
        there = wanted[name].astype(int)
    assert found.shape == there.shape
    apart = np.abs(found - there)
    assert (apart > 6).mean() < 2e-3
    assert apart.mean() < 0.1


if __name__ == "__main__":
    np.savez_compressed(FILE, **{name: made() for name, made in PICTURES.items()})
