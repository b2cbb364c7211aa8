"""Placed entities that tie coordinates to the world: they move along, or raise."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.raised import raises
from tests.scene.model_table import TIES

from simstate import EntityCfg, InitialStateCfg, ModelError, SceneCfg, Simulation

pytestmark = pytest.mark.fast

POS = np.array([1.5, -0.7, 0.4])
TURN = Rotation.from_euler("z", 0.9)  # about the vertical: gravity stays
STEPS = 150


def placed(text: str) -> SceneCfg:
    """The model, turned about the world's origin and then shifted."""
    own: Any = mujoco.MjModel.from_xml_string(text)
    root = Rotation.from_quat(own.body_quat[1], scalar_first=True)
    state = InitialStateCfg(
        pos=tuple(TURN.apply(own.body_pos[1]) + POS),
        rot=tuple((TURN * root).as_quat(scalar_first=True)),
    )
    robot = EntityCfg(model=text, init_state=state)
    return SceneCfg(entities={"robot": robot}, ground=False, timestep=None)


@pytest.mark.parametrize("name", [n for n in TIES if n.startswith(("weld", "connect"))])
def test_anchors_and_relative_poses_move_along(name: str) -> None:
    """The run is that of MuJoCo on the file, turned and shifted."""
    own: Any = mujoco.MjModel.from_xml_string(TIES[name])
    data: Any = mujoco.MjData(own)
    sim = Simulation(placed(TIES[name]))
    ctrl = sim.data.ctrl[0].numpy()
    for _ in range(STEPS):
        data.ctrl[:] = ctrl
        mujoco.mj_step(own, data)
    sim.step(STEPS)
    mujoco.mj_forward(own, data)
    expected = TURN.apply(data.xpos[1:]) + POS
    found = sim.data.xpos[0, 1:].numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    assert np.abs(data.xpos[1:] - own.body_pos[1:]).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("camera target", "camera 'eye'"),
        ("light target", "light 'lamp'"),
        ("flex pinned", "flex 'cloth'"),
        ("flex node", "flex 'jelly'"),
        ("skin bone", "skin 'sleeve'"),
    ],
)
def test_other_ties_of_a_placed_entity_raise(name: str, element: str) -> None:
    with raises(ModelError, name="robot") as caught:
        Simulation(placed(TIES[name]))
    assert element in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["weld site", "tendon", "slider crank", "reference site", "exclude", "tuple",
     "subtreecom", "framepos from world", "adhesion", "contact of world"],
)  # fmt: skip
def test_what_states_no_coordinates_in_the_world_is_verified(name: str) -> None:
    sim = Simulation(placed(TIES[name]))
    own: Any = mujoco.MjModel.from_xml_string(TIES[name])
    assert (sim.model.nsensor, sim.model.nu) == (own.nsensor, own.nu)
    site = sim.model.site("robot/mark").pos
    np.testing.assert_allclose(site, TURN.apply(own.site("mark").pos) + POS, atol=1e-12)
