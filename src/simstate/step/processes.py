"""Processes: additional states that are integrated with the mechanics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from simstate.base.checks import check_finite, has_shape, instance_of
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.ids import Values, int_list
from simstate.engine import MAX_VALUE, Stage
from simstate.step.forces.force_parameters import Numbers, Parameters, numbers
from simstate.world import Ledger
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:  # the first two load Warp
    from simstate.step.flat_state import FlatState
    from simstate.step.stages import Stages
    from simstate.step.stepping_host import SteppingHost


def finite_worlds(ledger: Ledger) -> Tensor:
    """Return the mask of worlds whose state is finite and not huge; (num_envs,)."""
    parts = [
        slot.tensor
        for slot in ledger.of(("sim",))
        if slot.name in ("qpos", "qvel") or slot.name.startswith("process/")
    ]
    fine = [(x.abs() <= MAX_VALUE).all(dim=1) for x in parts if x.numel()]
    return torch.stack(fine).all(dim=0)


@runtime_checkable
class DrivingNoise(Protocol):
    """Source of noise in the dynamics: dx = … + Σ_k g_k dW_k.

    One source may act on several blocks of the state, which correlates them.
    """

    @property
    def num_sources(self) -> int:
        """The number of independent Wiener processes."""
        ...

    def diffusion(self, t: Tensor, sim: Any) -> Mapping[str, Tensor]:
        """Return the effect of a unit of each source, by block of the state.

        Blocks are "qpos", "qvel" (both by dof, in qvel's axes), "act", or a process by
        its name; shape (num_envs, num_sources, width). Stateless, as force models are.
        """
        ...


class Process(ABC):
    """Additional state variables of each world: dx/dt = rate(t, sim).

    Subclass it and define `rate`. Force models read `value`. A process that is driven
    by noise defines `diffusion` and sets `num_sources` as well.

    Args:
        name: its name in errors, snapshots and `DrivingNoise.diffusion`.
        initial: the value at reset; shape (width,) or (num_envs, width).
    """

    num_sources: int = 0

    def __init__(self, name: str, initial: Values) -> None:
        instance_of("The name of a process", name, str)
        if not name or name in ("qpos", "qvel", "act", "mass"):
            raise InvalidInputError(
                f"A process needs a unique name, got {name!r}. The names qpos, qvel, "
                "act and mass are reserved.",
                name="name",
            )
        self.name = name
        what = f"initial of process {name!r}"
        self.initial = check_finite(numbers(initial, what), what, after="")
        has_shape(what, self.initial, ("width",), ("num_envs", "width"))
        if not self.initial.numel():
            raise ShapeError(
                f"{what} is empty.", name="initial", shape=self.initial.shape
            )
        self.parameters = Parameters(f"process {name!r}")
        """Its parameters by name: one row for every world, once it is added."""

    _sim: SteppingHost | None = None

    _value: Tensor | None = None

    @property
    def value(self) -> Tensor:
        """The current value, float64; shape (num_envs, width). Assigning copies."""
        if self._value is None:
            raise self._not_added()
        return self._value

    @value.setter
    def value(self, values: Tensor | float) -> None:
        self.value[:] = values

    def _not_added(self) -> InvalidInputError:
        return InvalidInputError(
            f"Process {self.name!r} has not been added to a simulation: call "
            "sim.add_process(…) first.",
            name=self.name,
        )

    @abstractmethod
    def rate(self, t: Tensor, sim: Any) -> Tensor:
        """Return the drift at the current time and state; shape (num_envs, width)."""

    def diffusion(self, t: Tensor, sim: Any) -> Mapping[str, Tensor]:
        """Return the effect of the process's noise; by default none."""
        del t, sim
        return {}

    def attach(self, sim: SteppingHost) -> None:
        """Create the value for the worlds of a simulation."""
        if self._sim is not None and self._sim is not sim:
            raise InvalidInputError(
                f"Process {self.name!r} already belongs to another simulation: create "
                "one for each.",
                name=self.name,
            )
        width = self.initial.shape[-1]
        try:
            initial = self.initial.expand(sim.num_envs, width)
        except RuntimeError:
            raise ShapeError(
                f"The initial value of process {self.name!r} has "
                f"{self.initial.shape[0]} rows, the simulation {sim.num_envs} worlds: "
                "give one row, or one for each world.",
                name="initial",
                shape=self.initial.shape,
            ) from None
        self.parameters.attach(sim)
        slot = worlds_of(sim).ledger.memory(
            f"process/{self.name}", (width,), torch.float64, reset=initial.clone(),
            kind="state", stage=Stage.ACCELERATION, moves=True, optional=True,
        )  # fmt: skip
        assert slot.initial is not None
        self.initial = slot.initial
        self._value = slot.tensor
        self._sim = sim

    def _declare(self, name: str, values: Numbers, **limits: Any) -> None:
        """Declare a parameter for each component; a single number is for all."""
        width, given = self.initial.shape[-1], numbers(values, name)
        given = given.expand(width) if given.ndim == 0 else given
        self.parameters.declare(name, given, width, **limits)

    def block(self, stages: Stages) -> FlatState:
        """Return the block of the state, for the stages of a scheme."""
        from simstate.step.flat_state import FlatState  # loads Warp

        return FlatState(self.name, self.value.data, self.checked_rate, stages)

    def checked_rate(self) -> Tensor:
        """Return the checked rate at the current time and state."""
        sim = self._sim
        if sim is None:
            raise self._not_added()
        rate = self.rate(worlds_of(sim).engine.field("time"), sim)
        has_shape(f"The rate of process {self.name!r}", rate, tuple(self.value.shape))
        rate = torch.as_tensor(rate, device=self.value.device)
        bad = ~rate.isfinite().all(dim=1)
        if bool(bad.any()):
            # Worlds that have diverged are detected at the end of the step.
            bad &= finite_worlds(worlds_of(sim).ledger)
            if bool(bad.any()):
                raise InvalidInputError(
                    f"The rate of process {self.name!r} is not finite, first in world "
                    f"{int(bad.nonzero()[0])}. The state before the step was restored.",
                    name=self.name,
                    worlds=int_list(bad.nonzero()[:, 0]),
                )
        return rate


class OrnsteinUhlenbeck(Process):
    """The process dx = (mean − x) / τ dt + σ dW, with σ = std · √(2/τ).

    Its stationary standard deviation is `std`, its correlation exp(−|Δt|/τ). It models
    gusts, disturbance torques and sensor drifts. Each component has a separate source.

    Args:
        name: the name of the process.
        initial: the value at reset; shape (width,) or (num_envs, width).
        time_constant: τ [s], > 0; a number, (width,) or (num_envs, width).
        std: the stationary standard deviation, > 0, likewise.
        mean: the stationary mean, likewise.
    """

    def __init__(
        self,
        name: str,
        initial: Values,
        time_constant: Numbers,
        std: Numbers,
        mean: Numbers = 0.0,
    ) -> None:
        super().__init__(name, initial)
        self._declare("time_constant", time_constant, more_than=0, unit="s")
        self._declare("std", std, more_than=0)
        self._declare("mean", mean)
        self.num_sources = self.initial.shape[-1]

    def rate(self, t: Tensor, sim: Any) -> Tensor:
        """Return the drift towards the mean; shape (num_envs, width)."""
        del t, sim
        given = self.parameters
        return (given["mean"] - self.value) / given["time_constant"]

    def diffusion(self, t: Tensor, sim: Any) -> Mapping[str, Tensor]:
        """Return a constant for each component: the noise is additive."""
        del t, sim
        given = self.parameters
        sigma = given["std"] * (2.0 / given["time_constant"]) ** 0.5
        return {self.name: torch.diag_embed(sigma)}  # source k acts on component k


class GeometricBrownian(Process):
    """The process dx = drift · x dt + volatility · x dW (Itô), a source per component.

    Args:
        name: the name of the process.
        initial: the value at reset; shape (width,) or (num_envs, width).
        drift: [1/s]; a number, (width,) or (num_envs, width).
        volatility: [1/√s], > 0, likewise.
    """

    def __init__(
        self, name: str, initial: Values, drift: Numbers, volatility: Numbers
    ) -> None:
        super().__init__(name, initial)
        self._declare("drift", drift)
        self._declare("volatility", volatility, more_than=0)
        self.num_sources = self.initial.shape[-1]

    def rate(self, t: Tensor, sim: Any) -> Tensor:
        """Return the drift in the scheme's calculus; shape (num_envs, width)."""
        del t
        integration = sim.integration
        scheme = None if integration is None else integration.scheme
        drift = self.parameters["drift"]
        if getattr(scheme, "calculus", "Itô") == "Stratonovich":
            # the same process in the other calculus
            drift = drift - self.parameters["volatility"] ** 2 / 2
        return drift * self.value

    def diffusion(self, t: Tensor, sim: Any) -> Mapping[str, Tensor]:
        """Return values proportional to the state: the noise is multiplicative."""
        del t, sim
        return {self.name: torch.diag_embed(self.parameters["volatility"] * self.value)}
