"""Passport: the contract of a policy's columns, stored in its ONNX file.

passport = read_passport("policy.onnx")  # neither torch nor MuJoCo is needed
[(one.name, one.unit, one.low, one.high) for one in passport.observations]
"""

# ONNX Runtime comes without type information.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.base.onnx_file import onnx_session

FORMAT = "simstate passport 1"
KEY = "passport"
"""Key of the metadata of an ONNX file."""
ACTION, CLOCK, COMMAND = "action", "clock", "command."
"""Sources that are not quantities: the last action, the episode's clock, commands."""
PROOF_STEPS = 64
PROOF_ERROR = 1e-4
"""Maximum difference from the proof's actions, due to rounding on other processors."""
_WITHOUT = (
    "Only policies exported by this version of simstate have one: train a policy, or "
    "run `simstate train --resume --run-dir RUN` on the finished run, which writes its "
    "policy.onnx again."
)


@dataclass(frozen=True, kw_only=True)
class PassportColumn:
    """A column of the network's input or output, in the order of the network.

    An input is (value − offset), clamped to `clip`, × scale, of `age` steps before the
    latest sample; an output is an action, whose value is offset + scale × action,
    clamped to `clip`.
    """

    name: str
    term: str
    """Observation or action term of the task."""
    source: str
    """Signal of which it is a component: a quantity such as "robot.joint_pos",
    "action", "command.NAME", "clock", or else the term's name."""
    component: str
    """Name of the component: a joint, "x", "cos"."""
    unit: str
    """Unit of the value, before scale."""
    axes: str
    point: str
    sign: str
    """Direction in which the value is positive."""
    scale: float
    offset: float
    """Offset of the value, such as a default joint position [unit]."""
    clip: tuple[float, float] | None
    age: int = 0
    """Age within a history [control steps]."""
    delay: tuple[int, int] = (0, 0)
    """Minimum and maximum delay in training [control steps]."""
    noise_std: float = 0.0
    """Standard deviation of the noise in training [unit]."""
    period_s: float | None = None
    """Period of a clock [s]."""
    low: float = 0.0
    """Minimum value in training, including noise [unit]."""
    high: float = 0.0
    """Maximum value in training, including noise [unit]."""
    mean: float = 0.0
    """Mean in runs of the trained policy [unit]."""
    std: float = 0.0
    """Standard deviation in runs of the trained policy [unit]."""
    is_action: bool = False

    def value_of(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of a column of the network's inputs or outputs [unit]."""
        if self.is_action:
            return self.offset + self.scale * column
        return column / (self.scale or 1.0) + self.offset


@dataclass(frozen=True, kw_only=True)
class Passport:
    """The contract of a policy: its columns, its origin and a proof."""

    task: str
    seed: int
    iterations: int
    """Number of updates."""
    engine: str
    step_dt: float
    """Time between two actions [s]."""
    ranges_from: str
    """"training", or "export" if training did not record them."""
    observations: tuple[PassportColumn, ...]
    actions: tuple[PassportColumn, ...]
    pictures: Mapping[str, tuple[int, ...]]
    """Shapes of further inputs (H, W, C)."""
    joints: Mapping[str, tuple[str, ...]]
    """Names of each entity's joints, in the order of the model."""
    versions: Mapping[str, str]
    proof: Mapping[str, NDArray[Any]]
    """Inputs by name, and "actions": consecutive steps of a run; (steps, …)."""

    @property
    def rate(self) -> float:
        """Actions per second [Hz]."""
        return 1.0 / self.step_dt

    def to_json(self) -> dict[str, Any]:
        """Return the passport as JSON values; arrays as little-endian base64."""
        facts = {"format": FORMAT, **dataclasses.asdict(self)}
        facts["proof"] = {name: _packed(x) for name, x in self.proof.items()}
        return facts

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> Passport:
        """Return the passport from the result of `to_json`."""
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']!r}, not {FORMAT!r}")
        names = {field.name for field in dataclasses.fields(Passport)}
        values = {name: facts[name] for name in names}
        for key in ("observations", "actions"):
            values[key] = tuple(_column(one) for one in facts[key])
        values["versions"] = dict(facts["versions"])
        values["pictures"] = {k: tuple(x) for k, x in facts["pictures"].items()}
        values["joints"] = {k: tuple(x) for k, x in facts["joints"].items()}
        values["proof"] = {k: _unpacked(x) for k, x in facts["proof"].items()}
        passport = Passport(**values)
        if not (passport.actions and passport.step_dt > 0.0):
            raise ValueError("it has no actions or no control rate")
        if not len(passport.proof["actions"]):
            raise ValueError("its proof has no steps")
        return passport


class PassportPolicy:
    """The network of an ONNX file and its passport, which must match."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._session = onnx_session(self.path)
        self.passport = passport_of(self._session, str(path))
        """Contract of the columns."""
        inputs = {one.name: one for one in self._session.get_inputs()}
        known = {"obs", *self.passport.pictures}
        self.states = {k: _state_like(x) for k, x in inputs.items() if k not in known}
        """Initial values of the inputs that carry memory from step to step."""
        self._check_sizes(inputs)

    def actions(self, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return the actions, (steps, n), of consecutive steps; inputs: (steps, …)."""
        if not self.states:
            return self._session.run(["actions"], dict(inputs))[0]
        states, found = dict(self.states), list[Any]()
        names = ["actions", *(state_output(name) for name in states)]
        for k in range(len(next(iter(inputs.values())))):
            now = {name: x[k : k + 1] for name, x in inputs.items()}
            action, *new = self._session.run(names, {**now, **states})
            states = dict(zip(states, new, strict=True))
            found.append(action)
        return np.concatenate(found)

    def proof_error(self) -> float:
        """Return the largest difference between the proof's actions and the network's.

        Raise if it is more than rounding: the weights are not those of the passport.
        """
        proof = dict(self.passport.proof)
        wanted = proof.pop("actions")
        try:
            error = float(np.abs(self.actions(proof) - wanted).max())
        except Exception as reason:  # ONNX Runtime raises many types
            raise InvalidInputError(
                f"The proof in the passport of {str(self.path)!r} cannot be run: "
                f"{' '.join(str(reason).split())[:200]}. The file was altered. "
                f"{_WITHOUT}"
            ) from reason
        if not error <= PROOF_ERROR:
            raise InvalidInputError(
                f"The network of {str(self.path)!r} does not reproduce the proof in "
                f"its passport: actions differ by {error:.3g}. The weights are not the "
                "exported ones: export the policy again.",
                name="proof",
            )
        return error

    def _check_sizes(self, inputs: Mapping[str, Any]) -> None:
        """Raise unless the network has the passport's columns."""
        passport = self.passport
        wanted = {"obs": len(passport.observations)} if passport.observations else {}
        outputs = {one.name: one.shape for one in self._session.get_outputs()}
        sizes = {k: x.shape[-1] for k, x in inputs.items() if k == "obs"}
        sizes["actions"] = outputs.get("actions", [None])[-1]
        sizes = {k: n for k, n in sizes.items() if isinstance(n, int)}
        wanted["actions"] = len(passport.actions)
        states = {state_output(name) for name in self.states}
        missing = ({"actions"} | states) - set(outputs)
        missing |= ({"obs"} & set(wanted) | set(passport.pictures)) - set(inputs)
        if missing or any(wanted[k] != n for k, n in sizes.items()):
            raise InvalidInputError(
                f"The network of {str(self.path)!r} does not fit its passport, which "
                f"has columns {wanted}; the network has {sizes}"
                f"{f' and lacks {sorted(missing)}' if missing else ''}. The file was "
                f"altered. {_WITHOUT}",
                name="network",
            )


def read_passport(path: str | Path) -> Passport:
    """Return the passport of an ONNX file; raise if it has none."""
    return passport_of(onnx_session(Path(path)), str(path))


def passport_of(session: Any, path: str) -> Passport:
    """Return the passport in a session's metadata; raise if there is none."""
    metadata = session.get_modelmeta().custom_metadata_map
    if KEY not in metadata:
        origin = "was exported by an earlier version of simstate"
        if "observation_names" not in metadata:
            origin = "is not a policy that simstate exported"
        raise InvalidInputError(
            f"{path!r} has no passport: it {origin}. {_WITHOUT}", name="passport"
        )
    try:
        return Passport.from_json(json.loads(metadata[KEY]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"The passport of {path!r} is damaged, or of another version: {error!r}. "
            f"{_WITHOUT}",
            name="passport",
        ) from error


def state_output(name: str) -> str:
    """Return the output that becomes a state input at the next step ("h_in")."""
    return f"{name.removesuffix('_in')}_out"


def _column(facts: Mapping[str, Any]) -> PassportColumn:
    values = dict(facts)
    for key in ("clip", "delay"):
        if values[key] is not None or key == "delay":
            low, high = values[key]
            values[key] = low, high
    for key in ("scale", "offset", "low", "high", "mean", "std"):
        values[key] = float(values[key])
    return PassportColumn(**values)


def _state_like(tensor: Any) -> NDArray[np.float32]:
    """Return zeros in the shape of a state input, for one world."""
    shape = [n if isinstance(n, int) else 1 for n in tensor.shape]
    return np.zeros(shape, np.float32)


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    little = array.astype(array.dtype.newbyteorder("<"))
    text = base64.b64encode(little.tobytes()).decode()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "base64": text}


def _unpacked(facts: Mapping[str, Any]) -> NDArray[Any]:
    if facts["dtype"] not in ("float32", "uint8", "int32"):
        raise ValueError(f"an array has the dtype {facts['dtype']!r}")
    data = base64.b64decode(facts["base64"], validate=True)
    little = np.dtype(cast("str", facts["dtype"])).newbyteorder("<")
    return np.frombuffer(data, little).reshape(facts["shape"]).astype(facts["dtype"])
