"""Replay: re-run recorded steps and compare them, or branch from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simstate.base.checks import instance_of, number, whole_number
from simstate.base.errors import InvalidInputError
from simstate.data.replay.comparison import Replay, ReplayDifference
from simstate.data.replay.model_changes import model_changes, setting_changes
from simstate.data.replay.player import Player
from simstate.data.replay.recorded_worlds import engine_for, env_for, worlds_for
from simstate.engine import EngineCfg
from simstate.env import Env, tasks
from simstate.env.env_recorder import AFTER
from simstate.env.settings import described, settings_of
from simstate.record import Recording
from simstate.record.recorded_blocks import BlockPlace
from simstate.record.recording_file import opened
from simstate.simulation import Simulation
from simstate.simulators.adapted_simulator import AdaptedSimulator
from simstate.simulators.borrowed_stepper import borrowed_stepper
from simstate.state import Snapshot, take_snapshot
from simstate.world.worlds import worlds_of

OTHER_ENGINE = 1e-3
"""Default tolerance on a different engine from the recording's."""


def replay(
    recording: str | Path | Recording,
    worlds: Simulation | Env | None = None,
    *,
    tolerance: float | None = None,
    engine: EngineCfg | None = None,
    threads: int | None = None,
    task: str | None = None,
    simulator: str | AdaptedSimulator | None = None,
) -> Replay:
    """Re-run the recorded steps, and compare every sample and snapshot.

    The steps start at the first snapshot; recorded writes are applied before each step.
    The first value that differs is reported with its world, time and joint.

    Args:
        recording: the recording or its file.
        worlds: worlds to replay in; None: worlds are created from the model in the
            file, or from the task that it names.
        tolerance: maximum of |new − recorded| / (1 + |recorded|); 0 compares bits.
            None: 0, or `OTHER_ENGINE` on a different engine or in another simulator.
        engine: engine of created worlds; None: that of the recording.
        threads: threads of the native engine; results do not depend on it.
        task: for an environment, the task to replay in, with its current settings;
            those that differ from the recording's are listed. None: the task that the
            recording names, with the recorded settings.
        simulator: another simulator to take the steps, such as "drake", or an instance
            of one. It is given the recorded writes, controls and resets.
    """
    if worlds is not None and task is not None:
        raise InvalidInputError(
            f"Give worlds or task, not both: got {type(worlds).__name__} and {task!r}.",
            name="task",
        )
    if simulator is not None and engine is None and worlds is None:
        engine = "native"
    with opened(recording) as found:
        if task is not None and found.kind == "env":
            cfg = tasks.find(task).env_cfg()
            worlds = env_for(found, engine_for(found, engine, threads), cfg)
        player = player_for(found, worlds, engine, threads, task)
        if simulator is None:
            return _Comparison(player, tolerance).run()
        with borrowed_stepper(player.sim, simulator) as other:
            return _Comparison(player, tolerance, other.name).run()


def branch(
    recording: str | Path | Recording,
    time: float | None = None,
    *,
    step: int | None = None,
    worlds: Simulation | Env | None = None,
    engine: EngineCfg | None = None,
    task: str | None = None,
) -> Simulation | Env:
    """Return worlds in their state at a time of a recording, to continue differently.

    Args:
        recording: the recording or its file.
        time: time since its start [s], rounded to the nearest step; or
        step: number of steps since its start.
        worlds: worlds to set to that state; None: worlds are created, as by `replay`.
        engine: engine of created worlds; None: that of the recording.
        task: reference of the task if it has moved; None: the recorded one.
    """
    if (time is None) == (step is None):
        raise InvalidInputError(
            "Give either time= [s] or step= to branch from.", name="time"
        )
    with opened(recording) as found:
        if time is not None:
            step = _step_at(found, time)
        step = whole_number("step", step, 0, found.num_steps)
        player = player_for(found, worlds, engine, None, task)
        player.go_to(step)
        return player.worlds


def player_for(
    recording: Recording,
    worlds: Simulation | Env | None,
    engine: EngineCfg | None,
    threads: int | None,
    task: str | None,
) -> Player:
    """Return a player of a recording in the given worlds, or in created ones."""
    if worlds is not None:
        instance_of("worlds", worlds, Simulation | Env)
        return Player(recording, worlds, rebuilt=False)
    chosen = engine_for(recording, engine, threads)
    made = worlds_for(recording, chosen, task)
    return Player(recording, made, rebuilt=isinstance(made, Simulation))


def _step_at(recording: Recording, time: float) -> int:
    """Return the number of steps taken at a time since the start [s]."""
    number("time", time, at_least=0.0, unit="s")
    elapsed = span = 0.0
    for count, step in enumerate(recording.steps()):
        span = recording.span(step)
        if elapsed + span / 2 > time:
            return count
        elapsed += span
    if time > elapsed + span / 2:
        raise InvalidInputError(
            f"The recording ends at {elapsed:g} s, got time {time:g} s.", name="time"
        )
    return recording.num_steps


