"""The command line, run as a user runs it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simstate.cli import main


def test_run_shows_state_and_laws(capsys):
    code = main(["run", "cartpole", "--envs", "3", "--seconds", "0.1", "--all"])
    out = capsys.readouterr().out
    assert code == 0
    assert "3 worlds on native, 20 steps of 0.005 s" in out
    assert "world-steps/s" in out
    assert "0 worlds diverged" in out
    for word in ("root_link_pos_w", "link origin", "world", "joint_pos", "holds"):
        assert word in out
    assert "FAILED" not in out


def test_the_demonstration_is_eight_lines_a_film_and_a_plot(tmp_path, capsys):
    """As `make demo` has it, with fewer worlds and less time."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (line,) = re.findall(r"simstate (run quadruped.*?) \$\(ARGS\)", makefile, re.S)
    command = shlex.split(line.replace("\\\n", " ").replace("demo/", f"{tmp_path}/"))
    assert (
        main([*command, "--envs", "4", "--seconds", "0.2", "--size", "96", "64"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    words = ("4 worlds", "world-steps/s", "mj_step", "laws hold", "Film", "Plot")
    for line, word in zip(lines, words, strict=False):
        assert word in line
    assert "simstate view quadruped" in lines[6]
    assert "--all" in lines[7]
    assert (tmp_path / "quadrupeds.mp4").stat().st_size > 1000
    assert (tmp_path / "quadrupeds.png").stat().st_size > 1000


def test_run_takes_a_file_with_its_own_floor(tmp_path, capsys):
    path = tmp_path / "box.xml"
    path.write_text(
        """<mujoco><option timestep=".004"/><worldbody>
        <geom type="plane" size="1 1 .1"/>
        <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/>
        </body></worldbody></mujoco>"""
    )
    assert main(["run", str(path), "--envs", "2", "--seconds", "0.02"]) == 0
    assert "5 steps of 0.004 s" in " ".join(capsys.readouterr().out.split())


def test_run_prints_json_alone(capsys):
    options = ["--envs", "3", "--seconds", "0.1", "--world", "2", "--no-check"]
    assert main(["run", "quadruped", *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["num_envs"], told["world"], told["diverged"]) == (3, 2, 0)
    assert told["simulated_s"] == pytest.approx(0.1)
    assert told["laws_hold"] is None
    assert len(told["quantities"]["root_link_pos_w"]) == 3
    assert told["quantities"]["root_link_pos_w"][2] > 0.1


def test_check_prints_json(capsys):
    assert main(["check", "cube", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is True


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["run", "nothing.xml"], "There is no model 'nothing.xml'"),
        (["run", "cube", "--seconds", "-1"], "--seconds must be > 0"),
        (["run", "cube", "--envs", "0"], "--envs must be an integer ≥ 1"),
        (["run", "cube", "--envs", "2", "--world", "2"], "--world must be in [0, 2)"),
        (["run", "cube", "--device", "cuda"], "native engine runs on the CPU"),
    ],
)
def test_errors_are_one_message(args, expected, capsys):
    assert main(args) == 1
    captured = capsys.readouterr()
    assert expected in " ".join(captured.err.split())
    assert "Traceback" not in captured.err


def test_a_bad_file_names_file_and_fault(tmp_path, capsys):
    path = tmp_path / "bad.xml"
    path.write_text("<mujoco><worldbody><body><jont/></body></worldbody></mujoco>")
    assert main(["run", str(path)]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "not a valid MuJoCo model" in message
    assert "jont" in message


def test_ctrl_c_ends_with_the_table_so_far():
    command = [sys.executable, "-m", "simstate", "run", "cube", "--seconds", "100000"]
    process = subprocess.Popen(
        [*command, "--envs", "8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A shell's background job ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert "8 worlds" in process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "root_link_pos_w" in out
    assert "Interrupted" in out
    assert "Traceback" not in err
