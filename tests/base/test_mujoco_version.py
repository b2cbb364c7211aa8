"""Which MuJoCo will do, and what is said of one that will not."""

from __future__ import annotations

import mujoco
import pytest
from tests.inside import set_state_component
from tests.mujoco_versions import IS_4

from simstate import ModelError, SimStateError, Simulation
from simstate.base.mujoco_version import check_mujoco

WITH_USERDATA = """
<mujoco><size nuserdata="3"/><worldbody><body><joint axis="0 1 0"/>
  <geom size="0.1" pos="0.3 0 0"/></body></worldbody></mujoco>
"""
THAT_YIELDS = WITH_USERDATA.replace("<joint", '<joint stiffness="5" springyield="0.1"')


@pytest.mark.parametrize(
    ("number", "name", "why"),
    [
        (3016000, "3.16.0", "no mujoco.batch"),
        (4000000, "4.0.0", "Cholesky"),
    ],
)
def test_a_version_that_will_not_do_is_refused(number, name, why):
    with pytest.raises(SimStateError, match=why) as caught:
        check_mujoco(number, name)
    assert f"MuJoCo {name}" in str(caught.value)
    assert "pip install mujoco==3.17.0" in str(caught.value)


@pytest.mark.parametrize("number", [3017000, 3018000, 4000001, mujoco.mj_version()])
def test_others_will(number):
    check_mujoco(number, "whatever")


def test_a_state_that_we_do_not_know_is_refused(monkeypatch):
    """Rather than left out of resets and snapshots."""
    model = mujoco.MjModel.from_xml_string(WITH_USERDATA)
    Simulation(model, 2)
    set_state_component(monkeypatch, "userdata", mujoco.mjtState.mjSTATE_ACT)
    with pytest.raises(ModelError, match="keeps 3 numbers in the state"):
        Simulation(model, 2)


@pytest.mark.skipif(not IS_4, reason="springs yield since MuJoCo 4")
def test_springs_that_yield_are_refused():
    model = mujoco.MjModel.from_xml_string(THAT_YIELDS)
    with pytest.raises(ModelError, match="springyield"):
        Simulation(model, 2)
