"""Residuals of windows, and their derivatives by parameters and initial states.

`mujoco.sysid` compiles a model for each column of the Jacobian; here a column is a row
of per-world parameters. The initial states of all windows would be many columns, but
the state of a window only affects that window, so that one simulated column perturbs
one component in all windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simstate.scene.build import BuiltScene
from simstate.study.identification.free_parameters import FreeParameter
from simstate.study.identification.prediction import Costs, Predicted, Predictor
from simstate.study.identification.window_states import (
    differences,
    measured_states,
    moved,
    state_noise,
)
from simstate.study.identification.windows import Windows

Array = NDArray[np.float64]

STEP = 1e-5
"""Width of differences, in the scale of each parameter; of states in rad or m."""
_LINEAR = 0.1
"""Error of a residual, in units of the noise, up to which derivatives are reused."""


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


class Residuals:
    """Residuals of windows as a function of parameters and initial states.

    Args:
        scene: the compiled scene.
        windows: parts of the log.
        parameters: those that are free.
        are_states_free: False to use the states of the log unchanged.
        is_continuous: True to require that a window ends where the next one starts.
        num_threads: threads of the simulation; None: all.
        are_parameters_fixed: True to fit the states only.
    """

    def __init__(
        self,
        scene: BuiltScene,
        windows: Windows,
        parameters: Sequence[FreeParameter],
        are_states_free: bool,
        is_continuous: bool,
        num_threads: int | None,
        are_parameters_fixed: bool = False,
    ) -> None:
        self.windows, self.parameters = windows, list(parameters)
        self.theta = np.array([one.nominal for one in parameters])
        """Values of the parameters if they are fixed."""
        self.num_free = 0 if are_parameters_fixed else len(parameters)
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
        self.tolerance = 1.0
        """Tolerance of the continuity of windows, in the noise of the state."""
        rows = sum(one.values.size for one in windows.samples)
        rows += len(self._tied) * self.base.width
        noise = [one.noise() for one in windows.signals[0].outputs]
        self.weigh(noise, np.ones(rows))
        self.costs = Costs()
        make = (scene, windows, self.parameters)
        self._one = Predictor(*make, 1, num_threads, self.costs)
        columns = self.num_free + self._width
        self._many = Predictor(*make, max(columns, 1), num_threads, self.costs)
        # Predictions at a point are kept: they do not depend on the weights.
        self._last: tuple[bytes, Predicted] | None = None
        self._near: _Differences | None = None

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.num_free + self._width * len(self.windows)

    @property
    def is_tied(self) -> bool:
        """True if the ends of windows are compared with the starts of others."""
        return bool(len(self._tied))

    def weigh(self, noise: Sequence[Array], doubt: Array) -> None:
        """Set the noise of each output's components, and factors on it; (rows,)."""
        self.noise, self.doubt = list(noise), doubt
        self._state_noise = state_noise(self.windows, self.model, self.noise)

    def limits(self, x: Array) -> tuple[Array, Array]:
        """Return bounds of the unknowns; states are practically unbounded."""
        states = x[self.num_free :]
        low, high = (ends[: self.num_free] for ends in self._bounds)
        scales = self.scales[: self.num_free]
        return np.append(low / scales, states - 1e6), np.append(
            high / scales, states + 1e6
        )

    def predicted(self, x: Array) -> Predicted:
        """Simulate all windows with one set of parameters and states."""
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            theta, tangents = self.split(x)
            states = moved(self.model, self.base, tangents[None])
            self._last = key, self._one.predict(theta[None], states)
        return self._last[1]

    def residual(self, x: Array) -> Array:
        """Return differences from the log, then of ends and starts of windows."""
        _, tangents = self.split(x)
        return self._residuals(self.predicted(x), tangents[None])[0]

    @property
    def num_columns(self) -> int:
        """Number of points that `residuals` takes."""
        return self._many.columns

    def residuals(self, points: Array) -> Array:
        """Return the residuals at `num_columns` points; shape (points, rows)."""
        parts = [self.split(point) for point in points]
        thetas, tangents = (np.stack(one) for one in zip(*parts, strict=True))
        states = moved(self.model, self.base, tangents)
        return self._residuals(self._many.predict(thetas, states), tangents)

    def start_at(self, theta: Array) -> None:
        """Set the values of all parameters; those that are not free keep them."""
        self.theta, self._last, self._near = theta, None, None

    def jacobian(self, x: Array, residual: Array, is_exact: bool = False) -> Array:
        """Return the derivatives of all residuals by differences; (rows, size).

        Those of an earlier point are reused if they predict the residuals, unless
        `is_exact`.
        """
        if self._near is not None and not is_exact:
            found, before = self._slopes(self._near)
            error = residual - before - found @ (x - self._near.x)
            if np.abs(error).max(initial=0.0) < _LINEAR:
                return found
        self._near = self._differences(x)
        return self._slopes(self._near)[0]

    def _differences(self, x: Array) -> _Differences:
        """Predict all windows with each unknown displaced."""
        theta, tangents = self.split(x)
        count, width = self.num_free, self._width
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
        """Return derivatives with the current weights, and the residuals."""
        _, tangents = self.split(at.x)
        count, width = self.num_free, self._width
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

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return the parameters, and the tangents of the states of all windows."""
        count = self.num_free
        tangents = x[count:].reshape(len(self.windows), self._width)
        if not self._width:
            tangents = np.zeros((len(self.windows), self.base.width))
        if not count:
            return self.theta, tangents
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
                begin.of_windows(self._tied + 1),
                predicted.ends.of_windows(self._tied),
            )
            weight = self.tolerance * self._state_noise
            parts.append((gaps / weight).reshape(len(gaps), -1))
        return np.concatenate(parts, axis=1) / self.doubt

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
                self.tolerance * self._state_noise * self.doubt[row + block]
            )
            row += width
