"""Samples over time as a table or a figure; pandas and matplotlib load on use."""

# matplotlib comes with partial type information.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from simstate.base.checks import as_path
from simstate.base.errors import (
    InvalidInputError,
    UnknownNameError,
    listed,
    unknown_name,
)
from simstate.base.extras import library

MOST_WORLDS = 16
"""Default maximum number of worlds in a figure."""
MOST_NAMED = 20
"""Maximum number of components with a label in a figure."""
_COLUMNS = 4
"""Maximum number of panels side by side."""
_SIDE = re.compile(r"(?i)left|right|[lr]|[fhr][lr]|front|rear|hind|[xyz]|[0-9]+")
"""Parts of names that distinguish joints of one kind."""
_STYLES = ("-", "--", ":", "-.")
"""Line styles, each used with ten colours."""


class Samples(Protocol):
    """Quantities over time: tensors of (samples, worlds, …)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities."""
        ...

    @property
    def units(self) -> Mapping[str, str]:
        """The unit of each quantity."""
        ...

    @property
    def time(self) -> Tensor:
        """Times of the samples [s], NaN where missing; (samples, worlds)."""
        ...

    def __getitem__(self, name: str) -> Tensor:
        """Return a quantity over time; (samples, worlds, …)."""
        ...


def full_column_name(name: str, known: Collection[str], kind: str) -> str:
    """Return the name of a column, of which the entity's may be omitted."""
    if name in known:
        return name
    ends = [one for one in known if one.rpartition(".")[2] == name]
    if not ends:
        raise unknown_name(kind, name, known)
    if len(ends) > 1:
        raise UnknownNameError(
            f"{name!r} is a {kind} of several entities: name one of {listed(ends)}.",
            name=name,
            known=ends,
        )
    return ends[0]


