"""LoadChecks: which force model or process wrote an invalid value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import int_list
from simstate.engine import Engine
from simstate.step.force_views import WRITABLE
from simstate.step.forces.sampled_gravity import SampledGravity
from simstate.step.forces.scene_force import ForceModel
from simstate.step.processes import Process, finite_worlds
from simstate.world import Backup, Ledger


class LoadChecks:
    """Rejects loads that are not finite, and writes to anything but inputs."""

    def __init__(self, engine: Engine, ledger: Ledger, sim: Any) -> None:
        self._engine, self._ledger, self._sim = engine, ledger, sim
        self._time = engine.field("time")

    def inputs(self) -> dict[str, Tensor]:
        """Return the non-empty slots that a model may write, by name."""
        return {
            slot.name: slot.tensor
            for slot in self._ledger.of(("sim",))
            if slot.kind == "input" and slot.tensor.numel()
        }

    def are_finite(self, backup: Backup, models: Sequence[ForceModel]) -> bool:
        """Return True if all loads in the inputs are finite.

        Otherwise the inputs are restored from the backup. Raises if the cause is a
        model: values set by the user, and worlds that have diverged, are found at the
        end of the step.
        """
        inputs = self.inputs()
        if all(is_finite(tensor) for tensor in inputs.values()):
            return True
        loaded = [_infinite(tensor) for tensor in inputs.values()]
        backup.restore()
        fine = self._fine_worlds(inputs)
        if any(bool((worlds & fine).any()) for worlds in loaded):
            self.refuse_infinite(models)
        return False

    def _fine_worlds(self, inputs: dict[str, Tensor]) -> Tensor:
        """Return the mask of worlds whose state and inputs are finite; (num_envs,)."""
        fine = finite_worlds(self._ledger)
        for tensor in inputs.values():
            fine &= ~_infinite(tensor)
        return fine

    def refuse_infinite(self, models: Sequence[ForceModel]) -> None:
        """Call one model after the other, and raise at the first invalid load.

        Loads of worlds whose own state or inputs are not finite are left as they are.
        """
        inputs = self.inputs()
        fine = self._fine_worlds(inputs)
        time = self._time.clone()
        for model in models:
            model(time, self._sim)
            if isinstance(model, SampledGravity):
                found = {"the acceleration": model.infinite_worlds()}
            else:
                found = {name: _infinite(tensor) for name, tensor in inputs.items()}
            for name, infinite in found.items():
                worlds = int_list((infinite & fine).nonzero().flatten())
                if worlds:
                    field = name.rpartition("/")[2]
                    raise InvalidInputError(
                        f"Force model {_name(model)} made {field} a value that is not "
                        f"finite, first in world {worlds[0]} at t = "
                        f"{float(time[worlds[0]]):g} s.",
                        name=field,
                        worlds=worlds,
                    )

    def refuse_writes(self, models: Sequence[ForceModel], world: int) -> None:
        """Call one model after the other, and raise at the first that writes state."""
        time = self._time.clone()
        for model in models:
            for name in self._written(world, lambda m=model: m(time, self._sim)):
                if name not in WRITABLE:
                    raise InvalidInputError(
                        f"A force model wrote to sim.data.{name}, {_name(model)} in "
                        f"world {world} at t = {float(time[world]):g} s. It may write "
                        f"inputs alone ({', '.join(WRITABLE)}, sim.mass_rate): stages "
                        "run ahead of the step and back. The state is as it was "
                        "before the step.",
                        name=name,
                        worlds=[world],
                    )

    def refuse_written(self, processes: Sequence[Process], world: int) -> None:
        """Evaluate one rate after the other, and raise at the first that writes."""
        for process in processes:
            for name in self._written(world, process.checked_rate):
                raise InvalidInputError(
                    f"The rate of process {process.name!r} wrote to sim.data."
                    f"{name} in world {world}. A rate may write nothing, since "
                    "stages run ahead of the step and back: return the rate, and "
                    "let a force model write inputs. The state is as it was before "
                    "the step.",
                    name=process.name,
                    worlds=[world],
                )

    def _written(self, world: int, call: Callable[[], object]) -> list[str]:
        """Return the fields of a world's state that a call changes."""
        row = self._engine.state[world]
        before = row.clone()
        call()
        changed = before.view(torch.int64) != row.view(torch.int64)
        columns = self._engine.columns
        return [name for name, where in columns.items() if bool(changed[where].any())]


def _infinite(tensor: Tensor) -> Tensor:
    """Return the mask of worlds with a value that is not finite; (num_envs,)."""
    return (~tensor.isfinite()).flatten(1).any(dim=1)


def is_finite(tensor: Tensor) -> bool:
    """Return True if all values are finite."""
    # Inf − inf and NaN alike make the sum NaN or infinite.
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def _name(model: object) -> str:
    return repr(getattr(model, "__qualname__", None) or type(model).__name__)
