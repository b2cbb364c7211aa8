"""The root state of an entity, read and written in any convention."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from simstate.conventions import axes
from simstate.conventions.convention import Convention
from simstate.conventions.convert import check_convention, convert
from simstate.conventions.presets import MUJOCO, MUJOCO_QVEL
from simstate.conventions.state import RigidBodyState
from simstate.conventions.values import numbers
from simstate.entity import Entity
from simstate.errors import ConventionError, InvalidInputError
from simstate.ids import Ids, Values


def read_state(
    entity: Entity, convention: Convention, model: Convention
) -> RigidBodyState:
    """The root link's state in a convention; see `Entity.state_in`."""
    com = _com(entity).expand(entity.sim.num_envs, 3)
    if entity.index.base == "free":
        state = RigidBodyState.trusted(_axes_of(model, MUJOCO_QVEL), _free(entity), com)
        return convert(state, convention)
    data = entity.data
    pose, vel = data.root_link_pose_w.clone(), data.root_link_vel_w.clone()
    parts = (pose[:, :3], pose[:, 3:], vel[:, :3], vel[:, 3:])
    return convert(RigidBodyState.trusted(_axes_of(model), parts, com), convention)


def _free(entity: Entity) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """qpos and qvel of the root's free joint: no kinematics need to be computed."""
    k = entity.index.free_body_ids.index(entity.index.root_body_id)
    q, v = entity.index.free_qpos_adr[k], entity.index.free_dof_adr[k]
    # Copies: what passes through a conversion as it is must not follow the worlds.
    qpos = entity.sim.data.qpos[:, q : q + 7].clone()
    qvel = entity.sim.data.qvel[:, v : v + 6].clone()
    return qpos[:, :3], qpos[:, 3:], qvel[:, :3], qvel[:, 3:]


def write_state(
    entity: Entity,
    convention: Convention,
    state: RigidBodyState | Values,
    env_ids: Ids,
    model: Convention,
) -> None:
    """Write the root link's state from a convention; see `Entity.write_state_in`."""
    check_convention(convention)
    rows = entity.sim.select_envs(env_ids)
    com = _com(entity)
    com = com[rows.index] if com.shape[0] > 1 else com
    if not isinstance(state, RigidBodyState):
        state = RigidBodyState.from_vector(convention, state)
    elif state.convention != convention:
        name = state.convention.name
        raise ConventionError(
            f"The state is written in {name}, and {convention.name} is to be written: "
            f"pass convert(state, {convention.name}), or "
            f"write_state_in({name}, state)."
        )
    state = _with_com(state, com, model)
    own = convert(state, _axes_of(model))
    root_state = own.vector.to(entity.sim.engine.field("qpos"))
    entity.write_root_state_to_sim(root_state, rows.index)


def _axes_of(model: Convention, form: Convention = MUJOCO) -> Convention:
    """How the simulation's own numbers are written, in the model's axes."""
    return replace(form, name="the model", world=model.world, body=model.body)


def _com(entity: Entity) -> Tensor:
    """The root link's centre of mass from its origin, body axes [m]; (n or 1, 3)."""
    ipos = entity.data.parameter("body_ipos")
    return ipos[:, entity.index.root_body_id]


def _with_com(state: RigidBodyState, com: Tensor, model: Convention) -> RigidBodyState:
    """The state with the entity's own centre of mass, which it must not contradict."""
    body = state.convention.body
    own = axes.components(com, body, model.body, "body").to(state.position)
    if state.com is not None and not bool(((state.com - own).abs() < 1e-6).all()):
        raise InvalidInputError(
            f"The state's centre of mass is at {numbers(state.com.reshape(-1, 3)[0])} "
            f"from the origin, the entity's at {numbers(own[0])} (body axes of "
            f"{state.convention.name}) [m]. Leave com out to use the entity's."
        )
    return state.with_com(own)
