"""Fitting: parameters and initial states of windows by Gauss-Newton.

The minimiser is that of `mujoco.sysid`, `mujoco.minimize.least_squares`. Residuals and
Jacobian are computed here, for two reasons. `mujoco.sysid` compiles a model for each
column of the Jacobian; here a column is a row of per-world parameters. It has a column
for each number, and the initial states of windows would be many; the state of a window
affects that window only, so that one component of all windows is perturbed in one
column. `mujoco.sysid.optimize` itself is not called, because it prints every iteration
and has no test of the reduction: near the noise it continues for dozens of rollouts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.base.extras import library
from simstate.scene.build import BuiltScene
from simstate.study.identification.free_parameters import FreeParameter
from simstate.study.identification.prediction import Costs, Predicted, Predictor
from simstate.study.identification.windows import (
    States,
    Windows,
    measured_states,
    state_noise,
)

Array = NDArray[np.float64]

STEP = 1e-5
"""Width of differences, in the scale of each parameter; of states in rad or m."""
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


_LINEAR = 0.1
"""Error of a residual, in units of the noise, up to which earlier derivatives serve."""


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
    costs: Costs


@dataclass(frozen=True)
class _Differences:
    """Predictions at a point and with each unknown displaced."""

    x: Array
    step: Array
    """Displacement of each column."""
    moves: Array
    """Tangents of the states in each column; shape (columns, windows, width)."""
    ahead: Predicted
    base: Predicted


class Problem:
    """Residuals of windows as a function of parameters and initial states.

    Args:
        scene: the compiled scene.
        windows: parts of the log.
        parameters: those that are free.
        start: values of the parameters at which the fit starts.
        are_states_free: False: the states of the log are taken as they are.
        is_continuous: True if a window ends where the next one starts.
        num_threads: threads of the simulation; None: all.
        are_parameters_fixed: True to fit the states only.
    """

    def __init__(
        self,
        scene: BuiltScene,
        windows: Windows,
        parameters: Sequence[FreeParameter],
        start: Array,
        are_states_free: bool,
        is_continuous: bool,
        num_threads: int | None,
        are_parameters_fixed: bool = False,
    ) -> None:
        self.windows, self.parameters = windows, list(parameters)
        self._start = start
        self._free = 0 if are_parameters_fixed else len(parameters)
        self.model = scene.model
        default = np.array(scene.default.qpos, np.float64)
        self.base = measured_states(windows, self.model, default)
        self._width = self.base.width if are_states_free else 0
        tied = windows.is_continued & is_continuous & are_states_free
        self._tied = np.flatnonzero(tied)
        self._bounds = (
            np.array([one.low for one in parameters]),
            np.array([one.high for one in parameters]),
        )
        self.scales = np.array([one.scale for one in parameters])
        self.noise = [one.noise() for one in windows.signals[0].outputs]
        self._tolerance = _TIGHT[-1]
        self._state_noise = state_noise(windows, self.model, self.noise)
        self._rows = sum(one.values.size for one in windows.samples)
        self._rows += len(self._tied) * self.base.width
        self._doubt = np.ones(self._rows)
        self.costs = Costs()
        make = (scene, windows, self.parameters)
        self._one = Predictor(*make, 1, num_threads, self.costs)
        columns = self._free + self._width
        self._many = Predictor(*make, max(columns, 1), num_threads, self.costs)
        # Other weights of the rows do not change the predictions at the same point.
        self._last: tuple[bytes, Predicted] | None = None
        self._near: _Differences | None = None

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self._free + self._width * len(self.windows)

    def minimise(self, max_iterations: int, is_reweighted: bool = True) -> Solution:
        """Return the best parameters and states.

        With `is_reweighted`, the noise of the outputs is found on the way.
        """
        x = np.zeros(self.size)
        x[: self._free] = (self._start / self.scales)[: self._free]
        if self._free:
            self.predicted(x).check_finite(self.windows)
        tolerances = _TIGHT
        for _ in range(_ROUNDS if is_reweighted else 1):
            self._state_noise = state_noise(self.windows, self.model, self.noise)
            for tolerance in tolerances if len(self._tied) else _TIGHT[-1:]:
                self._tolerance = tolerance
                x = self._optimised(x, max_iterations)
            tolerances = _TIGHT[-1:]
            if not is_reweighted or self._is_settled(x):
                break
        residual = self.residual(x)
        return Solution(
            theta=self._split(x)[0],
            residual=residual,
            jacobian=self.jacobian(x, residual) if self._free else np.zeros((0, 0)),
            noise=self.noise,
            predicted=self.predicted(x),
            costs=self.costs,
        )

    def _is_settled(self, x: Array) -> bool:
        """Update noise and doubt by a fit; return True if they hardly change."""
        before = np.concatenate([*self.noise, self._doubt])
        self.noise = self._found_noise(x)
        self._doubt = self._found_doubt(x)
        ratio = np.concatenate([*self.noise, self._doubt]) / before
        return bool((np.abs(np.log(ratio)) < np.log(_REWEIGHTED)).all())

    def _found_doubt(self, x: Array) -> Array:
        """Return factors on the noise of rows that jump or are outliers; (rows,).

        Predictions jump where an actuator reaches its limit (MuJoCo's implicit
        integrators leave the damping of such a servo out) or a contact starts. Beyond a
        jump there may be another, better minimum, to which no derivative points. The
        jumps near a fit are therefore added to the noise of their rows: without them,
        the other rows lead to where the jumps are on the right side.
        """
        self._doubt = np.ones(self._rows)
        residual = self.residual(x)
        jacobian = self.jacobian(x, residual)
        sizes = np.linalg.norm(jacobian, axis=0)
        unit = jacobian / np.where(sizes > 0, sizes, 1.0)
        values, vectors = np.linalg.eigh(unit.T @ unit)
        spread = _SPREAD / np.sqrt(np.maximum(values, 1e-12 * values.max()))
        draws = np.random.default_rng(0).normal(size=(self._many.columns, len(x)))
        moves = (draws * spread) @ vectors.T / np.where(sizes > 0, sizes, np.inf)
        moves = np.clip(moves, -_FAR, _FAR)
        inside = np.clip(x + moves, *self._limits(x))
        moves = inside - x
        parts = [self._split(x + move) for move in moves]
        thetas, tangents = (np.stack(one) for one in zip(*parts, strict=True))
        states = moved(self.model, self.base, tangents)
        rows = self._residuals(self._many.predict(thetas, states), tangents)
        jumps = rows - residual - moves @ jacobian.T
        jumps[~np.isfinite(jumps)] = 0.0
        outlier = np.maximum(np.abs(residual) / _OUTLIER, 1.0)
        return np.sqrt((jumps**2).mean(axis=0) + outlier**2)

    def _optimised(self, x: Array, max_iterations: int) -> Array:
        """Minimise by MuJoCo's Gauss-Newton, in unknowns of unit scale."""
        if not len(x):
            return x
        minimize = library("mujoco.minimize", "sysid", "Identifications")
        low, high = self._limits(x)
        best: list[Any] = [np.inf, x]

        def jacobian(z: Array, r: Array) -> Array:
            return self.jacobian(np.ravel(z), np.ravel(r))

        def residual(z: Array) -> Array:
            found = self.residual(np.ravel(z))
            size = float(found @ found)
            if size < best[0]:
                best[:] = size, np.ravel(z).copy()
            return found.reshape(-1, 1)

        enough = _ENOUGH if self._tolerance == _TIGHT[-1] else 1.0
        part = 1e-7 if self._free else 1e-3

        def stop(trace: list[Any]) -> None:
            last = trace[-1]
            if last.reduction < max(enough, part * last.objective) and (
                last.regularizer < 1e-4
            ):
                raise _Converged

        with contextlib.suppress(_Converged):
            minimize.least_squares(
                x, residual, [low, high],
                jacobian,
                mu_min=1e-6, mu_max=1e4, mu_factor=4.0, xtol=1e-9, gtol=1e-9,
                max_iter=max_iterations, verbose=minimize.Verbosity.SILENT,
                iter_callback=stop, x_scale="jac",
            )  # fmt: skip
        return best[1]

    def _limits(self, x: Array) -> tuple[Array, Array]:
        """Return bounds of the unknowns; those of states are far away."""
        states = x[self._free :]
        low, high = (ends[: self._free] for ends in self._bounds)
        scales = self.scales[: self._free]
        return np.append(low / scales, states - 1e6), np.append(
            high / scales, states + 1e6
        )

    def predicted(self, x: Array) -> Predicted:
        """Simulate all windows with one set of parameters and states."""
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            theta, tangents = self._split(x)
            states = moved(self.model, self.base, tangents[None])
            self._last = key, self._one.predict(theta[None], states)
        return self._last[1]

    def residual(self, x: Array) -> Array:
        """Return differences from the log, then of ends and starts of windows."""
        _, tangents = self._split(x)
        return self._residuals(self.predicted(x), tangents[None])[0]

    def jacobian(self, x: Array, residual: Array) -> Array:
        """Return the derivatives of all residuals by differences; (rows, size).

        Those of an earlier point are used again if they predict the residuals.
        """
        if self._near is not None:
            found, before = self._slopes(self._near)
            error = residual - before - found @ (x - self._near.x)
            if np.abs(error).max(initial=0.0) < _LINEAR:
                return found
        self._near = self._differences(x)
        return self._slopes(self._near)[0]

    def _differences(self, x: Array) -> _Differences:
        """Predict all windows with each unknown displaced."""
        theta, tangents = self._split(x)
        count, width = self._free, self._width
        step = np.full(count + width, STEP)
        high = np.array([one.high / one.scale for one in self.parameters[:count]])
        step[:count][x[:count] + STEP > high] = -STEP
        thetas = np.tile(theta, (count + width, 1))
        thetas[np.arange(count), np.arange(count)] += step[:count] * self.scales[:count]
        moves = np.tile(tangents, (count + width, 1, 1))
        moves[count + np.arange(width), :, np.arange(width)] += STEP
        states = moved(self.model, self.base, moves)
        ahead = self._many.predict(thetas, states)
        return _Differences(x.copy(), step, moves, ahead, self.predicted(x))

    def _slopes(self, at: _Differences) -> tuple[Array, Array]:
        """Return derivatives with the present weights, and the residuals there."""
        _, tangents = self._split(at.x)
        count, width = self._free, self._width
        residual = self._residuals(at.base, tangents[None])[0]
        rows = self._residuals(at.ahead, at.moves, fixed=tangents)
        slopes = (rows - residual) / at.step[:, None]
        slopes[~np.isfinite(slopes)] = 0.0
        found = np.zeros((len(residual), self.size))
        found[:, :count] = slopes[:count].T
        owner = self._row_windows()
        for w in range(len(self.windows) if width else 0):
            mine = owner == w
            first = count + w * width
            found[mine, first : first + width] = slopes[count:, mine].T
        self._add_starts(found, count)
        return found, residual

    # Parts of residuals.

    def _split(self, x: Array) -> tuple[Array, Array]:
        count = self._free
        tangents = x[count:].reshape(len(self.windows), self._width)
        if not self._width:
            tangents = np.zeros((len(self.windows), self.base.width))
        if not count:
            return self._start, tangents
        return np.clip(x[:count] * self.scales, *self._bounds), tangents

    def _residuals(
        self, predicted: Predicted, tangents: Array, fixed: Array | None = None
    ) -> Array:
        """Return rows of residuals of each column; shape (columns, rows).

        `fixed` are the tangents of the starts that the ends are compared with; None:
        those of the column.
        """
        parts = [
            ((values - samples.values) / noise).reshape(len(values), -1)
            for values, samples, noise in zip(
                predicted.outputs, self.windows.samples, self.noise, strict=True
            )
        ]
        if len(self._tied):
            starts = tangents if fixed is None else fixed[None]
            begin = moved(self.model, self.base, starts)
            gaps = differences(
                self.model,
                _rows(begin, self._tied + 1),
                _rows(predicted.ends, self._tied),
            )
            weight = self._tolerance * self._state_noise
            parts.append((gaps / weight).reshape(len(gaps), -1))
        return np.concatenate(parts, axis=1) / self._doubt

    def _row_windows(self) -> NDArray[np.intp]:
        """Return the window whose start each row depends on through the dynamics."""
        parts = [
            np.repeat(samples.window, samples.values.shape[1])
            for samples in self.windows.samples
        ]
        parts.append(np.repeat(self._tied, self.base.width))
        return np.concatenate(parts)

    def _add_starts(self, jacobian: Array, count: int) -> None:
        """Add the derivatives of continuity by the starts of the next windows."""
        width = self._width
        row = len(jacobian) - len(self._tied) * width
        for w in self._tied:
            first = count + (w + 1) * width
            block = np.arange(width)
            jacobian[row + block, first + block] -= 1 / (
                self._tolerance * self._state_noise * self._doubt[row + block]
            )
            row += width

    def _found_noise(self, x: Array) -> list[Array]:
        """Return the noise of each component by its residuals."""
        found: list[Array] = []
        at = 0
        outputs = self.predicted(x).outputs
        for values, samples, signal in zip(
            outputs, self.windows.samples, self.windows.signals[0].outputs, strict=True
        ):
            misfit = values[0] - samples.values
            weight = 1 / self._doubt[at : at + misfit.size].reshape(misfit.shape) ** 2
            at += misfit.size
            floor = 1e-6 * signal.column.values.std(axis=0) + 1e-12
            found.append(
                np.maximum(
                    np.sqrt((weight * misfit**2).sum(axis=0) / weight.sum(axis=0)),
                    floor,
                )
            )
        return found


