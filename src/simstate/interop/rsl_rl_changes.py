"""Changes of rsl-rl's settings (`TrainCfg.rsl_rl`), checked against its classes."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from rsl_rl import algorithms, models
from rsl_rl.extensions import RandomNetworkDistillation
from rsl_rl.modules import CNN, distribution

from simstate.base.checks import instance_of
from simstate.base.errors import InvalidInputError, unknown_name

_CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (
        algorithms.PPO,
        algorithms.Distillation,
        models.MLPModel,
        models.RNNModel,
        distribution.GaussianDistribution,
        distribution.HeteroscedasticGaussianDistribution,
        distribution.BetaDistribution,
    )
}
"""Classes that settings may name; others could be code from a checkpoint."""
_INNER: dict[str, type] = {"cnn_cfg": CNN, "rnd_cfg": RandomNetworkDistillation}
"""Classes of nested settings."""
_GIVEN = {
    "self", "obs", "obs_groups", "obs_set", "output_dim", "actor", "critic", "student",
    "teacher", "storage", "device", "multi_gpu_cfg", "cnns", "num_states", "input_dim",
    "input_channels", "symmetry_cfg", "kwargs", "settings",
}  # fmt: skip
"""Arguments that simstate passes itself or sets otherwise."""
_FIELDS = {
    "class_name": "algorithm",
    "use_clipped_value_loss": "clip_value_loss",
    "schedule": "desired_kl",
}
"""Fields of TrainCfg whose names differ from rsl-rl's."""


def with_changes(
    parts: dict[str, dict[str, Any]], changes: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the settings of parts of a runner with changes; unknown names raise.

    Args:
        parts: settings by part, such as "actor", "critic" and "algorithm".
        changes: settings by part, as in `TrainCfg.rsl_rl`.
    """
    for part, changed in changes.items():
        if part not in parts:
            raise unknown_name("part of rsl_rl", part, parts)
        label = f"rsl_rl[{part!r}]"
        instance_of(label, changed, Mapping)
        if part == "algorithm":
            _check_not_in_train_cfg(parts[part], changed)
        parts = {**parts, part: _changed(parts[part], changed, label)}
    return parts


def _check_not_in_train_cfg(
    algorithm: dict[str, Any], changed: Mapping[str, Any]
) -> None:
    for name in changed:
        if name in algorithm and name not in (*_INNER, "gradient_length"):
            raise InvalidInputError(
                f"rsl_rl['algorithm'][{name!r}] is TrainCfg.{_FIELDS.get(name, name)}: "
                "set it there.",
                name="rsl_rl",
            )


def _changed(
    base: dict[str, Any],
    changes: Mapping[str, Any],
    label: str,
    owner: type | None = None,
) -> dict[str, Any]:
    """Return settings with changes, without those that a new class does not have."""
    name = changes.get("class_name", base.get("class_name"))
    if "class_name" in changes and name not in _CLASSES:
        raise unknown_name(f"class_name of {label}", name, _CLASSES)
    owner = owner or (_CLASSES[name] if isinstance(name, str) else cast("type", name))
    known = _parameters(owner)
    kept = {k: v for k, v in base.items() if k in known or k == "class_name"}
    for name, value in changes.items():
        if name not in known and name != "class_name":
            raise unknown_name(f"setting of {label}", name, known)
        within, inner = f"{label}[{name!r}]", base.get(name)
        if name in _INNER and not isinstance(inner, dict):
            needed = "rnd_weight above 0" if name == "rnd_cfg" else "network='cnn'"
            raise InvalidInputError(f"{within} needs {needed}.", name="rsl_rl")
        if isinstance(inner, dict):
            instance_of(within, value, Mapping)
            settings = cast("dict[str, Any]", inner)
            value = _changed(settings, value, within, _INNER.get(name))
        kept[name] = value
    return kept


def _parameters(owner: type) -> list[str]:
    """Return the names of a class's settings, with those of its base classes."""
    names: dict[str, None] = {}
    for each in owner.__mro__:
        if "__init__" not in vars(each) or each is object:
            continue
        found = inspect.signature(each).parameters.values()
        names |= dict.fromkeys(x.name for x in found if x.name not in _GIVEN)
        if not any(x.kind == x.VAR_KEYWORD for x in found):
            break
    return list(names)
