"""`simstate check`: the oracle suite on a model of the user's own."""

from __future__ import annotations

import json
from dataclasses import dataclass

from simstate.cli.console import console, verdict_table
from simstate.cli.model import scene_of
from simstate.cli.options import Debug, Device, Engine, Json, Model


@dataclass
class Check:
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
    json: Json = False
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate import oracles

        scene = scene_of(self.model)
        report = oracles.check(scene, self.engine, self.envs, self.seed, self.device)
        if self.json:
            print(json.dumps(report.to_dict(), indent=2))
        else:
            out = console()
            out.print(verdict_table(report, f"Laws on {self.model}, {report.engine}"))
            for note in report.notes:
                out.print(note, markup=False, highlight=False)
            for failure in report.failures:
                out.print(
                    f"FAILED {failure.law}: {failure.entity}.{failure.quantity}, error "
                    f"{failure.error:.3e} > {failure.tolerance:.0e}",
                    markup=False,
                )
        return 0 if report.passed else 1
