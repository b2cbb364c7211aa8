"""Gravity that Python evaluates at points which the compiled core chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import has_shape
from simstate.engine import core
from simstate.step.forces.compiled_force import CompiledForce, SampledField


class SampledGravity:
    """The call that computes accelerations for the core; see `core.FieldSamples`.

    One call of the field's `acceleration` evaluates all points.
    """

    def __init__(self, source: SampledField, samples: core.FieldSamples) -> None:
        self._source = source
        self.samples = samples
        """The points, and the accelerations there; shape (num_envs, k, 3) each."""
        self._points = torch.from_numpy(samples.points)  # pyright: ignore[reportUnknownMemberType]
        self.__qualname__ = type(source).__name__

    @classmethod
    def of(cls, force: CompiledForce, num_envs: int) -> SampledGravity | None:
        """Return the call of a force; None if it has no sampled field."""
        if force.sampled is None or force.table is None:
            return None
        framed, turns = force.frame is not None, bool(force.table[0])
        samples = core.FieldSamples.of(num_envs, len(force.bodies), framed, turns)
        return cls(force.sampled, samples)

    def __call__(self, t: Tensor, sim: Any) -> None:
        """Evaluate the field at the points."""
        del sim
        points = self._points.clone()  # a copy, which the field may keep
        found = self._source.acceleration(t, points)
        if found.shape != points.shape:
            what = f"The acceleration of {self.__qualname__}"
            has_shape(what, found, tuple(points.shape))
        np.copyto(self.samples.values, found.detach().numpy())

    def infinite_worlds(self) -> Tensor:
        """Return the mask of worlds with a value that is not finite; (num_envs,)."""
        good = np.isfinite(self.samples.values).all(axis=(1, 2))
        return torch.from_numpy(~good)  # pyright: ignore[reportUnknownMemberType]
