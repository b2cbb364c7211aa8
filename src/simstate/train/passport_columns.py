"""The columns of an environment for a passport, and a check against a passport."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.contract import NO, UNDECLARED, Contract
from simstate.base.errors import InvalidInputError, listed
from simstate.entity import Quantity
from simstate.env import Env, observations
from simstate.env.actions import (
    Action,
    BodyWrenchAction,
    JointAction,
    RelativeJointAction,
)
from simstate.env.contracts import Declaration
from simstate.env.control_action import ControlAction
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.groups import flat
from simstate.env.joint_pd_action import JointPdAction
from simstate.env.observation_noise import (
    GaussianNoise,
    ObservationNoise,
    SensorNoise,
    UniformNoise,
)
from simstate.env.observation_term import ObservationTerm
from simstate.env.symmetry import is_axial
from simstate.train.policy_passport import (
    ACTION,
    CLOCK,
    COMMAND,
    Passport,
    PassportColumn,
)

Range = tuple[float, float]
_FITTING = ("source", "unit", "axes", "point", "sign", "scale", "offset", "clip")
"""Parts of a contract in which a policy and an environment must agree."""


def terms_of(env: Env, group: str) -> list[ObservationTerm]:
    """Return the terms of a group's columns, in their order."""
    specs = flat({group: env.observation_specs[group]})
    return [t for key in specs for t in env.observation_terms.get(key, ())]


class TermSource:
    """The signal of a term's values, found by comparing both."""

    def __init__(self, term: ObservationTerm, env: Env) -> None:
        self._term, self._env = term, env
        self._read: Callable[[], Tensor] | None = None
        self.name, self.period_s = term.name, None
        self.offset = np.zeros(term.width)
        """Constant difference between signal and term; shape (width,)."""
        function, params = term.function, term.params
        if function is observations.last_action:
            self.name = ACTION
        elif function is observations.generated_commands:
            self.name = f"{COMMAND}{params['command_name']}"
        elif function is observations.phase:
            self.name, self.period_s = CLOCK, float(params["period_s"])
        else:
            self._take_quantity(params)

    def _take_quantity(self, params: dict[str, Any]) -> None:
        declared: Any = getattr(self._term.function, "contract", None)
        declared = declared.value if isinstance(declared, Declaration) else declared
        chosen = [p for p in params.values() if isinstance(p, SceneEntityCfg)]
        is_plain = isinstance(declared, Quantity) and self._term.instance is None
        if not is_plain or len(chosen) != 1 or len(declared.shape) != 1:
            return
        entity = self._env.scene[chosen[0].name]
        ids = chosen[0].joint_ids if declared.shape[0] == "num_joints" else slice(None)
        name = f"{declared.name}_biased" if params.get("biased") else declared.name
        self._read = lambda: entity.data.read(name)[:, ids]
        self.name = f"{entity.name}.{declared.name}"
        self.offset = self._gap()[0]
        self.compare()

    def _gap(self) -> np.ndarray:
        assert self._read is not None
        value, signal = torch.as_tensor(self._term()).cpu(), self._read().cpu()
        is_same = value.shape == signal.shape
        return (signal - value).double().numpy() if is_same else np.full((1, 1), np.nan)

    def compare(self) -> None:
        """Discard the quantity unless it differs from the term by the same offset."""
        if self._read is not None and not np.allclose(
            self._gap(), self.offset, rtol=0.0, atol=1e-5
        ):
            self.name, self._read = self._term.name, None
            self.offset = np.zeros(self._term.width)


def observation_columns(
    env: Env, group: str, sources: Sequence[TermSource] | None = None
) -> Iterator[PassportColumn]:
    """Yield the columns of a policy's group, in their order, without ranges."""
    terms = terms_of(env, group)
    for term, source in zip(
        terms, sources or [TermSource(term, env) for term in terms], strict=True
    ):
        names, plain = term.names(), term.column_names(term.width)
        scale = np.asarray(1.0 if term.scale is None else term.scale, np.float64)
        scales = np.broadcast_to(scale, term.width)
        for k, (name, contract) in enumerate(zip(names, term.contracts(), strict=True)):
            j = k % term.width
            component = plain[j].removeprefix(f"{term.name}/")
            yield PassportColumn(
                name=name, term=term.name, source=source.name, component=component,
                unit="1" if source.name == ACTION else contract.unit,
                axes=contract.axes, point=contract.point,
                sign=_sign(env, source.name, component, contract),
                scale=float(scales[j]), offset=float(source.offset[j]), clip=term.clip,
                age=term.history - 1 - k // term.width, delay=term.delay,
                noise_std=_noise_std(term.noise, env.step_dt), period_s=source.period_s,
            )  # fmt: skip


