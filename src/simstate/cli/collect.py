"""`simstate collect`: episodes of a policy, as a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from simstate.cli.console import console, progress
from simstate.cli.extras import needs
from simstate.cli.options import Debug, Engine, Seed
from simstate.cli.workers import Ray, workers
from simstate.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.datasets.collect import MakeAct
    from simstate.env import EnvCfg


@dataclass
class Collect:
    """Collect episodes of a policy in a task; an interrupted run goes on.

    Example: simstate collect Arm-Reach --policy reach.onnx --episodes 1000 --out data
    """

    task: Annotated[str, tyro.conf.Positional]
    """A task as `simstate train` takes it."""
    policy: str
    """A run's folder, a checkpoint or an .onnx file; or a policy of your own as
    file.py:function, called with the Env, which returns actions from observations."""
    out: Path
    """The folder for the parts."""
    episodes: int = 100
    """How many episodes are wanted."""
    success: str | None = None
    """The termination term that must end an episode, such as time_out."""
    quantities: tuple[str, ...] = ()
    """What to record besides observations and actions, as entity.quantity."""
    cameras: tuple[str, ...] = ()
    """Cameras of the task whose pictures are kept; "view" looks at the robot."""
    image_size: tuple[int, int] | None = None
    """Width and height of the pictures [px]; by default what the task says."""
    envs: int = 64
    """How many worlds run at once; what each does does not depend on it."""
    to: Literal["hdf5", "lerobot"] | None = None
    """Also write the wanted episodes as OUT/demos.hdf5 or OUT/lerobot."""
    seed: Seed = 0
    ray: Ray = None
    engine: Engine = "native"
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate.datasets.collect import collect
        from simstate.env import tasks

        cfg, make_act = self._policy()
        out = console()
        with progress(out, "collect") as advance, workers(self.ray) as over:
            found = collect(
                cfg,
                make_act,
                self.out,
                episodes=self.episodes,
                envs=self.envs,
                seed=self.seed,
                success=self.success,
                quantities=self.quantities,
                cameras=self.cameras,
                image_size=self.image_size,
                task=tasks.find(self.task).reference,
                engine=self.engine,
                over=over,
                told=lambda n, tried: advance(
                    min(1.0, n / self.episodes), f"{n} of {tried} episodes"
                ),
            )
        count = sum(1 for _ in found.episodes())
        out.print(f"{self.out}: {count} episodes in {len(found.parts)} parts.")
        if self.to is not None:
            where = found.export(self.to)
            out.print(f"{self.to}: {where}", markup=False)
        return 0

    def _policy(self) -> tuple[EnvCfg, MakeAct]:
        """The task's configuration, and what makes the policy."""
        from simstate.env import tasks

        if ".py:" in self.policy:
            from simstate.replay.sources import function_of

            return tasks.make_cfg(self.task), function_of(self.policy)
        path = Path(self.policy)
        if not path.exists():
            raise InvalidInputError(f"There is no policy {self.policy!r}.")
        with needs("play" if path.suffix == ".onnx" else "train"):
            from simstate.train.played import load_played

            played = load_played(path, self.task)
        return played.run.env_cfg(), played.act_in
