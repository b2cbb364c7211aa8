"""A model on the command line is simulated as a scene of it in Python is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.foreign_models import FOREIGN

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.cli import main
from simstate.cli.model_scene import scene_of
from simstate.scene import build_scene
from simstate.state import Snapshot

MODELS = {
    **{n: str(FOREIGN[f"gymnasium/{n}"]) for n in ("ant", "walker2d", "pusher")},
    **{n: n for n in ("arm", "cube", "satellite")},
}


def restored(scene, path):
    """The state that a saved snapshot brings a simulation of the same scene to."""
    other = Simulation(scene, 2)
    other.restore(Snapshot.load(path))
    return other.state


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_the_same(name):
    ours = build_scene(scene_of(MODELS[name])).model
    robot = EntityCfg(model=MODELS[name])
    want = build_scene(SceneCfg(entities={"robot": robot})).model
    for field in dir(want):
        value = None if field.startswith("_") else getattr(want, field)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(ours, field), value, err_msg=field)
    assert ours.opt.timestep == want.opt.timestep
    assert ours.names == want.names


@pytest.mark.parametrize("name", ["ant", "pusher", "cube"])
def test_a_run_ends_where_the_same_run_in_python_does(name, tmp_path):
    saved = tmp_path / "end.npz"
    args = ["run", MODELS[name], "--envs", "2", "--seconds", "0.5", "--noise", "0"]
    assert main([*args, "--save", str(saved), "--no-check"]) == 0
    scene = SceneCfg(entities={"robot": EntityCfg(model=MODELS[name])})
    sim = Simulation(scene, 2)
    sim.step(round(0.5 / sim.timestep))
    assert torch.equal(restored(scene, saved), sim.state)


def test_a_run_starts_at_the_first_keyframe(tmp_path):
    saved = tmp_path / "end.npz"
    args = ["run", "quadruped", "--envs", "2", "--seconds", "0.1", "--noise", "0"]
    assert main([*args, "--save", str(saved), "--no-check"]) == 0
    start = InitialStateCfg(keyframe="home")
    robot = EntityCfg(model="quadruped", init_state=start)
    scene = SceneCfg(entities={"robot": robot})
    sim = Simulation(scene, 2)
    sim.step(20)
    assert torch.equal(restored(scene, saved), sim.state)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cube", "a ground plane added at z = 0"),
        ("arm", "no floor"),
        ("walker2d", "the model's own floor"),
    ],
)
def test_a_run_says_what_the_model_stands_on(name, says, capsys):
    args = ["--envs", "1", "--seconds", "0.01", "--no-check"]
    assert main(["run", MODELS[name], *args]) == 0
    assert says in " ".join(capsys.readouterr().out.split())
