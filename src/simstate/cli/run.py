"""`simstate run`: simulate a model in many worlds; report speed, laws and files."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.console import console, escaped, progress, verdict_table
from simstate.cli.model_scene import ENTITY, moving_worlds, scene_of
from simstate.cli.options import (
    Debug,
    Device,
    Engine,
    Json,
    Model,
    Seconds,
    check_plot,
    check_writable,
)
from simstate.cli.picture_options import PictureOptions
from simstate.entity.entity import sizes_of

if TYPE_CHECKING:
    from torch import Tensor

    from simstate.cli.picture_options import FilmWriter
    from simstate.cli.trajectory import Trajectory
    from simstate.entity import Entity, Quantity
    from simstate.scene import SceneCfg
    from simstate.simulation import Simulation

SUBSTEPS = 4
FILMED_WORLDS = 9
"""Number of worlds in a film."""


@dataclass
class RunCommand:
    """Simulate a model in many worlds; report the speed and check the laws.

    Example: simstate run quadruped --envs 64 --seconds 2 --plot run.png --film run.mp4
    """

    model: Model = "quadruped"
    envs: int = 256
    """Number of worlds."""
    seconds: Seconds = 5.0
    engine: Engine = "native"
    device: Device = "cpu"
    noise: float = 0.1
    """Spread of the random joint velocities at the start [rad/s or m/s]."""
    world: int = 0
    """The world whose state is shown."""
    seed: int = 0
    """Seed of the random start."""
    plot: Path | None = None
    """Draw the shown world's joints and root link over time into this image file."""
    film: Path | None = None
    """Write a film of the first nine worlds: an .mp4 or .gif file."""
    picture: Annotated[PictureOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=PictureOptions
    )
    save: Path | None = None
    """Save the worlds at the end as a snapshot in this .npz file; see `diff`."""
    check: bool = True
    """Check the laws on the model afterwards."""
    all: bool = False
    """Print all quantities and joints of one world, and each law."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command, which says what it does; what it found."""
        from simstate.base.checks import number
        from simstate.cli.trajectory import Trajectory

        number("--seconds", self.seconds, more_than=0)
        check_plot("--plot", self.plot)
        check_writable("--save", self.save)
        if self.film is not None:
            self.picture.check_film(self.film, "--film")
        out = Console(quiet=True) if self.json else console()
        scene = scene_of(self.model)
        sim = moving_worlds(
            scene, self.envs, self.engine, self.device, self.noise, self.seed
        )
        if not 0 <= self.world < sim.num_envs:
            raise InvalidInputError(
                f"--world must be in [0, {sim.num_envs}), got {self.world}."
            )
        path = None
        if self.plot is not None:
            path = Trajectory(sim.scene[ENTITY], self.world, self._total_steps(sim))
        before = plain_rate(sim)
        with ExitStack() as stack:
            film = None
            if self.film is not None:
                film = stack.enter_context(self._start_film(sim, self.film))
            steps, elapsed = self._simulate(sim, out, path, film)
        finished = steps >= self._total_steps(sim)
        bare = (before + plain_rate(sim)) / 2.0  # machines are not equally fast always
        self._print_summary(sim, out, steps, elapsed, bare)
        if self.all or not finished:
            robot = sim.scene[ENTITY]
            out.print(quantity_table(robot, self.world))
            if robot.num_joints:
                out.print(joint_table(robot, self.world))
        code = 130
        if finished:
            code = self._check(scene, out) if self.check else 0
        else:
            out.print("Interrupted: the tables show what was simulated so far.")
        self._write_files(sim, out, path)
        if finished:
            self._print_next(out)
        return Answer(self._facts(sim, steps, elapsed, bare, code), [], code)

    def _start_film(self, sim: Simulation, path: Path) -> FilmWriter:
        from simstate.view import Course

        course = Course(sim, sim.rays)
        return self.picture.film(course, path, FILMED_WORLDS)

    def _facts(
        self, sim: Simulation, steps: int, elapsed: float, bare: float, code: int
    ) -> dict[str, Any]:
        """Return the contents of the tables, for programs."""
        robot = sim.scene[ENTITY]
        return {
            "model": self.model,
            "engine": sim.engine_name,
            "num_envs": sim.num_envs,
            "steps": steps,
            "simulated_s": steps * sim.timestep,
            "elapsed_s": elapsed,
            "world_steps_per_second": steps * sim.num_envs / max(elapsed, 1e-9),
            "bare_mujoco_steps_per_second": bare,
            "diverged": int(sim.diverged.sum()),
            "finished": code != 130,
            "laws_hold": code == 0 if self.check and code != 130 else None,
            "world": self.world,
            "quantities": {
                name: robot.data.read(name)[self.world].cpu().numpy().tolist()
                for name, quantity in robot.data.quantities.items()
                if _is_shown(robot, quantity)
            },
        }

    def _total_steps(self, sim: Simulation) -> int:
        return max(1, round(self.seconds / sim.timestep))

    def _simulate(
        self,
        sim: Simulation,
        out: Console,
        path: Trajectory | None,
        film: FilmWriter | None,
    ) -> tuple[int, float]:
        """Step to the end or to Ctrl-C; steps done, and the time they took [s]."""
        total, done, spent = self._total_steps(sim), 0, 0.0
        _say(
            out,
            f"[bold]{self.model}[/]: {sim.num_envs} worlds on {sim.engine_name}, "
            f"{total} steps of {sim.timestep:g} s, {_ground_text(sim)}",
        )
        try:
            with progress(out, "simulating") as advance:
                while done < total:
                    n = min(SUBSTEPS, total - done)
                    start = time.perf_counter()
                    sim.step(n)
                    spent += time.perf_counter() - start
                    done += n
                    if path is not None:
                        path.record(done)
                    if film is not None:
                        film.add(done * sim.timestep)
                    rate = done * sim.num_envs / spent
                    advance(done / total, f"{rate:,.0f} world-steps/s")
        except KeyboardInterrupt:
            pass
        return done, spent

    def _write_files(
        self, sim: Simulation, out: Console, path: Trajectory | None
    ) -> None:
        if self.film is not None:
            worlds = min(sim.num_envs, FILMED_WORLDS)
            out.print(f"Film of {worlds} worlds: {self.film}", markup=False)
        if path is not None and self.plot is not None:
            path.draw(self.plot, self.model)
            out.print(f"Plot of world {self.world}: {self.plot}", markup=False)
        if self.save is not None:
            sim.snapshot().save(self.save)
            out.print(f"Snapshot of {sim.num_envs} worlds: {self.save}", markup=False)

    def _print_summary(
        self, sim: Simulation, out: Console, steps: int, elapsed: float, bare: float
    ) -> None:
        simulated = steps * sim.timestep
        rate = steps * sim.num_envs / max(elapsed, 1e-9)
        _say(
            out,
            f"{simulated:g} s in {sim.num_envs} worlds took {elapsed:.2f} s: "
            f"{rate:,.0f} world-steps/s, {rate * sim.timestep:,.0f} × real time. "
            f"{int(sim.diverged.sum())} worlds diverged.",
        )
        _say(
            out,
            f"Bare MuJoCo, a loop of mj_step on one core: {bare:,.0f} world-steps/s; "
            f"simstate: {rate / bare:.2g} × that.",
        )

    def _print_next(self, out: Console) -> None:
        _say(out, f"Watch it in a browser: simstate view {self.model}")
        more = "" if self.all else "; all numbers: add --all"
        _say(out, f"Train it: simstate tasks, simstate train TASK --help{more}")

    def _check(self, scene: SceneCfg, out: Console) -> int:
        from simstate.study import oracles

        report = oracles.check(scene, self.engine, seed=self.seed, device=self.device)
        if self.all or not report.passed:
            title = f"Laws, checked on {self.model} in random states"
            out.print(verdict_table(report, title))
            for note in report.notes:
                out.print(note, markup=False, highlight=False)
        else:
            laws = {check.law for check in report.checks}
            _say(
                out,
                f"{len(laws)} laws hold in random states: simstate check lists them.",
            )
        return 0 if report.passed else 1


