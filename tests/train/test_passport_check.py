"""Faults that are planted in logs of another physics are found, with their columns."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest
from tests.raised import raises
from tests.train.passport_faults import KINDS, healthy_logs, log_of, planted, verdict

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.cli import main
from simstate.env import tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.onnx_export import export_onnx
from simstate.train.passport_check import compare_log
from simstate.train.passport_log import signals_of
from simstate.train.policy_passport import PassportPolicy
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun

TASK = "Quadruped-Velocity"


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A policy that has learned to move, not yet to walk."""
    folder = tmp_path_factory.mktemp("run")
    train = dataclasses.replace(tasks.make_train_cfg(TASK), num_envs=64)
    run = TrainingRun(RunCfg(task=TASK, train=train, seed=2), folder)
    run.learn(30, lambda progress: None)
    content = read_checkpoint(find_checkpoint(folder))
    export_onnx(Policy(run.example, content), run.example, folder / "policy.onnx")
    return PassportPolicy(folder / "policy.onnx")


@pytest.fixture(scope="module")
def logs(policy):
    """Two logs in MuJoCo with other steps and contacts, of 3 s."""
    return healthy_logs(policy.path, "fine", 2, seconds=3.0, seed=1, noise=False)


def test_healthy_logs_are_not_flagged(policy, logs):
    for log in logs:
        assert verdict(policy, log)[0] == "healthy", verdict(policy, log)[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_fault_is_identified(policy, logs, kind):
    rng = np.random.default_rng(KINDS.index(kind))
    log, wanted = planted(logs[KINDS.index(kind) % 2], kind, rng)
    found, columns, text = verdict(policy, log)
    assert (found, columns) == (kind, wanted), text
    assert text


def test_kinematics_suffice_where_the_log_has_no_actions(policy, logs):
    """Before the robot moves by itself: joints that are moved by hand."""
    log = {n: c for n, c in logs[0].items() if n not in ("action", "command.velocity")}
    report = compare_log(policy, log_of(log))
    assert not report.faults
    assert any("policy was not run" in note for note in report.notes)
    assert "command.velocity: not in the log." in report.notes
    time, values, names = log["joint_vel"]
    log["joint_vel"] = time, values * np.where(np.arange(12) == 7, -1.0, 1.0), names
    (fault,) = compare_log(policy, log_of(log)).faults
    assert fault.kind == "sign"
    assert "d joint_pos/dt = joint_vel: RR_hip" not in fault.evidence
    assert f"joint_vel: {names[7]}" in fault.evidence


def test_joints_in_another_order_with_names_are_no_fault(policy, logs):
    order = np.random.default_rng(0).permutation(12)
    log = dict(logs[0])
    for name in ("joint_pos", "action"):
        time, values, names = log[name]
        log[name] = time, values[:, order], [names[k] for k in order]
    assert not compare_log(policy, log_of(log)).faults


def write_csv(path, columns, without=()):
    """A table with headings such as joint_pos[FL_hip]."""
    cells = {"time": columns["action"][0]} if "time" not in without else {}
    for name, (_, values, parts) in columns.items():
        for k, part in enumerate(parts):
            cells[f"{name}[{part}]"] = values[:, k]
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(cells)
        rows.writerows(zip(*cells.values(), strict=True))
    return path


def test_the_command_compares_a_table(policy, logs, tmp_path, capsys):
    healthy = write_csv(tmp_path / "healthy.csv", logs[0])
    assert main(["passport", str(policy.path), "--log", str(healthy)]) == 0
    assert "healthy.csv matches the passport." in capsys.readouterr().out
    log = dict(logs[0])
    time, values, names = log.pop("joint_pos")
    log["q"] = time, np.degrees(values), names
    path = write_csv(tmp_path / "robot.csv", log)
    args = ["passport", str(policy.path), "--log", str(path), "--rename", "q=joint_pos"]
    assert main([*args, "--json"]) == 1
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["kind"] == "degrees"
    assert fault["columns"] == ["robot.joint_pos"]
    assert main(args) == 1
    assert "is in degrees" in " ".join(capsys.readouterr().out.split())


def test_logs_that_cannot_be_compared_say_why(policy, logs, tmp_path, capsys):
    path = write_csv(tmp_path / "untimed.csv", logs[0], without=("time",))
    assert main(["passport", str(policy.path), "--log", str(path)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "has no time column" in said
    assert "samples per second" in said
    log = dict(logs[0])
    log["joint_posn"] = log.pop("joint_pos")
    with raises(InvalidInputError, name="joint_posn"):
        compare_log(policy, log_of(log))
    log = dict(logs[0])
    time, values, names = log["joint_vel"]
    log["joint_vel"] = time, values, ["FL_hippo", *names[1:]]
    with raises(UnknownNameError, name="FL_hip"):
        compare_log(policy, log_of(log))
    log["joint_vel"] = time, values[:, :11], ()
    with raises(InvalidInputError, name="joint_vel"):
        compare_log(policy, log_of(log))
    other = {"battery": (time, values[:, :1], ("battery",))}
    with raises(InvalidInputError, name="planted"):
        compare_log(policy, log_of(other))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e200], ids=["nan", "inf", "huge"])
def test_values_that_are_not_finite_are_named(policy, logs, value):
    log = dict(logs[1])
    time, values, names = log["joint_vel"]
    values = values.copy()
    values[[20, 31], 4] = value
    log["joint_vel"] = time, values, names
    with raises(InvalidInputError, name="joint_vel"):
        compare_log(policy, log_of(log))


def test_a_signal_that_no_known_fault_explains_is_a_fault(policy, logs):
    """Velocities that the robot does not measure, and actions of another policy."""
    for name, change in (
        ("joint_vel", np.zeros_like),
        ("action", lambda x: np.random.default_rng(3).permutation(x)),
    ):
        log = dict(logs[0])
        time, values, names = log[name]
        log[name] = time, change(values), names
        last = compare_log(policy, log_of(log)).faults[-1]
        assert last.kind == "unexplained"
        assert any(name in relation for relation in last.columns)


def test_joints_of_positions_and_velocities_may_differ(policy, logs):
    """Velocities of some joints, in another order than the positions."""
    columns = [
        one
        for one in policy.passport.observations
        if one.source != "robot.joint_vel" or one.component[:2] in ("FR", "RL")
    ]
    passport = dataclasses.replace(policy.passport, observations=tuple(columns[::-1]))
    log = {n: c for n, c in logs[0].items() if n != "action"}
    signals = signals_of(log_of(log), passport)
    q, v = signals.joints()
    assert len(q) == 6
    parts = [[signals.names[k].rpartition("/")[2] for k in at] for at in (q, v)]
    assert parts[0] == parts[1]
    slow = np.abs(signals.table[:, v]).mean()
    speed = np.gradient(signals.table[:, q], signals.dt, axis=0)
    assert np.abs(speed - signals.table[:, v]).mean() < 0.5 * slow


def test_a_signal_of_another_entity_is_not_taken(policy, logs):
    observations = tuple(
        dataclasses.replace(one, source="other.joint_pos", name=f"other/{one.name}")
        for one in policy.passport.observations
        if one.source == "robot.joint_pos"
    )
    passport = dataclasses.replace(
        policy.passport, observations=(*policy.passport.observations, *observations)
    )
    log = {f"robot.{n}": c for n, c in logs[0].items() if n == "joint_pos"}
    assert "other.joint_pos" in signals_of(log_of(log), passport).missing


def test_names_of_files_are_printed_unchanged(policy, logs, tmp_path, capsys):
    log = dict(logs[1])
    time, values, names = log["joint_pos"]
    log["joint_pos"] = time, np.degrees(values), names
    path = write_csv(tmp_path / "[bold]robot.csv", log)
    assert main(["passport", str(policy.path), "--log", str(path)]) == 1
    assert "[bold]robot.csv" in capsys.readouterr().out
