"""A scene matches its files: nothing that a file ties to the world or states for a
whole model is lost, and a difference raises."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from tests.model_corpus import differences, run_differences
from tests.raised import raises
from tests.scene.model_table import SETTINGS, TIES, write_skin

from simstate import (
    CameraCfg,
    ContactCfg,
    EntityCfg,
    ModelError,
    PositionActuatorCfg,
    SceneCfg,
    SceneMismatchError,
    Simulation,
)
from simstate.scene import build
from simstate.scene.build import build_scene
from simstate.scene.model_fields import model_fields
from simstate.scene.verification import verify_scene

OTHER = """<mujoco><worldbody><geom name="wall" type="box" size=".1 .1 .1" pos="5 5 5"
contype="2"/><body name="ball" pos="7 8 9" quat=".6 0 0 .8"><freejoint/>
<geom size=".2" mass="3"/><site name="top" pos="0 0 .2"/></body>
<body mocap="true" name="hand" pos="6 6 6"/></worldbody>
<sensor><framepos objtype="site" objname="top"/></sensor></mujoco>"""
FILES = TIES | {name: texts[0] for name, texts in SETTINGS.items()}


def alone(text: str) -> SceneCfg:
    """A scene of one file and nothing else."""
    robot = EntityCfg(model=text)
    return SceneCfg(entities={"robot": robot}, ground=False, timestep=None)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_a_file_in_a_scene_is_the_file(name: str) -> None:
    own = mujoco.MjModel.from_xml_string(FILES[name])
    sim = Simulation(alone(FILES[name]))
    assert differences(own, sim.model) == []
    assert run_differences(own, sim) == ""


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_of_the_table_changes_its_model(name: str) -> None:
    models = [mujoco.MjModel.from_xml_string(text) for text in SETTINGS[name]]
    assert differences(*models)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(set(FILES) - {"lengthrange mode"}))
def test_a_file_among_others_is_verified_and_counted(name: str) -> None:
    """Twice, between two others, over a ground, with a camera and a contact sensor."""
    own: Any = mujoco.MjModel.from_xml_string(FILES[name])
    other: Any = mujoco.MjModel.from_xml_string(OTHER)
    model = EntityCfg(model=FILES[name])
    scene = SceneCfg(
        entities={
            "first": EntityCfg(model=OTHER),
            "one": model,
            "two": EntityCfg(model=FILES[name]),
            "last": EntityCfg(model=OTHER),
        },
        ground=True,
        timestep=None,
        cameras={"eye": CameraCfg(pos=(1, 2, 3), look_at=(0, 0, 0))},
        contacts={"touch": ContactCfg(of="first/ball")},
    )
    built = build_scene(scene)
    for size in ("njnt", "neq", "nflex", "nskin", "nactuator", "ntuple", "nkey"):
        expected = 2 * (getattr(own, size) + getattr(other, size))
        assert getattr(built.model, size) == expected
    assert built.model.nsensor >= 2 * own.nsensor + 4
    assert set(built.matches) == {"first", "one", "two", "last"}
    assert built.matches["one"].arrays == built.matches["two"].arrays > 100


def test_a_skin_of_a_file_keeps_its_bone_on_the_world(tmp_path: Path) -> None:
    text = write_skin(tmp_path / "sleeve.skn")
    own = mujoco.MjModel.from_xml_string(text)
    model = build_scene(alone(text)).model
    assert differences(own, model) == []
    assert 0 in model.skin_bonebodyid


def test_a_model_of_the_world_alone_keeps_its_ties() -> None:
    text = """<mujoco><worldbody><geom size=".1"/></worldbody><sensor>
    <framepos objtype="body" objname="world"/></sensor><custom><tuple name="t">
    <element objtype="body" objname="world" prm="2"/></tuple></custom></mujoco>"""
    with pytest.warns(UserWarning, match="nothing to simulate"):
        model = build_scene(alone(text)).model
    assert differences(mujoco.MjModel.from_xml_string(text), model) == []


@pytest.mark.parametrize("kind", ["fitaabb", "lengthrange accel"])
def test_entities_that_need_different_compiler_settings_raise(kind: str) -> None:
    one, two = SETTINGS[kind]
    entities = {"one": EntityCfg(model=one), "two": EntityCfg(model=two)}
    words = kind.split()[-1]
    with raises(ModelError, name=words):
        build_scene(SceneCfg(entities=entities, timestep=None))


def test_a_setting_that_an_entity_does_not_use_is_left_to_the_other() -> None:
    text = SETTINGS["fitaabb"][0]
    entities = {"one": EntityCfg(model=OTHER), "two": EntityCfg(model=text)}
    model = build_scene(SceneCfg(entities=entities, timestep=None)).model
    own = mujoco.MjModel.from_xml_string(text)
    assert model.body("two/lump").mass == own.body("lump").mass


def test_a_difference_that_mujoco_makes_itself_raises() -> None:
    """MuJoCo 3.17 takes the limits of another joint for the second of two actuators."""
    text = SETTINGS["lengthrange mode"][0]
    plain = mujoco.MjSpec()
    plain.compiler.LRopt.mode, plain.compiler.LRopt.uselimit = 3, 1
    for prefix in ("one/", "two/"):
        child = mujoco.MjSpec.from_string(text)
        plain.attach(child, prefix=prefix, frame=plain.worldbody.add_frame())
    ranges = plain.compile().actuator_lengthrange
    entities = {"one": EntityCfg(model=text), "two": EntityCfg(model=text)}
    scene = SceneCfg(entities=entities, timestep=None)
    if (ranges[0] == ranges[1]).all():
        np.testing.assert_array_equal(
            build_scene(scene).model.actuator_lengthrange, ranges
        )
        return
    with raises(SceneMismatchError, name="actuator_lengthrange"):
        build_scene(scene)


RICH = """<mujoco><option timestep=".003"/><size nuser_geom="2"/>
<asset><mesh name="wedge" vertex="0 0 0 .3 0 0 0 .2 0 0 0 .1 .25 .15 .02"
  texcoord="0 0 1 0 0 1 1 1 .5 .5"/>
  <mesh name="spare" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  <hfield name="hill" nrow="3" ncol="4" size="1 1 1 .1" elevation="0 1 2 3 4 5 6 7 8 9
  1 2"/><texture name="a" type="2d" builtin="checker" width="8" height="8"/>
  <texture name="b" type="cube" builtin="flat" width="4" height="4" rgb1=".2 .3 .4"/>
  <material name="paint" texture="b"/><material name="tile" texture="a"/></asset>
