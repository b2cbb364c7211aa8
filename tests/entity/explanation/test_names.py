"""Names of elements next to those in the compiled model."""

import mujoco
import pytest

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.entity.explanation.element import ElementNames

PLAIN = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/><geom type="box" size="1 1 1"/>
  <body name="a"><joint name="j"/><joint type="slide"/><geom name="g" size="0.1"/>
    <geom size="0.2"/><site name="s"/><camera name="c"/><light name="l"/></body>
</worldbody>
<actuator><motor name="m" joint="j"/><motor joint="j"/></actuator></mujoco>"""
COUNTS = {"body": "nbody", "geom": "ngeom", "joint": "njnt", "site": "nsite",
          "actuator": "nactuator", "camera": "ncam", "light": "nlight"}  # fmt: skip


def every_element(model):
    kinds = mujoco.mjtObj
    objects = {kind: getattr(kinds, f"mjOBJ_{kind.upper()}") for kind in COUNTS}
    for kind, count in COUNTS.items():
        for i in range(getattr(model, count, getattr(model, "nu", 0))):
            yield kind, i, mujoco.mj_id2name(model, objects[kind], i)


def test_elements_of_a_scene_belong_to_the_entity_of_their_prefix():
    scene = SceneCfg(
        entities={"dog": EntityCfg(model="quadruped"), "box": EntityCfg(model="cube")}
    )
    sim = Simulation(scene)
    names = ElementNames(sim.model, {n: sim.scene[n].index for n in ("dog", "box")})
    seen = set()
    for kind, i, raw in every_element(sim.model):
        if raw is None:
            continue
        entity, slash, own = raw.partition("/")
        wished = (entity, repr(own)) if slash else ("", repr(raw))
        assert names.of(kind, i) == wished
        seen.add(wished[0])
    assert seen == {"", "dog", "box"}
    assert names.of("body", 0) == ("", "'world'")


def test_elements_of_a_plain_model_belong_to_its_one_entity():
    sim = Simulation(mujoco.MjModel.from_xml_string(PLAIN))
    ((entity, index),) = (
        (name, one.index) for name, one in ((n, sim.scene[n]) for n in sim.scene)
    )
    names = ElementNames(sim.model, {entity: index})
    assert index.prefix == ""
    for kind, i, raw in every_element(sim.model):
        owner, name = names.of(kind, i)
        assert owner == ("" if (kind, i) == ("body", 0) else entity), (kind, i)
        if raw is not None:
            assert name == repr(raw)
        elif kind in ("geom", "actuator"):
            assert name == repr(f"{kind}_{i}")


@pytest.mark.parametrize("kind", sorted(COUNTS))
def test_every_kind_of_element_is_there(kind):
    model = mujoco.MjModel.from_xml_string(PLAIN)
    assert any(found == kind for found, _, _ in every_element(model))
