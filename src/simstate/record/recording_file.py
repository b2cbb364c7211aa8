"""Recording: a file that `record` wrote, read block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import all_of, as_path, whole_number
from simstate.base.closeable import Closing
from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError, RecordingError, warn
from simstate.base.notebook import html_summary
from simstate.base.printable import printable
from simstate.base.samples import MOST_WORLDS, draw, full_column_name, table_of
from simstate.record.changes import Step
from simstate.record.columns import IMAGE, component_contracts
from simstate.record.container import SNAPSHOT, ContainerReader
from simstate.record.header import HEADER, MODEL, STEP, TIME, model_from, read_header
from simstate.record.recorded_blocks import BlockPlace, RecordedBlocks
from simstate.state import Snapshot


class Recording(Closing):
    """A recorded run: columns over time, and the inputs that replay it.

    Values are read on demand, one block at a time. Blocks, header and snapshots have
    checksums: reading an altered one raises RecordingError.

    Args:
        path: a file that `sim.record` or `env.record` wrote, to its end or not.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = as_path("path", path)
        self._file = ContainerReader(self.path)
        try:
            name = str(path)
            if HEADER not in self._file.attachments:
                raise RecordingError(
                    f"{name!r} holds no recording: it was cut off before it began, or "
                    "is an MCAP file of another program.",
                    name=name,
                )
            self.header: dict[str, Any] = read_header(
                self._file.attachment(HEADER), name
            )
            """Description of the recording: see `simstate info`."""
            self._contracts: dict[str, Any] = self.header["columns"]
            self._blocks = RecordedBlocks(self._file, self._contracts, len(self.worlds))
            self.missing = self._blocks.missing
            """Description of the blocks that are missing in the file; "": none. Only
            the blocks before them can be read."""
            self.blocks = self._blocks.places
            """Contents of each block, in order."""
            self.is_whole = self._blocks.is_whole
            """True if it was ended and nothing is missing; else it holds the complete
            blocks up to where it was cut off or the first is missing."""
            if self.missing:
                warn(
                    f"{name!r} has a gap: {self.missing}. The "
                    f"{self.num_samples} samples and {self.num_steps} steps before it "
                    "can be read."
                )
        except BaseException:
            self._file.close()
            raise

    def __repr__(self) -> str:
        end = "" if self.is_whole else ", incomplete"
        worlds = f"{len(self.worlds)} world{'s' * (len(self.worlds) != 1)}"
        return (
            f"Recording({self.path.name!r}, {self.kind}, {worlds}, "
            f"{self.num_samples} samples of {len(self.names)} columns, "
            f"{self.num_steps} steps{end})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (printable(name), printable(unit), "×".join(map(str, shape)) or "1")
            for name in self.names
            for contract in [self.contract(name)]
            for unit, shape in [(contract["unit"], contract["shape"])]
        ]
        return html_summary(repr(self), ("column", "unit", "shape"), rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # Contents.

    @property
    def kind(self) -> str:
        """Kind of the recorded object: "sim" or "env"."""
        return self.header["kind"]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, without time and step."""
        return tuple(name for name in self._contracts if name not in (TIME, STEP))

    @property
    def units(self) -> Mapping[str, str]:
        """The unit of each column."""
        return {name: contract["unit"] for name, contract in self._contracts.items()}

    @property
    def worlds(self) -> list[int]:
        """The recorded worlds, in the order of the columns."""
        return self.header["worlds"]

    @property
    def num_samples(self) -> int:
        """Number of samples."""
        return self._blocks.num_samples

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return self._blocks.num_steps

    def __len__(self) -> int:
        return self.num_samples

    def contract(self, name: str) -> dict[str, Any]:
        """Return unit, axes, point, component names, dtype and shape of a column."""
        return self._contracts[self.full_name(name)]

    def component_contracts(self, name: str) -> list[Contract]:
        """Return unit, axes and point of each component of a column, in C order."""
        contract = self.contract(name)
        return component_contracts(contract, math.prod(contract["shape"]))

    def component_units(self, name: str) -> list[str]:
        """Return the unit of each component of a column, in C order."""
        return [contract.unit for contract in self.component_contracts(name)]

    def full_name(self, name: str) -> str:
        """Return the name of a column, of which the entity's may be left out."""
        return full_column_name(name, self._contracts, "recorded column")

    # Columns.

    @property
    def time(self) -> Tensor:
        """Simulation times of the samples [s]; (samples, worlds)."""
        return self[TIME]

    @cached_property
    def elapsed(self) -> Tensor:
        """Time since the start, which continues over resets [s]; (samples,)."""
        spans = [0.0]
        if self.kind == "env":
            spans += [float(self.header["step_dt"])] * self.num_steps
        else:
            spans += [self.span(step) for step in self.steps()]
        return torch.tensor(spans, dtype=torch.float64).cumsum(0)[self[STEP]]

    def span(self, step: Step) -> float:
        """Return the simulated time of a step [s]."""
        if self.kind == "env":
            return self.header["step_dt"]
        return step.call["n"] * self.header["simulation"]["timestep"]

    def __getitem__(self, name: str) -> Tensor:
        """Return a column over time, in its recorded dtype; (samples, worlds, …)."""
        return self.read(name)

    def read(self, name: str, first: int = 0, last: int | None = None) -> Tensor:
        """Return the samples first … last−1 of a column; (samples, worlds, …)."""
        name = self.full_name(name)
        first, end = whole_number("first", first, 0), self.num_samples
        if last is not None:
            end = min(whole_number("last", last, 0), end)
        if end < first:
            raise InvalidInputError(
                f"The recording has the samples 0 … {self.num_samples - 1}, got first="
                f"{first} and last={last}.",
                name="first",
            )
        parts = [
            self.read_block(block, [name])[name][
                max(first - block.first_sample, 0) : end - block.first_sample
            ]
            for block in self.blocks
            if block.first_sample < end and first < block.first_sample + block.samples
        ]
        dtype, shape = self._blocks.kind(name, 0)
        empty = np.empty(shape, dtype)
        return torch.as_tensor(np.concatenate([empty, *parts]))

    def read_block(
        self, block: BlockPlace, names: Sequence[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Return columns of one block by name; None: all."""
        return self._blocks.columns(block, names)

    def steps(self, first: int = 0) -> Iterator[Step]:
        """Yield the steps in order, from number `first` on."""
        for block in self.blocks:
            if block.first_step + block.steps > first:
                steps = self.read_steps(block)
                yield from steps[max(first - block.first_step, 0) :]

    def read_steps(self, block: BlockPlace) -> list[Step]:
        """Return the steps of one block."""
        return self._blocks.steps(block)

    def to_pandas(self, world: int | None = None) -> Any:
        """Return a table with a row for each sample, of one world or of all.

        Columns are `name` or `name[k]`; units are in `attrs["units"]`. The index is
        the time, and for all worlds the world and the time.
        """
        chosen = None if world is None else [whole_number("world", world, 0)]
        return table_of(self, self.places(chosen), world is None)

    def plot(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        worlds: Sequence[int] | Tensor | None = None,
    ) -> None:
        """Draw columns over time, a line for each world and component.

        Where a world was reset, the time axis is that since the start of the recording,
        and lines are broken. Pictures are left out.
        """
        places = self.places(worlds, MOST_WORLDS)
        requested = self.names if names is None else all_of("names", names, str)
        columns = [self.full_name(n) for n in requested or self.names]
        drawn = [n for n in columns if self._is_curve(n)]
        if len(drawn) < (len(columns) if names else 1):
            left = [n for n in columns if n not in drawn]
            what = ", ".join(left) or "The recording"
            raise InvalidInputError(
                f"{what} has no numbers to draw as curves.",
                name=left[0] if left else str(self.path),
            )
        components = {name: self.labels(name) for name in drawn}
        draw(self, path, places, drawn, components, self.elapsed)

    def share(
        self,
        path: str | Path,
        worlds: Sequence[int] | Tensor | None = None,
        *,
        played_in: Any = None,
        fps: float = 30.0,
    ) -> None:
        """Write the run as one HTML page that needs no server and no network.

        It has the 3-D scene with a timeline, plots with units and contracts, marks of
        resets, divergences and events, settings, versions, seeds and the checksum of
        this file, and the command that replays it.

        Args:
            path: the .html file to write.
            worlds: ids of the recorded worlds to show; None: the first four.
            played_in: the Simulation or Env in which the steps are taken again for the
                scene; None: made as by `replay`.
            fps: frames of the scene per second of simulated time.
        """
        # By name: it replays the file, with modules that are built on this one.
        page = import_module("simstate.data.replay.recording_page")
        page.share_recording(self, path, worlds=worlds, played_in=played_in, fps=fps)

    # Inputs of a replay.

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled model, read by MuJoCo's loader of binary models."""
        return model_from(self._file.attachment(MODEL), self.header["versions"])

    @property
    def snapshot_steps(self) -> list[int]:
        """The steps before which there are snapshots, in rising order."""
        return [step for step in self._blocks.snapshots if step <= self.num_steps]

    def snapshot(self, step: int, is_written: bool = False) -> Snapshot:
        """Return the snapshot from before a step, one of `snapshot_steps`.

        Before the first step there may be two: the start of the recording, and, where
        slots were added before that step, the worlds after what was written to them
        (`is_written`).
        """
        name = f"{SNAPSHOT}{step}"
        label = f"snapshot {step} of {self.path}"
        number = -1 if step or is_written else 0
        return Snapshot.from_bytes(self._file.attachment(name, number), label)

    def labels(self, name: str) -> list[str]:
        """Return the names of a column's components, with units if these differ."""
        names, units = self.contract(name)["names"], self.component_units(name)
        if len(set(units)) < 2 or not names:
            return names
        return [f"{n} [{unit}]" for n, unit in zip(names, units, strict=True)]

    def _is_curve(self, name: str) -> bool:
        """Return True if a column can be drawn as curves and is no picture."""
        contract = self.contract(name)
        return math.prod(contract["shape"]) > 0 and contract["axes"] != IMAGE

    def place(self, world: int) -> int:
        """Return the position of a world in the columns."""
        if world not in self.worlds:
            raise InvalidInputError(
                f"World {world} was not recorded: there are {self.worlds}.",
                name="world",
                worlds=[world],
            )
        return self.worlds.index(world)

    def places(
        self, worlds: Sequence[int] | Tensor | None = None, most: int | None = None
    ) -> dict[int, int]:
        """Return the position of each world in the columns; None: of the first `most`.

        Raise if there is no world, or one is named twice.
        """
        chosen = self.worlds[:most]
        if worlds is not None:
            given = all_of("worlds", worlds, object)
            chosen = [
                whole_number(f"worlds[{k}]", one, 0) for k, one in enumerate(given)
            ]
        places = {world: self.place(world) for world in chosen}
        if not places or len(places) < len(chosen):
            raise InvalidInputError(
                f"worlds must name at least one world, each once; got {chosen}.",
                name="worlds",
            )
        return places


def opened(recording: str | Path | Recording) -> AbstractContextManager[Recording]:
    """Open a file while the context is entered; a given recording stays open."""
    if isinstance(recording, Recording):
        return nullcontext(recording)
    return Recording(recording)