<worldbody><light name="lamp" pos="0 0 3" mode="targetbody" target="arm"/>
  <geom name="slope" type="hfield" hfield="hill" pos="9 0 0"/>
  <camera name="eye" pos="1 2 3" mode="targetbody" target="tip"/>
  <site name="mark" pos=".1 .2 .3"/><body name="goal" mocap="true" pos="3 3 3"/>
  <body name="post" pos="2 2 0"><geom name="pole" type="cylinder" size=".1 .4"
  material="tile" user="4 5"/></body>
  <body name="arm" pos=".3 .1 .6" quat=".8 .6 0 0"><joint name="turn" axis="0 1 .5"/>
    <geom name="rod" type="capsule" size=".04" fromto="0 0 0 .3 .1 0" material="paint"/>
    <geom name="lump" type="mesh" mesh="wedge"/><site name="end" pos=".3 .1 0"/>
    <body name="tip" pos=".3 .1 .05"><joint name="ball" type="ball"/>
      <geom name="knob" size=".05" pos=".02 0 .01" user="6 7"/>
      <site name="side" pos=".1 0 0"/><camera name="near" pos=".2 .1 .3" mode="track"/>
      <light name="spot" pos=".1 .1 .4" dir=".1 0 -1" mode="trackcom"/></body></body>
  <body name="box" pos="-.4 .2 .5" quat=".6 0 .8 0"><freejoint name="free"/>
    <geom name="cube" type="box" size=".1 .08 .06" pos=".01 .02 0"/></body>
  <flexcomp name="cloth" type="grid" dim="2" count="4 3 1" spacing=".1 .1 .1"
    pos="0 .3 1" radius=".01" mass=".5" material="paint"><pin id="0 3"/>
    <edge equality="true"/></flexcomp></worldbody>
<deformable><skin name="sleeve" vertex="0 0 0 .1 0 0 0 .1 0 .1 .1 .1"
  texcoord="0 0 1 0 0 1 1 1" face="0 1 2 1 3 2" material="tile">
  <bone body="world" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1"
    vertweight="1 .5"/>
  <bone body="tip" bindpos=".6 .2 .6" bindquat=".8 .6 0 0" vertid="1 2 3"
    vertweight=".5 1 1"/></skin></deformable>
<contact><pair name="p" geom1="rod" geom2="cube"/><exclude body1="arm" body2="box"/>
</contact>
<equality><weld name="w" body1="box" body2="world"/><joint joint1="turn"
  polycoef=".1 1 0 0 0" active="false"/></equality>
