"""Plain MJCF: MuJoCo compiles it to the model that it was written from."""

from __future__ import annotations

from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from tests.conftest import SMALL
from tests.simulators.scenes import GYMNASIUM

from simstate.scene import models
from simstate.simulators import plain_mjcf

GYMNASIUM_MODELS = sorted(path.stem for path in GYMNASIUM.glob("*.xml"))
UNUSED = {"geom_user", "geom_rgba", "geom_matid", "site_rgba", "site_size"}
UNUSED |= {"tendon_rgba", "tendon_width", "geom_size", "jnt_margin"}
"""What is not physics, or is compared below where it means something."""


def load(name: str) -> mujoco.MjModel:
    if name == "small":
        return mujoco.MjModel.from_xml_string(SMALL)
    if name in models.NAMES:
        return mujoco.MjModel.from_xml_path(str(models.path(name)))
    return mujoco.MjModel.from_xml_path(str(GYMNASIUM / f"{name}.xml"))


@pytest.mark.parametrize("name", [*models.NAMES, *GYMNASIUM_MODELS])
def test_compiles_to_the_same_model(name):
    model = load(name)
    again = mujoco.MjModel.from_xml_string(plain_mjcf(model).text)
    kinds = ("body_", "jnt_", "dof_", "geom_", "site_", "tendon_", "wrap_")
    kinds += ("actuator_", "eq_", "exclude_", "qpos0", "qpos_spring")
    compared = 0
    for field in dir(model):
        ours = getattr(model, field)
        if not field.startswith(kinds) or field in UNUSED or not ours.size:
            continue
        theirs = getattr(again, field)
        assert ours.shape == theirs.shape, field
        # Derived numbers are sums in another order: the last digit may differ.
        assert np.allclose(ours, theirs, rtol=1e-13, atol=1e-15), field
        compared += 1
    assert compared > 50
    limited = model.jnt_limited.astype(bool)
    assert np.array_equal(model.jnt_margin[limited], again.jnt_margin[limited])
    boxes = model.geom_type == mujoco.mjtGeom.mjGEOM_BOX
    assert np.array_equal(model.geom_size[boxes], again.geom_size[boxes])
    for option in ("timestep", "gravity", "integrator", "cone", "solver", "density"):
        ours, theirs = getattr(model.opt, option), getattr(again.opt, option)
        assert np.array_equal(ours, theirs), option


def test_numbers_keep_all_their_digits():
    third = 1.0 / 3.0
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="a", pos=[third, 0.1, 2.0 / 7.0])
    body.add_joint(name="j", damping=third / 10)
    body.add_geom(size=[third, 0, 0], mass=third)
    text = plain_mjcf(spec.compile()).text
    again = mujoco.MjModel.from_xml_string(text)
    assert again.body_pos[1, 0] == third
    assert again.body_pos[1, 2] == 2.0 / 7.0
    assert again.dof_damping[0] == third / 10
    assert again.body_mass[1] == third


def test_options_and_flags_are_kept():
    source = """
    <mujoco><option timestep="0.0037" gravity="0.3 -0.2 -3.7" wind="1 2 3"
      magnetic="0.1 -0.4 0.2" density="1.3" viscosity="2e-5" impratio="3"
      o_margin="0.013" o_solref="0.03 0.7" o_solimp="0.7 0.8 0.003 0.4 3"
      o_friction="0.9 0.8 0.02 0.003 0.004" integrator="implicit" cone="elliptic"
      jacobian="sparse" solver="CG" iterations="7" tolerance="1e-6" ls_iterations="11"
      ls_tolerance="0.02" noslip_iterations="3" noslip_tolerance="1e-5"
      ccd_iterations="23" ccd_tolerance="1e-5" sdf_iterations="13" sdf_initpoints="33"
      sleep_tolerance="0.02">
      <flag override="enable" energy="enable" eulerdamp="disable" midphase="disable"/>
    </option></mujoco>"""
    model, default = (mujoco.MjModel.from_xml_string(x) for x in (source, "<mujoco/>"))
    again = mujoco.MjModel.from_xml_string(plain_mjcf(model).text)
    fields = {name for name in dir(model.opt) if not name.startswith("_")}
    for name in fields - {"disableactuator"}:
        ours, theirs = getattr(model.opt, name), getattr(again.opt, name)
        assert not np.array_equal(ours, getattr(default.opt, name)), name
        assert np.array_equal(ours, theirs), name


