"""Fitted parameters: a joint distribution, and its samples in worlds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simstate.base.checks import as_path
from simstate.base.errors import InvalidInputError, unknown_name, warn
from simstate.base.ids import Ids
from simstate.simulation import Simulation
from simstate.study.dispersions.distributions import Distribution, normal
from simstate.study.dispersions.study import Study
from simstate.study.identification.free_parameters import (
    FreeParameter,
    element_names,
    model_writes,
)

Array = NDArray[np.float64]

FORMAT = "simstate parameters 1"
DRAW = "parameters"
"""Name of the draw of a dispersion study."""


@dataclass(frozen=True)
class FittedParameters:
    """A joint normal distribution of parameters, clipped to their bounds.

    `simstate train --parameters fit.json` and `simstate dispersions --parameters
    fit.json` draw a sample for each world.
    """

    parameters: tuple[FreeParameter, ...]
    mean: Array
    """Mean of each parameter in its unit; shape (parameters,)."""
    covariance: Array
    """Covariance of the parameters; shape (parameters, parameters)."""

    def draws(self) -> dict[str, Distribution]:
        """Return the distribution as a draw "parameters" of a dispersion study."""
        return {DRAW: normal(self.mean, cov=self._safe_covariance())}

    def sample(self, normals: Tensor) -> Tensor:
        """Return values within the bounds from standard normals; (n, parameters)."""
        root = np.linalg.cholesky(self._safe_covariance())
        drawn = torch.as_tensor(self.mean) + normals.double() @ torch.as_tensor(root).T
        return self.within_bounds(drawn)

    def within_bounds(self, values: Tensor) -> Tensor:
        """Return values clipped to the bounds."""
        low = torch.tensor([one.low for one in self.parameters], dtype=torch.float64)
        high = torch.tensor([one.high for one in self.parameters], dtype=torch.float64)
        return torch.minimum(torch.maximum(values.double(), low), high)

    def write(self, sim: Simulation, values: Tensor, env_ids: Ids = None) -> list[str]:
        """Write values (n, parameters) into worlds; return the names not written.

        A delay is written to actuators whose history is long enough for it.
        """
        missing: list[str] = []
        changes: dict[str, Tensor] = {}
        chosen = slice(None) if env_ids is None else env_ids
        values = self.within_bounds(values)
        for p, one in enumerate(self.parameters):
            if one.kind == "delay" and _has_delay(sim.model, one.high):
                every = values[:, p : p + 1].expand(-1, sim.model.nactuator)
                every = every.to(sim.device, sim.dtype)
                sim.write_parameter("actuator_delay", every, None, env_ids)
            elif not one.targets:
                missing.append(one.name)
        mine = [(one, resolved(sim.model, one)) for one in self.parameters]
        for field, index, column in model_writes(sim.model, mine, values.numpy()):
            if field not in changes:
                changes[field] = sim.expand(field)[chosen].clone()
            rows = torch.as_tensor(column).to(sim.device, sim.dtype)
            changes[field][(slice(None), *index)] = rows
        for field, rows in changes.items():  # one moment of inertia alone is invalid
            sim.write_parameter(field, rows, None, env_ids)
        return missing

    def scatter(self, study: Study) -> Study:
        """Return a dispersion study whose worlds also draw these parameters."""
        inner = study.make

        def make(draws: Mapping[str, Tensor], **options: Any) -> Any:
            rest = {name: x for name, x in draws.items() if name != DRAW}
            sim = inner(rest, **options)
            missing = self.write(getattr(sim, "sim", sim), draws[DRAW])
            if missing:
                warn(
                    f"The study's model does not have {', '.join(missing)}, which was "
                    "not written."
                )
            return sim

        draws = {**study.draws, DRAW: self.draws()[DRAW]}
        return replace(study, make=make, draws=draws)

    def _safe_covariance(self) -> Array:
        """Return the covariance, no wider than the bounds and positive definite."""
        spans = np.array([one.high - one.low for one in self.parameters])
        deviations = np.sqrt(np.diag(self.covariance))
        shrink = np.minimum(1.0, spans / np.maximum(deviations, 1e-300))
        found = self.covariance * np.outer(shrink, shrink)
        return (found + found.T) / 2 + np.diag((1e-9 * spans) ** 2)

    def to_json(self) -> dict[str, Any]:
        """Return the distribution as data for JSON."""
        return {
            "format": FORMAT,
            "parameters": [asdict(one) for one in self.parameters],
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
        }

    @staticmethod
    def load(path: str | Path) -> FittedParameters:
        """Return the distribution in a file written by `Fit.save`."""
        path = as_path("path", path)
        try:
            content: Any = json.loads(path.read_text())
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']!r}")
            parameters = tuple(_parameter(one) for one in content["parameters"])
            mean = np.array(content["mean"], np.float64)
            covariance = np.array(content["covariance"], np.float64)
            size = len(parameters)
            if mean.shape != (size,) or covariance.shape != (size, size):
                raise ValueError("the sizes of mean and covariance differ")
            if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
                raise ValueError("values that are not finite")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(
                f"{str(path)!r} is not a file of fitted parameters, as written by "
                f"`simstate identify --out`: {error}.",
                name=str(path),
            ) from error
        return FittedParameters(parameters, mean, covariance)


def resolved(
    model: mujoco.MjModel, parameter: FreeParameter
) -> list[tuple[str, tuple[int, ...], float]]:
    """Return the targets of a parameter in another model.

    The element is found by its name, with or without the entity's prefix.
    """
    if not parameter.targets:
        return []
    kind, name = parameter.element
    known = element_names(model, kind)
    same = [k for k, n in enumerate(known) if n == name]
    short = name.rpartition("/")[2]
    same = same or [k for k, n in enumerate(known) if n.rpartition("/")[2] == short]
    if len(same) != 1:
        raise unknown_name(f"{kind} of a fitted parameter", name, known)
    element = same[0]
    if parameter.targets[0][0].startswith("dof_"):
        first = int(model.jnt_dofadr[element])
        return [
            (field, (first + i,), factor)
            for i, (field, _, factor) in enumerate(parameter.targets)
        ]
    return [
        (field, (element, *index[1:]), factor)
        for field, index, factor in parameter.targets
    ]


def _has_delay(model: mujoco.MjModel, delay: float) -> bool:
    """Return True if the history of all actuators covers a delay [s]."""
    history = getattr(model, "actuator_history", None)
    if history is None or not model.nu:
        return False
    return bool((history[:, 0] * model.opt.timestep >= delay).all())


def _parameter(content: Mapping[str, Any]) -> FreeParameter:
    targets = tuple(
        (str(f), tuple(map(int, i)), float(x)) for f, i, x in content["targets"]
    )
    kind, name = content["element"]
    return FreeParameter(
        str(content["name"]), content["kind"], str(content["unit"]),
        float(content["nominal"]),
        float(content["low"]), float(content["high"]), targets, (str(kind), str(name)),
        str(content["attribute"]), int(content["component"]),
    )  # fmt: skip
