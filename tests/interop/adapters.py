"""skrl and TorchRL on our environments: their own checks, trainers and losses.

Run by `make test-adapters`, in an environment of its own: TorchRL wants an older
tensordict than rsl-rl's pin.
"""

from __future__ import annotations

import tempfile

import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs.utils import check_env_specs
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from simstate.env import Env, tasks
from simstate.interop.skrl import SkrlEnv
from simstate.interop.torchrl import TorchRlEnv


def cfg_of(task: str, seconds: float, finite: bool = False):
    cfg = tasks.make_cfg(task)
    cfg.episode_length_s = seconds
    cfg.is_finite_horizon = finite
    return cfg


def torchrl_steps_are_those_of_the_env() -> None:
    cfg = cfg_of("Cartpole-Balance", 0.1)
    env = TorchRlEnv(cfg, 4, seed=3)
    check_env_specs(env)
    env.set_seed(7)
    here = Env(cfg, 4, seed=3, auto_reset=False)
    here.reset(seed=7)
    here.reset()
    now = env.reset()
    generator = torch.Generator().manual_seed(1)
    resets = 0
    for _ in range(12):
        action = torch.randn(4, 1, generator=generator)
        taken, now = env.step_and_maybe_reset(now.set("action", action))
        seen, reward, terminated, truncated, _ = here.step(action)
        after = taken["next"]
        assert torch.equal(after["policy"], seen["policy"])
        assert torch.equal(after["reward"][:, 0], reward)
        assert torch.equal(after["truncated"][:, 0], truncated)
        ended = terminated | truncated
        assert torch.equal(after["done"][:, 0], ended)
        if bool(ended.any()):
            resets += 1
            seen, _ = here.reset(env_ids=ended)
        assert torch.equal(now["policy"], seen["policy"])
    assert resets > 1
    finite = TorchRlEnv(cfg_of("Cartpole-Balance", 0.1, True), 3)
    steps = finite.rollout(5, break_when_any_done=False)["next"]
    assert bool(steps["terminated"][:, -1].all())
    assert not bool(steps["truncated"].any())
    print("TorchRL: specs hold, steps and resets are those of the Env")


def torchrl_trains() -> None:
    torch.manual_seed(0)
    env = TorchRlEnv(cfg_of("Cartpole-Balance", 1.0), 16, seed=1)
    width = env.env.observation_dims["policy"]
    body = torch.nn.Sequential(torch.nn.Linear(width, 32), torch.nn.Tanh())
    network = torch.nn.Sequential(
        body, torch.nn.Linear(32, 2 * env.env.action_dim), NormalParamExtractor()
    )
    actor = ProbabilisticActor(
        TensorDictModule(network, ["policy"], ["loc", "scale"]),
        in_keys=["loc", "scale"], distribution_class=TanhNormal,
        return_log_prob=True, spec=env.action_spec,
    )  # fmt: skip
    critic = ValueOperator(
        torch.nn.Sequential(
            torch.nn.Linear(width, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
        ),
        in_keys=["policy"],
    )
    loss = ClipPPOLoss(actor, critic)
    advantage = GAE(gamma=0.98, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam(loss.parameters(), lr=3e-3)
    before = [p.detach().clone() for p in loss.parameters()]
    batches = Collector(
        env, actor, frames_per_batch=128, total_frames=512,
        auto_register_policy_transforms=False,
    )  # fmt: skip
    for data in batches:
        with torch.no_grad():
            advantage(data)
        for _ in range(4):
            found = loss(data.reshape(-1))
            total = sum(v for name, v in found.items() if name.startswith("loss"))
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
    after = list(loss.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(bool(torch.isfinite(p).all()) for p in after)
    assert env.env.common_step_counter >= 32
    print("TorchRL: its collector, GAE and PPO loss run")


class Actor(GaussianMixin, Model):
    def __init__(self, env):
        Model.__init__(
            self, observation_space=env.observation_space,
            action_space=env.action_space, device=env.device,
        )  # fmt: skip
        GaussianMixin.__init__(self)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(self.num_observations, 32), torch.nn.Tanh(),
            torch.nn.Linear(32, self.num_actions),
        )  # fmt: skip
        self.spread = torch.nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {"log_std": self.spread}


class Critic(DeterministicMixin, Model):
    def __init__(self, env):
        Model.__init__(
            self, observation_space=env.observation_space,
            state_space=env.state_space, action_space=env.action_space,
            device=env.device,
        )  # fmt: skip
        DeterministicMixin.__init__(self)
        width = self.num_states or self.num_observations
        self.net = torch.nn.Sequential(
            torch.nn.Linear(width, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
        )

    def compute(self, inputs, role):
        seen = inputs.get("states")
        return self.net(inputs["observations"] if seen is None else seen), {}


def skrl_trains(task: str) -> None:
    torch.manual_seed(0)
    env = SkrlEnv(Env(cfg_of(task, 0.6), 8, seed=1))
    cfg = PPO_CFG(rollouts=8, learning_epochs=2, mini_batches=2)
    with tempfile.TemporaryDirectory() as folder:
        cfg.experiment.directory = folder
        cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
        agent = PPO(
            models={"policy": Actor(env), "value": Critic(env)},
            memory=RandomMemory(memory_size=8, num_envs=8, device=env.device),
            cfg=cfg, observation_space=env.observation_space,
            state_space=env.state_space, action_space=env.action_space,
            device=env.device,
        )  # fmt: skip
        before = [p.detach().clone() for p in agent.policy.parameters()]
        trainer = SequentialTrainer(
            env=env, agents=agent,
            cfg={"timesteps": 48, "headless": True, "disable_progressbar": True},
        )  # fmt: skip
        trainer.train()
    after = list(agent.policy.parameters())
    assert env.env.common_step_counter == 48
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(bool(torch.isfinite(p).all()) for p in after)
    print(f"skrl: its trainer and PPO run on {task}")


def skrl_steps_are_those_of_the_env() -> None:
    for finite in (False, True):
        cfg = cfg_of("Quadruped-Velocity", 0.1, finite)
        env, here = SkrlEnv(Env(cfg, 3, seed=2)), Env(cfg, 3, seed=2)
        assert torch.equal(env.reset()[0], here.observations["policy"])
        for _ in range(7):
            action = 0.3 * torch.randn(3, here.action_dim)
            seen, reward, terminated, truncated, _ = env.step(action)
            wanted, expected, fell, late, _ = here.step(action)
            assert torch.equal(seen, wanted["policy"])
            assert torch.equal(env.state(), wanted["critic"])
            assert torch.equal(reward, expected[:, None])
            assert torch.equal(terminated[:, 0], fell | late if finite else fell)
            assert torch.equal(truncated[:, 0], late & (not finite))
    print("skrl: steps are those of the Env")


if __name__ == "__main__":
    torchrl_steps_are_those_of_the_env()
    skrl_steps_are_those_of_the_env()
    skrl_trains("Cartpole-Balance")
    skrl_trains("Quadruped-Velocity")
    torchrl_trains()
