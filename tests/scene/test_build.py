"""Scenes: what goes in comes out, in one model; what cannot be built says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    InitialStateCfg,
    InvalidInputError,
    ModelError,
    MotorActuatorCfg,
    PositionActuatorCfg,
    SceneCfg,
    ShapeError,
    Simulation,
    UnknownNameError,
    VelocityActuatorCfg,
)
from simstate.base.ids import as_index
from simstate.scene import ActuatorCfg, BuiltScene, build_scene, models

pytestmark = pytest.mark.fast

Model = mujoco.MjModel


def built(model: Any, ground: bool = False, **entity: Any) -> BuiltScene:
    """A scene of the one entity "robot"."""
    robot = EntityCfg(model=model, **entity)
    return build_scene(SceneCfg(entities={"robot": robot}, ground=ground))


def started(model: Any, **state: Any) -> tuple[Model, mujoco.MjData]:
    """A scene of "robot" in its initial state, after plain mj_forward."""
    scene = built(model, init_state=InitialStateCfg(**state))
    mujoco.mj_forward(scene.model, scene.default)
    return scene.model, scene.default


def velocity(model: Model, data: mujoco.MjData, body: str) -> np.ndarray:
    """Linear (at the origin) then angular velocity of a body, by MuJoCo itself."""
    result = np.zeros(6)
    kind = mujoco.mjtObj.mjOBJ_XBODY
    mujoco.mj_objectVelocity(model, data, kind, model.body(body).id, result, 0)
    return np.concatenate([result[3:], result[:3]])


TWO_JOINTS = """
<mujoco>
  <worldbody>
    <body name="base">
      <geom name="base" size="0.1"/>
      <body name="link" pos="0 0 0.5">
        <joint name="slide" type="slide" axis="1 0 0" range="-1 1" armature="0.3"/>
        <geom name="link" size="0.1"/>
        <body name="tip" pos="0 0 0.5">
          <joint name="hinge" axis="0 1 0"/>
          <geom name="tip" size="0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
  {}
</mujoco>
"""
PLAIN = TWO_JOINTS.format("")


# Sources


def from_path(folder: Path) -> Path:
    path = folder / "robot.xml"
    path.write_text(PLAIN)
    return path


SOURCES: dict[str, Callable[[Path], Any]] = {
    "path": from_path,
    "path string": lambda folder: str(from_path(folder)),
    "xml": lambda _: PLAIN,
    "xml with a declaration": lambda _: f'\n<?xml version="1.0"?>\n{PLAIN}',
    "spec": lambda _: mujoco.MjSpec.from_string(PLAIN),
    "callable": lambda _: lambda: mujoco.MjSpec.from_string(PLAIN),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_entity(source: str, tmp_path: Path) -> None:
    scene = built(SOURCES[source](tmp_path))
    own = Model.from_xml_string(PLAIN)
    robot = scene.entities["robot"]
    assert robot.bodies.names == ("base", "link", "tip")
    assert robot.joints.names == ("slide", "hinge")
    assert robot.geoms.names == ("base", "link", "tip")
    np.testing.assert_array_equal(scene.model.body_pos, own.body_pos)
    np.testing.assert_array_equal(scene.model.body_mass, own.body_mass)


@pytest.mark.parametrize("name", models.NAMES)
def test_a_shipped_model_is_found_by_name(name: str) -> None:
    own = models.spec(name).compile()
    robot = built(name).entities["robot"]
    bodies = [own.body(i).name for i in range(1, own.nbody)]
    assert list(robot.bodies.names) == bodies


def test_the_spec_that_was_given_is_not_changed() -> None:
    spec = mujoco.MjSpec.from_string(TWO_JOINTS.format("").replace('name="hinge"', ""))
    spec.option.timestep = 0.001
    drive = PositionActuatorCfg(joints="slide", stiffness=1.0, armature=7.0)
    built(spec, actuators=(drive,))
    assert len(spec.actuators) == 0
    assert spec.option.timestep == 0.001
    assert [joint.name for joint in spec.joints] == ["slide", ""]
    assert spec.joint("slide").armature == 0.3


def test_two_copies_of_one_spec_are_two_entities() -> None:
    spec = mujoco.MjSpec.from_string(PLAIN)
    cfg = SceneCfg(
        entities={
            "left": EntityCfg(model=spec, init_state=InitialStateCfg(pos=(0, 1, 0))),
            "right": EntityCfg(
                model=spec,
                init_state=InitialStateCfg(pos=(0, -1, 0), joint_pos={"hinge": 0.5}),
            ),
        }
    )
    sim = Simulation(cfg, num_envs=2)
    left, right = sim.scene["left"], sim.scene["right"]
    assert left.joint_names == right.joint_names == ("slide", "hinge")
    assert left.data.root_link_pos_w[1].tolist() == [0, 1, 0]
    assert right.data.root_link_pos_w[1].tolist() == [0, -1, 0]
    assert right.data.joint_pos[0].tolist() == [0, 0.5]
    left.write_joint_position_to_sim([[0.1, 0.2]])
    assert left.data.joint_pos[1].tolist() == [0.1, 0.2]
    assert right.data.joint_pos[1].tolist() == [0, 0.5]


# Names


def test_entity_names_have_no_prefix_and_model_names_have_one() -> None:
    scene = built(PLAIN)
    robot = scene.entities["robot"]
    for name, i in zip(robot.joints.names, robot.joints.ids, strict=True):
        assert scene.model.joint(i).name == f"robot/{name}"


def test_nested_prefixes_stay_in_names() -> None:
    nested = PLAIN.replace('name="hinge"', 'name="arm/left/j1"').replace(
        'name="tip"', 'name="robot/tip"'
    )
    scene = built(nested)
    robot = scene.entities["robot"]
    assert robot.joints.names == ("slide", "arm/left/j1")
    assert robot.bodies.names == ("base", "link", "robot/tip")
    assert scene.model.joint("robot/arm/left/j1").id == robot.joints.ids[1]


def test_entities_whose_names_share_a_beginning_are_kept_apart() -> None:
    cfg = SceneCfg(
        entities={"arm": EntityCfg(model=PLAIN), "arm2": EntityCfg(model="cube")}
    )
    scene = build_scene(cfg)
    assert scene.entities["arm"].bodies.names == ("base", "link", "tip")
    assert scene.entities["arm2"].bodies.names == ("cube",)


UNNAMED = """
<mujoco>
  <worldbody>
    <body>
      <freejoint/>
      <geom size="0.1"/>
      <site/>
      <body name="geom_1">
        <joint type="ball"/>
        <geom size="0.1"/>
        <geom name="geom_0" size="0.1"/>
        <body pos="0 0 1">
          <joint/>
          <geom size="0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed><joint joint="known" coef="1"/></fixed></tendon>
  <actuator><motor joint="known"/></actuator>
  <sensor><jointpos joint="known"/></sensor>
