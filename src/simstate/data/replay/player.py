"""Player: re-runs recorded steps, in worlds like the recorded ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import DivergenceError, RecordingError, SimStateError
from simstate.base.ids import Selection
from simstate.env import Env
from simstate.env.env_recorder import REWARD, env_columns
from simstate.record import Column, Recording, columns_of
from simstate.record.changes import Change, Step
from simstate.record.columns import CAMERA
from simstate.simulation import Simulation
from simstate.state import Snapshot
from simstate.state.fingerprint import fingerprint
from simstate.world import Owner
from simstate.world.worlds import worlds_of


class Player:
    """Worlds in which a recording is re-run, and its current position.

    Args:
        recording: the recording to re-run.
        worlds: a Simulation or an Env, as in the recording.
        rebuilt: True if the worlds were created from the recording only, without user
            code that had slots in them.
    """

    def __init__(
        self, recording: Recording, worlds: Simulation | Env, rebuilt: bool
    ) -> None:
        self.recording, self.worlds, self._rebuilt = recording, worlds, rebuilt
        self.env = worlds if isinstance(worlds, Env) else None
        self.sim = worlds.sim if isinstance(worlds, Env) else worlds
        self._check()
        self.owners: tuple[Owner, ...] = ("sim", "env") if self.env else ("sim",)
        self.step = 0
        """Number of steps taken since the start of the recording."""
        self.diverged: tuple[int, str] | None = None
        """World that diverged only here or only in the recording, and a description."""
        self._after: dict[str, Tensor] = {}
        self.columns, self.left_out = self._find_columns()

    def _check(self) -> None:
        want, kind = (
            self.recording.header["simulation"]["num_envs"],
            self.recording.kind,
        )
        if (kind == "env") != (self.env is not None):
            raise RecordingError(
                f"The recording is of {'an Env' if kind == 'env' else 'a Simulation'}, "
                f"but worlds is {'an Env' if self.env else 'a Simulation'}.",
                name="env",
            )
        if self.sim.num_envs != want:
            raise RecordingError(
                f"The recording has {want} worlds, but the simulation has "
                f"{self.sim.num_envs}.",
                name="num_envs",
            )
        if not self.recording.snapshot_steps:
            raise RecordingError(
                f"{str(self.recording.path)!r} has no inputs and no snapshots, because "
                "it was recorded with inputs=False: it can only be read.",
                name="inputs",
            )

    def go_to(self, step: int) -> None:
        """Restore the worlds to their state before a step, from the last snapshot."""
        start = max(s for s in self.recording.snapshot_steps if s <= step)
        self.restore(start)
        for taken in self.recording.steps(start):
            if self.step >= step:
                return
            self.take(taken)

    def restore(self, step: int, is_written: bool = False) -> None:
        """Restore the worlds from a snapshot; see `Recording.snapshot`."""
        found = self.recording.snapshot(step, is_written)
        self.worlds.restore(self._fitting(found))
        self.step = step

    def write(self, step: Step) -> None:
        """Apply the recorded writes before a step."""
        if step.call.get("restore"):
            self.restore(self.step, is_written=True)
            return
        ledger = worlds_of(self.sim).ledger
        changes = [c for c in step.changes if c.slot in ledger or not self._rebuilt]
        ledger.run("env" if self.env else "sim", "a replay", self._put, changes)

    def _put(self, changes: Any) -> None:
        ledger = worlds_of(self.sim).ledger
        for change in changes:
            rows = self._rows(change)
            try:
                values = torch.as_tensor(change.values)
                ledger.copies.put_some({change.slot: (rows, values)})
            except SimStateError as error:
                raise RecordingError(
                    f"A recorded write does not fit these worlds: {error}"
                ) from error

    def move(self, step: Step) -> None:
        """Take a step, after its writes were applied."""
        self.step += 1
        if self.env is not None:
            action = torch.as_tensor(step.arrays["action"]).to(self.env.device)
            renewed = step.arrays.get("reset_ids")
            _, reward, _, _, _ = self.env.step(
                action, () if renewed is None else torch.as_tensor(renewed)
            )
            self._after = {REWARD: reward, "action": action}
            return
        self._move_sim(step)

    def take(self, step: Step) -> None:
        """Apply the writes before a step, and take it."""
        self.write(step)
        self.move(step)

    def values(self, names: Mapping[str, Any] | list[str]) -> dict[str, np.ndarray]:
        """Return the current values of columns, in the recorded worlds."""
        rows = torch.as_tensor(self.recording.worlds, device=self.sim.device)
        found: dict[str, np.ndarray] = {}
        for name in names:
            if name in self._after:
                values = self._after[name]
            elif name == "time":
                values = self.sim.time
            else:
                values = self.columns[name].checked(self.sim.num_envs)
            found[name] = values.detach()[rows].cpu().numpy()
        return found

    # Inner parts.

    def _move_sim(self, step: Step) -> None:
        expected = step.call.get("diverged")
        ids = step.arrays.get("env_ids")
        until = step.arrays.get("until")
        goal = None if until is None else torch.as_tensor(until).to(self.sim.device)
        rows = None if ids is None else torch.as_tensor(ids)
        self.diverged = None
        try:
            self.sim.step(step.call["n"], rows, until=goal)
            found = self.sim.divergence.cause
            worlds = [] if found is None else found.env_ids
        except DivergenceError as error:
            worlds = error.env_ids
        if sorted(map(int, expected or ())) != worlds[: len(expected or worlds)]:
            other = {*map(int, expected or ())} ^ {*worlds}
            text = f"worlds {worlds} diverged, but {expected} in the recording"
            self.diverged = min(other), text

    def _rows(self, change: Change) -> Selection:
        select = worlds_of(self.sim).select
        if change.rows is None:
            return select(None)
        return select(torch.as_tensor(change.rows).to(self.sim.device))

    def _fitting(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot that fits these worlds; models are compared separately."""
        header = {**snapshot.header, "model": fingerprint(self.sim.model)}
        if not self._rebuilt:
            return dataclasses.replace(snapshot, header=header)
        ledger, contracts = worlds_of(self.sim).ledger, snapshot.header["slots"]
        dropped = {
            name
            for name, contract in contracts.items()
            if name not in ledger and "reset" in contract and contract["owner"] == "sim"
        }
        header["slots"] = {n: c for n, c in contracts.items() if n not in dropped}
        slots = {n: x for n, x in snapshot.slots.items() if n not in dropped}
        return Snapshot(header, slots)

    def _find_columns(self) -> tuple[dict[str, Column], list[str]]:
        """Return the readable columns, and the names of the others."""
        found: dict[str, Column] = {}
        left_out: list[str] = []
        own = {} if self.env is None else {c.name: c for c in env_columns(self.env)}
        for name in self.recording.names:
            source = self.recording.contract(name).get("source", "")
            if name in own:
                found[name] = own[name]
            elif source and self._can_read(source):
                (found[name],) = columns_of(self.sim, {name: source}, ())
            else:
                left_out.append(name)
        return found, left_out

    def _can_read(self, source: str) -> bool:
        """Return True if these worlds have the source of a column, such as a camera."""
        camera = source.removeprefix(CAMERA)
        return camera == source or camera in self.sim.camera_names
