"""Grids: one run for each combination of seeds and values of settings."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simstate.base.errors import InvalidInputError
from simstate.train.run_cfg import RunCfg


@dataclass(frozen=True)
class Cell:
    """One run of a grid."""

    name: str
    """Name of its folder."""
    group: str
    """Settings in common with runs of other seeds."""
    cfg: RunCfg


def grid_cells(base: RunCfg, seeds: Sequence[int], grid: Sequence[str]) -> list[Cell]:
    """Return the runs of all combinations; raise if any of them is invalid.

    Args:
        base: the common settings.
        seeds: seeds; empty: that of `base`.
        grid: "path=value,value", such as "env.rewards.track.weight=1,2".
    """
    axes = [_axis(text) for text in grid]
    cells: list[Cell] = []
    for values in itertools.product(*(options for _, options in axes)):
        given = dict(zip((path for path, _ in axes), values, strict=True))
        parts = [f"{path.split('.', 1)[1]}={_text(v)}" for path, v in given.items()]
        for seed in dict.fromkeys(seeds or (base.seed,)):
            name = "_".join([*parts, f"seed_{seed}"]).replace("/", "-")
            cfg = _with(dataclasses.replace(base, seed=seed), given)
            cells.append(Cell(name, ", ".join(parts) or "all", cfg))
    return cells


def _with(base: RunCfg, given: dict[str, Any]) -> RunCfg:
    cfg = base.changed(given)
    cfg.env_cfg()  # a wrong path or value raises
    return cfg


def _axis(text: str) -> tuple[str, list[Any]]:
    path, equals, values = text.partition("=")
    path = path.strip().replace("-", "_")
    if not equals or not values or path.partition(".")[0] not in ("env", "train"):
        raise InvalidInputError(
            f"--grid takes a setting and its values, such as "
            f"env.rewards.track.weight=1,2 or train.learning_rate=1e-3,3e-4; got "
            f"{text!r}."
        )
    return path, [_value(part) for part in _split(values)]


def _split(values: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for letter in values:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _value(text: str) -> Any:
    """Return a JSON value: a number, list, true, false or null; else the text."""
    try:
        return json.loads(text.strip().replace("(", "[").replace(")", "]"))
    except json.JSONDecodeError:
        return text.strip()


def _text(value: Any) -> str:
    return json.dumps(value) if not isinstance(value, str) else value
