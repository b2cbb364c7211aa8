"""Identification of parameters from logs."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.checks import all_of, instance_of, number, one_of, whole_number
from simstate.base.errors import InvalidInputError, warn
from simstate.record import Log
from simstate.scene import SceneCfg
from simstate.scene.build import BuiltScene, build_scene
from simstate.simulation import Simulation
from simstate.study.identification.fit import Estimate, Fit, Misfit, warn_of_bounds
from simstate.study.identification.fitted_model import fitted_model
from simstate.study.identification.fitted_parameters import FittedParameters
from simstate.study.identification.free_parameters import FreeParameter, parse_free
from simstate.study.identification.gauss_newton import (
    Solution,
    minimise,
    sysid_library,
)
from simstate.study.identification.information import information
from simstate.study.identification.prediction import Predictor
from simstate.study.identification.residuals import Residuals
from simstate.study.identification.signals import Signals, match_signals
from simstate.study.identification.window_states import States, measured_states
from simstate.study.identification.windows import Windows, cut_windows
from simstate.world.invalid_values import describe_element

Array = NDArray[np.float64]

_ROUNDING = 1e-8
"""Effects below this fraction of a column's deviation are due to rounding."""
_JUMP = 3.0
"""Samples whose noise is increased by more than this factor are reported."""


def identify(
    model: SceneCfg | mujoco.MjModel,
    log: Log | Sequence[Log],
    free: str,
    *,
    outputs: Sequence[str] | None = None,
    held_out: float = 0.25,
    window: float | None = None,
    states: str = "estimate",
    continuity: bool = True,
    confidence: float = 0.95,
    max_iterations: int = 50,
    num_threads: int | None = None,
) -> Fit:
    """Fit parameters of a model to logs, and report those that are not determined.

    Each log is divided into windows. Parameters and the initial states of all windows
    are estimated together, so that predictions do not drift (multiple shooting).
    Names, units, axes, order and signs of the columns are checked first.

    Args:
        model: the scene, or a compiled model.
        log: one log or several; commands are the column "ctrl".
        free: the parameters to fit, such as "robot joints: damping, armature; robot
            body base: mass 1 .. 9, com; delay"; see `parse_free`.
        outputs: columns to predict; None: all positions, velocities and sensors.
        held_out: fraction of the windows, at the end, that is predicted but not fitted.
        window: length of a window [s], four samples or more; None: an eighth of the
            log, at most 1 s.
        states: initial states of windows: "estimate" them, or use those of the "log".
        continuity: True to require that a window ends in the state in which the next
            one starts; False for models that are known to be incomplete.
        confidence: probability that an interval contains the true value.
        max_iterations: maximum number of iterations of the minimiser.
        num_threads: number of threads of the simulation; None: all.
    """
    begin = time.process_time()
    hint = " simstate.data.logs.read_log(path) reads a file."
    logs = [log] if isinstance(log, Log) else all_of("log", log, Log, hint)
    instance_of("model", model, SceneCfg | mujoco.MjModel)
    instance_of("free", free, str)
    if not logs:
        raise InvalidInputError("There is no log to fit.", name="log")
    one_of("states", states, ("estimate", "log"))
    number("confidence", confidence, more_than=0, less_than=1)
    whole_number("max_iterations", max_iterations, 1)
    if num_threads is not None:
        whole_number("num_threads", num_threads, 1)
    sysid_library()
    scene = build_scene(_with_varying_coms(model, free))
    sim = Simulation(scene)
    parameters = parse_free(sim, free)
    signals = tuple(match_signals(sim, one, outputs) for one in logs)
    _check_same_outputs(signals)
    fitted, rest = _parts(signals, sim.timestep, window, held_out)
    start = np.array([one.start for one in parameters])
    _check_effects(scene, fitted, parameters, start, num_threads)
    are_free = states == "estimate"

    def of_windows(part: Windows, has_parameters: bool) -> Residuals:
        return Residuals(
            scene, part, parameters, are_free, continuity and has_parameters,
            num_threads, not has_parameters,
        )  # fmt: skip

    problem = of_windows(fitted, True)
    solution = minimise(problem, start, max_iterations)

    def predicted(part: Windows, *thetas: Array) -> list[Solution]:
        """Fit the states of windows only, for each set of parameters."""
        fixed = of_windows(part, False)
        fixed.weigh(solution.noise, fixed.doubt)
        return [minimise(fixed, theta, 3, is_reweighted=False) for theta in thetas]

    nominal = np.array([one.nominal for one in parameters])
    before, after = predicted(rest, nominal, solution.theta)
    (unfitted,) = predicted(fitted, nominal)
    costs = problem.costs
    return Fit(
        **_estimated(parameters, solution, fitted, confidence),
        fitted=_misfits(fitted, unfitted, solution),
        held_out=_misfits(rest, before, after),
        notes=tuple(dict.fromkeys(text for one in signals for text in one.notes)),
        confidence=confidence,
        model=fitted_model(scene.model, parameters, solution.theta),
        curves=_curves(rest, before, after),
        cpu_seconds={
            "parameters": costs.parameters,
            "rollouts": costs.rollouts,
            "all": time.process_time() - begin,
        },
    )


