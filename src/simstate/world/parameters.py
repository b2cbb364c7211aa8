"""Parameters: fields of the model that may differ by world, and derived constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import check_finite, instance_of
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids, Selection, Values, as_values, select
from simstate.engine import CONSTANT_INPUTS, Engine, Stage
from simstate.engine.choices import check_of
from simstate.engine.model_repairs import MeshBounds, Shortcuts
from simstate.world import Ledger, Slot, Write
from simstate.world.freshness import ReadOwner


class ModelParameters(ReadOwner):
    """The per-world model parameters of an engine, in slots of the ledger.

    The constants that `mj_setConst` derives follow the parameters that they depend on.
    A constant written by hand keeps the value that was written.
    """

    def __init__(self, engine: Engine, ledger: Ledger) -> None:
        self._engine = engine
        self._ledger = ledger
        self._followed: dict[str, Tensor] = {}
        """Inputs of constants, as of the last time that constants were computed."""
        with torch.inference_mode(False):  # written to later on
            self._requested = np.zeros(engine.num_envs, dtype=bool)
        """Worlds whose constants are due even if no input differs."""
        self._flows = False
        """True if steps change inputs of constants, and the constants with them."""
        self._shortcuts = Shortcuts(engine.model, engine.device)
        self._mesh_bounds = MeshBounds(engine.model, engine.device)

    def expand(self, name: str) -> Tensor:
        """Return the live per-world values of a model parameter; (num_envs, …)."""
        slot_name = f"model/{name}"
        if slot_name not in self._ledger:
            with torch.inference_mode(False):  # they are written to later
                self._add(name, slot_name)
        return self._ledger[slot_name].tensor

    def _add(self, name: str, slot_name: str) -> None:
        """Register a parameter that differs by world from now on."""
        engine, ledger = self._engine, self._ledger
        tensor = engine.expand(name)
        if name == "geom_dataid":
            for bound in self._mesh_bounds.parameters:
                self.expand(bound)
        slot = Slot(
            name=slot_name,
            kind="parameter",
            tensor=tensor,
            stage=Stage.CONSTANT if name in CONSTANT_INPUTS else Stage.POSITION,
            initial=engine.model_parameter(name)[:, : tensor.shape[1]]
            if tensor.ndim > 1
            else engine.model_parameter(name),
            optional=True,
        )
        if name in engine.constants:
            slot.companion = ledger.memory(
                f"by_hand/{name}", dtype=torch.bool, reset=None, optional=True
            )
            slot.computed = True
        if name in CONSTANT_INPUTS:
            self._followed[name] = tensor.detach().clone()
        slot.check = check_of(engine.model, name)
        ledger.add(slot)
        ledger.announce_parameter(slot)

    def label_of(self, name: str) -> str:
        """Return the name of a parameter in error messages."""
        return f'sim.expand("{name}")'

    def write(
        self, name: str, values: Values, element_ids: Ids, rows: Selection
    ) -> None:
        """Write a parameter of some elements in some worlds, checked; (n, E, …)."""
        instance_of("The name of a parameter", name, str)
        engine = self._engine
        tensor = engine.expanded.get(name)
        if tensor is None:  # a rejected write leaves it shared by all worlds
            tensor = engine.model_parameter(name)
        columns, shape = None, ()
        if tensor.ndim > 1:
            elements = select(
                element_ids, tensor.shape[1], f"{name} element", engine.device
            )
            columns, shape = elements.index, (elements.count, *tensor.shape[2:])
        elif element_ids is not None:
            raise InvalidInputError(
                f"{name} is one number for each world: it has no elements, got "
                f"element_ids={element_ids!r}.",
                name=name,
            )
        checked = as_values(values, name, rows.count, shape, tensor)
        check_finite(checked, name)
        self._shortcuts.check(name, checked, columns, "Nothing was written.")
        check = check_of(engine.model, name)
        if check is not None:
            check(checked, rows, columns)
        self.expand(name)
        self._ledger.write(Write(f"model/{name}", rows, columns, checked))

    def changed_inputs(self) -> dict[str, Tensor]:
        """Return the worlds whose inputs of constants differ from those last used."""
        found: dict[str, Tensor] = {}
        for name, followed in self._followed.items():
            differs = (followed != self._engine.expand(name)).flatten(1).any(dim=1)
            ids = differs.nonzero().flatten()
            if ids.numel():
                found[name] = ids
        return found

    def request_const(self, env_ids: Tensor | None) -> None:
        """Recompute the constants of worlds in the next `follow`; None: all."""
        self._requested[_rows(env_ids)] = True

    def let_flow(self) -> None:
        """Recompute constants always: steps change their inputs from now on.

        A compiled step computes constants without recording their inputs, so that these
        do not tell what the constants are of.
        """
        self._flows = True

    def follow(self, env_ids: Tensor | None) -> None:
        """Recompute constants in those of the worlds whose inputs differ; None: any.

        A raw write may have changed any world. The others keep the bits of their
        constants: in float32, those computed here are not those of the compiler.
        """
        behind = self._requested | self._flows
        for ids in self.changed_inputs().values():
            behind[_rows(ids)] = True
        among = np.zeros_like(behind)
        among[_rows(env_ids)] = True
        behind &= among
        if behind.all():
            self.set_const(None)
        elif behind.any():
            ids = torch.as_tensor(np.flatnonzero(behind), device=self._engine.device)
            self.set_const(ids)

    def set_const(self, env_ids: Tensor | None) -> None:
        """Recompute the constants of some worlds; None: all. The state is kept."""
        engine, ledger = self._engine, self._ledger
        rows = slice(None) if env_ids is None else env_ids
        self.request_const(env_ids)  # until they are computed, in case of an error
        for name in self._shortcuts.parameters & engine.expanded.keys():
            then = (
                f'To continue, restore the model\'s own values: sim.expand("{name}").'
            )
            self._shortcuts.check(name, engine.expand(name)[rows], None, then)
        written = [
            slot.name.removeprefix("by_hand/")
            for slot in ledger.of(("sim",))
            if slot.name.startswith("by_hand/") and bool(slot.tensor[rows].any())
        ]
        for name, followed in self._followed.items():
            followed[rows] = engine.expand(name)[rows]
        if written:
            names = [f"model/{name}" for name in written]
            compute = self._compute_except
            ledger.run_saving(names, "set_const", compute, written, env_ids)
        else:
            self._compute(env_ids)
        self._requested[_rows(env_ids)] = False

    def _compute_except(self, written: list[str], env_ids: Tensor | None) -> None:
        """Recompute the constants, except where they were written by hand."""
        kept = {name: self._engine.expand(name).clone() for name in written}
        self._compute(env_ids)
        for name, values in kept.items():
            by_hand = self._ledger[f"by_hand/{name}"].tensor
            self._engine.expand(name).data[by_hand] = values[by_hand]

    def _compute(self, env_ids: Tensor | None) -> None:
        """Recompute all constants; bounds follow the meshes of the geoms."""
        self._engine.set_const(env_ids)
        expanded = self._engine.expanded
        if len(self._mesh_bounds) and "geom_dataid" in expanded:
            for name in self._mesh_bounds.parameters:
                bounds = expanded[name].data  # not a write by a user
                self._mesh_bounds.follow(expanded["geom_dataid"], name, bounds)


def _rows(env_ids: Tensor | None) -> Any:
    """Return worlds as an index of a NumPy array; None: all."""
    return slice(None) if env_ids is None else env_ids.cpu().numpy()
