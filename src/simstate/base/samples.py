"""Samples over time as a table or as a figure, whatever has kept them."""

# pandas comes without complete types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from simstate.base.checks import as_path
from simstate.base.errors import InvalidInputError
from simstate.base.figures import check_figure_file, new_figure, save_figure

MOST_WORLDS = 16
"""Maximum number of worlds in a figure unless specified."""
MOST_NAMED = 20
"""Maximum number of components with a label in a figure."""
_STYLES = ("-", "--", ":", "-.")
"""Line styles, each for ten colours."""


class Samples(Protocol):
    """Quantities over time: tensors of (samples, worlds, …)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities."""
        ...

    @property
    def units(self) -> Mapping[str, str]:
        """The unit of each."""
        ...

    @property
    def time(self) -> Tensor:
        """When the samples were taken [s], NaN where none was; (samples, worlds)."""
        ...

    def __getitem__(self, name: str) -> Tensor:
        """A quantity over time; (samples, worlds, …)."""
        ...


def table_of(samples: Samples, worlds: Mapping[int, int], whole: bool) -> Any:
    """A pandas table with a row for each sample of some worlds (number → column).

    Columns are `name` or `name[k]`; units are in `attrs["units"]`. The index is the
    time, and where `whole` the world and the time.
    """
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise InvalidInputError(
            "Tables need pandas: pip install 'simstate[data]'."
        ) from error
    values = {name: samples[name] for name in samples.names}
    time = samples.time
    tables: list[Any] = []
    for place in worlds.values():
        columns: dict[str, Any] = {}
        for name, quantity in values.items():
            flat = quantity[:, place].reshape(len(time), -1)
            for k in range(flat.shape[1]):
                key = name if quantity.ndim == 2 else f"{name}[{k}]"
                columns[key] = flat[:, k].numpy()
        index = pandas.Index(time[:, place].numpy(), name="time")
        table = pandas.DataFrame(columns, index=index)
        tables.append(table[table.index.notna()])
    found = (
        pandas.concat(tables, keys=list(worlds), names=["world", "time"])
        if whole
        else tables[0]
    )
    found.attrs["units"] = dict(samples.units)
    return found


def draw(
    samples: Samples,
    path: str | Path,
    worlds: Mapping[int, int],
    names: Sequence[str],
    components: Mapping[str, Sequence[str]] | None = None,
    elapsed: Tensor | None = None,
) -> None:
    """Draw each quantity over time, a line for each world and component.

    Args:
        samples: what was kept.
        path: the figure.
        worlds: those to draw (number → column).
        names: the quantities.
        components: names of the components of each; None: they have none.
        elapsed: when the samples were taken, since the first [s]; (samples,). It is
            drawn over this where the time of a world begins anew; None: it never is.
    """
    path = as_path("path", path)
    check_figure_file(path)
    figure = new_figure(8.0, 1.0 + 2.0 * len(names))
    grid = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    time = samples.time.double()
    again = time.diff(dim=0) < 0
    begins_anew = bool(again[:, list(worlds.values())].any())
    over = time
    if elapsed is not None and begins_anew:
        over = elapsed.double()[:, None].expand_as(time)
    for axes, name in zip(grid, names, strict=True):
        values = samples[name]
        flat = values.reshape(*values.shape[:2], -1).double()
        labels = _labels(name, flat.shape[2], worlds, (components or {}).get(name, ()))
        for number, place in enumerate(worlds.values()):
            breaks = again[:, place].nonzero().flatten() + 1
            x = _broken(over[:, place, None], breaks)[:, 0]
            y = _broken(flat[:, place], breaks)
            for k in range(flat.shape[2]):
                curve = k if flat.shape[2] > 1 else number
                style = _STYLES[curve // 10 % len(_STYLES)]
                label = labels.get((number, k))
                axes.plot(
                    x, y[:, k], style, color=f"C{curve % 10}", linewidth=1.0,
                    label=label,
                )  # fmt: skip
        axes.set_title(name, loc="left", fontsize="medium")
        axes.set_ylabel(samples.units[name])
        axes.grid(visible=True, alpha=0.3)
        if labels:
            axes.legend(
                loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False,
                fontsize="x-small", ncols=1 + (len(labels) - 1) // 10,
            )  # fmt: skip
    since = "time since the first sample [s]"
    grid[-1].set_xlabel(since if over is not time else "time [s]")
    save_figure(figure, path)


def _labels(
    name: str, width: int, worlds: Mapping[int, int], components: Sequence[str]
) -> dict[tuple[int, int], str]:
    """Return the labels of curves by (position of the world, component); {} for none.

    Each component has a colour, the same in all worlds; where there is one alone, each
    world has.
    """
    if width == 1:
        many = {(n, 0): f"world {world}" for n, world in enumerate(worlds)}
        return many if 1 < len(worlds) <= MOST_WORLDS else {}
    if width > MOST_NAMED:
        return {}
    return {
        (0, k): components[k] if len(components) == width else f"{name}[{k}]"
        for k in range(width)
    }


def _broken(rows: Tensor, at: Tensor) -> Any:
    """Rows with one of NaN before some of them, where a line ends."""
    return np.insert(rows.numpy(), at.numpy(), np.nan, axis=0)