def test_says_what_it_leaves_out():
    found = plain_mjcf(load("small")).left_out
    assert any("wrist" in text for text in found), found  # an actuator with a state
    assert "4 sensors" in found
    assert "1 cameras" in found
    mesh = """
    <mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
    <worldbody><body name="b"><freejoint/><geom name="g" type="mesh" mesh="m"/>
    </body></worldbody></mujoco>"""
    found = plain_mjcf(mujoco.MjModel.from_xml_string(mesh)).left_out
    assert any("'g'" in text for text in found)


def test_tendons_of_one_joint_and_over_geoms_are_the_same():
    source = """
    <mujoco><worldbody><site name="top" pos="0 0 2"/>
      <body name="b"><joint name="j" axis="0 1 0"/>
      <geom name="reel" type="cylinder" size="0.1 0.2" pos="0 0 1"/>
      <site name="side" pos="0.3 0 1"/><site name="end" pos="0.4 0 0.2"/></body>
    </worldbody><tendon>
      <fixed name="alone" limited="true" range="-0.2 0.3"><joint joint="j" coef="-2.5"/>
      </fixed>
      <spatial name="cord" springlength="0.3 0.4" stiffness="7"><site site="top"/>
      <geom geom="reel" sidesite="side"/><site site="end"/><pulley divisor="3"/>
      <site site="top"/><site site="side"/></spatial></tendon></mujoco>"""
    model = mujoco.MjModel.from_xml_string(source)
    again = mujoco.MjModel.from_xml_string(plain_mjcf(model).text)
    fields = [name for name in dir(model) if name.startswith(("tendon_", "wrap_"))]
    for field in fields:
        ours, theirs = getattr(model, field), getattr(again, field)
        assert np.allclose(ours, theirs, rtol=1e-13), field


def test_a_mesh_keeps_its_place_and_volume(tmp_path):
    source = """
    <mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 2 0 0 0 3"/></asset>
    <worldbody><body name="b" pos="0.1 0.2 0.3" quat="0.9 0.1 0.3 0.2"><freejoint/>
    <geom name="g" type="mesh" mesh="m" pos="0.4 0 0.1" quat="0.5 0.5 0.5 0.5"/>
    </body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(source)
    plain = plain_mjcf(model, tmp_path)
    assert not plain.left_out
    again = mujoco.MjModel.from_xml_string(plain.text)
    assert np.allclose(_corners(model), _corners(again), atol=1e-6)  # float32 in OBJ
    assert again.body_mass[1] == model.body_mass[1]


def _corners(model: mujoco.MjModel) -> np.ndarray:
    """Vertices of the first mesh in world axes, sorted."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    corners = model.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    return corners[np.lexsort(np.round(corners, 4).T)]


def test_a_body_that_is_split_becomes_a_chain():
    text = plain_mjcf(load("humanoid"), split=range(100)).text
    root = ElementTree.fromstring(text)
    bodies = {body.get("name"): body for body in root.iter("body")}
    assert bodies["left_thigh#0"].find("joint").get("name") == "left_hip_yaw"
    assert bodies["left_thigh#1"].find("joint").get("name") == "left_hip_roll"
    assert bodies["left_thigh"].find("joint").get("name") == "left_hip_pitch"
    assert bodies["left_thigh#0"].find("body") is bodies["left_thigh#1"]
    assert bodies["left_thigh"].get("pos") is None
    assert bodies["left_thigh#0"].find("inertial") is None
    assert bodies["left_thigh"].find("inertial") is not None
