"""A state taken through any two simulators is the same state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from tests.simulators.scenes import (
    ALL,
    IDENTITY_SCENES,
    WORLDS,
    body_motion,
    place,
    random_motion,
    scene_of,
)

from simstate import Simulation
from simstate.simulators import make
from simstate.state import diff

WIDTH = {torch.float64: 2e-13, torch.float32: 1e-5}
"""What rounding does to numbers of order 10 on the way through a tree of bodies."""


@pytest.mark.parametrize("name", IDENTITY_SCENES)
def test_any_two_simulators_hold_the_same_state(name):
    scene = scene_of(name)
    source = Simulation(scene, num_envs=WORLDS)
    qpos, qvel = random_motion(source.model, WORLDS, seed=5)
    place(source, qpos, qvel)
    start = source.get_states(mode="tensor", cameras=False)
    simulators = {key: make(key, scene, num_envs=WORLDS) for key in ALL}
    for one, two in itertools.permutations(simulators, 2):
        first, second = simulators[one], simulators[two]
        first.set_states(start)
        between = first.get_states(mode="tensor", cameras=False)
        second.set_states(between)
        after = second.get_states(mode="tensor", cameras=False)
        narrower = max(WIDTH[first.dtype], WIDTH[second.dtype])
        found = diff(start, after, narrower)
        assert not len(found), f"{one} → {two}\n{found}"


@pytest.mark.parametrize("key", ALL)
@pytest.mark.parametrize("name", ["quadruped", "second_tree", "humanoid"])
def test_bodies_are_where_mujoco_has_them(name, key):
    """Also velocities: every COM is away from its origin, every body turns."""
    scene = scene_of(name)
    sim = make(key, scene, num_envs=WORLDS)
    qpos, qvel = random_motion(sim.model, WORLDS, seed=8)
    source = Simulation(scene, num_envs=WORLDS)
    place(source, qpos, qvel)
    sim.set_states(source.get_states(mode="tensor", cameras=False))
    found = sim.get_states(mode="tensor", cameras=False).entities["robot"]
    for world in range(WORLDS):
        pos, quat, vel, ang_vel = body_motion(sim.model, qpos[world], qvel[world])
        width = WIDTH[sim.dtype]
        sign = np.sign((found.body_rot[world].numpy() * quat[1:]).sum(-1))
        assert np.allclose(found.body_pos[world], pos[1:], atol=width)
        assert np.allclose(found.body_rot[world], quat[1:] * sign[:, None], atol=width)
        assert np.allclose(found.body_vel[world], vel[1:], atol=width)
        assert np.allclose(found.body_ang_vel[world], ang_vel[1:], atol=width)


@pytest.mark.parametrize("key", ALL)
def test_dictionaries_and_tensors_say_the_same(key):
    scene = scene_of("document")
    sim = make(key, scene, num_envs=WORLDS)
    qpos, qvel = random_motion(sim.model, WORLDS, seed=3)
    source = Simulation(scene, num_envs=WORLDS)
    place(source, qpos, qvel)
    sim.set_states(list(source.get_states(cameras=False)))
    assert not len(diff(sim.get_states(cameras=False), source.get_states(cameras=False),
                        WIDTH[sim.dtype]))  # fmt: skip
    tensors = sim.get_states(mode="tensor", cameras=False)
    assert tensors.entities["cube"].body_pos.dtype == sim.dtype
    assert not len(diff(sim.get_states(cameras=False), tensors))
