"""Save a rollout, go back to it, and branch it into many futures.

A snapshot holds everything that a world needs to go on. Restored into all worlds of
another simulation it starts as many branches from one past; here each gets a push of
its own. Branch 0 is not pushed, and goes on bit for bit as the original did.
"""

import tempfile
from pathlib import Path

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.state import Snapshot

SCENE = SceneCfg(
    entities={
        "robot": EntityCfg(
            model="quadruped", init_state=InitialStateCfg(keyframe="home")
        )
    }
)
BRANCHES = 16


def main() -> None:
    """Roll out, save, go on; then branch from the file."""
    original = Simulation(SCENE)
    original.step(200)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.npz"
        original.snapshot().save(path)
        print(
            f"saved at t = {float(original.time[0]):.2f} s: "
            f"{path.stat().st_size / 1024:.0f} KiB"
        )
        saved = Snapshot.load(path)
    original.step(100)

    branches = Simulation(SCENE, num_envs=BRANCHES)
    branches.restore(saved)
    robot = branches.scene["robot"]
    push = torch.zeros(BRANCHES, 6, dtype=branches.dtype)
    push[:, 1] = torch.linspace(0.0, 1.5, BRANCHES)  # m/s to the left, world axes
    pushed = slice(1, None)  # all but branch 0
    velocity = robot.data.root_link_vel_w + push
    robot.write_root_link_velocity_to_sim(velocity[pushed], env_ids=pushed)
    branches.step(100)

    gap = (branches.state[0] - original.state[0]).abs().max()
    print(f"branch 0 against the original, 0.5 s later: largest difference {gap:g}")
    sideways = robot.data.root_link_pos_w[:, 1]
    upright = -robot.data.projected_gravity_b[:, 2]
    for k in (0, 5, 10, 15):
        print(
            f"pushed at {float(push[k, 1]):.1f} m/s: {float(sideways[k]):+.3f} m "
            f"sideways, cosine of the tilt {float(upright[k]):.3f}"
        )


if __name__ == "__main__":
    main()
