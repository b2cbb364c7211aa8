"""`import simstate`: what it offers, and that it loads none of it before it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import simstate

SOURCE = Path(simstate.__file__).read_text()


def declared():
    """The public names with their modules, as a type checker sees them."""
    (block,) = (
        node
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.asname or alias.name: node.module
        for node in block.body
        for alias in node.names
    }


@pytest.mark.parametrize("name", simstate.__all__)
def test_a_name_is_what_the_type_checker_takes_it_for(name):
    module = declared()[name]
    if module == "simstate":
        assert getattr(simstate, name) is import_module(f"simstate.{name}")
    else:
        assert getattr(simstate, name) is getattr(import_module(module), name)


@pytest.mark.parametrize("name", simstate.data.__all__)
def test_a_package_of_data_is_loaded_when_it_is_used(name, monkeypatch):
    package = import_module(f"simstate.data.{name}")
    monkeypatch.delattr(simstate.data, name)
    assert getattr(simstate.data, name) is package


def test_all_names_are_listed():
    assert sorted(declared()) == sorted(simstate.__all__)
    assert dir(simstate) == sorted(simstate.__all__)


def test_nothing_heavy_is_loaded_before_a_name_is_used():
    code = (
        "import sys, simstate\n"
        "print([m for m in ('torch', 'mujoco', 'numpy') if m in sys.modules])\n"
        "simstate.state.Snapshot, simstate.RayCastCfg\n"
        "from simstate import *\n"
        "print(Simulation is simstate.simulation.Simulation, 'warp' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "True False"]


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Simulator'"):
        _ = simstate.Simulator  # pyright: ignore
    assert not hasattr(simstate, "_ipython_canary_method_should_not_exist_")


def test_integrate_is_the_public_name_of_step():
    code = (
        "import sys\n"
        "import simstate.integrate\n"
        "from simstate.integrate import RK4, QPosState\n"
        "from simstate import integrate, step\n"
        "print(RK4 is step.RK4, QPosState is step.QPosState)\n"
        "print(dir(integrate) == sorted(step.__all__))\n"
        "print(simstate.integrate is integrate, hasattr(integrate, 'import_module'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True", "True", "True", "False"]
