"""`simstate check`: check the laws on a model."""

from __future__ import annotations

from dataclasses import dataclass

from simstate.cli.answer import Answer
from simstate.cli.console import verdict, verdict_table
from simstate.cli.model_scene import scene_of
from simstate.cli.options import AnswerCommand, Device, Engine, Model


@dataclass
class CheckCommand(AnswerCommand):
    """Check every law on a model in random states; exit code 1 if one fails.

    Example: simstate check humanoid --engine native
    """

    model: Model
    engine: Engine = "native"
    device: Device = "cpu"
    envs: int = 4
    """Number of random states."""
    seed: int = 0
    """Seed of the random states."""

    def execute(self) -> Answer:
        """Run the command; return the verdict on each law."""
        from simstate.study import oracles

        scene = scene_of(self.model)
        report = oracles.check(scene, self.engine, self.envs, self.seed, self.device)
        failures = [
            verdict(
                f"FAILED {failure.law}: {failure.entity}.{failure.quantity}, error "
                f"{failure.error:.3e} > {failure.tolerance:.0e}",
                passed=False,
            )
            for failure in report.failures
        ]
        table = verdict_table(report, f"Laws on {self.model}, {report.engine}")
        shown = [table, *report.notes, *failures]
        return Answer(report.to_dict(), shown, code=0 if report.passed else 1)
