"""Worlds of one model as rows of MuJoCo's state, stepped by the compiled core."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from mujoco import batch
from numpy.typing import ArrayLike, NDArray

from simstate.base import compiled_core
from simstate.base.errors import InvalidInputError
from simstate.engine.field_layout import state_columns
from simstate.engine.fields import STATE_FIELDS
from simstate.engine.forks import keep_in_child
from simstate.engine.plain_batch import simulation_error
from simstate.engine.stage import Seen

if TYPE_CHECKING:
    from simstate.engine.core import _core

Array = NDArray[Any]

_ACCELERATION = mujoco.mjtStage.mjSTAGE_ACC.value
_FAILED = Seen.FAILED.value


class CoreBatch:
    """`nsim` worlds of a copy of a model, on `nthread` threads.

    Methods that it shares with `mujoco.batch.Batch` have the same names, meaning and
    bits: rows of mjSTATE_INTEGRATION in `state`, live outputs by `bind`, per-world
    parameters by `expand`. A step ends with the velocity stage and computes only what
    the bound fields need: positions, velocities and their sensors, but not the mass
    matrix, contacts and forces, unless a bound field or a sensor depends on those.

    Args:
        model: the model; the batch copies it.
        nsim: the number of worlds.
        nthread: number of threads, including the caller's; 0: one per CPU.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        nsim: int,
        nthread: int = 0,
    ) -> None:
        self.model = model
        self.nsim = nsim
        make = compiled_core.module().Batch
        self.core: _core.Batch = make(model._address, nsim, nthread)
        found = self.core.describe()
        self.nthread: int = found["num_threads"]
        if self.nthread > 1:
            keep_in_child(self)
        self.nstate: int = found["nstate"]
        kinds = mujoco.mjtWarning.mjNWARNING
        self.state = self._array(found["state"], (nsim, self.nstate), "<f8")
        """The state of all worlds; shape (nsim, nstate)."""
        self.warning = self._array(found["warning"], (nsim, int(kinds), 2), "<i4")
        """Last element and count of each warning; shape (nsim, mjNWARNING, 2)."""
        self.status = self._array(found["status"], (nsim,), "<i4")
        """True for worlds whose last call raised an error; shape (nsim,)."""
        self.status.flags.writeable = False
        self._columns = state_columns(model)
        self._bound: dict[str, Array] = {}
        self._expanded: dict[str, Array] = {}

    @cached_property
    def _template(self) -> mujoco.MjData:
        """An MjData that provides the shapes and types of fields."""
        return mujoco.MjData(self.model)

    def _array(self, address: int, shape: tuple[int, ...], kind: str) -> Array:
        """Return an array on the batch's memory, which it keeps alive."""
        return np.asarray(_Memory(self.core, address, shape, kind))

    def bind(self, name: str) -> Array:
        """Return a live field of mjData; shape (nsim, …). Outputs are read-only."""
        if name in STATE_FIELDS:
            rows = self.state[:, self._columns[name]]
            if name == "time":
                return rows[:, 0]
            return rows.reshape(self.nsim, *getattr(self._template, name).shape)
        if name not in self._bound:
            found = self.core.output(name)
            if found is None:
                raise InvalidInputError(
                    f"{name!r} is not a field of mjData that can be bound.", name=name
                )
            template: Array = np.asarray(getattr(self._template, name))
            kind = np.dtype(np.int32) if template.ndim == 0 else template.dtype
            array = self._array(found[0], (self.nsim, *template.shape), kind.str)
            array.flags.writeable = False
            self._bound[name] = array
        return self._bound[name]

    def expand(self, name: str) -> Array:
        """Return the live values of a model parameter by world; shape (nsim, …)."""
        if name not in self._expanded:
            owner = self.model.opt if name.startswith("opt.") else self.model
            template = np.asarray(getattr(owner, name.removeprefix("opt."), None))
            found = self.core.expand(name)
            if found is None:
                raise InvalidInputError(
                    f"{name!r} is not a field of mjModel that can differ by world.",
                    name=name,
                )
            kind = template.dtype
            if name.startswith("opt."):  # stored as float64 or int32
                kind = np.dtype(np.float64 if kind.kind == "f" else np.int32)
            # bvh_aabb has only the bodies' rows.
            row = int(np.prod(template.shape[1:])) * kind.itemsize
            shape = template.shape
            if template.ndim and row:
                shape = (found[1] // row, *template.shape[1:])
            self._expanded[name] = self._array(found[0], (self.nsim, *shape), kind.str)
        return self._expanded[name]

    def step(
        self,
        ids: ArrayLike | None = None,
        nstep: int = 1,
        contacts: tuple[_core.Contacts, ...] = (),
    ) -> None:
        """Advance by nstep × mj_step, then compute the velocity stage.

        Writes the worlds' rows of `state`, bound fields, warnings and status, and the
        memory of `contacts`, which observe the steps. Many substeps run in several
        rounds, so that Ctrl-C stops all worlds at the same substep. If MuJoCo raises an
        error in a world, that world keeps the state from before the round, and all
        worlds stop after it.
        """
        ids = self.ids(ids)
        self.check(ids, self.core.fused_step(ids, nstep, contacts))

    def rollout(
        self,
        ids: Array | None,
        controls: Array,
        samples: Array,
        fields: Mapping[str, Array],
    ) -> int:
        """Advance worlds under controls of each time step; return flags of `Seen`.

        Writes what `step` writes, and the fields after some of the steps. The results
        are those of one call of `step` per time step, bit for bit.

        Args:
            ids: the worlds, ascending int32; None: all.
            controls: the controls; shape (nsim or 1, steps, nu).
            samples: steps after which fields are written, ascending int32.
            fields: arrays for "qpos", "qvel", "act" or "sensordata", each of shape
                (samples, nsim, width).
        """
        given = controls if self.model.nu else None
        seen = self.core.rollout(
            ids, controls.shape[1], given, samples, tuple(fields.items())
        )
        self.check(ids, seen & _FAILED)
        return seen

    def forward(self, ids: Array | None = None, stage: int = _ACCELERATION) -> None:
        """Compute the stages up to `stage`; writes bound fields and warnings."""
        ids = self.ids(ids)
        self.check(ids, self.core.forward(ids, int(stage)))

    def keep(self, name: str, array: Array, after_constraints: bool) -> None:
        """Copy a field into `array` at the end of each step from now on; (nsim, …).

        The values are those of the last evaluation. `after_constraints` marks a field
        of mj_rnePostConstraint, which then runs after each step.
        """
        self.core.keep(name, array, after_constraints)

    def evaluate_kept(self, ids: Array | None, after_constraints: bool) -> None:
        """Run mj_forward at the current state; write only the kept fields.

        Without `after_constraints`, those of mj_rnePostConstraint are as after
        mj_resetData and mj_forward: zero, unless a sensor needs them.
        """
        self.check(ids, self.core.evaluate_kept(ids, after_constraints))

    def set_const(self, ids: Array | None = None) -> None:
        """Run mj_setConst by world; writes the derived parameters, now per world."""
        ids = self.ids(ids)
        self.check(ids, self.core.set_const(ids))

    def differentiate(
        self, steps: int, width: float, widths: int, by_state: bool, by_ctrl: bool
    ) -> tuple[Array, Array]:
        """Return derivatives of the state after `steps` × mj_step, without stepping.

        They are centred differences of tangent states (displacements of qpos, qvel,
        act) as in mjd_transitionFD, at `width` and, for two widths, at twice that.

        Returns:
            The derivatives by the state, then by the controls, (widths, nsim, 2 nv +
            na, columns), and the columns in which the set of active constraints
            differs between the perturbed states, bool, (nsim, columns).
        """
        rows = 2 * self.model.nv + self.model.na
        columns = rows * by_state + self.model.nu * by_ctrl
        out = np.empty((self.nsim, widths, columns, rows))
        switched = np.empty((self.nsim, columns), bool)
        failed = self.core.differentiate(
            width, widths, steps, by_state, by_ctrl, (out, switched)
        )
        self.check(None, failed)
        return out.transpose(1, 0, 3, 2), switched

    def signatures(self) -> Array:
        """Return a hash of the active constraints of each world; int64, (nsim,).

        It covers contacts, limits, friction states and saturated actuators.
        """
        out = np.empty(self.nsim, np.int64)
        self.check(None, self.core.signatures(out))
        return out

    def error(self, world: int) -> str:
        """Return the message of the error that a world's last call raised, or ''."""
        return self.core.error(world)

    def get_model(self, world: int) -> mujoco.MjModel:
        """Return a copy of the model with the parameters of one world."""
        self._check_world(world)
        model = copy.copy(self.model)
        self.core.get_model(world, model._address)
        return model

    def check(self, ids: Array | None, failed: int) -> None:
        """Raise for the worlds that failed in the last call."""
        if failed:
            chosen = np.arange(self.nsim) if ids is None else ids
            worlds = chosen[self.status[chosen] != 0]
            message = self.error(int(worlds[0]))
            error = batch.SimulationError(worlds, message, len(chosen))
            raise simulation_error(error) from error

    def ids(self, ids: ArrayLike | None) -> Array | None:
        """Return ids of worlds as int32; None for all."""
        return None if ids is None else np.ascontiguousarray(ids, np.int32)

    def _check_world(self, world: int) -> None:
        if not 0 <= world < self.nsim:
            raise InvalidInputError(
                f"world must be from 0 to {self.nsim - 1}, got {world}.", name="world"
            )


class _Memory:
    """Memory of a batch with NumPy's array interface, which keeps the batch alive."""

    def __init__(
        self, owner: object, address: int, shape: tuple[int, ...], kind: str
    ) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "typestr": kind,
        }
