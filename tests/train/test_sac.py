"""Soft actor-critic against torch's distributions, separate networks, closed forms."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from tests.inside import learn_from, set_draws, set_log_temperature, set_losses
from torch import nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from simstate.env import Env, tasks
from simstate.interop.rsl_rl import RslRlVecEnv, grouped, runner_cfg
from simstate.interop.squashed_gaussian import SquashedGaussian
from simstate.train.sac import ExperienceBuffer, SoftActorCritic, TwinValues

FEW = {
    "algorithm": "sac", "num_envs": 5, "hidden_sizes": (16,), "batch_size": 64,
    "action_limit": 1.7,
}  # fmt: skip


def learner(**changes) -> tuple[SoftActorCritic, Env]:
    cfg = tasks.make_train_cfg("Cartpole-Balance")
    cfg = dataclasses.replace(cfg, **{**FEW, **changes})
    env = Env(tasks.make_cfg("Cartpole-Balance"), 5, seed=4)
    torch.manual_seed(2)
    return SoftActorCritic(RslRlVecEnv(env), cfg, runner_cfg(cfg, env), "cpu"), env


def test_probabilities_are_those_of_torch():
    noise = SquashedGaussian(3, limit=2.5, init_std=0.6, std_range=(0.01, 5.0))
    outputs = torch.randn(40, 2, 3, generator=torch.Generator().manual_seed(6)) * 0.5
    noise.update(outputs)
    action, log_prob = noise.draw()
    mean, std = outputs[:, 0], outputs[:, 1].exp()
    oracle = TransformedDistribution(Normal(mean, std), TanhTransform())
    expected = oracle.log_prob(action.double() / 2.5).sum(-1)
    inside = (action.abs() < 2.3).all(-1)  # elsewhere the inverse of tanh is rounded
    assert inside.sum() > 10
    torch.testing.assert_close(
        log_prob[inside].double(), expected[inside].double(), rtol=1e-3, atol=1e-3
    )
    exported = noise.as_deterministic_output_module()(outputs)
    torch.testing.assert_close(exported, 2.5 * mean.tanh())


def test_twin_values_are_two_separate_networks():
    twin = TwinValues(4, 2, [8, 6], "elu")
    seen, action = torch.randn(9, 4), torch.randn(9, 2)
    for k, found in enumerate(twin(seen, action)):
        layers: list[nn.Module] = []
        for weight, bias in zip(twin.weights, twin.biases, strict=True):
            layer = nn.Linear(*weight.shape[1:])
            layer.weight.data, layer.bias.data = weight[k].T, bias[k, 0]
            layers += [layer, nn.LayerNorm(layer.out_features), nn.ELU()]
        expected = nn.Sequential(*layers[:-2])(torch.cat([seen, action], 1))
        torch.testing.assert_close(found, expected[:, 0], rtol=1e-4, atol=1e-5)
    first, second = twin(seen, action)
    assert (first - second).abs().min() > 1e-4


def test_losses_are_means_over_the_steps_that_compute_them(monkeypatch):
    algorithm, _ = learner(num_learning_epochs=2, num_mini_batches=3)
    set_losses(monkeypatch, algorithm, 0.2, torch.tensor([0.3, -0.7]))
    columns = [torch.zeros(64, 4)] * 7
    monkeypatch.setattr(ExperienceBuffer, "draw", lambda *_: columns)
    monkeypatch.setattr(algorithm.values, "normaliser", nn.Identity())
    losses = algorithm.update()
    expected = {"value": 0.2, "actor": 0.3, "entropy": -0.7, "temperature": 0.1}
    assert losses == pytest.approx(expected, rel=1e-6)


def test_the_oldest_steps_are_overwritten():
    replay = ExperienceBuffer(7, [1, 2], "cpu")
    for k in range(5):
        rows = torch.arange(3.0)[:, None] + 3 * k
        replay.add(rows, rows.expand(3, 2) + 0.5)
    found = set(replay.draw(500)[0][:, 0].tolist())
    assert found == set(map(float, range(8, 15)))
    first, second = replay.draw(20)
    assert torch.equal(second, (first + 0.5).expand(20, 2))


def test_an_end_by_time_counts_the_value_after_it():
    sac, env = learner()
    seen = grouped(env.observations, 5)
    action = sac.act(seen)
    final = {"policy": torch.randn(5, 4)}
    done, time_out = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0, 0, 1, 0, 1])
    extras = {"final_observation": final, "time_outs": time_out.bool()}
    reward = torch.arange(5.0)
    sac.process_env_step(grouped(env.observations, 5), reward, done, extras)
    rows = sac.save_experience()["rows"]
    width = [4, 4, 1, 1, 1, 4, 4]
    before, _, acted, paid, goes_on, after, judged = rows.split(width, 1)
    assert torch.equal(before, seen["policy"])
    assert torch.equal(acted, action)
    assert torch.equal(after, final["policy"])
    assert torch.equal(judged, final["policy"])
    assert goes_on[:, 0].tolist() == [1.0, 0.0, 1.0, 1.0, 1.0]
    torch.testing.assert_close(paid[:, 0], reward / 0.02)  # per second


def test_the_best_action_of_a_single_step_is_found():
    """Reward −(a − 1.2 s)² after which all ends: the optimum is a = 1.2 s."""
    sac, _ = learner(learning_rate=5e-3, num_learning_epochs=100, hidden_sizes=(32, 32))
    seen = torch.rand(2000, 4) * 2.0 - 1.0
    action = 3.4 * torch.rand(2000, 1) - 1.7
    best = 1.2 * seen[:, :1]
    zero = torch.zeros(2000, 1)
    reward = -(action - best).square()
    buffer = ExperienceBuffer(2000, [4, 4, 1, 1, 1, 4, 4], "cpu")
    buffer.add(seen, seen, action, reward, zero, seen, seen)
    learn_from(sac, buffer, (seen, seen))
    sac.train_mode()
    losses = sac.update()
    with torch.inference_mode():
        found = sac.actor(grouped({"policy": seen}, 2000))
    assert (found - best).abs().mean() < 0.15
    assert best.abs().mean() > 0.5
    assert 0.0 < losses["temperature"] < 1.0


def test_the_value_after_a_step_is_discounted():
    """A reward of 2 for ever is worth 2 / (1 − γ), but for the entropy."""
    sac, _ = learner(gamma=0.2, learning_rate=0.01, num_learning_epochs=400)
    set_log_temperature(sac, -20.0)
    seen, one = torch.randn(200, 4), torch.ones(200, 1)
    action = torch.rand(200, 1) - 0.5
    buffer = ExperienceBuffer(2000, [4, 4, 1, 1, 1, 4, 4], "cpu")
    buffer.add(seen, seen, action, 2.0 * one, one, seen, seen)
    learn_from(sac, buffer, (seen, seen), num_mini_batches=1)
    sac.train_mode()
    sac.update()
    with torch.no_grad():
        found = sac.values(sac.values.normaliser(seen), action)
    assert found.mean() == pytest.approx(2.5, rel=0.03)


def test_the_entropy_of_the_next_action_is_worth_its_temperature(monkeypatch):
    """V = 2 + γ (V + 0.5 · 4), and of an end 2 alone."""
    sac, _ = learner(gamma=0.2, learning_rate=0.01, num_learning_epochs=400)
    set_log_temperature(sac, math.log(0.5))
    set_draws(monkeypatch, sac, -4.0)
    seen, one = torch.randn(200, 4), torch.ones(200, 1)
    action = torch.zeros(200, 1)
    goes_on = (seen[:, :1] > 0.0).float()
    following = seen.abs()
    buffer = ExperienceBuffer(2000, [4, 4, 1, 1, 1, 4, 4], "cpu")
    buffer.add(seen, seen, action, 2.0 * one, goes_on, following, following)
    learn_from(sac, buffer, (seen, seen), num_mini_batches=1)
    sac.train_mode()
    sac.update()
    with torch.no_grad():
        found = sac.values(sac.values.normaliser(seen), action)
    far = seen[:, 0].abs() > 0.4
    for goes, value in ((1.0, 3.0), (0.0, 2.0)):
        chosen = far & (goes_on[:, 0] == goes)
        assert found[:, chosen].mean() == pytest.approx(value, rel=0.05)
