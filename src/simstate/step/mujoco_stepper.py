"""MuJoCo's own steps."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.engine import Seen, Stage
from simstate.step.divergence import Divergence
from simstate.step.forcing import Forcing
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds


class MujocoStepper:
    """Advances worlds by the engine's own step, over which loads are held.

    Every stage is current afterwards: positions and velocities are those of the new
    state, accelerations those of the last evaluation, as after mj_step.
    """

    scope: Scope = "step"
    current_through = Stage.CONSTANT
    can_cut = True
    chooses_steps = False
    has_dense_output = False
    evaluations: Tensor | None = None

    def __init__(
        self, worlds: Worlds, forcing: Forcing, divergence: Divergence
    ) -> None:
        self._worlds = worlds
        self._engine = worlds.engine
        self._fresh = worlds.fresh
        self._forcing = forcing
        self._divergence = divergence
        self._bad: Tensor | None = None

    @property
    def settles(self) -> bool:
        """True without force models: the engine then takes all n steps in one call."""
        return not self._forcing.models

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; None: all. Return flags of `Seen`."""
        if self._forcing.models:
            return self._advance_with_held_loads(n, rows)
        seen = self._engine.step(n, rows, self._divergence.settle)
        self._fresh.mark_current(Stage.ACCELERATION, rows, evaluated=False)
        return seen

    def _advance_with_held_loads(self, n: int, rows: Tensor | None) -> int:
        """Evaluate the force models once for each time step."""
        engine, bad = self._engine, None
        engine.begin_step()
        for _ in range(n):
            self._forcing.with_loads(lambda: engine.advance(1, rows))
            self._fresh.mark_current(Stage.ACCELERATION, rows, evaluated=False)
            found = engine.find_bad()
            if found is not None:
                bad = found if bad is None else bad | found
        self._bad = bad
        return engine.seen() | (Seen.BAD if bad is not None else 0)

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the worlds of a mask by `limit` [s], with constant loads."""
        rows = going.nonzero().flatten()
        self.move(limit[rows], rows)
        return torch.where(going, limit, 0.0), torch.zeros_like(going)

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Advance each of these worlds by exactly h [s]; shape (n,).

        The time step is a parameter of the worlds. If the step is interrupted, the call
        that it is part of restores it: `Timeline` has the scope "run".
        """
        size = self._worlds.parameters.expand("opt.timestep").data
        own = size.clone()
        size[rows] = h.to(size.dtype).view(-1, *[1] * (size.ndim - 1))
        self._forcing.with_loads(lambda: self._engine.advance(1, rows))
        size.copy_(own)

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        size = self._worlds.parameters.expand("opt.timestep")
        return size.double().reshape(-1).clone()

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that diverged in the last step, or None."""
        return self._bad if self._forcing.models else self._engine.find_bad()
