"""Learn a policy from demonstrations: collect, clone, and see how well it does.

A hand-written controller balances a pole on a cart. A network learns to do what it did,
from the recorded observations and actions alone.
"""

import tempfile

import numpy as np
import torch

from simstate.data.datasets import collect
from simstate.env import Env, tasks

GAINS = torch.tensor([[0.4, 3.0, 0.6, 0.7]])
"""Push for each metre, radian, metre per second and radian per second."""


def controller(env):
    """The teacher."""
    return lambda seen: (seen["policy"] @ GAINS.T).clamp(-1.0, 1.0)


def mean_length(cfg, act, worlds=16):
    """How long the pole stays up [s], on average; new worlds."""
    env = Env(cfg, worlds, seed=123, auto_reset=False)
    seen = env.observations
    up = torch.ones(worlds, dtype=torch.bool)
    total = 0.0
    for _ in range(env.max_episode_length):
        with torch.no_grad():
            seen, _, terminated, _, _ = env.step(act(seen))
        up &= ~terminated
        total += float(up.sum()) * env.step_dt
    return total / worlds


def main():
    """Collect, learn, and compare."""
    torch.manual_seed(0)
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 2.0
    with tempfile.TemporaryDirectory() as folder:
        found = collect(
            cfg, controller, folder, episodes=24, envs=32, success="time_out"
        )
        episodes = list(found.episodes())
    stacked = {
        name: torch.as_tensor(np.concatenate([e.columns[name] for e in episodes]))
        for name in ("observation/policy", "action")
    }
    seen, done = stacked["observation/policy"], stacked["action"]
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    )
    before = mean_length(cfg, lambda seen: network(seen["policy"]))
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for _ in range(250):
        some = torch.randint(len(seen), (256,))
        loss = (network(seen[some]) - done[some]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = mean_length(cfg, lambda seen: network(seen["policy"]))
    print(f"episodes: {len(episodes)}, steps: {len(seen)}")
    print(f"error of the clone: {loss.item():.5f}")
    print(f"pole up before [s]: {before:.2f}")
    print(f"pole up after [s]: {after:.2f}")
    print(f"of the teacher [s]: {mean_length(cfg, controller(None)):.2f}")


if __name__ == "__main__":
    main()