</mujoco>
""".replace("<joint/>", '<joint/><joint name="known" axis="1 0 0"/>')


@pytest.mark.parametrize("as_model", [False, True])
def test_unnamed_elements_are_counted_and_get_unique_names(as_model: bool) -> None:
    if as_model:
        scene = build_scene(Model.from_xml_string(UNNAMED))
        entity = scene.entities["model"]
    else:
        entity = built(UNNAMED).entities["robot"]
    counts = {
        "bodies": 3,
        "joints": 2,
        "ball_joints": 1,
        "free_joints": 1,
        "geoms": 4,
        "sites": 1,
        "tendons": 1,
        "actuators": 1,
        "sensors": 1,
    }
    for kind, count in counts.items():
        elements = getattr(entity, kind)
        assert len(elements) == count, kind
        assert len(set(elements.names)) == count
        assert all(elements.names)
    assert "known" in entity.joints.names
    assert "geom_0" in entity.geoms.names
    assert entity.base == "free"


def test_elements_of_the_models_own_world_belong_to_the_entity() -> None:
    xml = PLAIN.replace(
        "<worldbody>",
        '<worldbody><geom name="floor" type="plane" size="1 1 1"/><site name="o"/>',
    )
    robot = built(xml, ground=True).entities["robot"]
    assert robot.geoms.names == ("floor", "base", "link", "tip")
    assert robot.sites.names == ("o",)
    assert robot.bodies.names == ("base", "link", "tip")


@pytest.mark.parametrize("ground", [True, False])
def test_the_ground_is_there_if_asked_for(ground: bool) -> None:
    scene = built("cube", ground=ground)
    names = [scene.model.geom(i).name for i in range(scene.model.ngeom)]
    assert ("ground" in names) == ground
    assert scene.entities["robot"].geoms.names == ("cube",)
    data = scene.default
    data.qpos[2] = 0.03
    for _ in range(200):
        mujoco.mj_step(scene.model, data)
    assert (data.qpos[2] > 0) == ground


def test_contiguous_ids_are_slices() -> None:
    cfg = SceneCfg(
        entities={"a": EntityCfg(model="arm"), "b": EntityCfg(model="quadruped")},
        timestep=0.004,
    )
    for entity in build_scene(cfg).entities.values():
        for kind in ("bodies", "joints", "geoms", "sites", "actuators", "controls"):
            ids = getattr(entity, kind).ids
            assert as_index(ids) == slice(ids[0], ids[0] + len(ids)), kind
        for addresses in (entity.qpos_adr, entity.dof_adr):
            assert isinstance(as_index(addresses), slice)


# What survives the merge


RICH = """
<mujoco>
  <compiler angle="{angle}"/>
  <default>
    <geom density="700"/>
    <default class="light"><geom density="200"/><joint damping="0.4"/></default>
  </default>
  <worldbody>
    <body name="base" pos="0.1 0 0.3" euler="0 0 {yaw}">
      <freejoint name="root"/>
      <geom name="base" size="0.1"/>
      <site name="imu" pos="0 0 0.1" euler="{yaw} 0 0"/>
      <body name="one" pos="0 0.3 0" childclass="light">
        <joint name="one" axis="1 0 0" range="{low} {high}"/>
        <geom name="one" type="capsule" size="0.05" fromto="0 0 0 0 0.2 0"/>
        <site name="one"/>
      </body>
      <body name="two" pos="0 -0.3 0" childclass="light">
        <joint name="two" axis="0 1 0" range="{low} {high}" springref="{yaw}"/>
        <geom name="two" type="box" size="0.05 0.1 0.02"/>
        <site name="two"/>
      </body>
    </body>
    <body name="target" mocap="true" pos="1 2 3">
      <geom name="target" size="0.02" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <contact>
    <pair name="pair" geom1="one" geom2="two" condim="4" friction="0.3 0.4 0.1 0 0"/>
    <exclude name="exclude" body1="base" body2="one"/>
  </contact>
  <tendon>
    <fixed name="sum"><joint joint="one" coef="2"/><joint joint="two" coef="9"/></fixed>
    <spatial name="rope" stiffness="3"><site site="one"/><site site="two"/></spatial>
  </tendon>
  <equality>
    <joint name="mirror" joint1="one" joint2="two" polycoef="0 0.5 0 0 0"/>
    <weld name="weld" body1="base" body2="target" active="false" solref="0.1 1"/>
  </equality>
  <actuator>
    <motor name="motor" joint="two" gear="3"/>
    <position name="rope" tendon="rope" kp="4" kv="0.5"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="imu" noise="0.1"/>
    <framepos name="where" objtype="site" objname="one" reftype="body" refname="base"/>
    <tendonpos name="rope" tendon="rope"/>
  </sensor>
  <keyframe>
    <key name="bent" qpos="0 0 1 0 1 0 0 0.2 0.3" qvel="1 2 3 4 5 6 7 8"
         ctrl="0.5 0.6" mpos="3 2 1" mquat="0 0 1 0"/>
    <key name="second" qpos="0 0 2 1 0 0 0 0.4 0.5"/>
  </keyframe>