def _parts(
    signals: tuple[Signals, ...], timestep: float, window: float | None, held_out: float
) -> tuple[Windows, Windows]:
    """Return the windows that are fitted and those that are held out."""
    number("held_out", held_out, more_than=0, at_most=0.9)
    if window is not None:
        number("window", window, more_than=0, unit="s")
    windows = cut_windows(signals, timestep, window)
    last = max(1, round(held_out * len(windows)))
    if last >= len(windows):
        raise InvalidInputError(
            f"The log has only {len(windows)} windows, so none is left to fit: use "
            "shorter windows (window=…).",
            name="window",
        )
    return windows.select(slice(-last)), windows.select(slice(-last, None))


def _estimated(
    parameters: Sequence[FreeParameter],
    solution: Solution,
    windows: Windows,
    confidence: float,
) -> dict[str, Any]:
    """Return the parts of a Fit that follow from the solution."""
    theta = solution.theta
    known = information(
        parameters, theta, solution.residual, solution.jacobian, confidence
    )
    estimates = tuple(
        _estimate(one, value, width, known.covariance[k, k], bool(known.is_known[k]))
        for k, (one, value, width) in enumerate(
            zip(parameters, theta, known.widths, strict=True)
        )
    )
    warnings = warn_of_bounds(parameters, estimates)
    for text in _misfit_warnings(windows, solution) + _jump_warnings(windows, solution):
        warn(text)
        warnings.append(text)
    return {
        "estimates": estimates,
        "undetermined": known.unknown,
        "warnings": tuple(warnings),
        "distribution": FittedParameters(tuple(parameters), theta, known.covariance),
    }


def _with_varying_coms(
    model: SceneCfg | mujoco.MjModel, free: str
) -> SceneCfg | mujoco.MjModel:
    """Return the scene, with movable inertial frames if these are free."""
    if isinstance(model, mujoco.MjModel) or not re.search("com|inertia", free):
        return model
    entities = {n: replace(e, com_varies=True) for n, e in model.entities.items()}
    return replace(model, entities=entities)


def _check_same_outputs(signals: Sequence[Signals]) -> None:
    names = [[(o.column.name, o.picked) for o in one.outputs] for one in signals]
    for other in names[1:]:
        if other != names[0]:
            raise InvalidInputError(
                f"The logs have different outputs: {names[0]} and {other}. Name those "
                "that all of them have (outputs=…).",
                name="outputs",
            )


def _check_effects(
    scene: BuiltScene,
    windows: Windows,
    parameters: Sequence[FreeParameter],
    start: Array,
    num_threads: int | None,
) -> None:
    """Raise for a parameter that changes no prediction, or a command of wrong sign.

    A few windows are tried first, then all: a contact may occur late in a log.
    """
    few = min(len(windows), 4)
    without: list[str] = []
    for part in (windows.select(slice(few)), windows):
        without = _without_effect(scene, part, parameters, start, num_threads)
        if not without:
            return
    raise InvalidInputError(
        f"{', '.join(without)} has no effect on the columns of the log: remove it (of "
        "a vector, free single components: 'com.z'), or log a column that depends on "
        "it.",
        name=without[0],
    )


