"""Configuration of an environment, as a task writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from simstate.base.checks import all_of, instance_of, number, one_of, whole_number
from simstate.base.errors import InvalidInputError
from simstate.base.places import calling_place
from simstate.env.actions import ActionCfg
from simstate.env.commands import CommandCfg
from simstate.env.observation_noise import ObservationNoise
from simstate.scene import SceneCfg

TermFunction: TypeAlias = "Callable[..., Any] | str"
"""A function, or the name of one of those that ship with simstate.env."""

Params: TypeAlias = "dict[str, Any]"

EventMode = Literal["startup", "reset", "interval", "step"]

EndKind = Literal["failure", "success", "time_out", "other"]
"""Meaning of the end of an episode."""

END_KINDS: tuple[EndKind, ...] = ("failure", "success", "time_out", "other")

Reduction = Literal["last", "mean", "max", "sum"]
"""Reduction of the values that a metric has in an episode."""

REDUCTIONS: tuple[Reduction, ...] = ("last", "mean", "max", "sum")


@dataclass(kw_only=True)
class SymmetryCfg:
    """Mirror image of a task, which a learner uses with `TrainCfg.symmetric`."""

    normal: Literal["x", "y", "z"] = "y"
    """Normal of the plane of symmetry, which contains the root links."""
    joints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pairs of the robots' joints that do not follow from geometry; {"left": "-right"}
    if their positions have opposite signs."""
    phase_shift: float | None = None
    """Delay of a mirrored gait as a fraction of the period: 0.5 if left and right
    alternate, 0 if they move together; None: not declared."""

    def check(self) -> None:
        """Raise unless every setting is valid."""
        one_of("symmetry.normal", self.normal, ("x", "y", "z"))
        instance_of("symmetry.joints", self.joints, Mapping)
        all_of("symmetry.joints", [*self.joints, *self.joints.values()], str)
        if self.phase_shift not in (None, 0.0, 0.5):
            raise InvalidInputError(
                f"symmetry.phase_shift is {self.phase_shift!r}: it must be 0, 0.5 or "
                "None.",
                name="phase_shift",
            )


@dataclass
class TermCfg:
    """A function `(env, **params)` and its parameters.

    Parameters of type SceneEntityCfg, also as defaults of the function, are resolved to
    ids once.
    """

    func: TermFunction
    params: Params = field(default_factory=dict[str, Any], kw_only=True)

    def __post_init__(self) -> None:
        self.place = calling_place()
        """The line that it was written in, for errors."""


@dataclass
class ObservationTermCfg(TermCfg):
    """A function that returns (num_envs, k) numbers, and their processing.

    The order is noise, clip, scale, delay, history. It may also return an array of more
    dimensions and any dtype, such as a picture (num_envs, H, W, C) of uint8. Without a
    scale, integers are processed to integers, rounded and clipped to their range.
    """

    noise: ObservationNoise | None = field(default=None, kw_only=True)
    clip: tuple[float, float] | None = field(default=None, kw_only=True)
    """Minimum and maximum, before scaling; None: not clipped."""
    scale: float | tuple[float, ...] | None = field(default=None, kw_only=True)
    """One factor, or a tuple with one for each column or channel of a picture."""
    delay: int | tuple[int, int] = field(default=0, kw_only=True)
    """Delay in environment steps; from a range (minimum, maximum), each world draws its
    delay at reset, both ends included."""
    history: int = field(default=1, kw_only=True)
    """Number of the latest values, concatenated along the last axis, oldest first. A
    reset fills them with the first value."""


@dataclass
class ObservationGroupCfg:
    """Terms that are concatenated into one tensor, in their order.

    Columns are concatenated, and so are the channels of pictures of one dtype, height
    and width. A group of other terms is a dictionary of tensors by name of the term.
    """

    terms: dict[str, ObservationTermCfg]
    noise: bool = True
    """False leaves out the noise of the terms, as for a critic."""


@dataclass
class RewardTermCfg(TermCfg):
    """A function that returns (num_envs,) rewards per second, and their weight."""

    weight: float = field(kw_only=True)
    """Factor of the function's value; negative for a penalty."""


@dataclass
class TerminationTermCfg(TermCfg):
    """A function that returns (num_envs,) booleans, True in worlds that have ended."""

    time_out: bool = field(default=False, kw_only=True)
    """Truncate the episode instead of terminating it: the task could have continued."""
    kind: EndKind | None = field(default=None, kw_only=True)
    """Meaning of the end, for evaluations and logs: "failure" (the robot fell),
    "success" (the task is solved), "time_out" or "other". None: "time_out" if it
    truncates, else "failure"."""

    @property
    def meaning(self) -> EndKind:
        """The kind of end, with the default resolved."""
        if self.kind is not None:
            return self.kind
        return "time_out" if self.time_out else "failure"


@dataclass
class MetricTermCfg(TermCfg):
    """A function that returns (num_envs,) values, reported for each episode.

    Metrics appear in the log as "Metrics/<name>", and in evaluations; they are not part
    of the reward.
    """

    reduction: Reduction = field(default="mean", kw_only=True)
    """Reported value of an episode: the last one, the mean over its steps, the maximum,
    or the sum."""


