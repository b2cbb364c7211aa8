"""`simstate integrate`: what an integrator conserves on a model, and its order."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rich.table import Table

from simstate import integrate
from simstate.cli.console import console, escaped
from simstate.cli.model import check_moves, scene_of
from simstate.cli.options import Debug, Engine, Json, Model, check_plot
from simstate.errors import InvalidInputError
from simstate.simulation import Simulation


@dataclass
class Integrate:
    """Run a model by an integrator; report drifts and the measured order.

    Example: simstate integrate satellite --scheme rk4 --attitude lie --seconds 2
    """

    model: Model
    scheme: str = "rk4"
    """euler, heun, midpoint, rk4, bs32, rkf45, dp54, rkf78, dop853, or mujoco for
    MuJoCo's own stepper."""
    attitude: Literal["lie", "high_order", "manifold"] = "lie"
    """How orientations are advanced."""
    seconds: float = 2.0
    """How long to run."""
    timestep: float | None = None
    """The time step in seconds; the model's own if it is left out."""
    tolerance: float | None = None
    """Absolute and relative tolerance of an adaptive scheme."""
    speed: float = 1.0
    """Standard deviation of the random initial velocities; 0: the model's own."""
    gravity: bool = False
    """Keep the model's gravity; without it momentum is conserved."""
    seed: int = 0
    """Seed of the initial velocities."""
    engine: Engine = "native"
    plot: Path | None = None
    """Draw the drifts into this image file."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        check_plot("--plot", self.plot)
        sim = self._simulation()
        noise = sim.rng.normal(slice(None), sim.model.nv)
        sim.data.qvel[:] += self.speed * noise.to(sim.dtype)
        found = integrate.report(sim, self.seconds)
        if self.plot is not None:
            found.plot(self.plot)
        if self.json:
            print(json.dumps(found.to_dict(), indent=2))
        else:
            out = console()
            out.print(_table(found, self.model))
            if self.plot is not None:
                out.print(f"Plot: {self.plot}", markup=False)
        return 0

    def _simulation(self) -> Simulation:
        scene = replace(scene_of(self.model), ground=False, timestep=self.timestep)
        check_moves(scene)
        if not self.gravity:
            scene = replace(scene, gravity=(0.0, 0.0, 0.0))
        return Simulation(
            scene, engine=self.engine, integrator=self._integrator(), seed=self.seed
        )

    def _integrator(self) -> integrate.Explicit | None:
        if self.scheme == "mujoco":
            if self.tolerance is not None:
                raise InvalidInputError("MuJoCo's own stepper takes no tolerance.")
            return None
        options = (
            {}
            if self.tolerance is None
            else {"atol": self.tolerance, "rtol": self.tolerance}
        )
        return integrate.scheme(self.scheme, self.attitude, **options)


def _table(found: integrate.ConservationReport, model: str) -> Table:
    seconds = found.time[-1] - found.time[0]
    title = f"{model}: {found.scheme}, time step {found.timestep:g} s, {seconds:g} s"
    table = Table(title=title, title_justify="left")
    table.add_column("quantity")
    table.add_column("drift", justify="right")
    table.add_column("size", justify="right")
    sizes = found.sizes()
    for name, drift in found.drifts().items():
        table.add_row(escaped(name), f"{drift:.2e}", f"{sizes[name]:.2e}")
    for name, order in found.order.items():
        table.add_row(f"order in {name}", f"{order:.2f}", "")
    return table
