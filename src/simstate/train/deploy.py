"""Run an exported policy on a robot: raw sensor arrays in, actions and targets out.

    runner = PolicyRunner("policy.onnx")  # then, every runner.step_dt seconds:
    targets = runner.targets(runner.act({"joint_pos": q, "joint_vel": qd, …}))

This file needs only NumPy and ONNX Runtime: it may be copied without simstate.
"""

# ONNX Runtime comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import ArrayLike, NDArray


class PolicyRunner:
    """A policy with the history, delays, clips and scales of its training.

    Args:
        path: an ONNX file with a passport, as `simstate train` writes it.
        lags: delays of terms by name [control steps]; by default the middle of their
            range in training. Use 0 if the robot's sensors have that delay themselves.
    """

    def __init__(self, path: str | Path, lags: Mapping[str, int] | None = None) -> None:
        self._session, self.passport = _opened(Path(path))
        columns = self._columns = self.passport["observations"]
        self.step_dt = float(self.passport["step_dt"])
        """Time between two calls of `act` [s]."""
        self.action_names = [one["name"] for one in self.passport["actions"]]
        self.sensors: dict[str, list[str]] = {}
        """Components of each signal that `act` needs, in their order."""
        for one in columns:
            if one["source"] not in ("action", "clock"):
                names = self.sensors.setdefault(one["source"], [])
                names += [one["component"]] if one["component"] not in names else []
        lag = {one["term"]: sum(one["delay"]) // 2 for one in columns}
        given = dict(lags or {})
        if [k for k, n in given.items() if k not in lag or n not in range(10**4)]:
            raise ValueError(f"lags must be 0, 1, … of {sorted(lag)}, got {given}.")
        lag |= given
        self._ages = np.array([one["age"] + lag[one["term"]] for one in columns], int)
        self._offset = np.array([one["offset"] for one in columns])
        self._scale = np.array([one["scale"] for one in columns], np.float32)
        limits = [one["clip"] or (-np.inf, np.inf) for one in columns]
        self._clip = np.array(limits, np.float32).reshape(-1, 2).T
        inputs, known = self._session.get_inputs(), ("obs", *self.passport["pictures"])
        self._memory = [one for one in inputs if one.name not in known]
        self.reset()

    def reset(self) -> None:
        """Start an episode: reset clock, history and the memory of the network."""
        self.steps = 0
        self.action = np.zeros(len(self.action_names), np.float32)
        """The last action."""
        self._past = np.zeros((0, len(self._columns)), np.float32)
        self._states: dict[str, Any] = {
            x.name: np.zeros([n if isinstance(n, int) else 1 for n in x.shape], "f4")
            for x in self._memory
        }

    def act(self, sensors: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """Return the action of the next control step, by `action_names`.

        Args:
            sensors: an array for each of `sensors`, in unit, axes and order of the
                passport, and for each of its pictures; the entity's name may be
                omitted. root_link_quat_w (w, x, y, z) replaces projected_gravity_b.
        """
        now = self._observed(sensors)
        if not self.steps:
            self._past = np.tile(now, (int(self._ages.max(initial=0)) + 1, 1))
        self._past = np.concatenate([self._past[1:], now[None]])
        seen = self._past[-1 - self._ages, np.arange(len(now))]
        inputs = {"obs": seen[None], **self._states} if len(seen) else {**self._states}
        for name in self.passport["pictures"]:
            inputs[name] = np.asarray(sensors[name])[None]
        names = [f"{name.removesuffix('_in')}_out" for name in self._states]
        action, *states = self._session.run(["actions", *names], inputs)
        self._states = dict(zip(self._states, states, strict=True))
        self.action, self.steps = action[0], self.steps + 1
        return self.action.copy()

    def targets(self, action: ArrayLike) -> dict[str, float]:
        """Return the targets of an action [unit of the passport], by action name."""
        found = dict[str, float]()
        for one, value in zip(self.passport["actions"], np.ravel(action), strict=True):
            low, high = one["clip"] or (-np.inf, np.inf)
            wanted = one["offset"] + one["scale"] * float(value)
            found[one["name"]] = float(min(max(wanted, low), high))
        return found

    def _observed(self, sensors: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """Return the columns of this step, clipped and scaled; shape (columns,)."""
        signals = {k: _signal(k, names, sensors) for k, names in self.sensors.items()}
        names = self.action_names
        signals["action"] = _signal("action", names, {"action": self.action})
        values = np.empty(len(self._columns))
        for k, one in enumerate(self._columns):
            if one["source"] == "clock":
                turns = self.steps * self.step_dt / one["period_s"] % 1.0
                wave = np.cos if one["component"] == "cos" else np.sin
                values[k] = wave(2.0 * np.pi * turns)
            else:
                values[k] = signals[one["source"]][one["component"]]
        return (values - self._offset).astype("f4").clip(*self._clip) * self._scale


def _opened(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the session of a file and its passport."""
    data, providers = path.read_bytes(), ["CPUExecutionProvider"]
    try:
        session = onnxruntime.InferenceSession(data, providers=providers)
        metadata = session.get_modelmeta().custom_metadata_map
        passport = json.loads(metadata.get("passport", "null"))
    except Exception as error:  # ONNX Runtime raises many types
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{str(path)!r} is not an ONNX policy: {reason}.") from error
    if not isinstance(passport, dict):
        raise ValueError(f"{str(path)!r} has no passport: export the policy again.")
    return session, passport


def _signal(
    source: str, names: Sequence[str], sensors: Mapping[str, ArrayLike]
) -> dict[str, float]:
    """Return the components of a signal by name."""
    entity, _, short = source.rpartition(".")
    found = sensors.get(source, sensors.get(short, ()))
    quat = sensors.get(f"{entity}.root_link_quat_w", sensors.get("root_link_quat_w"))
    quat = np.ravel(() if quat is None else quat)
    if short == "projected_gravity_b" and np.size(found) == 0 and len(quat) == 4:
        w, x, y, z = quat
        found = 2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1
    values = np.ravel(found)
    if len(values) != len(names) or not np.isfinite(values).all():
        raise ValueError(
            f"The sensor {source!r} is {values.tolist() or 'missing'}: it needs "
            f"{len(names)} finite numbers, for {', '.join(names)}."
        )
    return dict(zip(names, values.tolist(), strict=True))