@dataclass
class EventTermCfg(TermCfg):
    """A function `(env, env_ids, **params)` that changes worlds.

    "startup" runs once, and again after reseeding; "reset" whenever worlds are
    reset; "interval" periodically in each world; "step" in every environment step, in
    all worlds.
    """

    mode: EventMode = field(kw_only=True)
    """Time of the event: "startup", "reset", "interval" or "step"."""
    interval_s: tuple[float, float] | None = field(default=None, kw_only=True)
    """Range of the time between two "interval" events [s], rounded to steps."""
    shared: bool = field(default=False, kw_only=True)
    """True if all worlds draw the same values, in a "startup" event: one randomised
    robot rather than a different one in each world."""


@dataclass
class CurriculumTermCfg(TermCfg):
    """A function `(env, env_ids, **params)` that runs for worlds about to be reset.

    It may change the environment, and returns a number for the log, a dictionary of
    numbers by name, or None.
    """


@dataclass(kw_only=True)
class EnvCfg:
    """A task: its scene and its terms."""

    scene: SceneCfg
    decimation: int
    """Physics steps for each environment step."""
    episode_length_s: float
    """Time after which `terminations.time_out` ends an episode [s]."""
    observations: dict[str, ObservationGroupCfg]
    """Groups by name: "policy", and "critic" if its observations differ."""
    actions: Mapping[str, ActionCfg]
    rewards: dict[str, RewardTermCfg]
    terminations: dict[str, TerminationTermCfg]
    events: dict[str, EventTermCfg] = field(default_factory=dict[str, EventTermCfg])
    metrics: dict[str, MetricTermCfg] = field(default_factory=dict[str, MetricTermCfg])
    commands: Mapping[str, CommandCfg] = field(default_factory=dict[str, CommandCfg])
    curricula: dict[str, CurriculumTermCfg] = field(
        default_factory=dict[str, CurriculumTermCfg]
    )
    reward: TermCfg | None = None
    """Instead of `rewards`: one function that returns the reward of a step, shape
    (num_envs,), neither weighted nor multiplied by the time step; or a tuple of it and
    a dictionary of its parts, which become infos."""
    info: TermCfg | None = None
    """A function that returns a dictionary of infos, (num_envs, …) each, after a step
    and after a reset; None: no infos."""
    symmetry: SymmetryCfg = field(default_factory=SymmetryCfg)
    """The mirror image of the task, for `TrainCfg.symmetric`."""
    dtype: Literal["float32", "float64"] = "float32"
    """The dtype of observations, rewards and actions."""
    is_finite_horizon: bool = False
    """True if the time limit is part of the task: learners do not bootstrap there."""
    divergence_dump_dir: str | Path | None = None
    """A folder for snapshots of worlds that diverge; None: none are written."""
    max_divergence_dumps: int = 10
    """Maximum number of dumps."""


_KINDS: dict[str, type] = {
    "observations": ObservationGroupCfg,
    "actions": ActionCfg,
    "rewards": RewardTermCfg,
    "terminations": TerminationTermCfg,
    "metrics": MetricTermCfg,
    "events": EventTermCfg,
    "commands": CommandCfg,
    "curricula": CurriculumTermCfg,
}


def check_cfg(cfg: object) -> None:
    """Raise unless the configuration is valid, apart from its scene."""
    if not isinstance(cfg, EnvCfg):
        raise InvalidInputError(
            f"An Env needs an EnvCfg, got {type(cfg).__name__}: "
            "simstate.env.tasks.make_cfg(name) makes that of a shipped task, and "
            "env.cfg is that of an Env.",
            name="cfg",
        )
    for part, kind in _KINDS.items():
        _check_kinds(part, getattr(cfg, part), kind)
    for name, group in cfg.observations.items():
        _check_kinds(f"observations[{name!r}].terms", group.terms, ObservationTermCfg)
    for part in ("reward", "info"):
        if getattr(cfg, part) is not None:
            instance_of(f"EnvCfg.{part}", getattr(cfg, part), TermCfg)
    if cfg.reward is not None and cfg.rewards:
        raise InvalidInputError(
            "EnvCfg.reward is the complete reward, so `rewards` must be empty; it has "
            f"{', '.join(cfg.rewards)}.",
            name="rewards",
        )
    instance_of("EnvCfg.symmetry", cfg.symmetry, SymmetryCfg)
    cfg.symmetry.check()
    one_of("dtype", cfg.dtype, ("float32", "float64"))
    whole_number("decimation", cfg.decimation, 1, 2**31 - 1)
    number("episode_length_s", cfg.episode_length_s, more_than=0)
    whole_number("max_divergence_dumps", cfg.max_divergence_dumps, 0)
    for part in ("observations", "actions"):
        if not getattr(cfg, part):
            raise InvalidInputError(
                f"{part} is empty: an Env needs at least one.", name=part
            )


def _check_kinds(where: str, values: object, kind: type) -> None:
    """Raise unless it is a dictionary of such values."""
    if not isinstance(values, Mapping):
        raise InvalidInputError(
            f"EnvCfg.{where} must be a dictionary of {kind.__name__} by name, got "
            f"{type(values).__name__}.",
            name=where,
        )
    for name, value in cast("Mapping[object, object]", values).items():
        instance_of(f"The name {name!r} in EnvCfg.{where}", name, str)
        instance_of(f"EnvCfg.{where}[{name!r}]", value, kind)


def is_number(value: object) -> bool:
    """Return True for a finite number."""
    return isinstance(value, Real) and math.isfinite(value)
