"""Gauss-Newton: the parameters and initial states with the smallest residuals.

The minimiser is that of `mujoco.sysid`, `mujoco.minimize.least_squares`.
`mujoco.sysid.optimize` itself is not called, because it prints every iteration and has
no test of the reduction: near the noise it continues for dozens of rollouts.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.base.extras import library
from simstate.study.identification.prediction import Predicted
from simstate.study.identification.residuals import Residuals

Array = NDArray[np.float64]

_TIGHT = (5.0, 0.5, 0.05)
"""Tolerances of the continuity of windows, in the noise of the state: loose first, so
that the states need not follow the parameters exactly while these are still wrong."""
_ROUNDS = 6
"""Limit of the fits that follow each other until noise and doubt stay."""
_SPREAD = 2.0
"""Distance at which jumps of predictions are sought, in the deviations of a fit."""
_FAR = 0.1
"""The same in the scales of parameters, where a fit knows little."""
_OUTLIER = 3.5
"""A larger residual, in units of the noise, is doubted."""
_REWEIGHTED = 1.15
"""Noise that turns out to differ by more than this factor is used in another fit."""
_ENOUGH = 1e-4
"""Reduction of half the sum of squared residuals, in units of the noise, below which an
iteration is the last: far less than the noise lets the estimates be known."""


class _Converged(Exception):  # noqa: N818 (no error)
    """Ends the minimiser, which has no test of the reduction."""


@dataclass
class Solution:
    """Parameters and states at which the residuals are smallest."""

    theta: Array
    residual: Array
    """Residuals divided by their noise; shape (rows,)."""
    jacobian: Array
    """Jacobian of the residuals by theta and by the tangents of all states."""
    noise: list[Array]
    """Noise of each output's components."""
    predicted: Predicted
    """Predictions; one column."""
    doubt: Array
    """Factors on the noise of rows that jump near the fit, or are outliers; (rows,)."""


def minimise(
    problem: Residuals, start: Array, max_iterations: int, is_reweighted: bool = True
) -> Solution:
    """Return the best parameters and states.

    Args:
        problem: the residuals; their weights are changed.
        start: values of the parameters at which the fit starts.
        max_iterations: limit of each run of the minimiser.
        is_reweighted: True to find the noise of the outputs on the way.
    """
    count = problem.num_free
    problem.start_at(start)
    x = np.zeros(problem.size)
    x[:count] = (start / problem.scales)[:count]
    if count:
        problem.predicted(x).check_finite(problem.windows)
    for tolerance in _TIGHT if problem.is_tied else _TIGHT[-1:]:
        problem.tolerance = tolerance
        x = _optimised(problem, x, max_iterations, is_first=is_reweighted)
    for _ in range(_ROUNDS if is_reweighted else 0):
        is_settled = _reweigh(problem, x)
        x = _optimised(problem, x, max_iterations)
        if is_settled:
            break
    residual = problem.residual(x)
    jacobian = np.zeros((0, 0))
    if count:
        jacobian = problem.jacobian(x, residual, is_exact=True)
    return Solution(
        theta=problem.split(x)[0],
        residual=residual,
        jacobian=jacobian,
        noise=problem.noise,
        predicted=problem.predicted(x),
        doubt=problem.doubt,
    )


def _reweigh(problem: Residuals, x: Array) -> bool:
    """Update noise and doubt by a fit; return True if they hardly change."""
    before = np.concatenate([*problem.noise, problem.doubt])
    noise = found_noise(problem, x)
    problem.weigh(noise, np.ones_like(problem.doubt))
    doubt = found_doubt(problem, x)
    problem.weigh(noise, doubt)
    ratio = np.concatenate([*noise, doubt]) / before
    return bool((np.abs(np.log(ratio)) < np.log(_REWEIGHTED)).all())