</mujoco>
"""
DEGREE = RICH.format(angle="degree", yaw=30, low=-90, high=45)
RADIAN = RICH.format(angle="radian", yaw=np.pi / 6, low=-np.pi / 2, high=np.pi / 4)

COMPARED = {
    "body": "nbody pos quat mass inertia ipos iquat",
    "jnt": "njnt type range axis pos stiffness limited",
    "geom": "ngeom type size pos quat contype conaffinity condim friction",
    "site": "nsite pos quat",
    "pair": "npair dim friction solref",
    "exclude": "nexclude",
    "tendon": "ntendon stiffness length0 lengthspring num",
    "eq": "neq type data active0 solref",
    "actuator": "nactuator gainprm biasprm gear trntype ctrlrange forcerange",
    "sensor": "nsensor type dim objtype reftype noise",
    "dof": "nv damping armature M0",
    "qpos": "nq spring",
}


def same_rows(scene: Model, own: Model, first: dict[str, int]) -> None:
    """Assert that each of the own model's rows is in the scene, from `first` on."""
    for kind, line in COMPARED.items():
        count, *fields = line.split()
        number, start = getattr(own, count), first.get(kind, 0)
        # The world body is shared.
        skip = 1 if kind == "body" else 0
        for field in fields:
            name = f"qpos_{field}" if kind == "qpos" else f"{kind}_{field}"
            theirs = getattr(own, name)[skip:number]
            ours = getattr(scene, name)[start + skip : start + number]
            np.testing.assert_allclose(ours, theirs, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("order", ["alone", "after"])
def test_everything_of_the_model_survives_the_merge(order: str) -> None:
    own = Model.from_xml_string(DEGREE)
    entities = {"robot": EntityCfg(model=DEGREE)}
    first: dict[str, int] = {}
    if order == "after":
        # The arm brings bodies, joints, an equality and actuators of its own.
        entities = {"arm": EntityCfg(model="arm"), **entities}
        arm = models.spec("arm").compile()
        first = {
            "body": arm.nbody - 1,
            "jnt": arm.njnt,
            "geom": arm.ngeom,
            "site": arm.nsite,
            "eq": arm.neq,
            "actuator": arm.nactuator,
            "dof": arm.nv,
            "qpos": arm.nq,
        }
    scene = build_scene(SceneCfg(entities=entities, ground=False))
    same_rows(scene.model, own, first)
    robot = scene.entities["robot"]
    assert robot.equalities.names == ("mirror", "weld")
    assert robot.tendons.names == ("sum", "rope")
    assert robot.sensors.names == ("gyro", "where", "rope")
    assert robot.mocap_bodies.names == ("target",)
    pair = scene.model.npair - 1
    for k, geom in ((1, "one"), (2, "two")):
        found = getattr(scene.model, f"pair_geom{k}")[pair]
        assert scene.model.geom(found).name == f"robot/{geom}"
    base = scene.model.body("robot/base").id
    one = scene.model.body("robot/one").id
    assert int(scene.model.exclude_signature[-1]) == (base << 16) + one


def test_the_merged_model_moves_as_the_model_alone() -> None:
    own = Model.from_xml_string(DEGREE)
    scene = built(DEGREE).model
    scene.opt.timestep = own.opt.timestep
    ours, theirs = mujoco.MjData(scene), mujoco.MjData(own)
    mujoco.mj_resetDataKeyframe(own, theirs, 0)
    mujoco.mj_resetDataKeyframe(scene, ours, scene.key("robot/bent").id)
    for _ in range(50):
        mujoco.mj_step(own, theirs)
        mujoco.mj_step(scene, ours)
    np.testing.assert_allclose(ours.qpos, theirs.qpos, atol=1e-9)
    np.testing.assert_allclose(ours.sensordata, theirs.sensordata, atol=1e-7)


def test_keyframes_keep_every_part_next_to_another_entity() -> None:
    own = Model.from_xml_string(DEGREE)
    cfg = SceneCfg(
        entities={
            "arm": EntityCfg(model="arm"),
            "robot": EntityCfg(model=DEGREE),
            "quadruped": EntityCfg(model="quadruped"),
        },
        timestep=0.004,
        options={"integrator": mujoco.mjtIntegrator.mjINT_EULER},
    )
    model = build_scene(cfg).model
    arm = models.spec("arm").compile()
    for name in ("bent", "second"):
        key, theirs = model.key(f"robot/{name}"), own.key(name)
        where = {
            "qpos": slice(arm.nq, arm.nq + own.nq),
            "qvel": slice(arm.nv, arm.nv + own.nv),
            "ctrl": slice(arm.nu, arm.nu + own.nu),
            "mpos": slice(None),
            "mquat": slice(None),
        }
        for field, part in where.items():
            np.testing.assert_allclose(
                getattr(key, field).flatten()[part],
                getattr(theirs, field).flatten(),
                atol=1e-12,
                err_msg=f"{name} {field}",
            )
    home, theirs = model.key("arm/home"), arm.key("home")
    np.testing.assert_array_equal(home.qpos[: arm.nq], theirs.qpos)
    np.testing.assert_array_equal(home.ctrl[: arm.nu], theirs.ctrl)


def test_degrees_and_radians_live_in_one_scene() -> None:
    cfg = SceneCfg(
        entities={
            "radian": EntityCfg(model=RADIAN),
            "degree": EntityCfg(model=DEGREE),
            "again": EntityCfg(model=RADIAN),
        },
        ground=False,
    )
    model = build_scene(cfg).model
    own = Model.from_xml_string(DEGREE)
    assert own.jnt_range[1].tolist() == pytest.approx([-np.pi / 2, np.pi / 4])
    for k in range(3):
        first = {
            kind: k * getattr(own, line.split()[0]) for kind, line in COMPARED.items()
        }
        first["body"] = k * (own.nbody - 1)
        same_rows(model, own, first)


OBJ = """
v 0 0 0
v 0.1 0 0
v 0 0.2 0
v 0 0 0.3
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""
MESH = """
<mujoco>
  <compiler meshdir="parts/meshes"/>
  <asset><mesh name="wedge" file="wedge.obj"/></asset>
  <worldbody>
    <body name="wedge"><freejoint/><geom name="wedge" type="mesh" mesh="wedge"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def mesh_model(tmp_path: Path) -> Path:
    folder = tmp_path / "robot" / "parts" / "meshes"
    folder.mkdir(parents=True)
    (folder / "wedge.obj").write_text(OBJ)
    path = tmp_path / "robot" / "wedge.xml"
    path.write_text(MESH)
    return path


@pytest.mark.parametrize("as_spec", [False, True])
def test_a_mesh_in_a_subfolder_is_found(
    mesh_model: Path, as_spec: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = Model.from_xml_path(str(mesh_model))
    source = mujoco.MjSpec.from_file(str(mesh_model)) if as_spec else mesh_model
    cfg = SceneCfg(
        entities={"a": EntityCfg(model=source), "b": EntityCfg(model=source)}
    )
    model = build_scene(cfg).model
    for name in ("a", "b"):
        mass = model.body(f"{name}/wedge").mass[0]
        assert mass == pytest.approx(own.body("wedge").mass[0]) != 0


def test_a_spec_brings_its_assets_from_memory() -> None:
    spec = mujoco.MjSpec.from_string(MESH, assets={"parts/meshes/wedge.obj": OBJ})
    assert built(spec).model.nmesh == 1


# Options


def cube_with(option: str) -> str:
    return (
        models.path("cube").read_text().replace("<worldbody>", f"{option}<worldbody>")
    )


def options(*entities: str, **scene: Any) -> Any:
    """The physics options of a scene of these models."""
    cfg = SceneCfg(
        entities={f"e{k}": EntityCfg(model=xml) for k, xml in enumerate(entities)},
        **scene,
    )
    return build_scene(cfg).model.opt


def test_scene_states_timestep_and_gravity() -> None:
    stated = cube_with('<option timestep="0.001" gravity="1 0 0"/>')
    assert options(stated).timestep == 0.001
    opt = options(stated, timestep=0.003, gravity=(0, 0, -1.62))
    assert opt.timestep == 0.003
    assert opt.gravity.tolist() == [0, 0, -1.62]


def test_an_option_that_one_entity_states_is_taken() -> None:
    stated = cube_with(
        '<option timestep="0.001" gravity="1 0 0" integrator="RK4" cone="elliptic" '
        'iterations="7" wind="1 2 3"><flag contact="disable" energy="enable"/></option>'
    )
    opt = options("cube", stated, timestep=None)
    assert opt.timestep == 0.001
    assert opt.gravity.tolist() == [1, 0, 0]
    assert opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert opt.iterations == 7
    assert opt.wind.tolist() == [1, 2, 3]
    assert opt.disableflags == mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert opt.enableflags == mujoco.mjtEnableBit.mjENBL_ENERGY


def test_without_a_word_options_are_those_of_mujoco() -> None:
    opt = options("cube", timestep=None)
    plain = Model.from_xml_string("<mujoco/>").opt
    assert opt.timestep == plain.timestep
    assert opt.gravity.tolist() == plain.gravity.tolist()


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ('gravity="0 0 -1"', 'gravity="0 0 -2"', ("gravity", "SceneCfg(gravity=…)")),
        (
            'cone="elliptic" density="1"',
            'density="2"',
            ("density", "SceneCfg(options={'density': …})"),
        ),
        ('integrator="RK4"', 'integrator="implicit"', ("integrator", "options")),
    ],
)
def test_entities_that_disagree_are_refused(
    first: str, second: str, says: tuple[str, ...]
) -> None:
    with pytest.raises(ModelError) as caught:
        options(cube_with(f"<option {first}/>"), cube_with(f"<option {second}/>"))
    for text in (*says, "e0", "e1"):
        assert text in str(caught.value)


