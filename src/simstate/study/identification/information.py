"""Information: uncertainty of parameters, and sentences on undetermined ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simstate.base.extras import library
from simstate.study.identification.free_parameters import FreeParameter

Array = NDArray[np.float64]

UNKNOWN = 0.5
"""A direction is undetermined if its deviation exceeds this fraction of the parameter's
size: the log then adds little to a guess."""
_PART = 0.2
"""Parameters with a smaller component along a direction are not named."""


@dataclass(frozen=True)
class Information:
    """Covariance of the parameters, and the combinations without information."""

    covariance: Array
    """Shape (parameters, parameters); large for undetermined parameters."""
    widths: Array
    """Half-widths of the confidence intervals."""
    unknown: tuple[str, ...]
    """Sentences about parameters that the log does not determine."""
    is_known: NDArray[np.bool_]
    """False for parameters that are part of an undetermined combination."""


def information(
    parameters: Sequence[FreeParameter],
    theta: Array,
    residual: Array,
    jacobian: Array,
    confidence: float,
) -> Information:
    """Return the information of residuals and their Jacobian on parameters.

    Args:
        parameters: the free parameters, which are the first columns.
        theta: their values.
        residual: residuals divided by their noise.
        jacobian: by the parameters in their scales, then by nuisance values.
        confidence: probability that an interval contains the true value.
    """
    count = len(parameters)
    sizes = np.array(
        [
            max(abs(value), one.scale) if _is_factor(one) else one.scale
            for one, value in zip(parameters, theta, strict=True)
        ]
    )
    scales = np.array([one.scale for one in parameters])
    relative = reduced(jacobian, count) * np.outer(sizes / scales, sizes / scales)
    freedom = max(len(residual) - jacobian.shape[1], 1)
    variance = max(float(residual @ residual) / freedom, 1e-12)
    special = library("scipy.special", "sysid", "Confidence intervals")
    factor = float(special.stdtrit(freedom, 0.5 + confidence / 2))
    values, vectors = np.linalg.eigh((relative + relative.T) / 2)
    floor = 1e-12 * max(float(values.max(initial=0.0)), 1e-30)
    deviations = np.sqrt(variance / np.maximum(values, floor))
    covariance = (vectors * deviations**2) @ vectors.T * np.outer(sizes, sizes)
    weak = vectors[:, deviations > UNKNOWN]
    shares = np.sqrt((weak**2).sum(axis=1))
    alone = [k for k in range(count) if shares[k] > 0.98]
    sentences = [
        f"{parameters[k].name}: this log has no information on it." for k in alone
    ]
    sentences += _combinations(parameters, weak, alone)
    return Information(
        covariance=covariance,
        widths=factor * np.sqrt(np.diag(covariance)),
        unknown=tuple(sentences),
        is_known=shares < _PART,
    )


def reduced(jacobian: Array, count: int) -> Array:
    """Return the information on the first `count` columns if the others are unknown."""
    norms = np.linalg.norm(jacobian, axis=0)
    norms[norms == 0] = 1.0
    unit = jacobian / norms
    first, rest = unit[:, :count], unit[:, count:]
    cross = rest.T @ first
    values, vectors = np.linalg.eigh(rest.T @ rest)
    good = values > 1e-10 * max(float(values.max(initial=0.0)), 1e-30)
    part = vectors[:, good].T @ cross
    found = first.T @ first - part.T @ (part / values[good][:, None])
    return found * np.outer(norms[:count], norms[:count])


def _is_factor(parameter: FreeParameter) -> bool:
    """Return True if a parameter is positive, so that its ratios are meaningful."""
    return parameter.kind == "field" and parameter.attribute != "com"


def _combinations(
    parameters: Sequence[FreeParameter], weak: Array, alone: Sequence[int]
) -> list[str]:
    """Return sentences about undetermined directions of several parameters."""
    rest = weak.copy()
    rest[list(alone)] = 0.0
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    found: list[str] = []
    for direction, size in zip(left.T, sizes, strict=True):
        if size < 0.5:
            continue
        is_named = np.abs(direction) > _PART * np.abs(direction).max()
        named = [one for one, yes in zip(parameters, is_named, strict=True) if yes]
        found.append(_sentence(named, direction[is_named]))
    return found


def _sentence(parameters: Sequence[FreeParameter], direction: Array) -> str:
    names = [one.name for one in parameters]
    if len(names) == 1:
        return f"{names[0]}: this log has hardly any information on it."
    listing = f"{', '.join(names[:-1])} and {names[-1]}"
    if len(names) > 2:
        return f"{listing}: only in combination."
    balance = abs(direction[0] / direction[1])
    opposed = direction[0] * direction[1] < 0
    if {one.unit for one in parameters} == {parameters[0].unit}:
        return f"{listing}: only as a {'sum' if opposed else 'difference'}."
    if all(_is_factor(one) for one in parameters) and 0.6 < balance < 1.7:
        return f"{listing}: only as a {'product' if opposed else 'ratio'}."
    return f"{listing}: only in combination."