def sysid_library() -> Any:
    """Return `mujoco.sysid`, if what it needs is installed."""
    sysid = library("mujoco.sysid", "sysid", "Identifications")
    if not hasattr(sysid, "optimize"):
        raise InvalidInputError(
            "Identifications need the requirements of mujoco.sysid: pip install "
            "'simstate[sysid]'."
        )
    return sysid


def _is_flat(model: mujoco.MjModel) -> bool:
    return model.nq == model.nv


def _rows(states: States, windows: NDArray[np.intp]) -> States:
    return States(
        states.qpos[:, windows], states.qvel[:, windows], states.act[:, windows]
    )


def moved(model: mujoco.MjModel, base: States, tangents: Array) -> States:
    """Return states moved along tangents (…, windows, 2 nv + na)."""
    nv = model.nv
    turn = tangents[..., :nv]
    qvel = base.qvel + tangents[..., nv : 2 * nv]
    act = base.act + tangents[..., 2 * nv :]
    if _is_flat(model):
        return States(base.qpos + turn, qvel, act)
    qpos = np.broadcast_to(base.qpos, (*turn.shape[:-1], model.nq)).copy()
    flat, turns = qpos.reshape(-1, model.nq), turn.reshape(-1, nv)
    for row, by in zip(flat, turns, strict=True):
        mujoco.mj_integratePos(model, row, np.ascontiguousarray(by), 1.0)
    return States(flat.reshape(qpos.shape), qvel, act)


def differences(model: mujoco.MjModel, start: States, end: States) -> Array:
    """Return the tangents from `start` to `end`; shape (…, 2 nv + na)."""
    if _is_flat(model):
        turn = end.qpos - start.qpos
    else:
        first = np.broadcast_to(start.qpos, end.qpos.shape).reshape(-1, model.nq)
        last = end.qpos.reshape(-1, model.nq)
        turn = np.zeros((len(last), model.nv))
        for row, a, b in zip(turn, first, last, strict=True):
            mujoco.mj_differentiatePos(
                model, row, 1.0, np.ascontiguousarray(a), np.ascontiguousarray(b)
            )
        turn = turn.reshape(*end.qpos.shape[:-1], model.nv)
    return np.concatenate([turn, end.qvel - start.qvel, end.act - start.act], axis=-1)
