"""HalfCheetah: an action in, five time steps, observation and reward out.

The third argument is the peer: gymnasium (its vector of environments) or envpool. All
are complete environments behind Gymnasium's vector interface, on one thread: actions,
observations, rewards, infos, ends and resets. simstate's has Gymnasium's bits.
"""

from __future__ import annotations

import sys

from job import cpu_rate, one_thread, report


def gymnasium(worlds: int) -> float:
    import gymnasium
    import numpy as np

    envs = gymnasium.make_vec("HalfCheetah-v5", worlds, vectorization_mode="sync")
    envs.reset(seed=0)
    rng = np.random.default_rng(0)

    def step() -> None:
        envs.step(rng.uniform(-1, 1, (worlds, 6)).astype(np.float32))

    return cpu_rate(step, worlds)


def envpool(worlds: int) -> float:
    import envpool
    import numpy as np

    envs = envpool.make_gymnasium("HalfCheetah-v4", num_envs=worlds, num_threads=1)
    envs.reset()
    rng = np.random.default_rng(0)

    def step() -> None:
        envs.step(rng.uniform(-1, 1, (worlds, 6)).astype(np.float32))

    return cpu_rate(step, worlds)


def simstate(worlds: int) -> float:
    import gymnasium
    import numpy as np
    import torch

    import simstate.interop.gymnasium  # noqa: F401 (registers the tasks)

    torch.set_num_threads(1)
    envs = gymnasium.make_vec(
        "simstate/HalfCheetah-v5", worlds, autoreset_mode="NextStep",
        engine=one_thread(),
    )  # fmt: skip
    envs.reset(seed=0)
    rng = np.random.default_rng(0)

    def step() -> None:
        envs.step(rng.uniform(-1, 1, (worlds, 6)).astype(np.float32))

    return cpu_rate(step, worlds)


peers = {"gymnasium": gymnasium, "envpool": envpool}
peer = sys.argv[3]
report(peer, {"peer": peers[peer], "simstate": simstate})
