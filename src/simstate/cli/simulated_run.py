"""One run of `simstate run`: the steps, then the printed report and the files."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simstate.cli.console import PlainConsole, escaped, progress, verdict, verdict_table
from simstate.cli.model_scene import scene_of
from simstate.cli.run_tables import joint_table, quantity_table, quantity_values

if TYPE_CHECKING:
    from simstate.cli.picture_options import Drawings
    from simstate.cli.run import RunCommand
    from simstate.cli.run_worlds import RunWorlds
    from simstate.cli.trajectory import Trajectory
    from simstate.simulation import Simulation


class SimulatedRun:
    """One run: the steps, then the printed report and the files."""

    def __init__(
        self, options: RunCommand, worlds: RunWorlds, out: PlainConsole
    ) -> None:
        self.options, self.worlds, self.sim, self.out = (
            options, worlds, worlds.sim, out,
        )  # fmt: skip
        dt = worlds.course.step_dt
        self.total = max(1, round(options.seconds / dt))
        self.physics_steps = round(dt / worlds.sim.timestep)
        self.done, self.spent, self.bare = 0, 0.0, 0.0
        self.written: list[str] = []
        self.laws_hold: bool | None = None
        self._path: Trajectory | None = None

    @property
    def finished(self) -> bool:
        """False after Ctrl-C."""
        return self.done >= self.total

    @property
    def code(self) -> int:
        """The exit code."""
        if not self.finished:
            return 130
        return 1 if self.laws_hold is False else 0

    @property
    def rate(self) -> float:
        """World-steps per second of wall-clock time."""
        steps = self.done * self.physics_steps * self.sim.num_envs
        return steps / max(self.spent, 1e-9)

    def simulate(self) -> None:
        """Step to the end or to Ctrl-C, recording and drawing."""
        from simstate.cli.plain_loop import plain_rate
        from simstate.cli.trajectory import Trajectory

        options, sim = self.options, self.sim
        worlds = "1 world" if sim.num_envs == 1 else f"{sim.num_envs} worlds"
        self.out.print(
            f"[bold]{escaped(options.what)}[/]: {worlds} on "
            f"{sim.engine_name}, {self.total} steps of "
            f"{self.worlds.course.step_dt:g} s, {_ground_text(sim)}",
            highlight=False,
            soft_wrap=True,
        )
        if options.plot is not None:
            entity, dt = self.worlds.entity, self.worlds.course.step_dt
            self._path = Trajectory(entity, options.world, self.total, dt)
        before = plain_rate(sim) if options.is_model else 0.0
        with ExitStack() as stack:
            drawings = stack.enter_context(
                options.pictures.draw(self.worlds.course, options.seconds)
            )
            recorder: Any = None
            if options.record is not None:
                recorder = stack.enter_context(
                    self.worlds.record(
                        options.record,
                        options.quantities,
                        options.every,
                        options.snapshot_every,
                    )
                )
            self._step(drawings)
        if options.is_model:  # before and after: the machine's speed may vary
            self.bare = (before + plain_rate(sim)) / 2.0
        self.written += drawings.lines
        if recorder is not None and options.record is not None:
            self.written.append(_recorded(options.record, recorder.samples, options))

    def _step(self, drawings: Drawings) -> None:
        from simstate.train.interrupt import StopRequest

        dt = self.worlds.course.step_dt
        # An exception in the middle of a frame would destroy the film.
        with StopRequest() as stop, progress("simulating") as advance:
            while self.done < self.total and not stop.is_made:
                start = time.perf_counter()
                self.done += self.worlds.advance(self.total - self.done)
                self.spent += time.perf_counter() - start
                if self._path is not None:
                    self._path.record(self.done)
                drawings.add(self.done * dt)
                advance(self.done / self.total, f"{self.rate:,.0f} world-steps/s")

    def report(self) -> None:
        """Print the results, and write the plot and the snapshot."""
        out, options = self.out, self.options
        self._print_summary()
        if options.all or not self.finished:
            entity = self.worlds.entity
            out.print(quantity_table(entity, options.world))
            if entity.num_joints:
                out.print(joint_table(entity, options.world))
        if not self.finished:
            out.print("Interrupted: the tables show what was simulated so far.")
        elif options.check and options.is_model:
            self._check()
        if self.finished and options.study is not None:
            out.print(options.study.table())
        self._write_files()
        for line in self.written:
            out.print_line(line)
        if self.finished:
            self._print_next()

    def _print_summary(self) -> None:
        sim, rate = self.sim, self.rate
        simulated = self.done * self.worlds.course.step_dt
        self.out.print_line(
            f"{simulated:g} s in {sim.num_envs} worlds took {self.spent:.2f} s: "
            f"{rate:,.0f} world-steps/s, {rate * sim.timestep:,.0f} × real time. "
            f"{int(sim.diverged.sum())} worlds diverged.",
        )
        if self.bare:
            self.out.print_line(
                f"Bare MuJoCo, a loop of mj_step on one core: {self.bare:,.0f} "
                f"world-steps/s; simstate: {rate / self.bare:.2g} × that.",
            )

    def _check(self) -> None:
        from simstate.study import oracles

        options, out = self.options, self.out
        report = oracles.check(
            scene_of(options.what), options.engine, seed=options.seed,
            device=options.device,
        )  # fmt: skip
        self.laws_hold = report.passed
        if options.all or not report.passed:
            title = f"Laws, checked on {options.what} in random states"
            out.print(verdict_table(report, title))
            for note in report.notes:
                out.print_line(note)
            return
        laws = {check.law for check in report.checks}
        line = f"{len(laws)} laws hold in random states: simstate check lists them."
        out.print(verdict(line, passed=True), soft_wrap=True)

    def _write_files(self) -> None:
        options, sim = self.options, self.sim
        if self._path is not None and options.plot is not None:
            study = options.study if self.finished else None
            drift = None if study is None else study.scheme_alone
            self._path.draw(options.plot, options.what, drift)
            self.written.append(f"Plot of world {options.world}: {options.plot}")
        if options.save is not None:
            sim.snapshot().save(options.save)
            self.written.append(f"Snapshot of {sim.num_envs} worlds: {options.save}")

    def _print_next(self) -> None:
        options = self.options
        what = shlex.quote(options.what)
        self.out.print_line(f"Watch it in a browser: simstate view {what}")
        more = "" if options.all else "; all values: add --all"
        task = "TASK --help" if options.is_model else what
        self.out.print_line(f"Train it: simstate tasks, simstate train {task}{more}")

    def facts(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        options, sim = self.options, self.sim
        study = options.study if self.finished else None
        return {
            "model": options.what,
            "engine": sim.engine_name,
            "num_envs": sim.num_envs,
            "steps": self.done,
            "simulated_s": self.done * self.worlds.course.step_dt,
            "elapsed_s": self.spent,
            "world_steps_per_second": self.rate,
            "bare_mujoco_steps_per_second": self.bare or None,
            "diverged": int(sim.diverged.sum()),
            "finished": self.finished,
            "laws_hold": self.laws_hold,
            "integrator": None if study is None else study.to_dict(),
            "written": self.written,
            "world": options.world,
            "quantities": quantity_values(self.worlds.entity, options.world),
        }


def _recorded(path: Path, samples: int, options: RunCommand) -> str:
    """Describe a recording, which after Ctrl-C holds the steps so far."""
    how = f"simstate replay {shlex.quote(str(path))}"
    if options.integrator is not None:
        how += " --made-by FILE:FUNCTION"
    size = path.stat().st_size
    return f"Recording: {path}, {samples} samples, {size:,} bytes; {how} re-runs it."


def _ground_text(sim: Simulation) -> str:
    """Describe the floor: the model's, an added one, or none."""
    from simstate.scene.ground import has_floor

    names = {sim.model.geom(i).name for i in range(sim.model.ngeom)}
    if "ground" in names:  # the entity's own would be robot/ground
        return "a ground plane added at z = 0"
    return "the model's own floor" if has_floor(sim.model) else "no floor"
