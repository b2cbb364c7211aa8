"""LastEvaluation: fields as the last evaluation of the dynamics left them.

After mj_step, mjData holds the new qpos and qvel, and everything else as the last
evaluation computed it. `sim.data` brings positions and velocities up to date; these
slots keep what was there before. Published benchmarks read mjData directly, so that
their rewards and observations depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine import KEPT_FIELDS, Stage
from simstate.world.worlds import Worlds


class LastEvaluation:
    """The kept fields of all worlds, in slots "evaluated/…" of the ledger.

    A step, `sim.forward` and a reset write them; reads and other writes do not. They
    are saved, restored and undone with the world.
    """

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._kept: dict[str, Tensor] = {}
        self.is_kept = False
        """True if any field is kept."""

    def keep(self, names: Sequence[str]) -> None:
        """Keep fields from now on; they start with an evaluation of this state."""
        for name in names:
            if name not in KEPT_FIELDS:
                raise unknown_name("field of sim.last_evaluated", name, KEPT_FIELDS)
        new = [name for name in dict.fromkeys(names) if name not in self._kept]
        worlds = self._worlds
        for name in new:
            declared = KEPT_FIELDS[name]
            slot = worlds.ledger.memory(
                f"evaluated/{name}", worlds.engine.field_shape(name)[1:], worlds.dtype,
                None, kind="state", moves=True, unit=declared.unit, axes=declared.axes,
                contiguous=True,
            )  # fmt: skip
            worlds.engine.keep(name, slot.tensor)
            worlds.ledger.watch.add_derived(
                f"sim.last_evaluated.{name}", slot.tensor, Stage.ACCELERATION
            )
            self._kept[name] = slot.tensor
            self.is_kept = True
        if new:
            old = {name: x.clone() for name, x in self._kept.items() if name not in new}
            self.evaluate(None, after_constraints=False)
            for name, values in old.items():
                self._kept[name].data.copy_(values)

    def read_field(self, name: str) -> Tensor:
        """Return the live values of a kept field; shape (num_envs, …)."""
        if self._worlds.ledger.open:
            self._worlds.ledger.calls.recover()
        found = self._kept.get(name)
        if found is None:
            raise InvalidInputError(
                f"sim.last_evaluated.{name} is not kept: call "
                f'sim.keep_evaluated("{name}") before the steps it is read after.',
                name=name,
            )
        return found

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Return the same as a NumPy array on the host."""
        return self.read_field(name).data.cpu().numpy()

    def forward(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at the current state, atomically; None: all worlds."""
        names = [f"evaluated/{name}" for name in self._kept]
        run = self._worlds.ledger.run_saving
        run(names, "sim.forward()", self.evaluate, env_ids, True)

    def begin_episode(self, env_ids: Tensor | None) -> None:
        """Evaluate the state at reset, after everything that has changed it."""
        if self._kept:
            self.evaluate(env_ids, after_constraints=False)

    def evaluate(self, env_ids: Tensor | None, after_constraints: bool) -> None:
        """Evaluate the dynamics at the current state, with all loads; None: all."""
        worlds = self._worlds
        worlds.fresh.refresh_constants()
        with torch.inference_mode(False):
            worlds.loads.with_loads(
                lambda: worlds.engine.evaluate_kept(env_ids, after_constraints)
            )


def evaluation_of(sim: Any) -> LastEvaluation:
    """Return the kept fields of a simulation, for its components."""
    return sim._evaluated
