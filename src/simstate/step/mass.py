"""Masses as state variables: bodies that lose or gain mass while they move."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.step.flat_state import FlatState
from simstate.step.stages import Stages
from simstate.world import Slot
from simstate.world.worlds import Worlds

LEAST_SHARE = 1e-6
"""A body with less than this fraction of its mass at reset has run out of mass:
smaller masses would lead to unbounded accelerations."""


class MassFlow:
    """The masses of all bodies as a block of the state, and their rates of change."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.mass = worlds.parameters.expand("body_mass")
        self.inertia = worlds.parameters.expand("body_inertia")
        worlds.parameters.set_const(None)  # now the constants are per world, too
        worlds.parameters.let_flow()
        self.mass_at_reset = self._let_flow(worlds.ledger.let_move("model/body_mass"))
        """Masses that a reset restores [kg]; shape (num_envs, nbody)."""
        self._let_flow(worlds.ledger.let_move("model/body_inertia"))
        self.rate = worlds.ledger.memory(
            "integrator/mass_rate", (worlds.model.nbody,), worlds.dtype, kind="input",
            moves=True, unit="kg/s",
        ).tensor  # fmt: skip
        """Rate of change of each body's mass [kg/s]; shape (num_envs, nbody)."""
        with torch.inference_mode(False):
            self.total_rate = torch.zeros_like(self.mass)
            """The rate including the force models' at the last evaluation [kg/s]."""
            self.empty = torch.zeros_like(self.mass, dtype=torch.bool)
            """Mask of bodies that would have run out of mass in the current step."""

    def _let_flow(self, slot: Slot) -> Tensor:
        """Make a reset restore the value that the user last wrote."""
        at_reset = self.worlds.ledger.memory(
            slot.name.replace("model/", "at_reset/"), slot.shape, slot.tensor.dtype,
            reset=None, initial=slot.tensor, optional=True, unit=slot.unit,
        )  # fmt: skip
        slot.initial, slot.reset = at_reset.tensor, "initial"
        slot.companion = at_reset
        return at_reset.tensor

    @property
    def has_constants_by_hand(self) -> bool:
        """True if a constant that follows from masses was written by the user."""
        slots = self.worlds.ledger.slots
        kept = (slots.get(f"by_hand/{name}") for name in self.worlds.engine.constants)
        return any(slot is not None and bool(slot.tensor.any()) for slot in kept)

    def evaluated(self) -> None:
        """Record the rates that an evaluation used."""
        self.total_rate.copy_(self.rate)

    def block(self, stages: Stages) -> MassState:
        """Return the block of the state, for the stages of a scheme."""
        return MassState(self, stages)

    def out_of_mass_error(self) -> InvalidInputError:
        """Return the error for a body that would run out of mass within a call."""
        world, body = (int(i) for i in self.empty.nonzero()[0])
        rate = float(self.total_rate[world, body])
        # A step that would empty the body leaves its mass unchanged, as do the next
        # ones: the time is computed from the state at the start of the call.
        saved = self.worlds.ledger.backup_of_step()
        start = float(self.worlds.state_before(saved)["time"][world])
        mass = float(saved.copied_rows(self.mass.data)[world, body])
        name = self.worlds.model.body(body).name or body
        return InvalidInputError(
            f"Body {name!r} of world {world} would run out of mass at about t = "
            f"{start - mass / rate:g} s: it has {mass:g} kg at t = {start:g} s and "
            f"loses {-rate:g} kg/s. Stop the flow before (sim.mass_rate, or the force "
            "model that sets it). The state from before the step was restored.",
            name=str(name),
            worlds=[world],
        )


class MassState(FlatState):
    """Body masses; inertias and MuJoCo's constants change with them."""

    def __init__(self, flow: MassFlow, stages: Stages) -> None:
        super().__init__("mass", flow.mass.data, lambda: flow.total_rate, stages)
        self._flow = flow
        self._inertia = flow.inertia.clone()

    def begin(self, chosen: Tensor | None = None) -> None:
        """Start a step at the current masses and inertias."""
        super().begin(chosen)
        rows = slice(None) if chosen is None else chosen
        self._inertia[rows] = self._flow.inertia[rows]

    def displace(self, stage: int) -> None:
        """Move to a stage, and scale the inertias."""
        before = self.value.clone()
        super().displace(stage)
        self._follow(before)

    def displace_by(self, move: Tensor, h: Tensor) -> None:
        """Move by a displacement, and scale the inertias."""
        before = self.value.clone()
        super().displace_by(move, h)
        self._follow(before)

    def _follow(self, before: Tensor) -> None:
        """Scale the inertias and recompute constants where masses have changed.

        A mass that ran out stays at its origin and its body is marked: the stepper
        raises an error or tries a shorter step.
        """
        if torch.equal(before, self.value):
            return
        least = LEAST_SHARE * self._flow.mass_at_reset
        gone = (self.value < least) | (self.value <= 0)
        empty = gone & (self.value < self.origin)
        if bool(empty.any()):
            self._flow.empty |= empty
            self.value.copy_(torch.where(empty, self.origin, self.value))
        # A body without mass has no inertia to scale.
        ratio = (self.value / self.origin).nan_to_num(nan=1.0, posinf=1.0)
        self._flow.inertia.data.copy_(self._inertia * ratio[..., None])
        self._flow.worlds.parameters.set_const(None)
