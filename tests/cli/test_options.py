"""Options of all commands: one name for each, readable help, early refusals."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import imageio_ffmpeg
import pytest
import tyro
from tests.cli.own_task import OWN_TASK

from simstate.cli import COMMANDS, RENAMED, RENAMED_OPTIONS, command_class, main
from simstate.cli.options import METAVARS
from simstate.data.replay import replay
from simstate.record import Recording
from simstate.scene import models
from simstate.view.offscreen import Offscreen

WITHOUT_JSON = {"view"}
"""A page in a browser."""
OUTPUTS = {
    "out", "record", "film", "picture", "plot", "save", "report", "mjcf", "run_dir",
}  # fmt: skip
FOLDERS = {("collect", "out"), ("dispersions", "out"), ("train", "run_dir")}
"""Options that name a folder, which is made where it is missing."""
NEEDED = {
    "collect": ["missing-task", "--policy", "missing.onnx"],
    "export": ["missing.simrec", "--to", "hdf5"],
    "identify": ["missing.xml", "--log", "missing.csv", "--free", "mass"],
    "play": [], "runs": ["missing"], "train": [],
}  # fmt: skip
"""Arguments of a command that name what does not exist; by default one file."""


def options(command: str) -> dict[str, type]:
    """Return the options of a command, by their names on the command line."""
    found = {}
    kinds = [command_class(command)]
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        for one in dataclasses.fields(kind):
            hint = hints[one.name]
            declared = getattr(hint, "__metadata__", ())
            named = [x.name for x in declared if getattr(x, "name", None)]
            if dataclasses.is_dataclass(group := getattr(hint, "__origin__", hint)):
                kinds.append(group)
            elif one.name != "settings":
                found[named[0] if named else one.name] = hint
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_name_of_the_list(command):
    assert set(options(command)) <= set(METAVARS)


def test_every_name_of_the_list_is_an_option():
    assert set(METAVARS) == {name for command in COMMANDS for name in options(command)}


def named_options(command: str) -> set[str]:
    """Return the options of a command that are not positional."""
    hints = options(command).items()
    return {
        name
        for name, hint in hints
        if tyro.conf.Positional not in getattr(hint, "__metadata__", ())
    }


TEXTS = [
    path
    for pattern in ("README.md", "docs/**/*.md", "examples/**/*.py", "src/**/*.py")
    for path in sorted(Path(__file__).parents[2].glob(pattern))
]


def test_commands_in_texts_have_the_present_options():
    wrong = []
    for path in TEXTS:
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        for command, rest in re.findall(r"`simstate ([a-z-]+)\b([^`|]*)", text):
            given = {one.replace("-", "_") for one in re.findall(r" --([a-z-]+)", rest)}
            known = named_options(command) if command in COMMANDS else set()
            if not given <= known | {"help", "env", "train", "no_check", "no_export"}:
                wrong.append(f"{path.name}: simstate {command}{rest}")
    assert not wrong


@pytest.mark.parametrize("name", ["x.png", "./x.png"])
def test_two_outputs_are_two_files(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["--plot", "x.png", "--picture", name, "--envs", "1", "--seconds", "0.01"]
    assert main(["run", "cartpole", *given]) == 1
    error = capsys.readouterr().err
    assert "--plot" in error
    assert "--picture" in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_script_can_have_json(command):
    assert ("json" in options(command)) == (command not in WITHOUT_JSON)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_has_readable_placeholders(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    words = r"\{None|\{INT|\{FLOAT|\bSTR\b|\bINT\b|\bFLOAT\b|\[PATH|--no-json|None\)"
    assert not re.findall(words, text)


def test_the_help_of_a_task_has_readable_placeholders(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["train", "Quadruped-Velocity", "--help"])
    text = capsys.readouterr().out
    assert "--env.decimation N" in text
    assert not re.findall(r"\{None\}|\bSTR\b|\bINT\b|\bFLOAT\b", text)


@pytest.mark.parametrize("name", RENAMED)
def test_an_earlier_command_names_the_present_one(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, "cartpole"])
    assert stop.value.code == 2
    assert f"It is now `simstate {RENAMED[name]}`" in capsys.readouterr().err
    assert RENAMED[name].split()[0] in COMMANDS


@pytest.mark.parametrize(("command", "option"), RENAMED_OPTIONS)
def test_an_earlier_option_names_the_present_one(command, option, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "cartpole", f"{option}=1"])
    assert stop.value.code == 2
    found = RENAMED_OPTIONS[command, option]
    assert f"It is now {found}" in capsys.readouterr().err
    if found.startswith("--"):
        assert found.removeprefix("--") in options(command)


WRITTEN = [
    (command, name)
    for command in COMMANDS
    for name in sorted(OUTPUTS & set(options(command)))
]


@pytest.mark.parametrize(("command", "name"), WRITTEN)
def test_an_output_that_cannot_be_written_is_rejected_first(
    command, name, tmp_path, monkeypatch, capsys
):
    """Before the inputs are looked at, of which there are none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    ending = {"film": ".gif", "record": ".simrec", "report": ".html"}.get(name, ".png")
    is_folder = (command, name) in FOLDERS
    for path in ["file/x"] if is_folder else [f"none/x{ending}", f"file/x{ending}"]:
        option = f"--{name.replace('_', '-')}"
        assert main([command, *NEEDED.get(command, ["missing"]), option, path]) == 1
        error = " ".join(capsys.readouterr().err.split())
        assert error.startswith(f"error: {option} '{path}'")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