def test_timestep_is_settled_or_disagreed_upon() -> None:
    two = [cube_with(f'<option timestep="{dt}"/>') for dt in (0.001, 0.004)]
    assert options(*two, timestep=0.003).timestep == 0.003
    for unsaid in ({}, {"timestep": None}):
        with raises(ModelError, name="timestep"):
            options(*two, **unsaid)


def test_the_scene_settles_a_disagreement() -> None:
    two = [cube_with(f'<option integrator="{name}"/>') for name in ("RK4", "implicit")]
    euler = mujoco.mjtIntegrator.mjINT_EULER
    assert options(*two, options={"integrator": euler}).integrator == euler


@pytest.mark.parametrize("name", ["integratr", "cones"])
def test_an_unknown_option_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        options("cube", options={name: 1})
    assert name in str(caught.value)
    assert f"Did you mean '{name[:4]}" in str(caught.value)


@pytest.mark.parametrize(
    ("scene", "name"),
    [
        ({"timestep": 0.0}, "timestep"),
        ({"timestep": -0.1}, "timestep"),
        ({"gravity": (0, 1)}, "gravity"),
        ({"options": {"iterations": "many"}}, "iterations"),
        ({"options": {"cone": 99}}, "cone"),
        ({"options": {"jacobian": -1}}, "jacobian"),
        ({"options": {"tolerance": float("nan")}}, "tolerance"),
        ({"options": {"density": -1.0}}, "density"),
        ({"options": {"wind": [0.0, float("inf"), 0.0]}}, "wind"),
    ],
)
def test_an_option_of_a_wrong_value_is_refused(
    scene: dict[str, Any], name: str
) -> None:
    with raises(InvalidInputError, name=name):
        options("cube", **scene)


# Initial state

POS, ROT = (0.3, -0.2, 1.7), (0.4, -0.5, 0.6, 0.2)
UNIT_ROT = np.array(ROT) / np.linalg.norm(ROT)
BASES = {"free": "<freejoint/>", "fixed": "", "hinged": '<joint name="root"/>'}


def offset_base(base: str) -> str:
    """A model whose root body is itself away from its own world's origin."""
    joint, mocap = BASES.get(base, ""), 'mocap="true"' if base == "mocap" else ""
    child = "" if base == "mocap" else '<joint name="child" axis="0 1 0"/>'
    return f"""
    <mujoco>
      <worldbody>
        <body name="base" {mocap} pos="5 6 7" quat="0.1 0.7 0.3 -0.2">
          {joint}
          <geom name="base" size="0.1" pos="0.02 0.03 0.05"/>
          <body name="child" pos="0 0 0.4">
            {child}
            <geom name="child" size="0.1"/>
          </body>
        </body>
      </worldbody>
    </mujoco>
    """


