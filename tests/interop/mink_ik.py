"""Inverse kinematics with mink on simstate's worlds: `make test-dynamics`.

mink solves on `sim.model`; the results go into the worlds by name. Its Jacobians are
compared with simstate's on the way.
"""

from __future__ import annotations

import mink
import numpy as np
import torch

from simstate import EntityCfg, SceneCfg, Simulation

SITE = "tcp"
DT = 0.02


def solve(sim: Simulation, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The configuration qpos that brings the site to a point, world axes [m]."""
    configuration = mink.Configuration(sim.model, start)
    hand = mink.FrameTask(
        f"robot/{SITE}", "site", position_cost=1.0, orientation_cost=0.0
    )
    hand.set_target(mink.SE3.from_translation(target))
    posture = mink.PostureTask(sim.model, cost=1e-5)
    posture.set_target(start)
    limits = [mink.ConfigurationLimit(sim.model)]
    for _ in range(300):
        velocity = mink.solve_ik(
            configuration, [hand, posture], DT, "daqp", damping=1e-6, limits=limits
        )
        configuration.integrate_inplace(velocity, DT)
    return configuration.q.copy()


def main() -> None:
    """Bring the hand of each world to a target of its own."""
    scene = SceneCfg(
        entities={"robot": EntityCfg(model="arm")}, ground=False, timestep=None
    )
    sim = Simulation(scene, num_envs=3)
    robot = sim.scene["robot"]
    site = robot.site_names.index(SITE)
    rng = np.random.default_rng(1)
    bend = 0.1 * rng.normal(size=(3, 7)) + np.array([0, 0.4, 0, 0.8, 0, 0.5, 0])
    sim.data.qpos[:, :7] = torch.as_tensor(bend)
    start = robot.data.site_pos_w[:, site].clone()
    targets = start.numpy() + np.array(
        [[0.05, 0.1, -0.1], [-0.1, 0, 0.05], [0, -0.1, 0.1]]
    )
    ours = robot.jacobian(SITE, axes="own")
    for world in range(3):
        configuration = mink.Configuration(sim.model, sim.data.qpos[world].numpy())
        theirs = configuration.get_frame_jacobian(f"robot/{SITE}", "site")
        error = np.abs(ours[world].numpy() - theirs).max()
        assert error < 1e-10, error
        qpos = solve(sim, sim.data.qpos[world].numpy().copy(), targets[world])
        sim.data.qpos[world] = torch.as_tensor(qpos)
    reached = sim.relative(f"robot/{SITE}").pos.numpy()
    error = np.abs(reached - targets).max()
    print(f"the hands are within {1e3 * error:.2f} mm of their targets")
    assert error < 5e-3


if __name__ == "__main__":
    main()
