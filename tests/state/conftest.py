"""The example state of the unified-state document, as a scene."""

from __future__ import annotations

import pytest

from simstate import (
    CameraCfg,
    EntityCfg,
    InitialStateCfg,
    SceneCfg,
    Simulation,
)

BOX = """
<mujoco model="box">
  <worldbody>
    <body name="box_body" pos="0.6 0.4 0.15">
      <freejoint name="root"/>
      <geom type="box" size=".1 .1 .05" pos=".01 .02 0" mass=".8"/>
      <body name="box_lid" pos="-.1 0 .06">
        <joint name="box_joint" axis="0 1 0" range="-90 90" damping=".02"/>
        <geom type="box" size=".1 .1 .01" pos=".1 0 0" mass=".2"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
"""An articulated box: a body and a hinged lid, with its COM away from its origin."""


def document_scene() -> SceneCfg:
    """A robot with a gripper, a cube, a box with a lid, and a camera."""
    return SceneCfg(
        entities={
            "franka": EntityCfg(model="arm"),
            "cube": EntityCfg(
                model="cube", init_state=InitialStateCfg(pos=(0.5, 0.0, 0.3))
            ),
            "box": EntityCfg(model=BOX),
        },
        cameras={
            "camera0": CameraCfg(
                pos=(1.5, -1.0, 1.2), look_at=(0.3, 0.1, 0.3), width=16, height=12
            )
        },
        timestep=0.002,
    )


@pytest.fixture(scope="session")
def document_sims() -> dict[str, Simulation]:
    """One simulation of the document's scene per engine, made when asked for."""
    return {}


@pytest.fixture
def sim(engine: str, document_sims: dict[str, Simulation]) -> Simulation:
    """The document's scene in four worlds at its default state, on both engines."""
    return reset_sim(document_sims, engine)


@pytest.fixture
def native(document_sims: dict[str, Simulation]) -> Simulation:
    """The same on the native engine alone."""
    return reset_sim(document_sims, "native")


@pytest.fixture
def warp(document_sims: dict[str, Simulation]) -> Simulation:
    """The same on the warp engine alone."""
    return reset_sim(document_sims, "warp")


def reset_sim(sims: dict[str, Simulation], engine: str) -> Simulation:
    """One of the shared simulations, at its default state."""
    if engine not in sims:
        sims[engine] = Simulation(document_scene(), 4, engine=engine)
    sims[engine].reset()
    return sims[engine]
