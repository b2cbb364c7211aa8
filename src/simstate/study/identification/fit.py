"""Fit: the result of an identification, as numbers, model and distribution."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
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
from simstate.base.files import write_atomically
from simstate.base.ids import Ids
from simstate.scene.element_names import OBJECTS
from simstate.simulation import Simulation
from simstate.study.dispersions.distributions import Distribution, normal
from simstate.study.dispersions.study import Study
from simstate.study.identification.free_parameters import (
    FreeParameter,
    model_writes,
)

Array = NDArray[np.float64]

FORMAT = "simstate parameters 1"
DRAW = "parameters"
"""Name of the draw of a dispersion study."""


@dataclass(frozen=True)
class Estimate:
    """One identified parameter."""

    name: str
    unit: str
    nominal: float
    """Value in the model that was given."""
    value: float
    """Estimate."""
    low: float
    high: float
    """Confidence interval."""
    deviation: float
    """Standard deviation."""
    is_determined: bool
    """False if the log does not determine it, alone or apart from others."""
    is_at_bound: bool
    """True if it ended at one of its bounds."""


@dataclass(frozen=True)
class Misfit:
    """Root mean square difference between log and prediction of one column."""

    column: str
    unit: str
    nominal: float
    """With the parameters of the model that was given."""
    fitted: float
    """With the estimates."""


@dataclass(frozen=True)
class FittedParameters:
    """A joint normal distribution of parameters, cut off at their bounds.

    `simstate train --parameters fit.json` and `simstate dispersions --parameters
    fit.json` give each world a draw of it.
    """

    parameters: tuple[FreeParameter, ...]
    mean: Array
    """Shape (parameters,)."""
    covariance: Array
    """Shape (parameters, parameters)."""

    def draws(self) -> dict[str, Distribution]:
        """Return the distribution as a draw "parameters" of a dispersion study."""
        return {DRAW: normal(self.mean, cov=self._safe_covariance())}

    def sample(self, normals: Tensor) -> Tensor:
        """Return values within the bounds from standard normals; (n, parameters)."""
        root = np.linalg.cholesky(self._safe_covariance())
        drawn = torch.as_tensor(self.mean) + normals.double() @ torch.as_tensor(root).T
        return self.within_bounds(drawn)

    def within_bounds(self, values: Tensor) -> Tensor:
        """Return values moved to the nearest bound where they are beyond it."""
        low = torch.tensor([one.low for one in self.parameters], dtype=torch.float64)
        high = torch.tensor([one.high for one in self.parameters], dtype=torch.float64)
        return torch.minimum(torch.maximum(values.double(), low), high)

    def write(self, sim: Simulation, values: Tensor, env_ids: Ids = None) -> list[str]:
        """Write values (n, parameters) into worlds; returns what has no place there.

        A delay is written to actuators that are compiled with room for it.
        """
        missing: list[str] = []
        changes: dict[str, Tensor] = {}
        chosen = slice(None) if env_ids is None else env_ids
        values = self.within_bounds(values)
        for p, one in enumerate(self.parameters):
            if one.kind == "delay" and _has_delay(sim.model, one.high):
                every = values[:, p : p + 1].expand(-1, sim.model.nu)
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
                warn(f"{', '.join(missing)} has no place in the study: left out.")
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
        """Return the distribution as data."""
        return {
            "format": FORMAT,
            "parameters": [asdict(one) for one in self.parameters],
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
        }

    @staticmethod
    def load(path: str | Path) -> FittedParameters:
        """Return the distribution of a file that `Fit.save` wrote."""
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
                raise ValueError("mean and covariance of other sizes")
            if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
                raise ValueError("values that are not finite")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(
                f"{str(path)!r} is no file of fitted parameters, which `simstate "
                f"identify --out` writes: {error}.",
                name=str(path),
            ) from error
        return FittedParameters(parameters, mean, covariance)


@dataclass(frozen=True)
class Fit:
    """Result of `identify`."""

    estimates: tuple[Estimate, ...]
    undetermined: tuple[str, ...]
    """Sentences about what this log cannot determine."""
    fitted: tuple[Misfit, ...]
    """Misfit of each column on the part that was fitted."""
    held_out: tuple[Misfit, ...]
    """Misfit of each column on the part that was held out."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """Sentences about what was assumed of the log."""
    confidence: float
    distribution: FittedParameters
    model: mujoco.MjModel
    """The compiled scene with the estimates."""
    curves: Mapping[str, tuple[Array, Array, Array, Array]]
    """Time, log, nominal and fitted prediction of the held-out part, by column."""
    cpu_seconds: Mapping[str, float]
    """CPU time of writing parameters and of rollouts, and in all."""

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
        """Return the result as data; it contains the distribution."""
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
        found: dict[tuple[str, str], dict[str, str]] = {}
        for one in self.distribution.parameters:
            if one.targets:
                words = found.setdefault(one.element, {})
                words |= _attributes(self.model, one)
        lines: list[str] = []
        for (kind, name), words in found.items():
            short = name.rpartition("/")[2]
            body = " ".join(f'{word}="{text}"' for word, text in words.items())
            if kind == "body":
                lines.append(f'<body name="{short}"><inertial {body}/></body>')
            else:
                tag = _tag(self.model, kind, name)
                lines.append(f'<{tag} name="{short}" {body}/>')
        return lines

    def change_spec(self, spec: mujoco.MjSpec) -> None:
        """Write the estimates into a model's specification, by element names."""
        for one in self.distribution.parameters:
            if one.targets:
                _change(spec, self.model, one)


