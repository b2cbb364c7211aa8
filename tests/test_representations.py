"""Objects describe themselves in one line, and in a notebook as a table."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simstate
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.data.datasets import Demonstration, Episode
from simstate.data.logs import read_log
from simstate.env import Env, tasks
from simstate.record import Recording
from simstate.state import diff


class _Page(HTMLParser):
    """The tags that are open, the cells of tables, and pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.pictures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pictures += tag == "img"
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = InitialStateCfg(keyframe="home")
    entities = {"dog": EntityCfg(model="quadruped", init_state=home)}
    sim = Simulation(SceneCfg(entities=entities), num_envs=3)
    path: Path = tmp_path_factory.mktemp("recorded") / "a.simrec"
    start = sim.snapshot()
    history = sim.record(quantities=["dog.joint_vel"], every=0.005)
    with sim.record(path, quantities=["dog.joint_vel"]):
        sim.step(4)
        sim.step(2, env_ids=[1])
    states = sim.get_states(mode="tensor")
    rows = np.zeros((7, 2))
    return {
        "TensorState": states,
        "EntityTensors": states.robots["dog"],
        "Episode": Episode(1, 2, {"time": rows[:, 0], "action": rows}, ("time_out",)),
        "Demonstration": Demonstration("demo_0", rows, {"obs/a": rows}, {}, {}),
        "LogColumn": read_log(path, world=1)["dog.joint_vel"],
        "Simulation": sim,
        "Entity": sim.scene["dog"],
        "EntityData": sim.scene["dog"].data,
        "Snapshot": sim.snapshot(),
        "Recording": Recording(path),
        "History": history,
        "Diff": diff(start, sim.snapshot()),
        "Env": Env(tasks.make_cfg("Cartpole-Balance"), num_envs=2),
    }


EXPECTED = {
    "Simulation": ["3 × dog", "0.005 s"],
    "Entity": ["'dog'", "joints=12"],
    "EntityData": ["'dog'"],
    "Snapshot": ["3 worlds", "time 0.02 to 0.03 s"],
    "Recording": ["a.simrec", "3 worlds", "3 samples of 1 columns", "2 steps"],
    "History": ["7 samples of 3 worlds: dog.joint_vel"],
    "TensorState": ["3 worlds", "robots: dog", "cameras: none"],
    "EntityTensors": ["3 worlds", "12 joints", "13 links"],
    "Episode": ["world 1, number 2", "7 steps of 2 columns", "('time_out',)"],
    "Demonstration": ["'demo_0'", "7 steps of 2 arrays"],
    "LogColumn": ["'dog.joint_vel'", "3 samples of 12 components", "'rad/s'"],
    "Diff": [" differences in 3 worlds, max_error="],
    "Env": ["2 × ", "action_dim=1"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_repr_is_one_line(objects: dict[str, Any], name: str) -> None:
    text = repr(objects[name])
    assert text.startswith(f"{name}(")
    assert "\n" not in text
    assert len(text) < 160
    for part in EXPECTED[name]:
        assert part in text


CELLS = {
    "Simulation": "dog",
    "Entity": "joints",
    "EntityData": "root_link_pose_w",
    "Snapshot": "qpos",
    "Recording": "dog.joint_vel",
    "Env": "rewards",
}


@pytest.mark.parametrize("name", CELLS)
def test_notebooks_show_a_table(objects: dict[str, Any], name: str) -> None:
    page = _Page()
    page.feed(objects[name]._repr_html_())
    assert not page.open
    assert CELLS[name] in page.cells
    assert page.pictures == (name in ("Simulation", "Env"))


def test_names_in_tables_are_escaped() -> None:
    from simstate.base.notebook import html_summary

    text = html_summary("<b>", ("a",), [("<script>",)] * 70)
    assert "<script>" not in text
    assert "<b>" not in text
    assert text.count("&lt;script&gt;") == 60
    assert "10 more rows" in text


def test_star_import_leaves_pythons_math() -> None:
    names: dict[str, Any] = {}
    exec("import math\nfrom simstate import *\nsine = math.sin(0.0)", names)
    assert names["sine"] == 0.0
    assert simstate.math.__name__ == "simstate.math"
