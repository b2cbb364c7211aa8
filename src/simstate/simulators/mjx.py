"""MJX: MuJoCo's equations in JAX, all worlds in one compiled function.

Importing this module loads JAX; `simstate.simulators.make("mjx", …)` does so.
"""

# JAX and MJX come without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import jax
import mujoco
import numpy as np
import torch
from jax import numpy as jnp
from mujoco import mjx

from simstate.base.errors import ModelError
from simstate.simulators.adapted_simulator import AdaptedSimulator, Array, BodyStates
from simstate.simulators.catalog import info
from simstate.simulators.plain_model import ALL_TERMS, Terms, plain_model, switch_off


class MjxSimulator(AdaptedSimulator):
    """Worlds in MJX, in float64 (which sets JAX's `jax_enable_x64` for the process).

    Functions compile when they are first used, which takes up to minutes.
    """

    name = "mjx"
    capabilities = info("mjx").capabilities

    def build(self) -> None:
        """Create the worlds."""
        jax.config.update("jax_enable_x64", True)
        self.mjx_model = put_model(self.model, self.terms)
        blank = mjx.make_data(self.mjx_model)
        self._data: Any = jax.vmap(lambda qpos: blank.replace(qpos=qpos))(
            jnp.tile(blank.qpos, (self.num_envs, 1))
        )

    def read(self, ids: list[int]) -> BodyStates:
        """Return the states of some worlds."""
        data = _all_kinematics(self.mjx_model, self._data)
        rows = np.array(ids, dtype=np.int64)
        return motion_of(self.model, data, rows)

    def write(self, qpos: Array, qvel: Array, ids: list[int]) -> None:
        """Set the states of some worlds."""
        rows, data = jnp.array(ids, dtype=jnp.int32), self._data
        if not ids:
            return
        reference = self.reference.data
        changes = {"qpos": qpos, "qvel": qvel, "qacc_warmstart": np.zeros_like(qvel)}
        for field in ("act", "mocap_pos", "mocap_quat"):
            changes[field] = getattr(reference, field)[ids].numpy()
        self._data = data.replace(
            **{k: getattr(data, k).at[rows].set(v) for k, v in changes.items()}
        )

    def advance(self, n: int, ctrl: Array, ids: list[int]) -> dict[int, str]:
        """Advance some worlds."""
        moving = np.zeros(self.num_envs, dtype=bool)
        moving[ids] = True
        data = self._data.replace(ctrl=jnp.array(ctrl))
        self._data = _all_steps(self.mjx_model, data, jnp.array(moving), n)
        act = torch.as_tensor(np.array(self._data.act))
        self.reference.data.act[ids] = act[ids]
        return {}


def put_model(model: mujoco.MjModel, terms: Terms = ALL_TERMS) -> Any:
    """Convert a model to MJX; a model that MJX rejects raises ModelError."""
    if not model.nv:
        raise ModelError("MJX rejects a model without degrees of freedom.")
    # MJX has neither armature nor damping of actuators, and rejects pairs of shapes
    # that it lacks even where contacts are disabled.
    model = plain_model(model)
    switch_off(model, terms)
    _remove_outputs(model)
    if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS.value:  # MJX has none
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON.value
    try:
        return mjx.put_model(model)
    except (NotImplementedError, ValueError) as error:
        raise ModelError(f"MJX rejects this model: {error}", name="mjx") from error


def _remove_outputs(model: mujoco.MjModel) -> None:
    """Disable sensors and energies, some of which MJX rejects; no state has them."""
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR.value
    model.sensor_type[:] = mujoco.mjtSensor.mjSENS_CLOCK.value
    model.sensor_objtype[:] = mujoco.mjtObj.mjOBJ_UNKNOWN.value
    bits = mujoco.mjtEnableBit.mjENBL_ENERGY, mujoco.mjtEnableBit.mjENBL_FWDINV
    for bit in bits:
        model.opt.enableflags &= ~bit.value


def kinematics(model: Any, data: Any) -> Any:
    """Poses and velocities of the bodies of one world."""
    data = mjx.kinematics(model, data)
    data = mjx.com_pos(model, data)
    return mjx.com_vel(model, data)


def field(data: Any, name: str) -> Array:
    """Return a field of MJX's data, whose location depends on the version."""
    owner = data if hasattr(data, name) else data._impl
    return np.asarray(getattr(owner, name), dtype=np.float64)


def motion_of(model: mujoco.MjModel, data: Any, rows: np.ndarray) -> BodyStates:
    """Return the states of some worlds, after `kinematics`."""
    cvel, com = field(data, "cvel")[rows], field(data, "subtree_com")[rows]
    pos = field(data, "xpos")[rows]
    offset = com[:, model.body_rootid] - pos
    ang_vel = cvel[..., :3]
    return BodyStates(
        qpos=field(data, "qpos")[rows],
        qvel=field(data, "qvel")[rows],
        body_pos=pos,
        body_quat=field(data, "xquat")[rows],
        body_vel=cvel[..., 3:] - np.cross(ang_vel, offset),
        body_ang_vel=ang_vel,
    )


def _steps(model: Any, data: Any, moving: Any, n: Any) -> Any:
    """Return one world after n steps, unchanged if it does not move."""

    def one(_: Any, before: Any) -> Any:
        # MJX widens the integers of spatial tendons, which fori_loop rejects.
        return jax.tree_util.tree_map(
            lambda new, old: new.astype(old.dtype), mjx.step(model, before), before
        )

    after = jax.lax.fori_loop(0, n, one, data)
    return jax.tree_util.tree_map(lambda a, b: jnp.where(moving, a, b), after, data)


# Compiled once for each structure of a model, for all simulators.
_all_kinematics: Any = jax.jit(jax.vmap(kinematics, in_axes=(None, 0)))
_all_steps: Any = jax.jit(jax.vmap(_steps, in_axes=(None, 0, 0, None)))
