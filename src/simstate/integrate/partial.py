"""Parts of a step: what moves some worlds on by less than a time step.

One for each way of stepping: simstate's schemes with fixed and adaptive steps, those
with noise, and MuJoCo's own stepper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from simstate.errors import InvalidInputError

if TYPE_CHECKING:  # they load Warp
    from simstate.integrate.adaptive import AdaptiveStepper
    from simstate.integrate.integration import Integration
    from simstate.integrate.stepper import Stepper


class PartialSteps(Protocol):
    """Moves worlds on by parts of a step."""

    can_be_cut: bool
    """Whether a part may be shorter than a time step."""
    has_own_steps: bool
    """Whether the scheme chooses its steps, whatever the time step is."""
    evaluations: Tensor | None
    """The count of evaluations, if there is one; (num_envs,)."""

    @property
    def has_refreshed(self) -> bool:
        """Whether the last part left positions and velocities of its end current."""
        ...

    def timestep(self) -> Tensor:
        """The time step of each world [s], float64; (num_envs,)."""
        ...

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Move worlds on by at most `limit` [s], as far as one part may go.

        Returns how far they came, and the worlds that could not be moved; (num_envs,).
        """
        ...

    def exactly(self, h: Tensor, worlds: Tensor) -> None:
        """Move worlds on by h [s], no further than a part that went well; (n,)."""
        ...


class FixedParts:
    """Parts of the steps of a scheme with fixed steps."""

    can_be_cut = True
    has_own_steps = False

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.evaluations: Tensor | None = stepper.evaluations

    @property
    def has_refreshed(self) -> bool:
        """Whether the compiled core took the last part."""
        return self.stepper.has_refreshed

    def timestep(self) -> Tensor:
        """The time step of each world [s], float64; (num_envs,)."""
        return torch.full_like(self.stepper.stages.h, self.stepper.timestep)

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Move worlds on by `limit`; returns it, and those that ran out of mass."""
        h = torch.where(going, limit, 0.0)
        self.stepper.move(h, going.nonzero().flatten())
        empty = self.stepper.out_of_mass()
        return h, torch.zeros_like(going) if empty is None else empty & going

    def exactly(self, h: Tensor, worlds: Tensor) -> None:
        """Move worlds on by h [s]; (n,)."""
        steps = torch.zeros_like(self.stepper.stages.h)
        steps[worlds] = h
        self.stepper.move(steps, worlds)


class AdaptiveParts(FixedParts):
    """The steps of an adaptive scheme, each as long as the tolerances allow."""

    has_own_steps = True

    def __init__(self, stepper: AdaptiveStepper) -> None:
        super().__init__(stepper)
        self._adaptive = stepper

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step of each world that meets its tolerance."""
        return self._adaptive.attempt(limit, going)


class WholeParts(FixedParts):
    """Whole steps of a stochastic scheme: half of one would be of other noise."""

    can_be_cut = False

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Take one whole step."""
        whole = self.timestep()
        if bool((going & (limit < (1 - 1e-6) * whole)).any()):
            raise InvalidInputError(
                f"{self.stepper.scheme.name} takes whole time steps, since parts of "
                "one would have other noise: let tasks run at multiples of the time "
                f"step, {self.stepper.timestep:g} s."
            )
        return super().attempt(whole, going)


class MujocoParts:
    """Steps of MuJoCo's own stepper, with time steps of each world."""

    can_be_cut = True
    has_own_steps = False
    has_refreshed = False
    evaluations: Tensor | None = None

    def __init__(self, integration: Integration) -> None:
        self._integration = integration
        self._physics = integration.sim.internals
        self._size = self._physics.expand("opt.timestep")

    def timestep(self) -> Tensor:
        """The time step of each world [s], float64; (num_envs,)."""
        return self._size.double().reshape(-1).clone()

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Move worlds on by `limit`, with loads that are held meanwhile."""
        worlds = going.nonzero().flatten()
        self.exactly(limit[worlds], worlds)
        return torch.where(going, limit, 0.0), torch.zeros_like(going)

    def exactly(self, h: Tensor, worlds: Tensor) -> None:
        """Move worlds on by h [s]; (n,)."""
        engine, size = self._physics.engine, self._size.data
        own = size.clone()
        size[worlds] = h.to(size.dtype).view(-1, *[1] * (size.ndim - 1))
        try:
            self._integration.forces.with_loads(lambda: engine.advance(1, worlds))
        finally:
            size.copy_(own)
