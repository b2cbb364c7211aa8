"""Perturbations: the values by which a simulation is differentiated, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import mujoco
import torch
from mujoco import batch
from torch import Tensor

from simstate.base.checks import instance_of
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.engine.parameter_limits import element_of, limits_of
from simstate.simulation import Simulation
from simstate.study.tangent_state import StateVector
from simstate.world.worlds import worlds_of

By: TypeAlias = "str | Sequence[str] | Mapping[str, str | Tensor]"
"""Names: "state", an input ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos") or a
model parameter ("body_mass"). Or names of your own with such a name, or with a live
tensor, (num_envs, …), such as {"wind": air.parameters["wind"][:, 0]}."""

INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos")
_PARAMETER_WIDTH = 10.0
"""Width for a parameter relative to its value, in units of `step`. A relative width of
1e-5 balances rounding and truncation."""


class Perturbation(Protocol):
    """Values of each world, any of which can be displaced."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the values, one for each column."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one world's values."""
        ...

    def reach(self, column: int, step: float) -> tuple[Tensor, Tensor]:
        """Return the forward and backward displacement of a value; (num_envs,) each."""
        ...

    def move(self, column: int, by: Tensor) -> None:
        """Displace a value in all worlds; `by` has shape (num_envs,)."""
        ...

    def restore(self) -> None:
        """Restore values that are in no slot, which a rollback leaves unchanged."""
        ...


class StatePerturbation:
    """Displacements of positions, velocities, activations and processes."""

    def __init__(self, vector: StateVector) -> None:
        self._vector = vector
        self.labels = vector.names
        self.shape = (vector.size,)

    def reach(self, column: int, step: float) -> tuple[Tensor, Tensor]:
        """Return `step` in the coordinate's unit; relative for large processes."""
        width = step * self._vector.scale(column)
        return width, width

    def move(self, column: int, by: Tensor) -> None:
        """Displace the state along one coordinate of the tangent space."""
        self._vector.displace(column, by)

    def restore(self) -> None:
        """Do nothing: states are slots."""


class TensorPerturbation:
    """Elements of a live tensor, (num_envs, …)."""

    def __init__(
        self, values: Tensor, labels: tuple[str, ...], users_own: bool = False
    ) -> None:
        self._values = values
        self._kept = values.detach().clone() if users_own else None
        self.labels = labels
        self.shape = tuple(values.shape[1:])

    @property
    def values(self) -> Tensor:
        """The values, one column for each; (num_envs, columns)."""
        return self._values.detach().reshape(len(self._values), -1)

    def reach(self, column: int, step: float) -> tuple[Tensor, Tensor]:
        """Return `step`, multiplied by the magnitude of values above 1."""
        width = step * self.values[:, column].abs().clamp(min=1.0)
        return width, width

    def move(self, column: int, by: Tensor) -> None:
        """Add to one element in all worlds."""
        if not self.shape:
            self._values += by
        else:
            index = torch.unravel_index(torch.tensor(column), self.shape)
            self._values[(slice(None), *index)] += by

    def restore(self) -> None:
        """Restore a tensor of the user's, which may be in no slot."""
        if self._kept is not None:
            self._values.copy_(self._kept)


class ControlPerturbation(TensorPerturbation):
    """Controls; at a limit of their range they are displaced inwards only."""

    def __init__(self, sim: Simulation, names: tuple[str, ...]) -> None:
        super().__init__(sim.data.ctrl, names)
        self._engine = worlds_of(sim).engine
        flag = mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL.value
        self._clamps = not int(sim.model.opt.disableflags) & flag

    def reach(self, column: int, step: float) -> tuple[Tensor, Tensor]:
        """Return `step`, or 0 where a control is out of range or would leave it."""
        x = self.values[:, column]
        if not self._clamps:
            width = torch.full_like(x, step)
            return width, width
        free = self._engine.parameter("actuator_ctrllimited")[:, column] == 0
        low, high = self._engine.parameter("actuator_ctrlrange")[:, column].unbind(-1)
        inside = (x >= low) & (x <= high)
        width = torch.full_like(x, step)
        ahead = free | (inside & (x + step <= high))
        behind = free | (inside & (x - step >= low))
        return torch.where(ahead, width, 0.0), torch.where(behind, width, 0.0)


