"""HalfCheetah: an action in, five time steps, observation and reward out.

The third argument is the peer: gymnasium (its vector of environments) or envpool.
simstate runs Gymnasium's own MJCF file.
"""

from __future__ import annotations

import sys

from job import cpu_rate, one_thread, report

SUBSTEPS = 5


def gymnasium(worlds: int) -> float:
    import gymnasium
    import numpy as np

    envs = gymnasium.make_vec("HalfCheetah-v5", worlds, vectorization_mode="sync")
    envs.reset(seed=0)
    rng = np.random.default_rng(0)

    def step() -> None:
        envs.step(rng.uniform(-1, 1, (worlds, 6)))

    return cpu_rate(step, worlds)


def envpool(worlds: int) -> float:
    import envpool
    import numpy as np

    envs = envpool.make_gymnasium("HalfCheetah-v4", num_envs=worlds, num_threads=1)
    envs.reset()
    rng = np.random.default_rng(0)

    def step() -> None:
        envs.step(rng.uniform(-1, 1, (worlds, 6)))

    return cpu_rate(step, worlds)


def simstate(worlds: int) -> float:
    from importlib.util import find_spec
    from pathlib import Path

    import mujoco
    import torch

    from simstate import Simulation

    found = find_spec("gymnasium")
    assert found is not None
    assert found.origin is not None
    assets = Path(found.origin).parent / "envs" / "mujoco" / "assets"
    model = mujoco.MjModel.from_xml_path(str(assets / "half_cheetah.xml"))
    torch.set_num_threads(1)
    sim = Simulation(model, worlds, engine=one_thread())
    data, seconds = sim.data, SUBSTEPS * model.opt.timestep

    def step() -> None:
        action = 2 * torch.rand(worlds, 6, dtype=torch.float64) - 1
        before = data.qpos[:, 0].clone()
        data.ctrl[:] = action
        sim.step(SUBSTEPS)
        forward = (data.qpos[:, 0] - before) / seconds
        forward - 0.1 * action.square().sum(1)
        torch.cat([data.qpos[:, 1:], data.qvel], 1)

    return cpu_rate(step, worlds)


peers = {"gymnasium": gymnasium, "envpool": envpool}
peer = sys.argv[3]
report(peer, {"peer": peers[peer], "simstate": simstate})
