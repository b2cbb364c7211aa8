"""Models of MuJoCo Menagerie and robot_descriptions by name.

The packages are stood in for by modules with their names and functions, as the real
ones would download: mujoco-menagerie 2026.10 and robot_descriptions 3.3.
"""

import sys
import types
from importlib.machinery import ModuleSpec

import mujoco
import pytest
from tests.raised import raises

from simstate import EntityCfg, ModelError, SceneCfg, Simulation, explain
from simstate.cli import main
from simstate.scene import model_libraries, models

pytestmark = pytest.mark.fast


def stand_in(monkeypatch, name, **content):
    module = types.ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    module.__path__ = []
    for key, value in content.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def menagerie(monkeypatch):
    """Menagerie with two robots, of which one can be downloaded."""

    class Robot:
        default_model, default_scene = "go1", "scene"

        def __init__(self, name):
            self.name = name

        def spec(self, entry=None):
            assert entry == "go1", "the scene has a floor of its own"
            if self.name == "unitree_g1":
                raise RuntimeError(
                    "https://host/g1.tar.xz:\n Name or service not known"
                )
            print("downloading")
            return models.spec("quadruped")

    stand_in(
        monkeypatch,
        "mujoco_menagerie",
        names=lambda: ["unitree_g1", "unitree_go1"],
        get=Robot,
    )


@pytest.fixture
def descriptions(monkeypatch):
    """robot_descriptions with an MJCF and a URDF description."""
    listing = {
        "go1_mj_description": types.SimpleNamespace(has_mjcf=True),
        "a1_description": types.SimpleNamespace(has_mjcf=False),
    }
    stand_in(monkeypatch, "robot_descriptions")
    stand_in(monkeypatch, "robot_descriptions._descriptions", DESCRIPTIONS=listing)
    stand_in(
        monkeypatch,
        "robot_descriptions.go1_mj_description",
        MJCF_PATH=str(models.path("arm")),
    )


@pytest.fixture
def nothing_installed(monkeypatch):
    for library in model_libraries.LIBRARIES:
        monkeypatch.setitem(sys.modules, library.package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_a_menagerie_robot_is_an_entity(menagerie, capsys):
    scene = SceneCfg(entities={"robot": EntityCfg(model="unitree_go1")})
    assert Simulation(scene).scene["robot"].num_joints == 12
    assert explain("unitree_go1")["qpos[0]"].unit == "m"
    captured = capsys.readouterr()
    assert "downloading" in captured.err  # not where a command's JSON goes
    assert not captured.out


def test_a_description_is_loaded_from_its_mjcf_file(descriptions, capsys):
    assert main(["inspect", "go1_mj_description"]) == 0
    model = mujoco.MjModel.from_xml_path(str(models.path("arm")))
    assert model.joint(0).name in capsys.readouterr().out


def test_a_download_that_is_impossible_is_one_message(menagerie, capsys):
    assert main(["inspect", "unitree_g1"]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "'unitree_g1' is a model of MuJoCo Menagerie" in message
    assert "Name or service not known" in message
    assert "needs a connection" in message


def test_what_an_import_raises_is_one_message(descriptions, monkeypatch):
    monkeypatch.delitem(sys.modules, "robot_descriptions.go1_mj_description")
    with raises(ModelError, name="go1_mj_description"):
        Simulation(SceneCfg(entities={"r": EntityCfg(model="go1_mj_description")}))


def test_names_near_by_are_suggested(menagerie, descriptions):
    for wrong, meant in (
        ("unitree_go", "unitree_go1"),
        ("go1_description", "go1_mj_description"),
        ("quadrupet", "quadruped"),
    ):
        with raises(ModelError, name=wrong) as caught:
            explain(wrong)
        assert repr(meant) in str(caught.value)
        assert "pip install" not in str(caught.value)


def test_a_description_without_mjcf_is_not_known(descriptions):
    with raises(ModelError, name="a1_description"):
        explain("a1_description")


def test_the_missing_packages_are_named(nothing_installed):
    with pytest.raises(ModelError) as caught:
        explain("unitree_go1")
    message = str(caught.value)
    assert "There is no model 'unitree_go1'" in message
    assert "MuJoCo Menagerie and robot_descriptions, run" in message
    assert "pip install 'simstate[robots]'" in message


def test_shipped_models_need_no_package(monkeypatch):
    def fail(name):
        raise AssertionError("looked for a package")

    monkeypatch.setattr("importlib.util.find_spec", fail)
    assert len(explain("cube").select("qpos")) == 7
