"""What commands print while they work and when they are done, word by word."""

from __future__ import annotations

import io
import re

import pytest
import torch
from tests.inside import display_on, spread

from simstate.cli import live, main
from simstate.cli.console import PlainConsole, verdict_table, working
from simstate.cli.console import progress as progress_bar
from simstate.cli.play import figures_table
from simstate.data.replay import replay
from simstate.record import Recording
from simstate.study.oracles import Check, Report
from simstate.train.evaluate import Evaluation
from simstate.train.training_logs import Progress


def progress(iteration: int, **changes) -> Progress:
    log = {
        "Episode_Reward/alive": 1.25, "Episode_Reward/fall": -0.5,
        "Episode_Termination/time_out": 0.25, "Episode_Termination/fell": 0.75,
        "Metrics/error": 0.125, "Curriculum/level": 2.0,
    }  # fmt: skip
    given = {
        "iteration": iteration, "reward": 12.3456, "episode_length_s": 3.21,
        "steps_per_second": 12345.6, "values": log,
    }  # fmt: skip
    return Progress(**{**given, **changes})


class Clock:
    """A clock that only tests advance."""

    def __init__(self, monkeypatch, module) -> None:
        self.now = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def rows(table) -> list[list[str]]:
    out = PlainConsole(file=io.StringIO(), width=100)
    out.print(table)
    lines = out.file.getvalue().splitlines()
    (head,) = [k for k, line in enumerate(lines) if set(line) == {"─"}][:1]
    found = [re.split(r"\s{2,}", x.strip()) for x in lines[head + 1 :]]
    return [row for row in found if row != [""] and not row[0].startswith("─")]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"), (89.4, "89 s"), (90.0, "2 min"), (150.0, "2 min"),
        (5399.0, "90 min"), (5400.0, "1.5 h"), (9000.0, "2.5 h"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert live.duration(seconds) == text


def test_a_note_names_the_most_frequent_end():
    assert live.progress_note(progress(7)) == (
        "update 7, reward 12.35, episode 3.2 s, most end by fell, 12,346 steps/s"
    )
    assert live.progress_note(progress(7, values={})) == (
        "update 7, reward 12.35, episode 3.2 s, 12,346 steps/s"
    )
    assert live.progress_note(progress(7, reward=None)) == (
        "update 7, no episode has ended yet, 12,346 steps/s"
    )


def test_a_table_of_an_update_has_all_that_is_logged():
    found = rows(live.progress_table(progress(7), "Run", 20, "3 min"))
    assert found == [
        ["reward of an episode", "12.35"], ["length of an episode", "3.2 s"],
        ["speed", "12,346 steps/s"], ["time left", "3 min"],
        ["reward alive", "1.250"], ["reward fall", "-0.500"],
        ["ended by time_out", "0.250"], ["ended by fell", "0.750"],
        ["metric error", "0.125"], ["curriculum level", "2.000"],
    ]  # fmt: skip
    short = rows(live.progress_table(progress(7, reward=None), "Run", 20, "3 min"))
    assert short[0] == ["speed", "12,346 steps/s"]


def test_without_a_terminal_a_line_is_printed_now_and_then(monkeypatch):
    clock = Clock(monkeypatch, live)
    out = PlainConsole(file=io.StringIO(), width=200)
    with live.live_progress(out, "Run", 20) as tell:
        for k in range(11, 21):  # resumed after ten
            clock.now += 0.9
            tell(progress(k))
    lines = out.file.getvalue().splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["Run:", "65", "%", "update"], ["Run:", "80", "%", "update"],
        ["Run:", "95", "%", "update"], ["Run:", "100", "%", "update"],
    ]  # fmt: skip
    assert lines[0].endswith("6 s left")  # seven updates of 0.9 s
    assert lines[-1].endswith("0 s left")


def test_on_a_terminal_the_table_is_kept_up_to_date():
    out = PlainConsole(file=io.StringIO(), width=100, force_terminal=True)
    with live.live_progress(out, "Run", 20) as tell:
        tell(progress(7))
    assert "update 7 of 20" in out.file.getvalue()
    out = PlainConsole(file=io.StringIO(), width=100, force_terminal=True)
    display = display_on(out)
    display.update("Work", 0.25, "a quarter")
    display.show()
    display.update("Work", 0.5, "half")
    display.close()
    assert "Work" in out.file.getvalue()
    assert "half" in out.file.getvalue()


