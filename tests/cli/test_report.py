"""`simstate report`: what a bug report needs, and nothing about a person."""

import getpass
import json
import os
import platform
import socket
from importlib.metadata import version

import mujoco

from simstate.cli import main


def test_it_says_what_is_installed(capsys):
    assert main(["report", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["packages"]["mujoco"] == mujoco.__version__
    assert facts["packages"]["simstate"] == version("simstate")
    assert facts["python"].startswith(platform.python_version())
    assert facts["cores"] == len(os.sched_getaffinity(0))
    assert "model" not in facts


def test_it_says_what_a_model_holds(capsys):
    assert main(["report", "arm", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["model"]
    assert found["sizes"]["1-DoF joints"] == 9
    assert main(["report", "arm"]) == 0
    assert "fixed base" in capsys.readouterr().out


def test_nothing_in_it_tells_who_or_where(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path))
    monkeypatch.setenv("SIMSTATE_CORE", "1")
    monkeypatch.setenv("SECRET_TOKEN", "swordfish")
    assert main(["report"]) == 0
    said = capsys.readouterr().out
    assert "'SIMSTATE_CORE': '1'" in said
    private = [socket.gethostname(), os.getcwd(), str(tmp_path), "swordfish"]
    if getpass.getuser() != "root":  # a word that versions of systems may have in them
        private.append(getpass.getuser())
    assert not [text for text in private if len(text) > 2 and text in said]
