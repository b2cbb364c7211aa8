"""States, recordings and targets taken from one simulator to another."""

from __future__ import annotations

import copy
import dataclasses
import math

import pytest
import torch
from tests.raised import raises
from tests.simulators.scenes import ALL, OTHERS, WORLDS, place, random_motion, scene_of
from tests.simulators.test_align import scene as robot_scene

from simstate import EntityCfg, SceneCfg, Simulation, cli
from simstate.base.archive import write_archive
from simstate.base.errors import InvalidInputError, SnapshotError, UnknownNameError
from simstate.data.replay import replay as replay_file
from simstate.simulators import (
    JointMap,
    align,
    carry,
    follow,
    joint_maps,
    load_states,
    make,
    replay,
    save_states,
)
from simstate.simulators.transfer import mapped
from simstate.state import diff


def filled(scene: SceneCfg, num_envs: int, seed: int) -> Simulation:
    sim = Simulation(scene, num_envs=num_envs)
    place(sim, *random_motion(sim.model, num_envs, seed))
    return sim


@pytest.fixture
def flipped():
    """The robot with one joint about the opposite axis."""
    return robot_scene(axis="0 -1 -0.4")


@pytest.mark.parametrize("key", ALL)
def test_a_joint_about_the_opposite_axis_is_carried(key, flipped):
    """The same pose needs the opposite angle there; bodies are the witnesses."""
    sim = filled(robot_scene(), 3, seed=2)
    found = align(robot_scene(), key, theirs=flipped, states=1, seconds=0.0)[key]
    maps = joint_maps(found)
    assert maps == {"robot": JointMap(scale={"shoulder": -1.0})}
    other = make(key, flipped, num_envs=3)
    state = sim.get_states(mode="tensor")
    carry(state, other, maps)
    there = other.get_states(mode="tensor").robots["robot"]
    here = state.robots["robot"]
    width = 1e-12 if other.dtype == torch.float64 else 2e-6
    assert torch.allclose(there.body_pos.double(), here.body_pos, atol=width)
    assert torch.allclose(there.body_vel.double(), here.body_vel, atol=10 * width)
    assert torch.allclose(there.dof_pos[:, 0].double(), -here.dof_pos[:, 0], atol=width)
    (back,) = replay([state], other, maps)
    assert not len(diff(back, state, 10 * width))


def test_names_units_and_zeros_are_mapped_both_ways():
    state = filled(robot_scene(), 2, seed=7).get_states(mode="tensor").robots["robot"]
    degrees = 180 / math.pi
    mapped = JointMap(
        names={"shoulder": "j1"}, scale={"shoulder": -degrees}, offset={"elbow": 0.5}
    )
    theirs = mapped.to_theirs(state)
    assert theirs.joint_names == ("j1", "elbow")
    assert torch.allclose(theirs.dof_pos[:, 0], -degrees * state.dof_pos[:, 0])
    assert torch.allclose(theirs.dof_vel[:, 0], -degrees * state.dof_vel[:, 0])
    assert torch.allclose(theirs.dof_pos[:, 1], state.dof_pos[:, 1] + 0.5)
    assert torch.equal(theirs.dof_vel[:, 1], state.dof_vel[:, 1])
    assert torch.equal(theirs.body_pos, state.body_pos)
    efforts = torch.tensor([[2.0, -3.0], [0.5, 1.5]], dtype=torch.float64)
    power = (efforts * state.dof_vel).sum(1)
    pushed = dataclasses.replace(state, dof_effort_target=efforts)
    there = mapped.to_theirs(pushed)
    assert torch.allclose((there.dof_effort_target * there.dof_vel).sum(1), power)
    assert torch.allclose(mapped.to_ours(there).dof_effort_target, efforts)
    # In the other side's order, and back.
    ours = mapped.to_ours(theirs.reorder(("elbow", "j1"))).reorder(state.joint_names)
    assert torch.allclose(ours.dof_pos, state.dof_pos, atol=1e-15)
    assert torch.allclose(ours.dof_vel, state.dof_vel, atol=1e-15)


