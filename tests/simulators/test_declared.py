"""What simulators can do is declared, and nothing of them is loaded unasked."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import tomllib
from pathlib import Path

import mujoco
import pytest
from tests.conftest import SMALL
from tests.raised import raises
from tests.simulators import looped
from tests.simulators.scenes import scene_of

from simstate import cli
from simstate.base.errors import InvalidInputError, SimStateError, UnknownNameError
from simstate.scene import models
from simstate.simulators import (
    SIMULATORS,
    MissingSimulatorError,
    SimulatorInfo,
    align,
    features,
    info,
    make,
    register,
)
from simstate.simulators.capabilities import Capabilities
from simstate.simulators.parameters import ParameterDifference

FOREIGN = ("pydrake", "jax", "newton", "warp", "mujoco_warp", "onnxruntime")


@pytest.fixture
def absent(monkeypatch):
    """A simulator that is known and not installed."""
    entry = SimulatorInfo(
        name="absent",
        title="Absent",
        package="a_package_that_is_not_there",
        extra="absent",
        simulator=("absent", "AbsentSimulator"),
        mechanics=("absent", "AbsentMechanics"),
        capabilities=Capabilities(dtype="float64", batching="loop"),
    )
    monkeypatch.setitem(SIMULATORS, "absent", entry)
    return entry


def test_importing_simulators_loads_none_of_them():
    code = (
        "import sys, simstate, simstate.simulators, simstate.cli.align\n"
        "from simstate.simulators.catalog import SIMULATORS\n"
        "[s.installed for s in SIMULATORS.values()]\n"
        f"print([m for m in {FOREIGN!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]"]


def test_one_that_is_not_installed_says_in_one_line_how_to_get_it(absent):
    for call in (
        lambda: make("absent", scene_of("cube")),
        lambda: align(scene_of("cube"), "native", "absent"),
    ):
        with pytest.raises(MissingSimulatorError) as caught:
            call()
        text = str(caught.value)
        assert text == ("Absent is not installed. Run: pip install 'simstate[absent]'.")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, SimStateError)


def test_the_command_says_it_in_one_line_too(absent, capsys):
    assert cli.main(["align", "cube", "--with", "absent"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "pip install 'simstate[absent]'" in err


def test_one_of_your_own_is_known_everywhere(capsys):
    register(looped.INFO)  # a second time is no harm
    assert make("looped", scene_of("cube")).name == "looped"
    assert cli.main(["align", "cartpole", "--with", "looped", "--seconds", "0.1"]) == 0
    assert "MuJoCo and Looped MuJoCo" in capsys.readouterr().out
    mine = dataclasses.replace(looped.INFO, name="drake")
    with raises(InvalidInputError, name="drake"):
        register(mine)
    assert SIMULATORS["drake"].title == "Drake"


def test_every_extra_is_one_of_the_project():
    project = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    for entry in SIMULATORS.values():
        assert entry.extra is None or entry.extra in extras


def test_an_unknown_name_has_suggestions():
    with raises(UnknownNameError, name="drak"):
        info("drak")


def test_features_are_found_by_element():
    found = features(mujoco.MjModel.from_xml_string(SMALL))
    assert found["ball joints"] == ("ball",)
    assert found["mocap bodies"] == ("target",)
    assert found["connects and welds"] == ("leash",)
    assert found["actuators with state"] == ("wrist",)
    assert found["position servos"] == ("elbow",)
    assert found["motors"] == ("push",)
    assert found["tendons"] == ("sum", "cord")
    assert found["springs of 1-DoF joints"] == ("wrist",)
    assert "dry friction in joints" not in found
    assert "gravity compensation" not in found
    arm = features(mujoco.MjModel.from_xml_path(str(models.path("arm"))))
    assert arm["armature of joints without an actuator"] == ("right_finger",)
    assert arm["linear couplings"] == ("fingers",)
    assert "couplings other than linear" not in arm
    assert "link3" in arm["gravity compensation"]
    finger = features(mujoco.MjModel.from_xml_path(str(models.path("finger"))))
    assert finger["actuators on tendons"] == ("flexor", "extensor")
    humanoid = features(mujoco.MjModel.from_xml_path(str(models.path("humanoid"))))
    assert humanoid["limits of ball joints"] == ("left_shoulder", "right_shoulder")
    assert humanoid["springs of ball joints"] == ("left_shoulder", "right_shoulder")
    assert "left_shoulder_y" in humanoid["actuators on ball joints"]


def test_what_a_model_needs_and_drake_lacks_is_known_without_drake():
    arm = mujoco.MjModel.from_xml_path(str(models.path("arm")))
    missing = info("drake").capabilities.missing(arm)
    assert set(missing) == {
        "gravity compensation",
        "armature of joints without an actuator",
    }
    assert missing["gravity compensation"].why == "gravity is not reduced"
    assert not info("native").capabilities.missing(arm)


@pytest.mark.parametrize(
    ("ours", "theirs", "error"),
    [
        ((1.0, math.inf), (1.0, math.inf), 0.0),
        ((1.0, math.inf), (3.5, math.inf), 2.5),
        ((4.0, -2.0), (1.0, 3.0), 5.0),
        ((1.0, math.inf), (1.0, 2.0), math.inf),
        ((2.0, 2.0), (2.0, 2.0), 0.0),
    ],
)
def test_the_error_of_a_parameter_is_its_largest_difference(ours, theirs, error):
    found = ParameterDifference("mass", "it", ours, theirs, "kg", dropped=False)
    assert found.error == error


@pytest.mark.parametrize(
    ("package", "installed"),
    [
        (None, True), ("mujoco", True), ("mujoco.batch", True),
        ("no_such_library", False), ("no_such_library.part", False),
        ("mujoco.no_such_part", False),
    ],
)  # fmt: skip
def test_a_simulator_is_installed_if_its_package_is_there(package, installed):
    one = dataclasses.replace(next(iter(SIMULATORS.values())), package=package)
    assert one.installed is installed
    if not installed:
        with raises(SimStateError, name="native"):
            one.require()
