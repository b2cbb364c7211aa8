"""Settings of the environment that hold in training only."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.raised import raises

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import EnvCfg, tasks
from simstate.env.settings import settings_of
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.run_cfg import RunCfg
from simstate.train.run_file import read_run_file, write_run_file
from simstate.train.sweep_cells import grid_cells
from simstate.train.training_run import TrainingRun

TASK = "Quadruped-Velocity"
DRAWN = "env.commands.velocity.resampling_time_s"
PUSH = "env.events.push.params.velocity_range.y"
ONLY = {DRAWN: (1.25, 2.5), PUSH: [-0.7, 0.6]}


def run_cfg(only: dict[str, object] = ONLY, **changes: object) -> RunCfg:
    train = dataclasses.replace(
        tasks.make_train_cfg(TASK),
        num_envs=6,
        steps_per_env=4,
        hidden_sizes=(8,),
        iterations=1,
        training_settings=only,
    )
    return RunCfg(task=TASK, train=train, **changes)  # pyright: ignore[reportArgumentType]


def values(cfg: EnvCfg) -> dict[str, object]:
    return {path: each.value for path, each in settings_of(cfg, "env").items()}


def test_they_hold_in_training_and_not_where_the_policy_is_played(tmp_path: Path):
    run = TrainingRun(run_cfg(), tmp_path)
    run.learn(1)
    assert run.example.cfg.commands["velocity"].resampling_time_s == (1.25, 2.5)
    pushed = run.example.cfg.events["push"].params["velocity_range"]
    assert pushed == {"x": (-0.3, 0.3), "y": (-0.7, 0.6)}
    # Commands that are drawn last at most as long as they may.
    assert float(run.example.commands["velocity"].time_left.max()) <= 2.5
    played = RunCfg.of(read_checkpoint(find_checkpoint(tmp_path))).env_cfg()
    assert values(played) == values(tasks.make_cfg(TASK))


def test_a_setting_that_is_given_holds_in_training_too():
    cfg = run_cfg().changed({DRAWN: (3.0, 4.0), "train.gamma": 0.9})
    trained = values(cfg.training_env_cfg())
    assert trained[DRAWN] == values(cfg.env_cfg())[DRAWN] == (3.0, 4.0)
    assert trained[PUSH] == (-0.7, 0.6)
    assert cfg.train.gamma == 0.9
    (cell,) = grid_cells(run_cfg(), (), [f"{DRAWN}=[6,7]"])
    assert values(cell.cfg.training_env_cfg())[DRAWN] == (6.0, 7.0)


def test_a_term_that_is_left_out_needs_no_setting():
    cfg = run_cfg(without=("env.events.push",)).training_env_cfg()
    assert "push" not in cfg.events
    assert values(cfg)[DRAWN] == (1.25, 2.5)


def test_a_run_that_is_repeated_from_its_file_has_them(tmp_path: Path):
    # Of the keys of the task, the solver's remains and the iterations' is gone.
    train = dataclasses.replace(
        run_cfg().train, physics_options={"solver": "PGS", "tolerance": 1e-4}
    )
    cfg = dataclasses.replace(run_cfg(), train=train)
    write_run_file(tmp_path, cfg)
    again = read_run_file(tmp_path)
    assert values(again.training_env_cfg()) == values(cfg.training_env_cfg())
    assert values(again.env_cfg()) == values(tasks.make_cfg(TASK))


def test_a_run_that_is_repeated_from_its_file_has_its_fitted_parameters(tmp_path: Path):
    cfg = dataclasses.replace(run_cfg(), parameters="fit.json")
    write_run_file(tmp_path, cfg)
    again = read_run_file(tmp_path)
    assert again.parameters == "fit.json"
    assert values(again.env_cfg()) == values(cfg.env_cfg())


def test_unknown_paths_are_refused():
    with raises(UnknownNameError, name="env.commands.velocity.resampling"):
        run_cfg({"env.commands.velocity.resampling": (1, 2)}).training_env_cfg()
    with raises(InvalidInputError, name="training_settings"):
        run_cfg({"train.gamma": 0.9})
