"""`simstate collect`: collect episodes of a policy as a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.console import Advance, progress
from simstate.cli.missing_extra import needs
from simstate.cli.options import AnswerCommand, check_folder
from simstate.cli.ray_option import Ray, workers

if TYPE_CHECKING:
    from simstate.data.datasets.collection import Collection, MakeAct
    from simstate.env import EnvCfg
    from simstate.study.dispersions.study import Over

EPISODES = 100
"""Default number of episodes of a policy."""
ENVS = 64
"""Default number of worlds that run at once."""


@dataclass
class CollectCommand(AnswerCommand):
    """Collect episodes of a policy in a task; an interrupted run can be continued.

    Example: simstate collect Arm-Reach --policy reach.onnx --episodes 1000 --out data
    """

    task: Annotated[str, tyro.conf.Positional]
    """A task, as for `simstate train`."""
    out: Path
    """The folder for the parts."""
    policy: str | None = None
    """A run's folder, a checkpoint or an .onnx file; or file.py:function, a function of
    the Env that returns your policy, which maps observations to actions."""
    source: Annotated[
        tuple[Path, ...],
        tyro.conf.arg(
            name="from",
            help="Recordings of the task, instead of a policy: their states and "
            "actions are replayed, with the requested cameras and quantities.",
        ),
    ] = ()
    episodes: int | None = None
    """Minimum number of episodes of a policy, by default 100; all of the last part are
    kept."""
    success: str | None = None
    """Keep only the episodes that this termination term ends, such as time_out."""
    quantities: tuple[str, ...] = ()
    """Quantities to record besides observations and actions, as entity.quantity."""
    cameras: tuple[str, ...] = ()
    """Cameras of the task whose images are recorded; "view" looks at the robot."""
    image_size: tuple[int, int] | None = None
    """Width and height of the images [px]; by default those of the task."""
    envs: int | None = None
    """Number of worlds that run at once, by default 64; results do not depend on it."""
    to: Literal["hdf5", "lerobot"] | None = None
    """Also write the kept episodes as OUT/demos.hdf5 or OUT/lerobot."""
    seed: int | None = None
    """Seed of everything random; by default 0."""
    ray: Ray = None
    engine: Literal["native", "warp"] | None = None
    """CPU threads in float64 (the default), or MuJoCo Warp in float32."""

    def execute(self) -> Answer:
        """Run the command; return what it collected."""
        check_folder("--out", self.out)
        if (self.policy is None) == (not self.source):
            raise InvalidInputError("Give either --policy, or recordings by --from.")
        if self.source:
            self._check_recorded()
        with progress("collecting") as advance, workers(self.ray) as over:
            found = (
                self._again(advance, over) if self.source else self._act(advance, over)
            )
        count = sum(1 for _ in found.episodes())
        facts = {"out": str(self.out), "episodes": count, "parts": len(found.parts)}
        lines = [f"{self.out}: {count} episodes in {len(found.parts)} parts."]
        if self.to is not None:
            facts[self.to] = str(found.export(self.to))
            lines.append(f"{self.to}: {facts[self.to]}")
        return Answer(facts, lines)

    def _check_recorded(self) -> None:
        """Raise if an option is given that the recordings determine."""
        given = {
            "--episodes": self.episodes,
            "--envs": self.envs,
            "--seed": self.seed,
            "--engine": self.engine,
        }
        names = [name for name, value in given.items() if value is not None]
        if names:
            raise InvalidInputError(
                f"{', '.join(names)} cannot be chosen with --from: episodes, worlds, "
                "seed and engine are those of the recordings. Omit it."
            )

    def _act(self, advance: Advance, over: Over | None) -> Collection:
        """Run a policy and collect its episodes."""
        from simstate.data.datasets.collection import collect
        from simstate.env import tasks

        cfg, make_act = self._policy()
        episodes = EPISODES if self.episodes is None else self.episodes
        return collect(
            cfg,
            make_act,
            self.out,
            episodes=episodes,
            envs=ENVS if self.envs is None else self.envs,
            seed=self.seed or 0,
            success=self.success,
            quantities=self.quantities,
            cameras=self.cameras,
            image_size=self.image_size,
            task=tasks.find(self.task).reference,
            engine=self.engine or "native",
            over=over,
            on_progress=lambda n, tried: advance(
                min(1.0, n / episodes), f"{n} of {tried} episodes"
            ),
        )

    def _again(self, advance: Advance, over: Over | None) -> Collection:
        """Collect the episodes of recordings."""
        from simstate.data.replay import collect_from

        files = self.source
        return collect_from(
            files,
            self.out,
            success=self.success,
            quantities=self.quantities,
            cameras=self.cameras,
            image_size=self.image_size,
            task=self.task,
            over=over,
            on_progress=lambda n, part: advance(part / len(files), f"{n} episodes"),
        )

    def _policy(self) -> tuple[EnvCfg, MakeAct]:
        """Return the task's configuration, and a function that makes the policy."""
        from simstate.env import tasks

        assert self.policy is not None
        if ".py:" in self.policy:
            from simstate.data.replay.recorded_worlds import function_of

            return tasks.make_cfg(self.task), function_of(self.policy)
        path = Path(self.policy)
        if not path.exists():
            raise InvalidInputError(f"There is no policy {self.policy!r}.")
        with needs("play" if path.suffix == ".onnx" else "train"):
            from simstate.train.policy_file import load_played

            played = load_played(path, self.task)
        return played.run.env_cfg(), played.act_in