<tendon><spatial name="rope" range="0 3" material="paint"><site site="mark"/>
  <geom geom="pole" sidesite="side"/><site site="end"/></spatial>
  <fixed name="sum"><joint joint="turn" coef=".7"/></fixed></tendon>
<actuator><motor name="m" joint="turn" gear="3"/><muscle name="pull" tendon="rope"/>
  <general name="late" tendon="sum" delay=".01" nsample="5"/>
  <position name="s" site="end" refsite="mark" kp="5" gear="1 0 .2 0 0 0"/></actuator>
<sensor><framepos name="f" objtype="site" objname="end" reftype="body" refname="box"/>
  <actuatorfrc name="g" actuator="pull"/><tendonpos tendon="sum"/></sensor>
<custom><numeric name="n" data="1 2 3"/><text name="t" data="written"/>
  <tuple name="u"><element objtype="geom" objname="cube" prm="2"/>
  <element objtype="sensor" objname="g"/></tuple></custom>
<keyframe><key name="k" ctrl=".1 .2 .3 .4"/><key name="l" time="2"/></keyframe></mujoco>
"""
DERIVED = {
    "dof_simplenum", "mapM2M", "efm0_dofid", "efm0_L_rownnz", "efm0_L_rowadr",
    "efm0_L_colind", "efm0_L", "efmC_perm", "flexvert_J_rownnz", "flexvert_J_rowadr",
    "flexvert_J_colind",
}  # fmt: skip
"""Arrays that MuJoCo derives for a scene in one piece."""


def corrupted(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Let `change` alter every scene after it is compiled, before it is verified."""
    original = build.compile_spec

    def compiled(spec: mujoco.MjSpec, what: str) -> mujoco.MjModel:
        model = original(spec, what)
        if what == "The scene":
            change(model)
        return model

    monkeypatch.setattr(build, "compile_spec", compiled)


def alter_last(values: np.ndarray, field: str) -> None:
    """Change the last value of an array in place."""
    last = values.reshape(-1)[-1:]
    if values.dtype == bool:
        last[:] = ~last
    elif values.dtype.kind == "f":
        last[:] = np.where(last == 0.0, 1.0, 1.5 * last)
    elif field.endswith("adr"):
        last[:] = np.where(last < 0, 0, -1)
    else:
        last += 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_change_of_any_array_of_one_file_of_several_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last row of each array is the second entity's."""
    entities = {"other": EntityCfg(model=OTHER), "robot": EntityCfg(model=RICH)}
    scene = SceneCfg(entities=entities, ground=True, timestep=None)
    taken: list[Any] = []
    monkeypatch.setattr(build, "verify_scene", lambda *args: taken.extend(args) or {})
    build_scene(scene)
    *given, model, additions = taken
    unnoticed: list[str] = []
    entities_named: set[str] = set()
    altered = 0
    for field in (field.name for field in model_fields()):
        changed = copy.copy(model)
        value = getattr(changed, field)
        if isinstance(value, bytes) or not value.size:
            continue
        alter_last(value, field)
        altered += 1
        try:
            verify_scene(*given, changed, additions)
        except SceneMismatchError as error:
            entities_named.add(str(error).split()[1])
        else:
            unnoticed.append(field)
    assert set(unnoticed) <= DERIVED
    assert entities_named == {"'robot'"}
    assert altered > 300