def _say(out: Console, text: str) -> None:
    """Print one line, however long."""
    out.print(text, highlight=False, soft_wrap=True)


def plain_rate(sim: Simulation) -> float:
    """World-steps per second of a loop of mj_step from the worlds' states."""
    from simstate.cli.plain_loop import STEPS, PlainLoop

    rows = sim.state[:64].cpu().double().numpy()
    loop = PlainLoop(sim.model, rows)
    times: list[float] = []
    for _ in range(3):
        loop.rewind()
        start = time.perf_counter()
        loop.run()
        times.append(time.perf_counter() - start)
    return len(rows) * STEPS / min(times)


def _ground_text(sim: Simulation) -> str:
    """Describe the floor: the model's, an added one, or none."""
    from simstate.scene.ground import has_floor

    names = {sim.model.geom(i).name for i in range(sim.model.ngeom)}
    if "ground" in names:  # the entity's own would be robot/ground
        return "a ground plane added at z = 0"
    return "the model's own floor" if has_floor(sim.model) else "no floor"


def quantity_table(entity: Entity, world: int) -> Table:
    """The entity's quantities in one world, each with its contract."""
    from simstate.world.worlds import worlds_of  # loads torch

    time = float(worlds_of(entity).read_field("time")[world])
    table = Table(
        title=f"{entity.name}, world {world}, t = {time:g} s",
        title_justify="left",
    )
    for header in ("quantity", "value", "point", "axes", "unit"):
        table.add_column(header, no_wrap=header != "value")
    for name, quantity in entity.data.quantities.items():
        if _is_shown(entity, quantity):
            value = format_value(entity.data.read(name)[world])
            table.add_row(
                name, value, quantity.point_text, quantity.axes_text, quantity.unit
            )
    return table


