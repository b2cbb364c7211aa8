"""Explanations: whole, and true of what MuJoCo does."""

import json

import mujoco
import numpy as np
import pytest
from tests.raised import raises

import simstate
from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.cli import main
from simstate.entity.explanation import FIELDS
from simstate.scene import models

pytestmark = pytest.mark.fast

ACTUATORS = """
<mujoco>
  <worldbody>
    <site name="post"/>
    <body name="arm" pos="0 0 1">
      <joint name="hinge" axis="0 1 0"/><geom size=".1"/>
      <site name="crank" pos=".1 0 0"/>
      <body name="rod"><joint name="slide" type="slide"/><geom size=".1"/>
        <site name="slider"/></body>
    </body>
    <body name="bob"><joint name="ball" type="ball"/><geom size=".1"/>
      <site name="bob"/></body>
    <body name="box"><freejoint name="free"/><geom size=".1"/><site name="box"/></body>
  </worldbody>
  <tendon>
    <fixed name="fixed"><joint joint="hinge" coef="2"/></fixed>
    <spatial name="cord"><site site="post"/><site site="bob"/></spatial>
  </tendon>
  <actuator>
    <position name="position" joint="hinge" kp="3" ctrlrange="-1 1"/>
    <position name="filtered" joint="hinge" kp="3" timeconst=".1"/>
    <velocity name="velocity" joint="slide" kv="2"/>
    <motor name="motor" joint="hinge" gear="3"/>
    <motor name="thrust" joint="free" gear="0 0 1 0 0 0"/>
    <motor name="in_parent" jointinparent="ball" gear="0 0 1 0 0 0"/>
    <intvelocity name="intvelocity" joint="hinge" kp="3" actrange="-1 1"/>
    <damper name="damper" joint="hinge" kv="2" ctrlrange="0 1"/>
    <cylinder name="cylinder" tendon="cord" area="0.3" timeconst=".1"/>
    <muscle name="muscle" tendon="cord" lengthrange="0.1 1"/>
    <adhesion name="adhesion" body="box" ctrlrange="0 1" gain="5"/>
    <general name="general" joint="hinge" dyntype="integrator" gainprm="4"
             biastype="affine" biasprm="1 2 3"/>
    <general name="jet" site="box" gear="0 0 1 0 0 0" dyntype="filterexact"
             dynprm=".1"/>
    <position name="site" site="box" refsite="post" gear="0 0 1 0 0 0" kp="2"/>
    <motor name="crank" cranksite="crank" slidersite="slider" cranklength=".5"/>
    <dcmotor name="dcmotor" joint="hinge" motorconst="0.05" resistance="2"/>
    <orientation name="orientation" joint="ball" kp="1"/>
    <motor name="pull" tendon="fixed"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("source", [*models.NAMES, ACTUATORS])
def test_every_element_once_and_in_order(source):
    found = simstate.explain(source)
    model = Simulation(SceneCfg(entities={"one": EntityCfg(model=source)})).model
    sizes = dict(zip(FIELDS, (model.nq, model.nv, model.na, model.nu), strict=False))
    for field, size in sizes.items():
        names = [e.name for e in found if e.field == field]
        assert names == [f"{field}[{i}]" for i in range(size)]
    wrench = [e.index for e in found if e.field == "xfrc_applied"]
    assert wrench == [(b, k) for b in range(model.nbody) for k in range(6)]
    for element in found:
        assert all(vars(element)[key] for key in ("meaning", "unit", "mistake"))


def test_free_joint_is_what_mujoco_does(small_model):
    """Each element alone moves the body as its point and axes say."""
    found = simstate.explain(small_model)
    data = mujoco.MjData(small_model)
    data.qpos[3:7] = np.array([0.5, -0.5, 0.1, 0.7])
    for k in range(6):
        element = found[f"qvel[{k}]"]
        data.qvel[:] = 0
        data.qvel[k] = 1.0
        mujoco.mj_forward(small_model, data)
        about = {
            "body origin": mujoco.mjtObj.mjOBJ_XBODY,
            "any": mujoco.mjtObj.mjOBJ_BODY,
        }
        vel = np.zeros(6)
        local = int(element.axes == "body")
        kind = about[element.point].value
        mujoco.mj_objectVelocity(small_model, data, kind, 1, vel, local)
        part = vel[3:] if element.unit == "m/s" else vel[:3]
        if kind == mujoco.mjtObj.mjOBJ_BODY and local:
            # Local axes there are the inertia's: turn them to the body's.
            part = data.xmat[1].reshape(3, 3).T @ data.ximat[1].reshape(3, 3) @ part
        assert np.allclose(part, np.eye(3)[k % 3], atol=1e-12), element.name


def test_wrench_is_what_mujoco_does(small_model):
    found = simstate.explain(small_model)
    data = mujoco.MjData(small_model)
    data.qpos[3:7] = np.array([0.5, -0.5, 0.1, 0.7])
    mujoco.mj_forward(small_model, data)
    body = 1
    point = {"centre of mass": data.xipos[body], "any": data.xipos[body]}
    for k in range(6):
        element = found[f"xfrc_applied[{body}][{k}]"]
        assert element.axes == "world"
        data.xfrc_applied[:] = 0
        data.xfrc_applied[body, k] = 1.0
        mujoco.mj_fwdAcceleration(small_model, data)
        got = data.qfrc_smooth - (
            data.qfrc_passive - data.qfrc_bias + data.qfrc_actuator
        )
        want = np.zeros(small_model.nv)
        load = np.eye(6)[k]
        mujoco.mj_applyFT(
            small_model, data, load[:3], load[3:], point[element.point], body, want
        )
        assert np.allclose(got, want, atol=1e-12)
        assert element.unit == ("N" if k < 3 else "N·m")


@pytest.mark.parametrize(
    ("name", "kind", "unit", "words"),
    [
        ("position", "position", "rad", ("hinge 'hinge'", "-1 … 1", "degrees")),
        ("filtered", "position", "rad", ()),
        ("velocity", "velocity", "m/s", ("slide 'slide'",)),
        ("motor", "motor", "N·m", ("gear 3",)),
        ("thrust", "motor", "N, N·m", ("free joint", "(0, 0, 1, 0, 0, 0)", "world")),
        ("in_parent", "motor", "N·m", ("ball joint", "parent")),
        ("intvelocity", "intvelocity", "rad/s", ("rate",)),
        ("damper", "damper", "1", ("−2·ctrl·velocity",)),
        ("cylinder", "cylinder", "Pa", ("0.3 m²", "spatial tendon 'cord'")),
        ("muscle", "muscle", "1", ("excitation",)),
        ("adhesion", "adhesion", "1", ("contacts of body 'box'", "5·ctrl")),
        ("general", "general", "actuator's own", ("gain·(act or ctrl)",)),
        ("jet", "general", "actuator's own", ("site 'box'",)),
        ("site", "position", "m", ("relative to site 'post'",)),
        ("crank", "motor", "N", ("slider-crank",)),
        ("dcmotor", "dcmotor", "V", ("voltage",)),
        ("orientation", "orientation", "rad", ("rotation vector",)),
        ("pull", "motor", "joint force / coef", ("fixed tendon 'fixed'",)),
    ],
)
def test_controls_by_actuator_type(name, kind, unit, words):
    model = mujoco.MjModel.from_xml_string(ACTUATORS)
    actuator = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR.value, name)
    element = simstate.explain(model)[f"ctrl[{model.actuator_ctrladr[actuator]}]"]
    assert element.element.startswith(f"{kind} actuator {name!r} on ")
    assert element.unit == unit
    for word in words:
        assert word in " ".join(str(value) for value in vars(element).values())


BLOCKS = {
    '<dcmotor joint="hinge" motorconst="2" resistance="3" input="pos vel ff voltage" '
    'controller="4 0 5"/>': [
        ("rad", "position that the servo goes to"),
        ("rad/s", "velocity that the servo goes to"),
        ("N·m", "force or torque"),
        ("V", "voltage at the terminals"),
    ],
    '<pid joint="slide" kp="2" kv="3" input="vel ff"/>': [
        ("m/s", "velocity that the servo goes to"),
        ("N", "force or torque"),
    ],
    '<orientation joint="ball" kp="2" input="quat"/>': [
        ("1", f"{name}: component of the unit quaternion (w, x, y, z)")
        for name in ("qw", "qx", "qy", "qz")
    ],
    '<orientation joint="ball" kp="2"/>': [
        ("rad", f"{name}: component of the rotation vector")
        for name in ("rx", "ry", "rz")
    ],
}
"""Actuators with several controls: the unit of each, and how its meaning starts."""


@pytest.mark.parametrize("actuator", BLOCKS)
def test_each_control_of_an_actuator_with_several(actuator):
    body = ACTUATORS.partition("<actuator>")[0]
    xml = f"{body}<actuator>{actuator}</actuator></mujoco>"
    for found, (unit, meaning) in zip(
        simstate.explain(xml).select("ctrl"), BLOCKS[actuator], strict=True
    ):
        assert found.unit == unit
        assert found.meaning.startswith(meaning)


AFFINE = 'biastype="affine"'
NEAR_MISSES = {
    f'gainprm="3" {AFFINE} biasprm="0 -3 -1"': "position",
    f'gainprm="3" {AFFINE} biasprm="0 -3 0" dyntype="filter"': "position",
    f'gainprm="3" {AFFINE} biasprm="1 -3 -1"': "general",
    f'gainprm="3" {AFFINE} biasprm="0 -2 -1"': "general",
    f'gainprm="3" {AFFINE} biasprm="0 -3 -1" dyntype="integrator"': "intvelocity",
    f'gainprm="1" {AFFINE} biasprm="1 -1 -1" dyntype="integrator"': "general",
    f'gainprm="3" {AFFINE} biasprm="0 0 -3"': "velocity",
    f'gainprm="3" {AFFINE} biasprm="0 0 -3" dyntype="filterexact"': "velocity",
    f'gainprm="3" {AFFINE} biasprm="0 0 -3" dyntype="integrator"': "general",
    f'gainprm="3" {AFFINE} biasprm="1 0 -3"': "general",
    f'gainprm="3" {AFFINE} biasprm="1 1 -3"': "general",
    f'gainprm="3" {AFFINE} biasprm="0 0 -2"': "general",
    f'gainprm="0" {AFFINE} biasprm="0 0 0"': "general",
    'gainprm="3"': "motor",
    'gainprm="3" dyntype="integrator"': "general",
    'gaintype="affine" gainprm="0 0 -2"': "damper",
    'gaintype="affine" gainprm="0 0 0"': "damper",
    'gaintype="affine" gainprm="0 0 2"': "general",
    'gaintype="affine" gainprm="1 0 -2"': "general",
    'gaintype="affine" gainprm="0 1 -2"': "general",
    'gaintype="affine" gainprm="0 0 -2" dyntype="filter"': "general",
    f'gaintype="affine" gainprm="0 0 -2" {AFFINE} biasprm="0 0 2"': "general",
}


def test_an_actuator_is_named_after_the_shortcut_that_it_equals():
    entries = "".join(
        f'<general name="a{k}" joint="hinge" {text}/>'
        for k, text in enumerate(NEAR_MISSES)
    )
    start, end = ACTUATORS.split("<actuator>")[0], "</mujoco>"
    model = mujoco.MjModel.from_xml_string(
        f"{start}<actuator>{entries}</actuator>{end}"
    )
    controls = simstate.explain(model).select("ctrl")
    kinds = [one.element.partition(" actuator")[0] for one in controls]
    assert dict(zip(NEAR_MISSES, kinds, strict=True)) == NEAR_MISSES


def test_a_gain_of_a_motor_is_part_of_its_meaning():
    elements = simstate.explain(ACTUATORS)
    plain = next(e for e in elements.select("ctrl") if "'motor'" in e.element)
    assert plain.meaning == "force or torque, times the gear 3"
    scaled = ACTUATORS.replace(
        '<motor name="pull" tendon="fixed"/>',
        '<general name="pull" joint="hinge" gainprm="7" gear="3"/>',
    )
    found = simstate.explain(scaled).select("ctrl")
    pull = next(e for e in found if "'pull'" in e.element)
    assert (
        pull.meaning == "what gain 7 times gives the force or torque, times the gear 3"
    )


def test_the_offset_of_the_centre_of_mass_is_named():
    model = """<mujoco><worldbody>
      <body name="apart"><freejoint/><geom size="0.1" pos="0.2 0 -0.3"/></body>
      <body name="same"><freejoint/><geom size="0.1"/></body>
    </worldbody></mujoco>"""
    found = simstate.explain(model)
    assert "which is at (0.2, 0, -0.3) m from it" in found["qpos[0]"].mistake
    assert "here the two coincide" in found["qpos[7]"].mistake


def test_activations():
    acts = simstate.explain(ACTUATORS).select("act")
    by_name = {e.element.split("'")[1]: e for e in acts}
    assert by_name["filtered"].unit == "rad"
    assert "time constant of 0.1 s" in by_name["filtered"].meaning
    assert by_name["intvelocity"].meaning.startswith("position target")
    assert by_name["cylinder"].unit == "Pa"
    assert "0 to 1" in by_name["muscle"].meaning
    assert "integral" in by_name["general"].meaning


def test_units_by_joint_type_and_shifted_indices():
    found = simstate.explain(ACTUATORS)
    units = {e.element.split()[0]: e.unit for e in found.select("qvel")}
    assert units == {"hinge": "rad/s", "slide": "m/s", "ball": "rad/s", "free": "rad/s"}
    knee = next(e for e in simstate.explain("quadruped").select("qvel[6:]"))
    assert "its position is qpos[7]" in knee.mistake


def test_entities_of_a_scene():
    scene = SceneCfg(
        entities={"a": EntityCfg(model="cube"), "b": EntityCfg(model="cartpole")}
    )
    for source in (scene, Simulation(scene)):
        found = simstate.explain(source)
        assert found["qpos[0]"].entity == "a"
        assert found["qpos[7]"].entity == "b"
        assert found["xfrc_applied[0][0]"].entity == ""
        assert found["ctrl[0]"].entity == "b"
        assert "'b/" not in found["ctrl[0]"].element


def test_selecting():
    found = simstate.explain("cube")
    assert [e.name for e in found.select("qvel[3:5]")] == ["qvel[3]", "qvel[4]"]
    assert len(found.select("xfrc_applied[1]")) == 6
    assert found["xfrc_applied[1, 3]"].unit == "N·m"
    assert found["data.qvel[4]"] is found["qvel[4]"]
    for bad, message in (
        ("qvel[9]", "the last is qvel[5]"),
        ("qvel[a]", "a number or a range"),
        ("qvel[1][2]", "one index"),
        ("qvel", "use select('qvel')"),
        ("ctrl", "no ctrl"),
        ("?", "not an element"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            found[bad]
        assert message in str(caught.value)
    with raises(UnknownNameError, name="qvl"):
        found["qvl[3]"]


def test_command(capsys):
    assert main(["inspect", "glider", "qvel[4]"]) == 0
    out = capsys.readouterr().out
    for word in ("angular velocity", "'glider'", "body", "rad/s", "usual mistake"):
        assert word in out
    assert main(["inspect", "cube", "xfrc_applied"]) == 0
    assert "xfrc_applied[1][5]" in capsys.readouterr().out
    assert main(["inspect", "cube", "qpos", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [e["name"] for e in listed] == [f"qpos[{i}]" for i in range(7)]
    assert listed[0]["index"] == [0]
    assert main(["inspect", "cube", "qvel[77]"]) == 1
    assert "the last is qvel[5]" in capsys.readouterr().err


def test_inspect_an_element_by_name(capsys):
    assert main(["inspect", "quadruped", "FL_hip", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    joint = model.joint("FL_hip")
    kinds = {facts["kind"]: facts for facts in found["elements"]}
    assert set(kinds) == {"body", "joint", "geom", "actuator"}
    assert kinds["joint"]["id"] == joint.id
    assert kinds["joint"]["range [rad]"] == joint.range.tolist()
    assert kinds["joint"]["qvel"] == f"{joint.dofadr[0]}:{joint.dofadr[0] + 1}"
    mass = model.body("FL_hip").mass[0]
    assert kinds["body"]["mass [kg]"] == pytest.approx(mass, rel=1e-5)
    assert kinds["actuator"]["acts on"] == "joint FL_hip"
    names = [entry["name"] for entry in found["entries"]]
    assert names == [f"qpos[{joint.qposadr[0]}]", f"qvel[{joint.dofadr[0]}]", "ctrl[0]"]


def test_inspect_states_the_kinds_of_a_name(capsys):
    assert main(["inspect", "quadruped", "FL_foot"]) == 0
    out = capsys.readouterr().out
    assert "geom FL_foot" in out
    assert "site FL_foot" in out
    assert main(["inspect", "quadruped", "FL_fot"]) == 1
    assert "Did you mean 'FL_foot'" in capsys.readouterr().err


def test_an_earlier_command_names_the_present_one(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["explain", "cube"])
    assert stop.value.code == 2
    assert "simstate inspect MODEL NAME" in capsys.readouterr().err