@pytest.mark.parametrize("group", ["opt", "stat", "vis.global_", "vis.map", "vis.rgba"])
def test_a_change_of_any_setting_raises(
    group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(model: Any) -> Any:
        for name in group.split("."):
            model = getattr(model, name)
        return model

    scene = alone(RICH)
    fresh = part(build_scene(scene).model)
    names = [n for n in dir(fresh) if not n.startswith("_") and n != "cameraid"]
    for name in names:
        if not np.size(getattr(fresh, name)):
            continue

        def change(model: Any, name: str = name) -> None:
            setattr(part(model), name, getattr(part(model), name) + 1)

        with monkeypatch.context() as patch:
            corrupted(patch, change)
            with raises(SceneMismatchError, name=f"{group}.{name}"):
                build_scene(scene)


def test_the_error_names_the_element_both_values_and_the_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corrupted(monkeypatch, lambda m: m.geom("robot/knob").size.__setitem__(0, 0.25))
    with pytest.raises(SceneMismatchError) as raised:
        build_scene(alone(RICH))
    error = raised.value
    assert (error.name, error.element) == ("geom_size", "geom 'knob'")
    assert "0.05" in error.in_file
    assert "0.25" in error.in_scene
    for part in (
        "'robot'",
        "geom_size of geom 'knob'",
        "0.25",
        "0.05",
        "from_xml_path",
    ):
        assert part in str(error)


def test_an_element_that_is_lost_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    attach = mujoco.MjSpec.attach

    def lossy(parent: Any, child: Any, *args: Any, **kwargs: Any) -> Any:
        for sensor in child.sensors[1:2]:
            child.delete(sensor)
        return attach(parent, child, *args, **kwargs)

    monkeypatch.setattr(mujoco.MjSpec, "attach", lossy)
    for extra, lost in (
        ({}, ("nsensor", "")),
        ({"other": EntityCfg(model=OTHER)}, ("", "sensor 'g'")),
    ):
        entities = {"robot": EntityCfg(model=RICH), **extra}
        with pytest.raises(SceneMismatchError) as caught:
            build_scene(SceneCfg(entities=entities, timestep=None))
        assert (caught.value.name, caught.value.element) == lost


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_configuration_requests_may_differ() -> None:
    robot = EntityCfg(
        model=RICH.replace('<actuatorfrc name="g" actuator="pull"/>', "")
        .replace('<element objtype="sensor" objname="g"/>', "")
        .replace('ctrl=".1 .2 .3 .4"', ""),
        keep_model_actuators=False,
        com_varies=True,
        actuators=(PositionActuatorCfg(joints="turn", stiffness=9, armature=0.3),),
    )
    scene = SceneCfg(
        entities={"robot": robot},
        timestep=0.001,
        gravity=(0, 1, -3),
        options={"iterations": 7, "cone": "elliptic"},
        sizes={"nuserdata": 3, "nuser_geom": 4},
        cameras={"eye": CameraCfg(camera="robot/eye", width=33, fovy=51.0)},
    )
    built = build_scene(scene)
    assert built.model.cam("robot/eye").fovy == 51.0
    assert built.model.nactuator == 1
    assert built.model.opt.timestep == 0.001


def test_the_default_camera_stays_the_files_own() -> None:
    text = """<mujoco><visual><global cameraid="1"/></visual><worldbody>
    <camera name="a" pos="1 0 0"/><camera name="b" pos="0 1 0"/><body><joint/>
    <geom size=".1"/></body></worldbody></mujoco>"""
    scene = SceneCfg(
        entities={"other": EntityCfg(model=RICH), "robot": EntityCfg(model=text)},
        timestep=0.002,
        cameras={"eye": CameraCfg(pos=(1, 2, 3), look_at=(0, 0, 0))},
    )
    model = build_scene(scene).model
    assert model.camera(model.vis.global_.cameraid).name == "robot/b"


def test_the_table_knows_every_integer_array() -> None:
    """An array of ids that the tables do not know would be compared as it is."""
    from simstate.scene.model_fields import (
        ADDRESSES,
        IDS,
        SCENE_STRUCTURES,
        SIGNATURES,
        TYPED_IDS,
    )

    known = {*ADDRESSES, *IDS, *TYPED_IDS, *SIGNATURES, *SCENE_STRUCTURES}
    # Ids within an element, and those of volume hierarchies, which have several kinds.
    local = {"bvh_nodeid", "skin_bonevertid", "flex_vertedgeadr"}
    model: Any = mujoco.MjModel.from_xml_string("<mujoco/>")
    suspects = {
        field.name
        for field in model_fields()
        if field.name.endswith(("id", "id1", "id2", "adr", "ind"))
        and getattr(model, field.name).dtype.kind == "i"
    }
    assert suspects - known <= local


@pytest.mark.parametrize("scale", [1.0, 1 + 8e-15, 1 - 8e-15])
def test_the_start_is_qpos0_bit_for_bit(scale: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        quat = rng.normal(size=4)
        quat *= scale / np.linalg.norm(quat)
        words = " ".join(repr(float(value)) for value in quat)
        text = f"""<mujoco><worldbody><body pos=".1 .2 .3" quat="{words}"><freejoint/>
        <geom size=".1"/><body pos="0 .3 0"><joint type="ball"/><geom size=".1"/></body>
        </body></worldbody></mujoco>"""
        own: Any = mujoco.MjModel.from_xml_string(text)
        sim = Simulation(alone(text))
        sim.reset()
        assert sim.data.qpos[0].numpy().tobytes() == own.qpos0.tobytes()
