"""Engine: live fields, steps, forward passes and model parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import unknown_name
from simstate.engine.choices import check_by_world
from simstate.engine.core import CoreBatch
from simstate.engine.engine_cfg import BareForward
from simstate.engine.field_layout import field_shape, state_columns
from simstate.engine.fields import (
    EVALUATED_FIELDS,
    EVOLVING_FIELDS,
    FIELDS,
    KEPT_FIELDS,
    STATE_FIELDS,
)
from simstate.engine.on_demand import OnDemand
from simstate.engine.stage import Seen, Stage, StepObserver

if TYPE_CHECKING:
    from simstate.engine.core import _core

MAX_VALUE = 1e10
"""MuJoCo's mjMAXVAL: a state beyond it counts as diverged."""

CONSTANT_INPUTS: frozenset[str] = frozenset(mujoco.MjModel._setconst_inputs)  # pyright: ignore
"""Model parameters from which the constants of a model are computed."""


class Engine(ABC):
    """`num_envs` copies of one model, stepped together.

    Tensors from `field` and `expand` are live: they share the engine's memory. The
    engine's own writes do not change their `_version`, so a changed `_version` always
    means a write from outside.
    """

    name: str
    dtype: torch.dtype
    can_settle: bool = False
    """True if invalid worlds can be restored before positions are computed."""
    is_exact: bool = False
    """True if a world's bits do not depend on the batch or the number of threads."""
    state_is_live: bool
    """True if `state` is the engine's memory; otherwise it is a copy."""
    constants: frozenset[str]
    """Model parameters that `set_const` computes."""
    all_constants: frozenset[str] = frozenset(mujoco.MjModel._setconst_outputs)  # pyright: ignore
    """Model parameters that MuJoCo's mj_setConst computes, on any engine."""
    compiled: CoreBatch | None = None
    """The worlds in the compiled core; None if it is not used."""
    uses_sameframe: bool = False
    """True if it uses the orientation of the body, or of its inertial frame, for
    elements that the model's `…_sameframe` flags mark."""

    def __init__(
        self, model: mujoco.MjModel, num_envs: int, device: torch.device
    ) -> None:
        self.model = model
        self.num_envs = num_envs
        self.device = device
        self.columns = state_columns(model)
        self.nstate = self.columns[STATE_FIELDS[-1]].stop
        self.fields: dict[str, Tensor] = {}
        self.expanded: dict[str, Tensor] = {}
        self._shared: dict[str, Tensor] = {}
        """Parameters that all worlds share."""
        self._constants_differ = False
        """True if constants of the model differ by world."""
        self.observers: list[StepObserver] = []
        """Observers of the sensors in every time step."""
        self.kept: dict[str, Tensor] = {}
        """Fields of the last evaluation, by name; see `keep`."""
        self.kept_writes = 0
        """Number of steps that have written `kept`."""

    def field(self, name: str) -> Tensor:
        """Return the live tensor of a raw field; shape (num_envs, …)."""
        tensor = self.fields.get(name)
        if tensor is None:
            with torch.inference_mode(False):  # inference tensors count no writes
                tensor = self._bind(name).data  # not a view: can be detached in place
            self.fields[name] = tensor
        return tensor

    def field_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a raw field."""
        declared = FIELDS.get(name) or KEPT_FIELDS[name]
        return (self.num_envs, *field_shape(self.model, declared.shape))

    def expand(self, name: str) -> Tensor:
        """Return the live per-world values of a parameter; shape (num_envs, …)."""
        if name not in self.expanded:
            check_by_world(self.model, name)
            with torch.inference_mode(False):
                self.expanded[name] = self._expand(name).data
        return self.expanded[name]

    def parameter(self, name: str) -> Tensor:
        """Return a model parameter; shape (num_envs, …) if expanded, else (1, …)."""
        if name in self.expanded:
            return self.expanded[name]
        if self._constants_differ and name in self.constants:
            return self.expand(name)
        if name not in self._shared:
            with torch.inference_mode(False):
                self._shared[name] = self.model_parameter(name)
        return self._shared[name]

    def differs(self, name: str) -> bool:
        """Return True if a model parameter may differ by world."""
        return name in self.expanded or (
            self._constants_differ and name in self.constants
        )

    @property
    def num_differing(self) -> int:
        """Number that changes when another parameter may differ by world."""
        return 2 * len(self.expanded) + self._constants_differ

    def model_parameter(self, name: str) -> Tensor:
        """Return the model's own value of a parameter, engine's dtype; shape (1, …)."""
        value = np.array(model_value(self.model, name))[None]
        tensor = torch.as_tensor(value, device=self.device)
        if tensor.dtype.is_floating_point:
            tensor = tensor.to(self.dtype)
        return tensor

    def split(self, rows: Tensor) -> dict[str, Tensor]:
        """Split rows of the state into fields by name; shape (n, …) each."""
        return {
            name: rows[:, columns].reshape(rows.shape[0], *self.field_shape(name)[1:])
            for name, columns in self.columns.items()
        }

    def join(self, fields: Mapping[str, Tensor]) -> Tensor:
        """Join fields of the state to rows, engine's dtype; shape (n, nstate)."""
        parts = [fields[name].flatten(1) if fields[name].ndim > 1 else
                 fields[name][:, None] for name in STATE_FIELDS]  # fmt: skip
        return torch.cat([part.to(self.dtype) for part in parts], dim=1)

    @property
    def has_own_parameters(self) -> bool:
        """True if some model parameters have separate values in each world."""
        return bool(self.expanded) or self._constants_differ

    @cached_property
    def on_demand(self) -> OnDemand:
        """Computations on demand, whose results are not stored."""
        return self._make_on_demand()

    @abstractmethod
    def _make_on_demand(self) -> OnDemand: ...

    @abstractmethod
    def begin_evaluation(self) -> None:
        """Record which worlds are already invalid, and the counts of warnings.

        `find_bad`, `cause`, `loss` and `report_warnings` need both.
        """

    def begin_step(self) -> None:
        """Call `begin_evaluation` for a step, and notify the observers."""
        self.begin_evaluation()
        for observer in self.observers:
            observer.begin_step()

    def note_evaluation(self) -> None:
        """Pass the sensors of an evaluation of the dynamics to the observers."""
        for observer in self.observers:
            observer.evaluated()

    def note_steps(self, n: int, env_ids: Tensor | None) -> None:
        """Notify observers that n time steps of these worlds are done; None: all."""
        if self.observers:
            self.note_time(self.parameter("opt.timestep") * n, env_ids)

    def note_time(self, passed: Tensor, env_ids: Tensor | None) -> None:
        """Notify the observers that these worlds advanced by a time [s]; None: all.

        Args:
            passed: the time, of each world (num_envs,) or of all (1,).
            env_ids: the worlds.
        """
        for observer in self.observers:
            observer.stepped(passed, env_ids)

    def compiled_observers(self) -> tuple[_core.Contacts, ...]:
        """Return the observers in the compiled core."""
        return tuple(x.compiled for x in self.observers if x.compiled)

    @property
    def _looks_at_every_step(self) -> bool:
        """True if an observer needs the sensors between the n steps."""
        return any(observer.every_step for observer in self.observers)

    def step(
        self,
        n: int,
        env_ids: Tensor | None,
        settle: Callable[[], None] | None = None,
    ) -> int:
        """Step these worlds n times, and compute their new positions and velocities.

        Args:
            n: number of time steps.
            env_ids: the worlds; None: all. The others are unchanged.
            settle: called between the two if the engine `can_settle`, to restore the
                worlds that diverged.

        Returns:
            Flags of `Seen`; 0 if nothing went wrong. `find_bad` and `report_warnings`
            then give the details.
        """
        del settle
        self.begin_step()
        self.advance(n, env_ids)
        return self.seen()

    @abstractmethod
    def advance(self, n: int, env_ids: Tensor | None) -> None:
        """Step without a check, as a part of a step that is checked later."""

    def seen(self) -> int:
        """Return the flags of `Seen` since `begin_step`."""
        bad = self.find_bad() is not None
        return (Seen.BAD if bad else 0) | (Seen.WARNED if self.has_warned() else 0)

    @abstractmethod
    def has_warned(self) -> bool:
        """Return True if `report_warnings` may have something to report."""

    @abstractmethod
    def find_bad(self) -> Tensor | None:
        """Return the mask of worlds whose state is or was invalid; None: none."""

    def bad_worlds(self) -> Tensor:
        """Return the mask of worlds with an invalid state or input, on the device.

        Values must not exceed MAX_VALUE, except for forces, which need only be finite.
        """
        limited = self._side_by_side(
            *EVOLVING_FIELDS, "ctrl", "mocap_pos", "mocap_quat"
        )
        others = self._side_by_side("qfrc_applied", "xfrc_applied", "eq_active")
        return ~((limited.abs() <= MAX_VALUE).all(dim=1) & others.isfinite().all(dim=1))

    def _side_by_side(self, *names: str) -> Tensor:
        """Return copies of fields as columns of one tensor; shape (num_envs, …)."""
        parts = [self.field(name).reshape(self.num_envs, -1) for name in names]
        return torch.cat(parts, dim=1)

    @abstractmethod
    def loss(self, world: int) -> str:
        """Describe what was dropped in a world since `begin_step` for lack of memory.

        The text includes the remedy; "" if nothing was dropped.
        """

    @abstractmethod
    def report_warnings(self, env_ids: Tensor | None) -> bool:
        """Warn about problems in these worlds since `begin_step`; None: all worlds.

        Invalid states are not included: see `find_bad`. Return True if contacts or
        constraints were dropped.
        """

    def compute_late(self, name: str) -> None:
        """Compute a field that was not bound so far, without changing other fields."""
        kept = self.keep_accelerations(slice(None))
        self.field(name)
        self.forward(None, max(FIELDS[name].stage, Stage.VELOCITY))
        self.put_back(kept, slice(None))

    def keep_accelerations(self, rows: slice | Tensor) -> dict[str, Tensor]:
        """Return copies of the fields of the last dynamics evaluation."""
        return {name: self.field(name)[rows].clone() for name in EVALUATED_FIELDS}

    def put_back(self, kept: dict[str, Tensor], rows: slice | Tensor) -> None:
        """Restore such copies through aliases, so that it does not count as a write."""
        for name, values in kept.items():
            alias = self._alias(name)
            if name == "sensordata":  # the other sensors are current
                values = torch.where(self._acc_sensors, values, alias[rows])
            alias[rows] = values

    @cached_property
    def _acc_sensors(self) -> Tensor:
        """Mask of the columns of sensordata that belong to the acceleration stage."""
        stages = np.asarray(self.model.sensor_needstage)
        late = stages == mujoco.mjtStage.mjSTAGE_ACC.value
        columns = np.repeat(late, self.model.sensor_dim)
        return torch.as_tensor(columns, device=self.device)

    def _alias(self, name: str) -> Tensor:
        """Return another tensor on a field's memory, whose writes are not counted."""
        return self.field(name).data

    def warp_arrays(self) -> tuple[Any, Any] | None:
        """Return MuJoCo Warp's model and data, for drawing; None on other engines."""
        return None

    def bare_forward(self) -> BareForward | None:
        """Evaluate the present state with only the engine's library.

        Return None if that library is MuJoCo, or if parameters differ by world.
        """
        return None

    @property
    @abstractmethod
    def state(self) -> Tensor:
        """The state of all worlds; shape (num_envs, nstate)."""

    @abstractmethod
    def state_memory(self) -> list[tuple[tuple[str, ...], Tensor]]:
        """Return the memory of the state, by the fields that are adjacent in it.

        The tensors are aliases, whose writes are not counted; shape (num_envs, …).
        """

    @abstractmethod
    def _bind(self, name: str) -> Tensor:
        """Create the live tensor of a raw field."""

    @abstractmethod
    def is_bound(self, name: str) -> bool:
        """Return True if the engine already keeps the field up to date."""

    @abstractmethod
    def forward(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived fields up to `stage` at the present state."""

    @abstractmethod
    def keep(self, name: str, memory: Tensor) -> None:
        """Copy a field into `memory` after every MuJoCo step from now on.

        The values are those of the last evaluation of the dynamics, before positions
        and velocities are updated. Torch does not count these writes.
        """

    @abstractmethod
    def evaluate_kept(self, env_ids: Tensor | None, after_constraints: bool) -> None:
        """Evaluate the dynamics at the current state into `kept`, in these worlds.

        Without `after_constraints`, the fields of mj_rnePostConstraint are those after
        a reset and mj_forward.
        """

    @abstractmethod
    def cause(self, world: int) -> tuple[str, int] | None:
        """Return field and index that the engine reports as invalid; None: unknown."""

    @abstractmethod
    def _expand(self, name: str) -> Tensor:
        """Give a model parameter separate values in each world."""

    @abstractmethod
    def set_const(self, env_ids: Tensor | None) -> None:
        """Recompute the model's constants that depend on changed parameters."""


def moving_columns(engine: Engine) -> slice:
    """Return the columns of the state up to the last one that a step changes."""
    stops = [
        engine.columns[name].stop
        for name in EVOLVING_FIELDS
        if engine.columns[name].stop > engine.columns[name].start
    ]
    return slice(0, max(stops))


def model_value(model: mujoco.MjModel, name: str) -> Any:
    """Return a field of MjModel, or of its options as `opt.<name>`."""
    owner: object = model.opt if name.startswith("opt.") else model
    value = getattr(owner, name.removeprefix("opt."), None)
    if value is None or callable(value):
        known = [
            prefix + field
            for prefix, part in (("", model), ("opt.", model.opt))
            for field in dir(part)
            if not field.startswith("_") and _is_number(getattr(part, field))
        ]
        raise unknown_name("parameter of the model", name, known)
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, float | int | np.ndarray)
