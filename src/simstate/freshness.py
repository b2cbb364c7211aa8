"""Freshness: what has been written since each stage was last computed.

Torch counts in-place writes to a tensor in its `_version`, views included. Every
tensor that the physics reads is watched, so any write is seen, also one by hand to
`sim.data.qpos`, and no list of what to invalidate is kept anywhere. Our own writers go
through `write`, which knows the worlds and so leaves the other ones fresh.

Not counted, because torch does not: writes through `.data`, `.numpy()` or DLPack.
After those, call `sim.forward()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from simstate.engine import FIELDS, STATE_FIELDS, Engine, OneTorchThread, Stage
from simstate.errors import InvalidInputError, StaleReadError
from simstate.ids import Index, Selection

Mode = Literal["auto", "strict", "off"]

_DERIVED = (Stage.POSITION, Stage.VELOCITY, Stage.ACCELERATION)


@dataclass
class _Watched:
    """A tensor whose writes make everything from `stage` on stale."""

    name: str
    tensor: Tensor
    stage: Stage
    version: int


class Freshness:
    """Knows for each stage which worlds are behind, and brings them up to date."""

    def __init__(self, engine: Engine, mode: Mode) -> None:
        self.engine = engine
        self.mode: Mode = mode
        self.tokens = [0, 0, 0, 0]
        """Per stage, a number that changes whenever values of that stage may have."""
        self._watched: list[_Watched] = []
        self._by_name: dict[str, _Watched] = {}
        self._derived: list[_Watched] = []
        self._behind: dict[Stage, Tensor | bool] = dict.fromkeys(_DERIVED, False)
        """Per stage: False, True for all worlds, or the mask of those behind."""
        self._reason: dict[Stage, str] = dict.fromkeys(_DERIVED, "")
        self._evaluated_now = False
        """Whether the last dynamics evaluation was at the present state."""
        self.loads: Callable[[], AbstractContextManager[None]] = nullcontext
        """Within it the inputs have the loads of the force models."""
        self.is_loading = False
        """Whether force models are writing inputs just now."""
        for name in STATE_FIELDS:
            self.watch(f"sim.data.{name}", engine.field(name), FIELDS[name].stage, name)
        if engine.state_is_live:
            self.watch("sim.state", engine.state, Stage.POSITION)

    def watch(self, label: str, tensor: Tensor, stage: Stage, name: str = "") -> None:
        """See writes to `tensor` from now on; `label` names it in messages."""
        if tensor.numel():
            watched = _Watched(label, tensor, stage, tensor._version)
            self._watched.append(watched)
            self._by_name[name or label] = watched

    def is_watched(self, name: str) -> bool:
        """Whether a tensor of that name is watched."""
        return name in self._by_name

    def observe(self) -> None:
        """Take note of writes that nobody announced: they may have hit any world."""
        for watched in self._watched:
            version = watched.tensor._version
            if version != watched.version:
                watched.version = version
                self.mark(watched.stage, None, f"a write to {watched.name}")

    def write(
        self, name: str, rows: Selection, columns: Index | None, values: Tensor
    ) -> None:
        """Write a state field in some worlds, and mark just those as behind."""
        if not rows.count or not values.numel():
            return
        self.observe()
        tensor = self.engine.field(name)
        with OneTorchThread():
            assign(tensor, rows.index, columns, values.to(tensor.dtype))
        self.written(name, rows)

    def written(self, name: str, rows: Selection) -> None:
        """Take note of a write to a watched tensor in these worlds alone."""
        watched = self._by_name.get(name)
        if watched is None:
            return
        watched.version = watched.tensor._version
        env_ids = None if rows.is_all else rows.tensor(self.engine.device)
        self.mark(watched.stage, env_ids, f"a write to {watched.name}")

    def mark(self, stage: Stage, env_ids: Tensor | None, reason: str) -> None:
        """Mark what comes from `stage` on as behind in these worlds (None: all)."""
        self.tokens[Stage.STATE] += 1
        if stage == Stage.STATE:  # nothing that the physics reads
            return
        if self.is_loading and stage == Stage.ACCELERATION:
            return  # a force model writes inputs, which get their values back
        self._evaluated_now = False
        for derived in _DERIVED:
            if derived < stage:
                continue
            self.tokens[derived] += 1
            self._reason[derived] = reason
            behind = self._behind[derived]
            if env_ids is None or behind is True:
                self._behind[derived] = True
                continue
            if behind is False:
                behind = self._behind[derived] = self._no_worlds()
            behind[env_ids] = True

    def stepped(self, env_ids: Tensor | None) -> None:
        """Take note of a step, which left every stage current in these worlds."""
        self.observe()
        for stage in _DERIVED:
            self._clear(stage, env_ids)
        for stage in Stage:
            self.tokens[stage] += 1
        self._evaluated_now = False

    def moved(self, env_ids: Tensor | None) -> None:
        """Take note that an integrator moved these worlds, past the version counts."""
        self.observe()
        self.mark(Stage.POSITION, env_ids, "a step")

    def acknowledge(self, names: Iterable[str]) -> None:
        """Take note of writes to inputs that were taken back: nothing has changed."""
        for name in names:
            watched = self._by_name.get(name)
            if watched is not None:
                watched.version = watched.tensor._version

    def forwarded(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Take note of a pass up to `stage` in these worlds."""
        for derived in _DERIVED:
            if derived <= stage:
                self._clear(derived, env_ids)
                self.tokens[derived] += 1

    def ensure(self, stage: Stage, what: str) -> int:
        """Bring `stage` up to date as the mode says; return its token."""
        self.observe()
        self._refuse_writes_to_derived()
        if stage != Stage.STATE and self._behind[stage] is not False:
            if self.mode == "strict":
                raise StaleReadError(self._stale_message(stage, what))
            if self.mode == "auto":
                self.update(stage)
        return self.tokens[stage]

    def update(self, stage: Stage) -> None:
        """Compute what is behind at `stage`, in the worlds where it is behind."""
        behind = self._behind[stage]
        if behind is False:
            return
        ids = None if behind is True else behind.nonzero().flatten()
        reached = max(stage, Stage.VELOCITY)  # positions come with velocities
        self._evaluate(ids, reached)
        self.forwarded(ids, reached)

    def forward(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at the present state, whatever was behind."""
        self.observe()
        self._evaluate(env_ids, Stage.ACCELERATION)
        self.forwarded(env_ids, Stage.ACCELERATION)
        self._evaluated_now = env_ids is None

    def _evaluate(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Run the engine up to `stage`, with all loads where they matter."""
        with self.loads() if stage == Stage.ACCELERATION else nullcontext():
            self.engine.forward(env_ids, stage)

    def acceleration_now(self) -> Tensor:
        """Qacc at the present state, in qvel's axes; shape (num_envs, nv).

        After a step qacc is that of the state before it. Where the present one is
        asked for, it is computed and put aside, and the fields keep their values, so
        that reading one quantity never changes another.
        """
        if self.mode == "off" or self._evaluated_now:
            return self.engine.field("qacc").clone()
        with self.loads():
            return self.engine.acceleration_now()

    def live_field(self, name: str) -> Tensor:
        """The live tensor of a raw field, computed if it was not so far."""
        if not self.engine.is_bound(name):
            self.engine.compute_late(name)
        tensor = self.engine.field(name)
        if not FIELDS[name].is_state and name not in self._by_name and tensor.numel():
            watched = _Watched(f"sim.data.{name}", tensor, Stage.STATE, tensor._version)
            self._by_name[name] = watched
            self._derived.append(watched)
        return tensor

    def _refuse_writes_to_derived(self) -> None:
        """Raise if somebody wrote into a field that is computed from the state."""
        for watched in self._derived:
            version = watched.tensor._version
            if version != watched.version:
                watched.version = version
                stage = FIELDS[watched.name.removeprefix("sim.data.")].stage
                self.mark(stage, None, f"a write to {watched.name}")
                raise InvalidInputError(
                    f"{watched.name} was written to, but it is computed from the state "
                    "and will be computed anew. Write the state (sim.data.qpos, qvel, "
                    "ctrl, …) or use an entity's write_… method."
                )

    def _stale_message(self, stage: Stage, what: str) -> str:
        behind = self._behind[stage]
        worlds = self.engine.num_envs
        if isinstance(behind, Tensor):
            worlds = int(torch.count_nonzero(behind))
        return (
            f"{what} is stale in {worlds} of {self.engine.num_envs} worlds after "
            f"{self._reason[stage]}. Call sim.forward() before this read, or use "
            'Simulation(freshness="auto").'
        )

    def _clear(self, stage: Stage, env_ids: Tensor | None) -> None:
        behind = self._behind[stage]
        if behind is False:
            return
        if env_ids is None:
            self._behind[stage] = False
            return
        if behind is True:
            behind = self._behind[stage] = ~self._no_worlds()
        behind[env_ids] = False
        if not bool(behind.any()):
            self._behind[stage] = False

    def _no_worlds(self) -> Tensor:
        with torch.inference_mode(False):
            return torch.zeros(
                self.engine.num_envs, dtype=torch.bool, device=self.engine.device
            )


def assign(tensor: Tensor, rows: Index, columns: Index | None, values: Tensor) -> None:
    """tensor[rows, columns] = values, for any mix of slices and id tensors."""
    if columns is None:
        tensor[rows] = values
    elif isinstance(rows, Tensor) and isinstance(columns, Tensor):
        tensor[rows[:, None], columns] = values
    else:
        tensor[rows, columns] = values