class ParameterPerturbation(TensorPerturbation):
    """A model parameter, which is displaced relative to its value."""

    def __init__(self, sim: Simulation, name: str) -> None:
        values = sim.expand(name)
        super().__init__(values, _parameter_labels(sim, name, values))
        found = limits_of(sim.model, name)
        self._is_invalid = None if found is None else found[1]

    def reach(self, column: int, step: float) -> tuple[Tensor, Tensor]:
        """Return a fraction of the value, or 0 where it would leave its range."""
        x = self.values[:, column]
        width = _PARAMETER_WIDTH * step * torch.where(x == 0.0, 1.0, x.abs())
        return tuple(  # pyright: ignore[reportReturnType]
            torch.where(self._leaves_range(column, sign * width), 0.0, width)
            for sign in (1, -1)
        )

    def _leaves_range(self, column: int, by: Tensor) -> Tensor:
        if self._is_invalid is None:
            return torch.zeros_like(by, dtype=torch.bool)
        values = self.values.clone()
        values[:, column] += by
        invalid = self._is_invalid(values.view(-1, *self.shape), None)
        return invalid.reshape(len(values), -1).any(dim=1)


def perturbations(
    sim: Simulation, by: By, vector: StateVector
) -> dict[str, Perturbation]:
    """Return the blocks of columns by name, checked."""
    if isinstance(by, str):
        by = (by,)
    fits = isinstance(by, Sequence | Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not fits or not by:
        raise InvalidInputError(
            'by must name what to differentiate by, such as ("state", "ctrl"); got '
            f"{by!r}.",
            name="by",
        )
    if not isinstance(by, Mapping):
        twice = [name for name in by if list(by).count(name) > 1]
        if twice:
            raise InvalidInputError(f"by has {twice[0]!r} twice.", name="by")
        by = {str(name): name for name in by}
    return {name: _perturbation(sim, name, x, vector) for name, x in by.items()}


def _perturbation(
    sim: Simulation, name: str, given: str | Tensor, vector: StateVector
) -> Perturbation:
    if isinstance(given, Tensor):
        if not given.ndim or len(given) != sim.num_envs:
            raise ShapeError(
                f"by[{name!r}], a live tensor, must have shape ({sim.num_envs}, …), "
                f"got {tuple(given.shape)}.",
                name=name,
                shape=given.shape,
            )
        if given.dtype != torch.float64:
            raise InvalidInputError(
                f"by[{name!r}] must be a float64 tensor, got {given.dtype}, in whose "
                "rounding differences vanish. Let the model read a float64 tensor.",
                name=name,
            )
        labels = _numbered(name, tuple(given.shape[1:]))
        return TensorPerturbation(given, labels, users_own=True)
    instance_of(f"by[{name!r}]", given, str)
    if given == "state":
        return StatePerturbation(vector)
    if given == "ctrl":
        return ControlPerturbation(sim, vector.controls)
    if given in INPUTS:
        values = getattr(sim.data, given)
        return TensorPerturbation(values, _numbered(given, tuple(values.shape[1:])))
    _check_parameter(sim, given)
    return ParameterPerturbation(sim, given)


def _check_parameter(sim: Simulation, name: str) -> None:
    """Raise if a parameter does not exist, or has no derivative."""
    known = sorted(batch.MODEL_FIELDS)
    if name not in known:
        raise unknown_name("name to differentiate by", name, ("state", *INPUTS, *known))
    values = worlds_of(sim).engine.parameter(name)
    if not values.numel():
        raise InvalidInputError(
            f"The model has no elements with the parameter {name!r}, so there is "
            "nothing to differentiate by.",
            name=name,
        )
    if not values.is_floating_point():
        raise InvalidInputError(
            f"{name} has integer values, by which there is no derivative.", name=name
        )
    if name.endswith("quat"):
        raise InvalidInputError(
            f"{name} holds unit quaternions, whose components cannot be displaced one "
            "by one. Differentiate by positions, or by a tensor that your force model "
            'reads: by={"name": tensor}.',
            name=name,
        )
    if name.endswith(("rgba", "_user")) or name.startswith(("light_", "mat_", "vis.")):
        raise InvalidInputError(
            f"{name} has no effect on the motion: remove it from by.", name=name
        )


def _parameter_labels(sim: Simulation, name: str, values: Tensor) -> tuple[str, ...]:
    """Return names such as "body_mass[pole]" or "geom_size[foot, 1]"."""
    if values.ndim < 2 or name.startswith("opt."):
        return _numbered(name, tuple(values.shape[1:]))
    inner = values[0, 0].numel()
    labels: list[str] = []
    for element in range(values.shape[1]):
        text = element_of(sim.model, name, element).partition(" ")[2].strip("'")
        many = values.ndim > 2
        labels += [
            f"{name}[{text}, {k}]" if many else f"{name}[{text}]" for k in range(inner)
        ]
    return tuple(labels)


def _numbered(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    if not shape:
        return (name,)
    count = int(torch.Size(shape).numel())
    return tuple(f"{name}[{k}]" for k in range(count))
