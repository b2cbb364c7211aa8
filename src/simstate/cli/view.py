"""`simstate view`: show a model, a recording, a task or a policy in the browser."""

from __future__ import annotations

import webbrowser
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simstate.cli.console import console
from simstate.cli.missing_extra import needs
from simstate.cli.named_worlds import Viewed, What
from simstate.cli.options import Debug, Device, Engine, Seed

if TYPE_CHECKING:
    from simstate.view import Course


@dataclass
class ViewCommand:
    """Show a model, a recording, a task or a policy in the browser, and control it.

    The page plays, pauses, steps, rewinds and resets; it draws frames, velocities,
    contacts and forces, plots any quantity, and shows the meaning of each value. The
    timeline of a recording marks resets, divergences and events.

    Example: simstate view quadruped
    """

    what: What
    snapshot: Path | None = None
    """Start in the states of this snapshot of the model."""
    policy: Path | None = None
    """Policy that acts in the task: the folder of a run, a checkpoint or an .onnx
    file."""
    compare: str | None = None
    """Show another run next to it, and the difference: a second .simrec file; or the
    same worlds on an engine (native, warp) or in a simulator (drake, mjx, newton),
    given the same inputs."""
    made_by: str | None = None
    """A function that creates the worlds of a recording, as file.py:function; needed if
    they have force models, sensors or an integrator."""
    envs: int | None = None
    """Number of worlds; by default 1, that of the snapshot, or 16 for a task."""
    noise: float = 0.0
    """Standard deviation of the initial joint velocities of a model [rad/s or m/s]."""
    paused: bool = False
    """Start paused."""
    seconds: float | None = None
    """Stop after this many seconds; by default Ctrl-C stops it."""
    open: bool = False
    """Open the page in this machine's browser."""
    host: str = "127.0.0.1"
    """Address of the network interface to listen on."""
    port: int = 8080
    """The first port to try; 0: any free port."""
    token: str | None = None
    """The token that the address must contain; by default a random one."""
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; return the exit code."""
        from simstate.base.checks import number

        if self.seconds is not None:
            number("--seconds", self.seconds, more_than=0)
        viewed = Viewed(
            self.what, self.snapshot, self.policy, self.envs, self.noise, self.seed,
            self.engine, self.device, self.made_by,
        )  # fmt: skip
        with ExitStack() as stack:
            course = viewed.course(stack)
            if self.compare is not None:
                course = viewed.compared(course, self.compare, stack)
            return self._show(viewed, course)

    def _show(self, viewed: Viewed, course: Course) -> int:
        """Play until the time is over or Ctrl-C is pressed."""
        with needs("view"):
            from simstate.view.viewer import Viewer
        is_file = viewed.is_model() and self.compare is None
        with Viewer(
            course,
            host=self.host,
            port=self.port,
            token=self.token,
            worlds=min(course.worlds.num_envs, 16),
            playing=not self.paused,
            reload=viewed.model_course if is_file else None,
        ) as viewer:
            console().print_line(f"{self.what}: {viewer.url} (Ctrl-C stops it)")
            if self.open:
                webbrowser.open(viewer.url)
            try:
                viewer.run(self.seconds)
            except KeyboardInterrupt:
                return 0
        return 0