def test_only_the_entities_of_a_map_are_converted():
    entities = {name: EntityCfg(model="cartpole") for name in ("left", "right")}
    sim = Simulation(SceneCfg(entities=entities), 2)
    sim.data.qpos[:] = torch.arange(8.0).reshape(2, 4) / 10
    state = sim.get_states(mode="tensor")
    maps = {"left": JointMap(scale={"pole": -2.0}, offset={"pole": 0.5})}
    found = mapped(state, maps).entities
    assert found["right"] is state.entities["right"]
    here, there = state.entities["left"].dof_pos, found["left"].dof_pos
    torch.testing.assert_close(there[:, 0], here[:, 0])
    torch.testing.assert_close(there[:, 1], 0.5 - 2.0 * here[:, 1])
    assert mapped(state, None) is state


def test_a_map_that_fits_nothing_is_reported():
    state = filled(robot_scene(), 1, seed=1).get_states(mode="tensor")
    other = Simulation(robot_scene())
    with raises(UnknownNameError, name="elbov"):
        carry(state, other, {"robot": JointMap(scale={"elbov": 2.0})})
    with raises(UnknownNameError, name="robo"):
        carry(state, other, {"robo": JointMap()})
    with raises(InvalidInputError, name="elbow"):
        carry(state, other, {"robot": JointMap(scale={"elbow": 0.0})})


def test_an_axis_of_another_direction_has_no_map():
    turned = robot_scene(axis="1 0 0.4")
    found = align(robot_scene(), "native", theirs=turned, seconds=0.0)["native"]
    with raises(InvalidInputError, name="axis"):
        joint_maps(found)


@pytest.mark.parametrize("key", ALL)
def test_a_recording_is_shown_and_its_targets_are_followed(key):
    scene = scene_of("document")
    sim = Simulation(scene, num_envs=3)
    recording = []
    for k in range(5):
        aims = [
            {"robots": {"franka": {"dof_pos_target": {"joint2": 0.05 * k * (1 + w)}}}}
            for w in range(3)
        ]
        sim.set_states(aims)
        recording.append(copy.deepcopy(sim.get_states(mode="tensor", cameras=False)))
        sim.step(10)
    other = make(key, scene, num_envs=3)
    width = 1e-13 if other.dtype == torch.float64 else 1e-5
    for wanted, shown in zip(recording, replay(recording, other), strict=True):
        assert not len(diff(shown, wanted, width))
    followed = list(follow(recording, other, steps=10))
    if key == "native":
        for wanted, got in zip(recording, followed, strict=True):
            assert not len(diff(got, wanted, 1e-10))
    last = followed[-1].robots["franka"]
    aim = last.dof_pos_target[:, 1].tolist()
    assert aim == pytest.approx([0.2, 0.4, 0.6], abs=1e-6)
    # Each simulator's servos are its own, but they go the same way.
    gone = last.dof_pos[:, 1] - recording[0].robots["franka"].dof_pos[:, 1]
    assert gone[1] > 1.2 * gone[0] > 0


@pytest.mark.parametrize("key", OTHERS)
def test_a_file_of_steps_is_taken_again_in_another_simulator(key, tmp_path):
    """The cart and pole agree to the width of floats: so do runs on a file's inputs.

    Featherstone's dampers are explicit: that is its difference.
    """
    path = tmp_path / "run.simrec"
    scene = SceneCfg(entities={"cart": EntityCfg(model="cartpole")}, timestep=None)
    sim = Simulation(scene, WORLDS, seed=3)
    pushes = torch.Generator().manual_seed(0)
    begin = sim.data.qpos.clone()
    with sim.record(path, fields=["qpos", "qvel"]):
        for _ in range(20):
            sim.data.ctrl[:] = torch.randn(WORLDS, 1, generator=pushes)
            sim.step(2)
    found = replay_file(path, simulator=key)
    assert found.engine == key
    assert found.over_time["qpos"][0] == 0.0
    assert (sim.data.qpos - begin).abs().max() > 0.01
    bound = {"newton": 1e-5, "newton-featherstone": 5e-3}.get(key, 1e-12)
    assert found.over_time["qpos"][-1] < bound


