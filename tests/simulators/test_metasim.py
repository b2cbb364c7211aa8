"""MetaSim's calls on every simulator, with the reference document's example."""

from __future__ import annotations

import pytest
import torch
from tests.raised import raises
from tests.simulators.scenes import ALL, scene_of

from simstate.base.errors import ShapeError, SimStateError
from simstate.interop.metasim import MetaSimEnv
from simstate.simulators import make
from simstate.state import diff

JOINTS = {"joint1": 0.1, "joint2": -0.2, "joint4": 1.4, "left_finger": 0.02}


def example(world: int):
    """The document's state in our scene, another one in each world."""
    here = torch.tensor([0.4, -0.1 * world, 0.5])
    return {
        "objects": {
            "cube": {
                "pos": here,
                "rot": torch.tensor([0.6, 0.0, 0.8, 0.0]),
                "vel": torch.tensor([0.1, 0.2, 0.3]),
                "ang_vel": torch.tensor([0.3, -0.2, 0.1]),
            },
            "box": {
                "pos": here + torch.tensor([0.3, 0.0, 0.2]),
                "rot": torch.tensor([0.8, 0.0, 0.0, 0.6]),
                "dof_pos": {"box_joint": 0.4 + 0.1 * world},
                "dof_vel": {"box_joint": -0.2},
            },
        },
        "robots": {
            "franka": {
                "dof_pos": {k: v + 0.01 * world for k, v in JOINTS.items()},
                "dof_pos_target": {"joint1": 0.5, "joint2": -0.3},
            }
        },
        "cameras": {},
    }


@pytest.mark.parametrize("key", ALL)
def test_lists_of_states_go_in_and_out(key):
    sim = make(key, scene_of("document"), num_envs=3)
    env = MetaSimEnv(sim, decimation=5, max_episode_steps=2)
    states, extra = env.reset([example(w) for w in range(3)])
    assert len(states) == 3
    width = 1e-6
    for world, state in enumerate(states):
        wanted = example(world)
        cube = state["objects"]["cube"]
        for part in ("pos", "rot", "vel", "ang_vel"):
            given = wanted["objects"]["cube"][part]
            assert torch.allclose(cube[part].float(), given, atol=width), part
        box = state["objects"]["box"]
        assert box["dof_pos"]["box_joint"] == pytest.approx(
            0.4 + 0.1 * world, abs=width
        )
        assert set(box["body"]) == {"box_body", "box_lid"}
        franka = state["robots"]["franka"]
        assert franka["dof_pos"]["joint4"] == pytest.approx(
            1.4 + 0.01 * world, abs=1e-6
        )
        assert franka["dof_pos_target"]["joint2"] == pytest.approx(-0.3, abs=width)
    action = {"franka": {"dof_pos_target": {"joint1": -0.9}}}
    states, rewards, success, time_out, extra = env.step([{}, action, {}])
    assert rewards == [0.0] * 3
    assert success == time_out == [False] * 3
    assert extra["time"].tolist() == pytest.approx([5 * sim.timestep] * 3)
    moved = [state["robots"]["franka"]["dof_vel"]["joint1"] for state in states]
    assert moved[1] < -0.1
    assert moved[0] > 0.1
    assert states[0]["objects"]["cube"]["vel"][2] < 0.3
    assert env.step([{}] * 3)[3] == [True] * 3


@pytest.mark.parametrize("key", ALL)
def test_what_cannot_be_written_changes_nothing(key):
    sim = make(key, scene_of("document"), num_envs=3)
    env = MetaSimEnv(sim)
    env.reset([example(w) for w in range(3)])
    env.step([{}] * 3)
    before = sim.get_states(mode="tensor", cameras=False)
    time = sim.time.clone()
    with pytest.raises(ShapeError):
        env.step([{}])
    with raises(SimStateError, name="joint99"):
        env.step([{"franka": {"dof_pos_target": {"joint99": 0.0}}}] * 3)
    with raises(SimStateError, name="cub"):
        env.reset([{"objects": {"cub": {}}}] * 3)
    after = sim.get_states(mode="tensor", cameras=False)
    assert not len(diff(before, after, 0.0 if key in ("native", "warp") else 2e-6))
    assert torch.equal(sim.time, time)
