"""ContactMemory: what a contact sensor remembers from one time step to the next."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.engine.core import make_contacts
from simstate.math.elementwise import root
from simstate.sensors.contact_layout import ContactLayout
from simstate.world.worlds import Worlds


class ContactMemory:
    """Clocks, the largest force and past forces, in slots of the ledger.

    It looks at every evaluation of the dynamics within a step: one in each of MuJoCo's
    own time steps, one for each stage of an integrator of simstate's.
    """

    def __init__(
        self,
        worlds: Worlds,
        name: str,
        layout: ContactLayout,
        threshold: float,
        history: int,
        every_step: bool,
    ) -> None:
        self.every_step = every_step
        """True to observe each of the n time steps of one call."""
        self._worlds = worlds
        self._layout = layout
        self._threshold = threshold
        elements = (layout.num_elements,)
        self.slots = {
            slot: worlds.ledger.memory(
                f"contacts/{name}/{slot}", shape, worlds.dtype, moves=True,
                optional=True, unit=unit, axes=axes,
            ).tensor
            for slot, shape, unit, axes in (
                ("air_time", elements, "s", ""),
                ("contact_time", elements, "s", ""),
                ("last_air_time", elements, "s", ""),
                ("last_contact_time", elements, "s", ""),
                ("greatest_force", elements, "N", ""),
                ("force_history_w", (history, *elements, 3), "N", "world"),
            )
        }  # fmt: skip
        """The live memory by name; each of shape (num_envs, …)."""
        # Aliases: what a step writes is not a write by a user.
        self._alias = {slot: tensor.data for slot, tensor in self.slots.items()}
        with torch.inference_mode(False):
            self._force = torch.zeros_like(self.slots["greatest_force"])
            self._force = self._force[..., None].repeat(1, 1, 3)
            self._greatest = torch.zeros_like(self.slots["greatest_force"])
            self._touched = torch.zeros_like(self._greatest, dtype=torch.bool)
        self._begins = True
        batch = worlds.engine.compiled
        self.compiled = None if batch is None else make_contacts(
            batch, layout.net_sensors, layout.force_columns, layout.single_sensors,
            threshold, every_step,
            {slot: tensor.numpy() for slot, tensor in self._alias.items()},
            (self._force.numpy(), self._greatest.numpy(), self._touched.numpy()),
        )  # fmt: skip
        """The same in the core, which remembers while it takes steps."""

    def begin_step(self) -> None:
        """Forget what evaluations have shown before this step."""
        self._begins = True

    def begin_evaluations(self) -> None:
        """Clear what evaluations have shown, unless it belongs to this step."""
        if self._begins:
            self._greatest.zero_()
            self._touched.zero_()
            self._begins = False

    def evaluated(self) -> None:
        """Look at the forces of an evaluation of the dynamics."""
        self.begin_evaluations()
        net = self._layout.net(self._worlds.engine.field("sensordata"))
        self._force.zero_()
        for force in net["force"].unbind(dim=2):
            self._force += force
        x, y, z = self._force.unbind(dim=-1)
        size = root(x * x + y * y + z * z)  # in the core's order: the same bits
        torch.maximum(self._greatest, size, out=self._greatest)
        self._touched |= size > self._threshold

    def stepped(self, passed: Tensor, env_ids: Tensor | None) -> None:
        """Advance the clocks of these worlds by `passed` [s]; None: all."""
        rows = slice(None) if env_ids is None else env_ids
        memory = self._alias
        passed = (passed if passed.shape[0] == 1 else passed[rows])[:, None]
        touches = self._touched[rows]
        for clock, last, runs in (
            ("air_time", "last_air_time", ~touches),
            ("contact_time", "last_contact_time", touches),
        ):
            time = memory[clock][rows]
            ended = (time > 0.0) & ~runs
            memory[last][rows] = torch.where(ended, time, memory[last][rows])
            memory[clock][rows] = torch.where(runs, time + passed, 0.0)
        memory["greatest_force"][rows] = self._greatest[rows]
        past = memory["force_history_w"]
        if past.shape[1]:
            newest = -self._force[rows][:, None]
            past[rows] = torch.cat([newest, past[rows][:, :-1]], dim=1)
        self._touched.zero_()
