"""AdaptedSimulator: the base class of adapters to other simulators.

An adapter converts between its simulator and MuJoCo's qpos and qvel, and reports the
poses of bodies by the simulator's own kinematics. A `Simulation` of the same scene, the
reference, never steps: each state is written to it first, so that names, partial
states, checks and messages are those of `Simulation`, and then passed to the simulator.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import check_finite, whole_number
from simstate.base.errors import DivergenceError, InvalidInputError
from simstate.base.ids import Ids, int_list
from simstate.entity import Entity
from simstate.math.vector import greatest
from simstate.scene import SceneCfg
from simstate.simulation import Simulation
from simstate.simulators.capabilities import Capabilities, Feature, Missing
from simstate.simulators.plain_model import ALL_TERMS, Terms
from simstate.state import EntityTensors, StateSource, TensorState
from simstate.state.apply import States
from simstate.world.worlds import worlds_of

Array: TypeAlias = np.ndarray[Any, Any]
"""Array of float64, unless stated otherwise."""


@dataclass
class BodyStates:
    """States of n worlds in MuJoCo's order of joints and bodies; float64 arrays."""

    qpos: Array
    """MuJoCo's generalised positions; shape (n, nq)."""
    qvel: Array
    """MuJoCo's generalised velocities; shape (n, nv)."""
    body_pos: Array
    """Origins of the bodies by the simulator's own kinematics [m]; (n, nbody, 3)."""
    body_quat: Array
    """Their orientations, wxyz; (n, nbody, 4)."""
    body_vel: Array
    """Velocities of their origins, world axes [m/s]; (n, nbody, 3)."""
    body_ang_vel: Array
    """Their angular velocities, world axes [rad/s]; (n, nbody, 3)."""

    @classmethod
    def blank(cls, model: mujoco.MjModel, count: int) -> BodyStates:
        """Return states of `count` worlds, all zero with identity orientations."""
        bodies = (count, int(model.nbody))
        quat = np.zeros((*bodies, 4))
        quat[..., 0] = 1.0
        return cls(
            qpos=np.zeros((count, model.nq)),
            qvel=np.zeros((count, model.nv)),
            body_pos=np.zeros((*bodies, 3)),
            body_quat=quat,
            body_vel=np.zeros((*bodies, 3)),
            body_ang_vel=np.zeros((*bodies, 3)),
        )


@dataclass(frozen=True)
class AdaptedEntity:
    """Names of an entity in another simulator; see `EntityNames`."""

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    ball_joint_names: tuple[str, ...]
    is_robot: bool