def fitted_model(
    model: mujoco.MjModel, parameters: Sequence[FreeParameter], values: Array
) -> mujoco.MjModel:
    """Return a copy of a compiled model with the values of parameters."""
    changed = copy.copy(model)
    mine = [(one, one.targets) for one in parameters]
    for field, index, value in model_writes(model, mine, values[None]):
        getattr(changed, field)[index] = value[0]
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    return changed


def _attributes(model: mujoco.MjModel, parameter: FreeParameter) -> dict[str, str]:
    """Return the MJCF attributes of a fitted parameter's element."""
    kind, name = parameter.element
    field, index, factor = parameter.targets[0]
    if kind == "body":
        body = model.body(name)
        values = {"pos": body.ipos, "quat": body.iquat, "mass": body.mass,
                  "diaginertia": body.inertia}  # fmt: skip
    elif kind == "actuator":
        values = _servo(model, name)[1]
    elif parameter.attribute == "friction":
        values = {"friction": model.geom(name).friction}
    else:
        values = {parameter.attribute: [getattr(model, field)[index] / factor]}
    return {word: " ".join(f"{x:.10g}" for x in row) for word, row in values.items()}


def _tag(model: mujoco.MjModel, kind: str, name: str) -> str:
    """Return the MJCF tag of an element."""
    if kind == "actuator":
        return _servo(model, name)[0]
    if kind != "tendon":
        return kind
    first = model.wrap_type[model.tendon_adr[model.tendon(name).id]]
    return "fixed" if first == mujoco.mjtWrap.mjWRAP_JOINT.value else "spatial"


def _servo(model: mujoco.MjModel, name: str) -> tuple[str, dict[str, Any]]:
    """Return the MJCF element of an actuator, with the attributes of its gains."""
    actuator = model.actuator(name)
    gain, bias = float(actuator.gainprm[0]), actuator.biasprm
    gear = {"gear": actuator.gear}
    if gain == 1 and not bias.any():
        return "motor", gear
    if bias[1] and gain == -bias[1]:
        return "position", {"kp": [gain], "kv": [-bias[2]], **gear}
    if bias[2] and gain == -bias[2] and not bias[1]:
        return "velocity", {"kv": [gain], **gear}
    return "general", {"gainprm": actuator.gainprm, "biasprm": bias, **gear}


def _change(spec: Any, model: mujoco.MjModel, parameter: FreeParameter) -> None:
    """Write one parameter of the fitted model into a specification."""
    kind, name = parameter.element
    element = getattr(spec, kind)(name)
    if element is None:
        element = getattr(spec, kind)(name.rpartition("/")[2])
    if element is None:
        raise InvalidInputError(f"The specification has no {kind} {name!r}.", name=name)
    what = parameter.attribute
    if kind == "body":
        body = model.body(name)
        element.explicitinertial = True
        element.fullinertia = np.full(6, np.nan)
        element.mass, element.inertia = float(body.mass[0]), body.inertia
        element.ipos, element.iquat = body.ipos, body.iquat
        spec.compiler.inertiafromgeom = 2
    elif kind == "actuator":
        actuator = model.actuator(name)
        element.gainprm[:], element.biasprm[:] = actuator.gainprm, actuator.biasprm
        element.gear[:] = actuator.gear
    elif what == "friction":
        element.friction = model.geom(name).friction
    else:
        field, index, factor = parameter.targets[0]
        value = float(getattr(model, field)[index]) / factor
        current = getattr(element, what)
        if isinstance(current, np.ndarray):  # a polynomial, of which this is linear
            current[0] = value
        else:
            setattr(element, what, value)


def resolved(
    model: mujoco.MjModel, parameter: FreeParameter
) -> list[tuple[str, tuple[int, ...], float]]:
    """Return the targets of a parameter in a model, where its element may be another.

    The element is found by its name, with or without the entity's prefix.
    """
    if not parameter.targets:
        return []
    kind, name = parameter.element
    known: list[str] = []
    for k in range(_count(model, kind)):
        known.append(mujoco.mj_id2name(model, OBJECTS[kind].value, k) or "")
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


def _count(model: mujoco.MjModel, kind: str) -> int:
    sizes = {"body": model.nbody, "joint": model.njnt, "geom": model.ngeom,
             "actuator": model.nu, "tendon": model.ntendon}  # fmt: skip
    return sizes[kind]


def _after(unit: str) -> str:
    """Return a unit as it follows a number."""
    return "" if unit == "1" else f" {unit}"


def _has_delay(model: mujoco.MjModel, delay: float) -> bool:
    """Return True if the actuators are compiled with room for a delay [s]."""
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


def warn_of_bounds(
    parameters: Sequence[FreeParameter], estimates: Sequence[Estimate]
) -> list[str]:
    """Return and issue a warning for each estimate that is at its bound."""
    found = [
        f"{one.name} ended at its bound {one.value:.5g}{_after(one.unit)}: widen the "
        f"bounds ('{parameter.item} LOW .. HIGH'), or the model lacks something."
        for parameter, one in zip(parameters, estimates, strict=True)
        if one.is_at_bound
    ]
    for text in found:
        warn(text)
    return found