def _without_effect(
    scene: BuiltScene,
    part: Windows,
    parameters: Sequence[FreeParameter],
    start: Array,
    num_threads: int | None,
) -> list[str]:
    """Return the parameters without effect; raise for a command of wrong sign."""
    actuators = scene.model.nu
    columns = 1 + len(parameters) + actuators
    predictor = Predictor(scene, part, parameters, columns, num_threads)
    base = measured_states(part, scene.model, np.array(scene.default.qpos, np.float64))
    thetas = np.tile(start, (columns, 1))
    for k, one in enumerate(parameters):
        middle = (one.low + one.high) / 2
        thetas[k + 1, k] = (
            middle if abs(middle - start[k]) > one.scale / 4 else one.high
        )
    signs = np.ones((columns, actuators))
    signs[1 + len(parameters) + np.arange(actuators), np.arange(actuators)] = -1.0
    repeated = States(
        *(np.tile(x, (columns, 1, 1)) for x in (base.qpos, base.qvel, base.act))
    )
    predicted = predictor.predict(thetas, repeated, signs)
    predicted.check_finite(part)
    outputs = predicted.outputs
    sizes = [max(float(samples.values.std()), 1e-9) for samples in part.samples]
    misfit = np.zeros(columns)
    for values, samples, size in zip(outputs, part.samples, sizes, strict=True):
        misfit += (((values - samples.values) / size) ** 2).mean(axis=(1, 2))
    for k in range(actuators):
        if misfit[1 + len(parameters) + k] < 0.1 * misfit[0]:
            raise InvalidInputError(
                f"The commands of {describe_element(scene.model, 'ctrl', k)} seem to "
                "have the wrong sign: with the opposite sign the log is predicted far "
                "better. Change it (log.declare('ctrl', scale=-1)), or reverse the "
                "joint's axis in the model.",
                name="ctrl",
            )
    return [
        one.name
        for k, one in enumerate(parameters)
        if all(
            np.allclose(values[k + 1], values[0], rtol=0, atol=_ROUNDING * size)
            for values, size in zip(outputs, sizes, strict=True)
        )
    ]


def _estimate(
    parameter: FreeParameter, value: float, width: float, variance: float, known: bool
) -> Estimate:
    low, high = parameter.interval(value, width)
    margin = 1e-4 * (parameter.high - parameter.low)
    at_bound = value - parameter.low < margin or parameter.high - value < margin
    return Estimate(
        name=parameter.name,
        unit=parameter.unit,
        nominal=parameter.nominal,
        value=float(value),
        low=low,
        high=high,
        deviation=float(np.sqrt(variance)),
        is_determined=known,
        is_at_bound=bool(at_bound),
    )


def _misfit_warnings(windows: Windows, solution: Solution) -> list[str]:
    """Return a sentence for each column that the model does not explain."""
    return [
        f"The error of {signal.column.name} is {np.max(noise / signal.noise()):.1f} "
        "times its noise: the model lacks an effect that the log shows, and the "
        "intervals are too narrow."
        for signal, noise in zip(
            windows.signals[0].outputs, solution.noise, strict=True
        )
        if (noise > 2.0 * signal.noise()).any()
    ]


def _jump_warnings(windows: Windows, solution: Solution) -> list[str]:
    """Return a sentence for each column whose predictions jump near the fit."""
    found: list[str] = []
    at = 0
    for signal, samples in zip(
        windows.signals[0].outputs, windows.samples, strict=True
    ):
        doubt = solution.doubt[at : at + samples.values.size]
        at += samples.values.size
        times = windows.times(samples)
        jumps = times[doubt.reshape(samples.values.shape).max(axis=1) > _JUMP]
        if len(jumps):
            found.append(
                f"{signal.column.name}: {len(jumps)} of {len(times)} samples, the "
                f"first at {jumps.min():.3g} s, are outliers or jump near the fit, as "
                "when an actuator reaches its limit or a contact starts. They have "
                "little weight, and the errors of the estimates may exceed their "
                "intervals: log a motion without them."
            )
    return found


def _misfits(
    windows: Windows, nominal: Solution, fitted: Solution
) -> tuple[Misfit, ...]:
    found: list[Misfit] = []
    for k, (samples, signal) in enumerate(
        zip(windows.samples, windows.signals[0].outputs, strict=True)
    ):
        errors = [
            float(np.sqrt(((one.predicted.outputs[k][0] - samples.values) ** 2).mean()))
            for one in (nominal, fitted)
        ]
        found.append(Misfit(signal.column.name, signal.column.unit, *errors))
    return tuple(found)


def _curves(
    windows: Windows, nominal: Solution, fitted: Solution
) -> dict[str, tuple[Array, Array, Array, Array]]:
    return {
        signal.column.name: (
            windows.times(samples),
            samples.values,
            nominal.predicted.outputs[k][0],
            fitted.predicted.outputs[k][0],
        )
        for k, (samples, signal) in enumerate(
            zip(windows.samples, windows.signals[0].outputs, strict=True)
        )
    }