class AdaptedSimulator(StateSource, ABC):
    """Another simulator behind unified states; a `Simulator`.

    Args:
        scene: what to simulate, as for `Simulation`.
        num_envs: the number of worlds.
        terms: effects in addition to the smooth dynamics; comparisons switch some
            of them off.
    """

    name: ClassVar[str]
    """Name in `simstate.simulators.make`."""
    capabilities: ClassVar[Capabilities]
    """Precision, batching and unsupported features."""
    dtype: torch.dtype = torch.float64

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel,
        num_envs: int = 1,
        terms: Terms = ALL_TERMS,
    ) -> None:
        self.terms = terms
        self.reference = Simulation(scene, num_envs, engine="native")
        """The same scene in MuJoCo, which provides names, checks, controls and time."""
        self.num_envs = num_envs
        self.scene: Mapping[str, AdaptedEntity] = {
            name: AdaptedEntity(
                e.body_names, e.joint_names, e.ball_joint_names, e.is_robot
            )
            for name, e in self.reference.scene.items()
        }
        data = self.reference.data
        self._mocap = (data.mocap_pos.clone(), data.mocap_quat.clone())
        self.build()
        self.reset()

    @abstractmethod
    def build(self) -> None:
        """Create the worlds from `self.model`."""

    @abstractmethod
    def read(self, ids: list[int]) -> BodyStates:
        """Return the states of some worlds."""

    @abstractmethod
    def write(self, qpos: Array, qvel: Array, ids: list[int]) -> None:
        """Set the states of some worlds; shapes (n, nq) and (n, nv)."""

    def check(self, qpos: Array) -> None:
        """Raise InvalidInputError for positions that it cannot represent; (n, nq)."""

    @abstractmethod
    def advance(self, n: int, ctrl: Array, ids: list[int]) -> dict[int, str]:
        """Advance some worlds by n steps under MuJoCo's controls; (num_envs, nu).

        Returns the worlds that the simulator could not advance, each with its message.
        """

    @property
    def model(self) -> mujoco.MjModel:
        """The scene as compiled by MuJoCo."""
        return self.reference.model

    @property
    def timestep(self) -> float:
        """The physics time step [s]."""
        return float(self.model.opt.timestep)

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (num_envs,)."""
        return self.reference.time

    @property
    def missing(self) -> dict[Feature, Missing]:
        """Features of this scene that the simulator does not support."""
        return self.capabilities.missing(self.model)

    @property
    def ctrl(self) -> Tensor:
        """MuJoCo's controls, which act in the steps; live, (num_envs, nu).

        `set_states` writes targets here. Efforts of motors are not part of a state, and
        can be written directly.
        """
        return self.reference.data.ctrl

    def _state_tensors(self, env_ids: Ids, cameras: bool) -> TensorState:
        """Poses of bodies are those of the simulator's own kinematics; no cameras."""
        motion = self.read(self._ids(env_ids))
        kept = self.reference.get_states(env_ids, mode="tensor", cameras=False)

        def follow(name: str, part: EntityTensors) -> EntityTensors:
            entity = self.reference.scene[name]
            return dataclasses.replace(part, **self._tensors(entity, motion))

        return kept.converted(follow)

    def set_states(self, states: States, env_ids: Ids = None) -> None:
        """Write complete or partial unified states, as in `Simulation`.

        A state that the simulator cannot represent raises, and nothing is written.
        """
        ids = self._ids(env_ids)
        self._follow(ids)
        kept = self.reference.snapshot()
        self.reference.set_states(states, env_ids)
        try:
            self._check_mocap()
            self._check_bases()
            self.check(self.reference.data.qpos[ids].numpy())
        except InvalidInputError:
            self.reference.restore(kept)
            raise
        self._hand_over(ids)

    def reset(self, env_ids: Ids = None) -> None:
        """Reset worlds to the scene's initial state."""
        self.reference.reset(env_ids)
        self._hand_over(self._ids(env_ids))

    def step(self, n: int = 1, env_ids: Ids = None) -> None:
        """Advance worlds by n time steps under their present targets.

        A world that diverges is rolled back, and DivergenceError names it. An
        interrupted call rolls all worlds back.
        """
        n = whole_number("n", n, 1)
        ids = self._ids(env_ids)
        check_finite(self.ctrl, "ctrl", after=" Nothing was done.")
        before, act = self.read(ids), self.reference.data.act[ids].clone()
        try:
            failed = self.advance(n, self.ctrl.numpy(), ids)
            after = self.read(ids)
        except BaseException:
            self._roll_back(before, act, ids, list(range(len(ids))))
            raise
        advanced = _is_bounded(after.qpos) & _is_bounded(after.qvel)
        advanced &= np.array([i not in failed for i in ids], dtype=bool)
        self.time[[ids[row] for row in np.flatnonzero(advanced)]] += n * self.timestep
        if not advanced.all():
            rows = np.flatnonzero(~advanced).tolist()
            self._roll_back(before, act, ids, rows)
            diverged = [ids[row] for row in rows]
            cause = next(iter(failed.values()), "values became NaN, infinite or huge")
            raise DivergenceError(
                f"Worlds {diverged} could not be advanced in {self.name} ({cause}). "
                "They were rolled back; the others have advanced.",
                diverged,
            )

    def _ids(self, env_ids: Ids) -> list[int]:
        rows = worlds_of(self.reference).select(env_ids)
        return int_list(rows.tensor(torch.device("cpu")))

    def _roll_back(
        self, before: BodyStates, act: Tensor, ids: list[int], rows: list[int]
    ) -> None:
        """Restore some of the worlds `ids` to their state before a step."""
        worlds = [ids[row] for row in rows]
        self.reference.data.act[worlds] = act[rows]
        self.write(before.qpos[rows], before.qvel[rows], worlds)

    def _follow(self, ids: list[int]) -> None:
        """Update the reference from the simulator."""
        motion = self.read(ids)
        self.reference.data.qpos[ids] = torch.as_tensor(motion.qpos)
        self.reference.data.qvel[ids] = torch.as_tensor(motion.qvel)

    def _hand_over(self, ids: list[int]) -> None:
        """Update the simulator from the reference."""
        qpos = self.reference.data.qpos[ids].numpy()
        qvel = self.reference.data.qvel[ids].numpy()
        self.write(qpos, qvel, ids)

    def _check_mocap(self) -> None:
        """Raise if a mocap body has moved that the simulator has fixed."""
        if "mocap bodies" not in self.capabilities.lacks or not self.model.nmocap:
            return
        data, (pos, quat) = self.reference.data, self._mocap
        moved = greatest(data.mocap_pos - pos), greatest(data.mocap_quat - quat)
        if max(moved) > 1e-6:
            raise InvalidInputError(
                f"{self.name} cannot move a mocap body: "
                f"{self.capabilities.lacks['mocap bodies']}. Nothing was written.",
                name="mocap",
            )

    def _check_bases(self) -> None:
        """Raise if a fixed base is not where the scene has it."""
        engine = worlds_of(self.reference).engine
        for name in {"body_pos", "body_quat"} & engine.expanded.keys():
            moved = engine.expanded[name] - engine.model_parameter(name)
            if greatest(moved) > 1e-6:
                raise InvalidInputError(
                    f"{self.name} cannot move a fixed base: set its pose by "
                    "EntityCfg.init_state of the scene. Nothing was written.",
                    name="init_state",
                )

    def _tensors(self, entity: Entity, motion: BodyStates) -> dict[str, Tensor]:
        """The tensors of an entity's state, in the simulator's dtype."""
        index = entity.index
        bodies = list(index.bodies.ids)
        arrays = {
            "dof_pos": motion.qpos[:, list(index.qpos_adr)],
            "dof_vel": motion.qvel[:, list(index.dof_adr)],
            "ball_quat": _blocks(motion.qpos, index.ball_qpos_adr, 4),
            "ball_ang_vel": _blocks(motion.qvel, index.ball_dof_adr, 3),
            "body_pos": motion.body_pos[:, bodies],
            "body_rot": motion.body_quat[:, bodies],
            "body_vel": motion.body_vel[:, bodies],
            "body_ang_vel": motion.body_ang_vel[:, bodies],
        }
        for root in ("pos", "rot", "vel", "ang_vel"):
            arrays[root] = arrays[f"body_{root}"][:, 0]
        return {
            name: torch.as_tensor(np.ascontiguousarray(array)).to(self.dtype)
            for name, array in arrays.items()
        }


_HUGE = 1e10
"""MuJoCo's limit for a diverged world [m, rad and their rates]."""


def _is_bounded(values: Array) -> Array:
    """Return the mask of rows that are finite and not huge; shape (n,)."""
    return np.all(np.abs(np.nan_to_num(values, nan=np.inf)) < _HUGE, axis=1)


def _blocks(values: Array, addresses: Sequence[int], size: int) -> Array:
    """Blocks of `size` columns, one for each address; shape (n, blocks, size)."""
    columns = [[adr + k for k in range(size)] for adr in addresses]
    if not columns:
        return np.zeros((len(values), 0, size))
    return values[:, np.array(columns)]
