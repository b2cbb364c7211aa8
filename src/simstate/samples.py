"""Samples over time as a table or as a figure, whatever has kept them."""

# pandas comes without complete types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from simstate.checks import as_path
from simstate.errors import InvalidInputError
from simstate.figures import check_figure_file, new_figure, save_figure

MOST_WORLDS = 16
"""That a figure draws if nobody says which."""


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
    samples: Samples, path: str | Path, places: Sequence[int], names: Sequence[str]
) -> None:
    """Draw each quantity over time, a line for each world and component."""
    path = as_path("path", path)
    check_figure_file(path)
    figure = new_figure(7.0, 1.0 + 1.8 * len(names))
    grid = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    time = samples.time
    for axes, name in zip(grid, names, strict=True):
        values = samples[name]
        for place in places:
            flat = values[:, place].reshape(len(time), -1)
            axes.plot(time[:, place].numpy(), flat.numpy(), linewidth=1.0)
        unit = samples.units[name]
        axes.set_ylabel(f"{name} [{unit}]" if unit else name)
        axes.grid(visible=True, alpha=0.3)
    grid[-1].set_xlabel("time [s]")
    save_figure(figure, path)
