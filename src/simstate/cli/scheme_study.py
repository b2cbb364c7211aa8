"""Conserved quantities and order of an integrator on a model, for `simstate run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.base.table_style import new_table
from simstate.cli.console import escaped
from simstate.cli.model_scene import scene_of

if TYPE_CHECKING:
    from simstate import step
    from simstate.simulation import Simulation


@dataclass(frozen=True)
class SchemeStudy:
    """Measurement of an integrator on one world of a model without ground."""

    model: str
    scheme: str
    attitude: Literal["lie", "high_order", "manifold"] | None
    timestep: float | None
    tolerance: float | None
    gravity: bool
    seconds: float
    speed: float
    """Standard deviation of the random initial velocities [rad/s or m/s]."""
    seed: int
    engine: Literal["native", "warp"]

    def integrator(self) -> step.Explicit | None:
        """Return the integrator; None for MuJoCo's own stepper."""
        from simstate import step

        if self.scheme == "mujoco":
            if self.tolerance is not None:
                raise InvalidInputError(
                    "MuJoCo's own stepper has fixed steps: omit --tolerance, or choose "
                    "an adaptive --integrator, such as dp54."
                )
            if self.attitude is not None:
                raise InvalidInputError(
                    "MuJoCo's own stepper has one way to advance orientations: omit "
                    "--attitude, or choose another --integrator, such as rk4."
                )
            return None
        options = (
            {}
            if self.tolerance is None
            else {"atol": self.tolerance, "rtol": self.tolerance}
        )
        return step.scheme(self.scheme, self.attitude or "lie", **options)

    @cached_property
    def _found(
        self,
    ) -> tuple[step.ConservationReport, step.ConservationReport, dict[str, float]]:
        """The drifts, those due to the scheme, and the parts of the energy change.

        The drifts due to the scheme are those of a run without damping and actuation.
        """
        from simstate import step
        from simstate.simulation import Simulation
        from simstate.step.conservation import conservative_model  # loads Warp

        sim = self._simulation()
        self._start(sim)
        found = step.report(sim, self.seconds)
        model, removed = conservative_model(sim.model)
        change = float(found.energy[-1] - found.energy[0])
        if not removed:
            return found, found, {"the scheme alone": change}
        alone = Simulation(
            model, engine=self.engine, integrator=self.integrator(), seed=self.seed
        )
        alone.data.qpos[:] = sim.data.qpos
        self._start(alone)
        undamped = step.report(alone, self.seconds)
        scheme = float(undamped.energy[-1] - undamped.energy[0])
        parts = {" and ".join(removed): change - scheme, "the scheme alone": scheme}
        return found, undamped, parts

    def _simulation(self) -> Simulation:
        from simstate.simulation import Simulation

        scene = replace(scene_of(self.model), ground=False, timestep=self.timestep)
        if not self.gravity:
            scene = replace(scene, gravity=(0.0, 0.0, 0.0))
        return Simulation(
            scene, engine=self.engine, integrator=self.integrator(), seed=self.seed
        )

    def _start(self, sim: Simulation) -> None:
        """Add random velocities, which depend only on the seed."""
        noise = sim.rng.normal(slice(None), sim.model.nv)
        sim.data.qvel[:] += self.speed * noise.to(sim.dtype)

    @property
    def scheme_alone(self) -> step.ConservationReport:
        """Drifts of the scheme, without damping and actuation."""
        return self._found[1]

    def to_dict(self) -> dict[str, Any]:
        """Return drifts, sizes, orders and the parts of the energy change."""
        found, _, parts = self._found
        return found.to_dict() | {"energy": parts}

    def table(self) -> Table:
        """Return a table of the drift of each conserved quantity, and the orders."""
        found, _, parts = self._found
        free = "ground" if self.gravity else "ground and gravity"
        title = f"{found.scheme}, {found.timestep:g} s: one world without {free}"
        table = new_table(title, "quantity", ">drift", ">size")
        sizes = found.sizes()
        for name, drift in found.drifts().items():
            table.add_row(escaped(name), f"{drift:.2e}", f"{sizes[name]:.2e}")
        for name, change in parts.items():
            table.add_row(escaped(f"energy [J] by {name}"), f"{change:+.2e}", "")
        for name, order in found.order.items():
            table.add_row(f"order in {name}", f"{order:.2f}", "")
        return table
