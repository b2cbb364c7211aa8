"""`simstate align`: compare other simulators with MuJoCo and explain differences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.model_scene import scene_of
from simstate.cli.options import AnswerCommand, Model, check_plot


@dataclass
class AlignCommand(AnswerCommand):
    """Compare simulators with MuJoCo; exit code 1 if a difference has no known cause.

    Example: simstate align cartpole --with native --seconds 0.2
    """

    model: Model
    simulators: Annotated[
        tuple[str, ...],
        tyro.conf.arg(
            name="with",
            help="native, warp, drake, mjx, newton, newton-featherstone; one or more.",
        ),
    ] = ("native", "warp")
    theirs: Path | None = None
    """Another version of the model for the simulators, with the same joints and bodies;
    the command identifies what differs."""
    states: int = 3
    """Number of random states to compare."""
    seconds: float = 1.0
    """Duration of the runs that are compared [s]; 0 skips them."""
    seed: int = 0
    """Seed of the states."""
    plot: Path | None = None
    """Write a plot of how far the runs drift apart to this image file."""

    def execute(self) -> Answer:
        """Run the command; return the comparison."""
        from simstate.simulators import align
        from simstate.simulators.align.tables import as_tables, draw
        from simstate.simulators.randomisation import suggestions

        check_plot("--plot", self.plot)
        if self.plot is not None and not self.seconds:
            raise InvalidInputError("--plot draws the runs, so --seconds must be > 0.")
        theirs = None if self.theirs is None else scene_of(str(self.theirs))
        found = align(
            scene_of(self.model),
            *self.simulators,
            theirs=theirs,
            model=self.model,
            states=self.states,
            seconds=self.seconds,
            seed=self.seed,
        )
        if self.plot is not None:
            draw(found, self.plot)
        advice = [
            f"To train for {simulator.title}: {line}"
            for simulator in found.simulators
            for line in suggestions(simulator)
        ]
        drawn = [] if self.plot is None else [f"Plot: {self.plot}"]
        code = 0 if found.explained and not found.skipped else 1
        return Answer(found.to_dict(), [as_tables(found), *advice, *drawn], code)
