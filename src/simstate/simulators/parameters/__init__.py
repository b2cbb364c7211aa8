"""Parameters of a model by name, in MuJoCo's frames: read, compare, overwrite.

Each kind of parameter has a function that reads it from a compiled model and one that
writes another simulator's value into a copy, which shows the effect of a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import mujoco
import numpy as np

from simstate.base.errors import ModelError
from simstate.simulators.adapted_simulator import Array
from simstate.simulators.mjcf import plain_mjcf
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.parameters.kinds import KINDS, ParameterKind
from simstate.simulators.plain_model import plain_model

Parameters: TypeAlias = "Mapping[str, Mapping[str, Array]]"
"""Values by kind (a key of `KINDS`) and element. A simulator leaves out kinds that it
does not report, and elements that it does not support."""


@dataclass(frozen=True)
class ParameterDifference:
    """A parameter whose value differs between MuJoCo and another simulator."""

    kind: str
    element: str
    ours: tuple[float, ...]
    """MuJoCo's value, in the kind's unit."""
    theirs: tuple[float, ...]
    """The other simulator's."""
    unit: str
    dropped: bool
    """True if the other one does not support it."""

    @property
    def error(self) -> float:
        """Largest difference; infinite if one of the two is."""
        one, two = np.array(self.ours), np.array(self.theirs)
        apart = np.subtract(one, two, out=np.zeros_like(one), where=one != two)
        return float(np.max(np.abs(apart)))

    @property
    def texts(self) -> tuple[str, str]:
        """The two values as text, without the unit."""
        kind = KINDS[self.kind]
        theirs = "none" if self.dropped else kind.text(self.theirs)
        return kind.text(self.ours), theirs

    def __str__(self) -> str:
        ours, theirs = self.texts
        unit = f" {self.unit}" if self.unit and not self.dropped else ""
        return f"{self.kind} of {self.element}: {ours} in MuJoCo, {theirs}{unit} there"


def parameters_of(
    model: mujoco.MjModel, names: ModelNames | None = None
) -> dict[str, dict[str, Array]]:
    """Return all parameters of a compiled model, by its own names or by those given.

    Parameters that its flags disable have the value of unsupported ones.
    """
    names = ModelNames(model) if names is None else names
    model = plain_model(model)
    return {name: kind.read(model, names) for name, kind in KINDS.items()}


def compare_parameters(
    ours: Parameters, theirs: Parameters, tolerance: float
) -> list[ParameterDifference]:
    """Return the differences above `tolerance` × magnitude, by kind and element."""
    found: list[ParameterDifference] = []
    for name, values in ours.items():
        if name not in theirs:
            continue
        kind = KINDS[name]
        for element, value in values.items():
            other = theirs[name].get(element)
            dropped = other is None
            other = kind.unsupported(value) if other is None else other
            same = np.where(value == other, True, _near(value, other, tolerance))
            if not np.all(same):
                gone = dropped or bool(np.array_equal(other, kind.unsupported(value)))
                found.append(
                    ParameterDifference(
                        name, element, tuple(value), tuple(other), kind.unit, gone
                    )
                )
    return found


def _near(one: Array, two: Array, tolerance: float) -> Array:
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.max(np.abs(one[np.isfinite(one)]), initial=0.0), 1e-12)
        return np.abs(one - two) <= tolerance * size


def overwritten(
    model: mujoco.MjModel, differences: Sequence[ParameterDifference]
) -> mujoco.MjModel:
    """Return a new model in which the differing parameters have the other's values.

    It is recompiled, because MuJoCo derives constants from the compiled values.
    """
    edited = plain_model(model)
    names = ModelNames(edited)
    for difference in differences:
        kind: ParameterKind = KINDS[difference.kind]
        kind.write(edited, names, difference.element, np.array(difference.theirs))
    return recompiled(edited)


def recompiled(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model recompiled from its present values.

    A model that plain MJCF cannot represent, or that MuJoCo rejects, raises ModelError.
    """
    with TemporaryDirectory() as folder:
        text = plain_mjcf(model, Path(folder), everything=True).text
        try:
            again = mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise ModelError(
                f"MuJoCo rejects the other simulator's values: {error}",
                name="model",
            ) from error
    for size in (
        "nq", "nv", "nu", "na", "nbody", "ntendon", "neq", "npair", "nhfield", "nflex",
    ):  # fmt: skip
        if getattr(again, size) != getattr(model, size):
            raise ModelError(
                f"Plain MJCF does not represent this model: {size} is "
                f"{getattr(again, size)} instead of {getattr(model, size)}.",
                name=size,
            )
    return again
