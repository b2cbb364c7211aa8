"""Which MuJoCo will do, and what is said of one that will not."""

from __future__ import annotations

import builtins

import mujoco
import pytest
from tests.inside import set_install_folder, set_installed, set_state_component
from tests.raised import raises

from simstate import ModelError, SimStateError, Simulation, cli
from simstate.base.mujoco_version import (
    REPAIR,
    check_installation,
    check_warp,
    installation_fault,
)
from simstate.cli import main

WITH_USERDATA = """
<mujoco><size nuserdata="3"/><worldbody><body><joint axis="0 1 0"/>
  <geom size="0.1" pos="0.3 0 0"/></body></worldbody></mujoco>
"""


@pytest.mark.parametrize(
    ("number", "name", "why"),
    [
        (3016000, "3.16.0", "mujoco"),
        (4000000, "4.0.0", "mujoco"),
    ],
)
def test_a_version_that_will_not_do_is_refused(number, name, why):
    with raises(SimStateError, name=why) as caught:
        check_installation(number, name)
    assert f"MuJoCo {name}" in str(caught.value)
    assert REPAIR in str(caught.value)


@pytest.mark.parametrize("number", [3017000, 3018000, 4000001, mujoco.mj_version()])
def test_others_will(number):
    check_installation(number, "whatever")


LIBRARIES = {
    "mujoco 3.17.0 over mujoco-core 4.0.0": ("3.17.0", "4.0.0", ["3.17.0", "4.0.0"]),
    "mujoco-core 4.0.1 over mujoco 3.17.0": ("3.17.0", "4.0.1", ["3.17.0", "4.0.1"]),
    "overwritten, one library": ("3.17.0", "4.0.1", ["4.0.1"]),
    "a library is left": (None, "4.0.1", ["4.0.1", "3.17.0"]),
    "two of mujoco 3": ("3.17.0", None, ["3.16.0", "3.17.0"]),
    "another library": ("3.17.0", None, ["3.18.0"]),
    "no library, no module": (None, "4.0.1", None),
}
SOUND = {
    "3.17": ("3.17.0", None, ["3.17.0"]),
    "a later build": ("3.17.1.dev7", None, ["3.17.1"]),
    "the core": (None, "4.0.1", ["4.0.1"]),
    "mujoco 4 and its core": ("4.1.0", "4.1.0", ["4.1.0"]),
    "mujoco 4.0.0 and a later core": ("4.0.0", "4.0.1", ["4.0.1"]),
    "not by pip": (None, None, ["3.17.0"]),
    "as on Windows": ("3.17.0", None, []),
}


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Make packages and files look installed."""

    def installed(mujoco_version, core, libraries):
        known = {"mujoco": mujoco_version, "mujoco-core": core}
        set_installed(monkeypatch, known.get)
        folder = None if libraries is None else tmp_path
        for name in libraries or ():
            (tmp_path / f"libmujoco.so.{name}").touch()
        (tmp_path / "mujoco.dll").touch()
        set_install_folder(monkeypatch, folder)

    return installed


@pytest.mark.parametrize("case", LIBRARIES)
def test_versions_over_each_other_are_found(install, case):
    install(*LIBRARIES[case])
    found = installation_fault()
    assert found is not None
    assert found.endswith(f"Repair it: {REPAIR}.")
    for part in (x for x in LIBRARIES[case][:2] if x is not None):
        assert part in found


@pytest.mark.parametrize("case", SOUND)
def test_a_sound_installation_is_none_of_them(install, case):
    install(*SOUND[case])
    assert installation_fault() is None


def test_this_installation_is_sound():
    assert installation_fault() is None


def test_the_command_line_reports_it(install, capsys):
    install("3.17.0", "4.0.0", ["3.17.0", "4.0.0"])
    assert main(["--version"]) == 1
    captured = capsys.readouterr()
    assert captured.out.rstrip().endswith("rejected")
    assert REPAIR in captured.err.replace("\n", " ")


def test_the_command_line_reports_a_rejected_version(monkeypatch, capsys):
    monkeypatch.setattr(mujoco, "mj_version", lambda: 4000000)
    monkeypatch.setattr(mujoco, "__version__", "4.0.0")
    assert main(["--version"]) == 1
    captured = capsys.readouterr()
    assert "MuJoCo 4.0.0" in captured.out
    assert "Cholesky" in captured.err


@pytest.mark.parametrize("case", ["sound", "damaged"])
def test_a_mujoco_that_cannot_be_imported_is_reported(
    install, monkeypatch, capsys, case
):
    """With its own error, unless the installation is known to be damaged."""
    load = builtins.__import__

    def failing(name, *args):
        if name == "mujoco":
            raise ImportError("libmujoco.so: cannot open")
        return load(name, *args)

    if case == "damaged":
        install("3.17.0", "4.0.0", ["3.17.0", "4.0.0"])
    monkeypatch.setattr(builtins, "__import__", failing)
    assert main(["--version"]) == 1
    captured = capsys.readouterr()
    assert captured.out.rstrip().endswith("rejected")
    error = captured.err.replace("\n", " ")
    assert REPAIR in error
    assert ("cannot open" in error) is (case == "sound")


def test_the_command_line_names_the_cause_of_an_import_error(
    install, monkeypatch, capsys
):
    def broken(name):
        raise ImportError("undefined symbol: mj_something")

    install(None, "4.0.1", None)
    monkeypatch.setattr(cli, "command_class", broken)
    assert main(["run", "cube"]) == 1
    assert "pip uninstall -y mujoco" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(("warp", "fits"), [("3.17.0", 3), ("4.0.0", 4)])
def test_warp_must_be_of_the_same_major_version(install, monkeypatch, warp, fits):
    known = {"mujoco-warp": warp}
    set_installed(monkeypatch, known.get)
    for number in (3017000, 4000001):
        if number // 1000000 == fits:
            check_warp(number)
            continue
        with raises(SimStateError, name="mujoco-warp") as caught:
            check_warp(number)
        assert "pip install --no-deps 'mujoco-warp==" in str(caught.value)


def test_a_state_that_we_do_not_know_is_refused(monkeypatch):
    """Rather than left out of resets and snapshots."""
    model = mujoco.MjModel.from_xml_string(WITH_USERDATA)
    Simulation(model, 2)
    set_state_component(monkeypatch, "userdata", mujoco.mjtState.mjSTATE_ACT)
    with raises(ModelError, name="state"):
        Simulation(model, 2)