def test_a_bar_is_as_long_as_the_share_of_the_work():
    lengths = []
    for fraction in (0.25, 0.75):
        out = PlainConsole(
            file=io.StringIO(), width=100, force_terminal=True, no_color=True
        )
        display = display_on(out)
        display.update("Work", fraction)
        display.show()
        display.close()
        lengths.append(max(map(len, re.findall("━+", out.file.getvalue())), default=0))
    quarter, most = lengths
    assert quarter > 5
    assert most == pytest.approx(3 * quarter, abs=2)


def test_there_is_no_progress_in_a_pipe(capfd):
    with working("Work"), progress_bar("Part") as advance:
        for fraction in (0.1, 1.0):
            advance(fraction, "note")
    assert capfd.readouterr() == ("", "")


def test_verdicts_of_laws():
    def check(law: str, error: float, tolerance: float, note: str = "") -> Check:
        return Check(law, "robot", "q", error, tolerance, note)

    report = Report("native", [
        check("a", 1e-13, 1e-12), check("b", 1e-3, 1e-5), check("c", 0.0, 0.0),
        check("d", 1e-7, 1e-5, "theirs"),
    ])  # fmt: skip
    found = rows(verdict_table(report, "Laws"))
    assert found == [
        ["a", "robot.q", "1.0e-13", "1e-12", "holds"],
        ["b", "robot.q", "1.0e-03", "1e-05", "FAILED"],
        ["c", "robot.q", "0.0e+00", "exact", "holds"],
        ["d", "robot.q", "1.0e-07", "1e-05", "holds, see below"],
    ]


def test_spreads_of_runs():
    assert spread([]) == "–"
    assert spread([1.5]) == "1.50"
    assert spread([1.0, 2.0, 4.0]) == "2.33 ± 1.53"


def test_figures_of_an_evaluation():
    found = Evaluation(
        num_envs=40, seconds=2.5, reward=1.23456, failures=3, successes=30,
        can_succeed=True, ends={"fell": 3, "time_out": 0}, metrics={"power": 12.34567},
        errors={"velocity": 0.123456}, returns={},
    )  # fmt: skip
    assert rows(figures_table(found, "x")) == [
        ["worlds", "40"], ["simulated time", "2.5 s"], ["reward per second", "1.235"],
        ["worlds that succeeded", "30 (75.0 %)"], ["worlds that failed", "3 (7.5 %)"],
        ["… ended by fell", "3"], ["power", "12.35"],
        ["mean error of velocity", "0.1235"],
    ]  # fmt: skip


def test_run_records_a_task(tmp_path, capsys):
    """Its worlds are those of the task, with the columns and snapshots asked for."""
    path = tmp_path / "task.simrec"
    args = ["run", "Cartpole-Balance", "--record", str(path), "--seconds", "0.2"]
    args += [
        "--envs",
        "3",
        "--seed",
        "5",
        "--quantities",
        "joint_pos",
        "robot.joint_vel",
    ]
    assert main(args) == 0
    said = capsys.readouterr().out
    with Recording(path) as found:
        assert f"{len(found)} samples" in said
        assert f"{path.stat().st_size:,} bytes" in said
        assert found["robot.joint_pos"].shape[1:] == (3, 2)
        assert {"robot.joint_pos", "robot.joint_vel"} <= set(found.names)
        step = float(found.time[1, 0] - found.time[0, 0])
        assert len(found) == round(0.2 / step)
        assert replay(found).is_same
        first = found["robot.joint_pos"].clone()
    other = tmp_path / "other.simrec"
    args[args.index(str(path))] = str(other)
    args[args.index("5")] = "6"
    assert main(args) == 0
    assert not torch.equal(Recording(other)["robot.joint_pos"], first)


def test_a_policy_is_for_a_task(tmp_path, capsys):
    args = ["run", "cartpole", "--record", str(tmp_path / "a.simrec")]
    assert main([*args, "--policy", "p.onnx"]) == 1
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "--policy acts in a task, and 'cartpole' is not one" in said
