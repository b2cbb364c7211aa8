"""Meaning of each value of a model's state and inputs: `simstate.explain(model)`."""

from __future__ import annotations

from typing import cast

import mujoco

from simstate.entity import SceneEntities
from simstate.entity.explanation.actuator_meanings import explain_actuator
from simstate.entity.explanation.element import (
    FIELDS,
    ElementInfo,
    ElementNames,
    Explanation,
)
from simstate.entity.explanation.joint_meanings import explain_body, explain_joint
from simstate.entity.host import Host
from simstate.scene import EntityIndex, SceneCfg, build_scene
from simstate.scene.build import WHOLE_MODEL
from simstate.scene.index import index_entities
from simstate.scene.load import compile_spec, load_spec
from simstate.scene.scene_cfg import ModelSource

__all__ = ["FIELDS", "ElementInfo", "Explanation", "explain"]


def explain(model: Host | SceneCfg | mujoco.MjModel | ModelSource) -> Explanation:
    """Each element of qpos, qvel, act, ctrl and xfrc_applied: what it is, and whose.

    `explain("humanoid")["qvel[4]"]` is one of them, with point, axes, unit and the
    usual mistake; `model` is whatever simstate simulates or loads.
    """
    names = ElementNames(*_compiled(model))
    compiled = names.model
    joints = [e for j in range(compiled.njnt) for e in explain_joint(names, j)]
    actuators = [
        e for a in range(compiled.nactuator) for e in explain_actuator(names, a)
    ]
    bodies = [e for b in range(compiled.nbody) for e in explain_body(names, b)]
    ordered = sorted(
        (*joints, *actuators, *bodies), key=lambda e: (FIELDS.index(e.field), e.index)
    )
    return Explanation(ordered)


def _compiled(
    model: Host | SceneCfg | mujoco.MjModel | ModelSource,
) -> tuple[mujoco.MjModel, dict[str, EntityIndex]]:
    """Return the compiled model and the entities in it."""
    scene = getattr(model, "scene", None)
    if isinstance(scene, SceneEntities):  # a simulation's
        return cast("Host", model).model, {n: x.index for n, x in scene.items()}
    if isinstance(model, SceneCfg):
        built = build_scene(model)
        return built.model, built.entities
    if not isinstance(model, mujoco.MjModel):
        model = compile_spec(load_spec(cast("ModelSource", model)), "The model")
    return model, index_entities(model, {WHOLE_MODEL: ""})
