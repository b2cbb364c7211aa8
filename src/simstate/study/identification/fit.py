"""Fit: the result of an identification: estimates, model and distribution."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.checks import as_path
from simstate.base.errors import unknown_name, warn
from simstate.base.files import write_atomically
from simstate.study.identification.fitted_model import change_spec, mjcf_changes
from simstate.study.identification.fitted_parameters import FittedParameters
from simstate.study.identification.free_parameters import FreeParameter

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """One identified parameter."""

    name: str
    unit: str
    nominal: float
    """Value in the given model."""
    value: float
    """The estimate."""
    low: float
    high: float
    """Bounds of the confidence interval."""
    deviation: float
    """Standard deviation."""
    is_determined: bool
    """False if the log does not determine it, or only in combination with others."""
    is_at_bound: bool
    """True if it ended at one of its bounds."""


@dataclass(frozen=True)
class Misfit:
    """Root mean square difference between log and prediction of one column."""

    column: str
    unit: str
    nominal: float
    """With the parameters of the given model."""
    fitted: float
    """With the estimates."""


@dataclass(frozen=True)
class Fit:
    """Result of `identify`."""

    estimates: tuple[Estimate, ...]
    undetermined: tuple[str, ...]
    """Sentences about parameters that this log does not determine."""
    fitted: tuple[Misfit, ...]
    """Misfit of each column on the part that was fitted."""
    held_out: tuple[Misfit, ...]
    """Misfit of each column on the part that was held out."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """Assumptions about the log."""
    confidence: float
    distribution: FittedParameters
    model: mujoco.MjModel
    """The compiled scene with the estimates."""
    curves: Mapping[str, tuple[Array, Array, Array, Array]]
    """Time, log, nominal and fitted prediction of the held-out part, by column."""
    cpu_seconds: Mapping[str, float]
    """CPU time of writing "parameters", of "rollouts" and of "all" [s]."""

    def __getitem__(self, name: str) -> Estimate:
        """Return an estimate by its name."""
        for one in self.estimates:
            if one.name == name:
                return one
        raise unknown_name("estimate", name, [one.name for one in self.estimates])

    def __str__(self) -> str:
        share = f"{100 * self.confidence:g} %"
        lines = [
            f"{one.name}: {one.value:.5g}{_after(one.unit)} ({share}: {one.low:.5g} … "
            f"{one.high:.5g}; was {one.nominal:.5g})"
            for one in self.estimates
        ]
        lines += [
            f"held out, {one.column}: {one.fitted:.3g} {one.unit} rms (was "
            f"{one.nominal:.3g})"
            for one in self.held_out
        ]
        lines += [f"Not determined: {text}" for text in self.undetermined]
        return "\n".join([*lines, *(f"Warning: {text}" for text in self.warnings)])

    def to_json(self) -> dict[str, Any]:
        """Return the result, including the distribution, as data for JSON."""
        return {
            **self.distribution.to_json(),
            "confidence": self.confidence,
            "estimates": [asdict(one) for one in self.estimates],
            "undetermined": list(self.undetermined),
            "fitted": [asdict(one) for one in self.fitted],
            "held_out": [asdict(one) for one in self.held_out],
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> None:
        """Write the result as JSON, which `--parameters` of commands reads."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False)
        write_atomically(as_path("path", path), text.encode())

    def mjcf_changes(self) -> list[str]:
        """Return the changes of the model as MJCF elements with their attributes."""
        return mjcf_changes(self.model, self.distribution.parameters)

    def change_spec(self, spec: mujoco.MjSpec) -> None:
        """Write the estimates into a model's specification, by element names."""
        change_spec(spec, self.model, self.distribution.parameters)


def _after(unit: str) -> str:
    """Return a unit as it follows a number."""
    return "" if unit == "1" else f" {unit}"


def warn_of_bounds(
    parameters: Sequence[FreeParameter], estimates: Sequence[Estimate]
) -> list[str]:
    """Return and issue a warning for each estimate that is at its bound."""
    found = [
        f"{one.name} ended at its bound {one.value:.5g}{_after(one.unit)}: widen its "
        f"bounds ('{parameter.item} LOW .. HIGH'), unless the model lacks an effect."
        for parameter, one in zip(parameters, estimates, strict=True)
        if one.is_at_bound
    ]
    for text in found:
        warn(text)
    return found
