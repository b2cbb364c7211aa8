"""Float32 values in a float64 simulation: a warning where digits were lost."""

from __future__ import annotations

import warnings

import pytest
import torch

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.integrate import MovingFrame, PointMassGravity
from simstate.space import OrbitalElements

MU = 3.986004418e14
POSE = [[7000123.4, 20.0, -3.0, 0.5, 0.5, 0.5, 0.5]]


@pytest.fixture(scope="module")
def sim():
    scene = SceneCfg(entities={"cube": EntityCfg(model="cube")}, timestep=None)
    return Simulation(scene, num_envs=2)


@pytest.mark.parametrize(
    "write",
    [
        lambda sim, x: sim.scene["cube"].write_root_link_pose_to_sim(x),
        lambda sim, x: MovingFrame(PointMassGravity(MU), x[0, :3], (0.0, 7e3, 1.0)),
        lambda sim, x: OrbitalElements.of(x[0, 0]),
    ],
    ids=["pose", "frame", "elements"],
)
def test_rounded_values_warn_and_float64_does_not(sim, write):
    with pytest.warns(RuntimeWarning, match=r"is float32.*0\.5 apart.*float64"):
        write(sim, torch.tensor(POSE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(sim, torch.tensor(POSE, dtype=torch.float64))


@pytest.mark.parametrize("x", [1023.9, 7e6, -(2.0**23), float(2**24 - 1)])
def test_values_that_float32_holds_do_not_warn(sim, x):
    pose = torch.tensor([[x, 20.3, -3.1, 0.5, 0.5, 0.5, 0.5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.scene["cube"].write_root_link_pose_to_sim(pose)


@pytest.mark.parametrize(("x", "apart"), [(1024.5, "0.00012"), (2.0**24, "2")])
def test_the_smallest_values_that_warn(sim, x, apart):
    pose = torch.tensor([[0.3, x, -3.1, 0.5, 0.5, 0.5, 0.5]])
    with pytest.warns(RuntimeWarning, match=f"are {apart} apart"):
        sim.scene["cube"].write_root_link_pose_to_sim(pose)
