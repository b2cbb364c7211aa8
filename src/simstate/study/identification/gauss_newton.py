"""Gauss-Newton: find the parameters and initial states with the smallest residuals.

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
"""Maximum number of fits until the noise and the weights converge."""
_POLISHES = 2
"""Maximum number of further fits if one with earlier derivatives ended too soon."""
_SPREAD = 2.0
"""Distance at which jumps of predictions are searched, in the deviations of a fit."""
_FAR = 0.1
"""Limit of this distance, in the scales of parameters, for poorly known parameters."""
_OUTLIER = 3.5
"""Residuals above this multiple of the noise are outliers."""
_REWEIGHTED = 1.15
"""Changes of the noise by more than this factor require another fit."""
_ENOUGH = 1e-4
"""Reduction of half the sum of squared residuals, in units of the noise, below which an
iteration is the last: far below the uncertainty of the estimates."""

_PART = 1e-7
"""The same as a fraction of that sum."""


class _Converged(Exception):  # noqa: N818 (no error)
    """Stops the minimiser, which has no test of the reduction."""


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
    """Factors on the noise of rows that jump near the fit or are outliers; (rows,)."""


def minimise(
    problem: Residuals, start: Array, max_iterations: int, is_reweighted: bool = True
) -> Solution:
    """Return the best parameters and states.

    Args:
        problem: the residuals; their weights are changed.
        start: values of the parameters at which the fit starts.
        max_iterations: limit of each run of the minimiser.
        is_reweighted: True to estimate the noise of the outputs as well.
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
    x, jacobian = _polished(problem, x, max_iterations)
    return Solution(
        theta=problem.split(x)[0],
        residual=problem.residual(x),
        jacobian=jacobian,
        noise=problem.noise,
        predicted=problem.predicted(x),
        doubt=problem.doubt,
    )


def _polished(problem: Residuals, x: Array, max_iterations: int) -> tuple[Array, Array]:
    """Return the unknowns of a fit, and the Jacobian of the residuals at them.

    A fit that used derivatives of an earlier point may end before the minimum. It is
    continued while those at its own point predict a reduction.
    """
    if not problem.num_free:
        return x, np.zeros((0, 0))
    for _ in range(_POLISHES):
        residual = problem.residual(x)
        jacobian = problem.jacobian(x, residual, is_exact=True)
        least = max(_ENOUGH, _PART * 0.5 * float(residual @ residual))
        if _reduction(problem, x, jacobian) < least:
            return x, jacobian
        x = _optimised(problem, x, max_iterations)
    return x, problem.jacobian(x, problem.residual(x), is_exact=True)


def _reduction(problem: Residuals, x: Array, jacobian: Array) -> float:
    """Return the predicted reduction of half the sum of squared residuals.

    The prediction is linear; unknowns that are pushed against a bound stay there.
    """
    gradient = jacobian.T @ problem.residual(x)
    low, high = problem.limits(x)
    held = ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))
    free, gradient = jacobian[:, ~held], gradient[~held]
    move = np.linalg.pinv(free.T @ free, 1e-12, hermitian=True) @ gradient
    return float(0.5 * gradient @ move)


def _reweigh(problem: Residuals, x: Array) -> bool:
    """Update noise and weights from a fit; return True if they have converged."""
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
    omit the damping of such a servo) or a contact starts. Beyond a jump there may be a
    better minimum, which derivatives do not indicate. Jumps near a fit are therefore
    added to the noise of their rows, so that the other rows determine on which side of
    them the minimum is.
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
    """Return the noise of each component, estimated from its residuals."""
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

    The first fits have a looser tolerance, since others follow.
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
    part = _PART if problem.num_free else 1e-3

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
    """Return `mujoco.sysid`; raise if its requirements are not installed."""
    sysid = library("mujoco.sysid", "sysid", "Identifications")
    if not hasattr(sysid, "optimize"):
        raise InvalidInputError(
            "Identifications need the requirements of mujoco.sysid: pip install "
            "'simstate[sysid]'."
        )
    return sysid
