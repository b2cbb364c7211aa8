"""Force models: loads that are functions of time and state, at every evaluation.

A model is called as `model(t, sim)` at each evaluation of the dynamics, that is at
every stage of every step, with the worlds at that stage's state and time. It reads
quantities (`sim.scene["robot"].data…`) and writes inputs: wrenches, controls, applied
forces, mass rates. Before the first model the inputs are what you had set; afterwards
they are that again. So models add to each other with `+=` on `sim.data.xfrc_applied`,
`sim.data.qfrc_applied` or `sim.mass_rate`, and a plain write replaces.

A model has no memory: it must give the same loads for the same time and state. Stages
run ahead of the step and back again, adaptive schemes throw whole steps away, so what a
model remembered would be of states that never were. What has memory is a state: use a
process (`sim.add_process`) and let the model read it. A model that writes anything but
inputs is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from simstate.engine import Stage
from simstate.errors import InvalidInputError
from simstate.integrate.processes import finite_worlds
from simstate.ledger import Backup
from simstate.worlds import Worlds

ForceModel = Callable[[Tensor, Any], None]
"""`model(t, sim)`: t is the time of each world [s], shape (num_envs,); sim is the
Simulation."""


class Forces:
    """The force models of a simulation, and how they act in an evaluation."""

    def __init__(self, sim: Worlds) -> None:
        self._sim = sim
        self._physics = sim.internals
        self.models: list[ForceModel] = []
        self.when_loaded: list[Callable[[], None]] = []
        """Called in each evaluation, when the inputs have all loads."""

    def evaluate(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at the present time and state, with all models."""

        def compute() -> None:
            for loaded in self.when_loaded:
                loaded()
            self._physics.engine.forward(env_ids, Stage.ACCELERATION)

        self.with_loads(compute)

    def with_loads(self, compute: Callable[[], None]) -> None:
        """Compute something while the inputs have the loads of all models."""
        ledger = self._physics.ledger
        if ledger.is_evaluating:
            raise InvalidInputError(
                "A force model read an acceleration or a force. Those depend on what "
                "the model is about to write: read positions and velocities only."
            )
        if not self.models:
            compute()
            return
        ledger.observe()
        with ledger.transaction("inputs", "an evaluation of force models") as inputs:
            assert inputs.backup is not None
            inputs.evaluating = True
            self._call_models()
            ledger.observe()  # which refuses writes to anything but inputs
            self._check(inputs.backup)
            compute()
            inputs.backup.put_back()
            ledger.watch.acknowledge(inputs.backup)

    def _call_models(self) -> None:
        time = self._physics.engine.field("time").clone()  # theirs to keep
        for model in self.models:
            model(time, self._sim)

    def _inputs(self) -> dict[str, Tensor]:
        """What a model may write, by name, as far as there is any of it."""
        return {
            slot.name: slot.tensor
            for slot in self._physics.ledger.of(("sim",))
            if slot.kind == "input" and slot.tensor.numel()
        }

    def _check(self, kept: Backup) -> None:
        """Raise if a load is not finite, and name the model that wrote it."""
        inputs = self._inputs()
        if all(_is_finite(tensor) for tensor in inputs.values()):
            return
        loaded = {name: _bad(tensor) for name, tensor in inputs.items()}
        kept.put_back()
        # What the user set, or a world that has diverged, is not a model's fault: the
        # step's own check finds it.
        fine = finite_worlds(self._sim)
        for tensor in inputs.values():
            fine &= ~_bad(tensor)
        if any(bool((worlds & fine).any()) for worlds in loaded.values()):
            self._blame(inputs, fine)
        self._call_models()

    def _blame(self, inputs: dict[str, Tensor], fine: Tensor) -> None:
        """Call one model after the other, and raise at the first bad load."""
        time = self._physics.engine.field("time").clone()
        for model in self.models:
            model(time, self._sim)
            for name, tensor in inputs.items():
                worlds = _bad(tensor) & fine
                if bool(worlds.any()):
                    raise InvalidInputError(
                        f"Force model {_name(model)} made {name.rpartition('/')[2]} a "
                        "value that is not finite, first in world "
                        f"{int(worlds.nonzero()[0])} at t = "
                        f"{float(time[worlds][0]):g} s."
                    )


def _bad(tensor: Tensor) -> Tensor:
    """The worlds that have a value which is not finite; shape (num_envs,)."""
    return (~tensor.isfinite()).flatten(1).any(dim=1)


def _is_finite(tensor: Tensor) -> bool:
    # Inf − inf and NaN alike make the sum NaN or infinite.
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def _name(model: ForceModel) -> str:
    return repr(getattr(model, "__qualname__", None) or type(model).__name__)
