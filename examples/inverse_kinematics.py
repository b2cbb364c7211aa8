"""Inverse kinematics with mink on many worlds: each hand to a target of its own.

mink (`pip install mink daqp`) solves on `sim.model`; what it finds goes into a world.
Its Jacobian of the hand and simstate's are the same.
"""

import mink
import numpy as np
import torch

from simstate import EntityCfg, SceneCfg, Simulation

SITE = "tcp"
DT = 0.02


def solve(sim: Simulation, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The configuration qpos that brings the hand to a point, world axes [m]."""
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


scene = SceneCfg(
    entities={"robot": EntityCfg(model="arm")}, ground=False, timestep=None
)
sim = Simulation(scene, num_envs=3)
robot = sim.scene["robot"]
rng = np.random.default_rng(1)
bend = 0.1 * rng.normal(size=(3, 7)) + np.array([0, 0.4, 0, 0.8, 0, 0.5, 0])
sim.data.qpos[:, :7] = torch.as_tensor(bend)
hands = sim.relative(f"robot/{SITE}")
moves = np.array([[0.05, 0.1, -0.1], [-0.1, 0, 0.05], [0, -0.1, 0.1]])
targets = hands.pos.numpy() + moves

ours, worst = robot.jacobian(SITE, axes="own"), 0.0
for world in range(sim.num_envs):
    qpos = sim.data.qpos[world].numpy().copy()
    configuration = mink.Configuration(sim.model, qpos)
    theirs = configuration.get_frame_jacobian(f"robot/{SITE}", "site")
    worst = max(worst, float(np.abs(ours[world].numpy() - theirs).max()))
    sim.data.qpos[world] = torch.as_tensor(solve(sim, qpos, targets[world]))

print(f"Jacobians differ by {worst:.1e}")
error = np.abs(hands.pos.numpy() - targets).max()
print(f"hands are within {1e3 * error:.2f} mm of their targets")
