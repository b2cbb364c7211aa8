"""History: chosen quantities over time, in memory, with names and units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import instance_of, number
from simstate.base.errors import InvalidInputError, ShapeError, listed
from simstate.base.samples import MOST_WORLDS, draw, full_column_name, table_of
from simstate.world.calls import Call
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.step_parts import StepParts
    from simstate.step.stepping_host import SteppingHost

Read: TypeAlias = "Callable[[Any], Tensor]"
Recorded: TypeAlias = "Sequence[str] | Mapping[str, str | Read | tuple[Read, str]]"
"""Names of quantities (`"robot.root_link_pos_w"`, `"qpos"`, `"contacts/feet.force_w"`,
`"rays/scan.distance"`, a process's name); or a mapping from new names to such a name,
to a function of the simulation that returns (num_envs, …), or to a function and its
unit."""


class History:
    """Samples kept by `sim.record`: tensors of (samples, num_envs, …), NaN if missing.

    Args:
        sim: the simulation.
        quantities: for each name, the function that reads the quantity, and its unit.
        every: the time between two samples [s]; None: a sample at every step, at the
            steps of an adaptive scheme and at the crossings of events.
    """

    def __init__(
        self,
        sim: SteppingHost,
        quantities: Mapping[str, tuple[Read, str]],
        every: float | None,
    ) -> None:
        if every is not None:
            number("every", every, more_than=0, unit="s")
        self._sim, self.every = sim, every
        self.units: dict[str, str] = {"time": "s"}
        """The unit of each quantity."""
        self._reads: dict[str, Read] = {}
        instance_of("quantities", quantities, Mapping)
        for name, (read, unit) in quantities.items():
            self._reads[name], self.units[name] = read, unit
        if not self._reads:
            raise InvalidInputError(
                "sim.record needs at least one quantity.", name="quantities"
            )
        self._start = sim.time.double().clone()
        self._rows: list[dict[str, Tensor]] = []
        self._open: dict[int, int] = {}
        """Rows of the current call by sample number, which later worlds fill in."""
        self._ledger = worlds_of(sim).ledger
        self._calls: list[tuple[Call, int]] = []
        """Calls that may be rolled back, and the number of rows before each."""
        self._ledger.undone.add(self)
        everyone = torch.ones(sim.num_envs, dtype=torch.bool, device=sim.device)
        self._sample(everyone, 0)

    # Reading.

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities."""
        return tuple(self._reads)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def time(self) -> Tensor:
        """Times of the samples [s], NaN where there is none; (samples, num_envs)."""
        return torch.stack([row["time"] for row in self._rows])

    def __repr__(self) -> str:
        samples = f"{len(self._rows)} samples of {self._sim.num_envs} worlds"
        return f"History({samples}: {listed(self.names)})"

    def __getitem__(self, name: str) -> Tensor:
        """A quantity over time, float64, on the host; (samples, num_envs, …).

        The entity's name may be omitted if it is the only one with this quantity.
        """
        if name == "time":
            return self.time
        name = full_column_name(name, self._reads, "recorded quantity")
        return torch.stack([row[name] for row in self._rows])

    def to_pandas(self, env_id: int | None = None) -> Any:
        """Return a DataFrame with a row for each sample, of one world or of all.

        Columns are `name` or `name[k]`; units are in `attrs["units"]`. The index is
        the time, and for all worlds the world and the time.
        """
        worlds = range(self._sim.num_envs) if env_id is None else [env_id]
        return table_of(self, {world: world for world in worlds}, env_id is None)

    def plot(self, path: str | Path, env_ids: Sequence[int] | None = None) -> None:
        """Draw each quantity over time, a line for each world and component."""
        some = range(min(self._sim.num_envs, MOST_WORLDS))
        worlds = {world: world for world in (some if env_ids is None else env_ids)}
        draw(self, path, worlds, self.names)

    # Sampling.

    def take(
        self, parts: StepParts, start: Tensor, taken: Tensor, going: Tensor
    ) -> None:
        """Keep the samples of a part of a step that was taken from `start` on."""
        if self.every is None:
            self._sample(going, -1)
            return
        # NumPy's calls cost less than torch's, which matters for few worlds.
        since = (start.double() - self._start).numpy(force=True)
        into_end, moved = taken.numpy(force=True), going.numpy(force=True)
        first = np.floor(since / self.every + 1e-9) + 1
        last = np.floor((since + into_end) / self.every + 1e-9)
        due = moved & (last >= first)
        if not due.any():
            return
        for k in range(int(first[due].min()), int(last[due].max()) + 1):
            worlds = due & (first <= k) & (k <= last)
            into = k * self.every - since
            at_end = worlds & (np.abs(into_end - into) <= 1e-9 * self.every)
            ids = np.flatnonzero(worlds & ~at_end)
            if ids.size:
                here = torch.as_tensor(ids, device=going.device)
                h = torch.as_tensor(into[ids], device=going.device)
                within = torch.as_tensor(worlds & ~at_end)
                parts.visit(h, here, lambda m=within, k=k: self._sample(m, k))
            if at_end.any():
                self._sample(torch.as_tensor(at_end), k)

    def mark(self) -> int:
        """Return the number of rows so far, for `forget`; note it for `undo`."""
        self._open.clear()
        open_calls = self._ledger.open
        calls = [pair for pair in self._calls if pair[0] in open_calls]
        known = [call for call, _ in calls]
        calls += [(c, len(self._rows)) for c in open_calls if c not in known]
        self._calls = calls
        return len(self._rows)

    def undo(self, call: Call) -> None:
        """Remove the samples of a call that is rolled back."""
        for known, mark in self._calls:
            if known is call:
                del self._rows[mark:]

    def forget(self, mark: int, worlds: Tensor) -> None:
        """Remove the samples of some worlds since a mark."""
        bad = worlds.cpu()
        for row in self._rows[mark:]:
            for values in row.values():
                values[bad] = torch.nan

    def _sample(self, worlds: Tensor, number: int) -> None:
        """Keep the current values of some worlds, in the row of a sample number."""
        found = {name: self._read(name) for name in self._reads}
        found["time"] = self._sim.time.detach().to("cpu", torch.float64, copy=True)
        mask = worlds.cpu()
        place = self._open.get(number)
        if place is None:
            if number >= 0:  # without a number, the next sample gets a new row
                self._open[number] = len(self._rows)
            if bool(mask.all()):
                self._rows.append(found)
                return
            place = len(self._rows)
            self._rows.append(
                {n: torch.full_like(x, torch.nan) for n, x in found.items()}
            )
        row = self._rows[place]
        for name, values in found.items():
            row[name][mask] = values[mask]

    def _read(self, name: str) -> Tensor:
        values = self._reads[name](self._sim)
        count = self._sim.num_envs
        if not isinstance(values, Tensor) or values.shape[:1] != (count,):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ShapeError(
                f"The function recorded as {name!r} must return a tensor of shape "
                f"({count}, …).",
                name=name,
                shape=getattr(values, "shape", None),
            )
        return values.detach().to("cpu", torch.float64, copy=True)