@pytest.mark.parametrize("base", ["free", "fixed", "hinged", "mocap"])
@pytest.mark.parametrize("given", ["pos", "rot", "both", "none"])
def test_the_root_link_ends_where_the_configuration_says(base: str, given: str) -> None:
    state: dict[str, Any] = {}
    pos, rot = np.array([5.0, 6.0, 7.0]), np.array([0.1, 0.7, 0.3, -0.2])
    if given in ("pos", "both"):
        state["pos"], pos = POS, np.array(POS)
    if given in ("rot", "both"):
        state["rot"], rot = ROT, UNIT_ROT
    model, data = started(offset_base(base), **state)
    root = data.body("robot/base")
    np.testing.assert_allclose(root.xpos, pos, atol=1e-14)
    rot = rot / np.linalg.norm(rot)
    assert abs(float(root.xquat @ rot)) == pytest.approx(1, abs=1e-14)
    # The rest of the entity comes along.
    turned = np.zeros(3)
    mujoco.mju_rotVecQuat(turned, np.array([0, 0, 0.4]), rot)
    np.testing.assert_allclose(data.body("robot/child").xpos, pos + turned, atol=1e-13)
    assert model.nbody == 3


@pytest.mark.parametrize("base", ["free", "fixed", "mocap"])
def test_the_simulation_starts_and_resets_there(base: str) -> None:
    state = InitialStateCfg(pos=POS, rot=ROT)
    robot_cfg = EntityCfg(model=offset_base(base), init_state=state)
    sim = Simulation(SceneCfg(entities={"robot": robot_cfg}), num_envs=2)
    robot = sim.scene["robot"]
    expected = torch.tensor([*POS, *UNIT_ROT], dtype=torch.float64)
    for _ in range(2):
        pose = robot.data.root_link_pose_w.clone()
        pose[:, 3:] *= torch.sign(pose[:, 3:4] * expected[3])
        torch.testing.assert_close(pose, expected.expand(2, 7), rtol=0, atol=1e-14)
        default = robot.data.default_root_state.clone()
        default[:, 3:7] *= torch.sign(default[:, 3:4] * expected[3])
        torch.testing.assert_close(default[:, :7], expected.expand(2, 7))
        sim.step(5)
        sim.reset()


def test_start_velocities_are_in_world_axes() -> None:
    lin_vel, ang_vel = (0.5, -1.0, 2.0), (3.0, 0.1, -0.7)
    for source, root in ((offset_base("free"), "base"), ("glider", "glider")):
        model, data = started(source, rot=ROT, lin_vel=lin_vel, ang_vel=ang_vel)
        np.testing.assert_allclose(
            velocity(model, data, f"robot/{root}"), [*lin_vel, *ang_vel], atol=1e-13
        )


def test_start_velocities_turn_with_the_models_own_orientation() -> None:
    ang_vel = (3.0, 0.1, -0.7)
    model, data = started(offset_base("free"), ang_vel=ang_vel)
    found = velocity(model, data, "robot/base")
    np.testing.assert_allclose(found, [0, 0, 0, *ang_vel], atol=1e-13)


@pytest.mark.parametrize("base", ["fixed", "hinged", "mocap"])
@pytest.mark.parametrize("given", ["lin_vel", "ang_vel"])
def test_a_base_that_cannot_move_takes_no_velocity(base: str, given: str) -> None:
    with raises(InvalidInputError, name="robot"):
        started(offset_base(base), **{given: (0, 0, 1)})


@pytest.mark.parametrize(
    ("state", "error", "name"),
    [
        ({"pos": (0, 1)}, ShapeError, "init_state.pos"),
        ({"pos": (0, 1, float("nan"))}, InvalidInputError, "init_state.pos"),
        ({"rot": (1, 0, 0)}, ShapeError, "init_state.rot"),
        ({"rot": (0, 0, 0, 0)}, InvalidInputError, "init_state.rot"),
        ({"lin_vel": (0, 1)}, ShapeError, "init_state.lin_vel"),
        ({"ang_vel": (0, 1, float("inf"))}, InvalidInputError, "init_state.ang_vel"),
    ],
)
def test_root_values_that_make_no_sense_are_refused(
    state: dict[str, Any], error: type[Exception], name: str
) -> None:
    with raises(error, name=name):
        started("cube", **state)


LEGS = """
<mujoco>
  <worldbody>
    <body name="base">
      <freejoint/>
      <geom size="0.1"/>
      <body name="shoulder" pos="0 0 1">
        <joint name="shoulder" type="ball"/>
        <geom size="0.1"/>
      </body>
      <body name="left"><joint name="left_hip"/><geom size="0.1"/>
        <body name="left_shin"><joint name="left_knee"/><geom size="0.1"/></body>
      </body>
      <body name="right"><joint name="right_hip"/><geom size="0.1"/>
        <body name="right_shin"><joint name="right_knee"/><geom size="0.1"/></body>
      </body>
    </body>
  </worldbody>
  <keyframe>
    <key name="crouch" qpos="0 0 0.5 0 0 0 1  0 1 0 0  0.1 0.2 0.3 0.4"
         qvel="0 0 0 0 0 0  0 0 0  1 2 3 4"/>
  </keyframe>
</mujoco>
"""


