"""`simstate bench`: stepping speed of a model, compared with a loop of mj_step."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import Advance, progress
from simstate.cli.options import AnswerCommand, Device, Engine, Model
from simstate.cli.ray_option import Ray, cluster_of

if TYPE_CHECKING:
    from simstate.cli.bench_worlds import Call
    from simstate.data.ray import Cluster

LEAST_ROUNDS = 5


@dataclass(frozen=True)
class Rate:
    """World-steps per second: the median and the quartiles over the rounds."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(work: int, seconds: list[float]) -> Rate:
        """Return the rates of rounds of `work` world-steps each."""
        quartiles = statistics.quantiles([work / s for s in seconds], n=4)
        return Rate(quartiles[1], quartiles[0], quartiles[2])

    @property
    def text(self) -> str:
        """The median, and half the interquartile range in percent of it."""
        spread = 50 * (self.high - self.low) / self.median
        return f"{self.median:,.0f} ± {spread:.0f} %"


@dataclass(frozen=True)
class Result:
    """Measurement with one number of worlds."""

    worlds: int
    simstate: Rate
    loop: Rate
    """Rate of a loop of mj_step; with --ray, of all worlds in this process."""
    rounds: int

    @property
    def ratio(self) -> float:
        """Speed relative to the loop."""
        return self.simstate.median / self.loop.median


@dataclass
class BenchCommand(AnswerCommand):
    """Measure world-steps per second on this machine, compared with mj_step in a loop.

    The loop is plain Python on one core, one world after the other, in the same process
    and from the same states; the measurements alternate. With --ray, worlds on the
    workers of a cluster are compared with the same number in this process.

    Example: simstate bench cartpole --envs 1 256 --seconds 2
    """

    model: Model = "quadruped"
    envs: tuple[int, ...] = (1, 64, 1024)
    """Numbers of worlds."""
    seconds: float = 10.0
    """Approximate total duration of the measurement [s]."""
    engine: Engine = "native"
    device: Device = "cpu"
    noise: float = 0.1
    """Standard deviation of the initial joint velocities [rad/s or m/s]."""
    seed: int = 0
    """Seed of the initial velocities."""
    ray: Ray = None

    def execute(self) -> Answer:
        """Run the command; return the rates."""
        from simstate.base.checks import number

        number("--seconds", self.seconds, more_than=0)
        if not self.envs:
            raise InvalidInputError("--envs needs at least one number of worlds.")
        results: list[Result] = []
        with progress("measuring") as advance, cluster_of(self.ray) as cluster:
            for k, num_envs in enumerate(self.envs):
                share = _Share(advance, k / len(self.envs), 1 / len(self.envs))
                results.append(self._measure(cluster, num_envs, share))
            advance(1.0)
        return Answer(self._to_dict(results), [self._table(results)])

    def _measure(self, cluster: Cluster | None, num_envs: int, share: _Share) -> Result:
        from simstate.cli.bench_worlds import BenchedWorlds, shared_out
        from simstate.cli.plain_loop import STEPS

        what = BenchedWorlds(
            self.model, self.engine, self.device, self.noise, self.seed
        )
        here = what.made(num_envs)
        ours: Call = (here.rewind, here.run)
        seconds = self.seconds / len(self.envs)
        if cluster is None:
            loop = here.loop
            compared = len(loop.datas)
            calls: dict[str, Call] = {"simstate": ours, "loop": (loop.rewind, loop.run)}
            times = take_turns(calls, seconds, share)
        else:
            compared = num_envs
            with shared_out(cluster, what, num_envs) as theirs:
                times = take_turns({"simstate": theirs, "loop": ours}, seconds, share)
        return Result(
            num_envs,
            Rate.of(STEPS * num_envs, times["simstate"]),
            Rate.of(STEPS * compared, times["loop"]),
            len(times["loop"]),
        )

    def _to_dict(self, results: list[Result]) -> dict[str, object]:
        import mujoco

        return {
            "model": self.model,
            "engine": self.engine,
            "device": self.device,
            "cores": os.cpu_count(),
            "mujoco": mujoco.__version__,
            "unit": "world-steps/s",
            "against": self._against,
            "results": [{**asdict(one), "ratio": one.ratio} for one in results],
        }

    @property
    def _against(self) -> str:
        return "loop of mj_step" if self.ray is None else "one process"

    def _table(self, results: list[Result]) -> Table:
        title = f"{self.model} on {self.engine}, {os.cpu_count()} cores: world-steps/s"
        columns = (">worlds", ">simstate", f">{self._against}", ">ratio", ">rounds")
        table = new_table(title, *columns)
        for one in results:
            table.add_row(
                str(one.worlds),
                one.simstate.text,
                one.loop.text,
                f"{one.ratio:.3g} ×",
                str(one.rounds),
            )
        return table


@dataclass(frozen=True)
class _Share:
    """A part of the progress display."""

    advance: Advance
    start: float
    size: float

    def __call__(self, fraction: float) -> None:
        self.advance(self.start + self.size * min(0.99, fraction))


def take_turns(
    calls: dict[str, Call], seconds: float, report: Callable[[float], None]
) -> dict[str, list[float]]:
    """Time the calls alternately for about `seconds`, after one warm-up round."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for make_ready, call in calls.values():
        make_ready()
        call()
    begin = time.perf_counter()
    rounds = 0
    while rounds < LEAST_ROUNDS or time.perf_counter() - begin < seconds:
        names = list(calls) if rounds % 2 else list(calls)[::-1]
        for name in names:
            make_ready, call = calls[name]
            make_ready()
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
        rounds += 1
        report((time.perf_counter() - begin) / seconds)
    return times
