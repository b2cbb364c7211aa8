"""`simstate integrate`: what an integrator conserves on a model, and its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.model_scene import check_moves, scene_of
from simstate.cli.options import Debug, Engine, Json, Model, check_plot

if TYPE_CHECKING:
    from simstate import step
    from simstate.simulation import Simulation


@dataclass
class IntegrateCommand:
    """Run a model by an integrator; report drifts and the measured order.

    Example: simstate integrate satellite --scheme rk4 --attitude lie --seconds 2
    """

    model: Model
    scheme: str = "rk4"
    """euler, heun, midpoint, rk4, bs32, rkf45, dp54, rkf78, dop853, or mujoco for
    MuJoCo's own stepper."""
    attitude: Literal["lie", "high_order", "manifold"] = "lie"
    """Method of advancing orientations."""
    seconds: float = 2.0
    """Simulated time [s]."""
    timestep: float | None = None
    """The time step in seconds; the model's own if it is left out."""
    tolerance: float | None = None
    """Absolute and relative tolerance of an adaptive scheme."""
    speed: float = 1.0
    """Standard deviation of the random initial velocities [rad/s or m/s]; 0: the
    model's own."""
    gravity: bool = False
    """Keep the model's gravity; without it momentum is conserved."""
    seed: int = 0
    """Seed of the initial velocities."""
    engine: Engine = "native"
    plot: Path | None = None
    """Draw the scheme's drifts, without damping and actuation, into this file: .png,
    .svg or .pdf."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command; what it found."""
        from simstate import step

        check_plot("--plot", self.plot)
        sim = self._simulation()
        self._start(sim)
        found = step.report(sim, self.seconds)
        parts, alone = self._energy_parts(sim, found)
        if self.plot is not None:
            alone.plot(self.plot)
        drawn = [] if self.plot is None else [f"Plot: {self.plot}"]
        facts = found.to_dict() | {"energy": parts}
        return Answer(facts, [_table(found, self.model, parts), *drawn])

    def _start(self, sim: Simulation) -> None:
        """Random velocities, the same for the same seed."""
        noise = sim.rng.normal(slice(None), sim.model.nv)
        sim.data.qvel[:] += self.speed * noise.to(sim.dtype)

    def _energy_parts(
        self, sim: Simulation, found: step.ConservationReport
    ) -> tuple[dict[str, float], step.ConservationReport]:
        """The change of energy by the model's own doing, and by the scheme's.

        The scheme's is that of the same run without damping and actuation.
        """
        from simstate import step
        from simstate.simulation import Simulation
        from simstate.step.conservation import conservative_model  # loads Warp

        model, removed = conservative_model(sim.model)
        change = float(found.energy[-1] - found.energy[0])
        if not removed:
            return {"the scheme alone": change}, found
        alone = Simulation(
            model, engine=self.engine, integrator=self._integrator(), seed=self.seed
        )
        alone.data.qpos[:] = sim.data.qpos
        self._start(alone)
        undamped = step.report(alone, self.seconds)
        scheme = float(undamped.energy[-1] - undamped.energy[0])
        parts = {" and ".join(removed): change - scheme, "the scheme alone": scheme}
        return parts, undamped

    def _simulation(self) -> Simulation:
        from simstate.simulation import Simulation

        scene = replace(scene_of(self.model), ground=False, timestep=self.timestep)
        check_moves(scene)
        if not self.gravity:
            scene = replace(scene, gravity=(0.0, 0.0, 0.0))
        return Simulation(
            scene, engine=self.engine, integrator=self._integrator(), seed=self.seed
        )

    def _integrator(self) -> step.Explicit | None:
        from simstate import step

        if self.scheme == "mujoco":
            if self.tolerance is not None:
                raise InvalidInputError(
                    "MuJoCo's own stepper has fixed steps: leave out --tolerance, or "
                    "choose an adaptive --scheme, such as dp54."
                )
            return None
        options = (
            {}
            if self.tolerance is None
            else {"atol": self.tolerance, "rtol": self.tolerance}
        )
        return step.scheme(self.scheme, self.attitude, **options)


def _table(
    found: step.ConservationReport, model: str, parts: dict[str, float]
) -> Table:
    seconds = found.time[-1] - found.time[0]
    title = f"{model}: {found.scheme}, time step {found.timestep:g} s, {seconds:g} s"
    table = Table(title=title, title_justify="left")
    table.add_column("quantity")
    table.add_column("drift", justify="right")
    table.add_column("size", justify="right")
    sizes = found.sizes()
    for name, drift in found.drifts().items():
        table.add_row(escaped(name), f"{drift:.2e}", f"{sizes[name]:.2e}")
    for name, change in parts.items():
        table.add_row(f"energy [J] by {escaped(name)}", f"{change:+.2e}", "")
    for name, order in found.order.items():
        table.add_row(f"order in {name}", f"{order:.2f}", "")
    return table