def test_joint_values_go_by_regular_expression() -> None:
    model, data = started(
        LEGS,
        joint_pos={".*_hip": 0.5, "left_knee": -1.0, "shoulder": (0, 0, 2, 0)},
        joint_vel={".*knee": 3.0, "shoulder": (1, 2, 3)},
    )
    pos = {model.joint(i).name: data.joint(i).qpos for i in range(1, model.njnt)}
    vel = {model.joint(i).name: data.joint(i).qvel for i in range(1, model.njnt)}
    assert pos["robot/left_hip"] == pos["robot/right_hip"] == 0.5
    assert pos["robot/left_knee"] == -1
    assert pos["robot/right_knee"] == 0
    assert pos["robot/shoulder"].tolist() == [0, 0, 1, 0]
    assert vel["robot/left_knee"] == vel["robot/right_knee"] == 3
    assert vel["robot/left_hip"] == vel["robot/right_hip"] == 0
    assert vel["robot/shoulder"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("what", ["joint_pos", "joint_vel"])
@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"left_hipp": 1.0}, UnknownNameError, "'left_hip'"),
        ({"hip": 1.0}, UnknownNameError, "left_hip"),
        ({"left_(": 1.0}, UnknownNameError, "regex"),
        ({"left_.*": 1.0, ".*_hip": 2.0}, InvalidInputError, "'left_hip'"),
        ({"left_hip": (1.0, 2.0)}, ShapeError, "left_hip"),
        ({"left_hip": float("nan")}, InvalidInputError, "left_hip"),
        ({"shoulder": 1.0}, ShapeError, "shoulder"),
        ({"shoulder": (1.0, 0.0)}, ShapeError, "shoulder"),
    ],
)
def test_joint_values_that_make_no_sense_are_refused(
    what: str, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        started(LEGS, **{what: given})
    assert says in str(caught.value)
    assert what in str(caught.value)


def test_a_zero_quaternion_of_a_ball_joint_is_refused() -> None:
    with raises(InvalidInputError, name="init_state.joint_pos"):
        started(LEGS, joint_pos={"shoulder": (0, 0, 0, 0)})


def test_a_keyframe_starts_the_entity_and_the_rest_goes_on_top() -> None:
    model, data = started(LEGS, keyframe="crouch")
    own = Model.from_xml_string(LEGS)
    np.testing.assert_array_equal(data.qpos, own.key("crouch").qpos)
    np.testing.assert_array_equal(data.qvel, own.key("crouch").qvel)
    model, data = started(
        LEGS,
        keyframe="crouch",
        pos=(1, 2, 3),
        ang_vel=(1, 2, 3),
        joint_pos={"left_hip": 9.0},
    )
    assert data.qpos.tolist() == [1, 2, 3, 0, 0, 0, 1, 0, 1, 0, 0, 9, 0.2, 0.3, 0.4]
    # The keyframe turns the base by half a turn about z.
    np.testing.assert_allclose(
        velocity(model, data, "robot/base"), [0, 0, 0, 1, 2, 3], atol=1e-13
    )


def test_a_keyframe_of_one_entity_leaves_the_others() -> None:
    crouch = InitialStateCfg(keyframe="crouch")
    cfg = SceneCfg(
        entities={
            "a": EntityCfg(model=LEGS),
            "b": EntityCfg(model=LEGS, init_state=crouch),
            "c": EntityCfg(model=LEGS),
        },
        ground=False,
    )
    own = Model.from_xml_string(LEGS)
    qpos = build_scene(cfg).default.qpos.reshape(3, own.nq)
    np.testing.assert_array_equal(qpos[1], own.key("crouch").qpos)
    np.testing.assert_array_equal(qpos[0], own.qpos0)
    np.testing.assert_array_equal(qpos[2], own.qpos0)


def test_a_keyframe_with_mocap_and_controls_starts_them_too() -> None:
    _, data = started(DEGREE, keyframe="bent")
    assert data.mocap_pos.tolist() == [[3, 2, 1]]
    assert data.mocap_quat.tolist() == [[0, 0, 1, 0]]
    assert data.ctrl.tolist() == [0.5, 0.6]


def test_a_keyframe_moves_the_mocap_bodies_of_its_entity_alone() -> None:
    states = {
        "a": InitialStateCfg(),
        "b": InitialStateCfg(keyframe="bent"),
        "c": InitialStateCfg(pos=(0.1, 5, 0.3)),
    }
    cfg = SceneCfg(
        entities={
            name: EntityCfg(model=DEGREE, init_state=state)
            for name, state in states.items()
        }
    )
    data = build_scene(cfg).default
    # The last entity is moved by 5 along y, whole.
    expected = [[1, 2, 3], [3, 2, 1], [1, 7, 3]]
    np.testing.assert_allclose(data.mocap_pos, expected, atol=1e-14)


def test_an_unknown_keyframe_is_refused_with_the_nearest() -> None:
    with raises(UnknownNameError, name="crouhc"):
        started(LEGS, keyframe="crouhc")
    with raises(UnknownNameError, name="home"):
        started("cube", keyframe="home")


def test_a_keyframe_of_another_entity_is_unknown() -> None:
    state = InitialStateCfg(keyframe="arm/home")
    cfg = SceneCfg(
        entities={
            "arm": EntityCfg(model="arm"),
            "cube": EntityCfg(model="cube", init_state=state),
        }
    )
    with raises(UnknownNameError, name="arm/home"):
        build_scene(cfg)


def test_position_controls_start_at_the_pose() -> None:
    servo = PositionActuatorCfg(joints=".*", stiffness=10.0)
    state = InitialStateCfg(joint_pos={"slide": 0.5, "hinge": -0.3})
    data = built(PLAIN, actuators=(servo,), init_state=state).default
    assert data.ctrl.tolist() == [0.5, -0.3]
    geared = TWO_JOINTS.format(
        '<actuator><position joint="hinge" kp="5" gear="4"/></actuator>'
    )
    data = built(geared, init_state=state).default
    assert data.ctrl.tolist() == [-1.2]


# Actuators

ACTUATORS: list[tuple[ActuatorCfg, str]] = [
    (
        PositionActuatorCfg(joints=".*", stiffness=30.0),
        '<position joint="{0}" name="{0}" kp="30"/>',
    ),
    (
        PositionActuatorCfg(
            joints=".*", stiffness=30.0, damping=2.0, effort_limit=7.0, armature=0.25
        ),
        '<position joint="{0}" name="{0}" kp="30" kv="2" forcerange="-7 7"/>',
    ),
    (
        VelocityActuatorCfg(joints=["slide", "hinge"], damping=4.0, effort_limit=3.0),
        '<velocity joint="{0}" name="{0}" kv="4" forcerange="-3 3"/>',
    ),
    (
        MotorActuatorCfg(joints="slide|hinge", gear=6.0),
        '<motor joint="{0}" name="{0}" gear="6"/>',
    ),
    (
        MotorActuatorCfg(joints=".*", effort_limit=5.0, armature=0.0),
        '<motor joint="{0}" name="{0}" forcerange="-5 5"/>',
    ),
    (
        PositionActuatorCfg(
            joints=".*",
            stiffness=30.0,
            damping=2.0,
            effort_limit=9.0,
            inputs=("pos", "vel", "ff"),
        ),
        '<pid joint="{0}" name="{0}" kp="30" kv="2" forcerange="-9 9" '
        'input="pos vel ff"/>',
    ),
]
ACTUATOR_FIELDS = (
    "gaintype",
    "biastype",
    "dyntype",
    "gainprm",
    "biasprm",
    "gear",
    "forcerange",
    "forcelimited",
    "ctrllimited",
    "ctrlnum",
    "ctrladr",
    "ctrlspec",
    "trntype",
    "trnid",
)


@pytest.mark.parametrize(("cfg", "xml"), ACTUATORS)
def test_declared_actuators_compile_as_those_in_xml(cfg: ActuatorCfg, xml: str) -> None:
    scene = built(PLAIN, actuators=(cfg,))
    lines = "".join(xml.format(joint) for joint in ("slide", "hinge"))
    own = Model.from_xml_string(TWO_JOINTS.format(f"<actuator>{lines}</actuator>"))
    assert scene.model.nactuator == 2
    assert scene.model.nu == own.nu
    for field in ACTUATOR_FIELDS:
        name = f"actuator_{field}"
        np.testing.assert_array_equal(
            getattr(scene.model, name), getattr(own, name), err_msg=name
        )
    assert scene.entities["robot"].actuators.names == ("slide", "hinge")
    armature = [0.3, 0.0] if cfg.armature is None else [cfg.armature] * 2
    np.testing.assert_array_equal(scene.model.dof_armature, armature)


def test_a_pid_has_a_control_for_each_input() -> None:
    servo = PositionActuatorCfg(
        joints="hinge", stiffness=30.0, damping=2.0, inputs=("pos", "vel", "ff")
    )
    cfg = SceneCfg(
        entities={"robot": EntityCfg(model=PLAIN, actuators=(servo,))}, ground=False
    )
    sim = Simulation(cfg, num_envs=2)
    robot = sim.scene["robot"]
    assert (robot.num_actuators, robot.num_controls) == (1, 3)
    robot.write_joint_state_to_sim([[0.0, 0.3]], [[0.0, -0.4]])
    robot.set_joint_position_target([[0.5]], joint_ids=[1])
    robot.set_joint_velocity_target([[0.9]], joint_ids=[1])
    robot.set_joint_effort_target([[1.5]], joint_ids=[1])
    force = 30 * (0.5 - 0.3) + 2 * (0.9 + 0.4) + 1.5
    torch.testing.assert_close(
        robot.data.qfrc_actuator, torch.tensor([[0.0, force]] * 2).double()
    )


@pytest.mark.parametrize("gear", [1.0, 20.0, 0.5])
def test_effort_limit_bounds_the_force_on_the_joint(gear: float) -> None:
    motor = MotorActuatorCfg(joints=".*", gear=gear, effort_limit=10.0)
    scene = built(PLAIN, actuators=(motor,))
    scene.default.ctrl[:] = [1000, -1000]
    mujoco.mj_forward(scene.model, scene.default)
    np.testing.assert_allclose(scene.default.qfrc_actuator, [10, -10])


@pytest.mark.parametrize(
    "make",
    [
        lambda: PositionActuatorCfg(joints="a", stiffness=-1.0),
        lambda: PositionActuatorCfg(joints="a", stiffness=1.0, damping=-1.0),
        lambda: PositionActuatorCfg(joints="a", stiffness=1.0, effort_limit=0.0),
        lambda: PositionActuatorCfg(joints="a", stiffness=1.0, armature=-1.0),
        lambda: PositionActuatorCfg(joints="a", stiffness=1.0, inputs=("vel",)),
        lambda: PositionActuatorCfg(joints="a", stiffness=1.0, inputs=("pos", "x")),
        lambda: PositionActuatorCfg(joints="a", stiffness=float("nan")),
        lambda: VelocityActuatorCfg(joints="a", damping=0.0),
        lambda: MotorActuatorCfg(joints="a", gear=0.0),
    ],
)
def test_actuators_that_make_no_sense_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInputError):
        make()


