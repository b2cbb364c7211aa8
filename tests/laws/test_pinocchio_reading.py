"""The law of a URDF: MuJoCo's model of the file is what Pinocchio reads in it."""

from __future__ import annotations

import importlib.util

import pytest

from simstate import EntityCfg, SceneCfg
from simstate.scene.build import build_scene
from simstate.study import oracles
from simstate.study.oracles.pinocchio_reading import LAW, pinocchio_findings

_LINK = """<link name="{name}"><inertial><mass value="{mass}"/>
<origin xyz=".05 .1 .2" rpy=".4 .5 .6"/><inertia ixx=".02" iyy=".03" izz=".04"
ixy=".001" ixz=".002" iyz=".003"/></inertial></link>"""
_LIMIT = '<limit lower="-1" upper="{upper}" effort="9" velocity="3"/>'


def urdf(mass: float = 1.5, axis: str = "0 .6 .8", upper: float = 2.0) -> str:
    """A turning arm with a fixed tool, a sliding finger and a spinning tip."""
    links = {"base": 3.0, "arm": mass, "tool": 0.4, "finger": 0.1, "tip": 0.2}
    joints = [
        ("turn", "revolute", "base", "arm", axis, _LIMIT.format(upper=upper)),
        ("weld", "fixed", "arm", "tool", "1 0 0", ""),
        ("slide", "prismatic", "tool", "finger", "1 0 0", _LIMIT.format(upper=0.3)),
        ("spin", "continuous", "finger", "tip", "0 0 1", ""),
    ]
    text = "".join(_LINK.format(name=name, mass=m) for name, m in links.items())
    for name, kind, parent, child, along, limit in joints:
        text += (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz=".1 .2 .3" rpy=".3 .2 .1"/>'
            f'<axis xyz="{along}"/>{limit}</joint>'
        )
    return f'<robot name="r">{text}</robot>'


def scene(text: str) -> SceneCfg:
    return SceneCfg(entities={"robot": EntityCfg(model=text)}, timestep=None)


def test_the_first_law_is_the_comparison_with_the_file() -> None:
    report = oracles.check(scene(urdf()), num_envs=2)
    assert report.passed
    arrays = build_scene(scene(urdf())).matches["robot"].arrays
    law = f"the scene matches its file: {arrays} arrays, 0 differ"
    assert (report.checks[0].law, report.checks[0].entity) == (law, "robot")


def test_without_pinocchio_the_law_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "pinocchio" else find(name, *rest),
    )
    report = oracles.check(scene(urdf()), num_envs=2)
    assert [note for note in report.notes if LAW in note] == [
        f"Not checked for 'robot': {LAW}. It needs the package 'pin': "
        "pip install 'simstate[pin]'."
    ]


def test_other_models_have_no_such_law() -> None:
    model = build_scene(SceneCfg(entities={"a": EntityCfg(model="arm")})).model
    assert pinocchio_findings("a", "arm", model) == []


def test_pinocchio_reads_the_same() -> None:
    pytest.importorskip("pinocchio")
    found = pinocchio_findings("robot", urdf(), build_scene(scene(urdf())).model)
    assert len(found) == 5
    assert all(check.passed for check in found)  # pyright: ignore


@pytest.mark.parametrize(
    ("change", "quantity"),
    [
        ({"mass": 1.6}, "mass"),
        ({"axis": "0 .8 .6"}, "axis"),
        ({"upper": 1.9}, "limits"),
    ],
)
def test_a_difference_fails(change: dict[str, float], quantity: str) -> None:
    pytest.importorskip("pinocchio")
    model = build_scene(scene(urdf(**change))).model  # pyright: ignore
    found = pinocchio_findings("robot", urdf(), model)
    failed = {check.quantity for check in found if not check.passed}  # pyright: ignore
    assert quantity in failed
