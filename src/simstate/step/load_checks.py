"""LoadChecks: find the force model or process that wrote an invalid value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
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

        Otherwise restore the inputs from the backup, and raise if the cause is a model.
        Values set by the user and worlds that have diverged are detected at the end of
        the step.
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

        Worlds whose own state or inputs are not finite are ignored.
        """
        inputs = self.inputs()
        fine = self._fine_worlds(inputs)
        time = self._time.clone()
        for model in models:
            model(time, self._sim)
            if isinstance(model, SampledGravity):
                found = {"acceleration": model.infinite_worlds()}
            else:
                found = {name: _infinite(tensor) for name, tensor in inputs.items()}
            for name, infinite in found.items():
                worlds = int_list((infinite & fine).nonzero().flatten())
                if worlds:
                    field = name.rpartition("/")[2]
                    raise InvalidInputError(
                        f"Force model {_name(model)} wrote a non-finite value to "
                        f"{field}, first in world {worlds[0]} at t = "
                        f"{float(time[worlds[0]]):g} s.",
                        name=field,
                        worlds=worlds,
                    )

    def refuse_returned(self, model: ForceModel, returned: object) -> None:
        """Raise if a model returned a load, which would not act.

        A result in the memory of the worlds is that of a write in place.
        """
        if not isinstance(returned, Tensor | np.ndarray):
            return
        value = torch.as_tensor(returned)
        for slot in self._ledger.of(("sim",)):
            memory = slot.tensor.untyped_storage()
            if 0 <= value.data_ptr() - memory.data_ptr() < memory.nbytes():
                return
        raise InvalidInputError(
            f"Force model {_name(model)} returned values of shape "
            f"{tuple(value.shape)}, which do not act: add them to an input, such as "
            "sim.data.xfrc_applied[:, body, :3] += force.",
            name="model",
        )

    def refuse_writes(self, models: Sequence[ForceModel], world: int) -> None:
        """Call one model after the other, and raise at the first that writes state."""
        time = self._time.clone()
        for model in models:
            for name in self._written(world, lambda m=model: m(time, self._sim)):
                if name not in WRITABLE:
                    raise InvalidInputError(
                        f"Force model {_name(model)} wrote to sim.data.{name} in world "
                        f"{world} at t = {float(time[world]):g} s. It may only write "
                        f"inputs ({', '.join(WRITABLE)}, sim.mass_rate), since stages "
                        "move forward and back within a step. The state from before "
                        "the step was restored.",
                        name=name,
                        worlds=[world],
                    )

    def refuse_written(self, processes: Sequence[Process], world: int) -> None:
        """Evaluate one rate after the other, and raise at the first that writes."""
        for process in processes:
            for name in self._written(world, process.checked_rate):
                raise InvalidInputError(
                    f"The rate of process {process.name!r} wrote to sim.data.{name} in "
                    f"world {world}. A rate may not write anything, since stages move "
                    "forward and back within a step: return the rate, and write inputs "
                    "in a force model. The state from before the step was restored.",
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
    # Any NaN or infinity makes the sum NaN or infinite.
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def _name(model: object) -> str:
    return repr(getattr(model, "__qualname__", None) or type(model).__name__)