def test_a_motor_without_gear_in_the_model_is_built() -> None:
    xml = TWO_JOINTS.format('<actuator><motor joint="hinge" gear="0"/></actuator>')
    scene = built(xml)
    assert scene.model.nu == 1
    assert scene.entities["robot"].effort_inputs.joints == ()


def test_a_second_actuator_on_a_joint_is_refused() -> None:
    xml = TWO_JOINTS.format('<actuator><motor name="m" joint="slide"/></actuator>')
    servo = PositionActuatorCfg(joints=".*", stiffness=1.0)
    with raises(ModelError, name="slide"):
        built(xml, actuators=(servo,))
    both = (servo, MotorActuatorCfg(joints="hinge"))
    with raises(ModelError, name="hinge"):
        built(PLAIN, actuators=both)
    only = PositionActuatorCfg(joints="hinge", stiffness=1.0)
    names = built(xml, actuators=(only,)).entities["robot"].actuators.names
    assert names == ("m", "hinge")


def test_an_actuator_for_no_joint_is_refused() -> None:
    with raises(UnknownNameError, name="slid"):
        built(PLAIN, actuators=(MotorActuatorCfg(joints="slid"),))


def test_the_models_actuators_go_if_they_are_not_kept() -> None:
    servo = PositionActuatorCfg(joints="joint[1-7]", stiffness=1.0)
    scene = built("arm", actuators=(servo,), keep_model_actuators=False)
    names = tuple(f"joint{k}" for k in range(1, 8))
    assert scene.entities["robot"].actuators.names == names
    assert scene.model.actuator_gainprm[:, 0].tolist() == [1.0] * 7
    assert built("arm", keep_model_actuators=False).model.nu == 0


KEYED = TWO_JOINTS.format(
    '<actuator><motor name="m" joint="slide"/></actuator>'
    '<keyframe><key name="pose" qpos="0.1 0.2" ctrl="0.7"/></keyframe>'
)


@pytest.mark.parametrize("inputs", [("pos",), ("pos", "vel", "ff")])
def test_keyframes_with_controls_hold_their_pose_with_new_actuators(
    inputs: tuple[Any, ...],
) -> None:
    servo = PositionActuatorCfg(joints="hinge", stiffness=1.0, inputs=inputs)
    scene = built(
        KEYED, actuators=(servo,), init_state=InitialStateCfg(keyframe="pose")
    )
    expected = [0.7, 0.2] + [0.0] * (len(inputs) - 1)
    assert scene.model.key("robot/pose").ctrl.tolist() == expected
    assert scene.default.ctrl.tolist() == expected


