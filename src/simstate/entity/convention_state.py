"""The root state of an entity, read and written in any convention."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from simstate.base.errors import ConventionError, InvalidInputError
from simstate.base.ids import Ids, Values
from simstate.engine import OneTorchThread
from simstate.entity.data import EntityData
from simstate.entity.state_writes import StateWrites
from simstate.math.conventions import MUJOCO, Convention, RigidBodyState, axes
from simstate.math.conventions.checked_values import numbers
from simstate.math.conventions.convert import check_convention, convert
from simstate.math.conventions.presets import MUJOCO_QVEL

_Parts = tuple[Tensor, Tensor, Tensor, Tensor]


class ConventionState(StateWrites):
    """The part of Entity that speaks other conventions than MuJoCo's."""

    data: EntityData

    def state_in(
        self, convention: Convention, model: Convention | None = None
    ) -> RigidBodyState:
        """The root link's state in a convention, a copy; batch shape (num_envs,).

        `model` says in which world and body axes the model itself was built; None:
        MuJoCo's usual ones, z-up and forward-left-up.
        """
        with OneTorchThread():
            com = self._com().expand(self._worlds.num_envs, 3)
            is_free = self.index.base == "free"
            form = _axes_of(model or MUJOCO, MUJOCO_QVEL if is_free else MUJOCO)
            parts = self._free_parts() if is_free else self._parts()
            return convert(RigidBodyState.trusted(form, parts, com), convention)

    def write_state_in(
        self,
        convention: Convention,
        state: RigidBodyState | Values,
        env_ids: Ids = None,
        model: Convention | None = None,
    ) -> None:
        """Write the root link's state from a convention; batch shape (n,).

        `state` carries that same convention, or is a flat vector in its order, shape
        (n, convention.size). The centre of mass is the entity's own; `model` as in
        `state_in`.
        """
        check_convention(convention)
        rows = self._worlds.select(env_ids)
        com = self._com()
        com = com[rows.index] if com.shape[0] > 1 else com
        if not isinstance(state, RigidBodyState):
            state = RigidBodyState.from_vector(convention, state)
        elif state.convention != convention:
            name = state.convention.name
            raise ConventionError(
                f"The state is written in {name}, and {convention.name} is to be "
                f"written: pass convert(state, {convention.name}), or "
                f"write_state_in({name}, state).",
                name=name,
            )
        with OneTorchThread():
            state = _with_com(state, com, model or MUJOCO)
            own = convert(state, _axes_of(model or MUJOCO, MUJOCO))
            like = self._worlds.engine.field("qpos")
            self.write_root_state_to_sim(own.vector.to(like), rows.index)

    def _free_parts(self) -> _Parts:
        """qpos and qvel of the root's free joint: no kinematics need to be computed."""
        k = self.index.free_body_ids.index(self.index.root_body_id)
        q, v = self.index.free_qpos_adr[k], self.index.free_dof_adr[k]
        # Copies: what passes through a conversion as it is must not follow the worlds.
        qpos = self._worlds.read_field("qpos")[:, q : q + 7].clone()
        qvel = self._worlds.read_field("qvel")[:, v : v + 6].clone()
        return qpos[:, :3], qpos[:, 3:], qvel[:, :3], qvel[:, 3:]

    def _parts(self) -> _Parts:
        """Pose and velocity of a root that has no free joint."""
        pose = self.data.root_link_pose_w.clone()
        vel = self.data.root_link_vel_w.clone()
        return pose[:, :3], pose[:, 3:], vel[:, :3], vel[:, 3:]

    def _com(self) -> Tensor:
        """The root link's COM from its origin, body axes [m]; shape (n or 1, 3)."""
        return self._worlds.engine.parameter("body_ipos")[:, self.index.root_body_id]


def _axes_of(model: Convention, form: Convention) -> Convention:
    """Return the simulation's convention, in the model's axes."""
    return replace(form, name="the model", world=model.world, body=model.body)


def _with_com(state: RigidBodyState, com: Tensor, model: Convention) -> RigidBodyState:
    """The state with the entity's own centre of mass, which it must not contradict."""
    body = state.convention.body
    own = axes.components(com, body, model.body, "body").to(state.position)
    if state.com is not None and not bool(((state.com - own).abs() < 1e-6).all()):
        raise InvalidInputError(
            f"The state's centre of mass is at {numbers(state.com.reshape(-1, 3)[0])} "
            f"from the origin, the entity's at {numbers(own[0])} (body axes of "
            f"{state.convention.name}) [m]. Leave com out to use the entity's.",
            name="com",
        )
    return state.with_com(own)