def joint_table(entity: Entity, world: int) -> Table:
    """Position, velocity, acceleration and target of each joint in one world."""
    columns = (
        "joint_pos",
        "joint_vel",
        "joint_acc",
        "joint_pos_target",
        "qfrc_actuator",
    )
    table = Table(title="1-DoF joints", title_justify="left")
    table.add_column("joint")
    for name in columns:
        unit = entity.data.quantities[name].unit
        table.add_column(escaped(f"{name}\n[{unit}]"), justify="right")
    values = [entity.data.read(name)[world] for name in columns]
    for k, joint in enumerate(entity.joint_names):
        table.add_row(joint, *(format_value(column[k]) for column in values))
    return table


def format_value(value: Tensor) -> str:
    """A few numbers in full; of many, the first row and the shape."""
    if value.ndim > 1:
        sizes = "×".join(str(size) for size in value.shape)
        return f"{format_value(value[0])}, … ({sizes})"
    if value.ndim == 0:
        return "–" if bool(value.isnan()) else f"{float(value):.4g}"
    shown = ", ".join(f"{float(number):.4g}" for number in value[:7])
    return shown if len(value) <= 7 else f"{shown}, … ({len(value)})"


def _is_shown(entity: Entity, quantity: Quantity) -> bool:
    """Return True if the entity has such elements and no finer quantity covers them."""
    if quantity.kind in ("pose", "vel", "acc") and quantity.axes == "w":
        return False
    if quantity.subject == "root" or quantity.kind in ("projected_gravity", "heading"):
        return entity.index.base != "none"
    per_joint = "num_joints" in quantity.shape
    sizes = [sizes_of(entity)[size] for size in quantity.shape if isinstance(size, str)]
    return not per_joint and all(sizes)
