"""SamplingPlanner: planners that compare the futures of random controls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import check_called_as, number, one_of, whole_number
from simstate.base.errors import InvalidInputError
from simstate.study.future_worlds import Cost, futures
from simstate.study.planners.control_space import Bounds, ControlSpace
from simstate.study.planners.spline import Interpolation, spline_weights
from simstate.study.scratch_worlds import Make, first_world, sim_of


class SamplingPlanner(ABC):
    """Draws controls as splines around the best known ones and compares their costs.

    Each world has a separate plan, which is shifted by the elapsed time and then the
    start of the next one. A world that was reset starts with its current controls. The
    noise of a world is seeded with `[seed, decision, iteration, world]`, so that a plan
    does not depend on the other worlds.

    Args:
        horizon: number of controls of a plan.
        cost: a function of the simulation, (num_envs,), whose sum over the horizon is
            minimised; None: minus the reward of an environment.
        samples: number of futures of each world in each iteration.
        knots: number of points of the spline.
        hold: time steps for which a simulation holds each control; 1 for environments.
        noise: standard deviation of the knots, as a fraction of half the control range.
        iterations: number of times that futures are run for one plan.
        interpolation: kind of spline between the knots.
        bounds: minimum and maximum controls; None: the actuators' ranges, or −1 and 1
            for an environment.
        seed: seed of all noise.
        make: builds scratch worlds; see `study.futures`.
    """

    def __init__(
        self,
        horizon: int,
        *,
        cost: Cost | None = None,
        samples: int = 64,
        knots: int = 6,
        hold: int = 1,
        noise: float = 0.3,
        iterations: int = 1,
        interpolation: Interpolation = "linear",
        bounds: Bounds | None = None,
        seed: int = 0,
        make: Make | None = None,
    ) -> None:
        self.horizon = whole_number("horizon", horizon, 1)
        self.samples = whole_number("samples", samples, 2)
        self.knots = whole_number("knots", knots, 1, self.horizon)
        self.hold = whole_number("hold", hold, 1)
        self.noise = number("noise", noise, more_than=0)
        self.iterations = whole_number("iterations", iterations, 1)
        one_of("interpolation", interpolation, ("zero", "linear", "cubic"))
        self.interpolation: Interpolation = interpolation
        if cost is not None:
            check_called_as("cost", cost, "sim", name="cost")
        self.cost, self.bounds, self.make = cost, bounds, make
        self.seed = whole_number("seed", seed, 0)
        self.decision = 0
        """Number of plans so far, which is part of the seed of the next one."""
        self.best: Tensor | None = None
        """Minimum cost of the last futures of each world; (num_envs,)."""
        self._mean: Tensor | None = None
        self._time: Tensor | None = None
        spacing = max(1, self.knots - 1) / max(1, self.horizon - 1)
        self._times = torch.arange(self.horizon, dtype=torch.float64) * spacing
        self._weights = spline_weights(self._times, self.knots, self.interpolation)
        self._spacing = spacing

    @abstractmethod
    def update(
        self, knots: Tensor, cost: Tensor, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the next mean and spread of each world's knots.

        Args:
            knots: the sampled knots; shape (N, K, knots, width). The first sample is
                the mean that they were drawn around.
            cost: their costs; infinite where a future diverged; shape (N, K).
            spread: standard deviation of the samples; (N, knots, width).

        Returns:
            mean and spread; shape (N, knots, width) each.
        """

    def plan(self, target: Any) -> Tensor:
        """Return controls of each world that lower the cost; the worlds are unchanged.

        Returns:
            one control per time step of a simulation, (num_envs, horizon × hold, nu),
            or one action per step of an environment, (num_envs, horizon, action_dim).
        """
        space = ControlSpace(target, self.bounds)
        if self.cost is None and not space.is_env:
            raise InvalidInputError(
                "A plan for a Simulation needs a cost: give the planner cost=function "
                "of sim, shape (num_envs,). Only an Env has a reward.",
                name="cost",
            )
        hold = 1 if space.is_env else self.hold
        low, high = space.low[:, None], space.high[:, None]
        mean = self._shifted(target, space, hold).clamp(low, high)
        spread = ((high - low) / 2 * self.noise).expand_as(mean)
        weights = self._weights.to(mean.device)
        for iteration in range(self.iterations):
            noise = self._draw(target, mean.shape, iteration)
            knots = mean[:, None] + spread[:, None] * noise.to(mean.device)
            knots = knots.clamp(low[:, None], high[:, None])
            knots[:, 0] = mean
            controls = (weights @ knots).repeat_interleave(hold, dim=2)
            found = futures(
                target, controls, cost=self.cost, every=hold, make=self.make
            )
            self.best = found.cost.amin(dim=1)
            new, spread = self.update(knots, found.cost, spread)
            is_usable = self.best.isfinite()[:, None, None]  # else all futures diverged
            mean = torch.where(is_usable, new, mean).clamp(low, high)
        self.decision += 1
        self._mean, self._time = mean, sim_of(target).time.double().clone()
        return (weights @ mean).repeat_interleave(hold, dim=1)

    def reset(self) -> None:
        """Discard the last plan: the next one starts with the current controls."""
        self._mean = self._time = self.best = None
        self.decision = 0

    def _shifted(self, target: Any, space: ControlSpace, hold: int) -> Tensor:
        """Return the last plan, shifted to the current time; (N, knots, width)."""
        start = space.now(target)[:, None].expand(-1, self.knots, -1)
        if self._mean is None or self._time is None or self._mean.shape != start.shape:
            return start
        passed = sim_of(target).time.double() - self._time
        steps = (passed / (space.step_dt * hold)).round().cpu()
        at = torch.arange(self.knots) + steps[:, None] * self._spacing
        weights = spline_weights(at.double(), self.knots, self.interpolation)
        shifted = weights.to(start.device) @ self._mean
        return torch.where((passed >= 0)[:, None, None], shifted, start)

    def _draw(self, target: Any, shape: torch.Size, iteration: int) -> Tensor:
        """Return standard normal noise of each world; (N, samples, knots, width)."""
        count, *rest = shape
        first = first_world(target)
        drawn = np.empty((count, self.samples, *rest))
        for world in range(count):
            key = [self.seed, self.decision, iteration, first + world]
            drawn[world] = np.random.default_rng(key).standard_normal(drawn.shape[1:])
        return torch.from_numpy(drawn)  # pyright: ignore[reportUnknownMemberType]
