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
process (`sim.add_process`) and let the model read it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor

from simstate.engine import Stage
from simstate.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.integrate.integration import Integration
    from simstate.simulation import Simulation

ForceModel = Callable[[Tensor, "Simulation"], None]
"""`model(t, sim)`: t is the time of each world [s], shape (num_envs,)."""

INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied")


class Forces:
    """The force models of a simulation, and how they act in an evaluation."""

    def __init__(self, integration: Integration) -> None:
        self._integration = integration
        self._sim = integration.sim
        self.models: list[ForceModel] = []
        self._applying = False

    def evaluate(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at the present time and state, with all models."""
        engine, flow = self._sim.engine, self._integration.mass_flow
        if not self._integration.has_readers:
            engine.forward(env_ids, Stage.ACCELERATION)
            return
        self._sim.fresh.moved(env_ids)  # somebody may read quantities
        with self.applied():
            if flow is not None:
                flow.total_rate.copy_(flow.rate)
            engine.forward(env_ids, Stage.ACCELERATION)
        self._sim.fresh.forwarded(env_ids, Stage.ACCELERATION)

    @contextmanager
    def applied(self) -> Generator[None]:
        """The inputs with all models' loads at the present time and state."""
        if self._applying:
            raise InvalidInputError(
                "A force model read an acceleration or a force. Those depend on what "
                "the model is about to write: read positions and velocities only."
            )
        if not self.models:
            yield
            return
        inputs = self._inputs()
        kept = {name: tensor.clone() for name, tensor in inputs.items()}
        fresh = self._sim.fresh
        fresh.observe()
        mode, fresh.mode = fresh.mode, "auto"
        self._applying = fresh.is_loading = True
        try:
            self._call_models()
            self._check(inputs, kept)
            yield
        finally:
            self._put_back(inputs, kept)
            fresh.mode = mode
            self._applying = fresh.is_loading = False

    @property
    def is_applying(self) -> bool:
        """Whether models are being called just now."""
        return self._applying

    def _call_models(self) -> None:
        time = self._sim.engine.field("time").clone()  # theirs to keep
        for model in self.models:
            model(time, self._sim)

    def _inputs(self) -> dict[str, Tensor]:
        """What a model may write, as far as there is any of it."""
        engine = self._sim.engine
        inputs = {name: engine.field(name) for name in INPUTS}
        flow = self._integration.mass_flow
        if flow is not None:
            inputs["mass_rate"] = flow.rate
        return {name: tensor for name, tensor in inputs.items() if tensor.numel()}

    def _put_back(self, inputs: dict[str, Tensor], kept: dict[str, Tensor]) -> None:
        for name, tensor in inputs.items():
            tensor.data.copy_(kept[name])
        self._sim.fresh.acknowledge(INPUTS)

    def _check(self, inputs: dict[str, Tensor], kept: dict[str, Tensor]) -> None:
        """Raise if a load is not finite, and name the model that wrote it."""
        if all(_is_finite(tensor) for tensor in inputs.values()):
            return
        # What the user set, or a world that has diverged, is not a model's fault: the
        # step's own check finds it.
        sound = self._integration.finite_worlds()
        for tensor in kept.values():
            sound &= tensor.isfinite().flatten(1).all(dim=1)
        if not any(bool((_bad(x) & sound).any()) for x in inputs.values()):
            return
        for name, tensor in inputs.items():
            tensor.data.copy_(kept[name])
        time = self._sim.engine.field("time").clone()
        for model in self.models:
            model(time, self._sim)
            for name, tensor in inputs.items():
                worlds = _bad(tensor) & sound
                if bool(worlds.any()):
                    raise InvalidInputError(
                        f"Force model {_name(model)} made {name} a value that is not "
                        f"finite, first in world {int(worlds.nonzero()[0])} at t = "
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