def test_keyframes_lose_the_controls_of_dropped_actuators() -> None:
    servo = PositionActuatorCfg(joints=".*", stiffness=1.0)
    scene = built(
        KEYED,
        actuators=(servo,),
        keep_model_actuators=False,
        init_state=InitialStateCfg(keyframe="pose"),
    )
    assert scene.default.qpos.tolist() == [0.1, 0.2]
    assert scene.default.ctrl.tolist() == [0.1, 0.2]


def test_what_a_control_means_is_known_for_each_kind_of_actuator() -> None:
    kinds = {
        '<motor joint="hinge"/>': "effort",
        '<position joint="hinge" kp="3"/>': "position",
        '<velocity joint="hinge" kv="3"/>': "velocity",
        '<general joint="hinge" gainprm="3" biastype="affine" biasprm="0 -3 -1"/>': (
            "position"
        ),
        '<general joint="hinge" gainprm="3" biastype="affine" biasprm="0 0 -3"/>': (
            "velocity"
        ),
        # The control is a rate here: it is integrated before it is a position.
        '<intvelocity joint="hinge" kp="3" actrange="-1 1"/>': "velocity",
        '<general joint="hinge" dyntype="integrator" gainprm="3" biastype="affine" '
        'biasprm="0 -3 0" actlimited="true" actrange="-1 1"/>': "velocity or none",
        '<cylinder joint="hinge"/>': "none",
        '<general joint="hinge" gainprm="3" biastype="affine" biasprm="1 -2 0"/>': (
            "none"
        ),
    }
    for line, kind in kinds.items():
        scene = built(TWO_JOINTS.format(f"<actuator>{line}</actuator>"))
        robot = scene.entities["robot"]
        found = [
            name
            for name in ("position", "velocity", "effort")
            if getattr(robot, f"{name}_inputs").joints == (1,)
        ]
        assert (found[0] if found else "none") in kind, line
        assert len(found) <= 1


# What cannot be built


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("<mujoco><worldbody>", ("XML", "valid")),
        ("<mujoco><wordbody/></mujoco>", ("wordbody",)),
        ("<html/>", ("XML string",)),
        (
            '<mujoco><worldbody><body name="b"><joint/></body></worldbody></mujoco>',
            ("mass",),
        ),
        (
            '<mujoco><extension><plugin plugin="acme.arm"/></extension></mujoco>',
            ("acme.arm", "mj_loadPluginLibrary"),
        ),
        ("no/such/file.xml", ("no/such/file.xml", "file", "quadruped")),
        ("quadrupedd", ("quadrupedd", "quadruped")),
        (Path("nowhere.xml"), ("nowhere.xml",)),
        ("", ("no model",)),
        ("x" * 5000, ("no model",)),
        (lambda: 3, ("MjSpec", "int")),
        (lambda: None, ("MjSpec", "NoneType")),
        (lambda: "cube", ("MjSpec", "str")),
        (None, ("MjSpec", "NoneType")),
        (3, ("MjSpec", "int")),
        (Model.from_xml_string("<mujoco/>"), ("MjSpec", "MjModel")),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0][:30],
)
def test_what_is_no_model_is_refused(model: Any, says: tuple[str, ...]) -> None:
    with pytest.raises(ModelError) as caught:
        built(model)
    for text in says:
        assert text in str(caught.value)


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_text("<mujoco><worldbody>")
    with raises(ModelError, file="broken.xml"):
        built(path)


def test_a_missing_mesh_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wedge.xml"
    path.write_text(MESH)
    with raises(ModelError, name="model") as caught:
        built(path)
    assert "wedge.obj" in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b", "/", "robot/"])
def test_an_entitys_name_is_not_empty_and_has_no_slash(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        build_scene(SceneCfg(entities={name: EntityCfg(model="cube")}))
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("factor", [0.0, -0.5, 1.1, float("nan")])
def test_a_soft_limit_factor_is_a_fraction(factor: float) -> None:
    with raises(InvalidInputError, name="soft_joint_pos_limit_factor"):
        built(PLAIN, soft_joint_pos_limit_factor=factor)


# A compiled model


def test_a_compiled_model_is_one_entity_called_model() -> None:
    own = Model.from_xml_string(DEGREE)
    sim = Simulation(own, num_envs=3)
    assert list(sim.scene) == ["model"]
    assert sim.model is own
    entity = sim.scene["model"]
    assert entity.body_names == ("base", "one", "two", "target")
    assert entity.joint_names == ("one", "two")
    assert entity.index.base == "free"
    qpos = torch.as_tensor(own.qpos0).expand(3, -1)
    torch.testing.assert_close(sim.data.qpos, qpos)


def test_a_compiled_model_keeps_slashes_in_names() -> None:
    own = Model.from_xml_string(PLAIN.replace('name="hinge"', 'name="model/hinge"'))
    assert build_scene(own).entities["model"].joints.names == ("slide", "model/hinge")


@pytest.mark.filterwarnings("ignore:There is nothing to simulate")
def test_a_scene_without_entities_or_an_entity_without_bodies_is_built() -> None:
    assert Simulation(SceneCfg(entities={})).model.nbody == 1
    xml = '<mujoco><worldbody><geom name="rock" size="1"/></worldbody></mujoco>'
    sim = Simulation(SceneCfg(entities={"rock": EntityCfg(model=xml)}))
    rock = sim.scene["rock"]
    assert (rock.num_bodies, rock.num_geoms) == (0, 1)
    assert rock.data.geom_pos_w.tolist() == [[[0, 0, 0]]]
    with raises(ModelError, name="rock"):
        _ = rock.data.root_link_pos_w
    with raises(InvalidInputError, name="write_root_link_pose_to_sim"):
        rock.write_root_link_pose_to_sim([[0, 0, 0, 1, 0, 0, 0]])


def test_an_unknown_entity_is_refused_with_the_nearest() -> None:
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model="cube")}))
    with raises(UnknownNameError, name="robt"):
        sim.scene["robt"]
