"""Every command, given what it cannot take, ends with one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from simstate.cli import COMMANDS, main

WITHOUT_A_FILE = ("runs", "report")
"""They take folders, or nothing."""
FILES = {
    "missing.xml": None,
    "another.xml": b"<mujoco><oops/></mujoco>",
    "noise.xml": bytes(range(256)),
    "empty.npz": b"",
    "cut.simrec": b"\x89MCAP0\r\n" + b"\x01" * 50,
    "mistake.py": b"def f(:\n",
    "nothing.py": b"x = 1\n",
    "zeros.py": b"\0" * 100,
    "zeros.onnx": b"\0" * 100,
}
NAMES = (*FILES, "folder", "", "a" * 5000, "cube\0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    (place / "folder").mkdir()
    for name, content in FILES.items():
        if content is not None:
            (place / name).write_bytes(content)
    return place


@pytest.mark.parametrize("command", [x for x in COMMANDS if x not in WITHOUT_A_FILE])
def test_a_file_that_it_cannot_read(command, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    for name in NAMES:
        with pytest.raises(SystemExit) as ended:
            raise SystemExit(main([command, name]))
        said = capsys.readouterr()
        assert ended.value.code not in (0, None), (name, said.out[:200])
        assert "Traceback" not in said.err
        assert said.err.strip() or said.out.strip(), name
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", [["--nonsense"], ["--engine", "zzz"]])
def test_an_option_that_it_does_not_have(command, option, capsys):
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main([command, "cube", *option]))
    assert ended.value.code not in (0, None)
    assert "Traceback" not in capsys.readouterr().err