def test_states_in_a_file_are_the_states(tmp_path):
    sim = filled(scene_of("humanoid"), 3, seed=4)
    state = sim.get_states([2, 0], mode="tensor")
    path = tmp_path / "states.npz"
    save_states(state, path, "native")
    again, source = load_states(path)
    assert source == "native"
    assert again.num_envs == 2
    assert again.robots["robot"].joint_names == state.robots["robot"].joint_names
    for field in dataclasses.fields(again.robots["robot"]):
        ours, theirs = (getattr(s.robots["robot"], field.name) for s in (state, again))
        if isinstance(ours, torch.Tensor):
            assert torch.equal(ours.nan_to_num(9.0), theirs.nan_to_num(9.0)), field.name
    robots = {
        "robot": dataclasses.replace(state.robots["robot"], dof_effort_target=None)
    }
    save_states(dataclasses.replace(state, robots=robots), path)
    assert load_states(path)[0].robots["robot"].dof_effort_target is None
    other = Simulation(scene_of("humanoid"), num_envs=2)
    other.set_states(again)
    assert not len(diff(other.get_states(mode="tensor"), state, 1e-12))


def test_a_file_of_another_version_is_reported(tmp_path):
    path = tmp_path / "states.npz"
    for header in ({}, {"entities": {"it": {"group": "others", "names": {}}}}):
        write_archive(path, {"format": "simstate states 1", **header}, {})
        with pytest.raises(SnapshotError):
            load_states(path)


def test_a_damaged_file_is_reported(tmp_path):
    path = tmp_path / "states.npz"
    with raises(SnapshotError, file="states.npz"):
        load_states(path)
    save_states(filled(scene_of("cube"), 1, 0).get_states(mode="tensor"), path)
    path.write_bytes(path.read_bytes()[:200])
    with raises(SnapshotError, file="states.npz"):
        load_states(path)
    with raises(InvalidInputError, name="state"):
        save_states([{}], path)


@pytest.mark.parametrize("key", ALL)
def test_the_command_compares_states_of_two_simulators(key, tmp_path, capsys):
    scene = scene_of("document")
    sim = filled(scene, 3, seed=6)
    other = make(key, scene, num_envs=3)
    other.set_states(sim.get_states(mode="tensor", cameras=False))
    files = [str(tmp_path / name) for name in ("here.npz", "there.npz")]
    save_states(sim.get_states(mode="tensor", cameras=False), files[0], "native")
    save_states(other.get_states(mode="tensor", cameras=False), files[1], key)
    assert cli.main(["diff", *files, "--tolerance", "1e-5"]) == 0
    assert f"{key} on the right" in capsys.readouterr().out
    other.step(3)
    save_states(other.get_states(mode="tensor", cameras=False), files[1], key)
    assert cli.main(["diff", *files, "--tolerance", "1e-5", "--rows", "0"]) == 1
    assert "objects.cube" in capsys.readouterr().out


def test_a_snapshot_and_states_are_not_confused(tmp_path, capsys):
    sim = Simulation(SceneCfg(entities={"cube": EntityCfg(model="cube")}))
    snapshot, states = tmp_path / "a.npz", tmp_path / "b.npz"
    sim.snapshot().save(snapshot)
    save_states(sim.get_states(mode="tensor"), states)
    assert cli.main(["diff", str(snapshot), str(states)]) == 1
    assert "error" in capsys.readouterr().err
    assert cli.main(["diff", str(snapshot), str(snapshot)]) == 0
