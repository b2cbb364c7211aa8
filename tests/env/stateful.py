"""A task whose terms all remember something, as a user would write them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tests.inside import processes_of

from simstate import integrate
from simstate.env import (
    CurriculumTermCfg,
    Env,
    EventTermCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    UniformNoise,
    tasks,
)
from simstate.env.actions import Action, ActionCfg

FEET = SceneEntityCfg("robot", site_names=".*_foot")


class FeetAirTime:
    """How long each foot was in the air when it touches down, less a threshold."""

    def __init__(self, cfg, env):
        self.sites = cfg.params["asset_cfg"].site_ids
        count = len(cfg.params["asset_cfg"].names_of("site"))
        self.air_time = env.memory("air_time", (count,), unit="s")
        self.resets = env.memory("resets", dtype=torch.int64, reset=None)

    def __call__(self, env, asset_cfg=FEET, threshold=0.1, height=0.03):
        up = env.scene["robot"].data.site_pos_w[:, self.sites, 2] > height
        landed = ~up & (self.air_time > 0.0)
        reward = ((self.air_time - threshold) * landed).sum(1)
        self.air_time.copy_(torch.where(up, self.air_time + env.step_dt, 0.0))
        return reward

    def reset(self, env_ids):
        self.resets[env_ids] += 1


def smoothed_speed(env, share: float = 0.2):
    """A moving mean of the forward velocity: a function that remembers."""
    mean = env.memory("mean")
    speed = env.scene["robot"].data.root_link_lin_vel_b[:, 0].float()
    mean.lerp_(speed, share)
    return mean[:, None].clone()


def drift_bias(env, env_ids):
    """An event that adds up in a world, over episodes."""
    drift = env.memory("drift", (12,), reset=None)
    drift[env_ids] += env.rng.normal(env_ids, 12).float() * 0.01
    bias = drift[env_ids].to(env.sim.dtype)
    env.scene["robot"].set_encoder_bias(bias, env_ids=env_ids)


@dataclass(kw_only=True)
class DelayedActionCfg(ActionCfg):
    """Position targets that act some steps late."""

    steps: int = 2

    def make(self, name, env):
        return DelayedAction(self, env)


class DelayedAction(Action):
    """Keeps the last actions of each world."""

    def __init__(self, cfg, env):
        self.entity = env.scene[cfg.asset_name]
        self.names = self.entity.joint_names
        self.past = env.memory("delayed", (cfg.steps, len(self.names)))

    def apply(self, action):
        late = self.past[:, 0].clone()
        self.past.copy_(torch.cat([self.past[:, 1:], action[:, None].float()], dim=1))
        target = self.entity.data.default_joint_pos + 0.25 * late.to(action)
        self.entity.set_joint_position_target(target)


class Harder:
    """A curriculum with a memory of its own: how many worlds have ended, in steps."""

    def __init__(self, cfg, env):
        self.ended = env.memory("ended", reset=None)

    def reset(self, env_ids):
        pass

    def __call__(self, env, env_ids):
        self.ended[env_ids] += 1
        env.rewards.set_weight("track_lin_vel", 1.0 + 0.01 * float(self.ended.sum()))
        return env.rewards.weight("track_lin_vel")


def stateful_cfg():
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.episode_length_s = 0.6
    cfg.actions = {"late": DelayedActionCfg()}
    cfg.rewards["air"] = RewardTermCfg(FeetAirTime, weight=0.5)
    cfg.rewards["air_2"] = RewardTermCfg(
        FeetAirTime, params={"threshold": 0.05}, weight=0.1
    )
    cfg.observations["policy"].terms["speed"] = ObservationTermCfg(
        smoothed_speed, noise=UniformNoise(-0.1, 0.1), delay=(0, 2), history=2
    )
    cfg.events["drift"] = EventTermCfg(drift_bias, mode="reset")
    cfg.curricula["harder"] = CurriculumTermCfg(Harder)
    return cfg


def stateful_env(num_envs: int = 4, seed: int = 1) -> Env:
    env = Env(stateful_cfg(), num_envs, seed=seed, integrator=integrate.EulerMaruyama())
    env.sim.add_process(integrate.OrnsteinUhlenbeck("wind", [0.3, 0.0], 0.5, 2.0))
    wind = processes_of(env.sim)[0]

    def blow(t, sim):
        sim.data.xfrc_applied[:, 1, :2] += wind.value

    env.sim.add_force(blow)
    return env


def run(env: Env, steps: int, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(steps):
        action = torch.randn(env.num_envs, env.action_dim, generator=generator)
        seen, reward, terminated, truncated, extras = env.step(action)
        log = torch.tensor([float(value) for value in extras["log"].values()])
        rows += [*seen.values(), reward, terminated, truncated, log]
    rows.append(env.sim.state.clone())
    return rows
