"""The parameters of a model by name, in MuJoCo's frames: read, compared, overwritten.

Every kind of parameter says how it is read off a compiled model and how another
simulator's value is written into a copy, so that a difference can be tried out.
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
"""Values by kind and element, by the keys of `KINDS`. A kind that a simulator does not
report is left out; one that it lacks has the kind's value for nothing."""


@dataclass(frozen=True)
class ParameterDifference:
    """A parameter that two simulators have differently."""

    kind: str
    element: str
    ours: tuple[float, ...]
    """MuJoCo's value, in the kind's unit."""
    theirs: tuple[float, ...]
    """The other simulator's."""
    unit: str
    dropped: bool
    """True if the other one lacks it."""

    @property
    def error(self) -> float:
        """Largest difference; infinite if one of the two is."""
        one, two = np.array(self.ours), np.array(self.theirs)
        apart = np.subtract(one, two, out=np.zeros_like(one), where=one != two)
        return float(np.max(np.abs(apart)))

    @property
    def texts(self) -> tuple[str, str]:
        """The two values for a reader, without the unit."""
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
    """All parameters of a compiled model, by its own names or by those given.

    What its flags switch off has the value for nothing.
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
            other = kind.nothing(value) if other is None else other
            same = np.where(value == other, True, _near(value, other, tolerance))
            if not np.all(same):
                gone = dropped or bool(np.array_equal(other, kind.nothing(value)))
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
    """A new model in which the differing parameters have the other's values.

    It is compiled again, as MuJoCo's shortcuts hold for the values that were compiled.
    """
    edited = plain_model(model)
    names = ModelNames(edited)
    for difference in differences:
        kind: ParameterKind = KINDS[difference.kind]
        kind.write(edited, names, difference.element, np.array(difference.theirs))
    return recompiled(edited)


def recompiled(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model recompiled from its present values.

    What MJCF cannot say of it, or MuJoCo does not compile, raises ModelError.
    """
    with TemporaryDirectory() as folder:
        text = plain_mjcf(model, Path(folder), everything=True).text
        try:
            again = mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise ModelError(
                f"MuJoCo does not take the other simulator's values: {error}",
                name="model",
            ) from error
    for size in (
        "nq", "nv", "nu", "na", "nbody", "ntendon", "neq", "npair", "nhfield", "nflex",
    ):  # fmt: skip
        if getattr(again, size) != getattr(model, size):
            raise ModelError(
                f"Written as MJCF and compiled again, {size} is {getattr(again, size)} "
                f"and not {getattr(model, size)}: something of the model is lost.",
                name=size,
            )
    return again
