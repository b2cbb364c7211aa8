"""Names that `sim.data` does not have, and the expressions to use instead."""

from __future__ import annotations

from collections.abc import Iterable

from simstate.base.errors import UnknownNameError, unknown_name

_ON_DEMAND = {
    "cacc": "read body_link_lin_acc_w, body_com_lin_acc_w and their angular parts",
    "cfrc_int": "read sim.dynamics.incoming_wrench_w",
    "cfrc_ext": "read sim.contacts or sim.last_evaluated.cfrc_ext",
    "subtree_linvel": "read sim.dynamics.com_vel_w, or entity.dynamics.com_vel_w",
    "subtree_angmom": "read sim.dynamics.angular_momentum_w, or an entity's",
    "energy": "read sim.dynamics.potential_energy and kinetic_energy",
    "qfrc_inverse": "call sim.dynamics.inverse_dynamics(qacc)",
}

_CONSTRAINTS = (
    "sim.dynamics.constraint_force in joint space, sim.contact_table() by contact"
)

_BY_WORLD = {
    "contact": "sim.contact_table(), or sim.contacts for sensors that are declared",
    "contacts": "sim.contact_table(), or sim.contacts for sensors that are declared",
    "ncon": "len(sim.contact_table(env_ids)), or sim.contacts[name].count",
    "efc_force": "sim.dynamics.constraint_force in joint space, sim.contacts by body",
    "efc_J": "entity.jacobian(name) of what is constrained",
    "nefc": "sim.dynamics.constraint_force",
}
"""Fields whose shapes differ by world, and their equivalents here."""

_ELSEWHERE = {
    "qM": "sim.dynamics.mass_matrix in full, or the CSR field sim.data.M",
    "qLD": "sim.dynamics.solve_mass_matrix(forces)",
    "crb": "sim.dynamics.mass_matrix",
    "mass_matrix": "sim.dynamics.mass_matrix",
    "jacobian": "entity.jacobian(name)",
    "jac": "entity.jacobian(name)",
    "jacp": "entity.jacobian(name)[:, :3]",
    "jacr": "entity.jacobian(name)[:, 3:]",
    "qfrc_gravity": "sim.dynamics.gravity_force",
    "body": "sim.data.xpos[:, sim.model.body(name).id], or body_… of entity.data",
    "joint": "sim.data.qpos[:, sim.model.joint(name).qposadr], or joint_… of "
    "entity.data",
    "geom": "sim.data.geom_xpos[:, sim.model.geom(name).id], or geom_… of entity.data",
    "site": "sim.data.site_xpos[:, sim.model.site(name).id], or site_… of entity.data",
    "camera": "sim.data.cam_xpos[:, sim.model.camera(name).id], or sim.cameras",
    "tendon": "sim.data.ten_length[:, sim.model.tendon(name).id], or tendon_… of "
    "entity.data",
    "actuator": "entity.write_ctrl_to_sim(values, entity.find_controls(name)[0]), or "
    "actuator_force of entity.data",
    "sensor": "entity.sensor(name)",
}
"""Names in MuJoCo or elsewhere, and their equivalents here."""


def unavailable_field(name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a field that is not in the table, with an alternative."""
    if name in _ON_DEMAND:
        return UnknownNameError(
            f"sim.data.{name} is not available: MuJoCo computes it only on demand, so "
            "in a batch it would be stale or another world's. Instead, "
            f"{_ON_DEMAND[name]}.",
            name=name,
            known=known,
        )
    by_world = _BY_WORLD.get(name, _CONSTRAINTS if name.startswith("efc_") else None)
    if by_world is not None:
        return UnknownNameError(
            f"sim.data.{name} does not have the same shape in all worlds: use "
            f"{by_world}.",
            name=name,
            known=known,
        )
    if name in _ELSEWHERE:
        return UnknownNameError(
            f"sim.data has no {name!r}: use {_ELSEWHERE[name]}.",
            name=name,
            known=known,
        )
    return unknown_name("field of sim.data", name, known)
