"""`simstate render`: pictures and films with overlays, without a browser."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from simstate.cli.console import console
from simstate.cli.named_worlds import Viewed, What
from simstate.cli.options import Debug, Device, Engine, Seconds, Seed
from simstate.cli.picture_options import PictureOptions


@dataclass
class RenderCommand:
    """Draw a model, a recording, a task or a policy: a picture or film with overlays.

    Example: simstate render quadruped --output stand.png --overlays contacts
    """

    what: What
    output: Path
    """A .png file for the state after --seconds, or a .gif or .mp4 file for a film of
    them."""
    picture: Annotated[PictureOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=PictureOptions
    )
    seconds: Seconds = 2.0
    snapshot: Annotated[Path | None, tyro.conf.arg(name="snapshot")] = None
    """Begin with the worlds of this file."""
    policy: Path | None = None
    """Policy that acts in the task."""
    envs: int | None = None
    """Number of worlds, by default 1; up to 16 are drawn side by side, up to 100 in a
    sheet."""
    noise: float = 0.0
    """Spread of random joint velocities at the start of a model [rad/s or m/s]."""
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate.base.checks import number

        number("--seconds", self.seconds, more_than=0)
        self.picture.check(self.output, "--output")
        envs = self.envs
        if envs is None and not self.what.endswith(".simrec"):
            envs = 1
        viewed = Viewed(
            self.what, self.snapshot, self.policy, envs, self.noise, self.seed,
            self.engine, self.device,
        )  # fmt: skip
        with ExitStack() as stack:
            self.picture.write(viewed.course(stack), self.output, self.seconds)
        console().print(f"{self.output}", markup=False)
        return 0
