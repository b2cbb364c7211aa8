"""Help: each command has an example that works as pasted, errors have a code."""

import ast
import re
import shlex
import subprocess
import sys

import pytest
from tests.raised import raises

from simstate.cli import COMMANDS, command_class, docstring, main

HEAVY = (
    "torch", "mujoco", "numpy", "warp", "mujoco_warp", "matplotlib", "scipy", "PIL",
)  # fmt: skip
RUN_HERE = (
    "run", "inspect", "contacts", "quantities", "check", "diff",
    "align", "tasks", "bench", "report", "info", "replay", "plot", "export", "new-task",
)  # fmt: skip


READ_A_RECORDING = ("plot", "export")


def example(command):
    """The example in the command's docstring, one line."""
    (found,) = re.findall(
        r"^ *Example: (.*)$", command_class(command).__doc__, re.MULTILINE
    )
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_example_on_one_line(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert example(command) in capsys.readouterr().out
    assert f"simstate {command}" in example(command)


@pytest.mark.parametrize("command", RUN_HERE)
def test_the_example_works_as_pasted(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if command in READ_A_RECORDING:
        assert main(["run", "cartpole", "--record", "run.simrec", "--envs", "2"]) == 0
    for part in example(command).split("&&"):
        program, *args = shlex.split(part)
        assert program == "simstate"
        assert main(args) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_overview_says_what_the_command_says(command):
    """Which it reads from the file, without loading it."""
    assert docstring(command) == command_class(command).__doc__


def test_without_a_command_it_prints_the_help(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["simstate"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize(
    "args",
    [
        ["nothing"],
        ["run", "--nothing"],
        ["inspect"],
        ["bench", "--envs", "x"],
        ["train", "--config"],
        ["train", "Cartpole-Balance", "--config"],
    ],
)
def test_usage_errors_have_code_2(args, capsys):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_debug_shows_the_traceback():
    with raises(ValueError, name="nothing"):
        main(["inspect", "nothing", "--debug"])


def loaded(*lines):
    """What a fresh Python has loaded of the heavy libraries after command lines."""
    code = (
        "import sys\nfrom simstate.cli import main\n"
        f"for line in {lines!r}:\n"
        "    try: main(list(line))\n"
        "    except SystemExit as stop: assert stop.code == 0, line\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_help_loads_no_engine_no_torch_and_no_plots():
    *_, last = loaded(["--help"], *([name, "--help"] for name in COMMANDS))
    assert last == "[]"


def test_the_version_loads_no_torch():
    first, last = loaded(["--version"])
    assert "native engine" in first
    assert set(ast.literal_eval(last)) <= {"mujoco", "numpy"}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_closed_pipe_ends_quietly(more):
    command = [sys.executable, "-m", "simstate", "quantities", *more]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 1
    assert not err
