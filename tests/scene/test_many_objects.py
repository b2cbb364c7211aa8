"""Scenes of many objects: equal models are prepared once, and named in one pass."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, ModelError, SceneCfg, Simulation
from simstate.scene import build
from simstate.scene.build import build_scene
from simstate.scene.index import index_entities

pytestmark = pytest.mark.fast

CUBE = """
<mujoco><worldbody><body name="box" pos="0.1 0.2 0.3" quat="0.6 0 0.8 0">
  <freejoint/><geom type="box" size=".1 .2 .3" mass="2"/><site name="top"/>
</body></worldbody></mujoco>
"""
ARM = """
<mujoco><worldbody><body name="link"><joint name="turn" axis="0 1 0"/>
  <geom name="rod" type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
  <body name="tip" pos=".4 0 0"><joint name="slide" type="slide" range="-.1 .1"/>
    <geom name="end" size=".05"/></body></body></worldbody>
<actuator><position joint="slide" kp="7" gear="3"/><motor name="m" joint="turn"/>
</actuator>
<keyframe><key name="bent" qpos=".3 -.05" ctrl=".2 .1"/></keyframe></mujoco>
"""
KINDS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
}


def mixed(cube: object = CUBE, arm: object = ARM) -> SceneCfg:
    """Cubes and arms in turn, each placed and turned in its own way."""
    entities: dict[str, EntityCfg] = {}
    for k in range(4):
        start = InitialStateCfg(
            pos=(1.5 * k, -0.5 * k, 1.0 + k), rot=(1, 0.1 * k, 0, 0.3)
        )
        entities[f"c{k}"] = EntityCfg(model=cube, init_state=start)  # pyright: ignore
        keyframe = InitialStateCfg(keyframe="bent" if k % 2 else None, pos=(0, k, 2))
        entities[f"a{k}"] = EntityCfg(model=arm, init_state=keyframe)  # pyright: ignore
    return SceneCfg(entities=entities, timestep=0.003)


def saved(model: mujoco.MjModel) -> bytes:
    """The compiled model, bit by bit."""
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def test_entities_that_share_a_model_compile_as_if_each_had_its_own() -> None:
    shared = build_scene(mixed())
    apart = build_scene(
        mixed(
            lambda: mujoco.MjSpec.from_string(CUBE),
            lambda: mujoco.MjSpec.from_string(ARM),
        )
    )
    assert saved(shared.model) == saved(apart.model)
    assert shared.entities == apart.entities
    for field in ("qpos", "qvel", "ctrl"):
        left, right = getattr(shared.default, field), getattr(apart.default, field)
        np.testing.assert_array_equal(left, right)
    assert len(np.unique(shared.default.qpos[:28].reshape(4, 7), axis=0)) == 4


def test_each_distinct_model_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    original = build.prepare_entity

    def counted(name: str, cfg: EntityCfg) -> object:
        prepared.append(name)
        return original(name, cfg)

    monkeypatch.setattr(build, "prepare_entity", counted)
    build_scene(mixed())
    assert prepared == ["c0", "a0"]
    prepared.clear()
    calls = iter((CUBE, CUBE.replace('mass="2"', 'mass="5"')))
    maker = lambda: mujoco.MjSpec.from_string(next(calls))  # noqa: E731
    entities = {name: EntityCfg(model=maker) for name in ("first", "second")}
    built = build_scene(SceneCfg(entities=entities, timestep=0.003))
    masses = built.model.body_mass[-2:].tolist()
    assert (prepared, masses) == (["first", "second"], [2.0, 5.0])


def test_entities_with_other_settings_do_not_share_a_model() -> None:
    entities = {
        "kept": EntityCfg(model=ARM),
        "bare": EntityCfg(model=ARM, keep_model_actuators=False),
        "moving": EntityCfg(model=ARM, com_varies=True),
        "kept2": EntityCfg(model=ARM),
    }
    built = build_scene(SceneCfg(entities=entities, timestep=0.003))
    controls = {name: len(index.controls) for name, index in built.entities.items()}
    assert controls == {"kept": 2, "bare": 0, "moving": 2, "kept2": 2}


def test_a_shared_spec_is_left_as_it_was() -> None:
    spec = mujoco.MjSpec.from_string(CUBE)
    text = spec.copy().to_xml() if spec.compile() else ""
    entities = {f"c{k}": EntityCfg(model=spec) for k in range(3)}
    build_scene(SceneCfg(entities=entities, timestep=0.003))
    spec.compile()
    assert spec.to_xml() == text


def test_names_and_ids_are_those_of_mujoco() -> None:
    built = build_scene(mixed())
    for name, index in built.entities.items():
        groups = {
            "body": [index.bodies],
            "joint": [index.joints, index.free_joints, index.ball_joints],
            "geom": [index.geoms],
            "site": [index.sites],
            "actuator": [index.actuators],
        }
        for kind, parts in groups.items():
            found = {
                n: i
                for part in parts
                for n, i in zip(part.names, part.ids, strict=True)
            }
            ids = {
                n: mujoco.mj_name2id(built.model, KINDS[kind].value, f"{name}/{n}")
                for n in found
            }
            assert found == ids
            prefix = f"{name}/"
            count = {"body": "nbody", "joint": "njnt", "geom": "ngeom", "site": "nsite",
                     "actuator": "nactuator"}[kind]  # fmt: skip
            everything = [
                mujoco.mj_id2name(built.model, KINDS[kind].value, i) or ""
                for i in range(getattr(built.model, count))
            ]
            assert len(found) == sum(each.startswith(prefix) for each in everything)
        for part in (index.bodies, index.joints, index.geoms):
            assert part.places == {n: part.names.index(n) for n in part.names}


def test_an_entity_whose_name_begins_like_another_has_its_own_elements() -> None:
    entities = {name: EntityCfg(model=CUBE) for name in ("c1", "c", "c11")}
    built = build_scene(SceneCfg(entities=entities, timestep=0.003))
    assert [built.entities[n].bodies.ids for n in ("c1", "c", "c11")] == [
        (1,),
        (2,),
        (3,),
    ]


def test_a_whole_model_keeps_names_with_slashes_and_names_the_unnamed() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body name="a/b"><freejoint/><geom size=".1"/>'
        '<geom name="geom_0" size=".2"/></body></worldbody></mujoco>'
    )
    index = index_entities(model, {"model": ""})["model"]
    assert index.bodies.names == ("a/b",)
    assert index.geoms.names == ("geom_0_", "geom_0")


def test_a_conflict_names_every_entity_that_states_a_value() -> None:
    slow = CUBE.replace("<worldbody>", '<option timestep="0.004"/><worldbody>')
    fast = CUBE.replace("<worldbody>", '<option timestep="0.001"/><worldbody>')
    entities = {
        "s1": EntityCfg(model=slow),
        "s2": EntityCfg(model=slow),
        "f": EntityCfg(model=fast),
    }
    with raises(ModelError, name="timestep"):
        build_scene(SceneCfg(entities=entities))


def test_the_dofs_of_dynamics_are_those_of_the_entitys_bodies() -> None:
    sim = Simulation(mixed(), num_envs=1)
    owner = np.asarray(sim.model.dof_bodyid)
    for entity in sim.scene.values():
        expected = np.flatnonzero(np.isin(owner, entity.index.bodies.ids))
        matrix = entity.dynamics.mass_matrix
        dense = np.zeros((sim.model.nv, sim.model.nv))
        data = mujoco.MjData(sim.model)
        data.qpos[:] = sim.data.qpos[0].numpy()
        mujoco.mj_forward(sim.model, data)
        mujoco.mj_fullM(sim.model, data, dense)
        np.testing.assert_allclose(
            matrix[0].numpy(), dense[np.ix_(expected, expected)], atol=1e-12
        )