QUICK = {
    "check": ["cube"],
    "contacts": ["cube", "--seconds", "0.1"],
    "bench": ["cube", "--envs", "1", "--seconds", "0.1"],
    "run": ["cube", "--envs", "2", "--seconds", "0.1"],
    "align": ["cube", "--with", "native", "--seconds", "0.1"],
    "plan": ["cartpole", "--seconds", "0.1", "--samples", "4"],
    "inspect": ["cube"],
}


@pytest.mark.parametrize("command", QUICK)
def test_a_pipe_has_no_progress_and_no_colours(command, monkeypatch, capfd):
    monkeypatch.setattr(sys.modules["simstate.cli.console"], "AFTER_S", 0.0)
    assert main([command, *QUICK[command]]) == 0
    out, err = capfd.readouterr()
    assert "\x1b" not in out
    assert err == ""
    # One rule below a head, none above it and no frame.
    assert not set("┏┓┡╇━│┃║═╔") & set(out)


def on_terminal(args, **variables):
    """Return what a command writes to a terminal, with progress at once."""
    mine, theirs = pty.openpty()
    code = (
        "import sys\nfrom simstate.cli import main\n"
        "sys.modules['simstate.cli.console'].AFTER_S = 0.0\n"
        f"sys.exit(main({args!r}))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "120", **variables}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(mine, 65536):
            parts.append(part)
    except OSError:  # the terminal's other end is closed
        pass
    os.close(mine)
    assert process.wait(timeout=60) == 0
    return b"".join(parts).decode()


def test_a_terminal_has_progress_and_coloured_verdicts():
    args = ["check", "cube"]
    text = on_terminal(args)
    assert re.search(r"check .*0:00:0", text)  # the spinner, with the time so far
    assert "\x1b[32mholds" in text
    plain = on_terminal(args, NO_COLOR="1")
    assert "holds" in plain
    assert not re.findall(r"\x1b\[3[0-9]m", plain)
    assert "\x1b[32m" in on_terminal(["run", "cube", "--envs", "2", "--seconds", "0.1"])


def test_after_ctrl_c_the_recording_holds_the_steps_so_far(tmp_path: Path):
    path = tmp_path / "run.simrec"
    command = [sys.executable, "-m", "simstate", "run", "cartpole", "--envs", "3"]
    process = subprocess.Popen(
        [*command, "--seconds", "100000", "--record", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A shell's background job ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    assert "3 worlds" in process.stdout.readline()
    while not path.exists() or path.stat().st_size < 50_000:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    (samples,) = re.findall(rf"Recording: {path}, (\d+) samples", out)
    with Recording(path) as found:
        assert found.is_whole
        assert len(found) == int(samples) > 1
        assert replay(found).is_same


@pytest.fixture
def third_frame_interrupted(monkeypatch):
    """Ctrl-C comes while the third frame is drawn."""
    drawn, picture = [], Offscreen.picture

    def interrupted(self):
        drawn.append(picture(self))
        if len(drawn) == 3:
            signal.raise_signal(signal.SIGINT)
        return drawn[-1]

    monkeypatch.setattr(Offscreen, "picture", interrupted)


@pytest.mark.usefixtures("third_frame_interrupted")
def test_ctrl_c_ends_the_film_of_a_replay_after_its_frame(tmp_path, capsys):
    path, film = str(tmp_path / "run.simrec"), tmp_path / "run.mp4"
    args = ["run", "cartpole", "--envs", "2", "--seconds", "1", "--no-check"]
    assert main([*args, "--record", path]) == 0
    args = ["replay", path, "--film", str(film), "--size", "32", "24"]
    assert main([*args, "--renderer", "software"]) == 130
    assert f"Film of 2 worlds: {film}" in capsys.readouterr().out
    assert imageio_ffmpeg.count_frames_and_secs(str(film))[0] == 3


@pytest.mark.usefixtures("third_frame_interrupted")
def test_ctrl_c_while_a_frame_is_drawn_loses_none(tmp_path, capsys):
    film = tmp_path / "run.mp4"
    args = ["run", "cartpole", "--envs", "2", "--seconds", "60", "--size", "32", "24"]
    assert main([*args, "--film", str(film), "--renderer", "software", "--json"]) == 130
    facts = json.loads(capsys.readouterr().out)
    assert not facts["finished"]
    assert imageio_ffmpeg.count_frames_and_secs(str(film))[0] == 3


def test_names_are_printed_as_they_are_and_quoted_in_commands(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("my [a] arm.xml").write_text(models.spec("arm").to_xml())
    args = ["run", "my [a] arm.xml", "--envs", "2", "--seconds", "0.1", "--no-check"]
    assert main([*args, "--record", "one run.simrec"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("my [a] arm.xml: 2 worlds")
    assert "simstate view 'my [a] arm.xml'" in out
    assert "simstate replay 'one run.simrec' re-runs it" in out


def test_a_run_has_as_many_worlds_as_its_snapshot(tmp_path, capsys):
    path = str(tmp_path / "now.npz")
    short = ["run", "arm", "--seconds", "0.1", "--no-check", "--json"]
    assert main([*short, "--envs", "3", "--save", path]) == 0
    capsys.readouterr()
    assert main([*short, "--snapshot", path]) == 0
    assert json.loads(capsys.readouterr().out)["num_envs"] == 3


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["cartpole", "--tolerance", "0.1"], "need --integrator"),
        (["cartpole", "--gravity"], "need --integrator"),
        (["cartpole", "--attitude", "lie"], "need --integrator"),
        (
            ["cartpole", "--integrator", "mujoco", "--attitude", "lie"],
            "omit --attitude",
        ),
        (["Cartpole-Balance", "--every", "0.1"], "--every are for models"),
    ],
)
def test_an_option_without_effect_is_rejected(args, named, capsys):
    assert main(["run", *args, "--envs", "2", "--seconds", "0.1"]) == 1
    assert named in " ".join(capsys.readouterr().err.split())


def test_a_recording_is_drawn_with_its_task_where_it_is_now(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("swing.py").write_text(OWN_TASK)
    run = ["run", "swing.py", "--envs", "2", "--seconds", "0.2"]
    assert main([*run, "--record", "a.simrec"]) == 0
    Path("swing.py").rename("moved.py")
    args = ["replay", "a.simrec", "--task", "moved.py", "--size", "32", "24"]
    main([*args, "--picture", "end.png", "--renderer", "software"])
    assert "Picture of 2 worlds: end.png" in capsys.readouterr().out
    assert Path("end.png").stat().st_size


def test_collect_and_export_print_json(tmp_path, capsys):
    path = tmp_path / "a.simrec"
    run = ["run", "Cartpole-Balance", "--envs", "2", "--seconds", "12", "--json"]
    assert main([*run, "--record", str(path)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any(str(path) in line for line in facts["written"])
    out = str(tmp_path / "a.hdf5")
    args = ["export", str(path), "--to", "hdf5", "--out", out, "--json"]
    assert main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["out"] == out
    assert found["episodes"] >= 2
