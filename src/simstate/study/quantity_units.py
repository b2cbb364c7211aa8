"""Units of the components of outputs whose contract allows several."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco

from simstate.engine.fields import FIELDS
from simstate.entity.explanation import explain
from simstate.record.columns import component_units
from simstate.simulation import Simulation
from simstate.step.history import Recorded


def units_of(sim: Simulation, outputs: Recorded) -> dict[str, list[str]]:
    """Return the units of the components of each output that has several, by name.

    The contract of a quantity or field may be "rad/s or m/s", depending on the joint.
    """
    found = {
        name: _units(sim, outputs[name] if isinstance(outputs, Mapping) else name)
        for name in outputs
    }
    return {name: units for name, units in found.items() if units}


def _units(sim: Simulation, given: object) -> list[str]:
    """Return the units of a quantity or field; none if it has one, or for functions."""
    if not isinstance(given, str):
        return []
    entity, _, quantity = given.partition(".")
    if quantity:
        contract = sim.scene[entity].data.quantities[quantity]
        return component_units(
            sim.model, sim.scene[entity], contract.unit, contract.shape
        )
    if given == "qpos":
        return [element.unit for element in explain(sim).select(given)]
    field = FIELDS.get(given)
    if field is None or field.shape != ("nv",) or " or " not in field.unit:
        return []
    sliding, turning = field.unit.split(" or ")
    return [turning if turns else sliding for turns in _turning(sim.model)]


def _turning(model: mujoco.MjModel) -> list[bool]:
    """Return True for each rotational degree of freedom."""
    first = model.jnt_dofadr
    types = model.jnt_type[model.dof_jntid]
    slide, free = mujoco.mjtJoint.mjJNT_SLIDE.value, mujoco.mjtJoint.mjJNT_FREE.value
    return [
        bool(kind != slide and (kind != free or dof - first[joint] >= 3))
        for dof, (kind, joint) in enumerate(zip(types, model.dof_jntid, strict=True))
    ]