class _Comparison:
    """Re-runs a recording and compares the values with the recorded ones."""

    def __init__(
        self, player: Player, tolerance: float | None, simulator: str | None = None
    ) -> None:
        self._player, self._recording = player, player.recording
        here, there = player.sim.engine_name, self._recording.header["simulation"]
        if tolerance is None:
            same = simulator is None and here == there["engine"]
            tolerance = 0.0 if same else OTHER_ENGINE
        number("tolerance", tolerance, at_least=0, finite=False)
        self._found = Replay(simulator or here, tolerance)
        self._elapsed = self._gap = 0.0
        self._found.columns = list(player.columns)
        self._found.left_out = player.left_out
        self._found.model = model_changes(self._recording.model, player.sim.model)
        if player.env is not None:
            then = self._recording.header["settings"]
            found = settings_of(player.env.cfg, "env").items()
            # A default that the recording lacks is a setting of a newer version.
            now = {
                path: described(setting.value)
                for path, setting in found
                if path in then or not setting.is_default
            }
            self._found.settings = setting_changes(then, now)
        names = ["time", *player.columns]
        is_env = player.env is not None
        self._before = [n for n in names if not is_env or n not in AFTER]
        self._later = [n for n in names if is_env and n in AFTER]
        self._snapshots = set(self._recording.snapshot_steps)

    def run(self) -> Replay:
        """Re-run all steps; return the result."""
        self._player.restore(0)
        for block in self._recording.blocks:
            self._play(block)
        return self._found

    def _play(self, block: BlockPlace) -> None:
        """Re-run the steps of a block, and compare its samples in order."""
        samples = self._recording.read_block(block)
        counts = samples["step"]
        at = 0
        is_env = self._player.env is not None
        for step in self._recording.read_steps(block):
            if not is_env:
                at = self._compare_due(samples, counts, at)
            self._player.write(step)
            self._compare_snapshot()
            if is_env:
                self._compare(samples, at, self._before)
            start = self._elapsed
            self._player.move(step)
            self._found.steps += 1
            self._elapsed += self._recording.span(step)
            if self._player.diverged is not None:
                self._differs("diverged", *self._player.diverged)
            if is_env:
                self._compare(samples, at, self._later)
                self._count_sample(start)
                at += 1
        if not is_env:
            self._compare_due(samples, counts, at)

    def _compare_due(
        self, samples: dict[str, np.ndarray], counts: np.ndarray, at: int
    ) -> int:
        """Compare the samples of a Simulation that were taken at this step."""
        while at < len(counts) and counts[at] == self._player.step:
            self._compare(samples, at, self._before)
            self._count_sample(self._elapsed)
            at += 1
        return at

    def _count_sample(self, time: float) -> None:
        self._found.samples += 1
        self._found.time.append(time)

    def _compare(
        self, samples: dict[str, np.ndarray], at: int, names: list[str]
    ) -> None:
        now = self._player.values(names)
        for name in names:
            contract = self._recording.contract(name)
            worlds = self._recording.worlds
            then = samples[name][at]
            place = self._beyond(name, then, now[name])
            if name != "time":
                self._found.over_time.setdefault(name, []).append(self._gap)
            if place is None or self._found.first is not None:
                continue
            world, *rest = place
            flat = int(np.ravel_multi_index(rest, then.shape[1:])) if rest else 0
            element = contract["names"][flat] if contract["names"] else ""
            unit = self._recording.component_units(name)[flat]
            self._found.first = ReplayDifference(
                self._player.step, worlds[world], float(samples["time"][at][world]),
                name, element, then[place].item(), now[name][place].item(), unit,
            )  # fmt: skip

    def _beyond(
        self, name: str, then: np.ndarray, now: np.ndarray
    ) -> tuple[int, ...] | None:
        """Return the first index beyond the tolerance; keep the largest error."""
        self._gap = 0.0
        if then.tobytes() == now.astype(then.dtype).tobytes():
            return None
        a, b = then.astype(np.float64), now.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))  # as numbers
        with np.errstate(invalid="ignore"):
            gap = np.where(same, 0.0, np.abs(b - a))
        gap = np.where(np.isnan(gap), np.inf, gap)
        self._gap = float(gap.max(initial=0.0))
        self._found.largest[name] = max(self._found.largest.get(name, 0.0), self._gap)
        if self._found.tolerance == 0:
            beyond = _other_bits(then, now.astype(then.dtype))
        else:
            beyond = gap > self._found.tolerance * (1 + np.abs(np.nan_to_num(a)))
        places = np.argwhere(beyond)
        return tuple(int(k) for k in places[0]) if len(places) else None

    def _compare_snapshot(self) -> None:
        """Compare all slots, if a snapshot was taken at this step."""
        step, player = self._player.step, self._player
        if step not in self._snapshots or self._found.tolerance > 0:
            return
        self._found.snapshots += 1
        worlds = worlds_of(player.sim)
        now = take_snapshot(worlds, worlds.everywhere, player.owners)
        then = self._recording.snapshot(step)
        if step and self._found.first is None:
            self._compare_slots(then, now)

    def _compare_slots(self, then: Snapshot, now: Snapshot) -> None:
        for name, value in then.slots.items():
            other = now.slots.get(name)
            if other is None:
                continue
            old, new = value.numpy(), other.numpy()
            if old.tobytes() == new.astype(old.dtype).tobytes():
                continue
            place = self._beyond(name, old, new)
            if place is None:
                continue
            names = then.header["slots"][name].get("elements", [])
            flat = int(np.ravel_multi_index(place[1:], old.shape[1:])) if place else 0
            world = place[0] if place else 0
            self._found.first = ReplayDifference(
                self._player.step, world, float(then.time[world]), name,
                names[flat] if names else "", old[place].item(), new[place].item(),
                then.header["slots"][name].get("unit", ""),
            )  # fmt: skip
            return

    def _differs(self, column: str, world: int, what: str) -> None:
        if self._found.first is None:
            time = float(self._player.sim.time[world])
            self._found.first = ReplayDifference(
                self._player.step, world, time, column, what, 0.0, 1.0
            )


def _other_bits(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return a mask of differing bits; NaN equals NaN, −0 differs from 0."""
    kind = np.dtype(f"u{one.itemsize}")
    bits = [np.frombuffer(x.tobytes(), kind).reshape(x.shape) for x in (one, other)]
    both_nan = np.not_equal(one, one) & np.not_equal(other, other)
    return np.not_equal(*bits) & ~both_nan