def action_columns(env: Env) -> Iterator[PassportColumn]:
    """Yield the columns of an action, in their order, without ranges."""
    parts = [(n, t, k) for n, t in env.actions.items() for k in range(t.dim)]
    for (term_name, term, k), name, contract in zip(
        parts, env.action_names, env.actions.contracts, strict=True
    ):
        source, (offset, clip) = _target(term_name, term), _rest(term, k)
        yield PassportColumn(
            name=name, term=term_name, source=source, component=term.names[k],
            unit=contract.unit, axes=contract.axes, point=contract.point,
            sign=_sign(env, source, term.names[k], contract), scale=contract.scale,
            offset=offset, clip=clip, is_action=True,
        )  # fmt: skip


def check_rate(step_dt: float, env: Env, path: str) -> None:
    """Raise unless an environment has the control step of a policy [s]."""
    if abs(step_dt - env.step_dt) > 1e-9:
        raise InvalidInputError(
            f"{path!r} was trained with steps of {step_dt:g} s, but this environment "
            f"has steps of {env.step_dt:g} s.",
            name="step_dt",
        )


def check_fit(passport: Passport, env: Env, group: str, path: str) -> None:
    """Raise if contracts of an environment's columns differ from the policy's."""
    for kind, theirs, ours in (
        ("observation", passport.observations, observation_columns(env, group)),
        ("action", passport.actions, action_columns(env)),
    ):
        here = {one.name: one for one in ours}
        faults = [
            f"{one.name}: {part} {a!r} in the passport, {b!r} here"
            for one in theirs
            for part in _FITTING
            if one.name in here
            and _differ(a := getattr(one, part), b := getattr(here[one.name], part))
        ]
        if faults:
            raise InvalidInputError(
                f"The passport of {path!r} does not fit this environment: {kind} "
                f"{listed(faults)}. Play it in the task of its training, without "
                "settings that change these.",
                name=kind,
            )


def _differ(one: Any, other: Any) -> bool:
    if isinstance(one, str) or one is None or other is None:
        return one != other
    return not np.allclose(one, other, rtol=1e-5, atol=1e-5)


def _target(name: str, term: Action) -> str:
    """Return the quantity that an action requests, or the term's name."""
    if not isinstance(term, JointAction) or isinstance(term, RelativeJointAction):
        return name
    kind = "position" if isinstance(term, JointPdAction) else term.cfg.kind
    short = {"position": "pos", "velocity": "vel"}.get(kind, kind)
    return f"{term.entity.name}.joint_{short}_target"


def _rest(term: Action, k: int) -> tuple[float, Range | None]:
    """Return the value for action 0, and the range of values [unit]."""
    if isinstance(term, ControlAction):
        low, high = float(term.low[k]), float(term.high[k])
        return ((low + high) / 2, (low, high)) if math.isfinite(low) else (0.0, None)
    if isinstance(term, BodyWrenchAction):
        most = abs(float(term.scale[k])) * term.cfg.limit
        return 0.0, (-most, most)
    if not isinstance(term, JointAction):
        return 0.0, None
    if isinstance(term, RelativeJointAction):  # relative to the current position
        return 0.0, term.cfg.clip
    worlds = len(term.entity.data.default_joint_pos)
    zero = term.targets(torch.zeros(worlds, term.dim).to(term.scale))
    return float(zero[0, k]), term.cfg.clip


def _sign(env: Env, source: str, component: str, contract: Contract) -> str:
    """Return the direction in which a value is positive."""
    entity = env.scene.get(source.partition(".")[0])
    if entity is not None and component in entity.joint_names:
        model = env.sim.model
        joint = entity.index.joints.ids[entity.joint_names.index(component)]
        slides = int(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_SLIDE.value
        axis = ", ".join(f"{x:.6g}" for x in model.jnt_axis[joint])
        body = model.body(int(model.jnt_bodyid[joint])).name.rpartition("/")[2]
        return f"{'along' if slides else 'about'} ({axis}) of {body}"
    if contract.axes in (NO, UNDECLARED):
        return NO
    return "right-handed" if is_axial(contract.unit) else "along"


def _noise_std(noise: ObservationNoise | None, step_dt: float) -> float:
    """Return the standard deviation of a term's noise, in its unit."""
    if isinstance(noise, UniformNoise):
        return (noise.high - noise.low) / 12**0.5
    if isinstance(noise, GaussianNoise):
        return noise.std
    if isinstance(noise, SensorNoise):
        return math.hypot(
            noise.density / step_dt**0.5, noise.bias_std, noise.resolution / 12**0.5
        )
    return 0.0
