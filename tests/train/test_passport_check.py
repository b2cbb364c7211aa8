"""Faults that are planted in logs of another physics are found, with their columns."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest
from tests.train.passport_faults import KINDS, healthy_logs, log_of, planted, verdict

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.cli import main
from simstate.env import tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.onnx_export import export_onnx
from simstate.train.passport_check import compare_log
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
    assert "healthy.csv fits the passport." in capsys.readouterr().out
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
    with pytest.raises(InvalidInputError, match="--rename joint_posn=joint_pos"):
        compare_log(policy, log_of(log))
    log = dict(logs[0])
    time, values, names = log["joint_vel"]
    log["joint_vel"] = time, values, ["FL_hippo", *names[1:]]
    with pytest.raises(UnknownNameError, match="FL_hip"):
        compare_log(policy, log_of(log))
    log["joint_vel"] = time, values[:, :11], ()
    with pytest.raises(InvalidInputError, match="11 components without names"):
        compare_log(policy, log_of(log))
    other = {"battery": (time, values[:, :1], ("battery",))}
    with pytest.raises(InvalidInputError, match="none of the signals of the passport"):
        compare_log(policy, log_of(other))