def found_doubt(problem: Residuals, x: Array) -> Array:
    """Return factors on the noise of rows that jump or are outliers; (rows,).

    Predictions jump where an actuator reaches its limit (MuJoCo's implicit integrators
    leave the damping of such a servo out) or a contact starts. Beyond a jump there may
    be another, better minimum, to which no derivative points. The jumps near a fit are
    therefore added to the noise of their rows: without them, the other rows lead to
    where the jumps are on the right side.
    """
    residual = problem.residual(x)
    jacobian = problem.jacobian(x, residual)
    sizes = np.linalg.norm(jacobian, axis=0)
    unit = jacobian / np.where(sizes > 0, sizes, 1.0)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    spread = _SPREAD / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    draws = np.random.default_rng(0).normal(size=(problem.num_columns, len(x)))
    moves = (draws * spread) @ vectors.T / np.where(sizes > 0, sizes, np.inf)
    moves = np.clip(moves, -_FAR, _FAR)
    moves = np.clip(x + moves, *problem.limits(x)) - x
    rows = problem.residuals(x + moves)
    jumps = rows - residual - moves @ jacobian.T
    jumps[~np.isfinite(jumps)] = 0.0
    outlier = np.maximum(np.abs(residual) / _OUTLIER, 1.0)
    return np.sqrt((jumps**2).mean(axis=0) + outlier**2)


def found_noise(problem: Residuals, x: Array) -> list[Array]:
    """Return the noise of each component by its residuals."""
    found: list[Array] = []
    at = 0
    windows = problem.windows
    for values, samples, signal in zip(
        problem.predicted(x).outputs,
        windows.samples,
        windows.signals[0].outputs,
        strict=True,
    ):
        misfit = values[0] - samples.values
        weight = 1 / problem.doubt[at : at + misfit.size].reshape(misfit.shape) ** 2
        at += misfit.size
        floor = 1e-6 * signal.column.values.std(axis=0) + 1e-12
        mean = (weight * misfit**2).sum(axis=0) / weight.sum(axis=0)
        found.append(np.maximum(np.sqrt(mean), floor))
    return found


def _optimised(
    problem: Residuals, x: Array, max_iterations: int, is_first: bool = False
) -> Array:
    """Minimise by MuJoCo's Gauss-Newton, in unknowns of unit scale.

    The first fits need not be exact: others follow.
    """
    if not len(x):
        return x
    minimize = library("mujoco.minimize", "sysid", "Identifications")
    best: list[Any] = [np.inf, x]

    def jacobian(z: Array, r: Array) -> Array:
        return problem.jacobian(np.ravel(z), np.ravel(r))

    def residual(z: Array) -> Array:
        found = problem.residual(np.ravel(z))
        size = float(found @ found)
        if size < best[0]:
            best[:] = size, np.ravel(z).copy()
        return found.reshape(-1, 1)

    enough = 1.0 if is_first else _ENOUGH
    part = 1e-7 if problem.num_free else 1e-3

    def stop(trace: list[Any]) -> None:
        last = trace[-1]
        few = [t.reduction < max(enough, part * t.objective) for t in trace[-2:]]
        if few[-1] and (last.regularizer < 1e-4 or few == [True, True]):
            raise _Converged

    with contextlib.suppress(_Converged):
        minimize.least_squares(
            x, residual, list(problem.limits(x)), jacobian, mu_min=1e-6, mu_max=1e4,
            mu_factor=4.0, xtol=1e-9, gtol=1e-9, max_iter=max_iterations,
            verbose=minimize.Verbosity.SILENT, iter_callback=stop, x_scale="jac",
        )  # fmt: skip
    return best[1]


def sysid_library() -> Any:
    """Return `mujoco.sysid`, if what it needs is installed."""
    sysid = library("mujoco.sysid", "sysid", "Identifications")
    if not hasattr(sysid, "optimize"):
        raise InvalidInputError(
            "Identifications need the requirements of mujoco.sysid: pip install "
            "'simstate[sysid]'."
        )
    return sysid
