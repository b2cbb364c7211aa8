"""Files that the system refuses to open or rename are named by a FileError."""

from __future__ import annotations

import builtins
import io
from pathlib import Path

import pytest
from tests.data.datasets.test_collect import cfg_of, controller
from tests.raised import raises

from simstate import FileError, SimStateError
from simstate.base.files import naming_errors
from simstate.data.datasets import collect
from simstate.record import Recording
from simstate.state import Snapshot
from simstate.train.run_file import read_run_file
from simstate.train.training_logs import ProgressFile


@pytest.fixture
def refuse(monkeypatch):
    """Makes the system refuse to open files of a name: refuse("a.json")."""

    def start(name: str) -> None:
        real = io.open

        def refusing(file, *args, **options):
            if not isinstance(file, int) and Path(file).name == name:
                raise PermissionError(13, "Permission denied", str(file))
            return real(file, *args, **options)

        monkeypatch.setattr(io, "open", refusing)
        monkeypatch.setattr(builtins, "open", refusing)

    return start


def test_errors_of_the_system_get_a_name(tmp_path):
    with (
        raises(FileError, file="x"),
        naming_errors(tmp_path / "x", "read"),
    ):
        raise PermissionError(13, "Permission denied")
    with raises(FileError, name="other"), naming_errors(tmp_path / "x", "read"):
        raise FileError("Cannot read 'other'.", name="other")


@pytest.mark.parametrize("read", [Recording, Snapshot.load, read_run_file])
def test_readers_name_a_file_that_they_may_not_read(read, tmp_path, refuse):
    (tmp_path / "a.file").write_bytes(b"anything")
    refuse("a.file")
    with raises(SimStateError, file="a.file"):
        read(tmp_path / "a.file")


def test_a_collection_names_what_it_may_not_read_or_rename(
    tmp_path, refuse, monkeypatch
):
    def again() -> None:
        collect(cfg_of(0.1), controller, tmp_path, episodes=2, envs=2)

    def refused(*args):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refused)
        with raises(FileError, file="part-00000.simrec"):
            again()
    again()
    refuse("collect.json")
    with raises(SimStateError, file="collect.json"):
        again()


def test_training_names_a_log_that_it_may_not_write(tmp_path, refuse):
    log = ProgressFile(tmp_path, 0)
    refuse("progress.jsonl")
    with raises(FileError, file="progress.jsonl"):
        log.write(1, {"loss": 0.5})
    with raises(FileError, file="progress.jsonl"):
        ProgressFile(tmp_path, 0)