def table_of(samples: Samples, worlds: Mapping[int, int], whole: bool) -> Any:
    """Return a pandas table with a row per sample of some worlds (id → column).

    Columns are `name` or `name[k]`; units are in `attrs["units"]`. The index is the
    time or, if `whole`, the world and the time.
    """
    pandas = library("pandas", "data", "Tables")
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
    title: str = "",
    more: Sequence[Callable[[Any], None]] = (),
) -> None:
    """Draw quantities over time, a panel per kind of component, a shade per world.

    Args:
        samples: the samples.
        path: the file of the figure.
        worlds: the worlds to draw (id → column).
        names: the quantities.
        components: names of the components of each; None: unnamed.
        elapsed: time of the samples since the first [s], (samples,); the abscissa if
            a world was reset. None: always the worlds' own time.
        title: heading of the figure, before its worlds.
        more: functions that draw further panels, each on one pair of axes.
    """
    path = as_path("path", path)
    check_figure_file(path)
    panels = [
        panel for name in names for panel in _panels(samples, name, components or {})
    ]
    count = len(panels) + len(more)
    columns = max(1, min(_COLUMNS, count))
    rows = max(1, -(-count // columns))
    figure = new_figure(3.2 * columns + 1.5, 1.4 + 2.1 * rows)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for spare in grid.flat[count:]:
        spare.set_axis_off()
    for axes in grid.flat[max(0, count - columns) : count]:
        axes.tick_params(labelbottom=True)  # no panel is below it
    for draw_panel, axes in zip(more, grid.flat[len(panels) :], strict=False):
        draw_panel(axes)
    time = samples.time.double()
    again = time.diff(dim=0) < 0
    was_reset = bool(again[:, list(worlds.values())].any())
    over = time
    if elapsed is not None and was_reset:
        over = elapsed.double()[:, None].expand_as(time)
    inks = {
        m: k for k, m in enumerate(dict.fromkeys(m for p in panels for m in p.members))
    }
    for axes, panel in zip(grid.flat, panels, strict=False):
        values = samples[panel.name]
        flat = values.reshape(*values.shape[:2], -1).double()
        for number, place in enumerate(worlds.values()):
            breaks = again[:, place].nonzero().flatten() + 1
            x = _broken(over[:, place, None], breaks)[:, 0]
            y = _broken(flat[:, place], breaks)
            shade = 1.0 - 0.75 * number / max(len(worlds) - 1, 1)
            for k, member in zip(panel.components, panel.members, strict=True):
                style = _STYLES[inks[member] // 10 % len(_STYLES)]
                axes.plot(
                    x, y[:, k], style, color=f"C{inks[member] % 10}", alpha=shade,
                    linewidth=1.1, label=member if number == 0 else None,
                )  # fmt: skip
        axes.set_title(panel.title, loc="left", fontsize="small")
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.grid(visible=True, alpha=0.3)
    since = "time since the first sample [s]" if over is not time else "time [s]"
    figure.supxlabel(since, fontsize="small")
    heading = ", ".join(filter(None, (title, _worlds_text(list(worlds)))))
    figure.suptitle(heading, fontsize="medium")
    _add_legend(figure, grid)
    save_figure(figure, path)


@dataclass(frozen=True)
class _Panel:
    """Components of a quantity that share an axis."""

    name: str
    title: str
    components: list[int]
    members: list[str]
    """Names of the curves; "" for a single one."""


def _panels(
    samples: Samples, name: str, labels: Mapping[str, Sequence[str]]
) -> list[_Panel]:
    """Return the panels of a quantity, one per kind of component."""
    width = samples[name][0, 0].numel()
    known = labels.get(name, ())
    names = list(known) if len(known) == width else [f"[{k}]" for k in range(width)]
    unit = samples.units[name]
    if width == 1:
        return [_Panel(name, f"{name} [{unit}]", [0], [""])]
    kinds: dict[str, list[tuple[int, str]]] = {}
    for k, label in enumerate(names):
        member, kind = split_name(label)
        kinds.setdefault(kind, []).append((k, member))
    if len(kinds) == width or width > MOST_NAMED * 4:  # no two are of the same kind
        kinds = {"": list(enumerate(names))}
    return [
        _Panel(
            name, _title(name, kind, unit),
            [k for k, _ in found], [member for _, member in found],
        )
        for kind, found in kinds.items()
    ]  # fmt: skip


def _title(name: str, kind: str, unit: str) -> str:
    what = f"{name}, {kind}" if kind else name
    return what if "[" in kind else f"{what} [{unit}]"


def split_name(name: str) -> tuple[str, str]:
    """Split a joint's name into side or number, and kind: "FL_hip" → "FL", "hip"."""
    bare, _, unit = name.partition(" [")
    tokens = re.split(r"[_/ ]+|(?<=[a-z])(?=[0-9])", bare)
    sides = [t for t in tokens if _SIDE.fullmatch(t)]
    kind = "_".join(t for t in tokens if t and not _SIDE.fullmatch(t))
    if not sides or not kind:
        return name, ""
    return "_".join(sides), kind + (f" [{unit}" if unit else "")


def _worlds_text(worlds: Sequence[int]) -> str:
    """Return the text that lists the worlds of a figure, in the order of shades."""
    if len(worlds) == 1:
        return f"world {worlds[0]}"
    return f"worlds {', '.join(map(str, worlds))}, from dark to light"


def _add_legend(figure: Any, grid: Any) -> None:
    """Add one legend for all panels, if the curves have names."""
    found: dict[str, Any] = {}
    for axes in grid.flat:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, line)
    if 0 < len(found) <= 2 * MOST_NAMED:
        figure.legend(
            found.values(), found, loc="outside right upper", fontsize="x-small",
            frameon=False, ncols=1 + (len(found) - 1) // 24,
        )  # fmt: skip


def _broken(rows: Tensor, at: Tensor) -> Any:
    """Return the rows with a row of NaN before each of `at`, which breaks lines."""
    return np.insert(rows.numpy(), at.numpy(), np.nan, axis=0)


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of that size [inch], without a window."""
    backend = library("matplotlib.backends.backend_agg", "plot", "Plots")
    drawing = library("matplotlib.figure", "plot", "Plots")
    figure = drawing.Figure(figsize=(width, height), layout="constrained")
    backend.FigureCanvasAgg(figure)
    return figure


def check_figure_file(path: Path) -> None:
    """Raise if matplotlib cannot write a figure of this file type."""
    kinds = new_figure(1.0, 1.0).canvas.get_supported_filetypes()
    kind = path.suffix.removeprefix(".").lower()
    if kind and kind not in kinds:
        raise InvalidInputError(
            f"{str(path)!r} does not have a supported image format. Known: "
            f"{listed(kinds)}.",
            name=str(path),
        )


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the image format given by the file's suffix."""
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"The plot could not be written: {error}", name="plot"
        ) from error
