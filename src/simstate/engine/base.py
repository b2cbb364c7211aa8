"""What every engine offers: live fields, steps, forward passes, model parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.engine.bare import BareForward
from simstate.engine.fields import EVALUATED_FIELDS, FIELDS, STATE_FIELDS
from simstate.engine.layout import field_shape, state_columns
from simstate.engine.stage import Stage
from simstate.errors import InvalidInputError

MAX_VALUE = 1e10
"""MuJoCo's mjMAXVAL: a state beyond it counts as diverged."""

EVOLVING_FIELDS = STATE_FIELDS[: STATE_FIELDS.index("qacc_warmstart") + 1]
"""The state fields that a step changes, the first ones; the others are inputs."""


COMMON_CONSTANTS = (
    "body_subtreemass",
    "body_invweight0",
    "dof_invweight0",
    "tendon_length0",
    "tendon_invweight0",
    "actuator_acc0",
    "geom_aabb",
    "geom_rbound",
    "eq_data",
    "cam_pos0",
    "cam_poscom0",
    "cam_mat0",
    "light_pos0",
    "light_poscom0",
    "light_dir0",
)
"""The model parameters that set_const computes, on every engine."""


class Engine(ABC):
    """`num_envs` copies of one model, stepped together.

    Tensors from `field` and `expand` are live: they share the engine's memory, and
    the engine's own writes do not count in their `_version`, so that a changed
    `_version` is always a write by somebody else.
    """

    name: str
    dtype: torch.dtype
    _more_derived_constants: tuple[str, ...] = ()
    """Those that this engine has beyond the common ones."""
    uses_sameframe: bool = False
    """Whether it takes the orientation of the body, or of its inertial frame, for
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
        self._constants: dict[str, Tensor] = {}
        self.num_evolving = self.columns[EVOLVING_FIELDS[-1]].stop
        """The number of the first columns of the state, which a step changes."""
        with torch.inference_mode(False):
            shape = (num_envs, self.num_evolving)
            self.before = torch.zeros(shape, dtype=self.dtype, device=device)
            """Those columns before the last step."""

    def field(self, name: str) -> Tensor:
        """The live tensor of a raw field; shape (num_envs, …)."""
        tensor = self.fields.get(name)
        if tensor is None:
            with torch.inference_mode(False):  # such tensors would count no writes
                tensor = self._bind(name)
            self.fields[name] = tensor
        return tensor

    def field_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a raw field."""
        return (self.num_envs, *field_shape(self.model, FIELDS[name].shape))

    def expand(self, name: str) -> Tensor:
        """Live per-world values of a model parameter; shape (num_envs, …)."""
        if name not in self.expanded:
            with torch.inference_mode(False):
                self.expanded[name] = self._expand(name)
        return self.expanded[name]

    def parameter(self, name: str) -> Tensor:
        """A model parameter; shape (num_envs, …) if expanded, else (1, …)."""
        if name in self.expanded:
            return self.expanded[name]
        if name not in self._constants:
            value = np.array(model_value(self.model, name))[None]
            tensor = torch.as_tensor(value, device=self.device)
            if tensor.dtype.is_floating_point:
                tensor = tensor.to(self.dtype)
            self._constants[name] = tensor
        return self._constants[name]

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance the worlds by n time steps; positions and velocities are fresh.

        Returns the mask of worlds that went bad, or None; `before` has what the
        step changed in them.
        """
        self.remember()
        self._advance(n, env_ids)
        return self.find_bad()

    @abstractmethod
    def remember(self) -> None:
        """Copy the columns of the state that a step changes to `before`."""

    @abstractmethod
    def report_warnings(self) -> None:
        """Warn of what went wrong since `remember`, but for bad states."""

    @abstractmethod
    def _advance(self, n: int, env_ids: Tensor | None) -> None:
        """Step, and compute positions and velocities at the new state."""

    @abstractmethod
    def find_bad(self) -> Tensor | None:
        """The mask of worlds whose state went bad in the last step; None: no world."""

    def acceleration_now(self) -> Tensor:
        """Accelerations at the present state; (num_envs, nv). The fields are kept."""
        kept = self._keep_accelerations(slice(None))
        self.forward(None, Stage.ACCELERATION)
        now = self.field("qacc").clone()
        self._put_back(kept, slice(None))
        return now

    def compute_late(self, name: str) -> None:
        """Compute a field that was not bound so far, and leave the other ones alone."""
        kept = self._keep_accelerations(slice(None))
        self.field(name)
        self.forward(None, max(FIELDS[name].stage, Stage.VELOCITY))
        self._put_back(kept, slice(None))

    def _keep_accelerations(self, rows: slice | Tensor) -> dict[str, Tensor]:
        """Copies of the fields that describe the last dynamics evaluation."""
        return {name: self.field(name)[rows].clone() for name in EVALUATED_FIELDS}

    def _put_back(self, kept: dict[str, Tensor], rows: slice | Tensor) -> None:
        """Write such copies back, through aliases: it is not a write by a user."""
        for name, values in kept.items():
            alias = self._alias(name)
            if name == "sensordata":  # the other sensors are current
                values = torch.where(self._acc_sensors, values, alias[rows])
            alias[rows] = values

    @cached_property
    def _acc_sensors(self) -> Tensor:
        """Which columns of sensordata are computed with the accelerations."""
        stages = np.asarray(self.model.sensor_needstage)
        late = stages == mujoco.mjtStage.mjSTAGE_ACC.value
        columns = np.repeat(late, self.model.sensor_dim)
        return torch.as_tensor(columns, device=self.device)

    def _alias(self, name: str) -> Tensor:
        """Another tensor on a field's memory, whose writes nobody counts."""
        return self.field(name).data

    def bare_forward(self) -> BareForward | None:
        """The present state evaluated by the engine's library alone.

        None: that library is MuJoCo, or worlds have parameters of their own.
        """
        return None

    @property
    @abstractmethod
    def state(self) -> Tensor:
        """The state of all worlds; shape (num_envs, nstate)."""

    @property
    @abstractmethod
    def state_is_live(self) -> bool:
        """Whether writing into `state` writes the simulation's state."""

    @abstractmethod
    def _bind(self, name: str) -> Tensor:
        """Make the live tensor of a raw field."""

    @abstractmethod
    def is_bound(self, name: str) -> bool:
        """Whether the engine has kept the field up to date so far."""

    @abstractmethod
    def forward(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived fields up to `stage` at the present state."""

    @abstractmethod
    def cause(self, world: int) -> tuple[str, int] | None:
        """The field and index that the engine itself blames for a bad world."""

    @abstractmethod
    def _expand(self, name: str) -> Tensor:
        """Give a model parameter values of its own in each world."""

    def derived_constants(self) -> list[str]:
        """The parameters that set_const computes, as far as the model has any."""
        names = (*COMMON_CONSTANTS, *self._more_derived_constants)
        return [name for name in names if np.size(model_value(self.model, name))]

    @abstractmethod
    def set_const(self, env_ids: Tensor | None) -> None:
        """Recompute the model's constants that depend on changed parameters."""


def model_value(model: mujoco.MjModel, name: str) -> Any:
    """A field of MjModel, or of its options as `opt.<name>`."""
    owner: object = model.opt if name.startswith("opt.") else model
    value = getattr(owner, name.removeprefix("opt."), None)
    if value is None or callable(value):
        raise InvalidInputError(
            f"{name!r} is not a parameter of MjModel, nor of its options as 'opt.…'."
        )
    return value
