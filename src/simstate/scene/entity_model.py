"""EntityModel: the model of an entity, prepared for attachment to a scene."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from simstate.base.checks import instance_of, number
from simstate.base.errors import ModelError
from simstate.scene import models
from simstate.scene.actuators import ActuatorCfg, delay_samples
from simstate.scene.collisions import CollisionCfg
from simstate.scene.element_names import matching, name_elements
from simstate.scene.load import compile_spec, explained, load_spec
from simstate.scene.model_rows import Names, element_names
from simstate.scene.scene_cfg import EntityCfg, ModelSource


@dataclass(frozen=True, eq=False)
class EntityModel:
    """An entity's model, prepared for attachment and as loaded."""

    spec: mujoco.MjSpec
    """The specification, with all elements named and actuators added."""
    own: mujoco.MjModel
    """The model as given, compiled by itself."""
    names: Names
    """The names of its elements in the specification."""
    configured: mujoco.MjModel
    """The model compiled by itself with the changes that the configuration requests;
    `own` if it requests none."""


def users_of(parts: Mapping[str, EntityModel]) -> Iterable[list[str]]:
    """Return the names of the entities that share each model."""
    users: dict[int, list[str]] = {}
    for name, part in parts.items():
        users.setdefault(id(part), []).append(name)
    return users.values()


def prepare_entity(name: str, cfg: EntityCfg) -> EntityModel:
    """Load an entity's model and prepare it for attachment."""
    spec = load_spec(cfg.model, cfg.packages)
    what = f"The model of entity {name!r}{_file_name(cfg.model)}"
    own = compile_spec(spec, what)
    with explained(what):
        names = name_elements(spec)
    _keep_total_mass(spec, own)
    if cfg.com_varies:
        for body in spec.bodies[1:]:
            body.simple = 0
    if not cfg.keep_model_actuators:
        # Before the deletion: MuJoCo 4 keeps the keyframes that exist then, and fills
        # their controls with zeros when it compiles again.
        for key in spec.keys:
            key.ctrl, key.act = [], []
        for actuator in list(spec.actuators):
            spec.delete(actuator)
    _make_room_for_delays(name, spec, cfg)
    _add_actuators(name, spec, own, cfg)
    _set_collisions(name, spec, cfg)
    configured = own
    if changes_model(cfg):
        # Attaching needs the number of controls, which compiling determines.
        configured = compile_spec(spec, what)
    names["nplugin"] = element_names(own)["nplugin"]
    return EntityModel(spec, own, names, configured)


def changes_model(cfg: EntityCfg) -> bool:
    """Return True if a configuration changes the model that it is given."""
    return bool(
        cfg.actuators
        or not cfg.keep_model_actuators
        or cfg.com_varies
        or cfg.max_delay_s
        or cfg.collisions
    )


def _make_room_for_delays(name: str, spec: mujoco.MjSpec, cfg: EntityCfg) -> None:
    """Extend the control history of the model's actuators to the longest delay."""
    if cfg.max_delay_s is None:
        return
    longest = number(f"max_delay_s of {name!r}", cfg.max_delay_s, at_least=0, unit="s")
    for actuator in spec.actuators:
        if actuator.delay > longest:
            raise ModelError(
                f"max_delay_s of {name!r} is {longest:g} s, which is less than the "
                f"delay {actuator.delay:g} s of the model's actuator "
                f"{actuator.name!r}.",
                name="max_delay_s",
            )
        actuator.nsample = max(actuator.nsample, delay_samples(spec, longest))


def _set_collisions(name: str, spec: mujoco.MjSpec, cfg: EntityCfg) -> None:
    """Write the contact parameters of the configuration."""
    instance_of(f"collisions of {name!r}", cfg.collisions, tuple | list)
    geoms = {geom.name: geom for geom in spec.geoms}
    for collision in cfg.collisions:
        instance_of(f"collisions of {name!r}", collision, CollisionCfg)
        for geom in matching(collision.geoms, list(geoms), f"geom of {name!r}"):
            collision.write_to(geoms[geom])


def _file_name(source: ModelSource) -> str:
    """Return the file of a model in parentheses; "" if it is not from a file."""
    is_xml = isinstance(source, str) and source.lstrip().startswith("<")
    if is_xml or not isinstance(source, str | Path) or source in models.NAMES:
        return ""
    return f" ({source})"


def _keep_total_mass(spec: mujoco.MjSpec, own: Any) -> None:
    """Write the masses that `settotalmass` scaled into the bodies.

    MuJoCo would otherwise scale all bodies of the scene.
    """
    if spec.compiler.settotalmass <= 0:
        return
    for body in spec.bodies:
        if body.id:
            body.mass = own.body_mass[body.id]
            body.inertia = own.body_inertia[body.id]
            body.ipos, body.iquat = own.body_ipos[body.id], own.body_iquat[body.id]
            body.explicitinertial = True
    spec.compiler.settotalmass = -1
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE


def _add_actuators(
    name: str, spec: mujoco.MjSpec, own: mujoco.MjModel, cfg: EntityCfg
) -> None:
    """Add the actuators of the configuration, and their controls to the keyframes."""
    single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    joints = {joint.name: joint for joint in spec.joints if joint.type in single}
    addresses = {joint.name: int(own.jnt_qposadr[joint.id]) for joint in spec.joints}
    driven = {actuator.target for actuator in spec.actuators}
    names = {actuator.name for actuator in spec.actuators}
    instance_of(f"actuators of {name!r}", cfg.actuators, tuple | list)
    for actuator_cfg in cfg.actuators:
        instance_of(f"actuators of {name!r}", actuator_cfg, ActuatorCfg)
        for joint_name in matching(actuator_cfg.joints, list(joints), "joint"):
            if joint_name in driven or joint_name in names:
                raise ModelError(
                    f"Joint {joint_name!r} of entity {name!r} already has an actuator. "
                    "Omit it from `actuators`, or set keep_model_actuators=False "
                    "to drop the model's own.",
                    name=joint_name,
                )
            driven.add(joint_name)
            actuator_cfg.add_to(spec, joints[joint_name])
            _extend_keyframes(spec, own, addresses[joint_name], actuator_cfg)


def _extend_keyframes(
    spec: mujoco.MjSpec, own: mujoco.MjModel, qpos_adr: int, cfg: ActuatorCfg
) -> None:
    """Extend keyframes that state controls so that the new actuator holds the pose."""
    for key in spec.keys:
        if len(key.ctrl):
            held = float(own.key_qpos[key.id, qpos_adr])
            key.ctrl = [*key.ctrl, *cfg.holding_controls(held)]
